"""Packets of a dump ⇄ the bytes of a file, as far as they hold plain events.

A packet is one or more frames: a length of 3 bytes, a number, and in the first one a zero byte
before the event. Frames are taken as they come, however they are cut up by the network.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.kernels.memory import Bytes, copy_bytes, load_u16, load_u24, load_u32
from binlane.log.kernels.packet_layout import (
    EVENT_LEFT,
    EVENT_MAX,
    FILE_AT,
    FRAME_HEAD,
    FRAME_LEFT,
    FRAME_MAX,
    IS_CONTINUED,
    MARKED,
    MARKS_END,
    PACK_FULL,
    PACK_MORE,
    PACK_OTHER,
    PACKET_AT,
    PACKET_HEAD,
    PACKET_NUMBER,
    PACKETS_END,
    SEQUENCE,
    UNPACK_DAMAGED,
    UNPACK_FULL,
    UNPACK_GAP,
    UNPACK_MORE,
    UNPACK_OTHER,
    UNPACK_OUT_OF_ORDER,
    WINDOW_BASE,
    WINDOW_END,
)

Numbers = npt.NDArray[np.int64]

_MARK: Final = 4
_HEADER: Final = 5
_HEADER_LENGTH: Final = 19
_POSITION_MASK: Final = 0xFFFFFFFF
_ARTIFICIAL: Final = 0x20
_NEVER_PLAIN: Final = (15, 27, 41)  # FORMAT_DESCRIPTION, HEARTBEAT, HEARTBEAT_V2


def unpack(came: Bytes, end: int, state: Numbers, window: Bytes, room: int) -> int:
    """Move events from the received packets into the window, up to one that is not plain.

    Args:
        came: The bytes that came from the source; `state[PACKET_AT]` says from where on they are
            new.
        end: The number of bytes in it.
        state: The numbers that live between two calls.
        window: Gets the events one by one.
        room: The number of bytes that may stand in it.

    Returns:
        One of the codes of `packet_layout`.
    """
    while True:
        at = state[PACKET_AT]
        left = state[FRAME_LEFT]
        if left:
            count = min(left, end - at, room - state[WINDOW_END])
            copy_bytes(window, state[WINDOW_END], came, at, count)
            state[PACKET_AT] = at + count
            state[WINDOW_END] += count
            state[FRAME_LEFT] = left - count
            if count < left:
                return UNPACK_FULL if state[WINDOW_END] >= room else UNPACK_MORE
            continue
        if at + FRAME_HEAD > end:
            return UNPACK_MORE
        length = load_u24(came, at)
        if int(came[at + 3]) != state[SEQUENCE]:
            return UNPACK_OUT_OF_ORDER
        full = FRAME_MAX
        if state[IS_CONTINUED]:
            missing = state[EVENT_LEFT] - length
            if missing < 0 or (length < full and missing):
                return UNPACK_DAMAGED
            at += FRAME_HEAD
        else:
            if length <= _HEADER_LENGTH:
                return UNPACK_OTHER
            if at + PACKET_HEAD > end:
                return UNPACK_MORE
            header = at + _HEADER
            kind = int(came[header + 4])
            is_other = kind in _NEVER_PLAIN
            if came[at + _MARK] or is_other or load_u16(came, header + 17) & _ARTIFICIAL:
                return UNPACK_OTHER
            event = load_u32(came, header + 9)
            length -= 1  # the mark
            full -= 1
            missing = event - length
            if event > EVENT_MAX or missing < 0 or (length < full and missing):
                return UNPACK_DAMAGED
            told = load_u32(came, header + 13)
            stands_at = state[WINDOW_BASE] + state[WINDOW_END]
            if told and told != (stands_at + event) & _POSITION_MASK:
                return UNPACK_GAP
            at = header
        state[IS_CONTINUED] = length == full
        state[PACKET_AT] = at
        state[FRAME_LEFT] = length
        state[EVENT_LEFT] = missing
        state[SEQUENCE] = (state[SEQUENCE] + 1) & 0xFF


def pack(
    file: Bytes,
    end: int,
    left_out: int,
    state: Numbers,
    packets: Bytes,
    room: int,
    marks: Numbers,
) -> int:
    """Make a packet of each whole event.

    Args:
        file: Bytes of a file; an event begins at `state[FILE_AT]`.
        end: The number of bytes in it.
        left_out: Type of events that get no packet; -1 for none.
        state: The numbers that live between two calls.
        packets: Gets the packets, from `state[PACKETS_END]` on.
        room: The number of bytes that may stand in it.
        marks: Gets where in `file` each event of `MARKED` begins, from `state[MARKS_END]` on; has
            room for one of each event.

    Returns:
        One of the codes of `packet_layout`.
    """
    at, to, number = state[FILE_AT], state[PACKETS_END], state[PACKET_NUMBER]
    marked = state[MARKS_END]
    code = PACK_MORE
    while at + _HEADER_LENGTH <= end:
        length = load_u32(file, at + 9)
        if length < _HEADER_LENGTH or length + 1 >= FRAME_MAX:
            code = PACK_OTHER
            break
        if at + length > end:
            break
        kind = int(file[at + 4])
        if kind != left_out:
            if to + _HEADER + length > room:
                code = PACK_FULL
                break
            payload = length + 1  # the mark
            packets[to] = payload & 0xFF
            packets[to + 1] = (payload >> 8) & 0xFF
            packets[to + 2] = payload >> 16
            packets[to + 3] = number
            packets[to + _MARK] = 0
            copy_bytes(packets, to + _HEADER, file, at, length)
            to += _HEADER + length
            number = (number + 1) & 0xFF
            if kind in MARKED:
                marks[marked] = at
                marked += 1
        at += length
    state[FILE_AT], state[PACKETS_END], state[PACKET_NUMBER] = at, to, number
    state[MARKS_END] = marked
    return code


EXPORTS: Final = (
    (unpack, "int64(uint8[::1], int64, int64[::1], uint8[::1], int64)"),
    (pack, "int64(uint8[::1], int64, int64, int64[::1], uint8[::1], int64, int64[::1])"),
)
