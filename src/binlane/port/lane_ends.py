"""When the threads of sessions that were lost are gone from the source.

A session that ended with a statement under way may go on at the source for as long as that takes.
Until its thread is gone and what it logged was read, its lane is nobody else's, and what the
statement made is not known. So binlane asks, with its own account, as long as a lane waits for that.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from binlane.capture.settings import SourceSettings
from binlane.client.session import ServerSession
from binlane.codec.types import Flavor
from binlane.errors import BinlaneError
from binlane.port.attributions import Attributions
from binlane.positions import parse_position

_EVERY_S: Final = 0.25
_MAY_SEE_ALL: Final = (
    "SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS'"
    " AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"
)
_THREADS: Final = "SHOW PROCESSLIST"
_POSITIONS: Final = {
    Flavor.MARIADB: "SELECT @@GLOBAL.gtid_binlog_pos",
    Flavor.MYSQL: "SELECT @@GLOBAL.gtid_executed",
}

logger = logging.getLogger(__name__)


class LaneEnds:
    """Tells `Attributions` which lanes' threads are gone; a task of the event loop.

    Args:
        attributions: Has the lanes that wait.
        settings: Of the source, with binlane's own account.

    Attributes:
        failure: Why the source does not tell; empty while it does.
    """

    def __init__(self, attributions: Attributions, settings: SourceSettings) -> None:
        self.failure = ""
        self._attributions = attributions
        self._settings = settings
        self._session: ServerSession | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if any(self._attributions.unended.values()):
                await self.look()

    async def look(self) -> None:
        """Ask once, and tell what is known then."""
        # Those that are lost later may log behind the position.
        unended = self._attributions.unended
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, self._ask)
        except BinlaneError as error:
            self._close()
            self._fail(str(error), error.hint)
            return
        if found is None:
            self._fail(
                "binlane's own account may not see the source's threads",
                "GRANT PROCESS ON *.* to it",
            )
            return
        self.failure = ""
        flavor, threads, text = found
        position = parse_position(text, flavor.value)
        now = self._attributions.unended
        for lane, thread_id in unended.items():
            if thread_id and thread_id not in threads and now.get(lane) == thread_id:
                self._attributions.ended(lane, position)

    def _ask(self) -> tuple[Flavor, set[int], str] | None:
        """Which threads there are, then what is logged; None if that is not told to the account.

        Raises:
            PeerError: If the source cannot be asked.
            ConfigError: If the account's password cannot be read.
        """
        settings, session = self._settings, self._session
        if session is None:
            session = ServerSession(settings.url, settings.secret(), answer_s=settings.timeout_s)
            self._session = session
        ((may_see_all,),) = session.ask(_MAY_SEE_ALL)
        if may_see_all == "0":
            return None
        is_mariadb = "mariadb" in session.version.lower()
        flavor = Flavor.MARIADB if is_mariadb else Flavor.MYSQL
        threads = {int(row[0]) for row in session.ask(_THREADS) if row[0] is not None}
        ((position,),) = session.ask(_POSITIONS[flavor])
        return flavor, threads, position or ""

    def _fail(self, reason: str, hint: str) -> None:
        if reason != self.failure:
            logger.warning(
                "lanes whose sessions were lost stay taken: %s%s",
                reason,
                f" ({hint})" if hint else "",
            )
        self.failure = reason

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
