"""Rows of a statement in a binlog's caches: annotation, table maps and rows events.

Source: MariaDB 10.11 sql/sql_class.cc `binlog_write_table_maps`, MySQL 9.7 sql/handler.cc
`write_locked_table_maps`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.policy.engines import NEITHER, traits
from binlane.policy.server import Server
from binlane.session import log_events
from binlane.session.binlog import Binlog, Frame
from binlane.session.programs.host import RowRun, Trace
from binlane.session.state import SessionState
from binlane.sql.schema import Table


def write_rows(
    state: SessionState,
    binlog: Binlog,
    resolved: ResolvedStatement,
    trace: Trace,
    frame: Frame,
    *,
    definition: frozenset[TableName] = frozenset(),
) -> bool:
    """Add a statement's rows to the caches; False if none of them is logged.

    Args:
        state: The session.
        binlog: Whose caches.
        resolved: The statement's tables.
        trace: What it does to them.
        frame: In which it is logged.
        definition: Tables whose rows MariaDB logs with the definition of a new table, as if they
            were transactional.
    """
    server = state.server
    mapped = [table for table in _mapped(state, resolved) if is_row_logged(table, server)]
    known = {table.name: table for table in mapped}
    runs = [run for run in trace.runs if run.table in known]
    if not runs:
        return False
    binlog.start(frame)
    is_annotated = server.is_mariadb and state.variables.is_on(
        "binlog_annotate_row_events", default=True
    )
    if is_annotated:
        _annotate(binlog, trace.annotation, mapped, server, definition)
    _write_runs(state, binlog, runs, mapped, definition)
    return True


def is_row_logged(table: Table, server: Server) -> bool:
    """Whether rows of a table can be in a log."""
    return not table.is_temporary and traits(table, server).capability != NEITHER


def _write_runs(
    state: SessionState,
    binlog: Binlog,
    runs: Sequence[RowRun],
    mapped: Sequence[Table],
    definition: frozenset[TableName],
) -> None:
    server = state.server
    caches = {}
    for table in mapped:
        cache = binlog.cache(is_transactional=_is_transactional(table, server, definition))
        caches[table.name] = cache
        cache.events.append(log_events.table_map(table.name))
    checks = state.variables.is_on("foreign_key_checks", default=True)
    checks_unique = state.variables.is_on("unique_checks", default=True)
    for run in runs:
        event = log_events.rows(
            run.kind,
            server,
            checks_foreign_keys=checks and not run.is_cascade,
            checks_unique=checks_unique,
        )
        caches[run.table].add_rows(run.table, run.kind, event)


def _is_transactional(table: Table, server: Server, definition: frozenset[TableName]) -> bool:
    return table.name in definition or traits(table, server).has_rollback


def _annotate(
    binlog: Binlog,
    text: str,
    mapped: Sequence[Table],
    server: Server,
    definition: frozenset[TableName],
) -> None:
    """Put the text before the rows, once: into the cache that is written first."""
    is_transactional = all(_is_transactional(table, server, definition) for table in mapped)
    cache = binlog.cache(is_transactional=is_transactional)
    cache.events.append(log_events.annotation(text))


def _mapped(state: SessionState, resolved: ResolvedStatement) -> Iterator[Table]:
    """The tables with a table map: all that are locked for writing.

    Under LOCK TABLES these are all that were locked so, in the order of that statement.
    """
    written = [access.table for access in resolved.accesses if access.is_locked_for_write]
    locked = [state.objects.table(name) for name in state.locked_tables]
    yield from (table for table in locked if table is not None)
    yield from (table for table in written if table.name not in state.locked_tables)
