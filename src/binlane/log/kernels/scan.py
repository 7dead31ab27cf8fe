"""Cutting a buffer into events: checked as the codec checks them, rows events noted by group.

`scan` does what `Walker`, `GroupTracker` and `TableMaps` do together, for the types that fill a
log; for any other it stops and asks. Of a group only the events are noted whose class says so, and
of the log only groups that are complete.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.layout import (
    ASK,
    BASE,
    BEGINS,
    CHECKED,
    CHECKSUM_LENGTH,
    CONTEXT,
    CONTROL,
    CRC32,
    DAMAGED,
    ENDS,
    ENDS_GROUP,
    ENDS_XA,
    EVENT_BITMAP,
    EVENT_END,
    EVENT_IMAGES,
    EVENT_MAP,
    EVENT_OFFSET,
    EVENT_TIME,
    EVENT_TYPE,
    EVENTS,
    FIRST_EVENT,
    GROUP_END,
    GROUP_FIRST,
    GROUP_GTID_LENGTH,
    GROUP_MICROS,
    GROUP_POSITION,
    GROUP_START,
    GROUP_STOP,
    GROUP_TIME,
    GROUPS,
    GTID_LENGTH,
    GTID_MICROS,
    HAS_AFTER,
    HAS_EXTRA,
    ID,
    ID_MAP,
    ID_STATEMENT,
    IS_ANY,
    IS_FORMAT,
    IS_GTID,
    IS_INNER,
    IS_MYSQL_GTID,
    IS_NOTED,
    IS_OPEN,
    IS_PAYLOAD,
    IS_QUERY,
    IS_ROWS,
    IS_STRICT,
    IS_TABLE_MAP,
    IS_TAGGED_GTID,
    IS_TRANSACTION,
    IS_VARIABLE,
    IS_XA_PREPARE,
    IS_XID,
    KEEPS,
    LENGTH_MAX,
    MAP_COLUMNS,
    MAP_LENGTH,
    MAP_START,
    MORE,
    NO_ID,
    OFFSET,
    SEEN,
    STANDS_ALONE,
    STARTS_GROUP,
    STATEMENT,
    STATES,
    TOLD,
    VERDICT,
)
from binlane.log.kernels.memory import (
    Bytes,
    crc32,
    is_equal,
    load_u16,
    load_u32,
    load_u48,
    prefetch,
)
from binlane.log.kernels.scan_gtids import check_gtid, check_mysql_gtid, check_tagged_gtid
from binlane.log.kernels.text_shapes import is_variable

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_HEADER: Final = 19
_LINE: Final = 64
_AHEAD: Final = 2048
_ID: Final = 6
_POSITION_MASK: Final = 0xFFFFFFFF
_FOREIGN_POSITION: Final = 0x60
_RELAY_LOG: Final = 0x40
_STATEMENT_END: Final = 1
_DUMMY_ID: Final = 0xFFFFFF
DUMMY_TABLE: Final = -1
UNKNOWN_TABLE: Final = -2
_PREPARE_LENGTH: Final = 13
_PAYLOAD_SIZE: Final = 1
_COMPRESSION: Final = 2
_ZSTD: Final = 0
_UNCOMPRESSED: Final = 255


@register_jitable(inline="always")
def find_id(ids: Numbers, table_id: int) -> int:
    """Return an id's place in the table of ids, or the one for it; the table's size is a power of two."""
    mask = int(ids.shape[1]) - 1
    at = ((table_id * 0x9E3779B1) >> 8) & mask
    while ids[ID, at] != NO_ID and ids[ID, at] != table_id:
        at = (at + 1) & mask
    return at


@register_jitable(inline="always")
def _starts_with(data: Bytes, at: int, first: int, second: int, length: int) -> bool:
    """True if the bytes begin with a text of up to 8 bytes, given as two halves."""
    if length <= 4:
        return load_u32(data, at) == first
    mask = (1 << (8 * (length - 4))) - 1
    return load_u32(data, at) == first and (load_u32(data, at + 4) & mask) == second


@register_jitable(inline="always")
def _query(data: Bytes, body: int, end: int) -> int:
    """Check a QUERY event; its verdict, or 0 if it is not for this kernel."""
    if end - body < 14:
        return 0
    at = body + 13 + load_u16(data, body + 11) + int(data[body + 8])
    if at >= end or data[at] != 0:
        return 0
    at += 1
    length = end - at
    if length == 5 and _starts_with(data, at, 0x49474542, 0x4E, 5):
        return CHECKED | BEGINS
    if length == 6 and _starts_with(data, at, 0x4D4D4F43, 0x5449, 6):
        return CHECKED | ENDS
    if length == 8 and _starts_with(data, at, 0x4C4C4F52, 0x4B434142, 8):
        return CHECKED | ENDS | STATES
    if length >= 8 and _starts_with(data, at, 0x53204158, 0x54524154, 8):
        return CHECKED | BEGINS
    if length >= 8 and _starts_with(data, at, 0x42204158, 0x4E494745, 8):
        return CHECKED | BEGINS
    if length >= 8 and _starts_with(data, at, 0x45564153, 0x4E494F50, 8):
        return CHECKED  # SAVEPOINT
    if length >= 4 and load_u32(data, at) == 0x45204158:
        return CHECKED  # XA END
    if length >= 4 and (load_u32(data, at) == 0x43204158 or load_u32(data, at) == 0x52204158):
        return CHECKED | ENDS_XA  # XA COMMIT, XA ROLLBACK
    return CHECKED | STATES


@register_jitable
def _payload(data: Bytes, body: int, end: int) -> int:
    """Check the head of a TRANSACTION_PAYLOAD; 0 if it is not one as servers write it."""
    at, seen, size, compression = body, 0, -1, -1
    while at + 2 < end and data[at]:
        number, length, first = int(data[at]), int(data[at + 1]), int(data[at + 2])
        stop = at + 2 + length
        is_packed = (
            (length == 1 and first < 0xFB)
            or (length == 3 and first == 0xFC)
            or (length == 4 and first == 0xFD)
        )
        if number > 3 or seen >> number & 1 or not is_packed or stop >= end:
            return 0
        value = first
        if length > 1:
            value = load_u32(data, at + 3) & ((1 << (8 * (length - 1))) - 1)
        if number == _PAYLOAD_SIZE:
            size = value
        elif number == _COMPRESSION:
            compression = value
        seen |= 1 << number
        at = stop
    has_all = seen == 0b1110 or (seen == 0b0110 and compression == _UNCOMPRESSED)
    if not has_all or data[at] or size != end - at - 1:
        return 0
    return CHECKED if compression in (_ZSTD, _UNCOMPRESSED) else 0


@register_jitable(inline="always")
def _xa_prepare(data: Bytes, body: int, end: int) -> int:
    """Check an XA_PREPARE_LOG; 0 if its lengths are wrong."""
    if end - body < _PREPARE_LENGTH:
        return 0
    rest = end - body - _PREPARE_LENGTH
    is_whole_id = load_u32(data, body + 5) + load_u32(data, body + 9) == rest
    return CHECKED | ENDS_XA if is_whole_id else 0


@register_jitable(inline="always")
def _table_map(
    data: Bytes, body: int, end: int, state: Numbers, ids: Numbers, maps: Numbers, known: Bytes
) -> int:
    """Remember which table an id means; 0 if its map is not known byte by byte."""
    names = body + _ID + 2
    if names > end:
        return 0
    table_id = load_u48(data, body)
    at = find_id(ids, table_id)
    if ids[ID, at] == NO_ID:
        return 0
    number = ids[ID_MAP, at]
    length = maps[MAP_LENGTH, number]
    if length != end - names or not is_equal(data, names, known, maps[MAP_START, number], length):
        return 0
    ids[ID_STATEMENT, at] = state[STATEMENT]
    return 1


@register_jitable(inline="always")
def rows_table(data: Bytes, body: int, state: Numbers, ids: Numbers) -> int:
    """Return the number of a rows event's table map; negative if there is none."""
    table_id = load_u48(data, body)
    at = find_id(ids, table_id)
    if ids[ID, at] == table_id and ids[ID_STATEMENT, at] == state[STATEMENT]:
        return int(ids[ID_MAP, at])
    return DUMMY_TABLE if table_id == _DUMMY_ID else UNKNOWN_TABLE


@register_jitable(inline="always")
def bitmap_of_rows(data: Bytes, body: int, end: int, kind: int, columns: int) -> int:
    """Return the start of the bitmap of a rows event's columns; -1 if the event is damaged.

    Args:
        data: The buffer of the events.
        body: The place of the event's table id.
        end: The end of the event's images.
        kind: The class of the event.
        columns: The number of its table's columns, -1 if that is not known.
    """
    at = body + _ID + 2
    if kind & HAS_EXTRA:
        if at + 2 > end or load_u16(data, at) < 2:
            return -1
        at += load_u16(data, at)
    if at >= end:
        return -1
    count = int(data[at])
    at += 1
    if count >= 0xFC:
        if count != 0xFC or at + 2 > end:
            return -1
        count = load_u16(data, at)
        at += 2
    if columns >= 0 and count != columns:
        return -1
    bitmaps = (count + 7) // 8 * (2 if kind & HAS_AFTER else 1)
    return at if at + bitmaps <= end else -1


@register_jitable(inline="always")
def is_whole(data: Bytes, at: int, length: int, kind: int, state: Numbers) -> bool:
    """True if checksum and end position of an event are right; a format's checksum is special."""
    if state[CHECKSUM_LENGTH] and state[CRC32] and kind & IS_FORMAT == 0:
        end = at + length - 4
        if crc32(state[CRC32], data, at, length - 4) != load_u32(data, end):
            return False
    told = load_u32(data, at + 13)
    if told == 0 or state[IS_INNER] or load_u16(data, at + 17) & _FOREIGN_POSITION:
        return True
    return bool(told == (state[BASE] + at + length) & _POSITION_MASK)


@register_jitable(inline="always")
def verdict_of(
    data: Bytes,
    at: int,
    end: int,
    kind: int,
    state: Numbers,
    ids: Numbers,
    maps: Numbers,
    known: Bytes,
    texts: Bytes,
) -> int:
    """Return a verdict with the facts of one event; 0 if it is not for this kernel."""
    body = at + _HEADER
    if kind & IS_TABLE_MAP:
        return _table_map(data, body, end, state, ids, maps, known)
    if kind & IS_ROWS:
        return CHECKED if end - body >= _ID + 2 else 0
    if kind & IS_GTID:
        return check_gtid(data, at, end, kind, state, texts)
    if kind & IS_MYSQL_GTID:
        return check_mysql_gtid(data, at, end, kind, state, texts)
    if kind & IS_TAGGED_GTID:
        return check_tagged_gtid(data, at, end, state, texts)
    if kind & IS_QUERY:
        return _query(data, body, end)
    if kind & IS_XID:
        return CHECKED if end - body == 8 else 0
    if kind & IS_PAYLOAD:
        return _payload(data, body, end)
    if kind & IS_XA_PREPARE:
        return _xa_prepare(data, body, end)
    if kind & IS_VARIABLE:
        return CHECKED if is_variable(data, int(data[at + 4]), body, end) else 0
    return CHECKED if kind & IS_ANY else 0


@register_jitable(inline="always")
def _take_rows(
    data: Bytes,
    at: int,
    end: int,
    kind: int,
    state: Numbers,
    ids: Numbers,
    maps: Numbers,
    events: Small,
) -> int:
    """Note a rows event; 1 if it ends its statement, 0 if not, -1 if it is damaged."""
    body = at + _HEADER
    number = rows_table(data, body, state, ids)
    if number == UNKNOWN_TABLE:
        return -1
    columns = maps[MAP_COLUMNS, number] if number >= 0 else -1
    bitmap = bitmap_of_rows(data, body, end, kind, columns)
    if bitmap < 0:
        return -1
    if number >= 0 or kind & IS_NOTED:
        noted = state[EVENTS]
        bitmaps = (columns + 7) // 8 * (2 if kind & HAS_AFTER else 1)
        _note(data, at, end, state, events)
        events[EVENT_MAP, noted] = number
        events[EVENT_BITMAP, noted] = bitmap
        events[EVENT_IMAGES, noted] = bitmap + bitmaps
    if load_u16(data, body + _ID) & _STATEMENT_END:
        state[STATEMENT] += 1
        return 1
    return 0


@register_jitable(inline="always")
def _note(data: Bytes, at: int, end: int, state: Numbers, events: Small) -> None:
    """Note an event that carries rows."""
    noted = state[EVENTS]
    time = load_u32(data, at)
    events[EVENT_OFFSET, noted] = at
    events[EVENT_END, noted] = end
    events[EVENT_TYPE, noted] = data[at + 4]
    events[EVENT_TIME, noted] = time if time < 0x80000000 else time - 0x100000000
    events[EVENT_MAP, noted] = -1
    state[EVENTS] = noted + 1


@register_jitable(inline="always")
def _close_group(data: Bytes, at: int, length: int, state: Numbers, groups: Numbers) -> None:
    number = state[GROUPS]
    groups[GROUP_FIRST, number] = state[FIRST_EVENT]
    groups[GROUP_END, number] = state[EVENTS]
    groups[GROUP_TIME, number] = load_u32(data, at)
    groups[GROUP_START, number] = state[GROUP_POSITION]
    groups[GROUP_STOP, number] = state[BASE] + at + length
    groups[GROUP_GTID_LENGTH, number] = state[GTID_LENGTH]
    groups[GROUP_MICROS, number] = state[GTID_MICROS]
    state[GROUPS] = number + 1
    state[FIRST_EVENT] = state[EVENTS]
    _forget_group(state)


@register_jitable(inline="always")
def _forget_group(state: Numbers) -> None:
    state[EVENTS] = state[FIRST_EVENT]
    state[IS_OPEN] = 0
    state[IS_TRANSACTION] = 0
    state[GTID_LENGTH] = 0
    state[GTID_MICROS] = 0


@register_jitable(inline="always")
def _is_unusual(data: Bytes, at: int, kind: int, state: Numbers) -> bool:
    """True if an event cuts off an open group, or shows that the log is a relay log."""
    cuts = state[IS_OPEN] and kind & (CONTROL | STARTS_GROUP)
    return bool(cuts or load_u16(data, at + 17) & _RELAY_LOG)


def scan(
    data: Bytes,
    end: int,
    classes: Small,
    state: Numbers,
    ids: Numbers,
    maps: Numbers,
    known: Bytes,
    events: Small,
    groups: Numbers,
    texts: Bytes,
) -> int:
    """Scan from `state[OFFSET]` to the last whole event in the buffer.

    Args:
        data: The buffer; `state[BASE]` is the position in the file of its first byte.
        end: The number of bytes in it.
        classes: The class of each of the 256 event types.
        state: The numbers that live between two calls.
        ids: Table ids with the table map that each means and the statement that said so.
        maps: The places of the table maps in `known`, and the numbers of their columns.
        known: The bytes of table maps behind id and flags.
        events: Receives the events that carry rows, of complete groups and of the open one.
        groups: The index that receives complete groups.
        texts: Receives each group's GTID, `GTID_TEXT_MAX` bytes each, the open one's last.

    Returns:
        MORE, ASK or DAMAGED.
    """
    events_max, groups_max = events.shape[1], groups.shape[1] - 1
    while True:
        at = state[OFFSET]
        if at + _HEADER > end or state[EVENTS] >= events_max or state[GROUPS] >= groups_max:
            return MORE
        length = load_u32(data, at + 9)
        if length < _HEADER + state[CHECKSUM_LENGTH] or length > state[LENGTH_MAX]:
            return DAMAGED
        if at + length > end:
            return MORE
        for line in range(at + _AHEAD, at + _AHEAD + min(length, _AHEAD), _LINE):
            prefetch(data, line)
        kind = int(classes[data[at + 4]])
        stop = at + length - state[CHECKSUM_LENGTH]
        verdict = state[VERDICT]
        state[VERDICT] = 0
        if verdict == 0:
            if not is_whole(data, at, length, kind, state):
                return DAMAGED
            if state[IS_STRICT] and _is_unusual(data, at, kind, state):
                return DAMAGED
            if kind & (CONTROL | STARTS_GROUP):
                _forget_group(state)  # what is still open was rolled back
            verdict = verdict_of(data, at, stop, kind, state, ids, maps, known, texts)
            if verdict == 0:
                return ASK
        stands_alone = state[IS_OPEN] == 0 and kind & STANDS_ALONE
        is_noted = kind & IS_NOTED or verdict & state[TOLD]
        if kind & CONTROL or (stands_alone and not is_noted):
            state[OFFSET] = at + length
            state[SEEN] += 1
            continue
        if state[IS_OPEN] == 0:
            state[IS_OPEN] = 1
            state[GROUP_POSITION] = state[BASE] + at
            if kind & IS_TABLE_MAP == 0:
                state[STATEMENT] += 1
        if verdict & BEGINS:
            state[IS_TRANSACTION] = 1
        ends_statement = 1
        if kind & IS_ROWS:
            ends_statement = _take_rows(data, at, stop, kind, state, ids, maps, events)
            if ends_statement < 0:
                return DAMAGED
        elif is_noted:
            _note(data, at, stop, state, events)
            if kind & IS_TABLE_MAP:
                slot = find_id(ids, load_u48(data, at + _HEADER))
                events[EVENT_MAP, state[EVENTS] - 1] = ids[ID_MAP, slot]
        state[OFFSET] = at + length
        state[SEEN] += 1
        ends = kind & ENDS_GROUP or verdict & ENDS or stands_alone
        keeps = kind & (STARTS_GROUP | CONTEXT) or verdict & KEEPS
        if not ends and not state[IS_TRANSACTION] and not keeps:
            ends = ends_statement
        if ends:
            state[STATEMENT] += 1
            _close_group(data, at, length, state, groups)


EXPORTS: Final = (
    (
        scan,
        (
            "int64(uint8[::1], int64, int32[::1], int64[::1], int64[:, ::1], int64[:, ::1], "
            "uint8[::1], int32[:, ::1], int64[:, ::1], uint8[::1])"
        ),
    ),
)
