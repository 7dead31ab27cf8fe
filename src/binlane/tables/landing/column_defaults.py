"""Values that ADD COLUMN puts into existing rows: a literal as the server stores it, or the type's own."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.landing.column_changes import AddColumn
from binlane.tables.landing.column_conversions import Conversion
from binlane.tables.landing.column_families import family_of, first_number
from binlane.tables.landing.column_values import NotToldError, instead_of_null

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
        raise NotToldError("it is an expression")
    if change.value is not None:
        return _literal(change.value, conversion)
    if definition.default is not None or definition.is_nullable:
        return None
    return _implicit(conversion)


def _now(definition: TableColumn, timestamp: int) -> datetime:
    if definition.type_name != "TIMESTAMP":
        raise NotToldError("it is the local time of a session whose time zone is not known")
    if first_number(definition):
        raise NotToldError("the log has its time in whole seconds only")
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
