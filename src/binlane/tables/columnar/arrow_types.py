"""Column types → Arrow types, and decoded values → what Arrow takes for them.

The types are those of the public contract of `land`. A value that an Arrow type cannot hold (a zero
or partial date) becomes NULL; whoever converts counts it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from binlane.log.codec.charsets import BINARY_COLLATION
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType

Converter = Callable[[Any], object]
"""Function from a decoded value, never NULL, to one of the column's Arrow type; None without room."""

DECIMAL_DIGITS_MAX: Final = 38
UNSIGNED_LONG: Final = pa.decimal128(20, 0)
_BIT_LONG_MAX: Final = 63

_SIGNED: Final[Mapping[ColumnType, pa.DataType]] = MappingProxyType(
    {
        ColumnType.TINY: pa.int8(),
        ColumnType.SHORT: pa.int16(),
        ColumnType.INT24: pa.int32(),
        ColumnType.LONG: pa.int32(),
        ColumnType.LONGLONG: pa.int64(),
    }
)
_UNSIGNED: Final[Mapping[ColumnType, pa.DataType]] = MappingProxyType(
    {
        ColumnType.TINY: pa.int16(),
        ColumnType.SHORT: pa.int32(),
        ColumnType.INT24: pa.int32(),
        ColumnType.LONG: pa.int64(),
        ColumnType.LONGLONG: UNSIGNED_LONG,
    }
)
_FIXED: Final[Mapping[ColumnType, pa.DataType]] = MappingProxyType(
    {
        ColumnType.FLOAT: pa.float32(),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.YEAR: pa.int64(),
        ColumnType.DATE: pa.date32(),
        ColumnType.NEWDATE: pa.date32(),
        ColumnType.DATETIME: pa.timestamp("us"),
        ColumnType.DATETIME2: pa.timestamp("us"),
        ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
        ColumnType.TIMESTAMP2: pa.timestamp("us", tz="UTC"),
        ColumnType.TIME: pa.string(),
        ColumnType.TIME2: pa.string(),
        ColumnType.ENUM: pa.string(),
        ColumnType.SET: pa.string(),
        ColumnType.JSON: pa.string(),
        ColumnType.GEOMETRY: pa.binary(),
        ColumnType.VECTOR: pa.binary(),
        ColumnType.NULL: pa.null(),
    }
)
_TEXT_UNLESS_BINARY: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VARCHAR_COMPRESSED,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
    }
)
_BINARY_UNLESS_TEXT: Final = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
    }
)


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type that holds every value of a column.

    Where the log names no character set (MariaDB's default metadata), CHAR and VARCHAR are taken as
    text and TEXT and BLOB as bytes: either can be turned into the other without loss. A column that
    a schema tells to be a UUID, an address or MariaDB's JSON is text, too.
    """
    kind = column.type
    if column.logical is not None:
        return pa.string()
    if kind in _SIGNED:
        return (_UNSIGNED if column.is_unsigned else _SIGNED)[kind]
    if kind in _FIXED:
        return _FIXED[kind]
    if kind is ColumnType.BIT:
        return UNSIGNED_LONG if column.bits > _BIT_LONG_MAX else pa.int64()
    if kind is ColumnType.NEWDECIMAL:
        return (
            pa.decimal128(column.precision, column.scale)
            if column.precision <= DECIMAL_DIGITS_MAX
            else pa.string()
        )
    if kind in _TEXT_UNLESS_BINARY:
        return pa.binary() if column.collation_id == BINARY_COLLATION else pa.string()
    if kind in _BINARY_UNLESS_TEXT:
        is_text = column.collation_id not in {None, BINARY_COLLATION}
        return pa.string() if is_text else pa.binary()
    return pa.string()


def converter(data_type: pa.DataType) -> Converter | None:
    """Return the function that turns a column's decoded values into its Arrow type; None if not needed."""
    if pa.types.is_date(data_type):
        return _date
    if pa.types.is_timestamp(data_type):
        return _datetime_utc if has_zone(data_type) else _datetime
    if pa.types.is_string(data_type):
        return _text
    if pa.types.is_binary(data_type):
        return _bytes
    return None


def has_zone(data_type: pa.DataType) -> bool:
    """True of a type of moments, as TIMESTAMP has; False of local times, as DATETIME has."""
    return isinstance(data_type, pa.TimestampType) and data_type.tz is not None


def _date(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _datetime(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _datetime_utc(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError:
        return None


def _text(value: object) -> str:
    """Text as it is; bytes that are none in the JSON form that `cat` gives them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return json.dumps({"base64": base64.b64encode(value).decode()})
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    from binlane.log.codec.json_diff import JsonDiffs  # noqa: PLC0415 - few tables have JSON
    from binlane.log.codec.json_text import json_text  # noqa: PLC0415
    from binlane.log.codec.json_values import json_value  # noqa: PLC0415

    if isinstance(value, JsonDiffs):
        return json_text(json_value(value, ColumnType.JSON))
    return str(value)  # a JsonDocument, or the number of an ENUM or SET whose members are unknown


def _bytes(value: str | bytes) -> bytes:
    """Bytes as stored; without a character set in the log they came as text if they are UTF-8."""
    return value.encode() if isinstance(value, str) else value
