"""Marks: groups that the source logs because binlane wants a GTID for what it logs nothing of.

Binlane's own account makes them, by a row that names the thread of the session that they are for: that
may be over by then. The same account asks what the source has executed, where the session cannot be
asked without its client seeing it.

A source that was started anew counts its threads anew, and replicas drop all temporary tables there:
what is marked behind that for a session of before would be taken for another one's. So a mark is made
only on a connection that was open while the session was there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from binlane.binlogs.routing.cut_group import MARKS
from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, StatementError
from binlane.live.capture.settings import SourceSettings
from binlane.log.codec.types import Flavor

_TIMEOUT_S: Final = 10.0
_MARKING: Final = (
    f"INSERT INTO {MARKS.plain} (id, thread, number) VALUES (1, {{0}}, 1)"  # noqa: S608  # our names
    " ON DUPLICATE KEY UPDATE thread = {0}, number = number + 1"
)
_LOGGED: Final = {
    Flavor.MARIADB: "SELECT @@last_gtid",
    Flavor.MYSQL: "SELECT @@GLOBAL.gtid_executed",
}
_ASKING: Final = "SELECT 1"
_TRIES: Final = 2
_STAYING: Final = "SET SESSION wait_timeout = 31536000"
"""A connection that the source ends for having been silent could not mark for sessions of before."""
_NOT_MARKED: Final = "the source was not marked"


class Marker:
    """A connection to the source that is opened when it is first needed.

    Args:
        settings: Address of the source, and binlane's own account there.
        flavor: Flavor of the source server.
    """

    def __init__(self, settings: SourceSettings, flavor: Flavor) -> None:
        self._settings = settings
        self._flavor = flavor
        self._lock = threading.Lock()
        self._session: ServerSession | None = None
        self._opened_s = 0.0

    async def open(self) -> None:
        """See that the connection is there: marks are made for who is there behind that."""
        with suppress(StatementError):  # of which `mark` tells
            await asyncio.to_thread(self._open)

    async def mark(self, thread_id: int, there_s: float) -> str:
        """Have the source log a group for a session.

        Args:
            thread_id: Thread of the session at the source.
            there_s: Time, by `time.monotonic`, at which a statement of that session was sent that the source
                answered.

        Returns:
            GTID of the group; for MySQL the set of all that was executed up to it.

        Raises:
            StatementError: If the source cannot be asked, does not answer, or may have been started anew
            since then.
        """
        return await asyncio.to_thread(self._marked, thread_id, there_s)

    async def executed(self) -> str:
        """The GTIDs that a source of MySQL has executed up to now.

        Raises:
            StatementError: If the source cannot be asked.
        """
        return await asyncio.to_thread(self._executed)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    def _open(self) -> None:
        for _ in range(_TRIES):
            # One to a source that was started anew meanwhile is found out by asking.
            with suppress(StatementError), self._connected(_NOT_MARKED) as session:
                session.ask(_ASKING)
                return

    def _marked(self, thread_id: int, there_s: float) -> str:
        with self._connected(_NOT_MARKED) as session:
            if there_s >= self._opened_s:
                session.ask(_MARKING.format(thread_id))
                return session.ask(_LOGGED[self._flavor])[0][0] or ""
        raise StatementError(f"{_NOT_MARKED}: it may have been started anew meanwhile")

    def _executed(self) -> str:
        with self._connected("the source was not asked for its GTIDs") as session:
            return session.ask(_LOGGED[Flavor.MYSQL])[0][0] or ""

    @contextmanager
    def _connected(self, what: str) -> Iterator[ServerSession]:
        """The connection, for one thread at a time; closed if anything fails.

        Args:
            what: Says what did not happen if the source cannot be asked.

        Raises:
            StatementError: Then.
        """
        with self._lock:
            try:
                yield self._session or self._begun()
            except BinlaneError as error:
                self._drop()
                raise StatementError(f"{what}: {error}", hint=error.hint) from None
            except BaseException:
                self._drop()
                raise

    def _begun(self) -> ServerSession:
        session = self._session = ServerSession(
            self._settings.url, self._settings.secret(), answer_s=_TIMEOUT_S
        )
        session.ask(_STAYING)
        self._opened_s = time.monotonic()
        return session

    def _drop(self) -> None:
        if self._session is not None:
            with suppress(BinlaneError, OSError):
                self._session.close()
            self._session = None
