"""Executes the statements on binlogs that arrive on the listening port, and serves dumps to replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import Activity
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.heads import read_head
from binlane.binlogs.store.incidents import stopping_text
from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import HINT_ERRNO, DefinitionError, Diagnostic, StatementError
from binlane.live.answers.access import (
    DUMP_TIMEOUT_S,
    FOLLOWED_TIMEOUT_S,
    NOT_IN_TIME,
    Access,
    BinlogAccess,
)
from binlane.live.answers.binlog_events import show_events, wrong
from binlane.live.answers.explain import explain_binlog, explained
from binlane.live.answers.grant_statements import AskSource, GrantStatements, visible_grants
from binlane.live.answers.port import Port
from binlane.live.answers.purging import evaluated_time, plan_before, plan_to, unknown_target
from binlane.live.answers.reading import Reading
from binlane.live.answers.source_links import (
    NO_SOURCE_LINKS,
    Query,
    Rows,
    SourceLinks,
    source_links,
)
from binlane.live.answers.system_tables.answering import SystemTables
from binlane.live.answers.system_tables.schema import Snapshot
from binlane.live.answers.system_tables.snapshot import BinlogFacts, ReplicaFacts, snapshot, utc
from binlane.live.answers.unknown_names import UnknownNames, unknown_names
from binlane.live.dump.dump_progress import DumpProgress
from binlane.live.dump.dump_sending import awaited, serve_dump
from binlane.live.dump.lookup import gtid_position_in, place_behind
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import FATAL_ERRNO, ReplicaRequest, refusal
from binlane.live.gateway.answers import Answer, OkAnswer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession, Send
from binlane.live.gateway.judge import Judge
from binlane.live.gateway.log_texts import shown
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlog_changes import COMPLETE_TIMEOUT_S, incomplete
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import MAGIC, flavor_of
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.types import Flavor
from binlane.names import quote
from binlane.positions import FilePosition, GtidPosition, GtidSet, Position, parse_position
from binlane.statements.scope.definition import (
    Definition,
    DuplicateBinlogError,
    UnknownBinlogError,
    duplicate_binlog,
    unknown_binlog,
)
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.scope.statements import (
    AcknowledgeIncidents,
    AlterBinlog,
    BinlogStatement,
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
    ShowIncidents,
    ShowReadGrants,
    ShowReplicas,
    StartBinlog,
    StopBinlog,
    alter,
    create,
)
from binlane.statements.sql.servers import LoggingMode
from binlane.statements.sql.tokens import SqlSyntaxError

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_BAD_DATABASE: Final = 1049
_REFUSED_MAX: Final = 20
_SAME_ID: Final = 4052
"""ER_SLAVE_SAME_ID of MariaDB."""
_DISABLED: Final = "all binlogs get rows: [gateway] enabled is false"
_DONE: Final = MappingProxyType({Flavor.MARIADB: "gtid_binlog_pos", Flavor.MYSQL: "gtid_executed"})
_BY_FILE: Final = MappingProxyType(
    {
        Flavor.MARIADB: "MASTER_USE_GTID=no, MASTER_LOG_FILE",
        Flavor.MYSQL: "SOURCE_AUTO_POSITION=0, SOURCE_LOG_POS=4, SOURCE_LOG_FILE",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedReplica:
    """A replica whose dump is running.

    Attributes:
        server_id: Given by the replica when it registers or begins to dump.
        peer: The address of the replica.
        user: Account that it logged in with.
        binlog: Name of the binlog that it reads.
        host: The replica's `report_host`, empty if it has none.
        port: The replica's `report_port`, 0 if it has none.
        uuid: The replica's `server_uuid`, empty if it has none.
        thread_id: The thread id of its session on the source.
        keeps_gtids: True if it keeps MySQL's GTIDs.
        is_tls: True if its connection is encrypted.
        progress: The progress of its dump.
    """

    server_id: int
    peer: str
    user: str
    binlog: str
    host: str = ""
    port: int = 0
    uuid: str = ""
    thread_id: int = 0
    keeps_gtids: bool = False
    is_tls: bool = False
    progress: DumpProgress = field(default_factory=DumpProgress)

    def is_same(self, other: ConnectedReplica, flavor: Flavor) -> bool:
        """True if a source takes both for one replica: MySQL by their UUID, if they have one."""
        if flavor is Flavor.MYSQL and (self.uuid or other.uuid):
            return self.uuid == other.uuid
        return self.server_id == other.server_id != 0


def _listing_what_is_seen(
    method: Callable[Concatenate[Statements, HandlerSession, _P], Awaitable[_T]],
) -> Callable[Concatenate[Statements, HandlerSession, _P], Coroutine[None, None, _T]]:
    """An answer whose error of an unknown name lists no binlog that the account may not see.

    A binlog may be dropped between looking for it as one that the account sees and using it.
    """

    @wraps(method)
    async def wrapped(
        self: Statements, session: HandlerSession, /, *args: _P.args, **options: _P.kwargs
    ) -> _T:
        try:
            return await method(self, session, *args, **options)
        except UnknownBinlogError as error:
            raise unknown_binlog(error.binlog, await self.listed(session)) from None

    return wrapped


class Statements:
    """Answers the gateway's sessions.

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
        self._system_tables = SystemTables(self._snapshot, self._access)
        grants = GrantStatements(binlogs, self._access, _source_position, ask)
        self._readings: dict[HandlerSession, Reading] = {}
        binlogs.on_access_changed(self._access_changed)
        self._replicas: dict[int, ConnectedReplica] = {}
        self._dumps: dict[int, asyncio.Future[StatementError | None]] = {}
        self._refused: dict[tuple[str, int], str] = {}
        self._executors: Mapping[type, Callable[[HandlerSession, Any], Awaitable[Answer]]] = (
            MappingProxyType(
                {
                    CreateBinlog: self._create,
                    DropBinlog: self._drop,
                    StartBinlog: self._start,
                    StopBinlog: self._stop,
                    ShowBinlogs: self._show_binlogs,
                    ShowBinlogStatus: self._show_status,
                    ShowBinaryLogs: self._show_binary_logs,
                    FlushBinaryLogs: self._flush,
                    ShowReplicas: self._show_replicas,
                    AlterBinlog: self._alter,
                    PurgeBinaryLogs: self._purge,
                    ShowBinlogEvents: self._show_events,
                    ShowIncidents: self._show_incidents,
                    AcknowledgeIncidents: self._acknowledge,
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
        await self._wait_until_complete(session, names[0])
        return self._binlogs.get(names[0]).position

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
            f"SELECT BINLOG_GTID_POS({_text(place.file)}, {place.position}) LIMIT 1"
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

    def killed(self, thread_id: int) -> None:
        """End the dump or the query of a session that the source has killed, or whose statement."""
        dump = self._dumps.get(thread_id)
        if dump is not None and not dump.done():
            dump.set_result(None)
        self._system_tables.killed(thread_id)

    @property
    def replicas(self) -> Collection[ConnectedReplica]:
        """The replicas and tools that read binlogs now."""
        return self._replicas.values()

    @_listing_what_is_seen
    async def dump(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """Serve a dump until it ends.

        Raises:
            StatementError: If the binlog cannot be told or what is asked cannot be served.
        """
        flavor = flavor_of(session.server_version)
        request = ReplicaRequest.of(command, session.variables, flavor=flavor)
        dump = ReplicaDump(request)
        try:
            live = await awaited(self._binlog_of(session, request), request, dump, send)
            return await self._serve(session, request, dump, live, send)
        except StatementError as error:
            self._note_refused(request, "", error.message)
            if not dump.file:
                raise
            # Something was sent, so that this is no first packet.
            return dump.error(error)

    @_listing_what_is_seen
    async def _binlog_of(self, session: HandlerSession, request: ReplicaRequest) -> LiveBinlog:
        """The binlog that a replica asks for; who is told that the source lives may wait for long."""
        is_patient = request.heartbeat_period_s is not None
        timeout_s = DUMP_TIMEOUT_S if is_patient else FOLLOWED_TIMEOUT_S
        names = await self._access.names(session, SourcePrivilege.READ, timeout_s=timeout_s)
        return self._binlogs.live(self._binlog_for(request, names))

    async def _serve(
        self,
        session: HandlerSession,
        request: ReplicaRequest,
        dump: ReplicaDump,
        live: LiveBinlog,
        send: Send,
    ) -> bytes:
        source_id = ""
        if isinstance(request.connect_state, GtidSet):
            found = await session.query_source("SELECT @@GLOBAL.server_uuid LIMIT 1")
            source_id = found.texts()[0][0] or ""
        with self._connected(session, request, live.name) as (replica, ended):
            async with Reading(self._access, session, live) as reading:
                self._readings[session] = reading
                for binlog in ("", live.name):
                    self._refused.pop((binlog, request.server_id), None)
                try:
                    return await serve_dump(
                        *(request, live, send),
                        source_id=source_id,
                        ended=ended,
                        refusal_of=reading.refusal,
                        progress=replica.progress,
                        dump=dump,
                    )
                finally:
                    del self._readings[session]
                    if replica.progress.failure and not ended.done():
                        self._note_refused(request, live.name, replica.progress.failure)

    def _note_refused(self, request: ReplicaRequest, binlog: str, why: str) -> None:
        """Note that a replica stops: one that is refused comes again only if somebody has it do so."""
        if request.is_non_blocking or not request.server_id:
            return  # a tool, which tells who runs it
        key = binlog or request.file.rpartition(".")[0], request.server_id
        self._refused.pop(key, None)
        self._refused[key] = why
        while len(self._refused) > _REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    @property
    def refused(self) -> Sequence[str]:
        """Replicas whose dumps ended with an error, and why, until they come again."""
        running = {(one.binlog, one.server_id) for one in self._replicas.values()}
        return [
            shown(f"replica {server_id}{f' of binlog {binlog}' if binlog else ''} stops: {why}")
            for (binlog, server_id), why in tuple(self._refused.items())
            if (binlog, server_id) not in running
        ]

    async def register(self, session: HandlerSession) -> None:
        """Let a session introduce itself as a replica; it is told nothing.

        Raises:
            StatementError: If its account may read no binlog, as far as that is known at once.
        """
        try:
            await self._access.names(session, SourcePrivilege.READ, timeout_s=0)
        except StatementError as error:
            if error.errno != NOT_IN_TIME:
                raise

    async def listed(self, session: HandlerSession) -> tuple[str, ...] | None:
        """The names of binlogs that errors may list to a session; None if none may be listed."""
        return await self._access.listed(session)

    def decide_by(self, rule: BinlogAccess) -> None:
        """Let another rule say what sessions see; dumps end that it does not allow."""
        self._access.use(rule)
        self._access_changed()

    def _access_changed(self) -> None:
        for reading in self._readings.values():
            reading.look_again()

    async def _readable(self, session: HandlerSession) -> tuple[str, ...]:
        """Names of the binlogs that a session's account may see, sorted."""
        return await self._access.seen(session)

    def _binlog_for(self, request: ReplicaRequest, names: Sequence[str]) -> str:
        # A MySQL may say both, a MariaDB by GTID names the file of the server that it had before.
        is_by_file = request.connect_state is None or request.flavor is Flavor.MYSQL
        if is_by_file and request.file:
            name = request.file.rpartition(".")[0]
            if name not in names:
                raise unknown_binlog(name, names)
            return name
        if len(names) == 1:
            return names[0]
        listed = ", ".join(f"'{name}'" for name in names)
        if not names:
            raise DefinitionError(
                "there are no binlogs", errno=1236, hint="make one with CREATE BINLOG"
            )
        raise DefinitionError(
            f"a replica by GTID does not say which binlog it wants; the binlogs are {listed}",
            errno=1236,
            hint=f"let its account read one alone, GRANT READ ON BINLOG '{names[0]}' TO …, or name"
            f" a file: {_BY_FILE[request.flavor]}='{names[0]}.000001'",
        )

    @contextmanager
    def _connected(
        self, session: HandlerSession, request: ReplicaRequest, name: str
    ) -> Iterator[tuple[ConnectedReplica, asyncio.Future[StatementError | None]]]:
        """Note a dump while it runs; gives who reads, and what ends it."""
        told = session.replica
        uuids = (session.variables.get(each) for each in ("replica_uuid", "slave_uuid"))
        replica = ConnectedReplica(
            server_id=request.server_id,
            peer=session.peer,
            user=session.user,
            binlog=name,
            host=told.host if told else "",
            port=told.port if told else 0,
            uuid=next((each for each in uuids if each), ""),
            thread_id=session.thread_id,
            keeps_gtids=request.keeps_gtids,
            is_tls=session.is_tls,
        )
        self._check_one_binlog(replica)
        self._end_older(replica, request.flavor)
        ended: asyncio.Future[StatementError | None] = asyncio.get_running_loop().create_future()
        self._replicas[session.thread_id], self._dumps[session.thread_id] = replica, ended
        try:
            yield replica, ended
        finally:
            del self._replicas[session.thread_id], self._dumps[session.thread_id]

    def _check_one_binlog(self, replica: ConnectedReplica) -> None:
        """See that a replica that keeps GTIDs follows no other binlog of the source by them.

        Each of the two would give it empty transactions for what only the other one has.
        """
        for other in self._replicas.values():
            is_same = replica.uuid and other.uuid == replica.uuid
            if (
                is_same
                and other.keeps_gtids
                and replica.keeps_gtids
                and other.binlog != replica.binlog
            ):
                raise refusal(
                    "the replica follows another binlog of this source by GTID already, and is told "
                    "that it has all of the source's transactions",
                    hint="by file and position it may follow several: SOURCE_AUTO_POSITION=0",
                )

    def _end_older(self, replica: ConnectedReplica, flavor: Flavor) -> None:
        """End what a replica left behind that comes again, as the servers do.

        Of another binlog it is no older dump: one server may follow several by several connections.
        """
        for thread_id, other in self._replicas.items():
            is_same = other.binlog == replica.binlog and other.is_same(replica, flavor)
            if is_same and not (ended := self._dumps[thread_id]).done():
                ended.set_result(_replaced(flavor))

    async def _create(self, session: HandlerSession, statement: CreateBinlog) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        if statement.name in self._binlogs.names:
            if statement.if_not_exists:
                return _noted(duplicate_binlog(statement.name))
            raise duplicate_binlog(statement.name)
        ignores_case, default = await _ignores_case(session), self._binlogs.default_format

        def make(log_id: int) -> Definition:
            return create(statement, log_id, ignores_case=ignores_case, default=default)

        scope = make(1).scope
        await _check_databases(session, scope)
        done = await _source_position(session)
        found = await _links(session, scope)
        unknown = await unknown_names(_query(session), scope)
        try:
            begin = await self._binlogs.changes.create(
                statement.name, make, done=done, links=found.links
            )
        except DuplicateBinlogError as error:
            if statement.if_not_exists:
                return _noted(error)
            raise
        return _effective(begin, statement.name, unknown, found.notes(scope))

    async def _drop(self, session: HandlerSession, statement: DropBinlog) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        if not await self._binlogs.changes.drop(statement.name, if_exists=statement.if_exists):
            return _noted(unknown_binlog(statement.name, None))
        return OkAnswer()

    async def _start(self, session: HandlerSession, statement: StartBinlog) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        begin = await self._binlogs.changes.start(statement.name, statement.position)
        return OkAnswer(info=f"goes on after GTID {begin}")

    async def _stop(self, session: HandlerSession, statement: StopBinlog) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        end = await self._binlogs.changes.stop(statement.name)
        return OkAnswer(info=f"stopped after GTID {end}")

    async def _flush(self, session: HandlerSession, statement: FlushBinaryLogs) -> Answer:
        for name in await self._chosen(session, statement.name, SourcePrivilege.FLUSH):
            await self._binlogs.changes.rotate(name)
        return OkAnswer()

    async def _alter(self, session: HandlerSession, statement: AlterBinlog) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        if statement.if_exists and statement.name not in self._binlogs.names:
            return _noted(unknown_binlog(statement.name, None))
        former, default = self._binlogs.get(statement.name).definition, self._binlogs.default_format
        preview = alter(former, statement, default=default)
        await _check_databases(session, preview.scope)
        # All that the source has done by now belongs to the scope as it was.
        done = await _source_position(session)
        found = await _links(session, preview.scope)
        unknown = await unknown_names(_query(session), preview.scope, former.scope)
        begin = await self._binlogs.changes.alter(
            statement.name,
            lambda definition: alter(definition, statement, default=default),
            done=done,
            links=found.links,
        )
        return _effective(begin, statement.name, unknown, found.notes(preview.scope))

    async def _purge(self, session: HandlerSession, statement: PurgeBinaryLogs) -> Answer:
        names = await self._chosen(session, statement.name, SourcePrivilege.DEFINE)
        if statement.to_file is not None:
            name = statement.name or statement.to_file.rpartition(".")[0]
            if name not in names:
                raise unknown_target(statement.to_file)
            plans = [plan_to(self._binlogs.live(name), statement.to_file)]
        else:
            timestamp = await evaluated_time(session, statement.before or "")
            plans = [plan_before(self._binlogs.live(name), timestamp) for name in names]
        for plan in plans:
            if plan.first is not None:
                await self._binlogs.changes.purge(plan.binlog, plan.first)
        kept = [_diagnostic("Warning", plan.warning) for plan in plans if plan.warning]
        return OkAnswer(info="; ".join(each.text for each in kept), diagnostics=tuple(kept))

    async def _show_events(self, session: HandlerSession, statement: ShowBinlogEvents) -> Answer:
        names = await self._access.names(session, SourcePrivilege.EVENTS)
        if statement.file is None:
            name = _only_binlog(names)
            file: BinlogFile | None = self._binlogs.get(name).published.oldest
        else:
            name = statement.file.rpartition(".")[0]
            file = self._file(name, statement.file) if name in names else None
        if file is None:
            raise wrong(
                "Could not find target log", hint="SHOW BINARY LOGS lists the files of all binlogs"
            )
        if file.ended is None:
            await self._binlogs.wait_until_complete(
                name, await _source_position(session), timeout_s=COMPLETE_TIMEOUT_S
            )
            file = self._file(name, file.name) or file
        return await show_events(file, statement)

    def _file(self, name: str, file: str) -> BinlogFile | None:
        if name not in self._binlogs.names:
            return None
        files = self._binlogs.get(name).published.files
        return next((each for each in files if each.name == file), None)

    async def _show_binlogs(self, session: HandlerSession, statement: ShowBinlogs) -> Answer:
        del statement
        names = await self._access.names(session, SourcePrivilege.MONITOR)
        columns = (
            *("Name", "File", ColumnDefinition.integer("Position"), "Gtid_complete"),
            *("Log", "Ignore", "Format", "State"),
        )
        binlogs = [self._binlogs.get(name) for name in names]
        problem = ""
        if any(one.definition.logging_mode is not LoggingMode.ROW for one in binlogs):
            problem = _DISABLED if self._port is None else await self._port.problem_now()
        stops = ((one.name, stopping_text(one.incidents)) for one in binlogs)
        told = [_diagnostic("Warning", f"binlog {name}: {text}") for name, text in stops if text]
        return RowsAnswer(columns, [self._describe(one, problem) for one in binlogs], tuple(told))

    def _describe(self, binlog: Binlog, problem: str = "") -> tuple[str | None, ...]:
        """A row of SHOW BINLOGS.

        Args:
            binlog: The binlog that the row describes.
            problem: The reason why a binlog of statements gets rows; empty where it does not.
        """
        end, definition = binlog.end, binlog.definition
        state = self._binlogs.output(binlog.name).state
        told = str(state)
        if problem and not state.reason and definition.logging_mode is not LoggingMode.ROW:
            told = f"{told}: {problem}"
        return (
            binlog.name,
            end.file,
            str(end.position),
            str(binlog.position),
            "ALL" if definition.scope.log_all else definition.scope.render(ScopeList.LOG),
            definition.scope.render(ScopeList.IGNORE),
            definition.logging_mode.value,
            told,
        )

    async def _show_incidents(self, session: HandlerSession, statement: ShowIncidents) -> Answer:
        columns = (
            *("Binlog", "File", ColumnDefinition.integer("Position"), "Gtid", "Time", "Reason"),
            ColumnDefinition.integer("Count"),
        )
        rows = [
            (
                name,
                each.file,
                each.position,
                each.gtid,
                utc(each.timestamp),
                each.reason,
                each.count,
            )
            for name in await self._chosen(session, statement.name, SourcePrivilege.MONITOR)
            for each in self._binlogs.get(name).incidents
        ]
        return RowsAnswer(columns, rows)

    async def _acknowledge(
        self, session: HandlerSession, statement: AcknowledgeIncidents
    ) -> Answer:
        await session.require(SourcePrivilege.DEFINE)
        done = await self._binlogs.changes.acknowledge(statement.name, statement.last)
        if not done:
            return OkAnswer(info=f"binlog '{statement.name}' has none that is not acknowledged")
        count = sum(each.count for each in done)
        told = f"{count} acknowledged, the last at {done[-1].place_text}"
        logger.info(
            "binlog %s: INCIDENTs by %s: %s",
            *(statement.name, shown(session.user), told),
            extra={"binlog": statement.name, "user": session.user},
        )
        return OkAnswer(info=told)

    async def _show_status(self, session: HandlerSession, statement: ShowBinlogStatus) -> Answer:
        rows = []
        for name in await self._chosen(session, statement.name, SourcePrivilege.MONITOR):
            await self._wait_until_complete(session, name, is_named=statement.name is not None)
            binlog = self._binlogs.get(name)
            scope = binlog.definition.scope
            lists = (scope.render(ScopeList.LOG), scope.render(ScopeList.IGNORE))
            at = await asyncio.to_thread(_status_position, binlog)
            rows.append((binlog.end.file, str(at), *lists, str(binlog.position)))
        position = ColumnDefinition.integer("Position")
        columns = ("File", position, "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set")
        count = len(columns) if flavor_of(session.server_version) is Flavor.MYSQL else -1
        return RowsAnswer(columns[:count], [row[:count] for row in rows])

    async def _show_binary_logs(self, session: HandlerSession, statement: ShowBinaryLogs) -> Answer:
        rows = []
        for name in await self._chosen(session, statement.name, SourcePrivilege.MONITOR):
            await self._wait_until_complete(session, name, is_named=statement.name is not None)
            files = self._binlogs.get(name).files()
            rows += [(file.name, str(file.size_bytes), "No") for file in files]
        columns = ("Log_name", ColumnDefinition.integer("File_size"), "Encrypted")
        count = len(columns) if flavor_of(session.server_version) is Flavor.MYSQL else -1
        return RowsAnswer(columns[:count], [row[:count] for row in rows])

    async def _show_replicas(self, session: HandlerSession, statement: ShowReplicas) -> Answer:
        del statement
        names = await self._access.names(session, SourcePrivilege.REPLICAS)
        found = await session.query_source("SELECT @@GLOBAL.server_id LIMIT 1")
        source_id = found.texts()[0][0]
        rows = [
            (
                *(replica.server_id, replica.host or replica.peer, replica.port, source_id),
                *(replica.uuid, replica.user, replica.binlog),
            )
            for replica in self._replicas.values()
            if replica.binlog in names
        ]
        is_mysql = flavor_of(session.server_version) is Flavor.MYSQL
        numbers = (
            ("Server_Id", "Port", "Source_Id") if is_mysql else ("Server_id", "Port", "Master_id")
        )
        server_id, port, source = map(ColumnDefinition.integer, numbers)
        columns = (server_id, "Host", port, source, "Replica_UUID", "User", "Binlog")
        if is_mysql:
            return RowsAnswer(columns, rows)
        # MariaDB's has no UUIDs.
        return RowsAnswer((*columns[:4], *columns[5:]), [(*row[:4], *row[5:]) for row in rows])

    async def _snapshot(self, session: HandlerSession) -> Snapshot:
        """The rows of the system tables that a session's account may see."""
        names = await self._access.names(session, SourcePrivilege.MONITOR)
        grants = await visible_grants(self._access, session, self._binlogs.grants)
        history = await asyncio.to_thread(self._binlogs.history)
        if not await self._access.sees_all(session):
            ids = {self._binlogs.get(name).definition.log_id for name in names}
            history = [each for each in history if each.log_id in ids]
        facts = []
        for name in names:
            binlog = self._binlogs.get(name)
            _, file, position, gtid_complete, *_, state = self._describe(binlog)
            facts.append(
                BinlogFacts(
                    definition=binlog.definition,
                    state=state or "",
                    file=file or "",
                    position=int(position or 0),
                    gtid_complete=gtid_complete or "",
                    problem=stopping_text(binlog.incidents),
                    incidents=binlog.incidents,
                )
            )
        replicas = [
            ReplicaFacts(
                server_id=replica.server_id,
                host=replica.host or replica.peer,
                user=replica.user,
                binlog=replica.binlog,
                connection_id=thread_id,
            )
            for thread_id, replica in self._replicas.items()
            if replica.binlog in names
        ]
        return snapshot(facts, history, replicas, grants)

    async def _chosen(
        self, session: HandlerSession, name: str | None, privilege: SourcePrivilege
    ) -> Sequence[str]:
        """One binlog by its name, or all, of those for which an account has a privilege."""
        if name is None:
            return await self._access.names(session, privilege)
        return (await self._access.find(session, name, privilege),)

    async def _wait_until_complete(
        self, session: HandlerSession, name: str, *, is_named: bool = True
    ) -> None:
        """Wait until the binlog holds all that the source has done by now.

        A position that was read after FLUSH TABLES WITH READ LOCK then overlaps nothing. Among all
        binlogs one that is stopped is shown as it stands.
        """
        position = await _source_position(session)
        if not await self._binlogs.wait_until_complete(
            name, position, timeout_s=COMPLETE_TIMEOUT_S
        ) and (is_named or self._binlogs.output(name).state.activity is not Activity.STOPPED):
            raise incomplete(self._binlogs.output(name), position)


def _replaced(flavor: Flavor) -> StatementError:
    """Return the error with which the older of two dumps of one replica ends."""
    if flavor is Flavor.MYSQL:
        return StatementError(
            "A replica with the same server_uuid/server_id as this replica has connected to the "
            "source",
            errno=FATAL_ERRNO,
        )
    return StatementError(
        "A slave with the same server_uuid/server_id is already connected", errno=_SAME_ID
    )


def _text(value: str) -> str:
    """A literal of SQL, whatever the sql_mode."""
    return f"_utf8mb4 0x{value.encode().hex()}" if value else "''"


def _only_binlog(names: Sequence[str]) -> str:
    """The binlog that a statement means that names none."""
    if len(names) == 1:
        return names[0]
    listed = ", ".join(f"'{name}'" for name in names)
    raise wrong(
        f"which binlog is not said; the binlogs are {listed}" if names else "there are no binlogs",
        hint="name a file: SHOW BINLOG EVENTS IN 'name.000001'",
    )


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


def _status_position(binlog: Binlog) -> int:
    """Return where a replica that has all begins: for a new binlog its very beginning (seed 000)."""
    published = binlog.published
    is_new = not published.closed and published.last.number == 1
    if is_new and read_head(published.last.path).size_bytes == published.end.position:
        return len(MAGIC)
    return published.end.position


async def _check_databases(session: HandlerSession, scope: Scope) -> None:
    """Table-scope binlogs must be created after their databases (seed 000)."""
    databases = {table.database for table in scope.log_tables}
    if not databases:
        return
    found = await session.query_source("SHOW DATABASES")
    there = {scope.as_listed(row[0] or "") for row in found.texts()}
    for database in sorted(databases - there):
        raise DefinitionError(
            f"Unknown database '{database}'",
            errno=_BAD_DATABASE,
            hint=f"CREATE DATABASE {quote(database)} first; the account must see it too",
        )


async def _links(session: HandlerSession, scope: Scope) -> SourceLinks:
    """Return the links by which the source's tables change others unlogged, as this account sees them."""
    if scope.is_unscoped:
        return NO_SOURCE_LINKS

    found = await source_links(_query(session))
    return replace(found, links=found.links.folded) if scope.ignores_case else found


def _query(session: HandlerSession) -> Query:
    """Asks the source in a client's session."""

    async def query(statement: str) -> Rows:
        return (await session.query_source(statement)).texts()

    return query


def _effective(begin: Position, name: str, unknown: UnknownNames, notes: Sequence[str]) -> OkAnswer:
    """The answer to a definition that holds."""
    told = [
        *(_diagnostic("Warning", each) for each in unknown.slips),
        *(_diagnostic("Note", each) for each in notes),
    ]
    for each in told:
        logger.warning("binlog %s: %s", name, shown(each.text), extra={"binlog": name})
    for text in unknown.missing:
        logger.info("binlog %s: %s", name, shown(text), extra={"binlog": name})
    said = (f"{each.level.lower()}: {each.text}" for each in told)
    info = "; ".join((f"effective after GTID {begin}", *said, *unknown.missing))
    return OkAnswer(info=info, diagnostics=tuple(told))


def _noted(error: StatementError) -> OkAnswer:
    """The answer to a statement that had nothing to do, and says by IF that this is no error."""
    note = Diagnostic("Note", error.errno, error.message)
    return OkAnswer(info=error.message, diagnostics=(note,))


def _diagnostic(level: str, text: str) -> Diagnostic:
    return Diagnostic(level, HINT_ERRNO, text)


async def _ignores_case(session: HandlerSession) -> bool:
    """True if the source takes names that differ in case alone for one."""
    found = await session.query_source("SELECT @@GLOBAL.lower_case_table_names LIMIT 1")
    return found.texts()[0][0] != "0"


async def _source_position(session: HandlerSession) -> GtidPosition | GtidSet:
    flavor = flavor_of(session.server_version)
    found = await session.query_source(f"SELECT @@GLOBAL.{_DONE[flavor]} LIMIT 1")
    return parse_position(found.texts()[0][0] or "", flavor.value)
