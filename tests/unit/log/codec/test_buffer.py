from __future__ import annotations

from struct import Struct

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.buffer import Reader, encode_packed_int

PACKED = [
    (0, "00"),
    (250, "fa"),
    (251, "fcfb00"),
    (65535, "fcffff"),
    (65536, "fd000001"),
    (2**24 - 1, "fdffffff"),
    (2**24, "fe0000000100000000"),
    (2**64 - 1, "feffffffffffffffff"),
]


def test_fields_are_read_one_after_the_other() -> None:
    reader = Reader(bytes(range(1, 30)))
    assert reader.u8() == 0x01
    assert reader.u16() == 0x0302
    assert reader.u24() == 0x060504
    assert reader.u32() == 0x0A090807
    assert reader.u48() == 0x100F0E0D0C0B
    assert reader.u64() == 0x1817161514131211
    assert reader.unpack(Struct(">H")) == (0x191A,)
    assert (reader.offset, reader.remaining) == (26, 3)
    assert reader.rest() == bytes((27, 28, 29))
    reader.finish()


@pytest.mark.parametrize("value, encoded", PACKED)
def test_packed_integers_have_their_shortest_form(value: int, encoded: str) -> None:
    assert encode_packed_int(value).hex() == encoded
    reader = Reader(bytes.fromhex(encoded))
    assert reader.packed_int() == value
    reader.finish()


@pytest.mark.parametrize("first", [0xFB, 0xFF])
def test_null_and_error_marks_are_no_numbers(first: int) -> None:
    with pytest.raises(CodecError, match=f"0x{first:02X} starts no length-encoded integer"):
        Reader(bytes((first, 0, 0))).packed_int()


def test_no_read_goes_beyond_the_end() -> None:
    reader = Reader(b"abcdef", 1, 4)
    with pytest.raises(TruncatedError, match="4 bytes expected at offset 1, 3 left") as caught:
        reader.u32()
    assert caught.value.offset == 1
    assert reader.take(3) == b"bcd"
    with pytest.raises(TruncatedError):
        reader.u8()
    with pytest.raises(TruncatedError):
        reader.take(-1)


def test_bytes_left_over_are_an_error() -> None:
    with pytest.raises(CodecError, match="2 bytes left over") as caught:
        Reader(b"abc", 1).finish()
    assert caught.value.offset == 1
