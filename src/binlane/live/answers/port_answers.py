"""Executes the statements on binlogs that arrive on the listening port, and answers questions of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from binlane.client.questions import text_literal
from binlane.live.answers.access import (
    Access,
    BinlogAccess,
)
from binlane.live.answers.check_statements import CheckStatements, Comparisons
from binlane.live.answers.definition_statements import DefinitionStatements
from binlane.live.answers.explain_answers import explain_binlog, explained
from binlane.live.answers.grant_statements import AskSource, GrantStatements
from binlane.live.answers.replica_dumps import ReplicaDumps
from binlane.live.answers.session_judges import Port
from binlane.live.answers.show_statements import ShowStatements
from binlane.live.answers.source_queries import (
    source_position,
    wait_until_complete,
)
from binlane.live.answers.system_tables.answering import SystemTables
from binlane.live.dump.lookup import gtid_position_in, place_behind
from binlane.live.gateway.answers import Answer
from binlane.live.gateway.handler import HandlerSession, Send
from binlane.live.gateway.judge import Judge
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlog_changes import COMPLETE_TIMEOUT_S, incomplete
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.positions import FilePosition, GtidPosition, Position
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import (
    AcknowledgeIncidents,
    AlterBinlog,
    BinlogStatement,
    CancelRows,
    CheckBinlog,
    CompactBinlog,
    CreateBinlog,
    DropBinlog,
    FlushBinaryLogs,
    GrantRead,
    PurgeBinaryLogs,
    RevokeRead,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowChecks,
    ShowIncidents,
    ShowReadGrants,
    ShowReplicas,
    StartBinlog,
    StopBinlog,
)
from binlane.statements.sql.tokens import SqlSyntaxError

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _listing_what_is_seen(
    method: Callable[Concatenate[PortAnswers, HandlerSession, _P], Awaitable[_T]],
) -> Callable[Concatenate[PortAnswers, HandlerSession, _P], Coroutine[None, None, _T]]:
    """An answer of which `Access.listing` is true."""

    @wraps(method)
    async def wrapped(
        self: PortAnswers, session: HandlerSession, /, *args: _P.args, **options: _P.kwargs
    ) -> _T:
        return await self._access.listing(session, method(self, session, *args, **options))

    return wrapped


class PortAnswers:
    """Answers the gateway's sessions.

    Attributes:
        dumps: Serves dumps, and knows who reads binlogs.

    Args:
        binlogs: The binlogs that the statements are about.
        port: Has statements judged; None lets all pass.
        access: Says what sessions may see; None: by their privileges and grants.
        ask: Asks the source what the session may not see; None: nobody does.
    """

    def __init__(
        self,
        binlogs: Binlogs,
        port: Port | None = None,
        *,
        access: Access | None = None,
        ask: AskSource | None = None,
    ) -> None:
        self._binlogs = binlogs
        self._port = port
        self._access = access or Access(binlogs)
        self.dumps = ReplicaDumps(binlogs, self._access)
        binlogs.on_access_changed(self.dumps.look_again)
        self._checks = CheckStatements(self._access)
        shows = ShowStatements(binlogs, self._access, self.dumps, port, self._checks)
        self._system_tables = SystemTables(shows.snapshot, self._access)
        definitions = DefinitionStatements(binlogs, self._access)
        grants = GrantStatements(binlogs, self._access, source_position, ask)
        self._executors: Mapping[type, Callable[[HandlerSession, Any], Awaitable[Answer]]] = (
            MappingProxyType(
                {
                    CreateBinlog: definitions.create,
                    DropBinlog: definitions.drop,
                    StartBinlog: definitions.start,
                    StopBinlog: definitions.stop,
                    ShowBinlogs: shows.binlogs,
                    ShowBinlogStatus: shows.status,
                    ShowBinaryLogs: shows.binary_logs,
                    FlushBinaryLogs: definitions.flush,
                    ShowReplicas: shows.replicas,
                    AlterBinlog: definitions.alter,
                    CompactBinlog: definitions.compact,
                    CancelRows: definitions.cancel_rows,
                    PurgeBinaryLogs: definitions.purge,
                    ShowBinlogEvents: shows.events,
                    ShowIncidents: shows.incidents,
                    AcknowledgeIncidents: definitions.acknowledge,
                    CheckBinlog: self._checks.check,
                    ShowChecks: self._checks.show,
                    GrantRead: grants.grant,
                    RevokeRead: grants.revoke,
                    ShowReadGrants: grants.show,
                }
            )
        )

    @property
    def has_tables_info(self) -> bool:
        """True if binlogs are written with tables info."""
        return self._binlogs.has_tables_info

    def compare_by(self, comparisons: Comparisons) -> None:
        """Let somebody compare tables for CHECK BINLOG, and tell the outcomes."""
        self._checks.comparisons = comparisons

    def judge(self, session: HandlerSession) -> Judge | None:
        """Return the judge of a session's statements; None lets all pass."""
        return None if self._port is None else self._port.judge(session)

    async def answers(self, session: HandlerSession, statement: str) -> bool:
        """True if `answer` would answer a statement; nothing of the statement is executed."""
        if explained(statement) is not None or await _parsed(session, statement) is not None:
            return True
        return await self._system_tables.answers(session, statement)

    @_listing_what_is_seen
    async def answer(self, session: HandlerSession, statement: str) -> Answer | None:
        """Execute a statement on binlogs; None for any other.

        Raises:
            StatementError: To be told to the client.
        """
        about = explained(statement)
        if about is not None:
            names = await self._access.names(session, SourcePrivilege.MONITOR)
            definitions = [self._binlogs.get(name).definition for name in names]
            state = None
            if definitions and self._port is not None:
                state = await self._port.state_of(session)
            live, model = (None, None) if state is None else state
            return await explain_binlog(session, about, definitions, live=live, model=model)
        parsed = await _parsed(session, statement)
        if parsed is None:
            return await self._system_tables.answer(session, statement)
        return await self._executors[type(parsed)](session, parsed)

    @_listing_what_is_seen
    async def gtid_position(self, session: HandlerSession) -> Position | None:
        """The watermark of the only binlog there is; None where there are none or several."""
        names = await self._readable(session)
        if len(names) != 1:
            return None
        await wait_until_complete(self._binlogs, session, names[0])
        return self._binlogs.get(names[0]).position

    @_listing_what_is_seen
    async def gtid_position_now(self, session: HandlerSession) -> Position | None:
        """The same, where it stands: whoever asks for all variables does not ask for this one."""
        names = await self._readable(session)
        return self._binlogs.get(names[0]).position if len(names) == 1 else None

    @_listing_what_is_seen
    async def binlog_format(self, session: HandlerSession) -> str | None:
        """The FORMAT of the only binlog there is; None as above, or where SET GLOBAL said."""
        names = await self._readable(session)
        if len(names) != 1 or "binlog_format" in self._binlogs.variables:
            return None
        return self._binlogs.get(names[0]).definition.logging_mode.value

    @_listing_what_is_seen
    async def gtid_purged(self, session: HandlerSession) -> Position | None:
        """Return the position before the first file of the only binlog; None unless there is just one."""
        names = await self._readable(session)
        return self._binlogs.get(names[0]).published.begin if len(names) == 1 else None

    @_listing_what_is_seen
    async def gtid_position_at(
        self, session: HandlerSession, place: FilePosition
    ) -> Position | None:
        """Return what is done before a position in a binlog file; None if the source is to answer."""
        name = place.file.rpartition(".")[0]
        if name not in await self._access.told(session):
            return None
        found = next((f for f in self._binlogs.get(name).files() if f.name == place.file), None)
        if found is None or found.flavor != GtidPosition.flavor:
            return None
        return await asyncio.to_thread(gtid_position_in, found.path, place.position)

    @_listing_what_is_seen
    async def snapshot(self, session: HandlerSession, place: FilePosition) -> FilePosition | None:
        """Return the only binlog's place for a place in the source's log, once it has all before it."""
        names = await self._readable(session)
        if len(names) != 1:
            return None
        found = await session.query_source(
            f"SELECT BINLOG_GTID_POS({text_literal(place.file)}, {place.position}) LIMIT 1"
        )
        told = found.texts()[0][0]
        if told is None:
            return None
        done = GtidPosition.parse(told)
        if not await self._binlogs.wait_until_complete(
            names[0], done, timeout_s=COMPLETE_TIMEOUT_S
        ):
            raise incomplete(self._binlogs.output(names[0]), done)
        published = self._binlogs.get(names[0]).published
        return await asyncio.to_thread(place_behind, published.files, published.end, done)

    async def listed(self, session: HandlerSession) -> tuple[str, ...] | None:
        """The names of binlogs that errors may list to a session; None if none may be listed."""
        return await self._access.listed(session)

    def decide_by(self, rule: BinlogAccess) -> None:
        """Let another rule say what sessions see; dumps end that it does not allow."""
        self._access.use(rule)
        self.dumps.look_again()

    def killed(self, thread_id: int) -> None:
        """End the dump or the query of a session that the source has killed, or whose statement."""
        self.dumps.killed(thread_id)
        self._system_tables.killed(thread_id)

    @_listing_what_is_seen
    async def dump(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """As `ReplicaDumps.serve`."""
        return await self.dumps.serve(session, command, send)

    async def register(self, session: HandlerSession) -> None:
        """As `ReplicaDumps.register`."""
        await self.dumps.register(session)

    async def _readable(self, session: HandlerSession) -> tuple[str, ...]:
        """Names of the binlogs that a session's account may see, sorted."""
        return await self._access.seen(session)


async def _parsed(session: HandlerSession, statement: str) -> BinlogStatement | None:
    """Read a statement as the session's sql_mode has it, which matters where `"` quotes something."""
    if '"' not in statement:
        return parse_binlog_statement(statement)
    try:
        if parse_binlog_statement(statement) is None:
            return None
    except SqlSyntaxError:
        pass  # the names may be right in the other mode
    found = await session.query_source("SELECT @@SESSION.sql_mode LIMIT 1")
    ansi_quotes = "ANSI_QUOTES" in (found.texts()[0][0] or "").split(",")
    return parse_binlog_statement(statement, ansi_quotes=ansi_quotes)
