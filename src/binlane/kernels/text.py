"""Events as the text of mariadb-binlog, a window of a file at a time.

`print_events` prints what fills a log: GTID, annotation, TABLE_MAP and rows, XID, and statements
whose context is that of the statement before. For any other event, and for what needs more than
bytes, it stops and says why; its caller does that and calls again. `text_layout` names the parts
of the state. The text of a statement's rows comes in parts that are printed one after the other:
the heads of its events, the events as base64, the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.kernels import text_head as words
from binlane.kernels import text_layout as lay
from binlane.kernels.memory import (
    copy_bytes,
    crc32,
    is_equal,
    load_i64,
    load_u16,
    load_u24,
    load_u32,
    load_u48,
)
from binlane.kernels.text_head import put_head, put_phrase, put_place
from binlane.kernels.text_memory import LANES, copy_lanes, first_bit
from binlane.kernels.text_numbers import put_number, put_padded, put_unsigned
from binlane.kernels.text_rows import FULL, put_image
from binlane.kernels.text_values import base64_size, put_base64

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

# The event is printed: go on with the next one.
_NEXT: Final = -1
_HEADER: Final = 19
_LINE_END: Final = 10
_CARRIAGE_RETURN: Final = 13
# Room for everything but statements, annotations, names and rows.
_EVENT_ROOM: Final = 1024

_QUERY, _INTVAR, _XID, _TABLE_MAP, _ANNOTATION, _GTID = 2, 5, 16, 19, 160, 162
_ROWS_FIRST, _COMPRESSED_FIRST = 23, 166
# Bits of the header: the position is of another log; the statement needs a context of its own.
_FOREIGN_POSITION: Final = 0x60
_POSITION_MASK: Final = 0xFFFFFFFF
_NO_PLAIN_QUERY: Final = 0x000C
_SKIPS_REPLICATION: Final = 0x8000
# Bits of a GTID.
_STANDALONE, _GROUP_COMMIT, _TRANSACTIONAL, _PARALLEL, _WAITED, _DDL = 1, 2, 4, 8, 16, 32
_HAS_XID: Final = 0xC0
_HAS_THREAD: Final = 0x10
# Status variables that stand behind the context: microseconds, and the XID of DDL.
_MICROSECONDS, _DDL_XID = 128, 129
_FIRST_EXACT_MICROSECOND: Final = 100_000
_STATEMENT_END: Final = 1
# A count of columns that takes two bytes begins with it.
_TWO_BYTES: Final = 252


def print_events(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    """Print the events of a window.

    Args:
        data: The window, padded by 64 bytes.
        state: Where to begin and everything else that lasts, by the names in `text_layout`.
        buffers: What is printed, and all texts, each padded by 64 bytes.
        tables: The tables that are known, by the hash of their ids.
        layouts: How to print their images.

    Returns:
        Why it stopped.
    """
    status = _NEXT
    while status == _NEXT:
        offset = state[lay.OFFSET]
        left = state[lay.END] - offset
        if left < _HEADER:
            return lay.DONE
        length = load_u32(data, offset + 9)
        if length < _HEADER + state[lay.CHECKSUM] or length > state[lay.LENGTH_MAX]:
            return lay.ASK_EVENT
        if length > left:
            return lay.DONE
        if state[lay.PHASE] == lay.START and not _is_sound(data, state, offset, length):
            return lay.ASK_EVENT
        time = load_u32(data, offset)
        if time < state[lay.CLOCK_FROM] or time >= state[lay.CLOCK_UNTIL]:
            state[lay.TIME] = time
            return lay.ASK_CLOCK
        status = _print_event(data, state, buffers, tables, layouts)
        if status == _NEXT:
            state[lay.OFFSET] = offset + length
    return status


@register_jitable(forceinline=True)
def _is_sound(data: Bytes, state: Longs, offset: int, length: int) -> bool:
    """Whether checksum and end position are right; without a format nothing is."""
    if state[lay.CHECKSUM] < 0:
        return False
    if state[lay.CHECKSUM]:
        size = length - 4
        if crc32(state[lay.CRC32], data, offset, size) != load_u32(data, offset + size):
            return False
    position = load_u32(data, offset + 13)
    if position == 0 or load_u16(data, offset + 17) & _FOREIGN_POSITION:
        return True
    return bool(position == (state[lay.BASE] + offset + length) & _POSITION_MASK)


@register_jitable(forceinline=True)
def _print_event(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    kind = data[state[lay.OFFSET] + 4]
    if _ROWS_FIRST <= kind <= _ROWS_FIRST + 2 or _COMPRESSED_FIRST <= kind <= _COMPRESSED_FIRST + 2:
        return _print_rows(data, state, buffers, tables, layouts)
    need = _EVENT_ROOM + state[lay.HEADS_AT]
    if kind == _TABLE_MAP:
        need += state[lay.NOTE_AT]
    elif kind == _QUERY:
        need += load_u32(data, state[lay.OFFSET] + 9)
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
        return _print_table(data, state, buffers, tables)
    if kind == _ANNOTATION:
        return _keep_note(data, state, buffers)
    # Rows that nothing has ended are printed before any event that is none of their statement.
    pending = state[lay.HEADS_AT] + state[lay.ENCODED_AT] + state[lay.ROWS_AT] + state[lay.SPILLED]
    if pending or state[lay.SKIPS_REPLICATION]:
        return lay.ASK_EVENT
    if load_u16(data, state[lay.OFFSET] + 17) & _SKIPS_REPLICATION:
        return lay.ASK_EVENT
    if kind == _GTID:
        return _print_gtid(data, state, buffers)
    if kind == _XID:
        return _print_xid(data, state, buffers)
    if kind == _QUERY:
        return _print_query(data, state, buffers)
    if kind == _INTVAR:
        return _print_intvar(data, state, buffers)
    return lay.ASK_EVENT


@register_jitable(forceinline=True)
def _begin(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """The event's place and head."""
    out = buffers[lay.OUT]
    at = put_place(out, state[lay.OUT_AT], state[lay.BASE] + state[lay.OFFSET], state)
    return put_head(out, at, data, state, buffers[lay.TEXTS])


@register_jitable(forceinline=True)
def _body_end(data: Bytes, state: Longs) -> int:
    """Where the event at OFFSET ends, but for its checksum."""
    offset = state[lay.OFFSET]
    return int(offset + load_u32(data, offset + 9) - state[lay.CHECKSUM])


@register_jitable(forceinline=True)
def _print_gtid(data: Bytes, state: Longs, buffers: Buffers) -> int:
    body, end = state[lay.OFFSET] + _HEADER, _body_end(data, state)
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
    at = _begin(data, state, buffers)
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
    return _NEXT


@register_jitable(forceinline=True)
def _print_xid(data: Bytes, state: Longs, buffers: Buffers) -> int:
    body = state[lay.OFFSET] + _HEADER
    if _body_end(data, state) - body != 8:
        return lay.ASK_EVENT
    at = _begin(data, state, buffers)
    out = buffers[lay.OUT]
    at = put_unsigned(out, put_phrase(out, at, words.XID), load_i64(data, body))
    state[lay.OUT_AT] = put_phrase(out, at, words.COMMIT)
    return _NEXT


@register_jitable(forceinline=True)
def _print_intvar(data: Bytes, state: Longs, buffers: Buffers) -> int:
    body = state[lay.OFFSET] + _HEADER
    if _body_end(data, state) - body != 9:
        return lay.ASK_EVENT
    kind, value = int(data[body]), load_i64(data, body + 1)
    if value < 0 or not 1 <= kind <= 2:
        return lay.ASK_EVENT
    at = _begin(data, state, buffers)
    out = buffers[lay.OUT]
    at = put_phrase(out, at, words.SET_LAST_INSERT_ID if kind == 1 else words.SET_INSERT_ID)
    state[lay.OUT_AT] = put_phrase(out, put_number(out, at, value), words.DELIMITER)
    return _NEXT


@register_jitable(forceinline=True)
def _print_query(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """A statement, if it needs no SET but that of the time."""
    offset, end = state[lay.OFFSET], _body_end(data, state)
    body = offset + _HEADER
    flags = load_u16(data, offset + 17)
    if end - body < 14 or flags & _NO_PLAIN_QUERY or not state[lay.KNOWS_QUERY]:
        return lay.ASK_EVENT
    variables = body + 13
    database = variables + load_u16(data, body + 11)
    statement = database + int(data[body + 8]) + 1
    if statement > end:
        return lay.ASK_EVENT
    micros, xid = _query_context(data, state, buffers, variables, database)
    if micros < 0:
        return lay.ASK_EVENT
    at = _begin(data, state, buffers)
    out = buffers[lay.OUT]
    at = put_number(out, put_phrase(out, at, words.QUERY), load_u32(data, body))
    at = put_number(out, put_phrase(out, at, words.EXECUTION_TIME), load_u32(data, body + 4))
    at = put_number(out, put_phrase(out, at, words.ERROR_CODE), load_u16(data, body + 9))
    at = put_unsigned(out, put_phrase(out, at, words.QUERY_XID), xid)
    at = put_number(out, put_phrase(out, at, words.SET_TIMESTAMP), load_u32(data, offset))
    if micros:
        out[at] = 46
        at = put_padded(out, at + 1, micros, 6)
    at = put_phrase(out, at, words.DELIMITER)
    copy_bytes(out, at, data, statement, end - statement)
    state[lay.OUT_AT] = put_phrase(out, at + end - statement, words.END_OF_QUERY)
    return _NEXT


@register_jitable(forceinline=True)
def _query_context(
    data: Bytes, state: Longs, buffers: Buffers, variables: int, database: int
) -> tuple[int, int]:
    """Microseconds and XID of a statement; -1 for the former if its context is another one."""
    texts = buffers[lay.TEXTS]
    known = state[lay.QUERY_VARIABLES_LENGTH]
    size = state[lay.QUERY_DATABASE_LENGTH]
    if (
        known > database - variables
        or not is_equal(data, variables, texts, state[lay.QUERY_VARIABLES], known)
        or int(data[variables - 5]) != size
        or not is_equal(data, database, texts, state[lay.QUERY_DATABASE], size)
    ):
        return -1, 0
    micros, xid = 0, 0
    at = variables + known
    while at < database:
        kind = int(data[at])
        if kind == _MICROSECONDS and at + 4 <= database:
            micros = load_u24(data, at + 1)
            if not _FIRST_EXACT_MICROSECOND <= micros < 1_000_000:
                return -1, 0
            at += 4
        elif kind == _DDL_XID and at + 9 <= database:
            xid = load_i64(data, at + 1)
            at += 9
        else:
            return -1, 0
    return micros, xid


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
            if data[stop] == _LINE_END or data[stop] == _CARRIAGE_RETURN:
                return stop
            mask &= mask - 1
        done += LANES
    return end


@register_jitable(forceinline=True)
def _keep_note(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Keep an annotation: it is printed with the TABLE_MAP that follows."""
    offset, end = state[lay.OFFSET], _body_end(data, state)
    state[lay.OUT_AT] = put_place(
        buffers[lay.OUT], state[lay.OUT_AT], state[lay.BASE] + offset, state
    )
    if state[lay.SKIPS_NOTES]:
        return _NEXT
    note = buffers[lay.NOTE]
    at = put_phrase(note, put_head(note, 0, data, state, buffers[lay.TEXTS]), words.ANNOTATION)
    begin = offset + _HEADER
    while begin < end:
        while begin < end and (data[begin] == _LINE_END or data[begin] == _CARRIAGE_RETURN):
            begin += 1
        if begin < end:
            at = put_phrase(note, at, words.ANNOTATION_LINE)
            stop = _copy_line(note, at, data, begin, end)
            at += stop - begin
            note[at] = _LINE_END
            at += 1
            begin = stop
    state[lay.NOTE_AT] = at
    return _NEXT


@register_jitable(forceinline=True)
def find_table(tables: Longs, table_id: int) -> int:
    """Where a table stands in the array of tables, or would; its length is a power of two."""
    mask = tables.shape[0] - 1
    at = ((table_id * 0x9E3779B1) >> 8) & mask
    while tables[at, lay.TABLE_ID] != lay.NO_TABLE and tables[at, lay.TABLE_ID] != table_id:
        at = (at + 1) & mask
    return int(at)


@register_jitable(forceinline=True)
def _print_table(data: Bytes, state: Longs, buffers: Buffers, tables: Longs) -> int:
    offset, end = state[lay.OFFSET], _body_end(data, state)
    body = offset + _HEADER
    if end - body < 6:
        return lay.ASK_EVENT
    table_id = load_u48(data, body)
    slot = find_table(tables, table_id)
    size = end - body - 6
    texts = buffers[lay.TEXTS]
    if (
        tables[slot, lay.TABLE_ID] != table_id
        or tables[slot, lay.TABLE_BODY_LENGTH] != size
        or not is_equal(data, body + 6, texts, tables[slot, lay.TABLE_BODY], size)
    ):
        state[lay.TABLE] = slot
        return lay.ASK_TABLE
    if not _encode(data, offset, state, buffers):
        return lay.ENCODED_FULL
    tables[slot, lay.TABLE_STATEMENT] = state[lay.STATEMENT]
    out = buffers[lay.OUT]
    at = put_place(out, state[lay.OUT_AT], state[lay.BASE] + offset, state)
    copy_bytes(out, at, buffers[lay.HEADS], 0, state[lay.HEADS_AT])
    at += state[lay.HEADS_AT]
    copy_bytes(out, at, buffers[lay.NOTE], 0, state[lay.NOTE_AT])
    at = put_head(out, at + state[lay.NOTE_AT], data, state, buffers[lay.TEXTS])
    state[lay.HEADS_AT] = 0
    state[lay.NOTE_AT] = 0
    length = tables[slot, lay.TABLE_NAME_LENGTH]
    copy_bytes(out, at, texts, tables[slot, lay.TABLE_NAME], length)
    state[lay.OUT_AT] = at + length
    return _NEXT


@register_jitable(forceinline=True)
def _encode(data: Bytes, offset: int, state: Longs, buffers: Buffers) -> bool:
    """Add an event to the statement's base64, if that is printed; False if it has no room."""
    if not state[lay.ENCODES]:
        return True
    length = load_u32(data, offset + 9)
    encoded = buffers[lay.ENCODED]
    need = base64_size(length) + lay.PADDING
    if state[lay.ENCODED_AT] + need > encoded.shape[0]:
        state[lay.NEED] = need
        return False
    state[lay.ENCODED_AT] = put_base64(encoded, state[lay.ENCODED_AT], data, offset, length)
    return True


@register_jitable(forceinline=True)
def _print_rows(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    """A rows event, in phases, so that it can go on after a stop."""
    offset = state[lay.OFFSET]
    is_compressed = data[offset + 4] >= _COMPRESSED_FIRST
    body, end = offset + _HEADER, _body_end(data, state)
    if state[lay.PHASE] == lay.START:
        if end - body < 8 or not _is_mapped(data, state, tables, body):
            return lay.ASK_EVENT
        if is_compressed and not state[lay.INFLATED]:
            return lay.ASK_IMAGES
        status = _head_rows(data, state, buffers)
        if status != _NEXT:
            return status
        state[lay.PHASE] = lay.ENCODE
    source, at = data, offset
    if is_compressed:
        source, at = buffers[lay.PLAIN], 0
        end = load_u32(source, 9) - state[lay.CHECKSUM]
    if state[lay.PHASE] == lay.ENCODE:
        if not _encode(source, at, state, buffers):
            return lay.ENCODED_FULL
        state[lay.PHASE] = lay.PRINT
        state[lay.ROW_OFFSET] = 0
        state[lay.EVENT_ROWS] = 0
        state[lay.EVENT_KEPT] = 0
        state[lay.EVENT_TEXT] = state[lay.ROWS_AT]
    if state[lay.PHASE] == lay.PRINT:
        state[lay.TABLE] = find_table(tables, load_u48(data, body))
        state[lay.IMAGES_AT] = at
        state[lay.IMAGES_END] = end
        status = _find_images(source, state, buffers, tables, layouts)
        if status != _NEXT:
            return status
        status = _print_images(source, state, buffers, layouts)
        if status != _NEXT:
            return status
    state[lay.PHASE] = lay.START
    state[lay.INFLATED] = 0
    if load_u16(data, body + 6) & _STATEMENT_END:
        return _end_statement(data, state, buffers)
    return _NEXT


@register_jitable(forceinline=True)
def _is_mapped(data: Bytes, state: Longs, tables: Longs, body: int) -> bool:
    slot = find_table(tables, load_u48(data, body))
    return bool(
        tables[slot, lay.TABLE_ID] != lay.NO_TABLE
        and tables[slot, lay.TABLE_STATEMENT] == state[lay.STATEMENT]
    )


@register_jitable(forceinline=True)
def _head_rows(data: Bytes, state: Longs, buffers: Buffers) -> int:
    offset = state[lay.OFFSET]
    out, heads = buffers[lay.OUT], buffers[lay.HEADS]
    if state[lay.OUT_AT] + _EVENT_ROOM > out.shape[0]:
        state[lay.NEED] = _EVENT_ROOM
        return lay.OUT_FULL
    if state[lay.HEADS_AT] + _EVENT_ROOM > heads.shape[0]:
        state[lay.NEED] = _EVENT_ROOM
        return lay.HEADS_FULL
    state[lay.OUT_AT] = put_place(out, state[lay.OUT_AT], state[lay.BASE] + offset, state)
    at = put_head(heads, state[lay.HEADS_AT], data, state, buffers[lay.TEXTS])
    kind = int(data[offset + 4])
    if kind >= _COMPRESSED_FIRST:
        at = put_phrase(heads, at, words.COMPRESSED_NAMES[kind - _COMPRESSED_FIRST])
    else:
        at = put_phrase(heads, at, words.ROWS_NAMES[kind - _ROWS_FIRST])
    at = put_number(heads, put_phrase(heads, at, words.TABLE_ID), load_u48(data, offset + _HEADER))
    if load_u16(data, offset + _HEADER + 6) & _STATEMENT_END:
        at = put_phrase(heads, at, words.ENDS_STATEMENT)
    heads[at] = _LINE_END
    state[lay.HEADS_AT] = at + 1
    return _NEXT


@register_jitable(forceinline=True)
def _find_images(
    source: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs
) -> int:
    """Where an event's images begin and which layouts they have; IMAGES_AT is the event."""
    event, slot = state[lay.IMAGES_AT], state[lay.TABLE]
    columns, at = _column_count(source, event + _HEADER + 8)
    if columns != tables[slot, lay.TABLE_COLUMNS]:
        return lay.ASK_ROWS
    if not state[lay.VERBOSE] and not state[lay.COUNTS_ROWS]:
        state[lay.IMAGES_AT] = state[lay.IMAGES_END]
        return _NEXT
    size = (columns + 7) // 8
    kind = int(source[event + 4]) - _ROWS_FIRST
    state[lay.IMAGES_AT] = at + (2 * size if kind == 1 else size)
    if state[lay.IMAGES_AT] >= state[lay.IMAGES_END]:
        return lay.ASK_ROWS
    state[lay.KIND] = lay.INSERTED if kind == 0 else (lay.BEFORE if kind == 1 else lay.DELETED)
    state[lay.REQUEST] = at
    state[lay.SECOND_LAYOUT] = lay.NO_LAYOUT
    table = tables[slot, lay.TABLE_LAYOUT]
    state[lay.FIRST_LAYOUT] = _find_layout(source, state, buffers, layouts, table)
    if kind == 1 and state[lay.FIRST_LAYOUT] != lay.NO_LAYOUT:
        state[lay.KIND] = lay.AFTER
        state[lay.REQUEST] = at + size
        state[lay.SECOND_LAYOUT] = _find_layout(source, state, buffers, layouts, table)
        if state[lay.SECOND_LAYOUT] == lay.NO_LAYOUT:
            return lay.ASK_LAYOUT
        if not layouts[state[lay.SECOND_LAYOUT] + lay.IS_COVERED]:
            return lay.ASK_ROWS
    if state[lay.FIRST_LAYOUT] == lay.NO_LAYOUT:
        return lay.ASK_LAYOUT
    return _NEXT if layouts[state[lay.FIRST_LAYOUT] + lay.IS_COVERED] else lay.ASK_ROWS


@register_jitable(forceinline=True)
def _column_count(source: Bytes, at: int) -> tuple[int, int]:
    """A rows event's count of columns, -1 if it has more than 65535, and where it ends."""
    columns = int(source[at])
    if columns < _TWO_BYTES - 1:
        return columns, at + 1
    return (load_u16(source, at + 1) if columns == _TWO_BYTES else -1), at + 3


@register_jitable(forceinline=True)
def _find_layout(source: Bytes, state: Longs, buffers: Buffers, layouts: Longs, layout: int) -> int:
    """The layout for images of KIND with the bitmap at REQUEST, among those of a table."""
    while layout != lay.NO_LAYOUT:
        if layouts[layout + lay.LAYOUT_KIND] == state[lay.KIND] and is_equal(
            source,
            state[lay.REQUEST],
            buffers[lay.TEXTS],
            layouts[layout + lay.BITMAP],
            layouts[layout + lay.BITMAP_LENGTH],
        ):
            break
        layout = layouts[layout + lay.NEXT]
    return layout


@register_jitable(forceinline=True)
def _print_images(source: Bytes, state: Longs, buffers: Buffers, layouts: Longs) -> int:
    """An event's rows from ROW_OFFSET on."""
    rows, texts = buffers[lay.ROWS], buffers[lay.TEXTS]
    images, end = state[lay.IMAGES_AT], state[lay.IMAGES_END]
    first, second = state[lay.FIRST_LAYOUT], state[lay.SECOND_LAYOUT]
    begin = images + state[lay.ROW_OFFSET]
    while begin < end:
        # Without `-v` the rows are only counted.
        start = state[lay.ROWS_AT] if state[lay.VERBOSE] else 0
        at, position = put_image(rows, start, source, begin, state, texts, layouts, first)
        if at >= 0 and second != lay.NO_LAYOUT:
            at, position = put_image(rows, at, source, position, state, texts, layouts, second)
        if at == FULL:
            state[lay.ROW_OFFSET] = begin - images
            # If even one row has no room, more than there is.
            state[lay.NEED] = 1 if start else rows.shape[0] + 1
            return lay.ROWS_FULL
        if at < 0:
            state[lay.ROWS_AT] = state[lay.EVENT_TEXT]
            state[lay.ROW_COUNT] -= state[lay.EVENT_ROWS] - state[lay.EVENT_KEPT]
            return lay.ASK_ROWS
        if state[lay.VERBOSE]:
            state[lay.ROWS_AT] = at
        state[lay.ROW_COUNT] += 1
        state[lay.EVENT_ROWS] += 1
        begin = position
    return _NEXT


@register_jitable(forceinline=True)
def _end_statement(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Print what a statement's rows events have left, unless its caller has to."""
    state[lay.NOTE_AT] = 0
    state[lay.STATEMENT] += 1
    out = buffers[lay.OUT]
    at = state[lay.OUT_AT]
    size = state[lay.HEADS_AT] + state[lay.ENCODED_AT] + state[lay.ROWS_AT]
    if state[lay.SPILLED] or at + size + _EVENT_ROOM > out.shape[0]:
        state[lay.OFFSET] += load_u32(data, state[lay.OFFSET] + 9)
        return lay.STATEMENT_END
    copy_bytes(out, at, buffers[lay.HEADS], 0, state[lay.HEADS_AT])
    at += state[lay.HEADS_AT]
    if state[lay.ENCODED_AT]:
        at = put_phrase(out, at, words.BINLOG)
        copy_bytes(out, at, buffers[lay.ENCODED], 0, state[lay.ENCODED_AT])
        at = put_phrase(out, at + state[lay.ENCODED_AT], words.END_OF_BINLOG)
    copy_bytes(out, at, buffers[lay.ROWS], 0, state[lay.ROWS_AT])
    at += state[lay.ROWS_AT]
    if state[lay.COUNTS_ROWS] and state[lay.ROW_COUNT]:
        at = put_number(out, put_phrase(out, at, words.ROW_COUNT), state[lay.ROW_COUNT])
        out[at] = _LINE_END
        at += 1
    state[lay.OUT_AT] = at
    state[lay.HEADS_AT] = 0
    state[lay.ENCODED_AT] = 0
    state[lay.ROWS_AT] = 0
    state[lay.ROW_COUNT] = 0
    return _NEXT


EXPORTS: Final[tuple[tuple[Callable[..., Any], str], ...]] = (
    (
        print_events,
        "i8(u1[::1], i8[::1], UniTuple(u1[::1], 7), i8[:, ::1], i8[::1])",
    ),
)
