"""Changes and needs of one statement, as far as scopes ask: the input of `safety`.

Values, and as much of them as a statement's text alone gives. A caller that knows the server's
objects too completes them: it adds the effects of views, triggers, functions and foreign keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope, ScopeObject
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.statement_kinds import StatementKind

SCHEMAS_OF_EVERY_SERVER: Final = frozenset(("information_schema", "performance_schema"))
"""Whoever replays a binlog has these too, so that reading them is no dependency."""


class ObjectKind(Enum):
    """Kind of an object, which decides whether a scope logs it by its name or by its database."""

    TABLE = "table"
    DATABASE = "database"
    VIEW = "view"
    ROUTINE = "routine"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedObject:
    """One object that a statement changes or needs.

    Attributes:
        name: Name of a table, view or routine; a database has its name alone.
        is_temporary: True for a temporary table of the session.
        is_transactional: True if a rollback undoes the object's changes.
        through: Steps by which the statement reaches the object, such as `view d.v`, outermost
            first.
        offset: Place where the text names the object or the step that leads to it, in characters
            from 0.
        length: Length of the text at `offset`, in characters.
        shadowed: The table whose shadow this certainly is, made by a tool that changes its schema
            online: a binlog that logs the table and not its shadow loses nothing.
    """

    name: ScopeObject
    kind: ObjectKind = ObjectKind.TABLE
    is_temporary: bool = False
    is_transactional: bool = False
    through: tuple[str, ...] = ()
    offset: int = 0
    length: int = 0
    shadowed: TableName | None = None

    def __str__(self) -> str:
        return quote(self.name) if isinstance(self.name, str) else str(self.name)

    @property
    def plain(self) -> str:
        """The name without quotes."""
        return self.name if isinstance(self.name, str) else self.name.plain

    @property
    def database(self) -> str:
        """The object's own database, or the name itself if the object is a database."""
        return self.name if isinstance(self.name, str) else self.name.database

    def is_in(self, scope: Scope) -> bool:
        """True if a scope logs the object. Views and routines belong to their databases (seed 000)."""
        if self.kind is ObjectKind.TABLE and isinstance(self.name, TableName):
            return scope.includes(self.name)
        return scope.includes_database(self.database)

    def is_shadow_beside(self, scope: Scope) -> bool:
        """True if it is the shadow, outside of a scope, of a table in it."""
        return self.shadowed is not None and scope.includes(self.shadowed) and not self.is_in(scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredTrigger:
    """A trigger that runs when a statement changes `table`.

    Attributes:
        trigger: The trigger, and the way to it.
        table: Table whose rows the statement changes.
        shadow: Shadow of the table that the trigger keeps up to date, and does nothing else; None
            for all other triggers.
    """

    trigger: UsedObject
    table: TableName
    shadow: TableName | None = None

    def is_left_out(self, scope: Scope) -> bool:
        """True if a binlog has the table's rows without the trigger, and lacks nothing."""
        is_outside = self.shadow is not None and not scope.includes(self.shadow)
        return is_outside and scope.includes(self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes and needs of one statement, through everything that it uses.

    Attributes:
        writes: All objects that the statement changes, in the order of the text; temporary tables
            among them.
        needs: All other objects that a replay of the statement's text needs.
        triggers: Triggers that the statement fires or makes.
        is_in_procedure: True if the statement stands in the body of a procedure.
        drops_databases: True if the databases among `writes` are dropped.
        stopped_near: Text at which the analysis stopped; empty if all was understood.
    """

    kind: StatementKind
    writes: tuple[UsedObject, ...] = ()
    needs: tuple[UsedObject, ...] = ()
    triggers: tuple[FiredTrigger, ...] = ()
    is_in_procedure: bool = False
    drops_databases: bool = False
    stopped_near: str = ""

    @property
    def permanent_writes(self) -> tuple[UsedObject, ...]:
        """The objects that the statement changes, temporary tables left out."""
        return tuple([used for used in self.writes if not used.is_temporary])

    @property
    def temporary_writes(self) -> tuple[UsedObject, ...]:
        """The temporary tables that the statement changes."""
        return tuple([used for used in self.writes if used.is_temporary])


NAMED_ONLY: Final = frozenset(
    (
        StatementKind.CREATE_ROUTINE,
        StatementKind.ALTER_ROUTINE,
        StatementKind.CREATE_EVENT,
        StatementKind.ALTER_EVENT,
    )
)
"""Statements that name objects in bodies, which no replay runs: making the routine needs none of them."""


def written_tables(effects: StatementEffects) -> tuple[TableName, ...]:
    """Tables, and views written through, that the text changes; FLUSH changes nothing in them."""
    return () if effects.kind is StatementKind.FLUSH else effects.writes


def changed_databases(effects: StatementEffects) -> tuple[UsedObject, ...]:
    """Databases that the text changes as such."""
    return tuple(UsedObject(name=name, kind=ObjectKind.DATABASE) for name in effects.databases)


def changes_in_text(effects: StatementEffects) -> Changes:
    """Give a statement's changes and needs as far as its text alone tells, by name and database."""
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
        drops_databases=bool(effects.dropped_databases),
        stopped_near="" if stopped is None else stopped.text[:80] or "the end",
    )


def needed_tables(effects: StatementEffects) -> tuple[TableName, ...]:
    """Tables and views that a replay of the text needs beside those that it changes."""
    if effects.kind in NAMED_ONLY:
        return ()
    return tuple(
        name for name in effects.reads if name.database.lower() not in SCHEMAS_OF_EVERY_SERVER
    )
