"""Counts of the rows of events, without decoding their values; pure.

A row's end is found from the columns' lengths alone: fixed ones are added up, others begin with how
long they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.columns import Column, decode_rows
from binlane.log.codec.numbers import decimal_length
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import COUNTED_BLOBS, COUNTED_STRINGS, ColumnType, EventType, Flavor

_ONE_BYTE_LENGTH_MAX: Final = 255
_PREFIX_MAX: Final = 4
# MariaDB 5.3 wrote others, of other lengths, under their codes: only their values tell.
_OLD_TEMPORAL: Final = frozenset({ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP})


class _Width(NamedTuple):
    """Size of one value: a number of bytes, or that of its length field and then that length."""

    fixed: int = 0
    prefix: int = 0


def count_rows(event: RowsEvent, columns: Sequence[Column]) -> int:
    """Rows of an event; an UPDATE's pair of images is one.

    Args:
        event: The event, whose images are not copied.
        columns: The columns of the event's table.

    Raises:
        UnsupportedError: If a column's length cannot be known.
        CodecError: If the last row ends inside a value.
    """
    if event.event_type == EventType.PARTIAL_UPDATE_ROWS or not _OLD_TEMPORAL.isdisjoint(
        column.type for column in columns
    ):
        return sum(1 for _ in decode_rows(event, columns, applies_diffs=False))
    widths = tuple(map(_width, columns))
    shapes = [_shape(widths, event.columns_present)]
    if event.columns_present_after is not None:
        shapes.append(_shape(widths, event.columns_present_after))
    data, offset, rows = event.plain_images, 0, 0
    while offset < len(data):
        start = offset
        for shape in shapes:
            offset = shape.end(data, offset)
        if offset > len(data):
            raise TruncatedError("the last row ends inside a value", offset=offset)
        if offset == start:
            raise CodecError("bytes follow where row images have no columns", offset=start)
        rows += 1
    return rows


def count_images(event: RowsEvent, table_map: TableMapEvent) -> int:
    """Row images of an event; one if they cannot be counted.

    Args:
        event: The event, whose images are not copied.
        table_map: The map of its table, in a log of any flavor.
    """
    bare = replace(table_map, optional_metadata=b"")  # it bears on no length
    try:
        rows = count_rows(event, table_columns(bare, flavor=Flavor.MARIADB))
    except CodecError:
        return 1
    return rows if event.columns_present_after is None else 2 * rows


def value_widths(columns: Sequence[Column]) -> tuple[int, ...] | None:
    """Return the size of each column's values; negative: the size of their length field.

    None where only `count_rows` can tell the rows.
    """
    if not _OLD_TEMPORAL.isdisjoint(column.type for column in columns):
        return None
    try:
        widths = tuple(map(_width, columns))
    except UnsupportedError:
        return None
    if any(width.prefix > _PREFIX_MAX for width in widths):
        return None
    return tuple(-width.prefix if width.prefix else width.fixed for width in widths)


class _Shape(NamedTuple):
    """The columns that an image holds, their sizes, and the size of a row without NULLs."""

    widths: tuple[_Width, ...]
    joined: tuple[_Width, ...]

    def end(self, data: bytes, offset: int) -> int:
        """Return the end of an image, which may be behind the end of `data`."""
        bitmap_length = (len(self.widths) + 7) // 8
        nulls = int.from_bytes(data[offset : offset + bitmap_length], "little")
        offset += bitmap_length
        nulls &= (1 << len(self.widths)) - 1
        if not nulls:
            widths: Sequence[_Width] = self.joined
        else:
            widths = [width for index, width in enumerate(self.widths) if not nulls >> index & 1]
        for fixed, prefix in widths:
            offset += fixed
            if prefix:
                offset += prefix + int.from_bytes(data[offset : offset + prefix], "little")
        return offset


@lru_cache(maxsize=256)
def _shape(widths: tuple[_Width, ...], present: bytes) -> _Shape:
    bits = int.from_bytes(present, "little")
    there = tuple(width for index, width in enumerate(widths) if bits >> index & 1)
    joined: list[_Width] = []
    fixed = 0
    for width in there:
        fixed += width.fixed
        if width.prefix:
            joined.append(_Width(fixed, width.prefix))
            fixed = 0
    return _Shape(there, (*joined, _Width(fixed)))


@lru_cache(maxsize=4096)
def _width(column: Column) -> _Width:
    if column.type in _FIXED:
        return _Width(fixed=_FIXED[column.type])
    measure = _MEASURES.get(column.type)
    if measure is None:
        raise UnsupportedError(f"values of {column.type.name} have no known length")
    return measure(column)


def _fraction(whole: int) -> Callable[[Column], _Width]:
    return lambda column: _Width(fixed=whole + (column.fraction_digits + 1) // 2)


def _string(column: Column) -> _Width:
    return _Width(prefix=1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else 2)


def _blob(column: Column) -> _Width:
    return _Width(prefix=column.metadata)


def _packed(column: Column) -> _Width:
    return _Width(fixed=column.pack_length)


_FIXED: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        ColumnType.NULL: 0,
        ColumnType.TINY: 1,
        ColumnType.YEAR: 1,
        ColumnType.SHORT: 2,
        ColumnType.INT24: 3,
        ColumnType.DATE: 3,
        ColumnType.NEWDATE: 3,
        ColumnType.LONG: 4,
        ColumnType.FLOAT: 4,
        ColumnType.LONGLONG: 8,
        ColumnType.DOUBLE: 8,
    }
)
_MEASURES: Final[Mapping[ColumnType, Callable[[Column], _Width]]] = MappingProxyType(
    {
        ColumnType.NEWDECIMAL: lambda column: _Width(
            fixed=decimal_length(column.precision, column.scale)
        ),
        ColumnType.BIT: lambda column: _Width(fixed=(column.bits + 7) // 8),
        ColumnType.TIME2: _fraction(3),
        ColumnType.TIMESTAMP2: _fraction(4),
        ColumnType.DATETIME2: _fraction(5),
        ColumnType.ENUM: _packed,
        ColumnType.SET: _packed,
        **dict.fromkeys(
            COUNTED_STRINGS,
            _string,
        ),
        **dict.fromkeys(
            COUNTED_BLOBS,
            _blob,
        ),
    }
)
