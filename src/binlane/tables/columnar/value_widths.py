"""Bytes that a column's values take in an image, as kernels step over them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.log.codec.columns import Column
from binlane.log.codec.numbers import decimal_length
from binlane.log.codec.types import COUNTED_BLOBS, COUNTED_STRINGS, ColumnType
from binlane.log.grouping.unexpected import UnexpectedError

_ONE_BYTE_LENGTH_MAX: Final = 255
INTEGER_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        ColumnType.TINY: 1,
        ColumnType.SHORT: 2,
        ColumnType.INT24: 3,
        ColumnType.LONG: 4,
        ColumnType.LONGLONG: 8,
    }
)
FIXED_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        **INTEGER_BYTES,
        ColumnType.NULL: 0,
        ColumnType.FLOAT: 4,
        ColumnType.DOUBLE: 8,
        ColumnType.YEAR: 1,
        ColumnType.DATE: 3,
        ColumnType.NEWDATE: 3,
    }
)
_FRACTION_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {ColumnType.TIME2: 3, ColumnType.DATETIME2: 5, ColumnType.TIMESTAMP2: 4}
)


def value_bytes(column: Column) -> int:
    """Bytes that a value takes, or minus the bytes of its length.

    Raises:
        UnexpectedError: If that is not known, or impossible.
    """
    kind = column.type
    if kind in FIXED_BYTES:
        return FIXED_BYTES[kind]
    if kind in _FRACTION_BYTES and column.fraction_digits <= 6:
        return _FRACTION_BYTES[kind] + (column.fraction_digits + 1) // 2
    if kind is ColumnType.NEWDECIMAL and column.scale <= column.precision:
        return decimal_length(column.precision, column.scale)
    if kind is ColumnType.BIT and column.bits <= 64:
        return (column.bits + 7) // 8
    if kind in {ColumnType.ENUM, ColumnType.SET} and column.pack_length <= 8:
        return column.pack_length
    if kind in COUNTED_STRINGS:
        return -1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else -2
    if kind in COUNTED_BLOBS and 1 <= column.metadata <= 4:
        return -column.metadata
    raise UnexpectedError
