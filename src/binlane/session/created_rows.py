"""CREATE TABLE … SELECT in row format: the definition and the rows are one transaction.

Functions of the query may write to other tables: their rows are logged with it, in MariaDB those
of tables without transactions before the definition. MySQL does not allow it.

Source: seed 004, R-log-create-select-row-format; MariaDB 10.11 sql/sql_insert.cc `select_create`.
"""

from __future__ import annotations

from binlane.names import TableName
from binlane.policy.access import ResolvedStatement
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.binlog import Binlog, Frame
from binlane.session.decision import Decided
from binlane.session.programs.host import Trace
from binlane.session.report import LoggedEvent
from binlane.session.row_events import write_rows
from binlane.session.state import SessionState
from binlane.session.transaction import Work
from binlane.session.work import note_tries, work_of
from binlane.sql.logging_mode import LoggingFormat
from binlane.sql.schema import Table


def log_created_rows(
    state: SessionState,
    binlog: Binlog,
    definition: LoggedEvent,
    resolved: ResolvedStatement,
    created: Table,
    trace: Trace,
) -> None:
    """Log a table's definition with its rows.

    Args:
        state: The session.
        binlog: That logs it.
        definition: The event of the definition.
        resolved: The statement's tables.
        created: The new one.
        trace: What the statement does to rows.
    """
    server = state.server
    work = work_of(server, resolved, trace.runs)
    if not server.is_mariadb:
        note_tries(server, resolved, work)
    frame = _frame(state, binlog, work)
    binlog.start(frame)
    is_atomic = server.fills_as_it_creates and traits(created, server).has_two_phases
    if server.is_mariadb or is_atomic:
        events = log_events.with_options([definition], binlog.options)
        binlog.transaction_cache.events.extend(events)
    else:
        binlog.write_directly([definition])
    write_rows(state, binlog, resolved, trace, frame, definition=_with_definition(state, resolved))
    binlog.end_statement(frame)


def log_failed_rows(state: SessionState, decided: Decided, trace: Trace) -> None:
    """Log what functions of a query changed for good before it failed."""
    work = work_of(state.server, decided.resolved, trace.runs)
    for name, logging_format in decided.formats.items():
        binlog = state.binlogs[name]
        if logging_format is not LoggingFormat.ROW:
            continue
        frame = _frame(state, binlog, work)
        resolved = decided.resolved
        names = _with_definition(state, resolved)
        if write_rows(state, binlog, resolved, trace, frame, definition=names):
            binlog.transaction_cache.truncate(binlog.transaction_cache.before_statement or 0)
            binlog.end_statement(frame)


def _with_definition(state: SessionState, resolved: ResolvedStatement) -> frozenset[TableName]:
    """The tables that the statement itself names, in MariaDB."""
    if not state.server.is_mariadb:
        return frozenset()
    return frozenset(access.name for access in resolved.accesses if not access.is_prelocked)


def _frame(state: SessionState, binlog: Binlog, work: Work) -> Frame:
    """It is a transaction by itself, whatever autocommit says."""
    frame = state.frame(binlog.name, work, LoggingFormat.ROW)
    return frame._replace(is_in_transaction=False)
