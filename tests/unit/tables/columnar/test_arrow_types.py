from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlane.log.codec.columns import Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.types import ColumnType
from binlane.tables.columnar.arrow_types import arrow_type, converter

UTF8MB4, BINARY = 45, 63


def column(kind: ColumnType, metadata: int = 0, **facts: Any) -> Column:
    return Column(index=0, type=kind, metadata=metadata, is_nullable=True, **facts)


@pytest.mark.parametrize(
    "kind, signed, unsigned",
    [
        (ColumnType.TINY, pa.int8(), pa.int16()),
        (ColumnType.SHORT, pa.int16(), pa.int32()),
        (ColumnType.INT24, pa.int32(), pa.int32()),
        (ColumnType.LONG, pa.int32(), pa.int64()),
        (ColumnType.LONGLONG, pa.int64(), pa.decimal128(20, 0)),
    ],
)
def test_integers_have_room_for_their_sign(
    kind: ColumnType, signed: pa.DataType, unsigned: pa.DataType
) -> None:
    assert arrow_type(column(kind, is_unsigned=False)) == signed
    assert arrow_type(column(kind, is_unsigned=None)) == signed
    assert arrow_type(column(kind, is_unsigned=True)) == unsigned


@pytest.mark.parametrize(
    "given, expected",
    [
        (column(ColumnType.FLOAT, 4), pa.float32()),
        (column(ColumnType.DOUBLE, 8), pa.float64()),
        (column(ColumnType.YEAR), pa.int64()),
        (column(ColumnType.BIT, 1), pa.int64()),
        (column(ColumnType.BIT, (7 << 8) + 7), pa.int64()),
        (column(ColumnType.BIT, 8 << 8), pa.decimal128(20, 0)),
        (column(ColumnType.NEWDECIMAL, (38 << 8) + 30), pa.decimal128(38, 30)),
        (column(ColumnType.NEWDECIMAL, (39 << 8) + 2), pa.string()),
        (column(ColumnType.DATE), pa.date32()),
        (column(ColumnType.TIME2, 6), pa.string()),
        (column(ColumnType.DATETIME2, 6), pa.timestamp("us")),
        (column(ColumnType.TIMESTAMP2, 0), pa.timestamp("us", tz="UTC")),
        (column(ColumnType.ENUM, 1), pa.string()),
        (column(ColumnType.SET, 1), pa.string()),
        (column(ColumnType.JSON, 4), pa.string()),
        (column(ColumnType.GEOMETRY, 4), pa.binary()),
        (column(ColumnType.VARCHAR, 80, collation_id=UTF8MB4), pa.string()),
        (column(ColumnType.VARCHAR, 80, collation_id=BINARY), pa.binary()),
        (column(ColumnType.VARCHAR, 80), pa.string()),
        (column(ColumnType.STRING, 4, collation_id=BINARY), pa.binary()),
        (column(ColumnType.BLOB, 2, collation_id=UTF8MB4), pa.string()),
        (column(ColumnType.BLOB, 2, collation_id=BINARY), pa.binary()),
        (column(ColumnType.BLOB, 2), pa.binary()),
    ],
)
def test_types(given: Column, expected: pa.DataType) -> None:
    assert arrow_type(given) == expected


def test_every_column_type_has_one() -> None:
    # DECIMAL is from before 5.0, arrays are in no table.
    for kind in set(ColumnType) - {ColumnType.DECIMAL, ColumnType.TYPED_ARRAY}:
        values = pa.array([None], arrow_type(column(kind, (10 << 8) + 2)))
        assert values.null_count == 1


@pytest.mark.parametrize(
    "data_type, value, expected",
    [
        (pa.date32(), "2024-02-29", date(2024, 2, 29)),
        (pa.date32(), "0000-00-00", None),
        (pa.date32(), "2024-00-15", None),
        (pa.date32(), "2023-02-31", None),
        (pa.timestamp("us"), "2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        (
            pa.timestamp("us"),
            "9999-12-31 23:59:59.999999",
            datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        ),
        (pa.timestamp("us"), "0000-00-00 00:00:00.0", None),
        (
            pa.timestamp("us", tz="UTC"),
            "2024-01-02 03:04:05.5",
            datetime(2024, 1, 2, 3, 4, 5, 500000, UTC),
        ),
        (pa.string(), "text", "text"),
        (pa.string(), b"\xff", '{"base64": "/w=="}'),
        (pa.string(), ("x", "z"), "x,z"),
        (pa.string(), (), ""),
        (pa.string(), 3, "3"),
        (pa.string(), Decimal("0E-30"), "0.000000000000000000000000000000"),
        (pa.string(), JsonDocument({"a": Decimal("1.50")}), '{"a": 1.50}'),
        (pa.binary(), "é", b"\xc3\xa9"),
        (pa.binary(), b"\x00", b"\x00"),
    ],
)
def test_values_that_arrow_takes_in_another_form(
    data_type: pa.DataType, value: object, expected: object
) -> None:
    convert = converter(data_type)
    assert convert is not None
    assert convert(value) == expected


def test_numbers_are_taken_as_they_are() -> None:
    for data_type in (pa.int8(), pa.float32(), pa.decimal128(20, 0)):
        assert converter(data_type) is None
    values = pa.array([2**64 - 1], pa.decimal128(20, 0))
    assert values[0].as_py() == 2**64 - 1
