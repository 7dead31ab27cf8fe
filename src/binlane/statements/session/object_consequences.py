"""The consequences of changed objects for prepared and later statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.unsafe_defaults import has_random_default
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.session.rows import release_ranges
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.table_locks import LockedTables
from binlane.statements.session.unchanged import note_emptied
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import (
    AlterTable,
)

_CHANGES_ROUTINES: Final = frozenset(
    (
        StatementKind.CREATE_ROUTINE,
        StatementKind.ALTER_ROUTINE,
        StatementKind.CREATE_VIEW,
        StatementKind.ALTER_VIEW,
        StatementKind.CREATE_TRIGGER,
    )
)
"""After these the servers read routines anew; likewise after DROP of something that is there."""

_CHANGES_TABLES: Final = frozenset(
    (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX, StatementKind.CREATE_TRIGGER)
)

_REOPENS_TABLES: Final = frozenset(
    (
        *(StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE, StatementKind.TRUNCATE_TABLE),
        *(StatementKind.MAINTENANCE, StatementKind.FLUSH),
    )
)

_TEMPORARY_KINDS: Final = frozenset(
    (
        *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
        *(StatementKind.CREATE_TABLE_SELECT, StatementKind.DROP_TABLE),
    )
)

_EMPTYING: Final = frozenset(
    (
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.TRUNCATE_TABLE,
    )
)

_REBUILDS: Final = _CHANGES_TABLES | {StatementKind.ALTER_TABLE, StatementKind.TRUNCATE_TABLE}

_OF_KEYS: Final = frozenset(("ENABLE KEYS", "DISABLE KEYS"))

_COUNTING_ENGINES: Final = frozenset(("MYISAM", "MEMORY"))
"""Engines that know how many rows a table has."""

_ONLY_LOOKS: Final = ("ANALYZE", "CHECK", "CACHE INDEX", "LOAD INDEX", "FLUSH")

_CHANGES_NO_TABLE: Final = frozenset(("RENAME", "ENABLE KEYS", "DISABLE KEYS", "PARTITION"))
"""Actions of ALTER TABLE that leave MariaDB's statements prepared."""


@contextmanager
def consequences(state: SessionState, facts: StatementFacts) -> Iterator[None]:
    """Update prepared statements, routines and empty tables around a statement that changes them."""
    changes_routines = _changes_routines(state, facts)
    emptied = _emptied_table(state, facts)
    triggers = map(state.objects.trigger, facts.effects.objects)
    of_trigger = next((one.table for one in triggers if one is not None), None)
    reopened = _reopened_tables(state, facts) if state.locked_tables else frozenset()
    yield
    if state.locked_tables is not None and reopened and state.execution.error is None:
        order = sorted(state.locked_tables.written, key=reopened.__contains__)
        state.locked_tables = state.locked_tables._replace(written=tuple(order))
    if state.locked_tables is not None and state.execution.error is None:
        anew = _isolated_anew(state, facts, state.locked_tables)
        isolation = state.characteristics.isolation
        state.locked_tables = state.locked_tables.opening_anew(anew, isolation)
        if facts.effects.kind in TABLE_DROPPING_KINDS:
            gone = [name for name in facts.effects.drops if not _is_there(state, name)]
            state.locked_tables = state.locked_tables.without(gone)
    if state.execution.error is None:
        if changes_routines:
            state.programs.forget_routines()
        state.programs.change_tables(*_changed_tables(state, facts))
        _note_ready(state, facts, of_trigger)
        _note_empty(state, facts, emptied)
        release_ranges(state, facts)


def _is_there(state: SessionState, name: TableName) -> bool:
    return state.objects.base_table(name) is not None or state.objects.is_unknown(name)


def _changes_routines(state: SessionState, facts: StatementFacts) -> bool:
    """True if the servers read their routines anew after a statement.

    MariaDB also reads them anew when temporary tables come and go.

    Source: measured on MariaDB 10.11.19 and 11.8.6 and MySQL 9.7.4.
    """
    effects, objects = facts.effects, state.objects
    if effects.kind in _CHANGES_ROUTINES:
        return True
    if effects.kind is StatementKind.DROP_VIEW:
        return any(objects.base_view(name) is not None for name in effects.objects)
    if effects.kind is StatementKind.DROP_TRIGGER:
        return any(objects.trigger(name) is not None for name in effects.objects)
    if effects.kind is StatementKind.DROP_ROUTINE:
        find = objects.function if "FUNCTION" in facts.verb else objects.procedure
        return any(find(name) is not None for name in effects.objects)
    if not (state.server.is_mariadb and effects.kind in _TEMPORARY_KINDS):
        return False
    if effects.kind is not StatementKind.DROP_TABLE:
        return effects.is_temporary
    tables = map(objects.table, effects.drops)
    return any(table is not None and table.is_temporary for table in tables)


def _note_ready(state: SessionState, facts: StatementFacts, of_trigger: TableName | None) -> None:
    """Note the tables with RAND() in a DEFAULT that MySQL has got ready, or no longer has.

    Source: measured on MySQL 9.7.4.
    """
    effects, verb = facts.effects, facts.verb
    if state.server.is_mariadb or effects.kind not in DDL_KINDS:
        return
    if verb.startswith("ANALYZE") or effects.kind in _TRIGGER_KINDS:
        for name in (*effects.writes, of_trigger):
            state.ready_tables.pop(name, None)
    elif effects.kind in _LEAVING_OPEN or verb.startswith("OPTIMIZE"):
        new = dict(effects.renames)
        names = () if only_renames(facts) else (new.get(name, name) for name in effects.writes)
        tables = map(state.objects.base_table, names)
        random = (table.name for table in tables if table is not None and has_random_default(table))
        state.get_ready([*random])


_TRIGGER_KINDS: Final = (StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER)

_LEAVING_OPEN: Final = (
    StatementKind.ALTER_TABLE,
    StatementKind.CREATE_INDEX,
    StatementKind.DROP_INDEX,
)


def _changed_tables(state: SessionState, facts: StatementFacts) -> tuple[TableName | None, ...]:
    """The tables whose statements are prepared anew after a statement; None stands for all.

    Source: measured on MariaDB 10.11.19 and 11.8.6 and MySQL 9.7.4.
    """
    effects = facts.effects
    if effects.kind in _CHANGES_TABLES or effects.kind is StatementKind.DROP_TABLE:
        return effects.writes
    if effects.kind in _TEMPORARY_KINDS:
        return effects.writes if effects.is_temporary else ()
    if effects.kind not in _REOPENS_TABLES:
        return ()
    if state.server.is_mariadb:
        tree = facts.tree
        is_changed = isinstance(tree, AlterTable) and any(
            action.kind not in _CHANGES_NO_TABLE for action in tree.actions
        )
        return effects.writes if is_changed else ()
    if effects.kind is StatementKind.FLUSH and facts.verb == "FLUSH TABLES":
        return effects.writes or (None,)
    return () if facts.verb.startswith(_ONLY_LOOKS) else effects.writes


def _reopened_tables(state: SessionState, facts: StatementFacts) -> frozenset[TableName]:
    """Return the tables that MariaDB opens anew under LOCK TABLES, and has last in its order from then on.

    Source: measured on MariaDB 10.11.19.
    """
    effects, tree = facts.effects, facts.tree
    if not state.server.is_mariadb:
        return frozenset()
    if effects.kind is StatementKind.DROP_TRIGGER:
        triggers = map(state.objects.trigger, effects.objects)
        return frozenset(one.table for one in triggers if one is not None)
    if isinstance(tree, AlterTable) and all(one.kind in _OF_KEYS for one in tree.actions):
        return frozenset()
    is_rebuilt = effects.kind in _REBUILDS or facts.verb.startswith(("OPTIMIZE", "REPAIR"))
    return frozenset(effects.writes) if is_rebuilt else frozenset()


def _isolated_anew(
    state: SessionState, facts: StatementFacts, locked: LockedTables
) -> tuple[TableName, ...]:
    """The tables that are opened under LOCK TABLES with the isolation level of this moment.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4; MariaDB leaves it as ALTER TABLE found it.
    """
    names = facts.effects.writes
    if facts.verb == "FLUSH TABLES" and LOCKS.isdisjoint(facts.options):
        return names or tuple(name for name, _, _ in locked.locks)
    if facts.effects.is_temporary and facts.effects.kind in TABLE_MAKING_KINDS:
        return names
    is_altered = facts.effects.kind is StatementKind.ALTER_TABLE and not state.server.is_mariadb
    return names if is_altered or facts.effects.kind is StatementKind.TRUNCATE_TABLE else ()


def _emptied_table(state: SessionState, facts: StatementFacts) -> TableName | None:
    """The table that is empty behind a statement."""
    effects, objects = facts.effects, state.objects
    if effects.kind not in _EMPTYING:
        return None
    name = effects.writes[0]
    if effects.kind is not StatementKind.TRUNCATE_TABLE:
        is_there = objects.table(name) if effects.is_temporary else objects.base_table(name)
        if is_there is not None and is_there.is_temporary == effects.is_temporary:
            return None
    return name


def _note_empty(state: SessionState, facts: StatementFacts, emptied: TableName | None) -> None:
    """Know which tables are empty behind DDL that succeeded."""
    effects, filled = facts.effects, state.objects.filled
    if state.empty_tables and effects.kind in DDL_KINDS:
        state.empty_tables.difference_update(effects.writes)
    if filled is not None:
        filled.update([new for old, new in effects.renames if old in filled])
    if effects.kind in TABLE_DROPPING_KINDS:
        note_emptied(state, effects.drops)
    if emptied is None:
        return
    note_emptied(state, (emptied,))
    table = state.objects.table(emptied)
    is_asked = state.server.has(Fact.UPDATES_AS_QUERIES)
    if is_asked and table is not None and table.engine in _COUNTING_ENGINES:
        state.empty_tables.add(emptied)


LOCKS: Final = frozenset(("WITH READ LOCK", "FOR EXPORT"))


def only_renames(facts: StatementFacts) -> bool:
    """True if a statement is an ALTER TABLE that only renames its table."""
    tree = facts.tree
    actions = tree.actions if isinstance(tree, AlterTable) else ()
    return bool(facts.effects.renames) and all(one.kind == "RENAME" for one in actions)


def apply(state: SessionState, statement: SessionStatement) -> None:
    """Change the objects as a statement does."""
    known = len(state.objects.problems)
    apply_to(state.objects, state, statement)
    if len(state.objects.problems) > known:
        problem = state.objects.problems[-1]
        state.programs.effort.unfollowed = f"what it makes is not known: {problem.message}"


def preview(state: SessionState, statement: SessionStatement, name: TableName) -> Table | None:
    """The table that a statement is about to make."""
    objects = state.objects.copy()
    apply_to(objects, state, statement)
    effects = statement.facts.effects
    if effects.kind in TABLE_MAKING_KINDS and not effects.is_temporary:
        # A temporary table of that name does not hide it from the statement that makes it.
        return objects.base_table(name)
    return objects.table(name)


def apply_to(objects: SchemaCatalog, state: SessionState, statement: SessionStatement) -> None:
    """Change some objects as a statement does."""
    variables = state.variables
    objects.apply(
        statement.sql,
        database=statement.database,
        dialect=statement.facts.dialect,
        generates_primary_key=variables.is_on("sql_generate_invisible_primary_key", default=False),
        engine=variables.text("default_storage_engine") or variables.text("storage_engine") or None,
        temporary_engine=variables.text("default_tmp_storage_engine") or None,
        connection=variables.connection,
        context=variables.context,
        environment=SessionEnvironment(state.host),
        account=state.identity.account,
        knows_accounts=state.knows_accounts,
    )
