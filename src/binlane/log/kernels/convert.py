"""Values of row images → the buffers of Arrow arrays: numbers, dates and times.

Each kernel goes through the positions of one column, as `locate` gives them, and writes a value
for each; 0 for a NULL. What no server writes gives CONVERT_DAMAGED; a date that is none becomes NULL in the
positions, and the result says how many did.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.layout import CONVERT_DAMAGED, NULL
from binlane.log.kernels.memory import Bytes, load_be, load_i64, load_le, load_u24, prefetch

Small = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


_DAY_US: Final = 86_400_000_000
_DATETIME_BIAS: Final = 0x8000000000
_GROUP: Final = 1_000_000_000
_LIMB: Final = 0xFFFFFFFF
_VALUES_AHEAD: Final = 16


def validity(positions: Small, bits: Bytes) -> int:
    """Write a bit for each value that is not NULL.

    Args:
        positions: The positions of the column's values.
        bits: One for each, least significant first; a whole byte for each eight.

    Returns:
        How many are NULL.
    """
    count = positions.shape[0]
    nulls = 0
    for start in range(0, count, 8):
        byte = 0
        for index in range(start, min(start + 8, count)):
            if positions[index] >= 0:
                byte |= 1 << (index - start)
            else:
                nulls += 1
        bits[start >> 3] = byte
    return nulls


@register_jitable(inline="always")
def _prefetch_value(data: Bytes, positions: Small, index: int) -> None:
    """Prefetch a later value: behind a branch the processor does not look far enough ahead by itself."""
    if index + _VALUES_AHEAD < positions.shape[0]:
        prefetch(data, positions[index + _VALUES_AHEAD])


@register_jitable(inline="always")
def _integer(data: Bytes, at: int, width: int, sign: int) -> int:
    """A little-endian integer; `sign` is its highest bit, 0 if it has no sign."""
    return (load_le(data, at, width) ^ sign) - sign


def integers8(
    data: Bytes, positions: Small, width: int, sign: int, out: npt.NDArray[np.int8]
) -> int:
    """Integers into 8 bits; see `integers64`."""
    for index in range(positions.shape[0]):
        at = positions[index]
        out[index] = _integer(data, at, width, sign) if at >= 0 else 0
    return 0


def integers16(
    data: Bytes, positions: Small, width: int, sign: int, out: npt.NDArray[np.int16]
) -> int:
    """Integers into 16 bits; see `integers64`."""
    for index in range(positions.shape[0]):
        at = positions[index]
        out[index] = _integer(data, at, width, sign) if at >= 0 else 0
    return 0


def integers32(data: Bytes, positions: Small, width: int, sign: int, out: Small) -> int:
    """Integers into 32 bits; see `integers64`."""
    for index in range(positions.shape[0]):
        at = positions[index]
        out[index] = _integer(data, at, width, sign) if at >= 0 else 0
    return 0


def integers64(data: Bytes, positions: Small, width: int, sign: int, out: Numbers) -> int:
    """Integers of `width` bytes into 64 bits.

    Args:
        data: The buffer of the events.
        positions: The positions of the column's values.
        width: The bytes that a value takes.
        sign: The value's highest bit; 0 if it has no sign, or is as wide as `out`.
        out: Receives the values in order.

    Returns:
        0.
    """
    for index in range(positions.shape[0]):
        at = positions[index]
        out[index] = _integer(data, at, width, sign) if at >= 0 else 0
    return 0


def bits(data: Bytes, positions: Small, width: int, out: Numbers) -> int:
    """BIT of `width` bytes, big-endian."""
    for index in range(positions.shape[0]):
        at = positions[index]
        out[index] = load_be(data, at, width) if at >= 0 else 0
    return 0


def years(data: Bytes, positions: Small, out: Numbers) -> int:
    """YEAR: a byte from 1900 on; 0 is the year 0."""
    for index in range(positions.shape[0]):
        at = positions[index]
        year = int(data[at]) if at >= 0 else 0
        out[index] = year + 1900 if year else 0
    return 0


def unsigned128(data: Bytes, positions: Small, is_big: int, out: Numbers) -> int:
    """Eight bytes without a sign into 128 bits, for decimals without fraction."""
    for index in range(positions.shape[0]):
        at = positions[index]
        value = 0
        if at >= 0:
            value = load_be(data, at, 8) if is_big else load_i64(data, at)
        out[2 * index] = value
        out[2 * index + 1] = 0
    return 0


@register_jitable(inline="always")
def _times_ten(digits: int) -> int:
    value = 1
    for _ in range(digits):
        value *= 10
    return value


@register_jitable(inline="always")
def _group_bytes(digits: int) -> int:
    return (digits + 1) // 2 if digits < 9 else 4


@register_jitable(inline="always")
def _write_limb(out: Small, place: int, limb: int) -> None:
    out[place] = limb if limb <= 0x7FFFFFFF else limb - 0x100000000


@register_jitable(inline="always")
def _group(data: Bytes, at: int, digits: int, top: int, flip: int) -> int:
    """The digits of one group; `top` is set for the first, whose upper bit is the sign."""
    width = _group_bytes(digits)
    value = load_be(data, at, width)
    if top:
        value ^= 1 << (8 * width - 1)
    return (value ^ flip) & ((1 << (8 * width)) - 1)


def short_decimals(data: Bytes, positions: Small, precision: int, scale: int, out: Numbers) -> int:
    """DECIMAL of up to 18 digits into 128 bits, two numbers for each; see `decimals`."""
    whole = precision - scale
    groups = 2 + whole // 9 + scale // 9
    first, last = whole % 9, scale % 9
    first_factor, last_factor = _times_ten(first), _times_ten(last)
    for index in range(positions.shape[0]):
        _prefetch_value(data, positions, index)
        at = int(positions[index])
        out[2 * index] = 0
        out[2 * index + 1] = 0
        if at < 0:
            continue
        flip = 0 if data[at] & 0x80 else -1
        total = 0
        top = 1
        for group in range(groups):
            digits, factor = 9, _GROUP
            if group == 0:
                digits, factor = first, first_factor
            elif group == groups - 1:
                digits, factor = last, last_factor
            if digits:
                value = _group(data, at, digits, top, flip)
                if value >= factor:
                    return CONVERT_DAMAGED
                total = total * factor + value
                at += _group_bytes(digits)
                top = 0
        out[2 * index] = -total if flip else total
        out[2 * index + 1] = -1 if flip and total else 0
    return 0


def decimals(data: Bytes, positions: Small, precision: int, scale: int, out: Small) -> int:
    """DECIMAL of up to 38 digits into 128 bits.

    Args:
        data: The buffer of the events.
        positions: The positions of the column's values.
        precision: The number of digits in all.
        scale: The number of digits behind the point.
        out: Receives four times 32 bits for each value, least significant first.

    Returns:
        0, or CONVERT_DAMAGED if a group of digits holds more than there is room for.
    """
    whole = precision - scale
    groups = 2 + whole // 9 + scale // 9
    first, last = whole % 9, scale % 9
    first_factor, last_factor = _times_ten(first), _times_ten(last)
    for index in range(positions.shape[0]):
        _prefetch_value(data, positions, index)
        at = int(positions[index])
        limb0, limb1, limb2, limb3 = 0, 0, 0, 0
        flip, top = 0, 1
        if at >= 0 and data[at] & 0x80 == 0:
            flip = -1
        for group in range(groups if at >= 0 else 0):
            digits, factor = 9, _GROUP
            if group == 0:
                digits, factor = first, first_factor
            elif group == groups - 1:
                digits, factor = last, last_factor
            if digits:
                value = _group(data, at, digits, top, flip)
                if value >= factor:
                    return CONVERT_DAMAGED
                at += _group_bytes(digits)
                top = 0
                # A limb of 32 bits times a factor of 30 leaves room for what is carried.
                limb0 = limb0 * factor + value
                limb1 = limb1 * factor + (limb0 >> 32)
                limb2 = limb2 * factor + (limb1 >> 32)
                limb3 = (limb3 * factor + (limb2 >> 32)) & _LIMB
                limb0, limb1, limb2 = limb0 & _LIMB, limb1 & _LIMB, limb2 & _LIMB
        if flip:
            limb0 = (limb0 ^ _LIMB) + 1
            limb1 = (limb1 ^ _LIMB) + (limb0 >> 32)
            limb2 = (limb2 ^ _LIMB) + (limb1 >> 32)
            limb3 = ((limb3 ^ _LIMB) + (limb2 >> 32)) & _LIMB
            limb0, limb1, limb2 = limb0 & _LIMB, limb1 & _LIMB, limb2 & _LIMB
        _write_limb(out, 4 * index, limb0)
        _write_limb(out, 4 * index + 1, limb1)
        _write_limb(out, 4 * index + 2, limb2)
        _write_limb(out, 4 * index + 3, limb3)
    return 0


@register_jitable(inline="always")
def _is_date(year: int, month: int, day: int) -> bool:
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1 or day > 31:
        return False
    if day <= 28:
        return True
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return day == 29 and is_leap
    return day <= 30 or not (month == 4 or month == 6 or month == 9 or month == 11)


@register_jitable(inline="always")
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date that is one."""
    if month <= 2:
        year -= 1
    month = month + 9 if month <= 2 else month - 3
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * month + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def dates(data: Bytes, positions: Small, out: Small) -> int:
    """DATE into days since 1970.

    Returns:
        How many were no dates.
    """
    invalid = 0
    for index in range(positions.shape[0]):
        _prefetch_value(data, positions, index)
        at = positions[index]
        out[index] = 0
        if at < 0:
            continue
        packed = load_u24(data, at)
        year, month, day = packed >> 9, (packed >> 5) & 15, packed & 31
        if _is_date(year, month, day):
            out[index] = _days(year, month, day)
        else:
            positions[index] = NULL
            invalid += 1
    return invalid


@register_jitable(inline="always")
def _fraction(data: Bytes, at: int, digits: int, most: int, factor: int) -> int:
    """A fraction in microseconds; -1 if it has too many digits.

    Args:
        data: The buffer of the events.
        at: The place of the fraction in the buffer.
        digits: The number of its digits.
        most: The first number that is more than its bytes may hold.
        factor: Microseconds of its last digit.
    """
    stored = load_be(data, at, (digits + 1) // 2)
    if stored >= most:
        return -1
    if digits & 1:
        stored //= 10
    return stored * factor


def datetimes(data: Bytes, positions: Small, digits: int, out: Numbers) -> int:
    """DATETIME with `digits` digits of a fraction into microseconds since 1970.

    Returns:
        How many were no dates, or CONVERT_DAMAGED.
    """
    invalid = 0
    most, factor = _times_ten(2 * ((digits + 1) // 2)), _times_ten(6 - digits)
    for index in range(positions.shape[0]):
        _prefetch_value(data, positions, index)
        at = positions[index]
        out[index] = 0
        if at < 0:
            continue
        packed = load_be(data, at, 5) - _DATETIME_BIAS
        fraction = _fraction(data, at + 5, digits, most, factor)
        if packed < 0 or fraction < 0:
            return CONVERT_DAMAGED
        date, time = packed >> 17, packed & 0x1FFFF
        months, day = date >> 5, date & 31
        year, month = months // 13, months % 13
        hour, minute, second = time >> 12, (time >> 6) & 63, time & 63
        if _is_date(year, month, day) and hour < 24 and minute < 60 and second < 60:
            seconds = hour * 3600 + minute * 60 + second
            out[index] = _days(year, month, day) * _DAY_US + seconds * 1_000_000 + fraction
        else:
            positions[index] = NULL
            invalid += 1
    return invalid


def timestamps(data: Bytes, positions: Small, digits: int, out: Numbers) -> int:
    """TIMESTAMP with `digits` digits of a fraction into microseconds since 1970.

    Returns:
        How many were the zero date, or CONVERT_DAMAGED.
    """
    invalid = 0
    most, factor = _times_ten(2 * ((digits + 1) // 2)), _times_ten(6 - digits)
    for index in range(positions.shape[0]):
        _prefetch_value(data, positions, index)
        at = positions[index]
        out[index] = 0
        if at < 0:
            continue
        seconds = load_be(data, at, 4)
        fraction = _fraction(data, at + 4, digits, most, factor)
        if fraction < 0:
            return CONVERT_DAMAGED
        if seconds == 0 and load_be(data, at + 4, (digits + 1) // 2) == 0:
            positions[index] = NULL
            invalid += 1
        else:
            out[index] = seconds * 1_000_000 + fraction
    return invalid


EXPORTS: Final = (
    (validity, "int64(int32[::1], uint8[::1])"),
    (integers8, "int64(uint8[::1], int32[::1], int64, int64, int8[::1])"),
    (integers16, "int64(uint8[::1], int32[::1], int64, int64, int16[::1])"),
    (integers32, "int64(uint8[::1], int32[::1], int64, int64, int32[::1])"),
    (integers64, "int64(uint8[::1], int32[::1], int64, int64, int64[::1])"),
    (bits, "int64(uint8[::1], int32[::1], int64, int64[::1])"),
    (years, "int64(uint8[::1], int32[::1], int64[::1])"),
    (unsigned128, "int64(uint8[::1], int32[::1], int64, int64[::1])"),
    (decimals, "int64(uint8[::1], int32[::1], int64, int64, int32[::1])"),
    (short_decimals, "int64(uint8[::1], int32[::1], int64, int64, int64[::1])"),
    (dates, "int64(uint8[::1], int32[::1], int32[::1])"),
    (datetimes, "int64(uint8[::1], int32[::1], int64, int64[::1])"),
    (timestamps, "int64(uint8[::1], int32[::1], int64, int64[::1])"),
)
