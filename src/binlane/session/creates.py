"""CREATE TABLE in all its forms, CREATE SEQUENCE among them.

Source: seed 004, R-log-create-select-statement-format and R-log-create-select-row-format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.catalog_changes import apply, preview
from binlane.session.context_events import context_events
from binlane.session.created_rows import log_created_rows, log_failed_rows
from binlane.session.decision import Decided, decide, give_notes
from binlane.session.failed_creates import (
    fail_create_select,
    is_logged_temporary,
    log_failed_replacement,
    log_refused_replacement,
    replaces_before_error,
)
from binlane.session.failures import fail_as_stated
from binlane.session.gtid_consistency import refuses_create_select, refuses_temporary
from binlane.session.null_ids import with_null_ids
from binlane.session.programs.host import Trace
from binlane.session.recorders import recorders_of
from binlane.session.report import LoggedEvent
from binlane.session.row_events import write_rows
from binlane.session.state import Command, SessionState, write_directly
from binlane.session.traces import trace_of
from binlane.session.transaction import Work
from binlane.session.work import work_of
from binlane.sql.effects import StatementKind
from binlane.sql.logging_mode import LoggingFormat
from binlane.sql.schema import Table
from binlane.sql.show_create import create_table_text
from binlane.sql.table_definitions import TableDefinition

_ENGINE_NAMES: Final = MappingProxyType(
    {"INNODB": "InnoDB", "MYISAM": "MyISAM", "ARIA": "Aria", "MRG_MYISAM": "MRG_MyISAM"}
)
KINDS: Final = frozenset(
    (
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.CREATE_TABLE_SELECT,
        StatementKind.CREATE_SEQUENCE,
    )
)


def execute_create(state: SessionState, command: Command) -> None:
    """Carry out a CREATE TABLE or CREATE SEQUENCE."""
    facts = command.facts
    is_temporary = facts.effects.is_temporary
    recorders = recorders_of(state, command, commits=not is_temporary)
    if recorders is None:
        return
    if is_temporary:
        if refuses_temporary(state, command):
            return
    else:
        state.implicit_commit()
    name = facts.effects.writes[0]
    exists = _exists(state, command, name)
    created = preview(state, command, name)
    if refuses_create_select(state, command, created):
        return
    if exists and facts.effects.if_exists and command.succeeds:
        _log_existing(state, command, recorders, created)
    elif facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        _create_select(state, command, created, exists=exists)
    elif not command.succeeds:
        fail_as_stated(state, command)
        if exists and created is not None and replaces_before_error(state, command):
            log_failed_replacement(state, command, created, recorders)
    else:
        _create(state, command, created, recorders)


def _create(
    state: SessionState, command: Command, created: Table | None, recorders: frozenset[str]
) -> None:
    """Make a table without a query."""
    apply(state, command)
    if command.facts.effects.is_temporary:
        _log_temporary(state, command, created, recorders)
    else:
        _log_base(state, command, created, recorders)


def _exists(state: SessionState, command: Command, name: TableName) -> bool:
    """Whether the statement meets a table of its kind, or a view that IF NOT EXISTS finds."""
    effects = command.facts.effects
    objects = state.objects
    existing = objects.table(name) if effects.is_temporary else objects.base_table(name)
    if existing is not None and existing.is_temporary == effects.is_temporary:
        return True
    return not effects.is_temporary and effects.if_exists and objects.view(name) is not None


def _log_existing(
    state: SessionState, command: Command, recorders: frozenset[str], created: Table | None
) -> None:
    """CREATE TABLE IF NOT EXISTS of one that exists: MySQL logs it, unless it has a query."""
    if command.facts.effects.is_temporary and created is not None:
        if command.facts.effects.kind is not StatementKind.CREATE_TABLE_SELECT:
            _log_temporary(state, command, created, recorders, exists=True)
        return
    if command.facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        return
    if state.server.is_mariadb and not state.has_locked_tables:
        return
    write_directly(state, [log_events.query(command.text, command.database)], recorders)


def _log_base(
    state: SessionState, command: Command, created: Table | None, recorders: frozenset[str]
) -> None:
    text = command.text
    suffix = _suffix(state, created)
    source = _like_source(state, command)
    for name, binlog in state.each_logging().items():
        if name not in recorders:
            continue
        own = text
        if (
            source is not None
            and source.is_temporary
            and created is not None
            and state.is_row_now(name)
        ):
            own = _definition_text(state, command, _with_engine(created))
        binlog.write_directly([log_events.query(own + suffix, command.database)])
        state.run.log(name, LoggingFormat.STATEMENT)


def _like_source(state: SessionState, command: Command) -> Table | None:
    effects = command.facts.effects
    if effects.kind is not StatementKind.CREATE_TABLE_LIKE or not effects.reads:
        return None
    return state.objects.table(effects.reads[0])


def _with_engine(table: Table) -> Table:
    """A copy of another table's definition always says its engine."""
    if "ENGINE" in dict(table.options):
        return table
    name = _ENGINE_NAMES.get(table.engine, table.engine)
    return replace(table, options=(("ENGINE", name), *table.options))


def _definition_text(
    state: SessionState, command: Command, created: Table, *, is_transaction: bool = False
) -> str:
    text = create_table_text(
        created,
        flavor=Flavor(state.server.flavor),
        is_or_replace=command.facts.is_or_replace,
        if_not_exists=command.facts.effects.if_exists,
        is_transaction=is_transaction,
    )
    if created.name.database == command.database:
        return text
    return text.replace(quote(created.name.table), str(created.name), 1)


def _suffix(state: SessionState, created: Table | None) -> str:
    """What MySQL adds to DDL that is committed together with its log."""
    if not state.server.has_atomic_ddl or created is None or created.is_temporary:
        return ""
    return log_events.XID_SUFFIX if created.engine.upper() == "INNODB" else ""


def _log_temporary(
    state: SessionState,
    command: Command,
    created: Table | None,
    recorders: frozenset[str],
    *,
    exists: bool = False,
) -> None:
    """CREATE TEMPORARY TABLE without a query."""
    work = Work(changed_temporary_tables=True)
    if created is not None and not exists:
        state.made_temporary(created.name)
    # MySQL looks at the engine of a table that it makes; of one that is there it knows none.
    has_engine = state.server.is_mariadb or not exists
    is_transactional = (
        has_engine and created is not None and traits(created, state.server).has_rollback
    )
    counts = dict.fromkeys(recorders, is_transactional)
    logged = _log_temporary_in(state, command, created, counts, work, {})
    if state.safety is not None and created is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(work, succeeds=True)


def _log_temporary_in(
    state: SessionState,
    command: Command,
    created: Table | None,
    recorders: Mapping[str, bool],
    work: Work,
    extra: dict[str, list[LoggedEvent]],
) -> frozenset[str]:
    """Log a temporary table's creation; `recorders` say if they count it as transactional."""
    logged = set()
    for name, binlog in state.binlogs.items():
        if state.is_in_transaction:
            binlog.keeps_transaction |= state.server.is_mariadb
        if not state.is_logging or name not in recorders or not is_logged_temporary(state, name):
            continue
        events = [*extra.get(name, ()), log_events.query(command.text, command.database)]
        if state.is_in_transaction:
            frame = state.frame(name, work)
            binlog.write_statement(events, frame, is_transactional=recorders[name])
        else:
            binlog.write_directly(events)
        state.run.log(name, LoggingFormat.STATEMENT)
        logged.add(name)
        if created is not None:
            binlog.held_temporary.add(created.name)
    return frozenset(logged)


def _create_select(
    state: SessionState, command: Command, created: Table | None, *, exists: bool
) -> None:
    decided = decide(state, command, created)
    if decided is None:
        log_refused_replacement(state, command, created)
        return
    if created is None:
        # Its definition cannot be told; what is logged of it neither.
        created = Table(
            name=command.facts.effects.writes[0],
            definition=TableDefinition(columns=()),
            engine=command.facts.engine or "INNODB",
            is_temporary=command.facts.effects.is_temporary,
        )
    trace = with_null_ids(state, command, decided.resolved, trace_of(state, command, decided))
    if not command.succeeds:
        log_failed_rows(state, decided, trace)
        fail_create_select(state, command, decided, created, exists=exists)
        return
    apply(state, command)
    if created.is_temporary:
        _select_into_temporary(state, command, decided, created, trace)
        return
    logged = set()
    for name, binlog in state.each_logging().items():
        if name not in decided.verdicts or decided.is_filtered(name):
            continue
        logging_format = decided.verdicts[name].logging_format
        if logging_format is LoggingFormat.ROW:
            text = _definition_text(
                state,
                command,
                created,
                is_transaction=state.server.fills_as_it_creates
                and traits(created, state.server).has_two_phases,
            )
            definition = log_events.query(text, command.database)
            log_created_rows(state, binlog, definition, decided.resolved, created, trace)
            state.run.log(name, LoggingFormat.ROW)
            if state.objects.temporary_tables():
                state.row_sticky.add(name)
        else:
            events = [
                *context_events(state, command, decided.resolved, trace, created=created),
                log_events.query(command.text + _suffix(state, created), command.database),
            ]
            binlog.write_directly(events)
            state.run.log(name, LoggingFormat.STATEMENT)
        logged.add(name)
    give_notes(state, decided, frozenset(logged))
    state.reset_isolation()


def _select_into_temporary(
    state: SessionState,
    command: Command,
    decided: Decided,
    created: Table,
    trace: Trace,
) -> None:
    work = work_of(state.server, decided.resolved, trace.runs)
    work.changed_temporary_tables = True
    recorders = {
        name: verdict.is_mixed_unsafe or traits(created, state.server).has_rollback
        for name, verdict in decided.verdicts.items()
        if verdict.logging_format is LoggingFormat.STATEMENT
    }
    # MariaDB notes under STATEMENT what it leaves out because it is in row format for a time.
    forced = frozenset(decided.verdicts) & state.row_sticky
    context = context_events(state, command, decided.resolved, trace, created=created)
    extra = dict.fromkeys(recorders, context)
    for name in decided.verdicts:
        if name in recorders:
            continue
        if state.server.is_mariadb:
            state.row_sticky.add(name)
        frame = state.frame(name, work, LoggingFormat.ROW)
        if write_rows(state, state.binlogs[name], decided.resolved, trace, frame):
            state.run.log(name, LoggingFormat.ROW)
    state.made_temporary(created.name)
    logged = _log_temporary_in(state, command, created, recorders, work, extra)
    give_notes(state, decided, logged | forced)
    if state.safety is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(work, succeeds=True, formats=decided.formats)
