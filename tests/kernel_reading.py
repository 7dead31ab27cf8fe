"""What tests of the fast path share: bytes as a source, and batches in a form that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Self

import pyarrow as pa

from binlane.columnar.batches import batches
from binlane.columnar.kernel_batches import KernelOptions, kernel_batches
from binlane.columnar.table_schema import IMAGE, INVALID_DATES
from binlane.errors import BinlaneError
from binlane.grouping.event_group import group_events
from binlane.grouping.walk import walk

FILE = "/logs/binlog.000001"
NAME = "binlog.000001"

Told = tuple[list[tuple[dict[bytes, bytes], int, pa.Table]], tuple[Any, ...] | None]
"""Runs of rows of one table and schema, with its metadata and invalid dates; and the error."""


class BytesSource:
    """The bytes of a file that is in memory."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._stream = BytesIO(data)
        self._stream.seek(position)

    def read_into(self, view: memoryview) -> int:
        return self._stream.readinto(view)

    def reread(self, position: int) -> Self:
        return type(self)(self._data, position)


def by_kernels(data: bytes, *, rows_max: int = 8192, **options: Any) -> Told:
    """What the fast path makes of a file."""
    sizes = {key: options.pop(key) for key in ("window_bytes", "held_bytes_max") if key in options}
    return told(
        lambda: kernel_batches(
            BytesSource(data),
            file=FILE,
            name=NAME,
            options=KernelOptions(rows_max=rows_max, **sizes),
            **options,
        )
    )


def by_reference(data: bytes, *, rows_max: int = 8192, **options: Any) -> Told:
    """What the reference decoder makes of a file."""
    groups = group_events(walk([data], file=FILE), file=NAME)
    return told(lambda: batches(groups, rows_max=rows_max, **options))


def told(read: Callable[[], Iterator[pa.RecordBatch]]) -> Told:
    """Batches in one order, without the places where they end, and how they end."""
    found: list[pa.RecordBatch] = []
    error = None
    try:
        for batch in read():
            batch.validate(full=True)
            found.append(batch)
    except BinlaneError as caught:
        place = (getattr(caught, "file", None), getattr(caught, "position", None))
        error = (type(caught), caught.message, caught.hint, *place)
    return _runs(found), error


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
    metadata.pop(IMAGE), metadata.pop(INVALID_DATES, None)
    return list(batch.schema), sorted(metadata.items())


def _run(run: list[pa.RecordBatch]) -> tuple[dict[bytes, bytes], int, pa.Table]:
    metadata = dict(run[0].schema.metadata)
    if any(batch.schema.metadata[IMAGE] != b"full" for batch in run):
        metadata[IMAGE] = b"partial"
    metadata.pop(INVALID_DATES, None)
    invalid = sum(int(batch.schema.metadata.get(INVALID_DATES, b"0")) for batch in run)
    plain = [batch.replace_schema_metadata(None) for batch in run]
    return metadata, invalid, pa.Table.from_batches(plain).combine_chunks()


def assert_same(kernels: Told, reference: Told) -> None:
    """Fail with what differs."""
    assert kernels[1] == reference[1]
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
