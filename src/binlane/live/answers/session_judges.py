"""The port's sessions in one process: what they share, begun when the first of them needs it.

A source that was not set up for it, or an account of binlane's that does not see all definitions,
lets the port work without: statements are relayed unread, and all binlogs get rows. Whoever sets it
up later has it without a restart.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final, Protocol
from weakref import WeakValueDictionary

from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, StatementError
from binlane.live.answers.explain_answers import predicted_errors
from binlane.live.capture.settings import SourceSettings
from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.attribution_messages import AttributionReceiver
from binlane.live.port.catalog_connections import not_asked
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.port_parts import PortParts, Seen
from binlane.live.port.port_session import PortSession
from binlane.live.port.source_marks import Marker
from binlane.live.port.unread import holds_all_rows
from binlane.live.provision.source_schema import wanted_privileges
from binlane.log.codec.types import Flavor
from binlane.statements.scope.definition import Definition
from binlane.statements.session.session import Session
from binlane.statements.sql.servers import LoggingMode

_MARKS: Final = (
    "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'binlane'"
    " AND TABLE_NAME = 'marks' AND COLUMN_NAME = 'thread'"
)
_LOOK_AGAIN_S: Final = 10.0
_LOOK_S: Final = 1.0
"""Longest wait for the source of whoever asks for the problem."""
_SILENT: Final = "the source has not said yet whether statements are judged"
_TIMEOUT_S: Final = 10.0
_PRIVILEGES: Final = (
    "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE ="
    " CONCAT('\\'', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '\\'@\\'',"
    " SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '\\'')"
)

logger = logging.getLogger(__name__)


class JudgedBinlogs(Protocol):
    """The binlogs' settings for which statements are judged."""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """All definitions; the same tuple as long as they are the same."""
        ...

    @property
    def variables(self) -> Mapping[str, str]:
        """Values that SET GLOBAL or the settings gave the binlogs' variables, by name."""
        ...

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        ...

    def set_variables(self, values: Mapping[str, str | None]) -> None:
        """Give the binlogs' variables values; blocks, from any thread.

        Raises:
            StoreError: If they cannot be saved.
        """
        ...


class Port:
    """Makes the judges of sessions.

    Attributes:
        problem: The reason why statements are not judged, or binlogs hold rows alone; empty if
            neither.

    Args:
        settings: The source, and binlane's own account there.
        binlogs: The binlogs that the statements are for.
        sayings: Gets to know what sessions make the source log.
        catalog: Knows the objects of the source.
        seen: The source's objects that sessions see, given to `PortParts`.
        is_told: True if the log gets to know of `problem`.
    """

    def __init__(
        self,
        settings: SourceSettings,
        binlogs: JudgedBinlogs,
        sayings: AttributionReceiver,
        catalog: LiveCatalog,
        *,
        seen: Seen,
        is_told: bool = True,
    ) -> None:
        self.problem = ""
        self._settings = settings
        self._binlogs = binlogs
        self._sayings = sayings
        self._catalog = catalog
        self._seen = seen
        self._is_told = is_told
        self._parts: PortParts | None = None
        self._looked_s = float("-inf")
        self._looking = asyncio.Lock()
        self._sessions: WeakValueDictionary[int, PortSession] = WeakValueDictionary()

    def judge(self, session: HandlerSession) -> PortSession:
        """The judge of a session."""
        known = self._parts
        if known is not None and (self.problem or not known.has_marks):
            known = None  # which may be due for another look
        judge = PortSession(session, self.parts, known)
        self._sessions[session.thread_id] = judge
        return judge

    async def state_of(self, session: HandlerSession) -> tuple[LiveCatalog, Session] | None:
        """The source's objects, and what a session is like; None where that is not followed.

        Raises:
            PeerError: If the source goes away.
        """
        judge = self._sessions.get(session.thread_id)
        try:
            return None if judge is None else await judge.state_now()
        except StatementError:
            return None  # of which `problem` tells

    async def problem_now(self) -> str:
        """As `problem`, after a look at the source if the last one was some time ago.

        A source that takes its time is not waited for.
        """
        looking = asyncio.ensure_future(self.parts())
        done, _ = await asyncio.wait((looking,), timeout=_LOOK_S)
        if not done:
            looking.add_done_callback(_heard)
            return self.problem or _SILENT
        try:
            looking.result()
        except StatementError as error:
            return str(error)
        return self.problem

    async def stop(self) -> None:
        """Ask the source nothing more."""
        await self._catalog.stop()
        if self._parts is not None:
            self._parts.marker.close()
        self._sayings.close()

    async def parts(self) -> PortParts | None:
        """Return the parts that sessions share; None if the source was not set up for them.

        Raises:
            StatementError: If it cannot be asked.
        """
        async with self._looking:
            is_due = time.monotonic() - self._looked_s > _LOOK_AGAIN_S
            parts = self._parts
            if parts is None or ((self.problem or not parts.has_marks) and is_due):
                if not is_due:
                    return None
                self._parts = await self._look()
                self._looked_s = time.monotonic()
        return self._parts

    async def _look(self) -> PortParts | None:
        """Find out the source's facts and objects.

        Raises:
            StatementError: If it cannot be asked.
        """
        try:
            privileges, has_marks, version = await asyncio.to_thread(self._ask)
        except BinlaneError as error:
            raise not_asked(
                f"binlane cannot ask the source what the statement would do: {error}",
                error,
                hint="see whether the source runs, and lets binlane's own account in",
            ) from None
        before, self.problem = self.problem, ""
        flavor = Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL
        lacking = [name for name in wanted_privileges(flavor) if name not in privileges]
        if lacking:
            self.problem = (
                f"statements are not judged, and all binlogs get rows: the account"
                f" {self._settings.url.user} lacks {', '.join(lacking)} (binlane setup)"
            )
        elif not has_marks and any(
            one.logging_mode is not LoggingMode.ROW for one in self._binlogs.definitions
        ):
            self.problem = (
                "binlogs of statements lack temporary tables: the source has no table binlane.marks"
                " of this version (binlane setup)"
            )
        if self._is_told and self.problem != before:
            logger.warning("the port: %s", self.problem or "statements are judged from now on")
        if lacking:
            return None
        await self._catalog.start()
        definitions, variables = self._definitions, self._variables
        return PortParts(
            definitions=definitions,
            catalog=self._catalog,
            attributions=self._sayings,
            marker=Marker(self._settings, flavor),
            has_marks=has_marks,
            global_values=variables,
            holds_all_rows=holds_all_rows(definitions, variables),
            set_global_values=self._binlogs.set_variables,
            seen=self._seen,
            tells_tables=self._binlogs.has_tables_info,
            program_errors=predicted_errors,
        )

    def _definitions(self) -> tuple[Definition, ...]:
        return self._binlogs.definitions

    def _variables(self) -> Mapping[str, str]:
        return self._binlogs.variables

    def _session(self) -> ServerSession:
        settings = self._settings
        return ServerSession(settings.url, settings.secret(), answer_s=_TIMEOUT_S)

    def _ask(self) -> tuple[frozenset[str], bool, str]:
        with self._session() as session:
            privileges = frozenset(row[0] or "" for row in session.ask(_PRIVILEGES))
            ((columns,),) = session.ask(_MARKS)
            return privileges, columns == "1", session.version


def _heard(looking: asyncio.Future[PortParts | None]) -> None:
    """Ignore a failure for which nobody waits any more: it has been logged."""
    if not looking.cancelled():
        looking.exception()
