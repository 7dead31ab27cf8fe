from __future__ import annotations

import pyarrow as pa
import pytest

from binlane.columnar.unify import common_type, conform_table, unify_schemas


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
    ],
)
def test_a_type_for_both(first: pa.DataType, second: pa.DataType, expected: pa.DataType) -> None:
    assert common_type(first, second) == expected
    assert common_type(second, first) == expected


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


def test_nothing_is_lost_silently() -> None:
    rows = pa.table({"id": [300]})
    with pytest.raises(pa.ArrowInvalid):
        conform_table(rows, pa.schema([("id", pa.int8())]))
