"""Known statements of sessions that pass: the places to which they lead, and records of those that change rows.

A session is at a place, and a transition leads from there to the next one. What leaves more behind than
it found is recorded, so that the session can be followed later; the reply has to be as the transition demands.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, load_le, load_u16, load_u24, load_u32
from binlane.log.kernels.passing_layout import (
    BY_STATEMENT,
    DEMANDS,
    ENDED,
    ENDS,
    FROM_PLACE,
    IS_RECORDED,
    ITS_DEMANDS,
    NEEDS_ROWS,
    NEXT,
    NUMBER,
    NUMBERED,
    PARAMETERS,
    PENDING,
    PLACE,
    PLACE_FACTOR,
    RECORD_COUNT,
    RECORD_HEAD,
    RECORD_INSERT_ID,
    RECORD_LENGTH,
    RECORD_NUMBER,
    RECORD_PLACE,
    RECORDED,
    RECORDS_MAX,
    RECORDS_OF_ONE,
    STATEMENT_FACTOR,
    STATEMENT_FIELDS,
    STATEMENT_ID,
    STATEMENTS,
    STATEMENTS_MAX,
    STATEMENTS_OF_ONE,
    TELLS_ROWS,
    TO_PLACE,
    TRANSITION_FIELDS,
    TRANSITION_PROBES,
    TRANSITIONS_MAX,
    TYPES,
)

Numbers = npt.NDArray[np.int64]
Known = tuple[Numbers, Bytes, Numbers, Bytes, Numbers, Bytes, Bytes]
"""Prepared statements of the sessions, known texts, transitions, records of the sessions' commands, places of
pieces, the pieces, and messages that are to be said, as in `passing_layout`."""

VALUES_AT: Final = 10
"""Place in an execution of the bits that say which values are NULL."""
_PACKED_8: Final = 0xFE
_PACKED_3: Final = 0xFD
_PACKED_2: Final = 0xFC
_PACKED_ONE: Final = 0xFB
_TINY: Final = 1
_SHORT: Final = 2
_LONG: Final = 3
_LONGLONG: Final = 8
_TOP_BIT: Final = 0x80
_SPACE: Final = 0x20
_ASCII_END: Final = 0x7F
_QUOTE: Final = 0x27
_DOUBLE_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C
_NONE_CHANGED: Final = (0x43, 0x68, 0x61, 0x6E, 0x67, 0x65, 0x64, 0x3A, 0x20, 0x30, 0x20)
"""What the reply to an UPDATE says that changed no row: `Changed: 0 `."""


@register_jitable
def executed_statement(
    data: Bytes, start: int, end: int, statements: Numbers, of_session: int
) -> int:
    """The place of an execution's prepared statement, if its values are of the types that are known; else -1."""
    number = load_u32(data, start + 1)
    place: int = of_session + (number % STATEMENTS_MAX) * STATEMENT_FIELDS
    if not number or statements[place + STATEMENT_ID] != number:
        return -1
    count = statements[place + PARAMETERS]
    if not count:
        return place
    at = start + VALUES_AT + (count + 7) // 8
    if at >= end:
        return -1
    if not data[at]:
        return place
    if data[at] != 1 or at + 1 + 2 * count > end:
        return -1
    left = 2 * count
    for word in range((left + 7) // 8):
        told = load_le(data, at + 1 + 8 * word, min(left - 8 * word, 8))
        if told != statements[place + TYPES + word]:
            return -1
    return place


@register_jitable
def transition_from(place: int, number: int, transitions: Numbers) -> int:
    """The entry of a statement's transition from a place; -1 for none."""
    first = place * PLACE_FACTOR + number * STATEMENT_FACTOR
    for probe in range(TRANSITION_PROBES):
        at: int = ((first + probe) % TRANSITIONS_MAX) * TRANSITION_FIELDS
        if transitions[at + FROM_PLACE] == place and transitions[at + BY_STATEMENT] == number:
            return at
    return -1


@register_jitable
def goes_from_place(
    data: Bytes,
    start: int,
    end: int,
    number: int,
    session: tuple[Numbers, int],
    known: Known,
) -> bool:
    """True if a known statement leads from the session's place to another one, or to the same; it is recorded then.

    Args:
        data: The buffer with the command.
        start: The place of the command's first byte, behind its frame's head.
        end: The place behind its last byte.
        number: Number of the statement; of an execution the place of the prepared statement, as -1 less it.
        session: The connections, and the place of the client's numbers.
        known: What is known of statements, as of `pass_on`.
    """
    statements, _, transitions, records, _, _, _ = known
    table, client = session
    place = -1
    if number < 0:
        place = -1 - number
        number = statements[place + NUMBER]
    at = -1
    if number >= 0:
        at = transition_from(table[client + PLACE], number, transitions)
    if at < 0:
        return False
    demands = transitions[at + ITS_DEMANDS]
    if demands & IS_RECORDED:
        if place >= 0 and not has_plain_values(data, start, end, statements, place):
            return False
        recorded = table[client + RECORDED]
        if recorded + RECORD_HEAD + end - start > RECORDS_MAX:
            return False
        record = record_under_way(table, client)
        store(records, record + RECORD_LENGTH, end - start, 4)
        store(records, record + RECORD_NUMBER, number, 4)
        store(records, record + RECORD_INSERT_ID, 0, 8)
        store(records, record + RECORD_PLACE, table[client + PLACE], 8)
        for byte in range(end - start):
            records[record + RECORD_HEAD + byte] = data[start + byte]
        table[client + PENDING] = RECORD_HEAD + end - start
    table[client + NEXT] = transitions[at + TO_PLACE]
    table[client + DEMANDS] = demands
    return True


@register_jitable
def has_plain_values(data: Bytes, start: int, end: int, statements: Numbers, place: int) -> bool:
    """True if all texts of an execution with such values are of one form: no NULL, 0 or sign, and short plain strings."""
    count = statements[place + PARAMETERS]
    at = start + VALUES_AT + (count + 7) // 8
    for byte in range(start + VALUES_AT, at):
        if data[byte]:
            return False
    if count:
        at += 1 + 2 * count if data[at] else 1
    for value in range(count):
        kind = (statements[place + TYPES + value // 4] >> (16 * (value % 4))) & 0xFF
        size = 0
        if kind in (_TINY, _SHORT):
            size = kind
        elif kind == _LONG:
            size = 4
        elif kind == _LONGLONG:
            size = 8
        if size:
            if at + size > end or data[at + size - 1] & _TOP_BIT:
                return False
            is_zero = True
            for byte in range(at, at + size):
                if data[byte]:
                    is_zero = False
            if is_zero:
                return False
            at += size
            continue
        if at >= end:
            return False
        size = int(data[at])
        at += 1
        if not size or size >= _PACKED_ONE or at + size > end:
            return False
        for place_in in range(at, at + size):
            byte = int(data[place_in])
            if byte < _SPACE or byte >= _ASCII_END:
                return False
            if byte in (_QUOTE, _DOUBLE_QUOTE, _BACKSLASH):
                return False
        at += size
    return bool(at == end)


@register_jitable
def is_as_demanded(data: Bytes, head: int, end: int, demands: int) -> bool:
    """True if an OK packet that is there as a whole says of rows what the command's transition demands."""
    length = load_u24(data, head - 4)
    if head + length > end:
        return False
    if demands & NEEDS_ROWS and not packed(data, head + 1):
        return False
    if demands & TELLS_ROWS:
        for at in range(head, head + length - len(_NONE_CHANGED) + 1):
            is_it = True
            for place, byte in enumerate(_NONE_CHANGED):
                if data[at + place] != byte:
                    is_it = False
                    break
            if is_it:
                return False
    return True


@register_jitable
def record_under_way(table: Numbers, client: int) -> int:
    """The place of the record of a session's command under way."""
    first: int = table[client + STATEMENTS] // STATEMENTS_OF_ONE * RECORDS_OF_ONE
    return first + int(table[client + RECORDED])


@register_jitable
def arrive(table: Numbers, client: int) -> None:
    """Note that the command under way has been answered as its transition demands."""
    table[client + PLACE] = table[client + NEXT]
    pending = table[client + PENDING]
    if pending:
        table[client + RECORDED] += pending
        table[client + PENDING] = 0
        table[client + RECORD_COUNT] += 1
        table[client + NUMBERED] += 1
        if table[client + DEMANDS] & ENDS:
            table[client + RECORDED] = 0
            table[client + ENDED] = table[client + NUMBERED]
    table[client + DEMANDS] = 0


@register_jitable
def store(target: Bytes, at: int, number: int, length: int) -> None:
    """Write a number's lowest bytes, little-endian."""
    for byte in range(length):
        target[at + byte] = (number >> (8 * byte)) & 0xFF


@register_jitable
def packed(data: Bytes, at: int) -> int:
    """The packed integer at a place; one of 8 bytes is signed."""
    first = int(data[at])
    if first == _PACKED_2:
        return int(load_u16(data, at + 1))
    if first == _PACKED_3:
        return int(load_u24(data, at + 1))
    if first == _PACKED_8:
        return int(load_le(data, at + 1, 8))
    return first


@register_jitable
def packed_end(data: Bytes, at: int) -> int:
    """The place behind the packed integer at a place."""
    first = int(data[at])
    if first == _PACKED_2:
        return at + 3
    if first == _PACKED_3:
        return at + 4
    return at + 9 if first == _PACKED_8 else at + 1
