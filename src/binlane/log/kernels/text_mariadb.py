"""MariaDB's own events: GTIDs, and annotations, which wait for their TABLE_MAP."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_head as words
from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import load_i64, load_u32
from binlane.log.kernels.text_head import (
    CARRIAGE_RETURN,
    HEADER,
    LINE_END,
    PRINTED,
    begin_event,
    body_end,
    put_head,
    put_phrase,
    put_place,
)
from binlane.log.kernels.text_memory import LANES, copy_lanes, first_bit
from binlane.log.kernels.text_numbers import put_number, put_unsigned

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

# Bits of a GTID.
_STANDALONE, _GROUP_COMMIT, _TRANSACTIONAL, _PARALLEL, _WAITED, _DDL = 1, 2, 4, 8, 16, 32
_HAS_XID: Final = 0xC0
_HAS_THREAD: Final = 0x10


@register_jitable(forceinline=True)
def print_gtid(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """The begin of an event group, of the same domain and server as the one before."""
    body, end = state[lay.OFFSET] + HEADER, body_end(data, state)
    server = load_u32(data, state[lay.OFFSET] + 5)
    if end - body < 13 or not state[lay.KNOWS_GTID] or server != state[lay.SERVER]:
        return lay.ASK_EVENT
    domain, flags = load_u32(data, body + 8), int(data[body + 12])
    extra_at = body + (21 if flags & _GROUP_COMMIT else 13)
    extra = int(data[extra_at]) if extra_at < end else 0
    if (
        flags & _HAS_XID
        or extra & ~_HAS_THREAD
        or extra_at + (5 if extra else 0) > end
        or domain != state[lay.DOMAIN]
        or flags & _PARALLEL != state[lay.PARALLEL]
    ):
        return lay.ASK_EVENT
    at = begin_event(data, state, buffers)
    out = buffers[lay.OUT]
    at = put_number(out, put_phrase(out, at, words.GTID), domain)
    out[at] = 45
    at = put_number(out, at + 1, server)
    out[at] = 45
    sequence = load_i64(data, body)
    at = put_unsigned(out, at + 1, sequence)
    if flags & _GROUP_COMMIT:
        at = put_unsigned(out, put_phrase(out, at, words.COMMIT_ID), load_i64(data, body + 13))
    if flags & _DDL:
        at = put_phrase(out, at, words.DDL)
    if flags & _TRANSACTIONAL:
        at = put_phrase(out, at, words.TRANSACTIONAL)
    if flags & _WAITED:
        at = put_phrase(out, at, words.WAITED)
    if extra:
        at = put_number(out, put_phrase(out, at, words.THREAD), load_u32(data, extra_at + 1))
    at = put_unsigned(out, put_phrase(out, at, words.SET_SEQUENCE), sequence)
    at = put_phrase(out, at, words.END_OF_SET)
    if not flags & _STANDALONE:
        at = put_phrase(out, at, words.START_TRANSACTION)
    state[lay.OUT_AT] = at
    return PRINTED


@register_jitable(forceinline=True)
def _copy_line(note: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Copy the rest of a line, which has at least one character; where it ends."""
    done = begin
    while done < end:
        mask = copy_lanes(note, at + done - begin, data, done)
        while mask:
            stop = done + first_bit(mask)
            if stop >= end:
                break
            if data[stop] == LINE_END or data[stop] == CARRIAGE_RETURN:
                return stop
            mask &= mask - 1
        done += LANES
    return end


@register_jitable(forceinline=True)
def keep_note(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Keep an annotation: it is printed with the TABLE_MAP that follows."""
    offset, end = state[lay.OFFSET], body_end(data, state)
    state[lay.OUT_AT] = put_place(buffers[lay.OUT], state[lay.OUT_AT], state)
    if state[lay.SKIPS_NOTES]:
        return PRINTED
    note = buffers[lay.NOTE]
    at = put_phrase(note, put_head(note, 0, data, state, buffers[lay.TEXTS]), words.ANNOTATION)
    begin = offset + HEADER
    while begin < end:
        while begin < end and (data[begin] == LINE_END or data[begin] == CARRIAGE_RETURN):
            begin += 1
        if begin < end:
            at = put_phrase(note, at, words.ANNOTATION_LINE)
            stop = _copy_line(note, at, data, begin, end)
            at += stop - begin
            note[at] = LINE_END
            at += 1
            begin = stop
    state[lay.NOTE_AT] = at
    return PRINTED
