"""Messages of another process on its sessions' statements → records of the port's journal.

A message is a record without its checksum. Messages of nearly all statements are alike: a statement is about to be
sent, of which nothing is special, or its reply has told one group. These are written here, one after
another; the others are for the reference, which is `AttributionListener`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.found_layout import MESSAGE_FIELDS
from binlane.log.kernels.memory import Bytes, crc32, load_i64, load_u32

Numbers = npt.NDArray[np.int64]

_CHECKSUM: Final = 4
_FRAME: Final = 5
_STATEMENT: Final = 17
_BITS: Final = _FRAME + 12
_TEXT_LENGTH: Final = _FRAME + 13
_INTENT: Final = 2
_ANSWER: Final = 3
_HAS_OLDER: Final = 1
_IS_KNOWN: Final = 128
"""Kinds of messages and bits of statements, as in `journal_records`."""
_DASH: Final = 0x2D
_DIGIT_0: Final = 0x30
_PARTS: Final = 3
_DIGITS_MAX: Final = 18
_COLON: Final = 0x3A
_LETTERS: Final = 0x61 - 10
_UUID: Final = 16
_UUID_TEXT: Final = 36


def write_messages(
    messages: tuple[Bytes, int, int, Bytes],
    target: tuple[Bytes, Numbers, int],
    older: Numbers,
    found: Numbers,
) -> int:
    """Write messages as records, one after another, up to one that is not of the most usual kinds.

    Args:
        messages: Bytes of the messages; the place of the first of them; the place behind the last byte, which may be
            in the middle of a message; and the UUIDs of MySQL's sources, or none for MariaDB.
        target: The part of the journal's file that is mapped; the place of the next record there, which is moved
            on, the place from which on no record may begin, and the end of the room; and the address of a C
            function for CRC32.
        older: Threads of sessions with groups of older statements, as of `HAS_OLDER`.
        found: Gets `MESSAGE_FIELDS` numbers of each message that was written, as far as it has room.

    Returns:
        The number of the messages that were written.
    """
    said, start, end, sources = messages
    memory, room, function = target
    count = 0
    most = len(found) // MESSAGE_FIELDS
    at = int(room[0])
    while count < most and end - start >= _FRAME + _STATEMENT:
        length = load_u32(said, start)
        kind = said[start + 4]
        stop = start + _FRAME + length
        if stop > end or length < _STATEMENT or at >= room[1]:
            break
        behind = at + _CHECKSUM + _FRAME + length
        if behind > room[2]:
            break
        text = load_u32(said, start + _TEXT_LENGTH)
        plans = start + _FRAME + _STATEMENT + text
        thread_id = load_u32(said, start + _FRAME)
        item = count * MESSAGE_FIELDS
        if kind == _INTENT:
            if said[start + _BITS] or text or plans + 4 > stop:
                break
            for each in range(len(older)):
                if older[each] == thread_id:
                    said[start + _BITS] = _HAS_OLDER
        elif kind == _ANSWER:
            if said[start + _BITS] != _IS_KNOWN or plans > stop:
                break
            place = plans - text
            is_gtid = (
                _read_mysql(said, place, plans, sources, found, item + 8)
                if len(sources)
                else _read_mariadb(said, place, plans, found, item + 8)
            )
            if not is_gtid:
                break
        else:
            break
        has_plans = plans + 4 <= stop
        if plans < stop and not has_plans:
            break
        found[item] = kind
        found[item + 1] = thread_id
        found[item + 2] = load_i64(said, start + _FRAME + 4)
        found[item + 3] = at
        found[item + 5] = plans
        found[item + 6] = stop
        found[item + 7] = load_u32(said, plans) if has_plans else -1
        checksum = crc32(function, said, start, stop - start)
        found[item + 4] = checksum
        # The record's head comes last: until then the zeros at its place end the file.
        for byte in range(_FRAME, stop - start):
            memory[at + _CHECKSUM + byte] = said[start + byte]
        for byte in range(_FRAME):
            memory[at + _CHECKSUM + byte] = said[start + byte]
        for byte in range(_CHECKSUM):
            memory[at + byte] = (checksum >> (8 * byte)) & 255
        at = behind
        start = stop
        count += 1
    room[0] = at
    return count


@register_jitable
def _read_mariadb(said: Bytes, start: int, end: int, found: Numbers, at: int) -> bool:
    """Read `domain-server-sequence`; False for anything else."""
    part = 0
    digits = 0
    number = 0
    for place in range(start, end):
        byte = said[place]
        if byte == _DASH and digits and part < _PARTS - 1:
            if part == 0:
                found[at] = number
            part += 1
            digits = 0
            number = 0
            continue
        # A number that begins with a zero is no number of a server's.
        if (
            not (_DIGIT_0 <= byte < _DIGIT_0 + 10)
            or digits == _DIGITS_MAX
            or (digits and not number)
        ):
            return False
        number = 10 * number + int(byte) - _DIGIT_0
        digits += 1
    found[at + 1] = number
    return part == _PARTS - 1 and number > 0


@register_jitable
def _read_mysql(said: Bytes, start: int, end: int, sources: Bytes, found: Numbers, at: int) -> bool:
    """Read `uuid:sequence` with the UUID of a source that is known; False for anything else."""
    if end - start <= _UUID_TEXT + 1 or said[start + _UUID_TEXT] != _COLON:
        return False
    number = 0
    for place in range(start + _UUID_TEXT + 1, end):
        byte = said[place]
        if not (_DIGIT_0 <= byte < _DIGIT_0 + 10) or place - start > _UUID_TEXT + _DIGITS_MAX:
            return False
        number = 10 * number + int(byte) - _DIGIT_0
    found[at + 1] = number
    for source in range(len(sources) // _UUID):
        byte = 0
        for place in range(_UUID_TEXT):
            if place in (8, 13, 18, 23):
                is_same = said[start + place] == _DASH
            else:
                value = int(sources[source * _UUID + byte // 2])
                digit = value & 15 if byte & 1 else value >> 4
                is_same = said[start + place] == digit + (_DIGIT_0 if digit < 10 else _LETTERS)
                byte += 1
            if not is_same:
                break
        else:
            found[at] = source
            return number > 0
    return False


_MESSAGES: Final = "Tuple((uint8[::1], int64, int64, uint8[::1]))"
_TARGET: Final = "Tuple((uint8[::1], int64[::1], int64))"
EXPORTS: Final = ((write_messages, f"int64({_MESSAGES}, {_TARGET}, int64[::1], int64[::1])"),)
