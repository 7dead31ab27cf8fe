from __future__ import annotations

from decimal import Decimal

import pytest

from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.numbers import (
    bit_decoder,
    decimal_decoder,
    decimal_from_bytes,
    decimal_length,
    decode_double,
    decode_float,
    decode_year,
    encode_decimal,
    integer_decoder,
)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 8])
def test_integers_of_all_widths_with_and_without_sign(length: int) -> None:
    top = 1 << (8 * length - 1)
    for value in (0, 1, top - 1):
        data = value.to_bytes(length, "little")
        assert integer_decoder(length, is_unsigned=False)(Reader(data)) == value
        assert integer_decoder(length, is_unsigned=True)(Reader(data)) == value
    data = top.to_bytes(length, "little")
    assert integer_decoder(length, is_unsigned=False)(Reader(data)) == -top
    assert integer_decoder(length, is_unsigned=True)(Reader(data)) == top
    with pytest.raises(TruncatedError):
        integer_decoder(length, is_unsigned=True)(Reader(data[:-1]))


def test_floats_keep_their_exact_value() -> None:
    assert decode_float(Reader(bytes.fromhex("cdcccc3d"))) == 0.10000000149011612
    assert decode_double(Reader(bytes.fromhex("9a9999999999b93f"))) == 0.1


def test_a_year_counts_from_1900_and_0_is_0000() -> None:
    assert [decode_year(Reader(bytes((byte,)))) for byte in (0, 1, 124, 255)] == [
        0,
        1901,
        2024,
        2155,
    ]


@pytest.mark.parametrize(
    "bits, data, value", [(1, "01", 1), (9, "0180", 0x180), (64, "ff" * 8, 2**64 - 1)]
)
def test_bits_are_big_endian(bits: int, data: str, value: int) -> None:
    reader = Reader(bytes.fromhex(data))
    assert bit_decoder(bits)(reader) == value
    reader.finish()


# As MariaDB 10.11 stores them: mariadb-binlog --hexdump of INSERTs.
@pytest.mark.parametrize(
    "precision, scale, data, text",
    [
        (14, 4, "810dfb38d204d2", "1234567890.1234"),
        (14, 4, "7ef204c72dfb2d", "-1234567890.1234"),
        (5, 2, "800000", "0.00"),
        (5, 2, "83e763", "999.99"),
        (5, 2, "7c189c", "-999.99"),
        (0, 0, "", "0"),
        (1, 0, "89", "9"),
        (1, 1, "89", "0.9"),
        (9, 9, "80000001", "0.000000001"),
        (18, 9, "bb9ac9ff3b9ac9ff", "999999999.999999999"),
    ],
)
def test_decimals_keep_every_digit_of_their_scale(
    precision: int, scale: int, data: str, text: str
) -> None:
    encoded = bytes.fromhex(data)
    assert len(encoded) == decimal_length(precision, scale)
    value = decimal_from_bytes(encoded, precision, scale)
    assert (value, format(value, "f")) == (Decimal(text), text)
    assert decimal_decoder(precision, scale)(Reader(encoded)) == value


def test_the_longest_decimal_is_exact() -> None:
    data = bytes.fromhex("85f5e0ff" + 6 * "3b9ac9ff" + "03e7")
    assert decimal_length(65, 30) == len(data)
    assert format(decimal_from_bytes(data, 65, 30), "f") == "9" * 35 + "." + "9" * 30


def test_more_digits_than_there_is_room_for_are_damage() -> None:
    with pytest.raises(CodecError, match="has 255 where 2 digits have room"):
        decimal_from_bytes(bytes.fromhex("8000ff"), 5, 2)
    with pytest.raises(CodecError, match="more decimals than digits"):
        decimal_decoder(2, 5)


@pytest.mark.parametrize(
    "text, packed",
    [
        # As MariaDB 10.11 and MySQL 9.7 log them.
        ("5.25", "03028519"),
        ("0.5", "02018005"),
        ("-0.05", "03027ffa"),
        ("0", "010080"),
        ("123456789012.5", "0d01807b1b3a0c1405"),
    ],
)
def test_decimals_of_user_variables(text: str, packed: str) -> None:
    encoded = encode_decimal(text)
    assert encoded.hex() == packed
    precision, scale = encoded[:2]
    assert decimal_from_bytes(encoded[2:], precision, scale) == Decimal(text)
