from __future__ import annotations

import pytest

from binlane.errors import CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.columns import ABSENT, Column, RowChange, decode_rows, value_decoder
from binlane.log.codec.rows import DeleteRowsV1Event, RowsEvent, UpdateRowsV1Event, WriteRowsEvent
from binlane.log.codec.types import ColumnType
from tests.build import rows

ID = Column(index=0, type=ColumnType.TINY, metadata=0, is_nullable=False)
NAME = Column(index=1, type=ColumnType.VARCHAR, metadata=20, is_nullable=True)
COLUMNS = (ID, NAME)
# Type codes that no server writes in a TABLE_MAP or binlane cannot read.
UNREADABLE = {ColumnType.DECIMAL, ColumnType.TYPED_ARRAY}


def changes(event: RowsEvent, columns: tuple[Column, ...] = COLUMNS) -> list[RowChange]:
    return list(decode_rows(event, columns))


def test_an_insert_has_after_images() -> None:
    images = b"\xfc\x01\x02ab" + b"\xfe\x02"
    assert changes(rows(2, images, kind=WriteRowsEvent)) == [
        (None, (1, "ab")),
        (None, (2, None)),
    ]


def test_a_delete_has_before_images() -> None:
    assert changes(rows(2, b"\xfe\x02", kind=DeleteRowsV1Event)) == [((2, None), None)]


def test_an_update_has_both_with_bitmaps_of_their_own() -> None:
    event = rows(2, b"\xfe\x01" + b"\xfc\x01x", kind=UpdateRowsV1Event, present=1, present_after=2)
    assert changes(event) == [((1, ABSENT), (ABSENT, "x"))]


def test_nulls_are_counted_over_the_columns_present() -> None:
    columns = tuple(
        Column(index=index, type=ColumnType.TINY, metadata=0, is_nullable=True)
        for index in range(10)
    )
    event = rows(10, bytes((0b101, 7)), present=0b1000000101)
    (change,) = changes(event, columns)
    assert change == (None, (None, ABSENT, 7, *[ABSENT] * 6, None))


def test_an_image_may_not_end_inside_a_value() -> None:
    with pytest.raises(TruncatedError):
        changes(rows(2, b"\xfc\x01\x03ab"))


def test_bytes_without_columns_are_damage() -> None:
    with pytest.raises(CodecError, match="images have no columns"):
        changes(rows(2, b"\0", present=0))
    assert changes(rows(2, b"", present=0)) == []


def test_rows_must_have_as_many_columns_as_their_table() -> None:
    with pytest.raises(CodecError, match="rows have 3 columns, their TABLE_MAP has 2"):
        changes(rows(3, b"\xf8\1\1a"))


def test_absent_is_not_null() -> None:
    assert repr(ABSENT) == "ABSENT"
    assert ABSENT is not None


def test_no_row_of_an_old_temporal_type_is_given_before_all_are_right() -> None:
    columns = (Column(index=0, type=ColumnType.TIME, metadata=0, is_nullable=True),)
    good = b"\xfe" + (123456).to_bytes(3, "little")
    assert changes(rows(1, good * 2), columns) == [(None, ("12:34:56",))] * 2
    decoded = decode_rows(rows(1, good + b"\xfe\xff\xff\x7f"), columns)
    with pytest.raises(UnsupportedError, match="do not decode: 8388607 is no TIME") as caught:
        next(decoded)
    assert "mysql56_temporal_format" in caught.value.hint


@pytest.mark.parametrize("column_type", sorted(set(ColumnType) - UNREADABLE))
def test_every_type_has_a_decoder(column_type: ColumnType) -> None:
    metadata = 0x0100 if column_type is ColumnType.NEWDECIMAL else 1
    value_decoder(Column(index=4, type=column_type, metadata=metadata, is_nullable=True))


@pytest.mark.parametrize("column_type", sorted(UNREADABLE))
def test_types_that_cannot_be_read_are_refused(column_type: ColumnType) -> None:
    column = Column(index=4, type=column_type, metadata=1, is_nullable=True)
    with pytest.raises(UnsupportedError, match=f"column 5 is of type {column_type.name}"):
        value_decoder(column)


@pytest.mark.parametrize(
    "metadata, length_max", [(0xFE0A, 10), (0xFEFF, 255), (0xEE00, 256), (0xCEFC, 1020)]
)
def test_a_long_char_hides_length_bits_in_its_type(metadata: int, length_max: int) -> None:
    column = Column(index=0, type=ColumnType.STRING, metadata=metadata, is_nullable=True)
    assert column.length_max == length_max


def test_metadata_tells_what_a_type_needs() -> None:
    decimal = Column(index=0, type=ColumnType.NEWDECIMAL, metadata=0x0A02, is_nullable=True)
    assert (decimal.precision, decimal.scale) == (10, 2)
    bit = Column(index=0, type=ColumnType.BIT, metadata=0x0103, is_nullable=True)
    assert bit.bits == 11
    enum = Column(index=0, type=ColumnType.ENUM, metadata=0xF702, is_nullable=True)
    assert enum.pack_length == 2
