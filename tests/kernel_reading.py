"""What tests of the fast path share: bytes as a source, and batches in a form that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import or_
from typing import Any, Self, TypeGuard

import pyarrow as pa

from binlane.binlogs.store.byte_source import ChunkBytes
from binlane.errors import BinlaneError
from binlane.log.grouping.decryption import plain_chunks
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.tables.columnar.batches import ChangeBatcher, batches
from binlane.tables.columnar.kernel_batches import kernel_batches
from binlane.tables.columnar.kernel_input import KernelInput, KernelOptions
from binlane.tables.columnar.log_notes import RangeItem, RowItem
from binlane.tables.columnar.prepared_transactions import PreparedGroup, PreparedTransactions
from binlane.tables.columnar.table_schema import (
    ABSENT,
    INVALID_DATES,
    ReadOptions,
    absent_columns,
)

FILE = "/logs/binlog.000001"
NAME = "binlog.000001"

Told = tuple[list[tuple[dict[bytes, bytes], int, pa.Table]], tuple[Any, ...] | None, list[Any]]
"""Runs of rows of one table and schema, with its metadata and invalid dates; the error; what is told."""


class BytesSource:
    """The plain bytes of a file that is in memory."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._chunks = ChunkBytes(self._from(position))

    def read_into(self, view: memoryview) -> int:
        return self._chunks.read_into(view)

    def reread(self, position: int) -> Self:
        return type(self)(self._data, position)

    def _from(self, position: int) -> Iterator[bytes]:
        for chunk in plain_chunks([self._data], file=FILE):
            if position < len(chunk):
                yield chunk[position:]
            position = max(0, position - len(chunk))


class OneFile:
    """A log of one file that is in memory, for XA transactions."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def source(self, group: PreparedGroup) -> BytesSource:
        return BytesSource(self._data[: group.end], group.start)

    def find(self, xid: str) -> None:
        """Nothing stands before it."""


def by_kernels(data: bytes, **options: Any) -> Told:
    """What the fast path makes of a file."""
    sizes = {key: options.pop(key) for key in ("window_bytes", "held_bytes_max") if key in options}
    log = KernelInput(source=BytesSource(data), file=FILE, name=NAME)
    batcher = new_batcher(data, **options)
    return told(lambda: kernel_batches(log, batcher, options=KernelOptions(**sizes)))


def by_reference(data: bytes, **options: Any) -> Told:
    """What the reference decoder makes of a file."""
    groups = group_events(walk([data], file=FILE), file=NAME)
    return told(lambda: batches(groups, new_batcher(data, **options)))


def rows_of(groups: Iterable[EventGroup], **options: Any) -> Iterator[pa.RecordBatch]:
    """The batches of event groups."""
    return filter(is_batch, batches(groups, ChangeBatcher(ReadOptions(**options))))


def is_batch(item: RangeItem | RowItem) -> TypeGuard[pa.RecordBatch]:
    """Whether an item is rows."""
    return isinstance(item, pa.RecordBatch)


def new_batcher(data: bytes, **options: Any) -> ChangeBatcher:
    prepared = PreparedTransactions(OneFile(data))
    prepared.path = FILE
    return ChangeBatcher(ReadOptions(**options), prepared=prepared)


def told(read: Callable[[], Iterator[Any]]) -> Told:
    """What is read without the places where batches end, and how it ends.

    Rows between two things that are told come as runs of one table and schema, in one order.
    """
    found: list[list[pa.RecordBatch]] = [[]]
    besides: list[Any] = []
    error = None
    try:
        for item in read():
            if isinstance(item, pa.RecordBatch):
                item.validate(full=True)
                found[-1].append(item)
            else:
                besides.append(item)
                found.append([])
    except BinlaneError as caught:
        place = (getattr(caught, "file", None), getattr(caught, "position", None))
        error = (type(caught), caught.message, caught.hint, *place)
    return [run for part in found for run in _runs(part)], error, besides


def _runs(found: list[pa.RecordBatch]) -> list[tuple[dict[bytes, bytes], int, pa.Table]]:
    tables: dict[bytes, list[pa.RecordBatch]] = {}
    for batch in found:
        tables.setdefault(batch.schema.metadata[b"table"], []).append(batch)
    runs = []
    for name in sorted(tables):
        open_run: list[pa.RecordBatch] = []
        for batch in tables[name]:
            if open_run and _schema(open_run[0]) != _schema(batch):
                runs.append(_run(open_run))
                open_run = []
            open_run.append(batch)
        runs.append(_run(open_run))
    return runs


def _schema(batch: pa.RecordBatch) -> tuple[Any, ...]:
    metadata = dict(batch.schema.metadata)
    metadata.pop(ABSENT, None), metadata.pop(INVALID_DATES, None)
    return list(batch.schema), sorted(metadata.items())


def _run(run: list[pa.RecordBatch]) -> tuple[dict[bytes, bytes], int, pa.Table]:
    metadata = dict(run[0].schema.metadata)
    metadata |= reduce(or_, [absent_columns(batch.schema) for batch in run]).metadata()
    metadata.pop(INVALID_DATES, None)
    invalid = sum(int(batch.schema.metadata.get(INVALID_DATES, b"0")) for batch in run)
    plain = [batch.replace_schema_metadata(None) for batch in run]
    return metadata, invalid, pa.Table.from_batches(plain).combine_chunks()


def assert_same(kernels: Told, reference: Told) -> None:
    """Fail with what differs."""
    assert kernels[1] == reference[1]
    assert kernels[2] == reference[2]
    assert [run[:2] for run in kernels[0]] == [run[:2] for run in reference[0]]
    for (metadata, _, mine), (_, _, theirs) in zip(kernels[0], reference[0], strict=True):
        assert mine.num_rows == theirs.num_rows, metadata
        for name in mine.column_names:
            where = mine.column_names.index(name)
            assert _same(mine.column(where), theirs.column(where)), (metadata, name)


def _same(mine: pa.ChunkedArray[Any], theirs: pa.ChunkedArray[Any]) -> bool:
    if pa.types.is_floating(mine.type):  # NaN is not equal to itself
        return repr(mine.to_pylist()) == repr(theirs.to_pylist())
    return bool(mine.equals(theirs))
