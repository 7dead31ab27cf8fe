"""Rows events of one table → record batches, by kernels: find every value, then convert columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlane.codec.event import Event, decode_event
from binlane.codec.format import Format
from binlane.codec.types import EventType
from binlane.columnar.conversions import (
    Convert,
    array,
    conversion,
    filled,
    value_bytes,
)
from binlane.columnar.table_schema import (
    CHANGE_COLUMNS,
    IMAGE,
    INVALID_DATES,
    TableSchema,
    column_name,
    primary_key_of,
)
from binlane.grouping.scanner import KnownTable
from binlane.grouping.unexpected import UnexpectedError
from binlane.grouping.window import PADDING, Bytes
from binlane.kernels import layout
from binlane.kernels.load import kernels

Small = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]

_CELLS: Final = 1 << 19
_ROWS_MAX: Final = 8128
SCRATCH_CELLS: Final = _CELLS + 3 * _ROWS_MAX
_ROWS_MIN: Final = 64
_MICROSECONDS: Final = 1_000_000
_EFFECTS: Final = np.zeros(256, np.int32)
for _kind, _effect in (
    ("WRITE_ROWS", layout.INSERTS),
    ("UPDATE_ROWS", layout.UPDATES),
    ("DELETE_ROWS", layout.DELETES),
):
    for _form in ("", "_V1", "_COMPRESSED", "_COMPRESSED_V1"):
        _EFFECTS[EventType[_kind + _form]] = _effect
_OPS: Final = ("insert", "update_before", "update_after", "delete")
_OP_ROOM: Final = 16
_OP_LENGTHS: Final = np.array([len(op) for op in _OPS], np.int32)
_OP_TEXTS: Final = np.frombuffer(
    b"".join(op.encode().ljust(_OP_ROOM) for op in _OPS) + bytes(PADDING), np.uint8
).copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedEvents:
    """Rows events in a buffer, with what their rows share.

    Attributes:
        data: The buffer.
        events: The table of noted events, as `scan` makes it.
        groups: Which of `texts` each event has.
        texts: GTIDs, `GTID_TEXT_MAX` bytes each.
        lengths: Of the GTIDs; 0 where there is none.
        positions: Of each event in the file.
        file: Base name of the file.
        tables: What the table of events means by its table maps.
        format_: Of the events.
    """

    data: Bytes
    events: Small
    groups: Small
    texts: Bytes
    lengths: Small
    positions: Numbers
    file: str
    tables: Sequence[KnownTable]
    format_: Format

    def gtid(self, index: int) -> str | None:
        """The GTID of an event's group."""
        group = int(self.groups[index])
        start, length = group * layout.GTID_TEXT_MAX, int(self.lengths[group])
        return self.texts[start : start + length].tobytes().decode() if length else None

    def event(self, index: int) -> Event:
        """Decode an event with the reference decoder.

        Raises:
            CodecError: If it is damaged.
        """
        start = int(self.events[layout.EVENT_OFFSET, index])
        end = int(self.events[layout.EVENT_END, index]) + self.format_.checksum_length
        data = self.data[start:end].tobytes()
        return decode_event(data, self.format_, position=int(self.positions[index]))


class LocatedRows:
    """Makes batches of one table's rows events.

    Args:
        schema: Of the table.
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
        self._key = frozenset(primary_key_of(schema.arrow))
        self._rows_max = max(_ROWS_MIN, min(_ROWS_MAX, _CELLS // max(1, len(schema.chosen))))
        self._present = np.zeros(4 * width, np.int32)
        metadata = {**schema.arrow.metadata, IMAGE: b"full"}
        self._full = schema.arrow.with_metadata(metadata)

    def batches(self, noted: NotedEvents, picked: Small) -> Iterator[pa.RecordBatch]:
        """The rows of some events, at most a few thousand a batch.

        Args:
            noted: Events of any tables.
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
                yield self._batch(noted, positions[:, :rows], notes, nulls, absent)
            if status == layout.LOCATE_DONE:
                return

    def _batch(
        self, noted: NotedEvents, positions: Small, notes: Small, nulls: Bytes, absent: Bytes
    ) -> pa.RecordBatch:
        rows = positions.shape[1]
        arrays = _change_arrays(noted, notes, rows)
        invalid_dates = 0
        columns = zip(positions, self._conversions, nulls.tolist(), strict=True)
        for row, convert, has_nulls in columns:
            values, invalid = convert(noted.data, row, bool(has_nulls))
            arrays.append(values)
            invalid_dates += invalid
        is_full = self._is_full(absent)
        if is_full and not invalid_dates:
            return pa.RecordBatch.from_arrays(arrays, schema=self._full)
        metadata = dict(self._full.metadata)
        if not is_full:
            metadata[IMAGE] = b"partial"
        if invalid_dates:
            metadata[INVALID_DATES] = b"%d" % invalid_dates
        return pa.RecordBatch.from_arrays(arrays, schema=self._full.with_metadata(metadata))

    def _is_full(self, absent: Bytes) -> bool:
        """Whether images suffice to apply them; a before image serves with its key alone."""
        if not absent.any():
            return True
        width = absent.shape[0] // 2
        chosen = list(self.schema.chosen)
        if absent[width:][chosen].any():
            return False
        return not any(
            is_absent and not (self._key and name not in self._key)
            for name, is_absent in zip(self._names, absent[:width][chosen], strict=True)
        )


def _change_arrays(noted: NotedEvents, notes: Small, count: int) -> list[pa.Array[Any]]:
    """The columns that every batch begins with.

    Args:
        noted: The events.
        notes: Of the images, as `locate` gives them.
        count: Of the images.
    """
    types = CHANGE_COLUMNS.types
    ops: Any = np.empty(_OP_ROOM * count + PADDING, np.uint8)
    gtids = np.empty(int(noted.lengths.max()) * count + PADDING, np.uint8)
    offsets: Any = np.empty(2 * count + 2, np.int32)
    owners = np.empty(2 * count, np.int32)
    moments = np.empty(2 * count, np.int64)
    without = kernels().changes(
        noted.events,
        noted.positions,
        noted.groups,
        noted.texts,
        noted.lengths,
        layout.GTID_TEXT_MAX,
        notes,
        count,
        _OP_TEXTS,
        _OP_LENGTHS,
        _OP_ROOM,
        ops,
        gtids,
        offsets,
        owners,
        moments,
    )
    texts = pa.py_buffer(offsets)
    of_gtids = array(types[1], owners[count:], without > 0, offsets[count + 1 :], gtids)
    return [
        pa.Array.from_buffers(types[0], count, [None, texts, pa.py_buffer(ops)], 0),
        of_gtids,
        filled(types[2], moments[:count]),
        _files(noted.file).slice(0, count),
        filled(types[4], moments[count:]),
        filled(types[5], owners[:count]),
    ]


@lru_cache(maxsize=4)
def _files(name: str) -> pa.Array[Any]:
    """A file's name as often as a batch may need it."""
    return pa.array([name] * _ROWS_MAX, CHANGE_COLUMNS.types[3])


def merged(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one, with the metadata of all."""
    if len(batches) == 1:
        return batches[0]
    metadata = dict(batches[0].schema.metadata)
    invalid = sum(int(batch.schema.metadata.get(INVALID_DATES, b"0")) for batch in batches)
    if any(batch.schema.metadata[IMAGE] != b"full" for batch in batches):
        metadata[IMAGE] = b"partial"
    metadata.pop(INVALID_DATES, None)
    if invalid:
        metadata[INVALID_DATES] = b"%d" % invalid
    plain = [batch.replace_schema_metadata(None) for batch in batches]
    whole = pa.Table.from_batches(plain).combine_chunks().to_batches()[0]
    return whole.replace_schema_metadata(metadata)
