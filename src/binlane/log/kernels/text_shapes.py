"""The texts of groups of rows by their shapes: literals emptied, everything else as it stands.

`routing.texts` says of each shape which names it holds; here a text's shape is written and its
number found.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.layout import (
    EVENT_BITMAP,
    EVENT_END,
    EVENT_MAP,
    EVENT_OFFSET,
    EVENT_TYPE,
)
from binlane.log.kernels.memory import (
    Bytes,
    copy_bytes,
    is_equal,
    load_i64,
    load_u16,
    load_u32,
)

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Run = tuple[Bytes, Small, Numbers, Small]
"""The bytes of a run, the index of its events, the index of its groups, the role of each type."""
Texts = tuple[Numbers, Numbers, Bytes, Small, Small]
"""The numbers of known texts by hash (a power of two), the facts of each, the bytes of all, the
numbers of the names that they need, the number of each table's name."""

_HEADER: Final = 19
_CONTEXT: Final = 8
"""Bytes of a QUERY's body before its context: thread and duration, which differ each time."""
_CONTEXT_MAX: Final = 4096
_SAVEPOINT_EVENTS_MAX: Final = 1 << 12
_QUOTE: Final = 39
_BACKTICK: Final = 96
_BACKSLASH: Final = 92
_DOUBLE_QUOTE: Final = 34
_ONES: Final = 0x0101010101010101
_HIGHS: Final = -0x7F7F7F7F7F7F7F80
_QUOTES: Final = _ONES * 39
_BACKSLASHES: Final = _ONES * 92
_ZERO: Final = 48
_NINE: Final = 57
_POINT: Final = 46


@register_jitable
def _is_letter(char: int) -> bool:
    """True if a byte may be part of a name or number."""
    return (
        char >= 128
        or 97 <= char <= 122
        or 64 <= char <= 90
        or _ZERO <= char <= _NINE
        or char in (95, 36, _POINT)
    )


@register_jitable
def _is_number(data: Bytes, at: int, end: int) -> bool:
    """True if a run of letters is digits alone, with at most one point between them."""
    points = 0
    for place in range(at, end):
        char = data[place]
        if char == _POINT and place > at and place + 1 < end:
            points += 1
        elif char < _ZERO or char > _NINE:
            return False
    return points <= 1


@register_jitable
def _has_byte(word: int, repeated: int) -> bool:
    """True if a byte stands among eight; it is given eight times."""
    other = word ^ repeated
    return bool((other - _ONES) & ~other & _HIGHS)


@register_jitable
def _string_end(data: Bytes, at: int, end: int) -> int:
    """Return the place behind the string at `at`; -1 if it can be read in two ways, or never ends."""
    place = at + 1
    while place < end:
        while place + 8 <= end:
            word = load_i64(data, place)
            if _has_byte(word, _QUOTES) or _has_byte(word, _BACKSLASHES):
                break
            place += 8
        char = data[place]
        if place >= end:
            break
        if char == _BACKSLASH:
            if place + 1 < end and data[place + 1] == _QUOTE:
                return -1
            place += 2
        elif char != _QUOTE:
            place += 1
        elif place + 1 < end and data[place + 1] == _QUOTE:
            place += 2
        else:
            return place + 1
    return -1


@register_jitable
def write_shape(data: Bytes, at: int, end: int, out: Bytes, begin: int) -> int:
    """Write the shape of a text behind the first bytes of a key; the key's length."""
    to = begin
    place = at
    while place < end:
        char = int(data[place])
        following = place + 1
        if char == _QUOTE:
            following = _string_end(data, place, end)
            if following > 0:
                out[to] = out[to + 1] = _QUOTE
                to += 2
                place = following
                continue
        elif char == _BACKTICK:
            while following < end and data[following] != _BACKTICK:
                following += 1
            following = following + 1 if following < end else -1
        elif char in (_BACKSLASH, _DOUBLE_QUOTE):
            following = -1
        elif _is_letter(char):
            while following < end and _is_letter(int(data[following])):
                following += 1
            if _is_number(data, place, following):
                out[to] = _ZERO
                to += 1
                place = following
                continue
        if following < 0:
            copy_bytes(out, begin, data, at, end - at)
            return begin + end - at
        copy_bytes(out, to, data, place, following - place)
        to += following - place
        place = following
    return to


def shape(data: Bytes, at: int, end: int, out: Bytes) -> int:
    """Write the shape of a text, as `routing.texts.shape_of` gives it; its length.

    Args:
        data: The buffer that holds the text.
        at: The start of the text in it.
        end: The end of the text in it.
        out: Has room for as many bytes, and padding.
    """
    return write_shape(data, at, end, out, 0)


@register_jitable
def find(key: Bytes, start: int, length: int, kind: int, texts: Texts) -> int:
    """The number of a text that is known, else -1 minus the slot for it."""
    slots, table, arena, _, _ = texts
    value = kind
    place = start
    while place + 4 <= start + length:
        value = (value ^ load_u32(key, place)) * 0x01000193 & 0xFFFFFFFFFF
        value ^= value >> 15
        place += 4
    while place < start + length:
        value = (value ^ int(key[place])) * 0x01000193 & 0xFFFFFFFFFF
        place += 1
    mask = int(slots.shape[0]) - 1
    slot = (value ^ (value >> 17)) & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if (
            table[lay.TEXT_LENGTH, number] == length
            and table[lay.TEXT_KIND, number] == kind
            and is_equal(key, start, arena, table[lay.TEXT_START, number], length)
        ):
            return int(number)
        slot = (slot + 1) & mask
    return -1 - slot


def find_text(key: Bytes, start: int, length: int, kind: int, texts: Texts) -> int:
    """The number of a text that is known, else -1 minus the slot for it."""
    return find(key, start, length, kind, texts)


@register_jitable
def is_bracket(data: Bytes, body: int, end: int) -> bool:
    """True if a QUERY is BEGIN, COMMIT or ROLLBACK."""
    if end - body < 14:
        return False
    at = body + 14 + load_u16(data, body + 11) + int(data[body + 8])
    length = end - at
    if length == 5:
        return bool(load_u32(data, at) == 0x49474542 and data[at + 4] == 78)
    if length == 6:
        return bool(load_u32(data, at) == 0x4D4D4F43 and load_u16(data, at + 4) == 0x5449)
    if length == 8:
        return bool(load_u32(data, at) == 0x4C4C4F52 and load_u32(data, at + 4) == 0x4B434142)
    return False


@register_jitable
def text_at(data: Bytes, body: int, end: int) -> int:
    """The place of the text of a plain QUERY; the event's end if its lengths are wrong."""
    if end - body < 14:
        return end
    at = body + 14 + load_u16(data, body + 11) + int(data[body + 8])
    return min(at, end)


@register_jitable
def _changes_rows(data: Bytes, at: int) -> bool:
    """True if a text begins with INSERT, UPDATE, DELETE or REPLACE."""
    first = load_u32(data, at) & 0xDFDFDFDF
    second = load_u16(data, at + 4) & 0xDFDF
    if first == 0x45534E49:
        return bool(second == 0x5452)
    if first == 0x41445055 or first == 0x454C4544:
        return bool(second == 0x4554)
    return bool(first == 0x4C504552 and second == 0x4341 and data[at + 6] & 0xDF == 69)


@register_jitable
def savepoint_verb(data: Bytes, at: int, end: int) -> int:
    """The length of SAVEPOINT or ROLLBACK TO before a plain name in backticks; 0 for other texts."""
    if end - at < 13 or data[end - 1] != _BACKTICK:
        return 0
    length = 0
    if load_i64(data, at) == 0x4E494F5045564153:
        length = 9 if data[at + 8] == 84 else 0
    elif load_i64(data, at) == 0x4B4341424C4C4F52:
        is_to = data[at + 8] == 32 and load_u16(data, at + 9) == 0x4F54
        length = 11 if is_to else 0
    if length == 0 or data[at + length] != 32 or data[at + length + 1] != _BACKTICK:
        return 0
    for place in range(at + length + 2, end - 1):
        if data[place] == _BACKTICK or data[place] >= 128:
            return 0
    return length if at + length + 2 < end - 1 else 0


@register_jitable
def is_xa(data: Bytes, at: int, end: int) -> bool:
    """True if a text is about an XA transaction."""
    return bool(end - at > 3 and load_u16(data, at) == 0x4158 and data[at + 2] == 32)


@register_jitable
def _is_same_name(data: Bytes, at: int, other: int, end: int) -> bool:
    """True if two names in backticks differ in the case of ASCII letters alone."""
    while at < end:
        one, two = int(data[at]), int(data[other])
        one += 32 if 65 <= one <= 90 else 0
        two += 32 if 65 <= two <= 90 else 0
        if one != two:
            return False
        at += 1
        other += 1
    return True


@register_jitable
def _savepoint_number(run: Run, event: int) -> int:
    """The number of a savepoint in its group, by the order in which names come; 0 if there are many."""
    data, events, _, roles = run
    end = int(events[EVENT_END, event])
    text = text_at(data, int(events[EVENT_OFFSET, event]) + _HEADER, end)
    name = text + savepoint_verb(data, text, end) + 1
    most = 0
    for before in range(event - 1, event - _SAVEPOINT_EVENTS_MAX, -1):
        role = roles[events[EVENT_TYPE, before]] if before >= 0 else lay.GTID
        if role == lay.GTID or role == lay.MYSQL_GTID:
            return most + 1
        if role != lay.QUERY:
            continue
        other_end = int(events[EVENT_END, before])
        other = text_at(data, int(events[EVENT_OFFSET, before]) + _HEADER, other_end)
        verb = savepoint_verb(data, other, other_end)
        if verb == 0:
            continue
        most = max(most, int(events[EVENT_BITMAP, before]))
        other += verb + 1
        if other_end - other == end - name and _is_same_name(data, name, other, end):
            return int(events[EVENT_BITMAP, before])
    return 0


@register_jitable
def is_variable(data: Bytes, kind: int, at: int, end: int) -> bool:
    """True if an INTVAR, RAND or USER_VAR is whole."""
    if kind != 14:
        return end - at == (9 if kind == 5 else 16)
    if end - at < 5:
        return False
    place = at + 4 + load_u32(data, at)
    if place >= end:
        return False
    if data[place] and place + 1 == end:
        return True
    if place + 10 > end:
        return False
    value = place + 10 + load_u32(data, place + 6)
    return value == end or value + 1 == end


@register_jitable
def _is_wanted(events: Small, start: int, last: int, roles: Small, wanted: Bytes) -> bool:
    """True if the statement of a text maps a table that is in any scope."""
    for event in range(start, last):
        role = roles[events[EVENT_TYPE, event]]
        if role == lay.MAP:
            if wanted[events[EVENT_MAP, event]]:
                return True
        elif role != lay.ROWS and role != lay.OTHER:
            return False
    return False


def resolve(
    run: Run, last: int, texts: Texts, wanted: Bytes, scratch: Bytes, state: Numbers
) -> int:
    """Find the numbers of texts and contexts, from event `state[RESOLVE_NEXT]` on.

    Args:
        run: The run; the index of its events receives the numbers.
        last: The number of all events.
        texts: The texts that are known.
        wanted: 1 for each table in any scope: a text before other tables is not read.
        scratch: Receives the key of a text that is not known; room for the longest text that is
            read, and padding.
        state: The place to go on, the text that is asked for, and the length of the longest text.

    Returns:
        1 if the text whose key stands in `scratch` is not known, 0 if all are.
    """
    data, events, _, roles = run
    text_max = state[lay.RESOLVE_MAX]
    for event in range(state[lay.RESOLVE_NEXT], last):
        role = roles[events[EVENT_TYPE, event]]
        if role not in (lay.TEXT, lay.LENGTH_TEXT, lay.QUERY, lay.VARIABLE):
            continue
        at = events[EVENT_OFFSET, event] + _HEADER
        end = int(events[EVENT_END, event])
        kind = lay.SHAPE
        if role == lay.VARIABLE:
            is_whole = is_variable(data, int(events[EVENT_TYPE, event]), at, end)
            events[EVENT_MAP, event] = lay.KNOWN if is_whole else lay.UNREAD
            continue
        if role == lay.QUERY:
            kind = lay.CONTEXT
            if not is_bracket(data, at, end):
                kind = lay.STATEMENT
                text = text_at(data, at, end)
                length = text - at - _CONTEXT
                number = 0
                if savepoint_verb(data, text, end) and length <= _CONTEXT_MAX:
                    kind = lay.SAVEPOINT
                    number = _savepoint_number(run, event)
                    events[EVENT_BITMAP, event] = number
                elif is_xa(data, text, end) and end - at <= _CONTEXT_MAX:
                    kind = lay.XA
                    events[EVENT_BITMAP, event] = lay.NO_XA
                    number = 1
                elif end - text >= 8 and end - at <= text_max and _changes_rows(data, text):
                    number = 1
                if number == 0:
                    events[EVENT_MAP, event] = lay.UNREAD
                    continue
                copy_bytes(scratch, 0, data, at + _CONTEXT, length)
                if kind != lay.SAVEPOINT:
                    length = write_shape(data, text, end, scratch, length)
            elif end - at > _CONTEXT_MAX:
                events[EVENT_MAP, event] = lay.UNREAD
                continue
            else:
                length = end - at - _CONTEXT
                copy_bytes(scratch, 0, data, at + _CONTEXT, length)
        else:
            at += 1 if role == lay.LENGTH_TEXT else 0
            if not _is_wanted(events, event + 1, last, roles, wanted):
                events[EVENT_MAP, event] = lay.UNWANTED
                continue
            if end - at > text_max:
                events[EVENT_MAP, event] = lay.LONG_TEXT
                continue
            length = write_shape(data, at, end, scratch, 0)
        number = find(scratch, 0, length, kind, texts)
        if number < 0:
            state[lay.RESOLVE_NEXT] = event
            state[lay.RESOLVE_LENGTH] = length
            state[lay.RESOLVE_KIND] = kind
            return 1
        events[EVENT_MAP, event] = number
    state[lay.RESOLVE_NEXT] = last
    return 0


RUN_TYPE: Final = "Tuple((uint8[::1], int32[:, ::1], int64[:, ::1], int32[::1]))"
TEXTS_TYPE: Final = "Tuple((int64[::1], int64[:, ::1], uint8[::1], int32[::1], int32[::1]))"
EXPORTS: Final = (
    (shape, "int64(uint8[::1], int64, int64, uint8[::1])"),
    (find_text, f"int64(uint8[::1], int64, int64, int64, {TEXTS_TYPE})"),
    (resolve, f"int64({RUN_TYPE}, int64, {TEXTS_TYPE}, uint8[::1], uint8[::1], int64[::1])"),
)
