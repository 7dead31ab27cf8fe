"""One statement on tables, databases or sessions → what a scoped binlog makes of it.

In capture mode the source has already run the statement, so nothing can be refused any more: a
statement is kept, rewritten to its in-scope part, left out, or, where none of these is exact,
replaced by an incident. No name of an outside object passes (invariant 6). The inside is decided by
`scope.safety`, as where a statement can still be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from binlane.binlogs.routing.routed_group import Omission, OmissionKind
from binlane.names import TableName
from binlane.statements.scope.changes import changed_databases, changes_in_text
from binlane.statements.scope.safety import coverage
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.schema import INFORMATION_SCHEMA, PERFORMANCE_SCHEMA
from binlane.statements.sql.statement_kinds import (
    OPEN_ENDED_KINDS,
    TABLE_DROPPING_KINDS,
    StatementKind,
)


@dataclass(frozen=True, slots=True)
class Keep:
    """The statement goes in as it is."""


@dataclass(frozen=True, slots=True)
class KeepWithRows:
    """The statement goes in if any row of its transaction does."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing of it is in scope."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another statement goes in, with fully qualified names; what it does not say is noted."""

    statement: str
    omission: Omission | None = None


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """The statement bears on the scope but names outside objects; it is left out and noted."""

    omission: Omission


@dataclass(frozen=True, slots=True)
class IncidentVerdict:
    """The statement cannot be expressed within the scope: replicas must stop here."""

    reason: str


Verdict = Keep | KeepWithRows | Drop | Rewrite | LeaveOut | IncidentVerdict

_CONTROL: Final = frozenset(
    {
        StatementKind.BEGIN,
        StatementKind.COMMIT,
        StatementKind.ROLLBACK,
        StatementKind.SAVEPOINT,
        StatementKind.ROLLBACK_TO,
        StatementKind.RELEASE_SAVEPOINT,
        StatementKind.XA,
    }
)
_WITHOUT_OBJECTS: Final = frozenset(
    {
        StatementKind.EMPTY,
        StatementKind.SESSION,
        StatementKind.SET,
        StatementKind.FLUSH,
        StatementKind.LOCK,
        StatementKind.SERVER,
        StatementKind.CREATE_REFERENCE_SYSTEM,
        StatementKind.DROP_REFERENCE_SYSTEM,
    }
)
# GRANT and REVOKE count as modifying the database of accounts, not the objects they name (seed 000).
_DATABASE_KINDS: Final = frozenset(
    {
        StatementKind.CREATE_DATABASE,
        StatementKind.ALTER_DATABASE,
        StatementKind.DROP_DATABASE,
        StatementKind.ACCOUNT,
    }
)
MOVING: Final = "binlane_moving_"
"""Prefix of the names that tables have within a RENAME alone."""
CAME_IN: Final = "a table came into the scope by RENAME; its rows are not in the log"
REPLACED: Final = (
    "a table was replaced by one from outside of the scope, whose rows are not in the log: "
    "have the shadow tables of online schema changes in scope"
)
_EVERYWHERE: Final = frozenset({INFORMATION_SCHEMA, PERFORMANCE_SCHEMA})


def judge(effects: StatementEffects, scope: Scope) -> Verdict:
    """Say what a binlog of `scope` makes of a statement, by the objects that are no others' part."""
    if effects.stopped_at is not None or effects.kind is StatementKind.UNKNOWN:
        return IncidentVerdict("a statement could not be analysed, so its scope is not known")
    if effects.kind in _CONTROL:
        return KeepWithRows()
    if effects.kind in _WITHOUT_OBJECTS:
        return Drop()
    if effects.kind in _DATABASE_KINDS:
        return _judge_database(effects, scope)
    if effects.renames:
        return _judge_rename(effects, scope)
    if effects.kind in TABLE_DROPPING_KINDS:
        return _judge_drop(effects, scope)
    if effects.kind in OPEN_ENDED_KINDS:
        return IncidentVerdict("a statement calls stored code, whose writes its text does not tell")
    return _judge_writes(effects, scope)


def is_inside(name: TableName, scope: Scope) -> bool:
    """True if a text may name a table: one in scope, or one that every server has."""
    return scope.includes(name) or name.database.lower() in _EVERYWHERE


def names_only(effects: StatementEffects, scope: Scope) -> bool:
    """True if every object that the statement names is in scope."""
    changes = changes_in_text(effects)
    return (
        not changes.stopped_near
        and all(is_inside(table, scope) for table in (*effects.writes, *effects.reads))
        and all(used.is_in(scope) for used in (*changed_databases(effects), *changes.needs))
    )


def _judge_database(effects: StatementEffects, scope: Scope) -> Verdict:
    if all(used.is_in(scope) for used in changed_databases(effects)):
        return Keep()
    gone = [
        table
        for table in sorted(scope.tables_named())
        if any(scope.is_same(table.database, name) for name in effects.dropped_databases)
    ]
    return _drop_tables(filter(scope.includes, gone), "TABLE")


def _judge_rename(effects: StatementEffects, scope: Scope) -> Verdict:
    if all(map(scope.includes, effects.changed_tables)) and names_only(effects, scope):
        return Keep()
    moves = [pair for pair in effects.net_renames if any(map(scope.includes, pair))]
    leaving = [old for old, new in moves if not scope.includes(new)]
    coming = [new for old, new in moves if not scope.includes(old)]
    staying = [pair for pair in moves if all(map(scope.includes, pair))]
    if not moves:
        return Drop()
    if coming:
        return IncidentVerdict(REPLACED if set(coming) & set(leaving) else CAME_IN)
    if not staying:
        return _drop_tables(leaving, "TABLE")
    if leaving or effects.kind is not StatementKind.RENAME_TABLE:
        return IncidentVerdict("a RENAME moves tables inside and out of the scope at once")
    renames = ", ".join(f"{old} TO {new}" for old, new in _renames_of(staying))
    return Rewrite(f"RENAME TABLE {renames}")


def _renames_of(
    moves: Iterable[tuple[TableName, TableName]],
) -> Iterator[tuple[TableName, TableName]]:
    """Renames, one after the other, by which tables get names that others of them may have now."""
    left = dict(moves)
    number = 0
    while left:
        old = next((old for old, new in left.items() if new not in left), None)
        if old is not None:
            yield old, left.pop(old)
            continue
        old, new = next(iter(left.items()))
        number += 1
        between = TableName(old.database, f"{MOVING}{number}")
        del left[old]
        left[between] = new
        yield old, between


def _judge_drop(effects: StatementEffects, scope: Scope) -> Verdict:
    kept = [table for table in effects.drops if scope.includes(table)]
    if len(kept) == len(effects.drops):
        return Keep()
    what = "SEQUENCE" if effects.kind is StatementKind.DROP_SEQUENCE else "TABLE"
    return _drop_tables(kept, f"TEMPORARY {what}" if effects.is_temporary else what)


def _judge_writes(effects: StatementEffects, scope: Scope) -> Verdict:
    found = coverage(changes_in_text(effects), scope)
    if found.is_empty:
        return Drop()
    if effects.kind is StatementKind.MAINTENANCE and found.is_partial:
        omission = Omission(kind=OmissionKind.ADMIN, reason="it names tables outside of the scope")
        return LeaveOut(omission)
    if found.is_partial:
        return IncidentVerdict("a statement writes both inside and outside of the scope")
    if not names_only(effects, scope):
        return IncidentVerdict("a statement needs objects outside of the scope")
    return Keep()


def _drop_tables(tables: Iterable[TableName], what: str) -> Verdict:
    names = ", ".join(map(str, tables))
    return Rewrite(f"DROP {what} IF EXISTS {names}") if names else Drop()
