"""Statements that are logged as their text in every mode, and commit the open transaction.

Where MariaDB's fail, they log what they had done; MySQL's undo it.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_drop_view`, sql/sql_db.cc `mysql_rm_db_internal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.log.codec.transaction import GtidEvent
from binlane.names import TableName
from binlane.statements.policy.engines import traits
from binlane.statements.policy.unsafe_defaults import (
    default_sequences,
    gives_unsafe_default,
)
from binlane.statements.session.alter_phases import (
    AT_ONCE,
    IN_PHASES,
    UNDONE_IN_PHASES,
    is_in_two_phases,
)
from binlane.statements.session.context_events import random_seeds, views_behind
from binlane.statements.session.decision import note_unsafe, recorders_of
from binlane.statements.session.log_events import START_ALTER, Body
from binlane.statements.session.logged_texts import account_text, definition_text
from binlane.statements.session.object_consequences import (
    LOCKS,
    apply,
    apply_to,
    only_renames,
    preview,
)
from binlane.statements.session.state import SessionState, write_directly
from binlane.statements.session.statement_state import SessionStatement, TemporaryChange
from binlane.statements.session.table_locks import LockedTables
from binlane.statements.session.transaction import EngineChanges
from binlane.statements.session.transactions import KEY_CACHE
from binlane.statements.sql.account_changes import Changed, change
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import AlterAction, AlterTable, ObjectStatement

_REFERENCE_SYSTEMS: Final = (
    StatementKind.CREATE_REFERENCE_SYSTEM,
    StatementKind.DROP_REFERENCE_SYSTEM,
)
_DATABASE_KINDS: Final = frozenset(
    (StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE)
)
_TABLE_KINDS: Final = frozenset(
    (
        StatementKind.ALTER_TABLE,
        StatementKind.RENAME_TABLE,
        StatementKind.TRUNCATE_TABLE,
        StatementKind.CREATE_INDEX,
        StatementKind.DROP_INDEX,
        StatementKind.ALTER_SEQUENCE,
    )
)
_OPENING_KINDS: Final = (_TABLE_KINDS - {StatementKind.RENAME_TABLE}) | {StatementKind.MAINTENANCE}
_OPENING_PROGRAMS: Final = frozenset(
    (
        *(StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW),
        *(StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER),
    )
)
"""Statements about objects other than tables that make MariaDB open tables."""
_MAINTENANCE: Final = ("ANALYZE", "OPTIMIZE", "REPAIR")
_UNLOGGED_FLUSH: Final = frozenset(
    (*("LOGS", "BINARY", "MASTER", "SLAVE", "REPLICA", "BINLOG", "HOT"),)
)
_UNDONE_KINDS: Final = frozenset((StatementKind.RENAME_TABLE, StatementKind.ALTER_TABLE))
"""Statements that have done nothing where they fail: the server says so, whatever binlogs would."""
_WITHOUT_COMMIT: Final = ("CHECKSUM", "HELP")


def execute_ddl(state: SessionState, statement: SessionStatement) -> None:
    """Carry out a statement of data definition, account management or maintenance."""
    before = state.objects.table(writes[0]) if (writes := statement.facts.effects.writes) else None
    fails_late = not statement.succeeds and is_in_two_phases(state, statement, before)
    is_undone = statement.failure is not None and statement.facts.effects.kind in _UNDONE_KINDS
    is_undone &= not fails_late
    recorders = frozenset() if is_undone else recorders_of(state, statement, commits=True)
    if recorders is None:
        return
    if _commits(state, statement):
        state.implicit_commit()
    if not statement.succeeds:
        state.fail_as_stated(statement)
        if fails_late:
            query = state.query(statement.text, statement.database)
            opened = _opened(state, statement)
            _log(state, statement, recorders, query, opened, UNDONE_IN_PHASES)
        log_what_was_done(state, statement, recorders)
        return
    if _changes_nothing(state, statement):
        return
    text = _text(state, statement)
    is_atomic = state.server.has_atomic_ddl and _is_atomic(state, statement)
    _lock_flushed(state, statement)
    temporary = _temporary_table(state, statement)
    renames = () if temporary is None else _renames(state, statement, temporary)
    if temporary is not None:
        _use_temporary(state, renames)
        _turn_to_rows(state, statement)
    logging = _logging(state, statement, recorders, temporary)
    dropped = _dropped_with_database(state, statement)
    opened = _opened(state, statement) if state.server.is_mariadb else ()
    apply(state, statement)
    openings = IN_PHASES if is_in_two_phases(state, statement, before) else AT_ONCE
    opened = (*opened, *_opened(state, statement))
    _leave_dropped(state, statement)
    for old, new in renames:
        _follow_rename(state, statement, old, new)
    if text is None:
        return
    database = "" if statement.facts.effects.kind in _DATABASE_KINDS else statement.database
    for event in dropped:
        write_directly(state, [event], logging)
    query = state.query(text, database, is_atomic=is_atomic)
    _log(state, statement, logging, query, opened, openings)
    _note_sequences(state, statement, logging)
    state.end_statement(EngineChanges(), succeeds=True)


def _log(
    state: SessionState,
    statement: SessionStatement,
    names: frozenset[str],
    query: Body,
    opened: Sequence[Table],
    openings: Sequence[GtidEvent],
) -> None:
    """Log a statement in some binlogs, with the seeds that it needs, once for each opening."""
    for name in names:
        for opening in openings:
            is_begun = opening is not START_ALTER
            seeds = random_seeds(state, name, statement, opened, is_begun=is_begun)
            write_directly(state, [*seeds, query], frozenset((name,)), opening)
    _turn_to_rows(state, statement)


def _turn_to_rows(state: SessionState, statement: SessionStatement) -> None:
    """Turn MariaDB to rows for an unsafe DEFAULT under MIXED, as long as temporary tables are open."""
    if not state.server.is_mariadb or not state.objects.temporary_tables():
        return
    if gives_unsafe_default(statement.facts, state.server):
        mixed = (name for name in state.binlogs if state.mode(name) is LoggingMode.MIXED)
        state.temporary.row_binlogs.update(mixed)


def _logging(
    state: SessionState,
    statement: SessionStatement,
    recorders: frozenset[str],
    temporary: Table | None,
) -> frozenset[str]:
    """The binlogs that log a statement, which may be about a temporary table."""
    names = frozenset(state.each_logging())
    # MariaDB logs RENAME TABLE whole, also where a replica has none of its temporary tables.
    if temporary is None or statement.facts.effects.kind is StatementKind.RENAME_TABLE:
        return names & recorders
    return frozenset(name for name in names if _logs_temporary(state, name, temporary))


def _note_sequences(
    state: SessionState, statement: SessionStatement, logging: frozenset[str]
) -> None:
    """Note MariaDB's ALTER TABLE that gives a DEFAULT that advances a sequence."""
    if state.server.is_mariadb:
        found = [one for name, one in default_sequences(statement.facts) if name == "NEXTVAL"]
        note_unsafe(state, dict.fromkeys(logging, found))


def _opened(state: SessionState, statement: SessionStatement) -> tuple[Table, ...]:
    """The tables of which the statement gets all expressions ready, as they are now.

    MySQL does so with those that it makes anew, MariaDB with all that it opens.
    """
    facts = statement.facts
    kinds = _OPENING_KINDS
    names = facts.effects.writes
    if state.server.is_mariadb:
        kinds |= _OPENING_PROGRAMS
        triggers = map(state.objects.trigger, facts.effects.objects)
        of_triggers = (one.table for one in triggers if one is not None)
        renamed = (new for _, new in facts.effects.renames)
        names = (*names, *facts.effects.reads, *renamed, *of_triggers)
    elif only_renames(facts) or facts.verb.startswith(("ANALYZE", "REPAIR")):
        return ()
    else:
        new = dict(facts.effects.renames)
        names = tuple(new.get(name, name) for name in names)
    if facts.effects.kind not in kinds:
        return ()
    views = views_behind(state, names)
    names = (*names, *(use.name for view in views for use in view.facts.tables))
    tables = (state.objects.table(name) for name in names)
    return tuple(table for table in tables if table is not None)


def _dropped_with_database(state: SessionState, statement: SessionStatement) -> list[Body]:
    """Return the events of tables without atomic DDL, which MySQL drops before their database."""
    effects = statement.facts.effects
    if effects.kind is not StatementKind.DROP_DATABASE or not state.server.has_atomic_ddl:
        return []
    tables = [
        state.objects.base_table(name)
        for name in sorted(state.objects.tables, key=lambda name: name.table)
        if name.database in effects.databases
    ]
    return [
        state.query(
            f"DROP TABLE IF EXISTS {state.quote(table.name.table)} /* generated by server */",
            table.name.database,
        )
        for table in tables
        if table is not None and not traits(table, state.server).has_two_phases
    ]


def _leave_dropped(state: SessionState, statement: SessionStatement) -> None:
    """Leave a dropped default database: the session then has none."""
    if state.database in statement.facts.effects.dropped_databases:
        state.database = ""


def _changes_nothing(state: SessionState, statement: SessionStatement) -> bool:
    """True if the statement is MariaDB's ALTER … IF EXISTS of tables or accounts that do not exist."""
    effects = statement.facts.effects
    if effects.kind is StatementKind.ACCOUNT and state.server.is_mariadb:
        tree = statement.facts.tree
        assert isinstance(tree, AccountStatement)
        is_loose = tree.verb == "ALTER USER" and "IF EXISTS" in tree.options
        return is_loose and not _changed_accounts(state, statement).is_done
    is_sequence = effects.kind is StatementKind.ALTER_SEQUENCE  # no temporary one
    find = state.objects.base_table if is_sequence else state.objects.table
    return (
        (is_sequence or effects.kind is StatementKind.ALTER_TABLE)
        and (effects.if_exists or state.variables.is_on("sql_if_exists", default=False))
        and not any(find(name) or state.objects.is_unknown(name) for name in effects.writes)
    )


def _commits(state: SessionState, statement: SessionStatement) -> bool:
    verb = statement.facts.verb
    if verb.startswith(_WITHOUT_COMMIT):
        return False
    return not (state.server.is_mariadb and verb.startswith(KEY_CACHE))


def _text(state: SessionState, statement: SessionStatement) -> str | None:
    """Return the text that is logged; None if nothing is."""
    facts = statement.facts
    kind = facts.effects.kind
    if facts.is_local or kind is StatementKind.SERVER or _is_undo(statement):
        return None
    if kind is StatementKind.MAINTENANCE and not facts.verb.startswith(_MAINTENANCE):
        return None
    action = _maintained_partitions(statement)
    if action is not None and (action.is_local or action.words[0] == "CHECK"):
        return None
    if kind is StatementKind.FLUSH and _is_unlogged_flush(state, statement):
        return None
    if kind in _REFERENCE_SYSTEMS and _is_left_alone(state, statement):
        return None
    if kind is StatementKind.ACCOUNT:
        return account_text(state, statement)
    return definition_text(state, statement)


def _is_left_alone(state: SessionState, statement: SessionStatement) -> bool:
    """True if IF [NOT] EXISTS leaves the spatial reference systems as they are."""
    effects, tree = statement.facts.effects, statement.facts.tree
    assert isinstance(tree, ObjectStatement)
    is_made = effects.kind is StatementKind.CREATE_REFERENCE_SYSTEM
    return effects.if_exists and state.objects.reference_system(tree.number) is is_made


def _maintained_partitions(statement: SessionStatement) -> AlterAction | None:
    """Return the action of an ALTER TABLE that only maintains partitions, as ANALYZE does tables."""
    tree = statement.facts.tree
    if not isinstance(tree, AlterTable):
        return None
    for action in tree.actions:
        if action.kind == "PARTITION" and action.words[0] in (*_MAINTENANCE, "CHECK"):
            return action
    return None


def _is_undo(statement: SessionStatement) -> bool:
    """True for UNDO TABLESPACE: it is of the server itself, never of a replica."""
    tree = statement.facts.tree
    return isinstance(tree, ObjectStatement) and "UNDO" in tree.words


def _lock_flushed(state: SessionState, statement: SessionStatement) -> None:
    """Lock tables for FLUSH TABLES … WITH READ LOCK and FOR EXPORT, or keep all from writing."""
    facts = statement.facts
    if facts.verb != "FLUSH TABLES" or LOCKS.isdisjoint(facts.options):
        return
    names = facts.effects.writes
    if not names:
        state.is_read_locked = True
        return
    locks = tuple((name, name.table.lower(), False) for name in names)
    isolation = state.characteristics.isolation
    state.locked_tables = LockedTables((), locks, frozenset(), isolation)


def _is_unlogged_flush(state: SessionState, statement: SessionStatement) -> bool:
    facts = statement.facts
    words = facts.verb.split()[1:2]
    is_relay = state.server.is_mariadb and words == ["RELAY"]
    has_locks = not LOCKS.isdisjoint(facts.options)
    return is_relay or has_locks or not _UNLOGGED_FLUSH.isdisjoint(words)


def _temporary_table(state: SessionState, statement: SessionStatement) -> Table | None:
    """The temporary table that ALTER, RENAME, TRUNCATE or an index statement is about."""
    effects = statement.facts.effects
    if effects.kind not in _TABLE_KINDS:
        return None
    if effects.kind is StatementKind.RENAME_TABLE and not state.server.is_mariadb:
        return None  # MySQL renames no temporary tables
    names = (*(old for old, _ in effects.renames), *effects.writes)
    tables = (state.objects.table(name) for name in names)
    return next((table for table in tables if table is not None and table.is_temporary), None)


def _logs_temporary(state: SessionState, name: str, table: Table) -> bool:
    """True if a change of a temporary table's definition is logged."""
    if state.server.is_mariadb:
        return table.name in state.binlogs[name].held_temporary and not state.is_row_now(name)
    return state.mode(name).value == "STATEMENT"


def _renames(
    state: SessionState, statement: SessionStatement, table: Table
) -> tuple[tuple[TableName, TableName], ...]:
    """Return the old and the new name of a temporary table, or of each one at each step of RENAME TABLE."""
    effects = statement.facts.effects
    if effects.kind is not StatementKind.RENAME_TABLE:
        return ((table.name, dict(effects.renames).get(table.name, table.name)),)
    names = {one.name for one in state.objects.temporary_tables()}
    found = []
    for old, new in effects.renames:
        if old in names:
            names = names - {old} | {new}
            found.append((old, new))
    return tuple(found)


def _use_temporary(state: SessionState, renames: Iterable[tuple[TableName, TableName]]) -> None:
    """Note that a statement alters temporary tables, and their names behind it."""
    first: dict[TableName, TableName] = {}  # the first name of each table, by its present one
    for old, new in renames:
        first[new] = first.pop(old, old)
    for new, old in first.items():
        table = state.objects.table(old)
        assert table is not None
        new_name = None if new == old else new
        state.uses_temporary(table, TemporaryChange.ALTERED, new_name=new_name)


def _follow_rename(
    state: SessionState, statement: SessionStatement, old: TableName, new: TableName
) -> None:
    """Follow a temporary table in the binlogs: a renamed one is the same, an altered one made anew."""
    kind = statement.facts.effects.kind
    if kind is StatementKind.TRUNCATE_TABLE:
        return
    if kind is StatementKind.RENAME_TABLE:
        state.temporary.renamed(old, new)
    else:
        state.temporary.made(new, instead_of=old)
    if state.safety is not None:
        state.safety.temporary_renamed(old, new)
    for binlog in state.binlogs.values():
        if old in binlog.held_temporary:
            binlog.held_temporary.discard(old)
            binlog.held_temporary.add(new)


def _is_atomic(state: SessionState, statement: SessionStatement) -> bool:
    """True if MySQL commits the statement together with its log, and says so in its text."""
    check = _ATOMIC.get(statement.facts.effects.kind)
    return check is not None and check(state, statement)


def _has_atomic_tables(state: SessionState, statement: SessionStatement) -> bool:
    """True if all of the tables are in an engine with atomic DDL, before and after."""
    effects = statement.facts.effects
    if _maintained_partitions(statement) is not None:
        return False
    names = {*effects.writes, *(old for old, _ in effects.renames)}
    if effects.kind is StatementKind.RENAME_TABLE:  # MySQL renames no temporary tables
        renamed = [table for name in names if (table := state.objects.base_table(name)) is not None]
        has_view = any(state.objects.base_view(name) is not None for name in names)
        return (has_view or bool(renamed)) and all(
            traits(one, state.server).has_two_phases for one in renamed
        )
    if any(_leaves_as_it_is(state, statement, name) for name in effects.writes):
        return False
    before = [state.objects.table(name) for name in names]
    after = [preview(state, statement, name) for name in effects.writes]
    tables = [table for table in (*before, *after) if table is not None]
    if any(table.is_temporary for table in tables) and (
        effects.kind is not StatementKind.TRUNCATE_TABLE
    ):
        return False
    return bool(tables) and all(traits(table, state.server).has_two_phases for table in tables)


def _leaves_as_it_is(state: SessionState, statement: SessionStatement, name: TableName) -> bool:
    """True if ALTER TABLE asks for nothing that is not so; measured on MySQL 9.7.4."""
    tree, table = statement.facts.tree, state.objects.table(name)
    if not isinstance(tree, AlterTable) or table is None:
        return False

    def is_needless(action: AlterAction) -> bool:
        if action.kind in ("ALTER CHECK", "ALTER CONSTRAINT"):
            own = action.name.lower()
            # One without a name has one of the server's.
            is_unenforced = own in table.unenforced or ("" in table.unenforced and "_chk_" in own)
            return action.words == ("ENFORCED",) and not is_unenforced
        is_same = all(old == new for old, new in statement.facts.effects.renames)
        return (action.kind == "RENAME" and is_same) or (
            action.kind in ("ALGORITHM", "LOCK") and "COPY" not in action.words
        )

    return all(is_needless(action) for action in tree.actions)


def _changes_database(state: SessionState, statement: SessionStatement) -> bool:
    effects = statement.facts.effects
    if not effects.if_exists or effects.kind is StatementKind.ALTER_DATABASE:
        return True
    exists = any(state.objects.has_database(name) for name in effects.databases)
    return exists is (effects.kind is StatementKind.DROP_DATABASE)


def _exists(state: SessionState, kind: StatementKind, name: TableName) -> bool:
    objects = state.objects
    if kind in (StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW):
        return objects.base_view(name) is not None
    if kind in (StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER):
        return objects.trigger(name) is not None
    if kind in (StatementKind.CREATE_EVENT, StatementKind.DROP_EVENT):
        return objects.event(name)
    if kind in (StatementKind.CREATE_LIBRARY, StatementKind.DROP_LIBRARY):
        return objects.library(name)
    return objects.procedure(name) is not None or objects.function(name) is not None


def _creates(state: SessionState, statement: SessionStatement) -> bool:
    effects = statement.facts.effects
    return not effects.if_exists or not any(
        _exists(state, effects.kind, name) for name in effects.objects
    )


def _drops(state: SessionState, statement: SessionStatement) -> bool:
    effects = statement.facts.effects
    return not effects.if_exists or any(
        _exists(state, effects.kind, name) for name in effects.objects
    )


def _always(_: SessionState, __: SessionStatement) -> bool:
    return True


_ATOMIC: Final[Mapping[StatementKind, Callable[[SessionState, SessionStatement], bool]]] = (
    MappingProxyType(
        {
            **dict.fromkeys(_TABLE_KINDS, _has_atomic_tables),
            **dict.fromkeys(_DATABASE_KINDS, _changes_database),
            StatementKind.CREATE_VIEW: _creates,
            StatementKind.ALTER_VIEW: _always,
            StatementKind.DROP_VIEW: _drops,
            StatementKind.CREATE_ROUTINE: _creates,
            StatementKind.ALTER_ROUTINE: _always,
            StatementKind.DROP_ROUTINE: _drops,
            StatementKind.CREATE_TRIGGER: _creates,
            StatementKind.DROP_TRIGGER: _drops,
            StatementKind.CREATE_EVENT: _creates,
            StatementKind.ALTER_EVENT: _always,
            StatementKind.DROP_EVENT: _drops,
            StatementKind.ACCOUNT: _always,
            StatementKind.TABLESPACE: _always,
            StatementKind.CREATE_LIBRARY: _creates,
            StatementKind.ALTER_LIBRARY: _always,
            StatementKind.DROP_LIBRARY: _drops,
            StatementKind.CREATE_REFERENCE_SYSTEM: _always,
            StatementKind.DROP_REFERENCE_SYSTEM: _always,
        }
    )
)


# Work that MariaDB has done when a statement fails ------------------------------------------------


_UNKNOWN_VIEW: Final = 4092
_IS_REFERRED_TO: Final = 1451
_LOGGED_IN_PART: Final = frozenset((1269, 1396))
"""Errors of accounts that are not as they should be: REVOKE ALL, and CREATE, DROP and the like."""


def log_what_was_done(
    state: SessionState, statement: SessionStatement, recorders: frozenset[str]
) -> None:
    """Log the changes that a statement made before its error, and make them."""
    if not state.server.is_mariadb:
        return
    effects = statement.facts.effects
    error = statement.outcome.error
    event = None
    if effects.kind is StatementKind.DROP_VIEW and error == _UNKNOWN_VIEW:
        event = _drop_views(state, statement)
    elif effects.kind is StatementKind.DROP_DATABASE and error == _IS_REFERRED_TO:
        event = _drop_tables_of(state, effects.databases[0])
    elif effects.kind is StatementKind.ACCOUNT:
        event = _change_accounts(state, statement)
    if event is not None:
        write_directly(state, [event], recorders)


def _changed_accounts(state: SessionState, statement: SessionStatement) -> Changed:
    """Return the known accounts as an account statement changes them."""
    tree = statement.facts.tree
    assert isinstance(tree, AccountStatement)
    situation = state.account_situation(statement.database, is_complete=True)
    return change(state.objects.accounts, tree, situation)


def _change_accounts(state: SessionState, statement: SessionStatement) -> Body | None:
    """Change the accounts that can be changed; the text of some failed statements is logged."""
    is_done = _changed_accounts(state, statement).is_done
    apply_to(state.objects, state, statement)
    is_logged = is_done and statement.outcome.error in _LOGGED_IN_PART
    return state.query(statement.text, statement.database) if is_logged else None


def _drop_views(state: SessionState, statement: SessionStatement) -> Body | None:
    """Drop the views that exist; the whole text is logged."""
    names = [
        name for name in statement.facts.effects.objects if state.objects.view(name) is not None
    ]
    for name in names:
        state.objects.apply(f"DROP VIEW {name}", database=statement.database)
    return state.query(statement.text, statement.database) if names else None


def _drop_tables_of(state: SessionState, database: str) -> Body | None:
    """The tables and views that no table of another database refers to."""
    objects = state.objects
    dropped: list[TableName] = []
    for name in objects.names_in(database):
        if all(key.table in (*dropped, name) for key in objects.children(name)):
            dropped.append(name)
    for name in dropped:
        what = "TABLE" if objects.view(name) is None else "VIEW"
        objects.apply(f"DROP {what} {name}", database=database)
    if not dropped:
        return None
    listed = ",".join(state.quote(name.table) for name in dropped)
    return state.query(f"DROP TABLE IF EXISTS {listed}", database)
