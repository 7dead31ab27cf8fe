"""Messages of another process on its sessions' statements → records of the port's journal.

A message is a record without its checksum. Messages of nearly all statements are alike: a statement is about to be
sent, of which nothing is special, or its reply has told one group of MariaDB. These are written here, one after
another; the others are for the reference, which is `AttributionListener`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.kernels.memory import Bytes, crc32, load_i64, load_u32

Numbers = npt.NDArray[np.int64]

MESSAGE_FIELDS: Final = 10
"""Numbers of a message that was written: kind, thread and number of the statement, place and checksum of the record,
beginning and end of the plans in the messages, their number or -1 for none, domain and sequence of the group that
was told."""
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


def write_messages(
    messages: tuple[Bytes, int, int],
    target: tuple[Bytes, Numbers, int],
    older: Numbers,
    found: Numbers,
) -> int:
    """Write messages as records, one after another, up to one that is not of the most usual kinds.

    Args:
        messages: Bytes of the messages; the place of the first of them; and the place behind the last byte,
            which may be in the middle of a message.
        target: The part of the journal's file that is mapped; the place of the next record there, which is moved
            on, the place from which on no record may begin, and the end of the room; and the address of a C
            function for CRC32.
        older: Threads of sessions with groups of older statements, as of `HAS_OLDER`.
        found: Gets `MESSAGE_FIELDS` numbers of each message that was written, as far as it has room.

    Returns:
        The number of the messages that were written.
    """
    said, start, end = messages
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
            # `domain-server-sequence`.
            part = 0
            digits = 0
            number = 0
            is_gtid = True
            for place in range(plans - text, plans):
                byte = said[place]
                if byte == _DASH and digits and part < _PARTS - 1:
                    if part == 0:
                        found[item + 8] = number
                    part += 1
                    digits = 0
                    number = 0
                elif _DIGIT_0 <= byte < _DIGIT_0 + 10 and digits < _DIGITS_MAX:
                    # A number that begins with a zero is no number of a server's.
                    is_gtid = is_gtid and not (digits and not number)
                    number = 10 * number + int(byte) - _DIGIT_0
                    digits += 1
                else:
                    is_gtid = False
            if not is_gtid or part != _PARTS - 1 or not digits or not number:
                break
            found[item + 9] = number
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


_MESSAGES: Final = "Tuple((uint8[::1], int64, int64))"
_TARGET: Final = "Tuple((uint8[::1], int64[::1], int64))"
EXPORTS: Final = ((write_messages, f"int64({_MESSAGES}, {_TARGET}, int64[::1], int64[::1])"),)
