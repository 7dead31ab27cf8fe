"""CREATE TABLE and CREATE SEQUENCE; those with a query in `create_select`.

Where MariaDB's OR REPLACE fails, the old table may be gone already.

Source: MariaDB 10.11 sql/sql_table.cc `mysql_create_table_no_lock`; MySQL 9.7 sql/sql_class.cc
`THD::is_ddl_gtid_compatible`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.policy import refusals
from binlane.policy.engines import traits
from binlane.session.context_events import random_seeds
from binlane.session.ddl import apply, preview
from binlane.session.decision import recorders_of
from binlane.session.log_events import Body
from binlane.session.state import SessionState, SessionStatement, write_directly
from binlane.session.transaction import EngineChanges
from binlane.sql.facts import StatementKind
from binlane.sql.schema import Table
from binlane.sql.servers import Fact, LoggingFormat
from binlane.sql.show_create import create_table_text
from binlane.sql.table_changes import has_invisible_key
from binlane.sql.tree.definitions import Column, CreateTable

_ENGINE_NAMES: Final = MappingProxyType(
    {"INNODB": "InnoDB", "MYISAM": "MyISAM", "ARIA": "Aria", "MRG_MYISAM": "MRG_MyISAM"}
)
KINDS: Final = frozenset(
    (
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.CREATE_SEQUENCE,
    )
)
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
            and state.is_row_now(name)
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
    )
    if created.name.database == statement.database:
        return text
    return text.replace(quote(created.name.table), str(created.name), 1)


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
    state.refuse(refusals.temporary_table_and_gtid())
    return True


def is_gtid_enforced(state: SessionState) -> bool:
    """Whether MySQL's enforce_gtid_consistency refuses statements."""
    if state.server.is_mariadb or not state.is_logging:
        return False
    return state.variables.gtid_consistency == "ON"
