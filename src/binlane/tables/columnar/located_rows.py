"""Rows events of one table → record batches, by kernels: find every value, then convert columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np
import pyarrow as pa

from binlane.log.codec.types import EventType
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import Bytes
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.tables.columnar.change_arrays import ROWS_MAX, FirstNumbers, change_arrays
from binlane.tables.columnar.conversions import Convert, conversion, value_bytes
from binlane.tables.columnar.noted_events import NotedEvents, Small
from binlane.tables.columnar.table_schema import (
    INVALID_DATES,
    AbsentColumns,
    TableSchema,
    absent_columns,
    column_name,
)

_CELLS: Final = 1 << 19
SCRATCH_CELLS: Final = _CELLS + 3 * ROWS_MAX
_ROWS_MIN: Final = 64
_EFFECTS: Final = np.zeros(256, np.int32)
for _kind, _effect in (
    ("WRITE_ROWS", layout.INSERTS),
    ("UPDATE_ROWS", layout.UPDATES),
    ("DELETE_ROWS", layout.DELETES),
):
    for _form in ("", "_V1", "_COMPRESSED", "_COMPRESSED_V1"):
        _EFFECTS[EventType[_kind + _form]] = _effect


@dataclass(slots=True, kw_only=True)
class Located:
    """The own columns of some images of one table, before they are a batch.

    Attributes:
        arrow: The Arrow schema of the batch that these columns go into.
        notes: Facts about the images, as `locate` gives them.
    """

    schema: TableSchema
    arrow: pa.Schema
    arrays: list[pa.Array[Any]]
    notes: Small

    def batch(self, noted: NotedEvents, first: FirstNumbers | None) -> pa.RecordBatch:
        """The batch, with the change columns that `change_arrays` makes."""
        arrays = change_arrays(self.schema.change_names, noted, self.notes, first)
        return pa.RecordBatch.from_arrays([*arrays, *self.arrays], schema=self.arrow)


class LocatedRows:
    """Makes batches of one table's rows events.

    Args:
        schema: The schema of the table's batches.
        scratch: Room for what lives no longer than it takes to make a batch.

    Raises:
        UnexpectedError: If the table has a column that the kernels cannot step over.
    """

    def __init__(self, schema: TableSchema, scratch: Small) -> None:
        self.schema = schema
        self._scratch = scratch
        width = len(schema.columns)
        self._columns = np.full((2, width), -1, np.int32)
        self._columns[layout.COLUMN_KIND] = [value_bytes(column) for column in schema.columns]
        self._columns[layout.COLUMN_TARGET, list(schema.chosen)] = range(len(schema.chosen))
        self._conversions: list[Convert] = [
            conversion(schema.columns[index]) for index in schema.chosen
        ]
        self._names = [column_name(schema.columns[index]) for index in schema.chosen]
        self._rows_max = max(_ROWS_MIN, min(ROWS_MAX, _CELLS // max(1, len(schema.chosen))))
        self._present = np.zeros(4 * width, np.int32)

    def located(self, noted: NotedEvents, picked: Small) -> Iterator[Located]:
        """The rows of some events, at most a few thousand at once.

        Args:
            noted: Noted events of any tables.
            picked: Columns of their table: the events of this table, in log order.

        Raises:
            UnexpectedError: If an image or a value is not what the table's columns say.
        """
        state = np.zeros(layout.LOCATE_SIZE, np.int64)
        chosen, rows_max = len(self._names), self._rows_max
        scratch = self._scratch
        if scratch.shape[0] < (chosen + 3) * rows_max:
            scratch = np.empty((chosen + 3) * rows_max, np.int32)
        positions = scratch[: chosen * rows_max].reshape(chosen, rows_max)
        notes = scratch[chosen * rows_max :][: 3 * rows_max].reshape(3, rows_max)
        while True:
            nulls = np.zeros(chosen, np.uint8)
            absent = np.zeros(self._present.shape[0] // 2, np.uint8)
            state[layout.LOCATE_ROWS] = 0
            status = kernels().locate(
                noted.data,
                self._columns,
                _EFFECTS,
                noted.events,
                picked,
                state,
                self._present,
                absent,
                positions,
                nulls,
                notes,
            )
            if status == layout.LOCATE_DAMAGED:
                raise UnexpectedError
            rows = int(state[layout.LOCATE_ROWS])
            if rows:
                yield self._located(noted, positions[:, :rows], notes[:, :rows], nulls, absent)
            if status == layout.LOCATE_DONE:
                return

    def _located(
        self, noted: NotedEvents, positions: Small, notes: Small, nulls: Bytes, absent: Bytes
    ) -> Located:
        arrays = []
        invalid_dates = 0
        columns = zip(positions, self._conversions, nulls.tolist(), strict=True)
        for row, convert, has_nulls in columns:
            values, invalid = convert(noted.data, row, bool(has_nulls))
            arrays.append(values)
            invalid_dates += invalid
        arrow = self.schema.arrow
        told = self._absent(absent)
        if told or invalid_dates:
            metadata = arrow.metadata | told
            if invalid_dates:
                metadata[INVALID_DATES] = b"%d" % invalid_dates
            arrow = arrow.with_metadata(metadata)
        return Located(schema=self.schema, arrow=arrow, arrays=arrays, notes=notes.copy())

    def _absent(self, absent: Bytes) -> dict[bytes, bytes]:
        """The columns that images lack, as metadata."""
        if not absent.any():
            return {}
        chosen = list(self.schema.chosen)
        before, after = (
            frozenset(name for name, is_absent in zip(self._names, half, strict=True) if is_absent)
            for half in absent.reshape(2, -1)[:, chosen]
        )
        return AbsentColumns(before, after).metadata()


def merged(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one, with the metadata of all."""
    if len(batches) == 1:
        return batches[0]
    metadata = dict(batches[0].schema.metadata)
    invalid = sum(int(batch.schema.metadata.get(INVALID_DATES, b"0")) for batch in batches)
    metadata |= reduce(or_, [absent_columns(each.schema) for each in batches]).metadata()
    metadata.pop(INVALID_DATES, None)
    if invalid:
        metadata[INVALID_DATES] = b"%d" % invalid
    plain = [batch.replace_schema_metadata(None) for batch in batches]
    whole = pa.Table.from_batches(plain).combine_chunks().to_batches()[0]
    return whole.replace_schema_metadata(metadata)
