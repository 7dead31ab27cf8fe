"""Dates, times, bits, strings and base64 as text, letter for letter as mariadb-binlog gives them.

As in `text_numbers`, each function gives the position behind what it wrote, FAILED where the bytes
are no such value. Strings and base64 need more room than other values; their callers see to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import load_be, load_i64, load_u24
from binlane.log.kernels.text_memory import (
    LANES,
    copy_lanes,
    copy_literal_lanes,
    first_bit,
    store_u16,
    store_u64,
)
from binlane.log.kernels.text_numbers import (
    BLANK,
    DOT,
    FAILED,
    MINUS,
    TENS,
    ZERO,
    eight_digits,
    put_number,
    put_padded,
)

Bytes = npt.NDArray[np.uint8]

QUOTE, COLON, DASH, LINE_END = 39, 58, 45, 10
BASE64_LINE_BYTES = 57
_TIME_BIAS = 0x800000
_DATETIME_BIAS = 0x8000000000
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SIXES = np.frombuffer(_ALPHABET, np.uint8).astype(np.int64)
# The eight bits of each byte as characters, the highest one first.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1) + np.uint8(48)
_BINARY = _BITS.view("<i8").ravel().astype(np.int64)
# Of the characters that mysqlbinlog writes with a backslash and a letter, the letter.
_LETTERS = np.zeros(256, np.int64)
_LETTERS[np.frombuffer(b"\b\t\n\f\r'\\", np.uint8)] = np.frombuffer(b"btnfr'\\", np.uint8)
# Two characters of base64 for twelve bits.
_TWELVES = (_SIXES[np.arange(4096) >> 6] | _SIXES[np.arange(4096) & 63] << 8).astype(np.int64)


@register_jitable
def put_date(out: Bytes, at: int, packed: int, separator: int) -> int:
    """A date of three bytes, year first: `2024-02-29` with its separator."""
    word = eight_digits((packed >> 9) * 10_000 + (packed >> 5 & 15) * 100 + (packed & 31))
    store_u64(out, at, word)
    out[at + 4] = separator
    store_u16(out, at + 5, word >> 32)
    out[at + 7] = separator
    store_u16(out, at + 8, word >> 48)
    return at + 10


@register_jitable
def put_clock(out: Bytes, at: int, hour: int, minute: int, second: int) -> int:
    """`12:34:56`; the hours of a TIME can have three digits."""
    if hour > 99:
        out[at] = ZERO + hour // 100
        at += 1
        hour %= 100
    word = eight_digits(hour * 10_000 + minute * 100 + second)
    store_u16(out, at, word >> 16)
    out[at + 2] = COLON
    store_u16(out, at + 3, word >> 32)
    out[at + 5] = COLON
    store_u16(out, at + 6, word >> 48)
    return at + 8


@register_jitable
def put_fraction(out: Bytes, at: int, fraction: int, digits: int) -> int:
    """Write the digits of a second's fraction; whole bytes hold an even number of digits."""
    if digits == 0:
        return at
    stored = digits + digits % 2
    if fraction >= TENS[stored]:
        return FAILED
    out[at] = DOT
    put_padded(out, at + 1, fraction, stored)
    return at + 1 + digits


@register_jitable
def put_datetime(out: Bytes, at: int, data: Bytes, start: int, digits: int) -> int:
    """A DATETIME with a fraction, in quotes."""
    packed = load_be(data, start, 5) - _DATETIME_BIAS
    if packed < 0:
        return FAILED
    day, clock = packed >> 17, packed & 0x1FFFF
    year, month = (day >> 5) // 13, (day >> 5) % 13
    if year > 9999:
        return FAILED
    out[at] = QUOTE
    at = put_date(out, at + 1, year << 9 | month << 5 | (day & 31), DASH)
    out[at] = BLANK
    at = put_clock(out, at + 1, clock >> 12, clock >> 6 & 63, clock & 63)
    at = put_fraction(out, at, load_be(data, start + 5, (digits + 1) // 2), digits)
    if at < 0:
        return FAILED
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_time(out: Bytes, at: int, data: Bytes, start: int, digits: int) -> int:
    """A TIME with a fraction, in quotes; a negative one is negative with its fraction."""
    size = (digits + 1) // 2
    value = load_be(data, start, 3 + size) - (_TIME_BIAS << 8 * size)
    out[at] = QUOTE
    at += 1
    if value < 0:
        out[at] = MINUS
        at += 1
        value = -value
    packed = value >> 8 * size
    hour = packed >> 12
    if hour > 999:
        return FAILED
    at = put_clock(out, at, hour, packed >> 6 & 63, packed & 63)
    at = put_fraction(out, at, value & ((1 << 8 * size) - 1), digits)
    if at < 0:
        return FAILED
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_timestamp(out: Bytes, at: int, data: Bytes, start: int, digits: int) -> int:
    """A TIMESTAMP with a fraction: seconds since 1970."""
    at = put_number(out, at, load_be(data, start, 4))
    return put_fraction(out, at, load_be(data, start + 4, (digits + 1) // 2), digits)


@register_jitable
def put_old_datetime(out: Bytes, at: int, data: Bytes, start: int) -> int:
    """A DATETIME of old servers: the number YYYYMMDDhhmmss."""
    value = load_i64(data, start)
    date, clock = value // 1_000_000, value % 1_000_000
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
    if value < 0 or year > 9999 or month > 12 or day > 31:
        return FAILED
    if hour > 23 or minute > 59 or second > 59:
        return FAILED
    out[at] = QUOTE
    at = put_date(out, at + 1, year << 9 | month << 5 | day, DASH)
    out[at] = BLANK
    at = put_clock(out, at + 1, hour, minute, second)
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_old_time(out: Bytes, at: int, data: Bytes, start: int) -> int:
    """A TIME of old servers: the number hhmmss with its sign."""
    value = load_u24(data, start)
    value -= (value >> 23) << 24
    out[at] = QUOTE
    at += 1
    if value < 0:
        out[at] = MINUS
        at += 1
        value = -value
    hour, minute, second = value // 10_000, value // 100 % 100, value % 100
    if hour > 838 or minute > 59 or second > 59:
        return FAILED
    at = put_clock(out, at, hour, minute, second)
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_quoted_date(out: Bytes, at: int, data: Bytes, start: int) -> int:
    """A DATE: mariadb-binlog writes it with colons."""
    packed = load_u24(data, start)
    if packed >> 9 > 9999:
        return FAILED
    out[at] = QUOTE
    at = put_date(out, at + 1, packed, COLON)
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_bits(out: Bytes, at: int, data: Bytes, start: int, bits: int) -> int:
    """A BIT or SET: `b'0101'`, highest bit of the first byte first."""
    unused = (8 - bits) & 7
    if unused and data[start] >> (8 - unused):
        return FAILED
    out[at] = 98
    out[at + 1] = QUOTE
    at += 2
    store_u64(out, at, _BINARY[data[start]] >> 8 * unused)
    at += 8 - unused
    for index in range(1, (bits + 7) // 8):
        store_u64(out, at, _BINARY[data[start + index]])
        at += 8
    out[at] = QUOTE
    return at + 1


@register_jitable(forceinline=True)
def put_string(out: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    r"""Write a string in quotes, control characters as `\x0a`; quotes inside stay as they are.

    Needs four times its length and 34 bytes of room.
    """
    out[at] = QUOTE
    at += 1
    done = 0
    while done < length:
        mask = copy_lanes(out, at, data, start + done)
        left = length - done
        if left < LANES:
            mask &= (1 << left) - 1
        if mask == 0:
            step = min(left, LANES)
            at += step
            done += step
            continue
        plain = first_bit(mask)
        at += plain
        done += plain
        byte = int(data[start + done])
        digit = byte & 15
        digit += 0 if digit < 10 else 39
        store_u64(out, at, 0x3030785C + ((byte >> 4) << 16) + (digit << 24))
        at += 4
        done += 1
    out[at] = QUOTE
    return at + 1


@register_jitable
def put_escaped(out: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    r"""A string in quotes as `put_string`; quotes, backslashes and line ends have one before them."""
    out[at] = QUOTE
    at += 1
    done = 0
    while done < length:
        mask = copy_literal_lanes(out, at, data, start + done)
        left = length - done
        if left < LANES:
            mask &= (1 << left) - 1
        if mask == 0:
            step = min(left, LANES)
            at += step
            done += step
            continue
        plain = first_bit(mask)
        at += plain
        done += plain
        byte = int(data[start + done])
        letter = int(_LETTERS[byte])
        if letter:
            store_u16(out, at, 0x5C | letter << 8)
            at += 2
        else:
            digit = byte & 15
            digit += 0 if digit < 10 else 39
            store_u64(out, at, 0x3030785C + ((byte >> 4) << 16) + (digit << 24))
            at += 4
        done += 1
    out[at] = QUOTE
    return at + 1


@register_jitable
def base64_size(length: int) -> int:
    """Room that so many bytes need as base64, in lines."""
    return (length + 2) // 3 * 4 + length // BASE64_LINE_BYTES + 16


@register_jitable
def put_base64(out: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """Bytes as base64 in lines of 76 characters, a line end behind the last one."""
    done = 0
    while done < length:
        end = min(done + BASE64_LINE_BYTES, length)
        while done + 3 <= end:
            at = _put_four(out, at, load_be(data, start + done, 3))
            done += 3
        left = end - done
        if left:
            at = _put_four(out, at, load_be(data, start + done, left) << (24 - 8 * left))
            for pad in range(3 - left):
                out[at - 1 - pad] = 61
            done = end
        out[at] = LINE_END
        at += 1
    return at


@register_jitable
def _put_four(out: Bytes, at: int, value: int) -> int:
    """Three bytes as four characters."""
    store_u64(out, at, int(_TWELVES[value >> 12]) | int(_TWELVES[value & 4095]) << 16)
    return at + 4
