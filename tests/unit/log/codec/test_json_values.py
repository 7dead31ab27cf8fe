from __future__ import annotations

import json
import struct
from decimal import Decimal

import pytest

from binlane.log.codec.columns import ABSENT, Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_values import json_row, json_value, shortest_float
from binlane.log.codec.types import ColumnType


@pytest.mark.parametrize(
    "value, column_type, written",
    [
        (2**64 - 1, ColumnType.LONGLONG, "18446744073709551615"),
        (Decimal("1.50"), ColumnType.NEWDECIMAL, '"1.50"'),
        (Decimal("0E-9"), ColumnType.NEWDECIMAL, '"0.000000000"'),
        (0.10000000149011612, ColumnType.FLOAT, "0.1"),
        (0.1, ColumnType.DOUBLE, "0.1"),
        ("2024-00-00", ColumnType.DATE, '"2024-00-00"'),
        (b"\0\xff", ColumnType.BLOB, '{"base64": "AP8="}'),
        (("a", "c"), ColumnType.SET, '["a", "c"]'),
        ("", ColumnType.ENUM, '""'),
        (JsonDocument({"a": [1, None]}), ColumnType.JSON, '{"a": [1, null]}'),
        (JsonDocument(None), ColumnType.JSON, "null"),
        (None, ColumnType.LONG, "null"),
    ],
)
def test_values_are_written_as_the_contract_says(
    value: object, column_type: ColumnType, written: str
) -> None:
    assert json.dumps(json_value(value, column_type)) == written


@pytest.mark.parametrize(
    "value", [0.1, 1e10, 3.4028234663852886e38, -1.1754943508222875e-38, 16777217.0]
)
def test_the_shortest_float_reads_back(value: float) -> None:
    stored = struct.unpack("<f", struct.pack("<f", value))[0]
    short = shortest_float(stored)
    assert struct.pack("<f", short) == struct.pack("<f", stored)
    assert len(repr(short)) <= len(repr(stored))


def test_rows_go_by_name_or_number_and_leave_out_what_is_absent() -> None:
    columns = [
        Column(index=0, type=ColumnType.LONG, metadata=0, is_nullable=False, name="id"),
        Column(index=1, type=ColumnType.LONG, metadata=0, is_nullable=True),
        Column(index=2, type=ColumnType.LONG, metadata=0, is_nullable=True, name="gone"),
    ]
    assert json_row(columns, (1, None, ABSENT)) == {"id": 1, "@2": None}
