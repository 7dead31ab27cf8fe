"""AUTO_INCREMENT values that the server chose, as rows have them, and as their statement makes them.

A replica that runs a statement is told the first value and counts on by `auto_increment_increment`.
The source may have gone on otherwise: two sessions that insert at the same time take values in
turns. Then only the rows are right.

Source: MariaDB 10.11 and MySQL 9.7 sql/handler.cc, `handler::update_auto_increment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from binlane.binlogs.routing.row_selection import table_name
from binlane.errors import CodecError
from binlane.log.codec.columns import Value, decode_rows
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.rows import (
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    uncompressed,
)
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.grouping.scanner import Small
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.window import Bytes
from binlane.log.kernels.load import kernels
from binlane.statements.session.group_plan import Generated

_AUTO_INCREMENT: Final = 3
_STEPS_KEPT: Final = 256
_TABLES_KEPT: Final = 1024
_LARGEST: Final = (1 << 63) - 1
_BITS: Final = {
    ColumnType.TINY: 8,
    ColumnType.SHORT: 16,
    ColumnType.INT24: 24,
    ColumnType.LONG: 32,
    ColumnType.LONGLONG: 64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Facts about the generated values that the rows do not tell.

    Attributes:
        first: The value that was chosen first; 0 if each new row got one.
        status_vars: Status variables of the statement: by how much values grow.
    """

    first: int
    status_vars: bytes


def chosen_ids(
    rows: Sequence[Event], generated: Generated, chosen: Chosen, *, file: str, format_: Format
) -> int | str:
    """Give the first value that the server chose for a statement, or why it does not tell the others.

    Args:
        rows: The statement's events in the source's group.
        generated: Column that holds the values in the rows.
        chosen: Facts about the values that the rows do not tell.
        file: Name of the events' file, for errors.
        format_: Format of the FORMAT_DESCRIPTION before the events.
    """
    try:
        pairs = [
            (body, owner) for _, body, owner in rows_with_tables(rows, file=file, format_=format_)
        ]
    except CodecError as error:
        return f"AUTO_INCREMENT values cannot be read: {error}"
    return first_chosen(pairs, generated, chosen, flavor=format_.flavor)


def first_chosen(
    rows: Iterable[tuple[RowsEvent, TableMapEvent]],
    generated: Generated,
    chosen: Chosen,
    *,
    flavor: Flavor,
) -> int | str:
    """Give the first chosen value as `chosen_ids` does, of rows events, each with its table."""
    try:
        values = list(_values(rows, generated, flavor=flavor))
        increment, offset = _step(chosen.status_vars)
    except CodecError as error:
        return f"AUTO_INCREMENT values cannot be read: {error}"
    if None in values:
        return "AUTO_INCREMENT values are no whole numbers"
    found = [value for value in values if value is not None]
    first = chosen.first or (found[0] if found else 0)
    if first not in found:
        return "no new row has the AUTO_INCREMENT value that was chosen first"
    behind = found[found.index(first) :]
    expected = first
    for value in behind:
        if value != expected:
            return "AUTO_INCREMENT values do not follow one another"
        expected = _following(value, increment, offset)
    return first


def plainly_chosen(
    arrays: tuple[Bytes, Small],
    piece: tuple[int, int],
    table_map: TableMapEvent,
    generated: Generated,
    chosen: Chosen,
    *,
    flavor: Flavor,
) -> int | None:
    """Give the first chosen value as `chosen_ids` does; None if only that can tell.

    Args:
        arrays: The bytes of a run, and the index of its events.
        piece: The statement's first event in the run, and the one behind its last one.
        table_map: Table map of the one table that the statement changes.
        generated: Column that holds the values in the rows.
        chosen: Facts about the values that the rows do not tell.
        flavor: Flavor of the source's own server.
    """
    widths = _widths(table_map, generated.column, flavor)
    if widths is None:
        return None
    try:
        step = _step(chosen.status_vars)
    except CodecError:
        return None
    if max(chosen.first, *step) > _LARGEST:
        return None  # of BIGINT UNSIGNED, beyond what the kernel counts with
    told = np.array((generated.column, chosen.first, *step), np.int64)
    value = kernels().chosen(*arrays, piece, widths, told)
    return None if value < 0 else int(value)


@lru_cache(_TABLES_KEPT)
def _widths(table_map: TableMapEvent, column: int, flavor: Flavor) -> Small | None:
    """The widths of a table's columns; None if the column holds no whole numbers."""
    try:
        # Signs bear on no length.
        columns = table_columns(replace(table_map, optional_metadata=b""), flavor=flavor)
    except CodecError:
        return None
    widths = value_widths(columns)
    if widths is None or column >= len(columns) or columns[column].type not in _BITS:
        return None
    return np.array(widths, np.int32)


def _values(
    rows: Iterable[tuple[RowsEvent, TableMapEvent]], generated: Generated, *, flavor: Flavor
) -> Iterator[int | None]:
    """The column's values in new rows; None for what is no whole number.

    REPLACE updates a row in the place of deleting it and inserting another one; its value is new.
    """
    for body, owner in rows:
        if table_name(owner) != generated.table:
            continue
        if not isinstance(body, WriteRowsEvent | UpdateRowsEvent):
            continue
        columns = table_columns(owner, flavor=flavor)
        if generated.column >= len(columns):
            raise CodecError(f"the table has no column {generated.column + 1}")
        bits = _BITS.get(columns[generated.column].type)
        for before, after in decode_rows(uncompressed(body), columns):
            assert after is not None, "the row is there afterwards"
            value = after[generated.column]
            if before is None or before[generated.column] != value:
                yield _whole(value, bits)


def _whole(value: Value, bits: int | None) -> int | None:
    """A value as a number without a sign, as those are that a server chooses."""
    if bits is not None and isinstance(value, int):
        return value & ((1 << bits) - 1)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


@lru_cache(_STEPS_KEPT)
def _step(status_vars: bytes) -> tuple[int, int]:
    """Give the step by which values grow, and their beginning."""
    for variable in decode_status_vars(status_vars):
        if variable.code == _AUTO_INCREMENT and isinstance(variable.value, tuple):
            increment, offset = variable.value
            return increment, offset
    return 1, 1


def _following(value: int, increment: int, offset: int) -> int:
    """The value that a server chooses behind another one."""
    if increment <= 1:
        return value + 1
    if value < offset:
        return offset
    return (value - offset + increment) // increment * increment + offset
