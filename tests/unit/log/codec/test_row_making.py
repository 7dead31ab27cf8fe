"""Rows of a prepared statement's result become images that decode to the same values."""

from __future__ import annotations

from decimal import Decimal
from struct import pack

import pytest

from binlane.errors import CodecError
from binlane.log.codec.columns import Column, decode_rows
from binlane.log.codec.compression import decompress_column
from binlane.log.codec.packets.framing import encode_packed_bytes
from binlane.log.codec.row_making import Cell, CellForm, RowMaker, compressed_record
from binlane.log.codec.types import ColumnType, Flavor
from tests.build import rows

_UTF8 = 45


def _column(kind: ColumnType, metadata: int = 0, collation_id: int | None = None) -> Column:
    return Column(
        index=0, type=kind, metadata=metadata, is_nullable=True, collation_id=collation_id
    )


_CASES = (
    (Cell(CellForm.WHOLE, 4, 3), _column(ColumnType.INT24), pack("<i", -8388608), -8388608),
    (Cell(CellForm.WHOLE, 8, 8), _column(ColumnType.LONGLONG), pack("<q", -1), -1),
    (
        Cell(CellForm.WHOLE, 4, 4),
        _column(ColumnType.FLOAT, 4),
        pack("<f", 0.1),
        0.10000000149011612,
    ),
    (Cell(CellForm.YEAR, 2), _column(ColumnType.YEAR), pack("<H", 2155), 2155),
    (Cell(CellForm.YEAR, 2), _column(ColumnType.YEAR), pack("<H", 0), 0),
    (
        Cell(CellForm.DECIMAL, 0, 20, 5),
        _column(ColumnType.NEWDECIMAL, 20 << 8 | 5),
        encode_packed_bytes(b"-000000000000012.34"),
        Decimal("-12.34000"),
    ),
    (
        Cell(CellForm.DECIMAL, 0, 2, 2),
        _column(ColumnType.NEWDECIMAL, 2 << 8 | 2),
        encode_packed_bytes(b"-0.00"),
        Decimal("0.00"),
    ),
    (Cell(CellForm.DATE), _column(ColumnType.DATE), b"\x04\xe8\x07\x02\x1d", "2024-02-29"),
    (Cell(CellForm.DATE), _column(ColumnType.DATE), b"\0", "0000-00-00"),
    (
        Cell(CellForm.TIME, 0, 0, 3),
        _column(ColumnType.TIME2, 3),
        b"\x0c\x01\x22\0\0\0\x16\x3b\x3b" + pack("<I", 345000),
        "-838:59:59.345",
    ),
    (Cell(CellForm.TIME), _column(ColumnType.TIME2), b"\0", "00:00:00"),
    (
        Cell(CellForm.DATETIME, 0, 0, 1),
        _column(ColumnType.DATETIME2, 1),
        b"\x0b\x0f\x27\x0c\x1f\x17\x3b\x3b" + pack("<I", 900000),
        "9999-12-31 23:59:59.9",
    ),
    (Cell(CellForm.DATETIME), _column(ColumnType.DATETIME2), b"\0", "0000-00-00 00:00:00"),
    (
        Cell(CellForm.TIMESTAMP, 0, 0, 6),
        _column(ColumnType.TIMESTAMP2, 6),
        b"\x0b\xe8\x07\x02\x1d\x0c\x0d\x0e" + pack("<I", 123456),
        "2024-02-29 12:13:14.123456",
    ),
    (
        Cell(CellForm.COUNTED, 0, 2),
        _column(ColumnType.VARCHAR, 300, _UTF8),
        encode_packed_bytes(b"x" * 280),
        "x" * 280,
    ),
    (
        Cell(CellForm.PADDED, 0, 1),
        _column(ColumnType.STRING, 0xFE04, 63),
        encode_packed_bytes(b"ab\0\0"),
        b"ab\0\0",
    ),
    (Cell(CellForm.BITS, 0, 2), _column(ColumnType.BIT, 1 << 8 | 4), b"\x02\x01\x01", 257),
    (
        Cell(CellForm.OLD_TIME),
        _column(ColumnType.TIME),
        b"\x08\x01\0\0\0\0\x0a\x0b\x0c",
        "-10:11:12",
    ),
    (
        Cell(CellForm.OLD_DATETIME),
        _column(ColumnType.DATETIME),
        b"\x07\xe8\x07\x02\x1d\x0c\x0d\x0e",
        "2024-02-29 12:13:14",
    ),
    (
        Cell(CellForm.OLD_TIMESTAMP),
        _column(ColumnType.TIMESTAMP),
        b"\x04\xb2\x07\x01\x02",
        "1970-01-02 00:00:00",
    ),
    (
        Cell(CellForm.COMPRESSED, 0, 2),
        _column(ColumnType.BLOB_COMPRESSED, 2, _UTF8),
        encode_packed_bytes(b"ab" * 200),
        "ab" * 200,
    ),
)


@pytest.mark.parametrize(("cell", "column", "sent", "value"), _CASES)
def test_an_image_has_the_value_that_was_sent(
    cell: Cell, column: Column, sent: bytes, value: object
) -> None:
    _, image = RowMaker([cell], (), flavor=Flavor.MYSQL).make(b"\0\0" + sent)
    ((_, after),) = decode_rows(rows(1, image), [column])
    assert after == (value,)
    _, image = RowMaker([cell], (), flavor=Flavor.MARIADB).make(b"\0\4")
    assert image == b"\xff"


def test_a_key_is_in_the_order_of_the_key() -> None:
    cells = [Cell(CellForm.WHOLE, 1, 1), Cell(CellForm.COUNTED, 0, 1)]
    key, image = RowMaker(cells, (1, 0), flavor=Flavor.MYSQL).make(b"\0\0\x07\x02ab")
    assert key == b"\x02ab\x07"
    assert image == b"\0\x07\x02ab"


def test_a_value_without_room_is_told_with_its_column() -> None:
    maker = RowMaker([Cell(CellForm.DECIMAL, 0, 3, 1)], (), flavor=Flavor.MYSQL)
    with pytest.raises(CodecError, match=r"column 1: 123\.4 is no DECIMAL\(3,1\)"):
        maker.make(b"\0\0" + encode_packed_bytes(b"123.4"))


def test_a_compressed_record_gives_its_value() -> None:
    for data in (b"", b"short", b"long " * 100, bytes(range(256))):
        assert decompress_column(compressed_record(data)) == data
