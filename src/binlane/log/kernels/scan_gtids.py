"""Checks of GTID events in scans, and the texts of their GTIDs."""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.layout import (
    BEGINS,
    CHECKED,
    GROUPS,
    GTID_LENGTH,
    GTID_MICROS,
    GTID_NAME_SIZE,
    GTID_TEXT_MAX,
    IS_ANONYMOUS,
    MAY_BE_XA,
    UUID_SIZE,
)
from binlane.log.kernels.memory import Bytes, copy_bytes, load_i64, load_u32
from binlane.log.kernels.tagged_gtids import is_known_tagged, micros_of_tagged, name_of_tagged
from binlane.log.kernels.text_shapes import Numbers

_HEADER: Final = 19
_DASH: Final = 45
_COLON: Final = 58
_LOGICAL_TIMESTAMPS: Final = 2
_MICROS_MASK: Final = (1 << 55) - 1
_XA: Final = 0xC0


@register_jitable(inline="always")
def write_number(text: Bytes, at: int, number: int) -> int:
    """Write a number from 0 on in decimal; where its text ends."""
    digits = 1
    rest = number // 10
    while rest:
        rest //= 10
        digits += 1
    end = at + digits
    rest = number
    for place in range(end - 1, at - 1, -1):
        text[place] = 48 + rest % 10
        rest //= 10
    return end


@register_jitable(inline="always")
def check_gtid(data: Bytes, event: int, end: int, kind: int, state: Numbers, texts: Bytes) -> int:
    """Check MariaDB's GTID event and write its text; 0 if it is not for this kernel."""
    body = event + _HEADER
    at = body + 13
    if at > end:
        return 0
    sequence, domain, flags = load_i64(data, body), load_u32(data, body + 8), int(data[body + 12])
    if flags & 2:
        at += 8
    if sequence < 0:
        return 0
    if flags & _XA:
        if kind & MAY_BE_XA == 0 or at + 6 > end:
            return 0
        at += 6 + int(data[at + 4]) + int(data[at + 5])
    if at < end:
        extra = int(data[at])
        at += 1
        if extra & 1:
            at += 1
        if extra & 12:
            at += 8
        if extra & 16:
            at += 4
    if at > end:
        return 0
    start = state[GROUPS] * GTID_TEXT_MAX
    to = write_number(texts, start, domain)
    texts[to] = _DASH
    to = write_number(texts, to + 1, load_u32(data, event + 5))
    texts[to] = _DASH
    state[GTID_LENGTH] = write_number(texts, to + 1, sequence) - start
    return CHECKED if flags & 1 else CHECKED | BEGINS


@register_jitable(inline="always")
def check_mysql_gtid(
    data: Bytes, event: int, end: int, kind: int, state: Numbers, texts: Bytes
) -> int:
    """Check MySQL's GTID event and write its text; 0 if it is not for this kernel."""
    body = event + _HEADER
    at = body + 42
    if at > end or data[body + 25] != _LOGICAL_TIMESTAMPS:
        return 0
    micros = 0
    if at < end:
        # Of the commit on this server; behind it that on the first one, if that is another.
        is_copy = at + 6 < end and data[at + 6] & 0x80
        micros = load_i64(data, at + 7 if is_copy else at) & _MICROS_MASK
        at += 14 if is_copy else 7
    if at < end:
        first = int(data[at])
        if first == 0xFB or first == 0xFF:
            return 0
        at += 1 if first < 0xFB else (3 if first == 0xFC else (4 if first == 0xFD else 9))
    if at < end:
        at += 8 if at + 3 < end and data[at + 3] & 0x80 else 4
    if at < end:
        at += 8
    sequence = load_i64(data, body + 17)
    if at > end or sequence < 0:
        return 0
    state[GTID_MICROS] = micros
    if kind & IS_ANONYMOUS:
        return CHECKED
    start = state[GROUPS] * GTID_TEXT_MAX
    to = _put_uuid(data, body + 1, texts, start)
    texts[to] = _COLON
    state[GTID_LENGTH] = write_number(texts, to + 1, sequence) - start
    return CHECKED


@register_jitable(inline="always")
def _put_uuid(data: Bytes, at: int, texts: Bytes, to: int) -> int:
    """Write a UUID's text; gives the place behind it."""
    for index in range(UUID_SIZE):
        if index == 4 or index == 6 or index == 8 or index == 10:
            texts[to] = _DASH
            to += 1
        byte = int(data[at + index])
        for shift in range(4, -1, -4):
            digit = (byte >> shift) & 15
            texts[to] = 48 + digit if digit < 10 else 87 + digit
            to += 1
    return to


@register_jitable
def check_tagged_gtid(data: Bytes, event: int, end: int, state: Numbers, texts: Bytes) -> int:
    """Check MySQL's GTID event with a tag and write its text; 0 if it is not for this kernel."""
    if not is_known_tagged(data, event, end):
        return 0
    state[GTID_MICROS] = micros_of_tagged(data, event, end)
    start = state[GROUPS] * GTID_TEXT_MAX
    # The name stands for a moment where the text will end.
    name = texts[start + GTID_TEXT_MAX - GTID_NAME_SIZE : start + GTID_TEXT_MAX]
    sequence = name_of_tagged(data, event, end, name)
    to = _put_uuid(name, 0, texts, start)
    size = int(name[UUID_SIZE])
    if size:
        texts[to] = _COLON
        copy_bytes(texts, to + 1, name, UUID_SIZE + 1, size)
        to += 1 + size
    texts[to] = _COLON
    state[GTID_LENGTH] = write_number(texts, to + 1, sequence) - start
    return CHECKED
