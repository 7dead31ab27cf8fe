"""Values of row images → the offsets and bytes of Arrow's strings.

Two steps a column: the first writes the offsets and gives the bytes needed, the second writes
them. Where a second step copies, it may write up to 15 bytes behind what it was asked for.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.layout import CONVERT_DAMAGED, CONVERT_TOO_LONG
from binlane.log.kernels.memory import Bytes, copy_bytes, load_be, load_i64, load_le, prefetch

Small = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]

OFFSET_MAX: Final = 0x7FFFFFFF

_VALUES_AHEAD: Final = 12
_TIME_BIAS: Final = 0x800000
_ZERO: Final = 48
_NO_ASCII: Final = -0x7F7F7F7F7F7F7F80


def measure(data: Bytes, positions: Small, prefix: int, at_least: int, offsets: Small) -> int:
    """Offsets of strings behind their length.

    Args:
        data: The buffer of the events.
        positions: The positions of the column's values.
        prefix: The bytes that a length takes.
        at_least: The length to which shorter strings are filled up, in bytes.
        offsets: Receives one more than there are values.

    Returns:
        The bytes of all, or CONVERT_TOO_LONG.
    """
    total = 0
    for index in range(positions.shape[0]):
        if index + _VALUES_AHEAD < positions.shape[0]:
            prefetch(data, positions[index + _VALUES_AHEAD])
        offsets[index] = total
        at = positions[index]
        if at >= 0:
            total += max(load_le(data, at, prefix), at_least)
            if total > OFFSET_MAX:
                return CONVERT_TOO_LONG
    offsets[positions.shape[0]] = total
    return total


def gather(data: Bytes, positions: Small, prefix: int, offsets: Small, out: Bytes) -> int:
    """Copy strings to their offsets.

    Returns:
        1 if all bytes are ASCII, else 0.
    """
    count = positions.shape[0]
    for index in range(count):
        if index + _VALUES_AHEAD < count:
            prefetch(data, positions[index + _VALUES_AHEAD])
        at = positions[index]
        if at >= 0:
            length = load_le(data, at, prefix)
            copy_bytes(out, offsets[index], data, at + prefix, length)
    seen, end = 0, int(offsets[count])
    for index in range(0, end - 7, 8):
        seen |= load_i64(out, index)
    for index in range(end - (end & 7), end):
        seen |= int(out[index])
    return 1 if seen & _NO_ASCII == 0 else 0


def gather_filled(data: Bytes, positions: Small, prefix: int, offsets: Small, out: Bytes) -> int:
    """Copy strings to their offsets; zeros fill the room behind short ones."""
    for index in range(positions.shape[0]):
        at = positions[index]
        if at >= 0:
            length = load_le(data, at, prefix)
            copy_bytes(out, offsets[index], data, at + prefix, length)
            for place in range(offsets[index] + length, offsets[index + 1]):
                out[place] = 0
    return 0


@register_jitable(inline="always")
def _breaks_utf8(byte: int, last: int, second_last: int, third_last: int) -> bool:
    """True if a byte may not follow three others; branch-free for speed."""
    is_tail = (byte & 0xC0) == 0x80
    must_be_tail = (last >= 0xC0) | (second_last >= 0xE0) | (third_last >= 0xF0)
    return bool(
        (is_tail != must_be_tail)
        | (byte == 0xC0)
        | (byte == 0xC1)
        | (byte > 0xF4)
        | ((last == 0xE0) & (byte < 0xA0))
        | ((last == 0xED) & (byte > 0x9F))
        | ((last == 0xF0) & (byte < 0x90))
        | ((last == 0xF4) & (byte > 0x8F))
    )


def is_utf8(data: Bytes, offsets: Small) -> int:
    """1 if each string by itself is well-formed UTF-8, else 0.

    All of them together are, and none begins or ends inside a character.
    """
    end = int(offsets[offsets.shape[0] - 1])
    bad = False
    for at in range(min(3, end)):
        second = data[at - 2] if at > 1 else 0
        bad |= _breaks_utf8(data[at], data[at - 1] if at > 0 else 0, second, 0)
    for at in range(3, end):
        bad |= _breaks_utf8(data[at], data[at - 1], data[at - 2], data[at - 3])
    for index in range(offsets.shape[0] - 1):
        start = int(offsets[index])
        bad |= start < end and (data[start] & 0xC0) == 0x80
    if end:
        bad |= data[end - 1] >= 0xC0
    if end > 1:
        bad |= data[end - 2] >= 0xE0
    if end > 2:
        bad |= data[end - 3] >= 0xF0
    return 0 if bad else 1


def measure_table(data: Bytes, offsets: Small, table: Bytes, new_offsets: Small) -> int:
    """Offsets of strings of a character set of one byte a character, as UTF-8.

    Args:
        data: The bytes of the strings.
        offsets: The offsets of the strings.
        table: Four bytes for each of 256: the length of its UTF-8, 0 if it means nothing, and
            that UTF-8.
        new_offsets: Receives one more than there are strings.

    Returns:
        The bytes of all, CONVERT_TOO_LONG, or CONVERT_DAMAGED if a byte means nothing.
    """
    total = 0
    for index in range(offsets.shape[0] - 1):
        new_offsets[index] = total
        for at in range(offsets[index], offsets[index + 1]):
            length = int(table[4 * int(data[at])])
            if length == 0:
                return CONVERT_DAMAGED
            total += length
        if total > OFFSET_MAX:
            return CONVERT_TOO_LONG
    new_offsets[offsets.shape[0] - 1] = total
    return total


def recode_table(data: Bytes, length: int, table: Bytes, out: Bytes) -> int:
    """The second step of `measure_table` for all strings at once; how many bytes it wrote."""
    to = 0
    for at in range(length):
        entry = 4 * int(data[at])
        for place in range(int(table[entry])):
            out[to + place] = table[entry + 1 + place]
        to += int(table[entry])
    return to


def measure_members(
    data: Bytes, positions: Small, width: int, member_offsets: Small, offsets: Small
) -> int:
    """Offsets of the members of an ENUM.

    Args:
        data: The buffer of the events.
        positions: The positions of the column's values.
        width: The bytes that a number takes.
        member_offsets: The offsets of the texts of all numbers from 0 on; the text of 0 is empty.
        offsets: Receives one more than there are values.

    Returns:
        The bytes of all, CONVERT_TOO_LONG, or CONVERT_DAMAGED if there is no such member.
    """
    total = 0
    for index in range(positions.shape[0]):
        if index + _VALUES_AHEAD < positions.shape[0]:
            prefetch(data, positions[index + _VALUES_AHEAD])
        offsets[index] = total
        at = positions[index]
        if at >= 0:
            number = load_le(data, at, width)
            if number < 0 or number >= member_offsets.shape[0] - 1:
                return CONVERT_DAMAGED
            total += int(member_offsets[number + 1]) - int(member_offsets[number])
            if total > OFFSET_MAX:
                return CONVERT_TOO_LONG
    offsets[positions.shape[0]] = total
    return total


def gather_members(
    data: Bytes,
    positions: Small,
    width: int,
    member_offsets: Small,
    members: Bytes,
    offsets: Small,
    out: Bytes,
) -> int:
    """Copy the members of an ENUM to their offsets."""
    for index in range(positions.shape[0]):
        at = positions[index]
        if at >= 0:
            number = load_le(data, at, width)
            length = int(offsets[index + 1]) - int(offsets[index])
            copy_bytes(out, offsets[index], members, member_offsets[number], length)
    return 0


def measure_sets(
    data: Bytes, positions: Small, width: int, member_offsets: Small, offsets: Small
) -> int:
    """Offsets of the members of a SET, joined by commas; see `measure_members`."""
    total = 0
    count = member_offsets.shape[0] - 1
    for index in range(positions.shape[0]):
        offsets[index] = total
        at = positions[index]
        if at >= 0:
            value = load_le(data, at, width)
            if count < 64 and (value < 0 or value >> count):
                return CONVERT_DAMAGED
            commas = -1
            for member in range(count):
                if (value >> member) & 1:
                    commas += 1
                    total += int(member_offsets[member + 1]) - int(member_offsets[member])
            total += max(commas, 0)
            if total > OFFSET_MAX:
                return CONVERT_TOO_LONG
    offsets[positions.shape[0]] = total
    return total


def gather_sets(
    data: Bytes,
    positions: Small,
    width: int,
    member_offsets: Small,
    members: Bytes,
    offsets: Small,
    out: Bytes,
) -> int:
    """Copy the members of a SET to their offsets."""
    count = member_offsets.shape[0] - 1
    for index in range(positions.shape[0]):
        at = positions[index]
        if at < 0:
            continue
        value = load_le(data, at, width)
        to = int(offsets[index])
        is_first = True
        for member in range(count):
            if (value >> member) & 1:
                if not is_first:
                    out[to] = 44
                    to += 1
                is_first = False
                start = int(member_offsets[member])
                length = int(member_offsets[member + 1]) - start
                copy_bytes(out, to, members, start, length)
                to += length
    return 0


@register_jitable
def _two(out: Bytes, at: int, number: int) -> int:
    out[at] = _ZERO + number // 10
    out[at + 1] = _ZERO + number % 10
    return at + 2


def times(data: Bytes, positions: Small, digits: int, offsets: Small, out: Bytes) -> int:
    """TIME with `digits` digits of a fraction as text, `-838:59:59.000`, at most 20 bytes each.

    Returns:
        The bytes of all, or CONVERT_DAMAGED.
    """
    width = (digits + 1) // 2
    ten = 1
    for _ in range(2 * width):
        ten *= 10
    to = 0
    for index in range(positions.shape[0]):
        if index + _VALUES_AHEAD < positions.shape[0]:
            prefetch(data, positions[index + _VALUES_AHEAD])
        offsets[index] = to
        at = positions[index]
        if at < 0:
            continue
        value = load_be(data, at, 3 + width) - (_TIME_BIAS << (8 * width))
        if value < 0:
            value = -value
            out[to] = 45
            to += 1
        packed, fraction = value >> (8 * width), value & ((1 << (8 * width)) - 1)
        if fraction >= ten:
            return CONVERT_DAMAGED
        hour = packed >> 12
        if hour >= 1000:
            out[to] = _ZERO + hour // 1000
            to += 1
        if hour >= 100:
            out[to] = _ZERO + hour // 100 % 10
            to += 1
        to = _two(out, to, hour % 100)
        out[to] = 58
        to = _two(out, to + 1, (packed >> 6) & 63)
        out[to] = 58
        to = _two(out, to + 1, packed & 63)
        if digits:
            out[to] = 46
            rest = fraction
            for place in range(2 * width, 0, -1):
                out[to + place] = _ZERO + rest % 10
                rest //= 10
            to += 1 + digits
    offsets[positions.shape[0]] = to
    return to


EXPORTS: Final = (
    (measure, "int64(uint8[::1], int32[::1], int64, int64, int32[::1])"),
    (gather, "int64(uint8[::1], int32[::1], int64, int32[::1], uint8[::1])"),
    (gather_filled, "int64(uint8[::1], int32[::1], int64, int32[::1], uint8[::1])"),
    (is_utf8, "int64(uint8[::1], int32[::1])"),
    (measure_table, "int64(uint8[::1], int32[::1], uint8[::1], int32[::1])"),
    (recode_table, "int64(uint8[::1], int64, uint8[::1], uint8[::1])"),
    (measure_members, "int64(uint8[::1], int32[::1], int64, int32[::1], int32[::1])"),
    (
        gather_members,
        "int64(uint8[::1], int32[::1], int64, int32[::1], uint8[::1], int32[::1], uint8[::1])",
    ),
    (measure_sets, "int64(uint8[::1], int32[::1], int64, int32[::1], int32[::1])"),
    (
        gather_sets,
        "int64(uint8[::1], int32[::1], int64, int32[::1], uint8[::1], int32[::1], uint8[::1])",
    ),
    (times, "int64(uint8[::1], int32[::1], int64, int32[::1], uint8[::1])"),
)
