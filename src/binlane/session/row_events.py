"""Rows of a statement in a binlog's caches: annotation, table maps and rows events.

Source: MariaDB 10.11 sql/sql_class.cc `binlog_write_table_maps`, MySQL 9.7 sql/handler.cc
`write_locked_table_maps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from binlane.names import TableName
from binlane.policy.engines import NEITHER, traits
from binlane.policy.resolution import ResolvedStatement
from binlane.policy.server import Server
from binlane.programs.trace import Trace
from binlane.session import log_events
from binlane.session.binlog import Binlog, WriteContext
from binlane.session.log_events import Body, ChangedRows
from binlane.session.state import SessionState
from binlane.sql.schema import Table


class LoggedRows(NamedTuple):
    """A statement's rows for the caches of binlogs; each with: it is for the transaction cache.

    Attributes:
        first: The annotation, if there is one, and the table maps.
        runs: The rows.
    """

    first: tuple[tuple[bool, Body], ...]
    runs: tuple[tuple[bool, ChangedRows], ...]

    def write(self, binlog: Binlog, context: WriteContext) -> None:
        """Add them to a binlog's caches."""
        binlog.start(context)
        for is_transactional, event in self.first:
            binlog.cache(is_transactional=is_transactional).events.append(event)
        for is_transactional, rows in self.runs:
            binlog.cache(is_transactional=is_transactional).add_rows(rows)


def logged_rows(
    state: SessionState,
    resolved: ResolvedStatement,
    trace: Trace,
    *,
    definition: frozenset[TableName] = frozenset(),
) -> LoggedRows | None:
    """The rows of a statement that are logged; None if there are none.

    Args:
        state: The session.
        resolved: The statement's tables.
        trace: What it does to them.
        definition: Tables whose rows MariaDB logs with the definition of a new table, as if they
            were transactional.
    """
    server, variables = state.server, state.variables
    mapped = [table for table in _mapped(state, resolved) if is_row_logged(table, server)]
    places = {table.name: _is_transactional(table, server, definition) for table in mapped}
    runs = [run for run in trace.runs if run.table in places]
    if not runs:
        return None
    first: list[tuple[bool, Body]] = []
    if server.is_mariadb and variables.is_on("binlog_annotate_row_events", default=True):
        # Once: in the cache that is written first.
        first.append((all(places.values()), log_events.annotation(trace.annotation)))
    first.extend((places[table.name], log_events.MappedTable(table.name)) for table in mapped)
    checks_foreign_keys = variables.is_on("foreign_key_checks", default=True)
    checks_unique = variables.is_on("unique_checks", default=True)
    is_partial = variables.text("binlog_row_value_options") == "PARTIAL_JSON"
    return LoggedRows(
        tuple(first),
        tuple(
            (
                places[run.table],
                log_events.rows(
                    run.kind,
                    run.table,
                    server,
                    checks_foreign_keys=checks_foreign_keys and not run.is_cascade,
                    checks_unique=checks_unique,
                    is_partial=is_partial,
                ),
            )
            for run in runs
        ),
    )


def is_row_logged(table: Table, server: Server) -> bool:
    """Whether rows of a table can be in a log."""
    return not table.is_temporary and traits(table, server).capability != NEITHER


def _is_transactional(table: Table, server: Server, definition: frozenset[TableName]) -> bool:
    return table.name in definition or traits(table, server).has_rollback


def _mapped(state: SessionState, resolved: ResolvedStatement) -> Iterator[Table]:
    """The tables with a table map: all that are locked for writing.

    Under LOCK TABLES these are all that were locked so, in the order of that statement.
    """
    written = [access.table for access in resolved.accesses if access.is_locked_for_write]
    names = state.locked_tables or ()
    locked = [state.objects.table(name) for name in names]
    yield from (table for table in locked if table is not None)
    yield from (table for table in written if table.name not in names)
