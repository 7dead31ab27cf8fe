"""CREATE TABLE and CREATE SEQUENCE.

Where MariaDB's OR REPLACE fails, the old table may be gone already. In row format, CREATE TABLE …
SELECT logs the definition and the rows as one transaction. Functions of the query may write to other
tables: their rows are logged with it, in MariaDB those of tables without transactions before the
definition. MySQL does not allow it.

Source: MariaDB 10.11 sql/sql_table.cc `mysql_create_table_no_lock`; MySQL 9.7 sql/sql_class.cc
`THD::is_ddl_gtid_compatible`; seed 004, R-log-create-select-statement-format and
R-log-create-select-row-format; MariaDB 10.11 sql/sql_insert.cc `select_create`, sql/log.cc
`log_drop_table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.policy import refusals
from binlane.policy.engines import traits
from binlane.policy.resolution import ResolvedStatement
from binlane.programs.trace import Trace
from binlane.session import log_events
from binlane.session.context_events import context_events, random_seeds
from binlane.session.ddl import apply, preview
from binlane.session.decision import Decided, decide, give_notes, recorders_of
from binlane.session.log_events import Body
from binlane.session.rows import logged_rows, trace_of, with_null_ids
from binlane.session.state import SessionState, SessionStatement, write_directly
from binlane.session.transaction import (
    Binlog,
    EngineChanges,
    WriteContext,
    engine_changes_of,
    note_tries,
)
from binlane.sql.facts import TABLE_MAKING_KINDS, StatementKind
from binlane.sql.schema import Table
from binlane.sql.servers import Fact, LoggingFormat, LoggingMode
from binlane.sql.show_create import create_table_text
from binlane.sql.table_changes import has_invisible_key
from binlane.sql.table_definitions import TableDefinition
from binlane.sql.tree.definitions import Column, CreateTable

_ENGINE_NAMES: Final = MappingProxyType(
    {"INNODB": "InnoDB", "MYISAM": "MyISAM", "ARIA": "Aria", "MRG_MYISAM": "MRG_MyISAM"}
)
KINDS: Final = TABLE_MAKING_KINDS - {StatementKind.CREATE_TABLE_SELECT}
_EARLY_ERRORS: Final = frozenset((1044, 1049, 1064, 1142, 1146, 1347, 4161))
"""Errors found before a table is replaced: of syntax, privileges and what is missing."""
_EARLY_QUERY_ERRORS: Final = frozenset((1052, 1054, 1143, 1222, 1241, 1305, 1582))
"""Those of a query, which is looked at first."""


class NewTable(NamedTuple):
    """The table that a CREATE is about to make.

    Attributes:
        name: Its name.
        table: What it will be; None if its definition cannot be told.
        exists: There is one of its kind and name.
        recorders: Names of the binlogs that log its creation.
    """

    name: TableName
    table: Table | None
    exists: bool
    recorders: frozenset[str]


def execute_create(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a CREATE TABLE or CREATE SEQUENCE without a query."""
    new = new_table(state, statement)
    if new is None:
        return
    created, recorders = new.table, new.recorders
    if new.exists and statement.facts.effects.if_exists and statement.succeeds:
        _log_existing(state, statement, recorders, created)
    elif not statement.succeeds:
        state.fail_as_stated(statement)
        if new.exists and created is not None and replaces_before_error(state, statement):
            _log_failed_replacement(state, statement, created, recorders)
    else:
        apply(state, statement)
        if statement.facts.effects.is_temporary:
            _log_temporary(state, statement, created, recorders)
        else:
            _log_base(state, statement, created, recorders)


def new_table(state: SessionState, statement: SessionStatement) -> NewTable | None:
    """What a CREATE is about to make, with what is open committed; None if it is refused."""
    effects = statement.facts.effects
    # A sequence gets its first row in a transaction of its own.
    commits = not effects.is_temporary or effects.kind is StatementKind.CREATE_SEQUENCE
    recorders = recorders_of(state, statement, commits=commits)
    if recorders is None:
        return None
    if commits:
        state.implicit_commit()
    elif refuses_temporary(state, statement):
        return None
    name = effects.writes[0]
    exists = _exists(state, statement, name)
    return NewTable(name, preview(state, statement, name), exists, recorders)


def _exists(state: SessionState, statement: SessionStatement, name: TableName) -> bool:
    """Whether the statement meets a table of its kind, or a view that IF NOT EXISTS finds."""
    effects = statement.facts.effects
    objects = state.objects
    existing = objects.table(name) if effects.is_temporary else objects.base_table(name)
    if existing is not None and existing.is_temporary == effects.is_temporary:
        return True
    return not effects.is_temporary and effects.if_exists and objects.view(name) is not None


def _log_existing(
    state: SessionState,
    statement: SessionStatement,
    recorders: frozenset[str],
    created: Table | None,
) -> None:
    """CREATE TABLE IF NOT EXISTS of one that exists: MySQL logs it."""
    if statement.facts.effects.is_temporary and created is not None:
        _log_temporary(state, statement, created, recorders, exists=True)
        return
    if state.server.is_mariadb and state.locked_tables is None:
        return
    write_directly(state, [state.query(statement.text, statement.database)], recorders)


def _log_base(
    state: SessionState,
    statement: SessionStatement,
    created: Table | None,
    recorders: frozenset[str],
) -> None:
    text = _text(state, statement, created)
    is_committed = is_atomic(state, created)
    source = _like_source(state, statement)
    for name, binlog in state.each_logging().items():
        if name not in recorders:
            continue
        own = text
        if (
            source is not None
            and source.is_temporary
            and created is not None
            and _writes_copy_anew(state, name)
        ):
            own = definition_text(state, statement, _with_engine(created))
        seeds = random_seeds(state, name, statement, [created])
        query = state.query(own, statement.database, is_atomic=is_committed)
        binlog.write_directly([*seeds, query])
        state.execution.log(name, LoggingFormat.STATEMENT)


def _text(state: SessionState, statement: SessionStatement, created: Table | None) -> str:
    """The text of a CREATE TABLE as it is logged: one with a key that MySQL made is written anew."""
    node = statement.facts.tree
    if created is None or not isinstance(node, CreateTable) or not has_invisible_key(created):
        return statement.text
    if node.like is not None:  # its key is the other table's
        return statement.text
    if any(isinstance(each, Column) and each.key for each in node.elements):
        return statement.text
    return definition_text(state, statement, created)


def _like_source(state: SessionState, statement: SessionStatement) -> Table | None:
    effects = statement.facts.effects
    if effects.kind is not StatementKind.CREATE_TABLE_LIKE or not effects.reads:
        return None
    return state.objects.table(effects.reads[0])


def _writes_copy_anew(state: SessionState, name: str) -> bool:
    """Whether CREATE … LIKE a temporary table, of which a replica may not know, is written anew."""
    if state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
        return state.mode(name) is not LoggingMode.STATEMENT
    return state.is_row_now(name)


def _with_engine(table: Table) -> Table:
    """A copy of another table's definition always says its engine."""
    if "ENGINE" in dict(table.options):
        return table
    name = _ENGINE_NAMES.get(table.engine, table.engine)
    return replace(table, options=(("ENGINE", name), *table.options))


def definition_text(
    state: SessionState,
    statement: SessionStatement,
    created: Table,
    *,
    is_transaction: bool = False,
) -> str:
    """A new table's definition, written anew as SHOW CREATE TABLE prints it."""
    text = create_table_text(
        created,
        flavor=Flavor(state.server.flavor),
        is_or_replace=statement.facts.is_or_replace,
        if_not_exists=statement.facts.effects.if_exists,
        is_transaction=is_transaction,
        quoted=state.quote,
    )
    if created.name.database == statement.database:
        return text
    return text.replace(state.quote(created.name.table), state.quote(created.name), 1)


def is_atomic(state: SessionState, created: Table | None) -> bool:
    """Whether MySQL commits a table's creation together with its log."""
    return (
        state.server.has_atomic_ddl
        and created is not None
        and not created.is_temporary
        and created.engine.upper() == "INNODB"
    )


def _log_temporary(
    state: SessionState,
    statement: SessionStatement,
    created: Table | None,
    recorders: frozenset[str],
    *,
    exists: bool = False,
) -> None:
    """CREATE TEMPORARY TABLE without a query."""
    engine_changes = EngineChanges(changed_temporary_tables=True)
    if created is not None and not exists:
        state.temporary.made(created.name)
    # MySQL looks at the engine of a table that it makes; of one that is there it knows none.
    has_engine = state.server.is_mariadb or not exists
    is_transactional = (
        has_engine and created is not None and traits(created, state.server).has_rollback
    )
    counts = dict.fromkeys(recorders, is_transactional)
    logged = log_temporary(state, statement, created, counts, engine_changes, {})
    if state.safety is not None and created is not None:
        state.safety.temporary_created(created.name, logged)
    state.end_statement(engine_changes, succeeds=True)


def log_temporary(
    state: SessionState,
    statement: SessionStatement,
    created: Table | None,
    recorders: Mapping[str, bool],
    engine_changes: EngineChanges,
    extra: dict[str, list[Body]],
) -> frozenset[str]:
    """Log a temporary table's creation; `recorders` say if they count it as transactional."""
    logged = set()
    for name, binlog in state.binlogs.items():
        if state.is_in_transaction:
            binlog.keeps_transaction |= state.server.is_mariadb
        if (
            not state.is_logging
            or name not in recorders
            or not is_logged_temporary(state, name, statement)
        ):
            if created is not None and replaces(state, statement):
                binlog.held_temporary.discard(created.name)
            continue
        before = extra.get(name) or random_seeds(state, name, statement, [created])
        text = _text(state, statement, created)
        events = [*before, state.query(text, statement.database)]
        if state.is_in_transaction:
            context = state.write_context(name, engine_changes)
            binlog.write_statement(events, context, is_transactional=recorders[name])
        else:
            binlog.write_directly(events)
        state.execution.log(name, LoggingFormat.STATEMENT)
        logged.add(name)
        if created is not None:
            binlog.held_temporary.add(created.name)
    return frozenset(logged)


def is_logged_temporary(state: SessionState, name: str, statement: SessionStatement) -> bool:
    """Whether the creation of a temporary table is logged in a binlog now.

    MySQL logs it under STATEMENT only, MariaDB and MySQL before 8.0.4 also under MIXED, as long as
    no statement had to be logged as rows while others are open. CREATE SEQUENCE is a text always.
    """
    if statement.facts.effects.kind is StatementKind.CREATE_SEQUENCE:
        return True
    if not state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
        return not state.is_row_now(name)
    return state.mode(name).value == "STATEMENT"


def replaces_before_error(state: SessionState, statement: SessionStatement) -> bool:
    """Whether MariaDB has dropped the old table when the statement fails."""
    known = _EARLY_ERRORS
    if statement.facts.effects.kind is StatementKind.CREATE_TABLE_SELECT:
        known |= _EARLY_QUERY_ERRORS
    return replaces(state, statement) and statement.outcome.error not in known


def drop_old(state: SessionState, statement: SessionStatement, created: Table) -> frozenset[str]:
    """The table that is replaced is gone; the binlogs that know it, if it was temporary."""
    temporary = "TEMPORARY " if created.is_temporary else ""
    state.objects.apply(f"DROP {temporary}TABLE {created.name}", database=statement.database)
    if not created.is_temporary:
        return frozenset()
    state.temporary.gone(created.name)
    held = [name for name, one in state.binlogs.items() if created.name in one.held_temporary]
    for name in held:
        state.binlogs[name].held_temporary.discard(created.name)
    if state.safety is not None:
        state.safety.temporary_dropped(created.name)
    return frozenset(held)


def _log_failed_replacement(
    state: SessionState, statement: SessionStatement, created: Table, recorders: frozenset[str]
) -> None:
    """CREATE OR REPLACE without a query fails: its text is logged, as it dropped a table."""
    held = drop_old(state, statement, created)
    names = recorders
    if created.is_temporary:
        names = frozenset(
            name for name in recorders & held if is_logged_temporary(state, name, statement)
        )
    write_directly(state, [state.query(statement.text, statement.database)], names)


def replaces(state: SessionState, statement: SessionStatement) -> bool:
    """Whether it is MariaDB's CREATE OR REPLACE."""
    return state.server.is_mariadb and statement.facts.is_or_replace


def refuses_temporary(state: SessionState, statement: SessionStatement) -> bool:
    """Refuse CREATE and DROP TEMPORARY TABLE in a transaction that is logged as statements."""
    if not (
        is_gtid_enforced(state)
        and statement.facts.effects.is_temporary
        and state.is_in_transaction
        and (
            any(state.mode(name).value == "STATEMENT" for name in state.binlogs)
            or not state.server.has(Fact.TEMPORARY_IN_TRANSACTION)
        )
    ):
        return False
    state.fail(refusals.TEMPORARY_TABLE_AND_GTID)
    return True


def is_gtid_enforced(state: SessionState) -> bool:
    """Whether MySQL's enforce_gtid_consistency refuses statements."""
    if state.server.is_mariadb or not state.is_logging:
        return False
    return state.variables.gtid_consistency == "ON"


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
    give_notes(state, decided, _decided_twice(state, decided, logged))
    state.reset_isolation()


def _decided_twice(state: SessionState, decided: Decided, logged: Iterable[str]) -> frozenset[str]:
    """The binlogs for which MariaDB decides twice: rows are logged although the mode is STATEMENT."""
    if not state.server.is_mariadb:
        return frozenset()
    return frozenset(name for name in logged if decided.formats[name] is LoggingFormat.ROW)


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
    state.fail(refusals.CREATE_SELECT_AND_GTID)
    return True
