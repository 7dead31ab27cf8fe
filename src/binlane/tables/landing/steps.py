"""Effects of statements on the tables of a target: steps, in order, that can each be done again."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.landing.column_changes import AddColumn, ModifyColumn
from binlane.tables.landing.column_conversions import Conversion


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table is gone."""

    table: TableName


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """All tables of a database are gone."""

    database: str


@dataclass(frozen=True, slots=True)
class Create:
    """A table is there, with these columns and no rows."""

    table: TableName
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class CreateLike:
    """A table is there, with the columns of another and no rows."""

    table: TableName
    like: TableName


@dataclass(frozen=True, slots=True)
class Truncate:
    """A table is empty."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Rename:
    """A table has another name."""

    old: TableName
    new: TableName


@dataclass(frozen=True, slots=True)
class Add:
    """A column is new; existing rows have `value` in it."""

    column: AddColumn
    type: pa.DataType
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """A column is gone."""

    column: str


@dataclass(frozen=True, slots=True)
class RenameTo:
    """A column has another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Modify:
    """A column has another definition or place; its values are converted."""

    column: ModifyColumn
    conversion: Conversion


ColumnStep = Add | Remove | RenameTo | Modify


@dataclass(frozen=True, slots=True)
class Reshape:
    """A table's columns change, all at once.

    Attributes:
        table: The table whose columns change.
        changes: The changes as the statement has them; columns that change and go have their names
            from before it, columns to stand behind those from after it.
        names: Names of the columns before; empty if the log never told them.
        place: Place of the statement in the log; empty if nobody told.
        columns: The definitions afterwards; empty if the log never told them.
        computed: Names in small letters of generated columns that may have other values then.
        flavor: The kind of server; None if the log does not tell.
    """

    table: TableName
    changes: tuple[ColumnStep, ...]
    names: tuple[str, ...] = ()
    place: str = ""
    columns: tuple[TableColumn, ...] = ()
    computed: frozenset[str] = frozenset()
    flavor: Flavor | None = None


@dataclass(frozen=True, slots=True)
class Abandon:
    """Rows changed in a way that the log does not tell."""

    table: TableName
    reason: str


@dataclass(frozen=True, slots=True)
class Relink:
    """A table gets or loses a foreign key; rows before that are not to be seen by it."""

    table: TableName


@dataclass(frozen=True, slots=True)
class AbandonAll:
    """Rows of any table changed in a way that the log does not tell: of a database, or of all."""

    reason: str
    database: str | None


Step = (
    DropTable
    | DropDatabase
    | Create
    | CreateLike
    | Truncate
    | Rename
    | Reshape
    | Abandon
    | AbandonAll
    | Relink
)


def tables_of(step: Step) -> tuple[TableName, ...]:
    """The tables that a step names."""
    if isinstance(step, Rename):
        return step.old, step.new
    return () if isinstance(step, DropDatabase | AbandonAll) else (step.table,)
