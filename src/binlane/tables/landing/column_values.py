"""Values of columns, converted one by one: what all conversions share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from decimal import Context, Decimal, localcontext
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.log.codec.types import Flavor
from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.columnar.arrow_types import has_zone
from binlane.tables.landing.column_families import (
    binary_bytes,
    decimal_digits,
    family_of,
    first_number,
)

Values = Any
"""A `pa.ChunkedArray` of any type, whose stubs know no such thing."""
Convert = Callable[[Any], Any]

_ZEROS: Final = {
    "UUID": "00000000-0000-0000-0000-000000000000",
    "INET4": "0.0.0.0",  # noqa: S104 - a value
    "INET6": "::",
}
_YEARS: Final = (1901, 2155)


class UnknownValuesError(ValueError):
    """The log does not tell what became of the values of a column; the text says why."""


def mapped(values: Values, convert: Convert, data_type: pa.DataType) -> Values:
    """Convert each distinct value once; NULL stays NULL."""
    encoded: Any = pc.dictionary_encode(values.combine_chunks())
    distinct = encoded.dictionary.to_pylist()
    if has_zone(values.type):
        distinct = [value.astimezone(UTC) for value in distinct]
    made: Any = pa.array([convert(value) for value in distinct], data_type)
    return pa.chunked_array([made.take(encoded.indices)])


def is_encodable(text: str, codec: str) -> bool:
    """True if a codec can encode a text that is not empty."""
    try:
        return bool(text.encode(codec))
    except UnicodeEncodeError:
        return False


def same(value: Any) -> Any:
    """The value itself."""
    return value


def is_number(data_type: pa.DataType) -> bool:
    """True if values of a type are numbers."""
    return bool(pa.types.is_decimal(data_type) or pa.types.is_integer(data_type))


def of_decimal(convert: Convert) -> Convert:
    """Return the conversion for a number that is a text, since it has too many digits."""
    return lambda value: convert(Decimal(value))


def without_zero(convert: Convert) -> Convert:
    """Into a column that numbers rows: 0 gets a number that the log does not tell."""

    def checked(value: Any) -> Any:
        found = convert(value)
        if not found:
            raise UnknownValuesError("0 became a number that the server chose")
        return found

    return checked


def year(value: int) -> int:
    """A number into a YEAR."""
    if value and not _YEARS[0] <= value <= _YEARS[1]:
        raise UnknownValuesError(f"{value} is no year")
    return value


def bits(highest: int, value: int) -> int:
    """A number into a BIT of so many values."""
    if value < 0:
        raise UnknownValuesError("a negative number became bits")
    return min(value, highest)


def datetime_text(digits: int, value: datetime) -> str:
    """A DATETIME as text, with so many digits of its fraction."""
    text = value.strftime("%Y-%m-%d %H:%M:%S")
    text = text.rjust(19, "0")  # years before 1000
    return text + (f".{value.microsecond:06d}"[: digits + 1] if digits else "")


def exactly() -> AbstractContextManager[Context]:
    """A context in which no digit of a decimal gets lost."""
    return localcontext(prec=100)


def instead_of_null(column: TableColumn, data_type: pa.DataType, flavor: Flavor | None) -> object:
    """Return the value that replaces NULL without strict mode, and in rows that get a NOT NULL column.

    Raises:
        NotToldError: If the log does not tell the value.
    """
    family = family_of(column)
    if family == "JSON" and flavor is not Flavor.MARIADB:
        if flavor is None:
            raise UnknownValuesError("the log does not tell which server wrote it")
        return "null"
    if family in _ZEROS:
        return _ZEROS[family]
    if family == "TIME":
        digits = first_number(column) or 0
        return "00:00:00" + (f".{'0' * digits}" if digits else "")
    if pa.types.is_string(data_type):
        return (
            format(Decimal(0).scaleb(-decimal_digits(column)[1]), "f")
            if family == "DECIMAL"
            else ""
        )
    if pa.types.is_binary(data_type):
        if family == "VECTOR":
            raise UnknownValuesError("a vector has no default value")
        return bytes(binary_bytes(column))
    return Decimal(0) if pa.types.is_decimal(data_type) else 0
