"""Marks: groups that the source logs because binlane wants a GTID for what it logs nothing of.

Binlane's own account makes them, on the lane of the session that they are for: an ordinary account
cannot, and the session may be over by then.

A source that was started anew counts its threads anew, and replicas drop all temporary tables there:
what is marked behind that for a session of before would be taken for another one's. So a mark is made
only on a connection that was open while the session was there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

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
_Result = TypeVar("_Result")


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
        return await asyncio.to_thread(self._mark, lane, there_s)

    def close(self) -> None:
        """Go away."""
        with self._lock:
            self._drop()

    def _open(self) -> None:
        with self._lock:
            self._ask(self._connected)

    def _mark(self, lane: Lane, there_s: float) -> str:
        with self._lock:
            session = self._ask(self._connected)
            if there_s < self._opened_s:
                raise StatementError(
                    "the source was not marked: it may have been started anew meanwhile"
                )
            return self._ask(lambda: self._marked(session, lane))

    def _connected(self) -> ServerSession:
        session = self._session
        if session is None:
            session = self._session = ServerSession(
                self._settings.url, self._settings.secret(), answer_s=_TIMEOUT_S
            )
            session.ask(_STAYING)
            self._opened_s = time.monotonic()
        return session

    def _marked(self, session: ServerSession, lane: Lane) -> str:
        session.ask(lane.enter)
        session.ask(_MARKING)
        return self._last(session, lane)

    def _ask(self, work: Callable[[], _Result]) -> _Result:
        """Do something at the source; whatever fails ends the connection.

        Raises:
            StatementError: If it fails.
        """
        try:
            return work()
        except BinlaneError as error:
            self._drop()
            raise StatementError(f"the source was not marked: {error}", hint=error.hint) from None
        except BaseException:
            self._drop()
            raise

    def _last(self, session: ServerSession, lane: Lane) -> str:
        if self._flavor is Flavor.MARIADB:
            return session.ask("SELECT @@last_gtid")[0][0] or ""
        ((executed, own),) = session.ask("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.server_uuid")
        ends = [
            run.intervals[-1][1]
            for run in GtidSet.parse(executed or "").runs
            if run.tag == lane.tag and run.source_id == own
        ]
        return f"{own}:{lane.tag}:{ends[0]}" if ends else ""

    def _drop(self) -> None:
        if self._session is not None:
            with suppress(BinlaneError, OSError):
                self._session.close()
            self._session = None
