"""CREATE TABLE in all its forms, CREATE SEQUENCE among them.

Source: seed 004, R-log-create-select-statement-format and R-log-create-select-row-format.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.binlog import Binlog
from binlane.session.catalog_changes import apply, preview
from binlane.session.context_events import context_events
from binlane.session.decision import Decided, decide, give_notes
from binlane.session.failures import fail_as_stated
from binlane.session.programs.host import RowRun, Trace
from binlane.session.recorders import recorders_of
from binlane.session.report import LoggedEvent
from binlane.session.rows import changed_rows
from binlane.session.state import Command, SessionState, write_directly
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
    if not is_temporary:
        state.implicit_commit()
    name = facts.effects.writes[0]
    existing = state.objects.table(name) if is_temporary else state.objects.base_table(name)
    exists = existing is not None and existing.is_temporary == is_temporary
    created = preview(state, command, name)
    if facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        if exists and facts.effects.if_exists:
            _log_existing(state, command, recorders, created)
            return
        _create_select(state, command, created, exists=exists)
        return
    if not command.succeeds:
        fail_as_stated(state, command)
        return
    if not (exists and facts.effects.if_exists):
        apply(state, command)
    if is_temporary:
        _log_temporary(state, command, created, recorders)
    elif exists and facts.effects.if_exists:
        _log_existing(state, command, recorders, created)
    else:
        _log_base(state, command, created, recorders)


def _log_existing(
    state: SessionState, command: Command, recorders: frozenset[str], created: Table | None
) -> None:
    """CREATE TABLE IF NOT EXISTS of one that exists: MySQL logs it, unless it has a query."""
    if command.facts.effects.is_temporary and created is not None:
        if command.facts.effects.kind is not StatementKind.CREATE_TABLE_SELECT:
            _log_temporary(state, command, created, recorders)
        return
    if state.server.is_mariadb or command.facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        return
    _write(state, recorders, [log_events.query(command.text, command.database)])


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
    return create_table_text(
        created,
        flavor=Flavor(state.server.flavor),
        is_or_replace=command.facts.is_or_replace,
        if_not_exists=command.facts.effects.if_exists,
        is_transaction=is_transaction,
    )


def _suffix(state: SessionState, created: Table | None) -> str:
    """What MySQL adds to DDL that is committed together with its log."""
    if state.server.is_mariadb or created is None or created.is_temporary:
        return ""
    return log_events.XID_SUFFIX if created.engine.upper() == "INNODB" else ""


def _write(state: SessionState, recorders: frozenset[str], events: list[LoggedEvent]) -> None:
    for name, binlog in state.each_logging().items():
        if name in recorders:
            binlog.write_directly(events)
            state.run.log(name, LoggingFormat.STATEMENT)


def is_logged_temporary(state: SessionState, name: str) -> bool:
    """Whether the creation of a temporary table is logged in a binlog now.

    MySQL logs it under STATEMENT only, MariaDB also under MIXED, as long as no statement had to
    be logged as rows while others are open.
    """
    if state.server.is_mariadb:
        return not state.is_row_now(name)
    return state.mode(name).value == "STATEMENT"


def _log_temporary(
    state: SessionState, command: Command, created: Table | None, recorders: frozenset[str]
) -> None:
    """CREATE TEMPORARY TABLE without a query."""
    work = Work(changed_temporary_tables=True)
    logged = _log_temporary_in(state, command, created, recorders, work, {})
    if state.safety is not None and created is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(work, succeeds=True)


def _log_temporary_in(
    state: SessionState,
    command: Command,
    created: Table | None,
    recorders: frozenset[str],
    work: Work,
    extra: dict[str, list[LoggedEvent]],
) -> frozenset[str]:
    if created is not None:
        state.made_temporary(created.name)
    is_transactional = created is not None and traits(created, state.server).has_rollback
    logged = set()
    for name, binlog in state.binlogs.items():
        if state.is_in_transaction:
            binlog.keeps_transaction |= state.server.is_mariadb
        if not state.is_logging or name not in recorders or not is_logged_temporary(state, name):
            continue
        events = [*extra.get(name, ()), log_events.query(command.text, command.database)]
        if state.is_in_transaction:
            frame = state.frame(name, work)
            binlog.write_statement(events, frame, is_transactional=is_transactional)
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
        _drop_replaced(state, command, created)
        return
    if created is None:
        # Its definition cannot be told; what is logged of it neither.
        created = Table(
            name=command.facts.effects.writes[0],
            definition=TableDefinition(columns=()),
            engine=command.facts.engine or "INNODB",
            is_temporary=command.facts.effects.is_temporary,
        )
    rows = changed_rows(command.outcome)
    changes = rows != 0
    trace = Trace(
        runs=(RowRun(created.name, "insert"),) if changes else (), annotation=command.text
    )
    if not command.succeeds:
        _fail(state, command, decided, created, exists=exists)
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
            _select_as_rows(state, command, binlog, created, trace)
            state.run.log(name, LoggingFormat.ROW)
        else:
            events = [
                *context_events(command, decided.resolved, trace, created=created),
                log_events.query(command.text + _suffix(state, created), command.database),
            ]
            binlog.write_directly(events)
            state.run.log(name, LoggingFormat.STATEMENT)
        logged.add(name)
    give_notes(state, decided, frozenset(logged))
    state.reset_isolation()


def _select_as_rows(
    state: SessionState, command: Command, binlog: Binlog, created: Table, trace: Trace
) -> None:
    server = state.server
    is_two_phase = traits(created, server).has_two_phases
    text = _definition_text(state, command, created, is_transaction=is_two_phase)
    definition = log_events.query(text, command.database)
    rows: list[LoggedEvent] = []
    if trace.runs:
        if server.is_mariadb:
            rows.append(log_events.annotation(trace.annotation))
        rows.append(log_events.table_map(created.name))
        rows.append(log_events.ended(log_events.rows("insert", server)))
    if not server.is_mariadb and not is_two_phase:
        binlog.write_directly([definition])
        if rows:
            binlog.write_group(rows, log_events.COMMIT)
        return
    has_xid = is_two_phase and (bool(rows) or not server.is_mariadb)
    end = log_events.XID if has_xid else log_events.COMMIT
    binlog.write_group([definition, *rows], end)


def _select_into_temporary(
    state: SessionState,
    command: Command,
    decided: Decided,
    created: Table,
    trace: Trace,
) -> None:
    work = work_of(state.server, decided.resolved, ())
    work.changed_temporary_tables = True
    recorders = frozenset(
        name
        for name, verdict in decided.verdicts.items()
        if verdict.logging_format is LoggingFormat.STATEMENT
    )
    context = context_events(command, decided.resolved, trace, created=created)
    extra = dict.fromkeys(recorders, context)
    for name in decided.verdicts:
        if name not in recorders and state.server.is_mariadb:
            state.row_sticky.add(name)
    logged = _log_temporary_in(state, command, created, recorders, work, extra)
    give_notes(state, decided, logged)
    if state.safety is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(work, succeeds=True, formats=decided.formats)


def _fail(
    state: SessionState, command: Command, decided: Decided, created: Table, *, exists: bool
) -> None:
    """A failed CREATE … SELECT leaves nothing, except that OR REPLACE dropped the old table."""
    fail_as_stated(state, command)
    if not exists or created.is_temporary or not _replaces(state, command):
        return
    event = _drop_event(command, created)
    state.objects.apply(f"DROP TABLE {created.name}", database=command.database)
    for name, binlog in state.each_logging().items():
        if name not in decided.verdicts:
            continue
        if decided.verdicts[name].logging_format is LoggingFormat.ROW:
            binlog.write_group([event], log_events.ROLLBACK)
        else:
            binlog.write_directly([event])


def _replaces(state: SessionState, command: Command) -> bool:
    return state.server.is_mariadb and command.facts.is_or_replace


def _drop_event(command: Command, created: Table) -> LoggedEvent:
    text = f"DROP TABLE IF EXISTS {created.name}/* Generated to handle failed CREATE OR REPLACE */"
    return log_events.query(text, command.database)


def _drop_replaced(state: SessionState, command: Command, created: Table | None) -> None:
    """MariaDB decides when the old table is gone already, and logs that."""
    error = state.run.error
    if (
        created is None
        or created.is_temporary
        or not _replaces(state, command)
        or error is None
        or not error.symbol.startswith("ER_BINLOG_")
    ):
        return
    state.objects.apply(f"DROP TABLE IF EXISTS {created.name}", database=command.database)
    write_directly(state, [_drop_event(command, created)])
