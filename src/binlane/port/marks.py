"""Marks: groups that the source logs because binlane wants a GTID for what it logs nothing of.

Binlane's own account makes them, on the lane of the session that they are for: an ordinary account
cannot, and the session may be over by then.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Final

from binlane.capture.settings import SourceSettings
from binlane.client.session import ServerSession
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError, StatementError
from binlane.port.lanes import DATABASE, MARK, Lane
from binlane.positions import GtidSet

_TIMEOUT_S: Final = 10.0
_MARKING: Final = f"CALL {DATABASE}.{MARK}()"


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

    async def mark(self, lane: Lane) -> str:
        """Have the source log a group on a lane; its GTID.

        Raises:
            StatementError: If the source cannot be asked, or does not.
        """
        return await asyncio.to_thread(self._mark, lane)

    def close(self) -> None:
        """Go away."""
        with self._lock:
            self._drop()

    def _mark(self, lane: Lane) -> str:
        with self._lock:
            try:
                session = self._session or ServerSession(
                    self._settings.url, self._settings.secret(), answer_s=_TIMEOUT_S
                )
                self._session = session
                session.ask(lane.enter)
                session.ask(_MARKING)
                return self._last(session, lane)
            except BinlaneError as error:
                self._drop()
                raise StatementError(
                    f"the source was not marked: {error}", hint=error.hint
                ) from None
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
