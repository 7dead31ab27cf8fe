from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlane.tables.columnar.unify import cast_exactly, common_type, conform_table, unify_schemas


@pytest.mark.parametrize(
    "first, second, expected",
    [
        (pa.int32(), pa.int32(), pa.int32()),
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.int64(), pa.decimal128(20, 0), pa.decimal128(20, 0)),
        (pa.decimal128(10, 2), pa.decimal128(12, 0), pa.decimal128(14, 2)),
        (pa.decimal128(38, 0), pa.decimal128(38, 30), pa.string()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.string(), pa.binary(), pa.binary()),
        (pa.null(), pa.date32(), pa.date32()),
        (pa.date32(), pa.timestamp("us"), pa.string()),
        (pa.int32(), pa.string(), pa.string()),
        (pa.int32(), pa.float32(), pa.string()),
        (pa.date32(), pa.binary(), pa.binary()),
    ],
)
def test_a_type_for_both(first: pa.DataType, second: pa.DataType, expected: pa.DataType) -> None:
    assert common_type(first, second) == expected
    assert common_type(second, first) == expected


VALUES: list[pa.Array[Any]] = [
    pa.array([-128, 127], pa.int8()),
    pa.array([-(2**63), 2**63 - 1], pa.int64()),
    pa.array([Decimal(0), Decimal(2**64 - 1)], pa.decimal128(20, 0)),
    pa.array([Decimal("0.01"), Decimal("-99999999.99")], pa.decimal128(10, 2)),
    pa.array([Decimal("1e-38"), None], pa.decimal128(38, 38)),
    pa.array([1.5, -3.25], pa.float32()),
    pa.array([0.1, 5e-324], pa.float64()),
    pa.array([date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
    pa.array([0, 7], pa.timestamp("us")),
    pa.array([0, 7], pa.timestamp("us", tz="UTC")),
    pa.array(["", "ä"], pa.string()),
    pa.array([b"", b"\xff"], pa.binary()),
    pa.array([None, None], pa.null()),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda each: str(each.type))
def test_a_type_for_both_has_room_for_all_values(values: pa.Array[Any]) -> None:
    for others in VALUES:
        found = cast_exactly(values, common_type(values.type, others.type))
        assert found.null_count == values.null_count
        assert len(found.unique()) == len(values.unique())


def test_all_columns_in_the_order_of_the_last_schema() -> None:
    before = pa.schema([pa.field("gone", pa.string())]).append(pa.field("id", pa.int32()))
    after = pa.schema([pa.field("new", pa.int8())]).append(pa.field("id", pa.int64()))
    unified = unify_schemas([before, after])
    assert [(field.name, field.type) for field in unified] == [
        ("new", pa.int8()),
        ("id", pa.int64()),
        ("gone", pa.string()),
    ]


def test_rows_in_another_schema() -> None:
    schema = pa.schema({"new": pa.int8(), "id": pa.int64()})
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int32()), "gone": ["a", "b"]})
    expected = [{"new": None, "id": 1}, {"new": None, "id": 2}]
    table = conform_table(pa.Table.from_batches([batch]), schema)
    assert table.schema == schema
    assert table.to_pylist() == expected


def test_columns_may_be_spelled_otherwise() -> None:
    rows = pa.table({"ID": [1], "id": [2], "State": ["a"]})
    found = conform_table(
        rows, pa.schema([pa.field("state", pa.string())]).append(pa.field("id", pa.int64()))
    )
    assert found.to_pylist() == [{"state": "a", "id": 2}]


def test_nothing_is_lost_silently() -> None:
    rows = pa.table({"id": [300]})
    with pytest.raises(pa.ArrowInvalid):
        conform_table(rows, pa.schema([("id", pa.int8())]))
