"""The files of a server's log, as the server lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.client.account import account_at
from binlane.client.conversation import hold
from binlane.client.dialogue import Account, Dialogue, ask, log_in
from binlane.client.settings import ServerUrl
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor

_FILES: Final = "SHOW BINARY LOGS"
_UUID: Final = "SELECT @@server_uuid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLog:
    """The files of a server's log at one moment.

    Attributes:
        files: Base name and size in bytes of each, oldest first; the last one grows.
        server_uuid: The UUID of a MySQL server; None where there is none.
    """

    files: tuple[tuple[str, int], ...]
    server_uuid: str | None


def list_log(url: ServerUrl, password: str) -> ServerLog:
    """Ask a server which files its log has.

    Raises:
        PeerError: If the server cannot be reached, or refuses something.
        ConfigError: If a file of certificates cannot be used.
    """
    return hold(url, _listing(account_at(url, password)))


def _listing(account: Account) -> Dialogue[ServerLog]:
    greeting = yield from log_in(account)
    uuid = None
    if flavor_of(greeting.server_version) is Flavor.MYSQL:
        answer = yield from ask(_UUID, peer=account.peer)
        uuid = None if answer is None else answer.texts()[0][0]
    answer = yield from ask(_FILES, peer=account.peer)
    rows = () if answer is None else answer.texts()
    return ServerLog(
        files=tuple((name or "", int(size or 0)) for name, size, *_ in rows), server_uuid=uuid
    )
