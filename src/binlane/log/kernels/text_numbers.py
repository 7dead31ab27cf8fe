"""Numbers as text, digit for digit as C's printf gives them.

Every function writes into a buffer at a position and gives the position behind what it wrote;
whoever calls it has made sure that `VALUE_ROOM` bytes are free.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import load_be
from binlane.log.kernels.text_memory import store_u64

Bytes = npt.NDArray[np.uint8]

VALUE_ROOM = 512
BLANK, MINUS, DOT, ZERO = 32, 45, 46, 48
FAILED = -1
# Powers of ten.
TENS = 10 ** np.arange(19, dtype=np.int64)


@register_jitable(forceinline=True)
def eight_digits(value: int) -> int:
    """A number below 10**8 as eight characters, the first one in the lowest byte."""
    pairs = value // 10_000 | (value % 10_000) << 32
    hundreds = (pairs * 10_486 >> 20) & 0x7F0000007F
    pairs = hundreds | (pairs - 100 * hundreds) << 16
    tens = (pairs * 103 >> 10) & 0x000F000F000F000F
    return (tens | (pairs - 10 * tens) << 8) + 0x3030303030303030


@register_jitable(forceinline=True)
def put_padded(out: Bytes, at: int, value: int, width: int) -> int:
    """A number with so many digits, at most 8, zeros before it."""
    store_u64(out, at, eight_digits(value) >> 8 * (8 - width))
    return at + width


@register_jitable
def number_width(value: int) -> int:
    """Digits of a number below 10**8."""
    if value < 10_000:
        if value < 100:
            return 1 if value < 10 else 2
        return 3 if value < 1000 else 4
    if value < 1_000_000:
        return 5 if value < 100_000 else 6
    return 7 if value < 10_000_000 else 8


@register_jitable(forceinline=True)
def _put_below_1e8(out: Bytes, at: int, value: int) -> int:
    return put_padded(out, at, value, number_width(value))


@register_jitable
def put_number(out: Bytes, at: int, value: int) -> int:
    """A number that is not negative."""
    if value < 100_000_000:
        return _put_below_1e8(out, at, value)
    high = value // 100_000_000
    if high < 100_000_000:
        at = _put_below_1e8(out, at, high)
    else:
        at = _put_below_1e8(out, at, high // 100_000_000)
        at = put_padded(out, at, high % 100_000_000, 8)
    return put_padded(out, at, value % 100_000_000, 8)


@register_jitable
def put_unsigned(out: Bytes, at: int, value: int) -> int:
    """Eight bytes as a number without sign: one that is negative stands for 2**64 more."""
    if value >= 0:
        return put_number(out, at, value)
    tenth = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) // 5
    at = put_number(out, at, tenth)
    out[at] = ZERO + ((value - 10 * tenth) & 15)
    return at + 1


@register_jitable
def put_signed(out: Bytes, at: int, value: int) -> int:
    """A number with its sign."""
    if value >= 0:
        return put_number(out, at, value)
    out[at] = MINUS
    return put_unsigned(out, at + 1, -value)


@register_jitable(forceinline=True)
def put_integer(out: Bytes, at: int, value: int, size: int) -> int:
    """Write an integer; the log has no sign, so a negative one is written both ways.

    Args:
        out: The buffer that receives the text.
        at: The text's position in that buffer.
        value: The value as if it were signed.
        size: Bytes that it has in the row, 1 to 8.
    """
    if value >= 0:
        return put_number(out, at, value)
    at = put_signed(out, at, value)
    out[at] = 32
    out[at + 1] = 40
    unsigned = value if size == 8 else value + (1 << 8 * size)
    at = put_unsigned(out, at + 2, unsigned)
    out[at] = 41
    return at + 1


@register_jitable
def hex_digits(value: int) -> int:
    """Thirty-two bits as eight lower-case hexadecimal digits, the first one in the lowest byte."""
    pairs = (value & 0xFFFF) << 32 | value >> 16
    pairs = (pairs & 0x000000FF000000FF) << 16 | (pairs >> 8 & 0x000000FF000000FF)
    digits = (pairs & 0x000F000F000F000F) << 8 | (pairs >> 4 & 0x000F000F000F000F)
    letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101
    return digits + 0x3030303030303030 + letters * 39


@register_jitable
def put_hex8(out: Bytes, at: int, value: int) -> int:
    """Thirty-two bits as eight lower-case hexadecimal digits."""
    store_u64(out, at, hex_digits(value))
    return at + 8


@register_jitable
def decimal_size(digits: int) -> int:
    """Bytes of so many decimal digits: nine in four bytes, fewer in as few as they need."""
    rest = digits % 9
    return digits // 9 * 4 + (rest + 1) // 2


@register_jitable
def put_decimal(out: Bytes, at: int, data: Bytes, start: int, precision: int, scale: int) -> int:
    """Write a DECIMAL; FAILED if the bytes are none, or a negative zero.

    Args:
        out: The buffer that receives the text.
        at: The text's position in that buffer.
        data: The buffer of the row.
        start: The start of the value, whose `decimal_size` is inside of `data`.
        precision: The number of digits in all.
        scale: The number of digits behind the point.
    """
    whole_digits = precision - scale
    sign = -1 if data[start] < 0x80 else 1
    if sign < 0:
        out[at] = MINUS
        at += 1
    begin = at
    position = start
    is_zero = True
    # Digits of the groups from the left: the odd one first before the point, last behind it.
    left = whole_digits
    while left > 0:
        digits = left % 9 or 9
        value = _decimal_group(data, position, digits, start, sign)
        if value < 0:
            return FAILED
        position += decimal_size(digits)
        left -= digits
        if at > begin:
            at = put_group(out, at, value, digits)
        elif value:
            at = put_number(out, at, value)
        is_zero = is_zero and value == 0
    if at == begin:
        out[at] = ZERO
        at += 1
    if scale:
        out[at] = DOT
        at += 1
    left = scale
    while left > 0:
        digits = min(9, left)
        value = _decimal_group(data, position, digits, start, sign)
        if value < 0:
            return FAILED
        position += decimal_size(digits)
        left -= digits
        at = put_group(out, at, value, digits)
        is_zero = is_zero and value == 0
    return FAILED if is_zero and sign < 0 else at


@register_jitable
def _decimal_group(data: Bytes, position: int, digits: int, start: int, sign: int) -> int:
    """Read up to nine digits of a DECIMAL as a number; FAILED if it has more of them."""
    size = decimal_size(digits)
    value = load_be(data, position, size)
    if position == start:
        value ^= 1 << (8 * size - 1)
    if sign < 0:
        value ^= (1 << 8 * size) - 1
    return value if value < TENS[digits] else FAILED


@register_jitable
def put_group(out: Bytes, at: int, value: int, digits: int) -> int:
    """A number with so many digits, at most 9, zeros before it."""
    if digits == 9:
        out[at] = ZERO + value // 100_000_000
        return put_padded(out, at + 1, value % 100_000_000, 8)
    return put_padded(out, at, value, digits)
