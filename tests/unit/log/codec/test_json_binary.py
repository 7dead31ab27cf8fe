"""Documents as MySQL 9.7 stores them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from binlane.errors import CodecError
from binlane.log.codec.json_binary import DEPTH_MAX, JsonDocument, decode_json

DATETIME = ((2024 * 13 + 5) << 5 | 6) << 17 | 7 << 12 | 8 << 6 | 9


# {"a": 1, "b": [true]}: count, size; keys; values; then the keys' letters and the array.
SMALL_OBJECT = bytes.fromhex("0002001b001200010013000100050100021400616201000700040100")
# Numbers of four bytes, of which an int32 has room in its entry.
LARGE_ARRAY = bytes.fromhex("03020000001400000007701101000c120000000178")


def opaque(column_type: int, data: bytes) -> bytes:
    return bytes((15, column_type, len(data))) + data


def packed(whole: int, microseconds: int) -> bytes:
    return (whole * (1 << 24) + microseconds).to_bytes(8, "little", signed=True)


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "null"),
        (bytes.fromhex("0400"), "null"),
        (bytes.fromhex("0401"), "true"),
        (bytes.fromhex("0402"), "false"),
        (bytes.fromhex("05ffff"), "-1"),
        (bytes.fromhex("06ffff"), "65535"),
        (bytes.fromhex("0700000080"), "-2147483648"),
        (bytes.fromhex("08ffffffff"), "4294967295"),
        (bytes.fromhex("090000000000000080"), "-9223372036854775808"),
        (bytes.fromhex("0affffffffffffffff"), "18446744073709551615"),
        (bytes.fromhex("0b000000000000f83f"), "1.5"),
        (bytes.fromhex("0b0000000000000080"), "-0.0"),
        (bytes.fromhex("0ba0c8eb85f3cce17f"), "1e308"),
        (b"\x0c\x03abc", '"abc"'),
        (b"\x0c\x04\xf0\x9f\x98\x80", '"😀"'),
        (b"\x0c\x80\x01" + b"a" * 128, '"' + "a" * 128 + '"'),
        (bytes.fromhex("0000000400"), "{}"),
        (bytes.fromhex("0200000400"), "[]"),
        (SMALL_OBJECT, '{"a": 1, "b": [true]}'),
        (LARGE_ARRAY, '[70000, "x"]'),
        (opaque(246, bytes.fromhex("0a038000007b01c8")), "123.456"),
        (opaque(10, packed(((2024 * 13 + 5) << 5 | 6) << 17, 0)), '"2024-05-06"'),
        (opaque(12, packed(DATETIME, 123456)), '"2024-05-06 07:08:09.123456"'),
        (opaque(7, packed(DATETIME, 0)), '"2024-05-06 07:08:09.000000"'),
        (opaque(11, packed(-(12 << 12 | 34 << 6 | 56), -789000)), '"-12:34:56.789000"'),
        (opaque(15, b"\0\xff"), '"base64:type15:AP8="'),
    ],
)
def test_documents_print_as_the_server_prints_them(data: bytes, text: str) -> None:
    assert str(decode_json(data)) == text


def test_numbers_keep_all_their_digits() -> None:
    assert decode_json(opaque(246, bytes.fromhex("0a038000007b01c8"))) == JsonDocument(
        Decimal("123.456")
    )
    assert decode_json(bytes.fromhex("0affffffffffffffff")).value == 2**64 - 1


def nested(depth: int) -> bytes:
    """Arrays in arrays, each with one element."""
    array = bytes.fromhex("00000400")
    for _ in range(depth - 1):
        array = bytes.fromhex("010000000207 00".replace(" ", "")) + array
    return b"\2" + array


def test_nesting_has_the_servers_limit() -> None:
    assert str(decode_json(nested(DEPTH_MAX))) == "[" * DEPTH_MAX + "]" * DEPTH_MAX
    with pytest.raises(CodecError, match="nested more than 100 deep"):
        decode_json(nested(DEPTH_MAX + 1))


def test_a_document_that_refers_to_itself_does_not_grow_without_bounds() -> None:
    # Two elements, both the array itself.
    with pytest.raises(CodecError, match="more entries than bytes"):
        decode_json(bytes.fromhex("0202000a00020000020000"))


@pytest.mark.parametrize(
    "data, message",
    [
        ("63", "JSON type 99 is unknown"),
        ("0403", "JSON literal 3 is unknown"),
        ("0cffffffffff", "takes more than 5 bytes"),
        ("0c01ff", "is not UTF-8"),
        ("0ff600", "has no digits"),
        ("020100ff000cffff", "stands at 65536"),
        ("05ff", "2 bytes expected"),
    ],
)
def test_bytes_that_are_no_document(data: str, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decode_json(bytes.fromhex(data))
