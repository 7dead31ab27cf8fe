"""Marks: groups that the source logs because binlane wants a GTID for what it logs nothing of.

Binlane's own account makes them, on the lane of the session that they are for: an ordinary account
cannot, and the session may be over by then. The same account asks which GTIDs a lane has, where the
session cannot be asked without its client seeing it.

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

from binlane.capture.settings import SourceSettings
from binlane.client.session import ServerSession
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError, StatementError
from binlane.port.lanes import DATABASE, MARK, Lane
from binlane.positions import GtidSet

_TIMEOUT_S: Final = 10.0
_MARKING: Final = f"CALL {DATABASE}.{MARK}()"
_STAYING: Final = "SET SESSION wait_timeout = 31536000"
"""A connection that the source ends for having been silent could not mark for sessions of before."""
_NOT_MARKED: Final = "the source was not marked"


class Marker:
    """A connection to the source that is opened when it is first needed.

    Args:
        settings: The source, and binlane's own account there.
        flavor: Of the source.
    """

    def __init__(self, settings: SourceSettings, flavor: Flavor) -> None:
        self._settings = settings
        self._flavor = flavor
        self._lock = threading.Lock()
        self._session: ServerSession | None = None
        self._opened_s = 0.0

    async def open(self) -> None:
        """Open the connection, if it is not: marks are made for who is there behind that."""
        if self._session is None:
            with suppress(StatementError):  # of which `mark` tells
                await asyncio.to_thread(self._open)

    async def mark(self, lane: Lane, there_s: float) -> str:
        """Have the source log a group on a lane; its GTID.

        Args:
            lane: Of the session that it is for.
            there_s: As `time.monotonic`, when a statement of that session was sent, which the source
                answered.

        Raises:
            StatementError: If the source cannot be asked, does not, or may have been started anew
                since then.
        """
        return await asyncio.to_thread(self._marked, lane, there_s)

    async def last(self, lane: Lane) -> str:
        """The GTIDs of a lane that the source has logged up to now, the last of them at least.

        Those of MySQL: each session of MariaDB knows its own last one.

        Raises:
            StatementError: If the source cannot be asked.
        """
        return await asyncio.to_thread(self._asked, lane)

    def close(self) -> None:
        """Go away."""
        with self._lock:
            self._drop()

    def _open(self) -> None:
        with self._connected(_NOT_MARKED):
            pass

    def _marked(self, lane: Lane, there_s: float) -> str:
        with self._connected(_NOT_MARKED) as session:
            if there_s >= self._opened_s:
                session.ask(lane.enter)
                session.ask(_MARKING)
                if self._flavor is Flavor.MARIADB:
                    return session.ask("SELECT @@last_gtid")[0][0] or ""
                source_id, (_, last) = self._logged(session, lane)
                return f"{source_id}:{lane.tag}:{last}" if last else ""
        raise StatementError(f"{_NOT_MARKED}: it may have been started anew meanwhile")

    def _asked(self, lane: Lane) -> str:
        with self._connected("the source was not asked for its GTIDs") as session:
            source_id, (first, last) = self._logged(session, lane)
            return f"{source_id}:{lane.tag}:{first}-{last}" if last else ""

    def _logged(self, session: ServerSession, lane: Lane) -> tuple[str, tuple[int, int]]:
        """The source, and the last run of numbers that a lane has there; zeros for none."""
        ((executed, own),) = session.ask("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.server_uuid")
        runs = [
            run.intervals[-1]
            for run in GtidSet.parse(executed or "").runs
            if run.tag == lane.tag and run.source_id == own
        ]
        return own or "", runs[0] if runs else (0, 0)

    @contextmanager
    def _connected(self, what: str) -> Iterator[ServerSession]:
        """The connection, for one thread at a time; it is closed if anything fails.

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
