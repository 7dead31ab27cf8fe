"""The settings of capture: the server, the account, and the start."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.positions import SERVER_ID_MAX, FilePosition, GtidPosition, GtidSet

_FIRST_POSITION: Final = 4
_HEARTBEAT_PERIOD_MIN_S: Final = 0.001
_HEARTBEAT_PERIOD_MAX_S: Final = 4294967.0


class StartAt(Enum):
    """The place where a first capture begins when no position is known."""

    NOW = "now"
    OLDEST = "oldest"


Start = StartAt | GtidPosition | GtidSet | FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The section `[source]` of the configuration.

    Attributes:
        url: The server and the account, which needs the privilege REPLICATION SLAVE.
        password_file: A file whose first line is the password; None for an empty one.
        password: The password where the caller has it already; not shown.
        start: The start of a first capture; later ones go on where the store ends.
        server_id: Under which id binlane appears to the source, 1 to 2^32-1, unlike that of any
            other server or replica; a random one of a range of its own by default.
        heartbeat_period_s: An idle source says that it lives this often, 0.001 to 4294967 seconds.
        timeout_s: Longest wait for a connection, or for an answer before events flow.
    """

    url: ServerUrl
    password_file: Path | None = None
    password: str = field(default="", repr=False)
    start: Start = StartAt.NOW
    server_id: int | None = None
    heartbeat_period_s: float = 5.0
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if self.password and self.password_file is not None:
            raise ConfigError(
                "both a password and a password file are given", key="source.password_file"
            )
        if self.server_id is not None and not 1 <= self.server_id <= SERVER_ID_MAX:
            raise ConfigError(
                f"{self.server_id} is not a server id: give 1 to {SERVER_ID_MAX}",
                key="source.server_id",
            )
        if not _HEARTBEAT_PERIOD_MIN_S <= self.heartbeat_period_s <= _HEARTBEAT_PERIOD_MAX_S:
            raise ConfigError(
                f"{self.heartbeat_period_s} s cannot be a heartbeat period: "
                f"{_HEARTBEAT_PERIOD_MIN_S} to {_HEARTBEAT_PERIOD_MAX_S:.0f} s can",
                key="source.heartbeat_period_s",
            )
        if not self.timeout_s > 0:
            raise ConfigError(f"{self.timeout_s} s is no timeout", key="source.timeout_s")

    def secret(self) -> str:
        """The password, as it is now.

        Raises:
            ConfigError: If its file cannot be read.
        """
        path = self.password_file
        if path is None:
            return self.password
        try:
            return path.read_text(encoding="utf-8").partition("\n")[0].removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the password file {path} cannot be read: {error}",
                key="source.password_file",
                hint="its first line is the password, in UTF-8",
            ) from None


def parse_start(text: str, *, key: str = "source.start") -> Start:
    """Read `now`, `oldest`, a GTID position or set, or `file:position`.

    Raises:
        ConfigError: If it is none of these.
    """
    words = {start.value: start for start in StartAt}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    with suppress(ValueError):
        if gtid_set := GtidSet.parse(text):
            return gtid_set
    file, colon, position = text.strip().rpartition(":")
    if colon and file and position.isascii() and position.isdigit():
        return FilePosition(file, max(int(position), _FIRST_POSITION))
    try:
        gtid_position = GtidPosition.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), key=key, hint=_start_hint()) from None
    if not gtid_position:
        raise ConfigError("no start is named", key=key, hint=_start_hint())
    return gtid_position


def _start_hint() -> str:
    return 'write "now", "oldest", a GTID position such as "0-1-27", or "file:position"'
