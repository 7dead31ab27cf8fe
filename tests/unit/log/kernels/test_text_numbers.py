"""Numbers as text, digit for digit as Python's own formatting, which is exact, gives them."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.text_floats import put_float
from binlane.log.kernels.text_numbers import (
    FAILED,
    decimal_size,
    put_decimal,
    put_hex8,
    put_integer,
    put_unsigned,
)

DOUBLE, FLOAT = struct.Struct("<d"), struct.Struct("<f")
OUT = np.zeros(1024, np.uint8)
STATE = np.zeros(lay.STATE_SIZE, np.int64)


def written(end: int) -> str:
    return OUT[:end].tobytes().decode("ascii")


@given(st.floats(allow_nan=False))
@example(0.1)
@example(5e-324)
@example(1.7976931348623157e308)
@example(9007199254740993.0)
@example(99999999999999999999.0)
@example(-0.0)
@example(0.0625)
@example(0.1)
@example(0.09999999999999999)
@example(9.999999999999999822364)
@example(4503599627370497.5)
@example(0.5)
@example(1234567.891)
def test_a_double_has_twenty_digits(value: float) -> None:
    (bits,) = struct.unpack("<q", DOUBLE.pack(value))
    assert written(put_float(OUT, 0, bits, 8, 20, STATE)) == f"{value:.20g}"


@given(st.floats(-1e17, 1e17) | st.floats(-2, 2))
def test_usual_doubles_too(value: float) -> None:
    (bits,) = struct.unpack("<q", DOUBLE.pack(value))
    assert written(put_float(OUT, 0, bits, 8, 20, STATE)) == f"{value:.20g}"


@given(st.floats(allow_nan=False, width=32) | st.floats(-1, 1, width=32))
@example(999999.5)
@example(99999.9453125)
@example(999999.4375)
@example(0.5)
@example(0.00099999994)
@example(0.100000001)
@example(0.0001)
@example(16777216.0)
def test_a_float_has_six_digits(value: float) -> None:
    data = FLOAT.pack(value)
    (bits,), (exact,) = struct.unpack("<I", data), FLOAT.unpack(data)
    assert written(put_float(OUT, 0, bits, 4, 6, STATE)) == f"{exact:.6g}"


def test_nan_keeps_its_sign() -> None:
    (bits,) = struct.unpack("<q", DOUBLE.pack(-math.nan))
    assert written(put_float(OUT, 0, bits, 8, 20, STATE)) == "-nan"


@given(st.integers(-(2**63), 2**63 - 1))
@example(-(2**63))
@example(10**16)
def test_a_negative_integer_is_given_both_ways(value: int) -> None:
    text = str(value) if value >= 0 else f"{value} ({value + 2**64})"
    assert written(put_integer(OUT, 0, value, 8)) == text


@pytest.mark.parametrize(("size", "value"), [(1, -128), (2, -1), (3, -8388608), (4, -2)])
def test_what_an_integer_is_without_a_sign_follows_from_its_size(size: int, value: int) -> None:
    assert written(put_integer(OUT, 0, value, size)) == f"{value} ({value + 256**size})"


@given(st.integers(0, 2**64 - 1))
def test_eight_bytes_without_a_sign(value: int) -> None:
    signed = value - 2**64 if value >= 2**63 else value
    assert written(put_unsigned(OUT, 0, signed)) == str(value)


@given(st.integers(0, 2**32 - 1))
def test_eight_hexadecimal_digits(value: int) -> None:
    assert written(put_hex8(OUT, 0, value)) == f"{value:08x}"


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, Decimal]:
    """Precision, scale, and a number that has them."""
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(precision, 30)))
    number = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    sign, digits, _ = Decimal(number).as_tuple()
    return precision, scale, Decimal((sign, digits, -scale))


def encoded_decimal(precision: int, scale: int, value: Decimal) -> bytes:
    """As rows hold it: groups of nine digits, the odd ones at both ends, negative ones inverted."""
    digits = f"{value:f}".replace(".", "").lstrip("-").zfill(precision)[-precision:]
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    parts = [whole[:head], *(whole[at : at + 9] for at in range(head, len(whole), 9))]
    parts += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    data = b"".join(int(part).to_bytes(decimal_size(len(part)), "big") for part in parts if part)
    data = bytes((data[0] ^ 0x80,)) + data[1:]
    return bytes(byte ^ 0xFF for byte in data) if value < 0 else data


@given(decimals())
def test_a_decimal_has_all_its_digits(made: tuple[int, int, Decimal]) -> None:
    precision, scale, value = made
    data = np.frombuffer(encoded_decimal(precision, scale, value) + bytes(64), np.uint8)
    text = f"{value:f}" if value else f"{value:f}".lstrip("-")
    assert written(put_decimal(OUT, 0, data, 0, precision, scale)) == text


def test_ten_digits_where_nine_stand_are_no_decimal() -> None:
    data = np.frombuffer(b"\xff\xff\xff\xff" + bytes(64), np.uint8)
    assert put_decimal(OUT, 0, data, 0, 9, 0) == FAILED
