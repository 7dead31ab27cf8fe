"""What one statement changes and needs, as far as scopes ask: the input of `safety`.

Values, and what a statement's text alone gives of them. Who knows the server's objects too makes
them whole: with what views, triggers, functions and foreign keys add.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope, ScopeObject
from binlane.statements.sql.facts import StatementEffects, StatementKind

SCHEMAS_OF_EVERY_SERVER: Final = frozenset(("information_schema", "performance_schema"))
"""Whoever replays a binlog has these too, so that reading them is no dependency."""


class ObjectKind(Enum):
    """What an object is, which decides whether a scope logs it by its name or by its database."""

    TABLE = "table"
    DATABASE = "database"
    VIEW = "view"
    ROUTINE = "routine"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedObject:
    """One object that a statement changes or needs.

    Attributes:
        name: A table, view or routine; of a database its name alone.
        kind: What it is.
        is_temporary: A temporary table of the session.
        is_transactional: A rollback undoes its changes.
        through: How the statement comes to it, such as `view d.v`, outermost first.
        offset: Where the text names it or what leads to it, in characters from 0.
        length: Of that.
    """

    name: ScopeObject
    kind: ObjectKind = ObjectKind.TABLE
    is_temporary: bool = False
    is_transactional: bool = False
    through: tuple[str, ...] = ()
    offset: int = 0
    length: int = 0

    def __str__(self) -> str:
        return quote(self.name) if isinstance(self.name, str) else str(self.name)

    @property
    def plain(self) -> str:
        """The name without quotes."""
        return self.name if isinstance(self.name, str) else self.name.plain

    @property
    def database(self) -> str:
        """The database that it is or belongs to."""
        return self.name if isinstance(self.name, str) else self.name.database

    def is_in(self, scope: Scope) -> bool:
        """Whether a scope logs it. Views and routines belong to their databases (seed 000)."""
        if self.kind is ObjectKind.TABLE and isinstance(self.name, TableName):
            return scope.includes(self.name)
        return scope.includes_database(self.database)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredTrigger:
    """A trigger that runs when a statement changes `table`."""

    trigger: UsedObject
    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one statement changes and needs, through everything that it uses.

    Attributes:
        kind: What the statement is.
        writes: All that it changes, in the order of the text; temporary tables among it.
        needs: All that a replay of its text needs beside that.
        triggers: Triggers that it fires, or makes.
        is_in_procedure: It is a statement in the body of a procedure.
        stopped_near: Where its text was not understood; empty if it was.
    """

    kind: StatementKind
    writes: tuple[UsedObject, ...] = ()
    needs: tuple[UsedObject, ...] = ()
    triggers: tuple[FiredTrigger, ...] = ()
    is_in_procedure: bool = False
    stopped_near: str = ""

    @property
    def permanent_writes(self) -> tuple[UsedObject, ...]:
        """What it changes, temporary tables left out."""
        return tuple(used for used in self.writes if not used.is_temporary)

    @property
    def temporary_writes(self) -> tuple[UsedObject, ...]:
        """The temporary tables that it changes."""
        return tuple(used for used in self.writes if used.is_temporary)


NAMED_ONLY: Final = frozenset(
    (
        StatementKind.CREATE_ROUTINE,
        StatementKind.ALTER_ROUTINE,
        StatementKind.CREATE_EVENT,
        StatementKind.ALTER_EVENT,
    )
)
"""These name objects in bodies that no replay runs: making the routine needs none of them."""


def written_tables(effects: StatementEffects) -> tuple[TableName, ...]:
    """Tables, and views written through, that the text changes; FLUSH changes nothing in them."""
    return () if effects.kind is StatementKind.FLUSH else effects.writes


def changed_databases(effects: StatementEffects) -> tuple[UsedObject, ...]:
    """Databases that the text changes as such."""
    return tuple(UsedObject(name=name, kind=ObjectKind.DATABASE) for name in effects.databases)


def changes_in_text(effects: StatementEffects) -> Changes:
    """What a text alone tells of what its statement changes and needs, by name and database."""
    stopped = effects.stopped_at
    return Changes(
        kind=effects.kind,
        writes=(
            *(UsedObject(name=name) for name in written_tables(effects)),
            *changed_databases(effects),
        ),
        needs=(
            *(UsedObject(name=name) for name in needed_tables(effects)),
            *(UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in effects.calls),
        ),
        stopped_near="" if stopped is None else stopped.text[:80] or "the end",
    )


def needed_tables(effects: StatementEffects) -> tuple[TableName, ...]:
    """Tables and views that a replay of the text needs beside those that it changes."""
    if effects.kind in NAMED_ONLY:
        return ()
    return tuple(
        name for name in effects.reads if name.database.lower() not in SCHEMAS_OF_EVERY_SERVER
    )
