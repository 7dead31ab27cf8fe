"""Executes the statements on binlogs that arrive on the listening port, and serves dumps to replicas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from binlane.codec.packets.commands import BinlogDump
from binlane.dump.lookup import gtid_position_in
from binlane.dump.request import DumpRequest
from binlane.dump.transport import serve_dump
from binlane.errors import DefinitionError, StatementError
from binlane.gateway.handler import Answer, OkAnswer, RowsAnswer, Send, SessionContext
from binlane.gateway.privileges import Privilege
from binlane.names import quote
from binlane.positions import GtidPosition, mariadb_position
from binlane.scope import (
    AlterBinlog,
    BinlogStatement,
    CreateBinlog,
    DropBinlog,
    FlushBinaryLogs,
    PurgeBinaryLogs,
    ScopeList,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowReplicas,
    alter,
    create,
    duplicate_binlog,
    parse_binlog_statement,
)
from binlane.service.binlogs import Binlogs
from binlane.service.explain import explain_binlog, explained
from binlane.store.binlog import Binlog

COMPLETE_TIMEOUT_S: Final = 10.0
"""How long what describes a binlog waits for it to be complete up to the source."""

_NOT_SUPPORTED_YET: Final = 1235
_BAD_DATABASE: Final = 1049


@dataclass(frozen=True, slots=True)
class ConnectedReplica:
    """A replica whose dump is running."""

    server_id: int
    peer: str
    user: str
    binlog: str


class Statements:
    """Answers the gateway's sessions.

    Args:
        binlogs: What the statements are about.
        next_log_id: Gives a fresh id for a new binlog.
    """

    def __init__(self, binlogs: Binlogs, next_log_id: Callable[[], int]) -> None:
        self._binlogs = binlogs
        self._next_log_id = next_log_id
        self._replicas: dict[int, ConnectedReplica] = {}
        self._executors: Mapping[type, Callable[[SessionContext, Any], Awaitable[Answer]]] = (
            MappingProxyType(
                {
                    CreateBinlog: self._create,
                    DropBinlog: self._drop,
                    ShowBinlogs: self._show_binlogs,
                    ShowBinlogStatus: self._show_status,
                    ShowBinaryLogs: self._show_binary_logs,
                    FlushBinaryLogs: self._flush,
                    ShowReplicas: self._show_replicas,
                    AlterBinlog: self._alter,
                    PurgeBinaryLogs: self._purge,
                    ShowBinlogEvents: self._show_events,
                }
            )
        )

    async def answer(self, session: SessionContext, statement: str) -> Answer | None:
        """Execute a statement on binlogs; None for any other.

        Raises:
            StatementError: To be told to the client.
        """
        about = explained(statement)
        if about is not None:
            definitions = [self._binlogs.get(name).definition for name in self._binlogs.names]
            return await explain_binlog(session, about, definitions)
        parsed: BinlogStatement | None = parse_binlog_statement(statement)
        if parsed is None:
            return None
        return await self._executors[type(parsed)](session, parsed)

    async def gtid_position(self, session: SessionContext) -> GtidPosition | None:
        """The watermark of the only binlog there is; None where there are none or several."""
        names = self._binlogs.names
        if len(names) != 1:
            return None
        await self._wait_until_complete(session, names[0])
        return mariadb_position(self._binlogs.get(names[0]).position)

    async def gtid_position_at(
        self, session: SessionContext, file: str, position: int
    ) -> GtidPosition | None:
        """What is done before a position in a binlog file; None if that is no such position."""
        del session
        name = file.rpartition(".")[0]
        if name not in self._binlogs.names:
            return None
        found = next((f for f in self._binlogs.get(name).files() if f.name == file), None)
        if found is None:
            return None
        return await asyncio.to_thread(gtid_position_in, found.path, position)

    def dumps(self, binlog: str) -> int:
        """How many replicas and tools read a binlog now."""
        return sum(replica.binlog == binlog for replica in self._replicas.values())

    async def dump(self, session: SessionContext, command: BinlogDump, send: Send) -> bytes:
        """Serve a dump until it ends.

        Raises:
            StatementError: If the binlog cannot be told or what is asked cannot be served.
        """
        request = DumpRequest.of(command, session.variables)
        name = self._binlog_for(request)
        live = self._binlogs.live(name)
        with self._connected(session, request, name):
            return await serve_dump(request, live, send)

    def _binlog_for(self, request: DumpRequest) -> str:
        if request.connect_state is None and request.file:
            name = request.file.rpartition(".")[0]
            return self._binlogs.get(name).name
        names = self._binlogs.names
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
            hint=f"name a file instead: MASTER_USE_GTID=no, MASTER_LOG_FILE='{names[0]}.000001'",
        )

    @contextmanager
    def _connected(
        self, session: SessionContext, request: DumpRequest, name: str
    ) -> Iterator[None]:
        self._replicas[session.thread_id] = ConnectedReplica(
            request.server_id, session.peer, session.user, name
        )
        try:
            yield
        finally:
            del self._replicas[session.thread_id]

    async def _create(self, session: SessionContext, statement: CreateBinlog) -> Answer:
        await session.require(Privilege.DEFINE)
        if statement.name in self._binlogs.names:
            if statement.if_not_exists:
                return OkAnswer(info=f"binlog '{statement.name}' exists already")
            raise duplicate_binlog(statement.name)
        definition = create(statement, self._next_log_id())
        await self._check_databases(session, {t.database for t in definition.scope.log_tables})
        start = await _source_position(session)
        await self._binlogs.create(definition, start=start)
        return OkAnswer()

    async def _check_databases(self, session: SessionContext, databases: set[str]) -> None:
        """Table-scope binlogs must be created after their databases (seed 000)."""
        if not databases:
            return
        found = await session.query_source("SHOW DATABASES")
        there = {row[0] for row in found.texts()}
        for database in sorted(databases - there):
            raise DefinitionError(
                f"Unknown database '{database}'",
                errno=_BAD_DATABASE,
                hint=f"CREATE DATABASE {quote(database)} first; the account must see it too",
            )

    async def _drop(self, session: SessionContext, statement: DropBinlog) -> Answer:
        await session.require(Privilege.DEFINE)
        if statement.if_exists and statement.name not in self._binlogs.names:
            return OkAnswer(info=f"there is no binlog '{statement.name}'")
        await self._binlogs.drop(statement.name)
        return OkAnswer()

    async def _flush(self, session: SessionContext, statement: FlushBinaryLogs) -> Answer:
        await session.require(Privilege.DEFINE)
        for name in self._chosen(statement.name):
            await self._binlogs.rotate(name, timestamp=int(time.time()))
        return OkAnswer()

    async def _alter(self, session: SessionContext, statement: AlterBinlog) -> Answer:
        await session.require(Privilege.DEFINE)
        binlog = self._binlogs.get(statement.name)
        definition = alter(binlog.definition, statement)
        await self._check_databases(session, {t.database for t in definition.scope.log_tables})
        # What the source has done by now belongs to the scope as it was.
        await self._wait_until_complete(session, statement.name)
        await self._binlogs.alter(definition)
        return OkAnswer()

    async def _purge(self, session: SessionContext, statement: PurgeBinaryLogs) -> Answer:
        await session.require(Privilege.DEFINE)
        if statement.to_file is None:
            raise _not_supported("PURGE BINARY LOGS BEFORE", "use PURGE BINARY LOGS TO 'file'")
        name = statement.name or statement.to_file.rpartition(".")[0]
        await self._binlogs.purge(name, statement.to_file)
        return OkAnswer()

    async def _show_events(self, session: SessionContext, statement: ShowBinlogEvents) -> Answer:
        del statement
        await session.require(Privilege.READ)
        raise _not_supported("SHOW BINLOG EVENTS", "binlane cat prints a binlog file")

    async def _show_binlogs(self, session: SessionContext, statement: ShowBinlogs) -> Answer:
        del statement
        await session.require(Privilege.READ)
        columns = (
            *("Name", "File", "Position", "Gtid_complete"),
            *("Log", "Ignore", "Format", "State"),
        )
        return RowsAnswer(
            columns, [self._describe(self._binlogs.get(n)) for n in self._binlogs.names]
        )

    def _describe(self, binlog: Binlog) -> tuple[str | None, ...]:
        end, definition = binlog.end, binlog.definition
        return (
            binlog.name,
            end.file,
            str(end.position),
            str(binlog.position),
            "ALL" if definition.scope.log_all else definition.scope.render(ScopeList.LOG),
            definition.scope.render(ScopeList.IGNORE),
            definition.logging_mode.value,
            "OPEN",
        )

    async def _show_status(self, session: SessionContext, statement: ShowBinlogStatus) -> Answer:
        await session.require(Privilege.READ)
        rows = []
        for name in self._chosen(statement.name):
            await self._wait_until_complete(session, name)
            binlog = self._binlogs.get(name)
            scope = binlog.definition.scope
            lists = (scope.render(ScopeList.LOG), scope.render(ScopeList.IGNORE))
            rows.append((binlog.end.file, str(binlog.end.position), *lists))
        return RowsAnswer(("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"), rows)

    async def _show_binary_logs(self, session: SessionContext, statement: ShowBinaryLogs) -> Answer:
        await session.require(Privilege.READ)
        rows = []
        for name in self._chosen(statement.name):
            await self._wait_until_complete(session, name)
            files = self._binlogs.get(name).files()
            rows += [(file.name, str(file.size_bytes)) for file in files]
        return RowsAnswer(("Log_name", "File_size"), rows)

    async def _show_replicas(self, session: SessionContext, statement: ShowReplicas) -> Answer:
        del statement
        await session.require(Privilege.READ)
        rows = [
            (str(replica.server_id), replica.peer, replica.user, replica.binlog)
            for replica in self._replicas.values()
        ]
        return RowsAnswer(("Server_id", "Host", "User", "Binlog"), rows)

    def _chosen(self, name: str | None) -> Sequence[str]:
        """One binlog by its name, or all of them."""
        return self._binlogs.names if name is None else (self._binlogs.get(name).name,)

    async def _wait_until_complete(self, session: SessionContext, name: str) -> None:
        """Wait until the binlog holds all that the source has done by now.

        A position that was read after FLUSH TABLES WITH READ LOCK then overlaps nothing.
        """
        position = await _source_position(session)
        if not await self._binlogs.wait_until_complete(
            name, position, timeout_s=COMPLETE_TIMEOUT_S
        ):
            raise StatementError(
                f"binlog '{name}' is not complete up to {position} of the source after "
                f"{COMPLETE_TIMEOUT_S:.0f} s",
                errno=1205,
                hint="SHOW BINLOGS tells how far it is; binlane's own log tells why",
            )


async def _source_position(session: SessionContext) -> GtidPosition:
    found = await session.query_source("SELECT @@GLOBAL.gtid_binlog_pos")
    return GtidPosition.parse(found.texts()[0][0] or "")


def _not_supported(what: str, hint: str) -> StatementError:
    return StatementError(
        f"This version of binlane doesn't yet support '{what}'",
        errno=_NOT_SUPPORTED_YET,
        sqlstate="42000",
        hint=hint,
    )
