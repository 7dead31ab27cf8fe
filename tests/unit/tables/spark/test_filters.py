"""Filters of a query: what of them is used, and what is then not read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema

from binlane.tables.ranges.log_range import LogRange
from binlane.tables.spark.change_log import change_log_schema
from binlane.tables.spark.filters import PushedCondition, conditions
from binlane.tables.spark.source import FilteringReader
from binlane.tables.spark.source_options import SourceOptions
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
ITEMS = Table("items", ("id", "state"))


def test_what_can_be_used() -> None:
    found = conditions(
        [
            EqualTo(("_op",), "insert"),
            In(("_table",), ["orders", None]),  # type: ignore[arg-type]
            GreaterThan(("_pos",), 4),
            IsNotNull(("_op",)),
            EqualTo(("state",), "new"),
            EqualTo(("after", "id"), 1),
        ],
        "_",
    )
    assert found == [
        PushedCondition("op", "equal", ("insert",)),
        PushedCondition("table", "is_in", ("orders",)),
        PushedCondition("pos", "greater", (4,)),
    ]
    assert conditions([EqualTo(("_op",), "insert")], "log_") == []


@pytest.mark.parametrize(
    "comparison, kept",
    [
        ("equal", [2]),
        ("less", [1]),
        ("less_equal", [1, 2]),
        ("greater", [3]),
        ("greater_equal", [2, 3]),
        ("is_in", [2]),
    ],
)
def test_masks(comparison: str, kept: list[int]) -> None:
    values = pa.array([1, 2, 3, None])
    mask = PushedCondition("pos", comparison, (2,)).mask(values)
    assert values.filter(mask).to_pylist() == kept
    allowed = [
        number for number in (1, 2, 3) if PushedCondition("pos", comparison, (2,)).admits(number)
    ]
    assert allowed == kept


def test_moments_are_compared_in_utc() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    (found,) = conditions([EqualTo(("_ts",), moment.astimezone().replace(tzinfo=None))], "_")
    assert found.mask(pa.array([moment], pa.timestamp("us", tz="UTC"))).to_pylist() == [True]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two files: one with rows of both tables far from each other, one with items alone."""
    for number, tables in ((1, (ORDERS, ITEMS)), (2, (ITEMS,))):
        made = ShopLog()
        for table in tables:
            for row in range(40):
                made.insert(table, (row, "new"))
        name, data = made.file(f"shop.{number:06}")
        (tmp_path / name).write_bytes(data)
    return tmp_path


def read(
    log: Path, *filters: Filter, **options: str
) -> tuple[list[LogRange], list[dict[str, Any]]]:
    """The ranges that a query with such filters reads, and the rows that Spark is given."""
    parsed = SourceOptions.parse({"path": str(log), "maxPartitionBytes": "500", **options})
    reader = FilteringReader(parsed, from_arrow_schema(change_log_schema(parsed)))
    assert list(reader.pushFilters(list(filters))) == list(filters), "Spark applies them too"
    partitions = reader.partitions()
    rows = [row for each in partitions for batch in reader.read(each) for row in batch.to_pylist()]
    return [piece for each in partitions for piece in each.value], rows


def size_of(pieces: list[LogRange]) -> int:
    assert all(piece.stop is not None for piece in pieces)
    return sum((piece.stop or 0) - piece.start for piece in pieces)


def test_parts_without_the_table_are_not_read(log: Path) -> None:
    whole, everything = read(log)
    pieces, rows = read(log, EqualTo(("_table",), "orders"))
    assert len(everything) == 120
    assert [row["_table"] for row in rows] == ["orders"] * 40
    assert {piece.name for piece in pieces} == {"shop.000001"}
    assert size_of(pieces) < size_of(whole) / 2
    assert size_of(read(log, tables="shop.orders")[0]) == size_of(pieces)


def test_files_that_are_not_asked_for_are_not_opened(log: Path) -> None:
    # It is no binlog file: whoever opens it says so.
    (log / "shop.000003").write_bytes(b"no binlog")
    pieces, rows = read(log, LessThanOrEqual(("_file",), "shop.000001"))
    assert {piece.name for piece in pieces} == {"shop.000001"}
    assert len(rows) == 80
    _, rows = read(log, stop="shop.000002:4")
    assert len(rows) == 80


def test_positions_and_operations(log: Path) -> None:
    whole, everything = read(log)
    middle = sorted(row["_pos"] for row in everything)[40]
    pieces, rows = read(log, LessThan(("_pos",), middle), EqualTo(("_op",), "insert"))
    assert len(rows) == 40
    assert size_of(pieces) < size_of(whole) / 2
    assert read(log, EqualTo(("_op",), "delete"))[1] == []
    pieces, rows = read(log, GreaterThanOrEqual(("_pos",), middle), stop="shop.000001:900000")
    assert {row["_file"] for row in rows} == {"shop.000001"}
