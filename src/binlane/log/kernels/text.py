"""Events as the text of mariadb-binlog or mysqlbinlog, a window of a file at a time.

`print_events` prints what fills a log: GTIDs, what the rows of a statement were caused by, TABLE_MAP
and rows, XID, and statements whose context is that of the statement before. For any other event,
and for what needs more than bytes, it stops and says why; its caller does that and calls again.
`text_layout` names the parts of the state. The text of a statement's rows comes in parts that are
printed one after the other: the heads of its events (MariaDB), the events as base64, the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import crc32, load_u16, load_u32
from binlane.log.kernels.text_head import HEADER, PRINTED
from binlane.log.kernels.text_mariadb import keep_note, print_gtid
from binlane.log.kernels.text_mysql import print_mysql_gtid, print_rows_query
from binlane.log.kernels.text_query import print_intvar, print_query, print_xid
from binlane.log.kernels.text_statement import print_rows, print_table

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

# Room for everything but statements, annotations and rows: two names are the longest of it.
_EVENT_ROOM: Final = 2560

_QUERY, _INTVAR, _XID, _TABLE_MAP, _ANNOTATION, _GTID = 2, 5, 16, 19, 160, 162
_ROWS_V1_FIRST, _ROWS_V1_LAST, _COMPRESSED_FIRST, _COMPRESSED_LAST = 23, 25, 166, 168
_ROWS_FIRST, _ROWS_LAST, _PARTIAL_UPDATE = 30, 32, 39
_ROWS_QUERY, _GTID_LOG, _ANONYMOUS_GTID_LOG = 29, 33, 34
# Bits of the header: the position is of another log; the event is not to be replicated.
_FOREIGN_POSITION: Final = 0x60
_POSITION_MASK: Final = 0xFFFFFFFF
_SKIPS_REPLICATION: Final = 0x8000


def print_events(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    """Print the events of a window.

    Args:
        data: The window, padded by 64 bytes; events of a payload are changed and changed back.
        state: The place to begin and everything else that lasts, by the names in `text_layout`.
        buffers: The arrays for what is printed, and all texts, each padded by 64 bytes.
        tables: The tables that are known, by the hash of their ids.
        layouts: The layouts in which their images are printed.

    Returns:
        Why it stopped.
    """
    status = PRINTED
    while status == PRINTED:
        offset = state[lay.OFFSET]
        left = state[lay.END] - offset
        if left < HEADER:
            return lay.DONE
        length = load_u32(data, offset + 9)
        if length < HEADER + state[lay.CHECKSUM] or length > state[lay.LENGTH_MAX]:
            return lay.ASK_EVENT
        if length > left:
            return lay.DONE
        if state[lay.SKIPS] and data[offset + 4] == lay.SKIPPED:
            state[lay.OFFSET] = offset + length
            continue
        if state[lay.PHASE] == lay.START and not _is_sound(data, state, offset, length):
            return lay.ASK_EVENT
        time = load_u32(data, offset)
        if time < state[lay.CLOCK_FROM] or time >= state[lay.CLOCK_UNTIL]:
            state[lay.TIME] = time
            return lay.ASK_CLOCK
        status = _print_event(data, state, buffers, tables, layouts)
        if status == PRINTED:
            state[lay.OFFSET] = offset + length
            state[lay.INNER_EVENTS] += 1
    return status


@register_jitable(forceinline=True)
def _is_sound(data: Bytes, state: Longs, offset: int, length: int) -> bool:
    """True if checksum and end position are right; False without a format."""
    if state[lay.CHECKSUM] < 0:
        return False
    if state[lay.CHECKSUM]:
        size = length - 4
        if crc32(state[lay.CRC32], data, offset, size) != load_u32(data, offset + size):
            return False
    position = load_u32(data, offset + 13)
    if position == 0 or load_u16(data, offset + 17) & _FOREIGN_POSITION or state[lay.INNER]:
        return True
    return bool(position == (state[lay.BASE] + offset + length) & _POSITION_MASK)


@register_jitable(forceinline=True)
def _print_event(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    kind = data[state[lay.OFFSET] + 4]
    is_mysql = state[lay.IS_MYSQL]
    if (
        _ROWS_V1_FIRST <= kind <= _ROWS_V1_LAST
        or (not is_mysql and _COMPRESSED_FIRST <= kind <= _COMPRESSED_LAST)
        or (is_mysql and (_ROWS_FIRST <= kind <= _ROWS_LAST or kind == _PARTIAL_UPDATE))
    ):
        return print_rows(data, state, buffers, tables, layouts)
    need = _EVENT_ROOM + state[lay.HEADS_AT]
    if kind == _TABLE_MAP:
        need += state[lay.NOTE_AT]
    elif kind == _QUERY:
        need += load_u32(data, state[lay.OFFSET] + 9) + state[lay.NOTE_AT]
    elif kind == _ROWS_QUERY:
        # Each line end gets two characters more.
        need += 3 * load_u32(data, state[lay.OFFSET] + 9)
    elif kind == _INTVAR and is_mysql:
        if state[lay.NOTE_AT] + _EVENT_ROOM > buffers[lay.NOTE].shape[0]:
            state[lay.NEED] = _EVENT_ROOM
            return lay.NOTE_FULL
    elif kind == _ANNOTATION and not state[lay.SKIPS_NOTES]:
        # Each line has at least one character and a line end, and gets four more.
        note = _EVENT_ROOM + 3 * load_u32(data, state[lay.OFFSET] + 9)
        if note > buffers[lay.NOTE].shape[0]:
            state[lay.NEED] = note
            return lay.NOTE_FULL
    if state[lay.OUT_AT] + need > buffers[lay.OUT].shape[0]:
        state[lay.NEED] = need
        return lay.OUT_FULL
    if kind == _TABLE_MAP:
        return print_table(data, state, buffers, tables)
    if kind == _ANNOTATION and not is_mysql:
        return keep_note(data, state, buffers)
    # Rows that nothing has ended come before any event that is none of their statement.
    if state[lay.HEADS_AT] + state[lay.ENCODED_AT] + state[lay.ROWS_AT] + state[lay.SPILLED]:
        return lay.ASK_EVENT
    if is_mysql:
        return _print_mysql_event(data, state, buffers, int(kind))
    if state[lay.SKIPS_REPLICATION]:
        return lay.ASK_EVENT
    if load_u16(data, state[lay.OFFSET] + 17) & _SKIPS_REPLICATION:
        return lay.ASK_EVENT
    if kind == _GTID:
        return print_gtid(data, state, buffers)
    if kind == _XID:
        return print_xid(data, state, buffers)
    if kind == _QUERY:
        return print_query(data, state, buffers)
    if kind == _INTVAR:
        return print_intvar(data, state, buffers)
    return lay.ASK_EVENT


@register_jitable(forceinline=True)
def _print_mysql_event(data: Bytes, state: Longs, buffers: Buffers, kind: int) -> int:
    """Print an event that is not a statement's rows, in MySQL's dialect."""
    if _GTID_LOG <= kind <= _ANONYMOUS_GTID_LOG:
        return print_mysql_gtid(data, state, buffers)
    if state[lay.IN_PAYLOAD] and not state[lay.INNER]:
        return lay.ASK_EVENT
    if kind == _XID:
        status = print_xid(data, state, buffers)
        if status == PRINTED:
            state[lay.IN_TRANSACTION] = 0
        return status
    if kind == _QUERY:
        return print_query(data, state, buffers)
    if kind == _ROWS_QUERY:
        return print_rows_query(data, state, buffers)
    if kind == _INTVAR:
        return print_intvar(data, state, buffers)
    return lay.ASK_EVENT


EXPORTS: Final[tuple[tuple[Callable[..., Any], str], ...]] = (
    (
        print_events,
        "i8(u1[::1], i8[::1], UniTuple(u1[::1], 7), i8[:, ::1], i8[::1])",
    ),
)
