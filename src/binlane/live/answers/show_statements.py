"""SHOW statements about binlogs, and the rows of the system tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.files import BinlogFile, read_head
from binlane.binlogs.store.incidents import stopping_text
from binlane.errors import HINT_ERRNO, Diagnostic
from binlane.live.answers.access import (
    Access,
)
from binlane.live.answers.binlog_events import show_events, wrong
from binlane.live.answers.check_statements import CheckStatements
from binlane.live.answers.grant_statements import visible_grants
from binlane.live.answers.replica_dumps import ReplicaDumps
from binlane.live.answers.session_judges import Port
from binlane.live.answers.source_queries import (
    source_position,
    wait_until_complete,
)
from binlane.live.answers.system_tables.snapshot import BinlogFacts, ReplicaFacts, snapshot, utc
from binlane.live.answers.system_tables.system_columns import Snapshot
from binlane.live.gateway.answers import Answer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlog_changes import COMPLETE_TIMEOUT_S
from binlane.live.loop.binlogs import Binlogs
from binlane.log.codec.format import MAGIC, flavor_of
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.types import Flavor
from binlane.statements.scope.scope import ScopeList
from binlane.statements.scope.statements import (
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowIncidents,
    ShowReplicas,
)
from binlane.statements.sql.servers import LoggingMode

_SHOWN_ALONE: Final = frozenset({BinlogActivity.STOPPED})
_SHOWN_BESIDE_OTHERS: Final = _SHOWN_ALONE | {BinlogActivity.FILLING}
_DISABLED: Final = "all binlogs get rows: [gateway] enabled is false"


class ShowStatements:
    """Executes the statements.

    Args:
        binlogs: The binlogs that the statements are about.
        access: Says which binlogs a session may see.
        dumps: The dumps of connected replicas.
        port: Knows if statements are judged; None where none are.
        checks: Knows the outcomes of comparisons.
    """

    def __init__(
        self,
        binlogs: Binlogs,
        access: Access,
        dumps: ReplicaDumps,
        port: Port | None,
        checks: CheckStatements,
    ) -> None:
        self._checks = checks
        self._binlogs = binlogs
        self._access = access
        self._dumps = dumps
        self._port = port

    async def events(self, session: HandlerSession, statement: ShowBinlogEvents) -> Answer:
        """Execute SHOW BINLOG EVENTS."""
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
                name, await source_position(session), timeout_s=COMPLETE_TIMEOUT_S
            )
            file = self._file(name, file.name) or file
        return await show_events(file, statement)

    def _file(self, name: str, file: str) -> BinlogFile | None:
        if name not in self._binlogs.names:
            return None
        files = self._binlogs.get(name).published.files
        return next((each for each in files if each.name == file), None)

    async def binlogs(self, session: HandlerSession, statement: ShowBinlogs) -> Answer:
        """Execute SHOW BINLOGS."""
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
        told = [
            Diagnostic("Warning", HINT_ERRNO, f"binlog {name}: {text}")
            for name, text in stops
            if text
        ]
        told += [each for name in names for each in self._fill_told(name)]
        return RowsAnswer(columns, [self._describe(one, problem) for one in binlogs], tuple(told))

    def _fill_told(self, name: str) -> Iterator[Diagnostic]:
        """Why a binlog's tables' rows are not there, with what to do."""
        fill = self._binlogs.output(name).fill
        if fill is not None and fill.failure:
            ending = "; they are not read any more" if fill.is_over else ""
            text = f"binlog {name}: rows cannot be read: {fill.failure}{ending}"
            yield Diagnostic("Warning", HINT_ERRNO, text)
            if fill.hint:
                yield Diagnostic("Note", HINT_ERRNO, f"binlog {name}: {fill.hint}")

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

    async def incidents(self, session: HandlerSession, statement: ShowIncidents) -> Answer:
        """Execute SHOW BINLOG INCIDENTS."""
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
            for name in await self._access.chosen(session, statement.name, SourcePrivilege.MONITOR)
            for each in self._binlogs.get(name).incidents
        ]
        return RowsAnswer(columns, rows)

    async def status(self, session: HandlerSession, statement: ShowBinlogStatus) -> Answer:
        """Execute SHOW BINLOG STATUS."""
        rows = []
        names = await self._access.chosen(session, statement.name, SourcePrivilege.MONITOR)
        shown = _shown_behind(statement.name, names)
        for name in names:
            await wait_until_complete(self._binlogs, session, name, shown_behind=shown)
            binlog = self._binlogs.get(name)
            scope = binlog.definition.scope
            lists = (scope.render(ScopeList.LOG), scope.render(ScopeList.IGNORE))
            at = await asyncio.to_thread(_status_position, binlog)
            rows.append((binlog.end.file, str(at), *lists, str(binlog.position)))
        position = ColumnDefinition.integer("Position")
        columns = ("File", position, "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set")
        count = len(columns) if flavor_of(session.server_version) is Flavor.MYSQL else -1
        return RowsAnswer(columns[:count], [row[:count] for row in rows])

    async def binary_logs(self, session: HandlerSession, statement: ShowBinaryLogs) -> Answer:
        """Execute SHOW BINARY LOGS."""
        rows = []
        names = await self._access.chosen(session, statement.name, SourcePrivilege.MONITOR)
        shown = _shown_behind(statement.name, names)
        for name in names:
            await wait_until_complete(self._binlogs, session, name, shown_behind=shown)
            files = self._binlogs.get(name).files()
            rows += [(file.name, str(file.size_bytes), "No") for file in files]
        columns = ("Log_name", ColumnDefinition.integer("File_size"), "Encrypted")
        count = len(columns) if flavor_of(session.server_version) is Flavor.MYSQL else -1
        return RowsAnswer(columns[:count], [row[:count] for row in rows])

    async def replicas(self, session: HandlerSession, statement: ShowReplicas) -> Answer:
        """Execute SHOW REPLICAS."""
        del statement
        names = await self._access.names(session, SourcePrivilege.REPLICAS)
        found = await session.query_source("SELECT @@GLOBAL.server_id LIMIT 1")
        source_id = found.texts()[0][0]
        rows = [
            (
                *(replica.server_id, replica.host or replica.peer, replica.port, source_id),
                *(replica.uuid, replica.user, replica.binlog),
            )
            for replica in self._dumps.replicas.values()
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

    async def snapshot(self, session: HandlerSession) -> Snapshot:
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
            for thread_id, replica in self._dumps.replicas.items()
            if replica.binlog in names
        ]
        return snapshot(facts, history, replicas, grants, self._checks.facts(names))


def _only_binlog(names: Sequence[str]) -> str:
    """The binlog that a statement means that names none."""
    if len(names) == 1:
        return names[0]
    listed = ", ".join(f"'{name}'" for name in names)
    raise wrong(
        f"which binlog is not said; the binlogs are {listed}" if names else "there are no binlogs",
        hint="name a file: SHOW BINLOG EVENTS IN 'name.000001'",
    )


def _status_position(binlog: Binlog) -> int:
    """Return where a replica that has all begins: for a new binlog its very beginning (seed 000)."""
    published = binlog.published
    is_new = not published.closed and published.last.number == 1
    if is_new and read_head(published.last.path).size_bytes == published.end.position:
        return len(MAGIC)
    return published.end.position


def _shown_behind(named: str | None, names: Sequence[str]) -> frozenset[BinlogActivity]:
    """The states in which a binlog is shown as it stands: it keeps no other one from being shown."""
    if named is not None:
        return frozenset()
    return _SHOWN_BESIDE_OTHERS if len(names) > 1 else _SHOWN_ALONE
