"""CREATE TABLE … SELECT: in row format the definition and the rows are one transaction.

Functions of the query may write to other tables: their rows are logged with it, in MariaDB those
of tables without transactions before the definition. MySQL does not allow it.

Source: seed 004, R-log-create-select-statement-format and R-log-create-select-row-format; MariaDB
10.11 sql/sql_insert.cc `select_create`, sql/log.cc `log_drop_table`.
"""

from __future__ import annotations

from typing import Final

from binlane.names import TableName
from binlane.policy import refusals
from binlane.policy.access import ResolvedStatement
from binlane.policy.engines import traits
from binlane.programs.trace import Trace
from binlane.session import log_events
from binlane.session.binlog import Binlog, WriteContext
from binlane.session.context_events import context_events
from binlane.session.creates import (
    definition_text,
    drop_old,
    is_atomic,
    is_gtid_enforced,
    log_temporary,
    new_table,
    replaces,
    replaces_before_error,
)
from binlane.session.ddl import apply
from binlane.session.decision import Decided, decide, give_notes
from binlane.session.log_events import Body
from binlane.session.row_events import logged_rows
from binlane.session.state import SessionState, SessionStatement, write_directly
from binlane.session.traces import trace_of, with_null_ids
from binlane.session.transaction import EngineChanges, engine_changes_of, note_tries
from binlane.sql.facts import StatementKind
from binlane.sql.schema import Table
from binlane.sql.servers import LoggingFormat
from binlane.sql.table_definitions import TableDefinition

_DEFINITION_ERRORS: Final = frozenset(
    (1005, 1060, 1061, 1063, 1067, 1068, 1070, 1071, 1072, 1073, 1074, 1075, 1113, 1166, 1506)
)
"""Errors of the new table's definition, before its query runs."""


def execute_create_select(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a CREATE TABLE … SELECT."""
    new = new_table(state, statement)
    if new is None or _is_refused(state, statement, new.table):
        return
    if new.exists and statement.facts.effects.if_exists and statement.succeeds:
        return
    _create_select(state, statement, new.table, exists=new.exists)


def _create_select(
    state: SessionState, statement: SessionStatement, created: Table | None, *, exists: bool
) -> None:
    decided = decide(state, statement, created)
    if decided is None:
        _log_refused_replacement(state, statement, created)
        return
    if created is None:
        # Its definition cannot be told; what is logged of it neither.
        created = Table(
            name=statement.facts.effects.writes[0],
            definition=TableDefinition(columns=()),
            engine=statement.facts.engine or "INNODB",
            is_temporary=statement.facts.effects.is_temporary,
        )
    trace = with_null_ids(state, statement, decided.resolved, trace_of(state, statement, decided))
    if not statement.succeeds:
        if state.server.is_mariadb:
            _log_failed_rows(state, decided, trace)
        _fail(state, statement, decided, created, exists=exists)
        return
    apply(state, statement)
    if created.is_temporary:
        _select_into_temporary(state, statement, decided, created, trace)
        return
    logged = set()
    for name, binlog in state.each_logging().items():
        if name not in decided.verdicts or decided.is_filtered(name):
            continue
        logging_format = decided.verdicts[name].logging_format
        if logging_format is LoggingFormat.ROW:
            text = definition_text(
                state,
                statement,
                created,
                is_transaction=state.server.fills_as_it_creates
                and traits(created, state.server).has_two_phases,
            )
            definition = state.query(text, statement.database)
            _log_created_rows(state, binlog, definition, decided.resolved, created, trace)
            state.execution.log(name, LoggingFormat.ROW)
            if state.objects.temporary_tables():
                state.temporary.row_binlogs.add(name)
        else:
            events = [
                *context_events(state, statement, decided.resolved, trace, created=created),
                state.query(
                    statement.text, statement.database, is_atomic=is_atomic(state, created)
                ),
            ]
            binlog.write_directly(events)
            state.execution.log(name, LoggingFormat.STATEMENT)
        logged.add(name)
    give_notes(state, decided, frozenset(logged))
    state.reset_isolation()


def _select_into_temporary(
    state: SessionState,
    statement: SessionStatement,
    decided: Decided,
    created: Table,
    trace: Trace,
) -> None:
    engine_changes = engine_changes_of(state.server, decided.resolved, trace.runs)
    engine_changes.changed_temporary_tables = True
    recorders = {
        name: verdict.is_mixed_unsafe or traits(created, state.server).has_rollback
        for name, verdict in decided.verdicts.items()
        if verdict.logging_format is LoggingFormat.STATEMENT
    }
    # MariaDB notes under STATEMENT what it leaves out because it is in row format for a time.
    forced = frozenset(decided.verdicts) & state.temporary.row_binlogs
    before = context_events(state, statement, decided.resolved, trace, created=created)
    extra = dict.fromkeys(recorders, before)
    rows = logged_rows(state, decided.resolved, trace)
    for name in decided.verdicts:
        if name in recorders:
            continue
        if state.server.is_mariadb:
            state.temporary.row_binlogs.add(name)
        context = state.write_context(name, engine_changes, LoggingFormat.ROW)
        if rows is not None:
            rows.write(state.binlogs[name], context)
            state.execution.log(name, LoggingFormat.ROW)
    state.temporary.made(created.name)
    logged = log_temporary(state, statement, created, recorders, engine_changes, extra)
    give_notes(state, decided, logged | forced)
    if state.safety is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(engine_changes, succeeds=True, formats=decided.formats)


def _log_created_rows(
    state: SessionState,
    binlog: Binlog,
    definition: Body,
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
    engine_changes = engine_changes_of(server, resolved, trace.runs)
    if not server.is_mariadb:
        note_tries(server, resolved, engine_changes)
    context = _own_context(state, binlog, engine_changes)
    binlog.start(context)
    is_atomic = server.fills_as_it_creates and traits(created, server).has_two_phases
    if server.is_mariadb or is_atomic:
        binlog.transaction_cache.events.append(definition)
    else:
        binlog.write_directly([definition])
    rows = logged_rows(state, resolved, trace, definition=_with_definition(state, resolved))
    if rows is not None:
        rows.write(binlog, context)
    binlog.end_statement(context)


def _log_failed_rows(state: SessionState, decided: Decided, trace: Trace) -> None:
    """Log what functions of a query changed for good before it failed."""
    engine_changes = engine_changes_of(state.server, decided.resolved, trace.runs)
    for name, logging_format in decided.formats.items():
        binlog = state.binlogs[name]
        if logging_format is not LoggingFormat.ROW:
            continue
        context = _own_context(state, binlog, engine_changes)
        resolved = decided.resolved
        rows = logged_rows(state, resolved, trace, definition=_with_definition(state, resolved))
        if rows is not None:
            rows.write(binlog, context)
            binlog.transaction_cache.truncate(binlog.transaction_cache.before_statement or 0)
            binlog.end_statement(context)


def _with_definition(state: SessionState, resolved: ResolvedStatement) -> frozenset[TableName]:
    """The tables that the statement itself names, in MariaDB."""
    if not state.server.is_mariadb:
        return frozenset()
    return frozenset(access.name for access in resolved.accesses if not access.is_prelocked)


def _own_context(
    state: SessionState, binlog: Binlog, engine_changes: EngineChanges
) -> WriteContext:
    """It is a transaction by itself, whatever autocommit says."""
    context = state.write_context(binlog.name, engine_changes, LoggingFormat.ROW)
    return context._replace(is_in_transaction=False)


def _fail(
    state: SessionState,
    statement: SessionStatement,
    decided: Decided,
    created: Table,
    *,
    exists: bool,
) -> None:
    """A failed CREATE … SELECT leaves nothing, except that OR REPLACE dropped the old table."""
    state.fail_as_stated(statement)
    if not exists or not replaces_before_error(state, statement):
        return
    held = drop_old(state, statement, created)
    event = _drop_event(state, statement, created)
    is_run = statement.outcome.error not in _DEFINITION_ERRORS
    for name, binlog in state.each_logging().items():
        if name not in decided.verdicts or (created.is_temporary and name not in held):
            continue
        if decided.verdicts[name].logging_format is LoggingFormat.ROW:
            binlog.write_group([event], log_events.ROLLBACK)
            continue
        if is_run and not created.is_temporary and traits(created, state.server).has_two_phases:
            binlog.write_directly([state.query(statement.text, statement.database)])
        binlog.write_directly([event])


def _drop_event(state: SessionState, statement: SessionStatement, created: Table) -> Body:
    temporary = "TEMPORARY " if created.is_temporary else ""
    text = (
        f"DROP {temporary}TABLE IF EXISTS {state.quote(created.name)}"
        "/* Generated to handle failed CREATE OR REPLACE */"
    )
    return state.query(text, "" if created.is_temporary else statement.database)


def _log_refused_replacement(
    state: SessionState, statement: SessionStatement, created: Table | None
) -> None:
    """MariaDB decides when the old table is gone already, and logs that."""
    error = state.execution.error
    if (
        created is None
        or created.is_temporary
        or not replaces(state, statement)
        or error is None
        or not error.symbol.startswith("ER_BINLOG_")
    ):
        return
    state.objects.apply(f"DROP TABLE IF EXISTS {created.name}", database=statement.database)
    write_directly(state, [_drop_event(state, statement, created)])


def _is_refused(state: SessionState, statement: SessionStatement, created: Table | None) -> bool:
    """Refuse CREATE … SELECT of a table whose engine does not commit DDL with its rows."""
    effects = statement.facts.effects
    if (
        not is_gtid_enforced(state)
        or effects.kind is not StatementKind.CREATE_TABLE_SELECT
        or effects.is_temporary
        or created is None
        or (state.server.fills_as_it_creates and traits(created, state.server).has_two_phases)
    ):
        return False
    state.refuse(refusals.create_select_and_gtid())
    return True
