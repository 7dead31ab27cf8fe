"""Statements → what they do to the tables of a target, as steps that can each be done again.

The log has no rows for what DDL does to existing rows, so a copy must do it too: drop, empty,
rename, and give a new column its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

from binlane.columnar.arrow_types import arrow_type, has_zone
from binlane.errors import StatementError, UnsupportedError
from binlane.names import TableName
from binlane.ranges.statements import Statement
from binlane.scope.scope import Scope
from binlane.sql.column_changes import (
    AddColumn,
    ChangeRows,
    ColumnDefinition,
    DropColumn,
    RenameColumn,
    column_changes,
    created_columns,
    literal,
)
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.logged_types import logged_column


@dataclass(frozen=True, slots=True)
class Drop:
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

    table: TableName
    column: AddColumn
    type: pa.DataType
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """A column is gone."""

    table: TableName
    column: str


@dataclass(frozen=True, slots=True)
class Move:
    """A column stands elsewhere: first, or behind another one."""

    table: TableName
    column: str
    after: str | None


@dataclass(frozen=True, slots=True)
class RenameTo:
    """A column has another name."""

    table: TableName
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Rows changed in a way that the log does not tell."""

    table: TableName
    reason: str


Step = (
    Drop
    | DropDatabase
    | Create
    | CreateLike
    | Truncate
    | Rename
    | Add
    | Remove
    | Move
    | RenameTo
    | Abandon
)

_CREATES: Final = frozenset(
    {
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.CREATE_SEQUENCE,
    }
)
_DROPS: Final = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_SEQUENCE})
# In row format CREATE TABLE … SELECT is logged as CREATE TABLE and rows.
_CHANGES_ROWS: Final = frozenset(
    {
        StatementKind.CREATE_TABLE_SELECT,
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.LOAD_DATA,
        StatementKind.CALL,
        StatementKind.DO,
        StatementKind.SELECT,
    }
)
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})


def steps(statement: Statement, scope: Scope) -> tuple[Step, ...]:
    """What a statement does to tables, in order.

    Args:
        statement: Of the log.
        scope: The tables that are landed; what a rename takes out of it or into it follows.

    Raises:
        UnsupportedError: If it changes rows, or may do so: the log tells which only in row format.
    """
    effects = statement.effects()
    if effects.stopped_at is not None:
        raise UnsupportedError(
            f"a statement is not understood: {_shortened(statement.text)}",
            hint=f"what stands at {effects.stopped_at.text[:20]!r} is unknown; please report it",
        ).at(statement.file, statement.position)
    if effects.kind in _CHANGES_ROWS:
        raise UnsupportedError(
            f"rows are changed by a statement: {_shortened(statement.text)}",
            hint="landing needs rows in the log: set binlog_format=ROW on the source",
        ).at(statement.file, statement.position)
    return () if effects.is_temporary else tuple(_steps(statement, effects, scope))


def _steps(statement: Statement, effects: StatementEffects, scope: Scope) -> Iterator[Step]:
    kind = effects.kind
    if kind in _CREATES:
        yield from _create_steps(statement, effects, scope)
    elif kind in _DROPS:
        yield from map(Drop, effects.drops)
    elif kind is StatementKind.TRUNCATE_TABLE:
        yield from map(Truncate, effects.writes)
    elif kind is StatementKind.DROP_DATABASE:
        yield from map(DropDatabase, effects.databases)
    elif kind is StatementKind.ALTER_TABLE:
        yield from _alter_steps(statement, effects)
    yield from (Rename(old, new) for old, new in effects.renames)
    for first, last in effects.net_renames:
        if scope.includes(last) and not scope.includes(first):
            yield Abandon(last, f"it was {first.plain} before, which is not landed")
        elif not scope.includes(last):
            yield Drop(last)


def _create_steps(statement: Statement, effects: StatementEffects, scope: Scope) -> Iterator[Step]:
    table = effects.writes[0]
    if not effects.if_exists:
        yield Drop(table)  # either it did not exist, or OR REPLACE dropped it
    if not scope.includes(table):
        return
    if effects.kind is StatementKind.CREATE_SEQUENCE:
        yield Abandon(table, "it is a sequence, whose rows are no table's")
    elif effects.kind is StatementKind.CREATE_TABLE_LIKE:
        yield from (CreateLike(table, like) for like in effects.reads[:1])
    else:
        # Where its columns are not understood it comes with its first rows.
        with suppress(StatementError):
            columns = created_columns(statement.text, **statement.quoting)
            schema = pa.schema([(each.name, _arrow_type(each.definition)) for each in columns])
            yield Create(table, schema)


def _alter_steps(statement: Statement, effects: StatementEffects) -> Iterator[Step]:
    table = effects.writes[0]
    try:
        changes = column_changes(statement.text, **statement.quoting)
    except StatementError as error:
        yield Abandon(table, f"ALTER TABLE cannot be followed: {error}")
        return
    for change in changes:
        if isinstance(change, AddColumn):
            yield _add_step(statement, table, change)
        elif isinstance(change, DropColumn):
            yield Remove(table, change.name)
        elif isinstance(change, RenameColumn):
            yield RenameTo(table, change.old, change.new)
        elif isinstance(change, ChangeRows):
            reason = f"the log does not tell which rows {change.action} changes"
            yield from (Abandon(each, reason) for each in effects.writes)
        elif change.is_first or change.after:
            yield Move(table, change.name, change.after)


def _add_step(statement: Statement, table: TableName, change: AddColumn) -> Step:
    definition = change.definition
    data_type = _arrow_type(definition)
    if definition.is_computed:
        return Abandon(table, f"the log does not tell the values of the new column {change.name}")
    try:
        value = _fill(definition, data_type, statement.timestamp)
    except (ValueError, InvalidOperation):
        return Abandon(table, f"the default of the new column {change.name} is no constant")
    return Add(table, change, data_type, value)


def _arrow_type(definition: ColumnDefinition) -> pa.DataType:
    column = logged_column(definition)
    return pa.binary() if column is None else arrow_type(column)


def _fill(definition: ColumnDefinition, data_type: pa.DataType, timestamp: int) -> object:
    """The value of a new column in rows that exist.

    Raises:
        ValueError: If the text does not tell it.
    """
    default = definition.default
    if default and default[0].word in _NOW:
        if definition.type_name != "TIMESTAMP":
            raise ValueError("the local time of a session whose time zone is not known")
        return datetime.fromtimestamp(timestamp, UTC)
    if default:
        text = literal(default)
        return None if text is None else _value(text, definition, data_type)
    if definition.is_nullable:
        return None
    return _implicit(definition, data_type)


def _implicit(definition: ColumnDefinition, data_type: pa.DataType) -> object:
    """What NOT NULL without a DEFAULT gives; zero dates are NULL here as everywhere."""
    if definition.type_name == "ENUM":
        return definition.type_arguments[0]
    if definition.type_name == "TIME":
        return _value("00:00:00", definition, data_type)
    if pa.types.is_string(data_type):
        return ""
    if pa.types.is_binary(data_type):
        return b""
    if pa.types.is_temporal(data_type):
        return None
    return _value("0", definition, data_type)


def _value(text: str, definition: ColumnDefinition, data_type: pa.DataType) -> object:
    if pa.types.is_integer(data_type):
        return int(Decimal(text))
    if isinstance(data_type, pa.Decimal128Type):
        return round(Decimal(text), data_type.scale)
    if pa.types.is_floating(data_type):
        return float(text)
    if pa.types.is_date(data_type):
        return None if text.startswith("0000") else date.fromisoformat(text)
    if pa.types.is_timestamp(data_type):
        return _time(text, data_type)
    if pa.types.is_binary(data_type):
        return text.encode()
    if definition.type_name == "TIME":
        raise ValueError("the server may write it in another form")
    return text


def _time(text: str, data_type: pa.DataType) -> datetime | None:
    if text.startswith("0000"):
        return None
    if has_zone(data_type):
        raise ValueError("the local time of a session whose time zone is not known")
    return datetime.fromisoformat(text)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def tables_of(step: Step) -> tuple[TableName, ...]:
    """The tables that a step names."""
    if isinstance(step, Rename):
        return step.old, step.new
    return () if isinstance(step, DropDatabase) else (step.table,)
