"""The images of one table → its files: the change table's, and the runs that are merged."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.columnar.table_schema import (
    SEQUENCE_COLUMN,
    AbsentColumns,
    absent_columns,
    has_full_images,
    invalid_dates_of,
    primary_key_of,
)
from binlane.tables.landing.generated_columns import WHY_NOT
from binlane.tables.landing.key_cascades import IMAGE_COLUMNS, ORDER, UNCHECKED
from binlane.tables.landing.net_changes import COUNT, GONE, counted, is_gone, last_images
from binlane.tables.landing.parquet_options import parquet_options, statistics
from binlane.tables.landing.range_work import DataFile, Mode, RangeWork, Rows, sequence
from binlane.tables.landing.tables.key_order import sorted_by_key
from binlane.tables.landing.tables.table_faults import is_own
from binlane.tables.landing.target_files import file_name, resolve, staging_uri, table_uri
from binlane.tables.ranges.unchecked import Unchecked, unchecked_rows

# Names of columns: those of readers, and those in tables.
_SHORT: Final = {"_timestamp": "_ts", "_position": "_pos"}
CHANGE_COLUMNS: Final = (
    *("_op", "_gtid", "_ts", "_file", "_pos", "_row", "_txn_order", "_server_id"),
    SEQUENCE_COLUMN,
)
"""Columns that a change table begins with, as far as the log tells them."""
ADDED: Final = frozenset(
    {*CHANGE_COLUMNS, *IMAGE_COLUMNS, GONE, COUNT, "_deleted_at", "valid_from", "valid_to"}
)
"""Names that no column of a source can have, in small letters."""


@dataclass(slots=True)
class BatchShape:
    """Facts that batches of one file have in common."""

    schema: pa.Schema
    key: tuple[str, ...]
    is_full: bool
    why_not: str = ""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> BatchShape:
        """The shape of a batch."""
        schema = batch.schema
        key = tuple(primary_key_of(schema))
        why_not = (schema.metadata or {}).get(WHY_NOT, b"").decode()
        return cls(schema.remove_metadata(), key, has_full_images(schema), why_not)


class TableFiles:
    """Collects batches of one table and one shape, in log order, and writes them.

    Args:
        work: The work of the task.
        table: The table of the batches.
        shape: The shape of the batches.

    Attributes:
        size_bytes: Bytes that the collected batches have in memory.
    """

    def __init__(self, work: RangeWork, table: TableName, shape: BatchShape) -> None:
        self._work = work
        self.table = table
        self.shape = shape
        self._batches: list[pa.RecordBatch] = []
        self._invalid_dates = 0
        self._has_absent = False
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch of the shape."""
        self._batches.append(batch.replace_schema_metadata(None))
        self._invalid_dates += invalid_dates_of(batch.schema)
        self._has_absent |= absent_columns(batch.schema) != AbsentColumns()
        self.size_bytes += batch.nbytes

    def write(self) -> Rows | None:
        """Write what there is, as far as it was not applied before; None if nothing is there."""
        work, shape = self._work, self.shape
        all_images = with_sequence(pa.Table.from_batches(self._batches), work.piece.number)
        if not all_images.num_rows:
            return None
        images = behind(all_images, work.done)
        own = [name for name in images.column_names if name not in CHANGE_COLUMNS]
        fresh = {
            mode: behind(images, work.applied.get(mode, {}).get(self.table, 0))
            for mode in work.modes
            if work.links.get(self.table) is None
        }
        places = (images if images.num_rows else all_images).select(
            ["_gtid", "_ts", SEQUENCE_COLUMN]
        )
        last = places.slice(places.num_rows - 1)
        changes, fault = self._changes(fresh.get(Mode.CHANGES))
        return Rows(
            table=self.table,
            first_seq=places.column(SEQUENCE_COLUMN)[0].as_py(),
            last_seq=pc.max(places.column(SEQUENCE_COLUMN)).as_py(),
            last_gtid=last.column("_gtid")[0].as_py(),
            last_timestamp=int(last.column("_ts")[0].as_py().timestamp()),
            images=images.num_rows,
            decoded=all_images.num_rows,
            fresh={mode: rows.num_rows for mode, rows in fresh.items()},
            added=_added(fresh.get(Mode.CURRENT)),
            invalid_dates=self._invalid_dates,
            key=shape.key,
            is_full=shape.is_full,
            why_not=shape.why_not,
            has_absent=self._has_absent,
            columns=images.select(own).schema,
            file=work.piece.name,
            changes=changes,
            fault=fault,
            run=self._run(fresh.get(Mode.CURRENT), own),
            versions=self._versions(fresh.get(Mode.HISTORY), own),
            links=self._links(images, own) if images.num_rows else None,
        )

    def _changes(self, images: pa.Table | None) -> tuple[DataFile | None, str]:
        """The file of the change table, and why it could not be written."""
        if images is None or not images.num_rows or self.table in self._work.lost:
            return None, ""
        name = file_name(self._work.format, self._work.run_id)
        folder = table_uri(self._work.into, Mode.CHANGES, self.table)
        known = [SEQUENCE_COLUMN, "_ts", *self.shape.key]
        try:
            return write_file(images, folder, name, known), ""
        except StoreError as error:
            if not is_own(error):
                raise
            return None, error.message

    def _run(self, images: pa.Table | None, own: list[str]) -> DataFile | None:
        if images is None or not images.num_rows or not self.shape.is_full:
            return None
        needed = images.select(["_op", *own, "_gtid", SEQUENCE_COLUMN, "_ts"])
        key = self.shape.key
        return self._staged(last_images(needed, key) if key else counted(needed, own))

    def _versions(self, images: pa.Table | None, own: list[str]) -> DataFile | None:
        key = self.shape.key
        if images is None or not images.num_rows or not self.shape.is_full or not key:
            return None
        needed = images.select([*own, "_gtid", SEQUENCE_COLUMN, "_ts"])
        return self._staged(sorted_by_key(needed.append_column(GONE, is_gone(images)), key))

    def _links(self, images: pa.Table, own: list[str]) -> DataFile | None:
        if self.table not in self._work.links:
            return None
        columns = self._work.links[self.table]
        if columns is not None and not own[0].startswith("@"):
            own = [name for name in own if name.lower() in columns]
        unchecked: Any = pa.array([False] * images.num_rows, pa.bool_())
        if pc.any(is_gone(images)).as_py():
            unchecked = _are_in(images, unchecked_rows(self._work.piece))
        order: Any = pa.array(np.arange(images.num_rows))
        if "_txn_order" in images.column_names:
            order = images.column("_txn_order")
        needed = images.append_column(ORDER, order).append_column(UNCHECKED, unchecked)
        return self._staged(needed.select([*IMAGE_COLUMNS, *own]))

    def _staged(self, rows: pa.Table) -> DataFile:
        folder = staging_uri(self._work.into, self._work.run_id)
        file = write_file(
            rows, folder, f"{uuid.uuid4().hex}.parquet", self.shape.key, is_staged=True
        )
        return DataFile(
            path=f"{folder}/{file.path}",
            rows=file.rows,
            size_bytes=file.size_bytes,
            schema=file.schema,
            stats=file.stats,
        )


def _added(images: pa.Table | None) -> int:
    """Return how many rows images add, less how many they remove."""
    if images is None:
        return 0
    found: Any = pc.value_counts(images.column("_op"))
    counts = {each["values"]: each["counts"] for each in found.to_pylist()}
    return int(counts.get("insert", 0) - counts.get("delete", 0))


def _are_in(images: pa.Table, rows: Unchecked) -> Any:
    """Return a flag for each image: whether it is one of some rows."""
    positions: Any = images.column("_pos")
    found: Any = pc.is_in(positions, value_set=pa.array(rows.positions, pa.int64()))
    for run in rows.runs:
        is_there: Any = pc.is_in(positions, value_set=pa.array([run.position], pa.int64()))
        numbers = pa.array(range(run.first, run.last + 1), pa.int32())
        is_of: Any = pc.is_in(images.column("_row"), value_set=numbers)
        found = pc.or_(found, pc.and_(is_there, is_of))
    return found


def with_sequence(images: pa.Table, file_number: int) -> pa.Table:
    """Images as change tables have them: short names, and `_seq` behind the change columns."""
    names = [_SHORT.get(name, name) for name in images.column_names]
    images = images.rename_columns(names)
    if SEQUENCE_COLUMN not in names:
        start = pa.scalar(sequence(file_number, 0), pa.int64())
        images = images.append_column(SEQUENCE_COLUMN, pc.add(images.column("_pos"), start))
    first = [name for name in CHANGE_COLUMNS if name in images.column_names]
    return images.select([*first, *(name for name in names if name not in CHANGE_COLUMNS)])


def behind(images: pa.Table, applied: int) -> pa.Table:
    """The images that come behind a `_seq`."""
    if not applied:
        return images
    is_behind = pc.greater(images.column(SEQUENCE_COLUMN), pa.scalar(applied, pa.int64()))
    return images if pc.all(is_behind).as_py() else images.filter(is_behind)


def write_file(
    rows: pa.Table, folder: str, name: str, known: Collection[str], *, is_staged: bool = False
) -> DataFile:
    """Write rows as a Parquet file.

    Args:
        rows: The rows to write, at least one.
        folder: URI or path; made where it is missing.
        name: The name of the file.
        known: Names of the columns that get statistics.
        is_staged: Whether the file is read once and then removed.

    Raises:
        StoreError: If the file cannot be written.
    """
    filesystem, path = resolve(folder)
    place = f"{path}/{name}"
    try:
        _make_folder(filesystem, path)
        with filesystem.open_output_stream(place) as stream:
            options = parquet_options(rows, set(known), is_staged=is_staged)
            pq.write_table(rows, stream, **options)
            size_bytes = stream.tell()
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error}",
            path=f"{folder}/{name}",
            hint="check who may write there, and its room",
        ) from error
    return DataFile(
        path=name,
        rows=rows.num_rows,
        size_bytes=size_bytes,
        schema=plain_schema(rows.schema),
        stats=statistics(rows, known),
    )


def move_file(file: DataFile, folder: str, prefix: str = "") -> DataFile:
    """Move a file to a folder, by its URI; a file of that name in the folder stays.

    Args:
        file: The file, whose path is a URI.
        folder: The folder's URI or path.
        prefix: Text to be put before the file's name.

    Raises:
        StoreError: If the file can be neither moved nor found in the folder.
    """
    name = prefix + file.path.rpartition("/")[2]
    filesystem, source = resolve(file.path)
    _, path = resolve(folder)
    target = f"{path}/{name}"
    try:
        if filesystem.get_file_info(target).type is fs.FileType.NotFound:
            _make_folder(filesystem, path)
            if isinstance(filesystem, fs.LocalFileSystem):
                filesystem.move(source, target)
            else:
                filesystem.copy_file(source, target)
    except OSError as error:
        raise StoreError(
            f"cannot be moved to {folder}: {error}",
            path=file.path,
            hint="check who may write there, and its room",
        ) from error
    return replace(file, path=name)


def _make_folder(filesystem: fs.FileSystem, path: str) -> None:
    if isinstance(filesystem, fs.LocalFileSystem):
        filesystem.create_dir(path, recursive=True)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that readers find in a file that was written with dictionaries."""
    return pa.schema(
        [
            field.with_type(field.type.value_type)
            if isinstance(field.type, pa.DictionaryType)
            else field
            for field in schema
        ]
    )
