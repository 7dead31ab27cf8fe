"""Staged runs, as tasks of a landing write them, from changes given as values."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from binlane.names import TableName
from binlane.tables.landing.net_changes import counted, is_gone, last_images
from binlane.tables.landing.range_work import DataFile
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables.key_order import sorted_by_key
from binlane.tables.landing.tables.merging import merge_file
from binlane.tables.landing.tables.table_store import TableStore

TABLE = TableName("shop", "orders")
Image = tuple[str, Any]
"""`_op`, and the values of the row."""


def schema_of(**types: pa.DataType) -> pa.Schema:
    """A schema of some columns."""
    return pa.schema(list(types.items()))


def moment(seq: int) -> datetime:
    """When the change with a `_seq` was committed."""
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seq)


def images(schema: pa.Schema, changes: Sequence[Image], seq: int) -> pa.Table:
    """Row images in log order, one `_seq` each, from `seq` on."""
    rows = [dict(zip(schema.names, values, strict=True)) for _, values in changes]
    numbers = range(seq, seq + len(rows))
    table = pa.Table.from_pylist(rows, schema=schema)
    table = table.add_column(0, "_op", pa.array([op for op, _ in changes], pa.string()))
    table = table.append_column("_gtid", pa.array([f"0-1-{n}" for n in numbers], pa.string()))
    table = table.append_column("_seq", pa.array(numbers, pa.int64()))
    moments = pa.array([moment(n) for n in numbers], pa.timestamp("us", tz="UTC"))
    return table.append_column("_ts", moments)


def staged(folder: Path, rows: pa.Table, key: Sequence[str]) -> DataFile:
    """A run in a file."""
    file = write_file(rows, str(folder), f"{uuid.uuid4().hex}.parquet", key)
    return DataFile(
        path=f"{folder}/{file.path}",
        rows=file.rows,
        size_bytes=file.size_bytes,
        schema=file.schema,
        stats=file.stats,
    )


def run_of(folder: Path, rows: pa.Table, key: Sequence[str]) -> DataFile:
    """What a current table needs of some images."""
    own = [name for name in rows.column_names if name not in {"_op", "_gtid", "_seq", "_ts"}]
    return staged(folder, last_images(rows, key) if key else counted(rows, own), key)


def versions_of(folder: Path, rows: pa.Table, key: Sequence[str]) -> DataFile:
    """What a history table needs of some images."""
    versions = rows.append_column("_gone", is_gone(rows)).drop_columns(["_op"])
    return staged(folder, sorted_by_key(versions, key), key)


def merge(store: TableStore, runs: Sequence[DataFile], key: Sequence[str], applied: int) -> int:
    """Merge runs into `TABLE`; how many rows were missing."""
    names = [name for name in runs[0].schema.names if not name.startswith("_")]
    schema = pa.schema([runs[0].schema.field(name) for name in names])
    works = store.plan_merge(TABLE, runs, key, schema)
    return store.commit_merge(TABLE, [merge_file(work) for work in works], applied)
