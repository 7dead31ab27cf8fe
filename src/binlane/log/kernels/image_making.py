"""Rows of a prepared statement's result → row images and their keys.

The reference is `codec.row_making`, whose forms these numbers are. What is not plain is left to it:
then the answer is `NOT_PLAIN`, and nothing that was written counts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, copy_bytes, load_le, load_u16, load_u24, load_u32

Numbers = npt.NDArray[np.int64]

NOT_PLAIN: Final = -1
_FRAME_HEAD: Final = 4
_WHOLE: Final = 0
_YEAR: Final = 1
_DECIMAL: Final = 2
_DATE: Final = 3
_TIME: Final = 4
_DATETIME: Final = 5
_TIMESTAMP: Final = 6
_PADDED: Final = 8
_BITS: Final = 9
_FORM: Final = 0
_WIDTH: Final = 1
_SIZE: Final = 2
_SCALE: Final = 3
_KEY: Final = 4
_MINUS: Final = 45
_POINT: Final = 46
_ZERO: Final = 48


@register_jitable
def _put_be(out: Bytes, at: int, value: int, size: int) -> None:
    for index in range(size):
        out[at + index] = (value >> (8 * (size - 1 - index))) & 0xFF


@register_jitable
def _put_le(out: Bytes, at: int, value: int, size: int) -> None:
    for index in range(size):
        out[at + index] = (value >> (8 * index)) & 0xFF


@register_jitable
def _group_bytes(digits: int) -> int:
    return min(4, (digits + 1) >> 1)


@register_jitable
def _put_decimal(out: Bytes, at: int, data: Bytes, start: int, stop: int, digits: int) -> int:
    """Write a DECIMAL of its text; where it ends, or `NOT_PLAIN`.

    `digits` is the precision, shifted by 8 bits, and the scale.
    """
    precision, scale = digits >> 8, digits & 0xFF
    is_negative = start < stop and int(data[start]) == _MINUS
    if is_negative:
        start += 1
    point = start
    while point < stop and int(data[point]) != _POINT:
        point += 1
    whole = precision - scale
    while point - start > whole:
        if int(data[start]) != _ZERO:
            return NOT_PLAIN
        start += 1
    fraction = point + 1
    if stop - fraction > scale:
        return NOT_PLAIN
    first, missing = at, whole - (point - start)
    number, place, is_zero = 0, 0, True
    left = whole % 9
    while place < precision:
        if left == 0:
            left = min(9, whole - place if place < whole else precision - place)
        group = left
        number = 0
        while left > 0:
            digit = 0
            if place < whole:
                if place >= missing:
                    digit = int(data[start + place - missing]) - _ZERO
            elif fraction + place - whole < stop:
                digit = int(data[fraction + place - whole]) - _ZERO
            if digit < 0 or digit > 9:
                return NOT_PLAIN
            number = number * 10 + digit
            place += 1
            left -= 1
        is_zero = is_zero and number == 0
        size = _group_bytes(group)
        _put_be(out, at, number, size)
        at += size
    if is_negative and not is_zero:
        for index in range(first, at):
            out[index] ^= 0xFF
    out[first] ^= 0x80
    return at


@register_jitable
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of the Gregorian calendar."""
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@register_jitable
def _put_fraction(out: Bytes, at: int, micro: int, digits: int) -> int:
    size = (digits + 1) >> 1
    unit = 1
    for _ in range(3 - size):
        unit *= 100
    _put_be(out, at, micro // unit, size)
    return at + size


@register_jitable
def _put_time(out: Bytes, at: int, data: Bytes, start: int, length: int, digits: int) -> int:
    negative, hours, minute, second, micro = 0, 0, 0, 0, 0
    if length >= 8:
        negative = int(data[start])
        hours = load_u32(data, start + 1) * 24 + int(data[start + 5])
        minute, second = int(data[start + 6]), int(data[start + 7])
    if length == 12:
        micro = load_u32(data, start + 8)
    size = (digits + 1) >> 1
    unit = 1
    for _ in range(3 - size):
        unit *= 100
    value = ((hours << 12 | minute << 6 | second) << (8 * size)) | (micro // unit)
    bias = 0x800000 << (8 * size)
    _put_be(out, at, bias - value if negative else bias + value, 3 + size)
    return at + 3 + size


@register_jitable
def _put_moment(out: Bytes, at: int, data: Bytes, start: int, length: int, how: int) -> int:
    """Write a date or time; `how` is its form, shifted by 8 bits, and the digits of a fraction."""
    form, digits = how >> 8, how & 0xFF
    year, month, day, hour, minute, second, micro = 0, 0, 0, 0, 0, 0, 0
    if length >= 4:
        year, month, day = load_u16(data, start), int(data[start + 2]), int(data[start + 3])
    if length >= 7:
        hour, minute, second = int(data[start + 4]), int(data[start + 5]), int(data[start + 6])
    if length == 11:
        micro = load_u32(data, start + 7)
    if form == _DATE:
        _put_le(out, at, year << 9 | month << 5 | day, 3)
        return at + 3
    if form == _DATETIME:
        packed = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
        _put_be(out, at, 0x8000000000 + packed, 5)
        return _put_fraction(out, at + 5, micro, digits)
    seconds = 0
    if year:
        if month < 1 or month > 12 or day < 1:
            return NOT_PLAIN
        seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    if seconds < 0 or seconds > 0xFFFFFFFF:
        return NOT_PLAIN
    _put_be(out, at, seconds, 4)
    return _put_fraction(out, at + 4, micro, digits)


@register_jitable
def _length(data: Bytes, at: int) -> int:
    """A length of up to three bytes behind its mark, or `NOT_PLAIN`."""
    first = int(data[at])
    if first < 0xFB:
        return first
    if first == 0xFC:
        return load_u16(data, at + 1)
    if first == 0xFD:
        return load_u24(data, at + 1)
    return NOT_PLAIN


@register_jitable
def _length_size(data: Bytes, at: int) -> int:
    first = int(data[at])
    return 1 if first < 0xFB else 3 if first == 0xFC else 4


@register_jitable
def _put_bytes(out: Bytes, at: int, data: Bytes, start: int, length: int, how: int) -> int:
    """Write bytes; `how` is their form, shifted by 8 bits, and its size."""
    form, size = how >> 8, how & 0xFF
    if form == _BITS:
        if length > size:
            return NOT_PLAIN
        for index in range(size - length):
            out[at + index] = 0
        copy_bytes(out, at + size - length, data, start, length)
        return at + size
    if form == _PADDED:
        while length > 0 and int(data[start + length - 1]) == 0:
            length -= 1
    if size < 4 and length >> (8 * size):
        return NOT_PLAIN
    _put_le(out, at, length, size)
    copy_bytes(out, at + size, data, start, length)
    return at + size + length


def make_rows(
    data: Bytes, plan: Numbers, places: Numbers, images: Bytes, keys: Bytes, ends: Numbers
) -> int:
    """Make the images of rows that a server sent, and their keys.

    Args:
        data: Frames of one row each.
        plan: Its first line: the number of bytes in `data`; the bits of the last byte of NULLs
            behind those of columns; the number of columns of the key. Then a line for each column:
            form, width, size and scale; in the fifth place of the first of them the numbers of the
            key's columns, in the order of the key.
        places: Room for the start and end of each column's value in an image, one row each.
        images: It gets the images one by one.
        keys: It gets the keys one by one.
        ends: Two rows, which get the ends of images and keys.

    Returns:
        The number of rows, or `NOT_PLAIN`.
    """
    end, filling, key_count = plan[0, 0], plan[0, 1], plan[0, 2]
    cells = plan[1:]
    count = cells.shape[0]
    head = (count + 9) >> 3
    bitmap = (count + 7) >> 3
    start = 0
    rows = 0
    written = 0
    key_end = 0
    while start < end:
        stop = start + _FRAME_HEAD + load_u24(data, start)
        nulls = start + _FRAME_HEAD + 1
        at = nulls + head
        if at > stop or stop > end or int(data[start + _FRAME_HEAD]):
            return NOT_PLAIN
        flags = written
        for index in range(bitmap):
            images[flags + index] = 0
        images[flags + bitmap - 1] = filling
        written += bitmap
        for column in range(count):
            places[0, column] = written
            bit = column + 2
            if (int(data[nulls + (bit >> 3)]) >> (bit & 7)) & 1:
                images[flags + (column >> 3)] |= 1 << (column & 7)
                places[1, column] = written
                continue
            form = cells[column, _FORM]
            size = cells[column, _SIZE]
            width = cells[column, _WIDTH]
            if form == _WHOLE:
                if at + width > stop:
                    return NOT_PLAIN
                copy_bytes(images, written, data, at, size)
                written += size
                at += width
            elif form == _YEAR:
                if at + width > stop:
                    return NOT_PLAIN
                year = load_le(data, at, width)
                images[written] = (year - 1900) & 0xFF if year else 0
                written += 1
                at += width
            else:
                if at >= stop:
                    return NOT_PLAIN
                length = _length(data, at)
                at += _length_size(data, at)
                if length < 0 or at + length > stop:
                    return NOT_PLAIN
                if form == _DECIMAL:
                    digits = size << 8 | cells[column, _SCALE]
                    written = _put_decimal(images, written, data, at, at + length, digits)
                elif form == _TIME:
                    written = _put_time(images, written, data, at, length, cells[column, _SCALE])
                elif form <= _TIMESTAMP:
                    how = form << 8 | cells[column, _SCALE]
                    written = _put_moment(images, written, data, at, length, how)
                elif form <= _BITS:
                    written = _put_bytes(images, written, data, at, length, form << 8 | size)
                else:
                    return NOT_PLAIN
                if written < 0:
                    return NOT_PLAIN
                at += length
            places[1, column] = written
        if at != stop:
            return NOT_PLAIN
        for index in range(key_count):
            column = cells[index, _KEY]
            length = places[1, column] - places[0, column]
            copy_bytes(keys, key_end, images, places[0, column], length)
            key_end += length
        ends[0, rows] = written
        ends[1, rows] = key_end
        rows += 1
        start = stop
    return rows


EXPORTS: Final = (
    (
        make_rows,
        "int64(uint8[::1], int64[:, ::1], int64[:, ::1], uint8[::1], uint8[::1], int64[:, ::1])",
    ),
)
