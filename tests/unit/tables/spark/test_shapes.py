"""The shapes of one table's changes, read as a task of Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlane.errors import ConfigError
from binlane.positions import file_number
from binlane.tables.ranges.cutting import Cuts
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.spark.range_reader import new_planner
from binlane.tables.spark.source_options import SourceOptions
from binlane.tables.spark.typed_table import read_typed, typed_schema
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "state"))
OP = ["op"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Inserts, updates and deletes of two tables."""
    made = ShopLog()
    made.insert(ORDERS, (1, "new"), (2, "new"))
    made.insert(ITEMS, (9, "other"))
    made.update(ORDERS, ((1, "new"), (1, "paid")), ((2, "new"), (2, "sent")))
    made.delete(ORDERS, (1, "paid"))
    name, data = made.file()
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def read(path: Path, **options: str) -> tuple[pa.Schema, list[dict[str, Any]]]:
    """The schema, and the rows of all batches, which have exactly it."""
    parsed = SourceOptions.parse({"path": str(path), "table": "shop.orders", **options})
    schema = typed_schema(parsed, new_planner(parsed))
    piece = LogRange(uri=str(path), name=path.name, number=file_number(path.name))
    batches = list(read_typed(piece, parsed, schema))
    assert all(batch.schema.equals(schema, check_metadata=True) for batch in batches)
    return schema, [row for batch in batches for row in batch.to_pylist()]


def chosen(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_images(log: Path) -> None:
    schema, rows = read(log)
    assert schema.names[:6] == ["_op", "_gtid", "_ts", "_file", "_pos", "_row"]
    assert schema.names[-2:] == ["id", "state"]
    assert chosen(rows, "_op", "_row", "id", "state") == [
        ("insert", 0, 1, "new"),
        ("insert", 1, 2, "new"),
        ("update_before", 0, 1, "new"),
        ("update_after", 0, 1, "paid"),
        ("update_before", 1, 2, "new"),
        ("update_after", 1, 2, "sent"),
        ("delete", 0, 1, "paid"),
    ]
    assert {row["_file"] for row in rows} == {"shop.000001"}
    assert [row["_gtid"] for row in rows] == ["0-1-1"] * 2 + ["0-1-3"] * 4 + ["0-1-4"]


@pytest.mark.parametrize("rows_per_batch", ["1", "2", "3", "8192"])
def test_a_change_is_one_row_wherever_batches_end(log: Path, rows_per_batch: str) -> None:
    _, rows = read(log, shape="changes", rowsPerBatch=rows_per_batch)
    assert chosen(rows, "_op", "_row", "before", "after") == [
        ("insert", 0, None, {"id": 1, "state": "new"}),
        ("insert", 1, None, {"id": 2, "state": "new"}),
        ("update", 0, {"id": 1, "state": "new"}, {"id": 1, "state": "paid"}),
        ("update", 1, {"id": 2, "state": "new"}, {"id": 2, "state": "sent"}),
        ("delete", 0, {"id": 1, "state": "paid"}, None),
    ]


def test_the_names_of_a_change_data_feed(log: Path) -> None:
    schema, rows = read(log, shape="cdf")
    assert schema.names == ["id", "state", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [row["_change_type"] for row in rows] == [
        *("insert", "insert"),
        *("update_preimage", "update_postimage") * 2,
        "delete",
    ]
    versions = [row["_commit_version"] for row in rows]
    assert versions == sorted(versions)
    assert {version >> 40 for version in versions} == {1}


def test_the_shape_of_debezium(log: Path) -> None:
    _, rows = read(log, shape="debezium")
    assert chosen(rows, "__op", "__table", "__source_row") == [
        ("c", "orders", 0),
        ("c", "orders", 1),
        ("u", "orders", 0),
        ("u", "orders", 1),
        ("d", "orders", 0),
    ]
    assert (rows[0]["before"], rows[4]["after"]) == (None, None)
    assert rows[2]["after"] == {"id": 1, "state": "paid"}
    _, images = read(log)
    assert rows[0]["__source_ts_ms"] == images[0]["_ts"].timestamp() * 1000


def test_the_flat_shape_of_debezium(log: Path) -> None:
    _, rows = read(log, shape="debezium-flat")
    assert chosen(rows, "__op", "__deleted", "id", "state") == [
        ("c", "false", 1, "new"),
        ("c", "false", 2, "new"),
        ("u", "false", 1, "paid"),
        ("u", "false", 2, "sent"),
        ("d", "true", 1, "paid"),
    ]


def test_columns_and_operations_are_chosen(log: Path) -> None:
    schema, rows = read(log, columns="id", changeColumns="_op, _pos", ops="update_after,delete")
    assert schema.names == ["_op", "_pos", "id"]
    assert chosen(rows, "_op", "id") == [("update_after", 1), ("update_after", 2), ("delete", 1)]
    _, rows = read(log, shape="changes", ops="update")
    assert [row["_op"] for row in rows] == ["update", "update"]


def test_a_column_that_the_table_lacks_is_named(log: Path) -> None:
    with pytest.raises(ConfigError, match="has no column stat"):
        read(log, columns="id,stat")


def test_another_prefix(log: Path) -> None:
    schema, rows = read(log, prefix="log_")
    assert schema.names[:2] == ["log_op", "log_gtid"]
    assert rows[0]["log_op"] == "insert"


@pytest.mark.parametrize("name", ["md1011_metadata_minimal", "md1011_metadata_full"])
def test_names_and_types_come_from_the_log_however_it_tells_them(name: str, tmp_path: Path) -> None:
    for file, data in fixture_set(name).binlogs:
        path = tmp_path / file
        path.write_bytes(data)
    options = SourceOptions.parse({"path": str(tmp_path), "table": "shop.m1"})
    planner = new_planner(options)
    schema = typed_schema(options, planner)
    assert (schema.field("sn").type, schema.field("e").type) == (pa.int16(), pa.string())
    (part,) = planner.all_parts(Cuts())
    rows = [
        row
        for piece in part
        for batch in read_typed(piece, options, schema)
        for row in batch.to_pylist()
    ]
    assert chosen(rows[:1], "_op", "id", "sn", "s", "vu") == [("insert", 1, -1, "x,z", "😀")]
