"""Errors that a statement meets when its tables are opened and locked.

Source: sql_base.cc `open_table`, of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import (
    Refusal,
    refusal,
    unsafe_default_is_added,
)
from binlane.statements.policy.resolution import ResolvedStatement
from binlane.statements.policy.unsafe_defaults import added_unsafe_defaults
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.table_locks import LockedTables
from binlane.statements.session.transactions import begins_transaction
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.servers import LoggingMode
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import AlterTable
from binlane.statements.sql.tree.expressions import Node

_LOCKED_FOR_READ: Final = 1099
_NOT_LOCKED: Final = 1100
_READ_LOCKED: Final = 1223
_READ_LOCKS: Final = frozenset(("WITH READ LOCK", "FOR EXPORT"))
_UNDER_READ_LOCK: Final = frozenset((StatementKind.MAINTENANCE, StatementKind.FLUSH))
_BEFORE_OPENING: Final = frozenset((1066, 1327, 1747))
"""Errors in aliases, partitions and variables: no table is locked yet."""
_BEFORE_LOCKING: Final = _BEFORE_OPENING | {1222, 1241}
"""The same of MySQL, which prepares a statement before it locks its tables."""
_OF_THE_TEXT: Final = frozenset((1052, 1054, 1093, 1110, 1136, 1288, 1348, 1394, 1443, 1471))
"""Errors in columns and targets, which are known before the statement runs."""


def is_not_locked(state: SessionState, statement: SessionStatement) -> bool:
    """Fail a statement that LOCK TABLES keeps from a table; it then comes to nothing else.

    Tables that LOCK TABLES did not name are not looked for: these may be missing, too.
    """
    if statement.outcome.error in (_LOCKED_FOR_READ, _NOT_LOCKED):
        state.fail_as_stated(statement)
        return True
    if state.locked_tables is None:
        return False
    for use in statement.facts.tables:
        name = use.name
        is_known = (
            state.assume_engine is not None
            or state.objects.table(name) is not None
            or state.objects.view(name) is not None
            or state.objects.is_unknown(name)
        )
        if not is_known and state.objects.has_database(name.database):
            state.fail(refusal(_NOT_LOCKED, use.alias))
            return True
    return False


def refusal_beyond_locks(
    state: SessionState, facts: StatementFacts, resolved: ResolvedStatement
) -> Refusal | None:
    """Return the error of a statement that opens tables beyond the locks, their kind or their number.

    Tables that foreign keys lead to are locked with their own tables, except under a lock for reading.
    """
    locked = state.locked_tables
    if state.is_read_locked and any(
        access.is_locked_for_write and not access.table.is_temporary for access in resolved.accesses
    ):
        return refusal(_READ_LOCKED)
    if locked is None:
        return None
    views = [use for use in facts.tables if state.objects.view(use.name) is not None]
    opened = [(use.name, use.alias, bool(use.changes)) for use in views]
    made: TableName | None = None
    if facts.effects.kind is StatementKind.CREATE_TABLE_SELECT and not facts.effects.is_temporary:
        # MySQL takes a READ lock for one that is there.
        made = facts.effects.writes[0]
        opened.append((made, made.table, state.server.is_mariadb))
    opened += [
        (access.name, access.alias, access.is_locked_for_write)
        for access in resolved.accesses
        if not (access.table.is_temporary or access.is_foreign_key)
        and not (access.changes and access.name == made)
    ]
    opened += [(name, name.table, True) for name in resolved.absent]
    led_to = [
        access.name
        for access in resolved.accesses
        if access.is_foreign_key and not access.table.is_temporary
    ]
    error = locked.refusal(opened, led_to)
    if state.server.is_mariadb and error is not None:
        # MariaDB opens all children of a table locked for reading, whatever would happen to their rows.
        written = (one for one in resolved.accesses if one.changes and not one.is_prelocked)
        led_to += [key.table for one in written for key in state.objects.children(one.name)]
        return locked.refusal(opened, led_to)
    return error


_CREATES_TABLES: Final = frozenset(
    (
        *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE),
        StatementKind.CREATE_SEQUENCE,
    )
)
_NEEDS_LOCKS: Final = _CREATES_TABLES | {
    *(StatementKind.ALTER_TABLE, StatementKind.DROP_TABLE, StatementKind.TRUNCATE_TABLE),
    *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX, StatementKind.CREATE_TRIGGER),
    *(StatementKind.RENAME_TABLE, StatementKind.DROP_SEQUENCE, StatementKind.ALTER_SEQUENCE),
}
_NOT_UNDER_LOCKS: Final = frozenset(
    (
        *(StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW),
        *(StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE),
        *(StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE),
        *(StatementKind.DROP_DATABASE, StatementKind.HANDLER),
        *(StatementKind.CREATE_EVENT, StatementKind.ALTER_EVENT, StatementKind.DROP_EVENT),
    )
)
_USERS: Final = TableName("mysql", "user")
_LOOKING: Final = frozenset(("ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"))


def fails_under_locks(state: SessionState, statement: SessionStatement) -> bool:
    """Fail a statement about objects that LOCK TABLES does not allow; the transaction is committed.

    Source: measured on MariaDB 10.11.19 and 11.8.6 and MySQL 9.7.4.
    """
    locked = state.locked_tables
    if locked is not None:
        # MySQL's error for an unsafe DEFAULT comes first.
        is_unsafe = unsafe_default_added(state, statement.facts) is not None
        error = None if is_unsafe else _refusal_under_locks(state, statement, locked)
    elif state.is_read_locked:
        error = _refusal_under_read_lock(statement)
    else:
        return False
    if error is None:
        return False
    if not (statement.facts.effects.is_temporary or begins_transaction(statement.facts)):
        state.implicit_commit()
    state.fail(error)
    return True


def unsafe_default_added(state: SessionState, facts: StatementFacts) -> Refusal | None:
    """Return 1674 for MySQL's ALTER TABLE that gives an unsafe DEFAULT, whatever its table is; else None.

    MySQL logs no ALTER TABLE as rows.
    """
    if facts.effects.kind is not StatementKind.ALTER_TABLE or state.server.is_mariadb:
        return None
    if {state.mode(name) for name in state.each_logging()} <= {LoggingMode.STATEMENT}:
        return None
    found = next(added_unsafe_defaults(facts, state.server), None)
    return None if found is None else unsafe_default_is_added(found, state.server)


def _refusal_under_locks(
    state: SessionState, statement: SessionStatement, locked: LockedTables
) -> Refusal | None:
    facts, effects = statement.facts, statement.facts.effects
    is_rename = effects.kind is StatementKind.RENAME_TABLE and state.server.is_mariadb
    if effects.kind in _NOT_UNDER_LOCKS or is_rename:
        return refusal(1192)
    if effects.kind is StatementKind.ACCOUNT or facts.verb == "FLUSH PRIVILEGES":
        return locked.refusal([(_USERS, _USERS.table, True)])
    if effects.kind is StatementKind.FLUSH and facts.verb == "FLUSH TABLES":
        if not _READ_LOCKS.isdisjoint(facts.options):
            return refusal(1192)
        names = effects.writes or [name for name, _, is_written in locked.locks if not is_written]
        return locked.refusal((name, name.table, True) for name in names)
    if effects.kind is StatementKind.DROP_TRIGGER:
        found = map(state.objects.trigger, effects.objects)
        return locked.refusal((one.table, one.table.table, True) for one in found if one)
    if effects.kind not in _NEEDS_LOCKS or _looks_at_partitions(facts.tree):
        return None
    changed = tuple(_changed_under_locks(state, statement))
    if state.server.is_mariadb and (error := _refused_in_order(locked, changed)) is not None:
        return error
    return locked.refusal(changed)


def _refused_in_order(
    locked: LockedTables, changed: Iterable[tuple[TableName, str, bool]]
) -> Refusal | None:
    """Return MariaDB's error for tables that DDL changes, which it looks for one behind the other."""
    held = {lock[0] for lock in locked.locks} | locked.implied
    for name, alias, is_written in changed:
        if name not in held:
            return refusal(_NOT_LOCKED, alias)
        if is_written and name in locked.implied:
            return refusal(_LOCKED_FOR_READ, name.table)
    return None


def _refusal_under_read_lock(statement: SessionStatement) -> Refusal | None:
    """Return the error with which a definition fails under FLUSH TABLES WITH READ LOCK."""
    effects = statement.facts.effects
    kind = effects.kind
    is_definition = kind in DDL_KINDS | TABLE_MAKING_KINDS | TABLE_DROPPING_KINDS
    if not is_definition or effects.is_temporary or kind in _UNDER_READ_LOCK:
        return None
    return refusal(_READ_LOCKED)


def _changed_under_locks(
    state: SessionState, statement: SessionStatement
) -> Iterator[tuple[TableName, str, bool]]:
    """Give the tables that DDL changes, and reads for CREATE … LIKE, with the locks that it needs."""
    effects = statement.facts.effects
    makes = effects.kind in _CREATES_TABLES
    if not effects.is_temporary:
        names = effects.writes
        if effects.renames:
            made: set[TableName] = set()
            names = ()
            for old, new in effects.renames:
                names += () if old in made else (old,)
                made.add(new)
        for name in dict.fromkeys(names):
            table = state.objects.table(name)
            if makes or table is None or not table.is_temporary:
                yield name, name.table, True
    for name in effects.reads:
        table = state.objects.table(name)
        if makes and (table is None or not table.is_temporary):
            yield name, name.table, False


def _looks_at_partitions(tree: Node) -> bool:
    """True if the statement is an ALTER TABLE that answers with a table of its actions, errors included."""
    return isinstance(tree, AlterTable) and any(
        action.kind == "PARTITION" and not _LOOKING.isdisjoint(action.words)
        for action in tree.actions
    )


def fails_before_locking(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if the script states an error with which a server locks none of the statement's tables."""
    errors = _BEFORE_OPENING if state.server.is_mariadb else _BEFORE_LOCKING
    return statement.outcome.error in errors and not _has_bodies(resolved)


def _has_bodies(resolved: ResolvedStatement) -> bool:
    return any(access.is_prelocked for access in resolved.accesses)


def fails_at_once(statement: SessionStatement, resolved: ResolvedStatement) -> bool:
    """True if the script states an error of the text, and no body that could be meant has tables."""
    return statement.outcome.error in _OF_THE_TEXT and not _has_bodies(resolved)
