"""Rows of a snapshot become a table's, in every format."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.table_files import write_file
from tests.runs import TABLE, images, merge, run_of, schema_of
from tests.unit.tables.landing.tables.test_store import OF_ALL_FORMATS, ORDERS, opened, rows_of


def waiting(folder: Path, rows: list[tuple[int, str]], schema: pa.Schema = ORDERS) -> DataFile:
    """A file of rows beside a table."""
    table = pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema
    )
    table = table.append_column("_gtid", pa.nulls(len(rows), pa.string()))
    table = table.append_column("_seq", pa.array([10] * len(rows), pa.int64()))
    name = f"snap-{uuid.uuid4().hex}.parquet"
    file = write_file(table, str(folder), name, ["id"])
    return DataFile(
        path=f"{folder}/{name}",
        rows=file.rows,
        size_bytes=file.size_bytes,
        schema=file.schema,
        stats=file.stats,
    )


@OF_ALL_FORMATS
def test_a_table_has_the_rows_of_a_snapshot_and_no_others(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = opened(tmp_path, table_format)
    old = images(ORDERS, [("insert", (1, "old")), ("insert", (99, "old"))], 1)
    merge(store, [run_of(tmp_path, old, ["id"])], ["id"], 2)
    files = [waiting(tmp_path / "snap", rows) for rows in ([(1, "a"), (2, "b")], [(3, "c")])]
    store.seed(TABLE, files, ["id"], ORDERS, 10)
    assert rows_of(tmp_path, table_format) == [(1, "a"), (2, "b"), (3, "c")]
    again = opened(tmp_path, table_format)
    assert again.applied(TABLE) == 10
    changes = images(ORDERS, [("delete", (2, "b")), ("insert", (7, "z"))], 11)
    merge(again, [run_of(tmp_path, changes, ["id"])], ["id"], 12)
    assert rows_of(tmp_path, table_format) == [(1, "a"), (3, "c"), (7, "z")]


@OF_ALL_FORMATS
def test_a_snapshot_may_have_other_columns_and_no_rows(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = opened(tmp_path, table_format)
    old = images(ORDERS, [("insert", (1, "old"))], 1)
    merge(store, [run_of(tmp_path, old, ["id"])], ["id"], 2)
    wider = schema_of(id=pa.int64(), more=pa.int32(), state=pa.string())
    store.seed(TABLE, [], ["id"], wider, 10)
    assert rows_of(tmp_path, table_format) == []
    assert opened(tmp_path, table_format).schema(TABLE).names[:3] == ["id", "more", "state"]


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_files_that_were_moved_before_a_crash_are_found(moved: int, tmp_path: Path) -> None:
    store = opened(tmp_path, FormatName.DELTA)
    files = [waiting(tmp_path / "snap", [(number, "a")]) for number in (1, 2)]
    store.adopt(TABLE, files[:moved])
    opened(tmp_path, FormatName.DELTA).seed(TABLE, files, ["id"], ORDERS, 10)
    assert rows_of(tmp_path, FormatName.DELTA) == [(1, "a"), (2, "a")]


@OF_ALL_FORMATS
def test_change_tables_take_rows_of_a_snapshot(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format, Mode.CHANGES)
    file = waiting(tmp_path / "snap", [(1, "a"), (2, "b")])
    store.append(TABLE, store.adopt(TABLE, [file]), 10)
    assert rows_of(tmp_path, table_format, Mode.CHANGES) == [(1, "a"), (2, "b")]
