"""Effects of ALTER TABLE on columns and on values in rows, for a reader who keeps a copy of them.

No log writes the rows anew after an ALTER TABLE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.table_definitions import TableColumn, constant, defined_column, is_now
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    CreateTable,
    DefinedColumn,
)
from binlane.tables.landing.column_conversions import Conversion
from binlane.tables.landing.column_families import family_of, first_number
from binlane.tables.landing.column_values import UnknownValuesError, instead_of_null


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column.

    Attributes:
        column: The column's definition; the table's character set is not in it.
        value: The default as text, if it is a constant; None of NULL, and without a DEFAULT.
        has_value: Whether `value` tells what existing rows get; None then means NULL or the type's
            own default.
        is_numbered: Whether rows get numbers that the text does not tell: the column is
            AUTO_INCREMENT.
        is_first: Whether the column becomes the table's first.
        after: The column before this one; None with `is_first` False: the column comes at the end.
        may_exist: Whether a column of this name that already exists stays.
    """

    column: TableColumn
    value: str | None = None
    has_value: bool = True
    is_numbered: bool = False
    is_first: bool = False
    after: str | None = None
    may_exist: bool = False

    @property
    def name(self) -> str:
        """The name of the new column."""
        return self.column.name


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column that is gone."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column that has another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumn:
    """A column with another definition, to which the server converts the values.

    Attributes:
        column: The column's new definition; the table's character set is not in it.
        old_name: The column's name before the statement.
        is_first: Whether the column becomes the table's first.
        after: The column before this one; None with `is_first` False: the column stays where it is.
    """

    column: TableColumn = field(compare=False)
    old_name: str
    is_first: bool = False
    after: str | None = None

    @property
    def name(self) -> str:
        """The column's name after the statement."""
        return self.column.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows:
    """Rows come or go with their partition or tablespace.

    Attributes:
        action: The words of the statement's action.
        is_all: Whether all rows of the table go, and none comes.
    """

    action: str
    is_all: bool = False


ColumnChange = AddColumn | DropColumn | RenameColumn | ModifyColumn | ChangeRows

_CHANGES_ROWS: Final = frozenset(
    {"DROP", "TRUNCATE", "EXCHANGE", "CONVERT", "CONVERT TABLE", "DISCARD", "IMPORT"}
)
"""Actions on partitions that change rows."""


def column_changes(facts: StatementFacts) -> tuple[ColumnChange, ...]:
    """Return the changes that an ALTER TABLE makes to columns and rows, in the order of the text.

    Args:
        facts: Facts of the statement; names of the table, keys and options are left out.
    """
    node = facts.tree
    assert isinstance(node, AlterTable)
    return tuple(change for action in node.actions for change in _changes(action, facts))


def created_columns(facts: StatementFacts) -> tuple[TableColumn, ...]:
    """The columns of a CREATE TABLE in order, without those of a SELECT; none of LIKE."""
    node = facts.tree
    assert isinstance(node, CreateTable)
    columns = (each for each in node.elements if isinstance(each, DefinedColumn))
    return tuple(defined_column(each, facts, None) for each in columns)


def _changes(action: AlterAction, facts: StatementFacts) -> Iterator[ColumnChange]:
    match action.kind:
        case "ADD COLUMN":
            for column in action.columns:
                yield _added(column, action, facts)
        case "DROP COLUMN":
            yield DropColumn(name=action.name)
        case "RENAME COLUMN":
            yield from _renamed(action.name, action.new_name)
        case "CHANGE COLUMN" | "MODIFY COLUMN":
            (column,) = action.columns
            yield from _renamed(action.name, column.name)
            yield ModifyColumn(
                column=defined_column(column, facts, None),
                old_name=action.name,
                is_first=action.position == "FIRST",
                after=action.after or None,
            )
        case "DISCARD TABLESPACE" | "IMPORT TABLESPACE":
            yield ChangeRows(action=action.kind)
        case "PARTITION" if action.words[0] in _CHANGES_ROWS:
            verb = action.words[0]
            words = verb if verb == "CONVERT TABLE" else f"{verb} PARTITION"
            yield ChangeRows(action=words, is_all=action.words == ("TRUNCATE", "ALL"))


def _renamed(old: str, new: str) -> Iterator[RenameColumn]:
    if new != old:
        yield RenameColumn(old=old, new=new)


def _added(node: DefinedColumn, action: AlterAction, facts: StatementFacts) -> AddColumn:
    value, has_value = None, True
    try:
        value = constant(node.default, facts)
    except ValueError:
        has_value = False
    column = defined_column(node, facts, None)
    return AddColumn(
        column=column,
        value=value,
        has_value=has_value and not is_now(node.default),
        is_numbered=column.is_auto_increment,
        is_first=action.position == "FIRST",
        after=action.after or None,
        may_exist=action.if_exists,
    )


_TEXT: Final = TableColumn(name="", type_name="VARCHAR", charset="ascii")
_INTEGER: Final = TableColumn(name="", type_name="BIGINT")
_DECIMAL: Final = TableColumn(name="", type_name="DECIMAL")
_DOUBLE: Final = TableColumn(name="", type_name="DOUBLE")
_KINDS: Final[tuple[tuple[str, TableColumn, Any], ...]] = (
    ("-?[0-9]+", _INTEGER, int),
    (r"-?([0-9]+\.[0-9]*|\.[0-9]+)", _DECIMAL, Decimal),
    (r"-?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", _DOUBLE, float),
)
"""Literals that are numbers: their text, a column of such, and what makes values of it."""
_YEAR_DIGITS: Final = 4
_NUMBERS: Final = frozenset({"INTEGER", "DECIMAL", "FLOAT", "DOUBLE"})


def value_in_old_rows(change: AddColumn, conversion: Conversion, timestamp: int) -> object:
    """The value of a new column in rows that exist.

    Args:
        change: The change that adds the column.
        conversion: The conversion from nothing into the column's definition, in the statement's
            session.
        timestamp: Time of the statement, in seconds since 1970.

    Raises:
        NotToldError: If the log does not tell the value.
    """
    definition = conversion.new
    if definition.default_form == "now":
        return _now(definition, timestamp)
    if not change.has_value:
        raise UnknownValuesError("it is an expression")
    if change.value is not None:
        return _literal(change.value, conversion)
    if definition.default is not None or definition.is_nullable:
        return None
    return _implicit(conversion)


def _now(definition: TableColumn, timestamp: int) -> datetime:
    if definition.type_name != "TIMESTAMP":
        raise UnknownValuesError("it is the local time of a session whose time zone is not known")
    if first_number(definition):
        raise UnknownValuesError("the log has its time in whole seconds only")
    return datetime.fromtimestamp(timestamp, UTC)


def _literal(text: str, conversion: Conversion) -> object:
    """A literal as the server stores it, which has refused one that does not fit, in any mode."""
    definition = conversion.new
    if pa.types.is_temporal(conversion.type) and text.startswith("0000"):
        return None
    old, value = _typed(text, definition)
    return replace(conversion, old=old, is_strict=True).of_literal(value)


def _typed(text: str, definition: TableColumn) -> tuple[TableColumn, Any]:
    """A literal as a value of a column of its own type; text that becomes a number is one."""
    family = family_of(definition)
    is_number = definition.default_form == "number"
    if is_number or family in _NUMBERS or (family == "YEAR" and len(text) == _YEAR_DIGITS):
        plain = text.strip(" ")
        for pattern, column, make in _KINDS:
            if re.fullmatch(pattern, plain):
                return column, make(plain)
    return _TEXT, text


def _implicit(conversion: Conversion) -> object:
    """Return the value of NOT NULL without a DEFAULT; zero dates are NULL here as everywhere."""
    definition, data_type = conversion.new, conversion.type
    if pa.types.is_temporal(data_type):
        return None
    if definition.type_name == "ENUM":
        return definition.arguments[0].rstrip(" ")
    return instead_of_null(definition, data_type, conversion.flavor)
