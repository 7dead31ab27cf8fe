"""The process that reads rows for one binlog: takes works from a pipe until that ends.

It has the least priority that it can give itself: clients and replicas come first.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from binlane.binlogs.routing.routing_memory import StoredObject, StoredObjectKind
from binlane.binlogs.seeds.reconciliation import SeedTroubleError, reconcile
from binlane.binlogs.seeds.spool import SeedSpool
from binlane.binlogs.seeds.spool_reading import ReadingProgress, read_tables
from binlane.client.rows.settled_places import set_up
from binlane.client.session import ServerSession
from binlane.errors import BinlaneError, PeerError, StatementError, UnsupportedError
from binlane.live.fills.reading_work import (
    GivingWork,
    ReadingWork,
    RowsEnd,
    RowsRead,
    RowsRefused,
    RowsTold,
    TableDefinitions,
)
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.table_map_making import has_lost_members
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import is_beside_tables, logged_statement
from binlane.statements.sql.statement_kinds import VIEW_KINDS

SYSTEM_DATABASES: Final = frozenset(
    ("mysql", "sys", "information_schema", "performance_schema", "ndbinfo")
)
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
    " WHERE TABLE_TYPE NOT LIKE '%VIEW' AND TABLE_TYPE NOT LIKE '%TEMPORARY'"
    " ORDER BY TABLE_SCHEMA, TABLE_NAME"
)
_OBJECTS: Final = (
    (
        StoredObjectKind.VIEW,
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW'",
    ),
    (
        StoredObjectKind.SEQUENCE,
        (
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
            " WHERE TABLE_TYPE = 'SEQUENCE'"
        ),
    ),
    (
        StoredObjectKind.TRIGGER,
        "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS",
    ),
    (
        StoredObjectKind.FUNCTION,
        (
            "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES"
            " WHERE ROUTINE_TYPE IN ('FUNCTION', 'PROCEDURE', 'PACKAGE', 'PACKAGE BODY')"
        ),
    ),
    (StoredObjectKind.EVENT, "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS"),
)
_SPOOL: Final = "rows"
_OTHERS: Final = "others.json"
_OWN: Final = (
    "AND GRANTEE = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@',"
    " QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
)
_MAY_READ_ALL: Final = (
    "SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'SELECT'"
)
_MAY_READ: Final = (
    "SELECT TABLE_SCHEMA FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'SELECT'"
)
_ACCESS_DENIED: Final = 1142
_ESTIMATES: Final = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES"
_SEQUENCE: Final = re.compile(r"\)[^)]*\bSEQUENCE=1\b[^)]*\Z")
_NICE: Final = 10
_CHUNK_BYTES: Final = 1 << 20


def main() -> None:
    """Work until nobody gives any; `sys.argv[1]` is the number of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    serve(Connection(int(sys.argv[1])))


def serve(connection: Connection) -> None:
    """Do the works that come through a pipe, until it is closed."""
    process = _RowProcess(connection)
    while True:
        try:
            work = connection.recv()
        except (EOFError, OSError):
            return
        try:
            process.do(work)
        except (BrokenPipeError, ConnectionResetError):
            return  # whoever gave the work is gone
        except Exception as error:  # noqa: BLE001  # told to whoever gave the work
            process.tell(_refused(error))


class _RowProcess:
    """Reads rows, and gives them; its state is on disk.

    Args:
        connection: Takes what is to be told.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tell(self, told: RowsTold) -> None:
        """Tell whoever gave the work."""
        self._connection.send(told)

    def do(self, work: ReadingWork | GivingWork) -> None:
        """Do one work."""
        if isinstance(work, ReadingWork):
            self._read(work)
        else:
            self._give(work)

    def _read(self, work: ReadingWork) -> None:
        with ServerSession(work.url, work.password) as session:
            set_up(session)
            spool = _spool(work, session)
            for told in _expected(session, spool):
                self.tell(told)
            read_tables(spool, session, limits=work.limits, observe=self.tell)
            refusals = dict(spool.refusals) | _inexact(spool)
            if refusals:
                # One that was dropped meanwhile is not asked for any more.
                there = set(_tables(session, work.scope))
                refusals = {name: why for name, why in refusals.items() if name in there}
        self.tell(RowsRead(high=spool.high, refusals=refusals))

    def _give(self, work: GivingWork) -> None:
        spool = SeedSpool.open(work.folder / _SPOOL)
        known = set(map(work.scope.key, spool.definitions))
        if new := _new_tables(work) - known:
            message = f"{min(new).plain} has come meanwhile"
            self.tell(RowsRefused(message=message, starts_over=True))
            return
        try:
            reconciled = reconcile(spool, _groups(work), format_=work.format)
        except SeedTroubleError as error:
            for table in error.tables:
                spool.start_over(table, error.message)
            self.tell(RowsRefused(message=error.message, hint=error.hint, tables=error.tables))
            return
        assert reconciled is not None, "nobody stops it"
        with ServerSession(work.url, work.password) as session:
            others = _kept_objects(work.folder) | _objects(session)
        self.tell(
            TableDefinitions(databases=spool.databases, tables=spool.definitions, others=others)
        )
        for transaction in reconciled.transactions():
            self.tell(transaction)
        reconciled.close()
        self.tell(RowsEnd())


def _spool(work: ReadingWork, session: ServerSession) -> SeedSpool:
    folder = work.folder / _SPOOL
    if folder.exists():
        spool = SeedSpool.open(folder)
        spool.try_refused_again()
        return spool
    tables = _tables(session, work.scope)
    work.folder.mkdir(parents=True, exist_ok=True)
    _keep_objects(work.folder, _objects(session))
    return SeedSpool.create(folder, tables)


def _expected(session: ServerSession, spool: SeedSpool) -> Iterator[ReadingProgress]:
    """Give the rows of each table that were read before, with the server's estimates."""
    estimates = {
        TableName(database or "", table or ""): int(rows or 0)
        for database, table, rows in session.ask(_ESTIMATES)
    }
    for state in spool.states:
        expected = max(estimates.get(state.name, 0), state.expected, state.rows)
        yield ReadingProgress(table=state.name, rows=state.rows, rows_expected=expected)


def _objects(session: ServerSession) -> frozenset[StoredObject]:
    """The objects of a server that are no tables, as far as the account sees them."""
    found = set()
    for kind, question in _OBJECTS:
        for database, name, *more in session.ask(question):
            word = StoredObjectKind(more[0].lower()) if more and more[0] else kind
            found.add(StoredObject(word, TableName(database or "", name or "")))
    return frozenset(found)


def _keep_objects(folder: Path, objects: frozenset[StoredObject]) -> None:
    rows = sorted((each.kind.value, *each.name) for each in objects)
    path = folder / _OTHERS
    path.with_suffix(".new").write_text(json.dumps(rows), encoding="utf-8")
    path.with_suffix(".new").replace(path)


def _kept_objects(folder: Path) -> frozenset[StoredObject]:
    rows = json.loads((folder / _OTHERS).read_text(encoding="utf-8"))
    return frozenset(
        StoredObject(StoredObjectKind(kind), TableName(database, name))
        for kind, database, name in rows
    )


def _tables(session: ServerSession, scope: Scope) -> list[TableName]:
    """The tables of a scope that a server has, those that cannot be had exactly among them.

    Raises:
        StatementError: If the account may not see if these are all.
    """
    names = [
        name
        for database, table in session.ask(_TABLES)
        if scope.includes(name := TableName(database or "", table or ""))
        and name.database.lower() not in SYSTEM_DATABASES
    ]
    if not session.ask(f"{_MAY_READ_ALL} {_OWN}"):
        may_read = {row[0] or "" for row in session.ask(f"{_MAY_READ} {_OWN}")}
        known = set(map(scope.key, names))
        missing = [str(name) for name in scope.log_tables if scope.key(name) not in known]
        asked = [quote(name) for name in scope.log_databases if name not in may_read]
        if scope.log_all:
            asked = ["*"]
        for what in (*sorted(missing), *(f"{name}.*" for name in sorted(asked))):
            raise StatementError(
                f"{what} cannot be seen: the account may not read it, or it is not there",
                errno=_ACCESS_DENIED,
                hint=f"on the source, GRANT SELECT ON {what} TO {_account(session)}",
            )
    return names


def _inexact(spool: SeedSpool) -> dict[TableName, str]:
    """Tables that were read, and whose SHOW CREATE TABLE would not make them alike; with the reason."""
    sequences = {
        state.name: "it is a sequence"
        for state in spool.states
        if state.table is not None and _SEQUENCE.search(state.table.source.create)
    }
    return sequences | {
        state.name: f"column {column.name} has members that the server prints as ?: its definition "
        "cannot be had exactly"
        for state in spool.states
        if state.table is not None
        for column in state.table.columns
        if has_lost_members(column)
    }


def _account(session: ServerSession) -> str:
    user, _, host = (session.ask("SELECT CURRENT_USER()")[0][0] or "").rpartition("@")
    return f"'{user}'@'{host}'"


def _groups(work: GivingWork) -> Iterator[EventGroup]:
    """The event groups of the staging binlog, up to the place of the rows."""
    for name, size_bytes in work.files.items():
        path = work.staging / name
        yield from group_events(walk(_bytes_of(path, size_bytes), file=name), file=name)


def _bytes_of(path: Path, size_bytes: int) -> Iterator[bytes]:
    with path.open("rb") as stream:
        left = size_bytes
        while left and (data := stream.read(min(left, _CHUNK_BYTES))):
            left -= len(data)
            yield data


def _new_tables(work: GivingWork) -> set[TableName]:
    """The tables of the scope that were made meanwhile, or got their names, and are still there."""
    new: set[TableName] = set()
    for group in _groups(work):
        for event in group.events:
            if isinstance(event.body, QueryEvent) and not is_beside_tables(event.body.query):
                effects = logged_statement(event.body).effects()
                if not effects.is_temporary:
                    _follow(new, effects, work.scope)
    return {name for name in new if work.scope.includes(name)}


def _follow(new: set[TableName], effects: StatementEffects, scope: Scope) -> None:
    """Have the tables that are new behind a statement."""
    dropped = effects.dropped_databases
    new.difference_update(map(scope.key, effects.drops))
    new.difference_update(
        [name for name in new if any(scope.is_same(name.database, one) for one in dropped)]
    )
    renames = tuple(effects.net_renames)
    new.difference_update(scope.key(old) for old, _ in renames)
    new.update(scope.key(name) for _, name in renames)
    if effects.made is not None and effects.kind not in VIEW_KINDS:
        new.add(scope.key(effects.made))


def _refused(error: Exception) -> RowsRefused:
    if not isinstance(error, BinlaneError | OSError):
        return RowsRefused(message=f"internal error: {error!r}")
    hint = getattr(error, "hint", "")
    is_final = isinstance(error, UnsupportedError)
    text = getattr(error, "message", "") or str(error)
    if isinstance(error, PeerError):
        text = str(error)
    return RowsRefused(message=text, hint=hint, is_final=is_final)


if __name__ == "__main__":
    main()
