"""Tables and their rows: the changes of a statement of row format."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_head as words
from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import copy_bytes, is_equal, load_u16, load_u32, load_u48
from binlane.log.kernels.text_head import (
    HEADER,
    LINE_END,
    PRINTED,
    body_end,
    put_head,
    put_phrase,
    put_place,
    seal,
    unseal,
)
from binlane.log.kernels.text_numbers import put_number
from binlane.log.kernels.text_rows import FULL, put_image
from binlane.log.kernels.text_values import base64_size, put_base64

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

_ROWS_FIRST, _V2_FIRST, _PARTIAL_UPDATE, _COMPRESSED_FIRST = 23, 30, 39, 166
# Room for everything but names, base64 and rows.
_EVENT_ROOM: Final = 1024
_EXTRA_ROOM: Final = 256
_STATEMENT_END: Final = 1
_KNOWN_FLAGS: Final = 0x1F
_PARTITION: Final = 1
# A count of columns that takes two bytes begins with it.
_TWO_BYTES: Final = 252
# MySQL tells generated primary keys since this version; what has this number has none.
_TELLS_FACTS: Final = 80_030
_UNKNOWN_VERSION: Final = 999_999


@register_jitable(forceinline=True)
def find_table(tables: Longs, table_id: int) -> int:
    """Return a table's place in the array of tables, or the one for it; its length is a power of two."""
    mask = tables.shape[0] - 1
    at = ((table_id * 0x9E3779B1) >> 8) & mask
    while tables[at, lay.TABLE_ID] != lay.NO_TABLE and tables[at, lay.TABLE_ID] != table_id:
        at = (at + 1) & mask
    return int(at)


@register_jitable(forceinline=True)
def print_table(data: Bytes, state: Longs, buffers: Buffers, tables: Longs) -> int:
    """A TABLE_MAP that is known as it stands."""
    offset, end = state[lay.OFFSET], body_end(data, state)
    body = offset + HEADER
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
    if not encode(data, offset, state, buffers):
        return lay.ENCODED_FULL
    tables[slot, lay.TABLE_STATEMENT] = state[lay.STATEMENT]
    out = buffers[lay.OUT]
    at = put_place(out, state[lay.OUT_AT], state)
    copy_bytes(out, at, buffers[lay.HEADS], 0, state[lay.HEADS_AT])
    at += state[lay.HEADS_AT]
    state[lay.HEADS_AT] = 0
    if not state[lay.IS_MYSQL]:
        copy_bytes(out, at, buffers[lay.NOTE], 0, state[lay.NOTE_AT])
        at += state[lay.NOTE_AT]
        state[lay.NOTE_AT] = 0
    at = put_head(out, at, data, state, buffers[lay.TEXTS])
    length = tables[slot, lay.TABLE_NAME_LENGTH]
    if _TELLS_FACTS <= state[lay.SERVER_VERSION] < _UNKNOWN_VERSION:
        length = tables[slot, lay.TABLE_FACTS_LENGTH]
    copy_bytes(out, at, texts, tables[slot, lay.TABLE_NAME], length)
    state[lay.OUT_AT] = at + length
    return PRINTED


@register_jitable(forceinline=True)
def encode(data: Bytes, offset: int, state: Longs, buffers: Buffers) -> bool:
    """Add an event to the statement's base64, if that is printed; False if it has no room."""
    if not state[lay.ENCODES]:
        return True
    length = load_u32(data, offset + 9)
    encoded = buffers[lay.ENCODED]
    need = base64_size(length + 4) + lay.PADDING
    if state[lay.ENCODED_AT] + need > encoded.shape[0]:
        state[lay.NEED] = need
        return False
    at = state[lay.ENCODED_AT]
    if state[lay.INNER] and state[lay.SHOWS_CHECKSUM]:
        saved = seal(data, offset, state)
        at = put_base64(encoded, at, data, offset, length + 4)
        unseal(data, offset, saved)
    else:
        at = put_base64(encoded, at, data, offset, length)
    state[lay.ENCODED_AT] = at
    return True


@register_jitable(forceinline=True)
def print_rows(data: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs) -> int:
    """Print a rows event, in phases, so that it can go on after a stop."""
    offset = state[lay.OFFSET]
    is_compressed = data[offset + 4] >= _COMPRESSED_FIRST
    body, end = offset + HEADER, body_end(data, state)
    if state[lay.PHASE] == lay.START:
        if not _is_mapped(data, state, tables, body, end):
            return lay.ASK_EVENT
        if is_compressed and not state[lay.INFLATED]:
            return lay.ASK_IMAGES
        status = _head_rows(data, state, buffers)
        if status != PRINTED:
            return status
        state[lay.PHASE] = lay.ENCODE
    source, at = data, offset
    if is_compressed:
        source, at = buffers[lay.PLAIN], 0
        end = load_u32(source, 9) - state[lay.CHECKSUM]
    if state[lay.PHASE] == lay.ENCODE:
        if not encode(source, at, state, buffers):
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
        if status != PRINTED:
            return status
        status = _print_images(source, state, buffers, layouts)
        if status != PRINTED:
            return status
    state[lay.PHASE] = lay.START
    state[lay.INFLATED] = 0
    if load_u16(data, body + 6) & _STATEMENT_END:
        return _end_statement(data, state, buffers)
    return PRINTED


@register_jitable(forceinline=True)
def _is_mapped(data: Bytes, state: Longs, tables: Longs, body: int, end: int) -> bool:
    """True if a rows event is whole up to its images, and of a table of this statement."""
    if end - body < 8:
        return False
    if _has_extra(data, body) and (end - body < 10 or load_u16(data, body + 8) < 2):
        return False
    slot = find_table(tables, load_u48(data, body))
    if tables[slot, lay.TABLE_ID] == lay.NO_TABLE:
        return False
    at = _columns_at(data, body)
    if at >= end or tables[slot, lay.TABLE_STATEMENT] != state[lay.STATEMENT]:
        return False
    columns, at = _column_count(data, at)
    size = (columns + 7) // 8
    kind = int(data[body - HEADER + 4])
    if _is_update(kind):
        size *= 2
    return bool(columns == tables[slot, lay.TABLE_COLUMNS] and at + size <= end)


@register_jitable(forceinline=True)
def _has_extra(data: Bytes, body: int) -> bool:
    """True if an event of rows is of the second version, which only MySQL writes."""
    return bool(_V2_FIRST <= data[body - HEADER + 4] < _COMPRESSED_FIRST)


@register_jitable(forceinline=True)
def _columns_at(data: Bytes, body: int) -> int:
    """Return the place of the count of columns."""
    if _has_extra(data, body):
        return body + 8 + load_u16(data, body + 8)
    return body + 8


@register_jitable(forceinline=True)
def _is_update(kind: int) -> bool:
    return bool(
        kind == _ROWS_FIRST + 1
        or kind == _V2_FIRST + 1
        or kind == _PARTIAL_UPDATE
        or kind == _COMPRESSED_FIRST + 1
    )


@register_jitable(forceinline=True)
def _head_rows(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Print a rows event's head; MariaDB's tool prints it with the rows, MySQL's at once."""
    offset = state[lay.OFFSET]
    out, heads = buffers[lay.OUT], buffers[lay.HEADS]
    if state[lay.OUT_AT] + _EVENT_ROOM > out.shape[0]:
        state[lay.NEED] = _EVENT_ROOM
        return lay.OUT_FULL
    if state[lay.HEADS_AT] + _EVENT_ROOM > heads.shape[0]:
        state[lay.NEED] = _EVENT_ROOM
        return lay.HEADS_FULL
    at = put_place(out, state[lay.OUT_AT], state)
    if state[lay.IS_MYSQL]:
        at = put_head(out, at, data, state, buffers[lay.TEXTS])
        state[lay.OUT_AT] = _name_rows(out, at, data, offset, _KNOWN_FLAGS)
    else:
        state[lay.OUT_AT] = at
        at = put_head(heads, state[lay.HEADS_AT], data, state, buffers[lay.TEXTS])
        state[lay.HEADS_AT] = _name_rows(heads, at, data, offset, _STATEMENT_END)
    return PRINTED


@register_jitable
def _name_rows(out: Bytes, at: int, data: Bytes, offset: int, known_flags: int) -> int:
    """The name of an event, its table and its flags."""
    kind = int(data[offset + 4])
    if kind >= _COMPRESSED_FIRST:
        at = put_phrase(out, at, words.COMPRESSED_NAMES[kind - _COMPRESSED_FIRST])
    elif kind == _PARTIAL_UPDATE:
        at = put_phrase(out, at, words.PARTIAL_NAME)
    elif kind >= _V2_FIRST:
        at = put_phrase(out, at, words.ROWS_NAMES[kind - _V2_FIRST])
    else:
        at = put_phrase(out, at, words.ROWS_NAMES[kind - _ROWS_FIRST])
    at = put_number(out, put_phrase(out, at, words.TABLE_ID), load_u48(data, offset + HEADER))
    flags = load_u16(data, offset + HEADER + 6) & known_flags
    if flags:
        at = put_phrase(out, at, words.FLAGS)
        for bit in range(5):
            if flags >> bit & 1:
                at = put_phrase(out, at, words.FLAG_NAMES[bit])
    out[at] = LINE_END
    return at + 1


@register_jitable(forceinline=True)
def _find_images(
    source: Bytes, state: Longs, buffers: Buffers, tables: Longs, layouts: Longs
) -> int:
    """Find the start of an event's images and their layouts; IMAGES_AT is the event."""
    event, slot = state[lay.IMAGES_AT], state[lay.TABLE]
    if not state[lay.VERBOSE] and not state[lay.COUNTS_ROWS]:
        state[lay.IMAGES_AT] = state[lay.IMAGES_END]
        return PRINTED
    columns, at = _column_count(source, _columns_at(source, event + HEADER))
    size = (columns + 7) // 8
    kind = int(source[event + 4])
    is_update = _is_update(kind)
    state[lay.IMAGES_AT] = at + (2 * size if is_update else size)
    if state[lay.IMAGES_AT] >= state[lay.IMAGES_END] or kind == _PARTIAL_UPDATE:
        return lay.ASK_ROWS
    # The kinds of one version are written, updated and deleted rows, in this order.
    is_first = kind == (_V2_FIRST if kind >= _V2_FIRST else _ROWS_FIRST)
    state[lay.KIND] = lay.INSERTED if is_first else (lay.BEFORE if is_update else lay.DELETED)
    state[lay.REQUEST] = at
    state[lay.SECOND_LAYOUT] = lay.NO_LAYOUT
    table = tables[slot, lay.TABLE_LAYOUT]
    state[lay.FIRST_LAYOUT] = _find_layout(source, state, buffers, layouts, table)
    if is_update and state[lay.FIRST_LAYOUT] != lay.NO_LAYOUT:
        state[lay.KIND] = lay.AFTER
        state[lay.REQUEST] = at + size
        state[lay.SECOND_LAYOUT] = _find_layout(source, state, buffers, layouts, table)
        if state[lay.SECOND_LAYOUT] == lay.NO_LAYOUT:
            return lay.ASK_LAYOUT
        if not layouts[state[lay.SECOND_LAYOUT] + lay.IS_COVERED]:
            return lay.ASK_ROWS
    if state[lay.FIRST_LAYOUT] == lay.NO_LAYOUT:
        return lay.ASK_LAYOUT
    if not layouts[state[lay.FIRST_LAYOUT] + lay.IS_COVERED]:
        return lay.ASK_ROWS
    if state[lay.VERBOSE] and state[lay.EVENT_ROWS] == 0 and _has_extra(source, event + HEADER):
        return _print_extra(source, state, buffers, event + HEADER)
    return PRINTED


@register_jitable
def _print_extra(source: Bytes, state: Longs, buffers: Buffers, body: int) -> int:
    """The partitions of an event's rows, a line that counts as a row."""
    size = load_u16(source, body + 8) - 2
    if size == 0:
        return PRINTED
    is_update = _is_update(int(source[body - HEADER + 4]))
    if int(source[body + 10]) != _PARTITION or size != (5 if is_update else 3):
        return lay.ASK_ROWS
    rows, at = buffers[lay.ROWS], state[lay.ROWS_AT]
    if at + _EXTRA_ROOM > rows.shape[0]:
        state[lay.NEED] = _EXTRA_ROOM
        return lay.ROWS_FULL
    if is_update:
        at = put_phrase(rows, at, words.SOURCE_PARTITION)
        at = put_number(rows, at, load_u16(source, body + 13))
        at = put_phrase(rows, at, words.TARGET_PARTITION)
    else:
        at = put_phrase(rows, at, words.PARTITION)
    at = put_number(rows, at, load_u16(source, body + 11))
    rows[at] = LINE_END
    state[lay.ROWS_AT] = at + 1
    state[lay.EVENT_ROWS] = 1
    return PRINTED


@register_jitable(forceinline=True)
def _column_count(source: Bytes, at: int) -> tuple[int, int]:
    """A rows event's count of columns, -1 if it has more than 65535, and where it ends."""
    columns = int(source[at])
    if columns < _TWO_BYTES - 1:
        return columns, at + 1
    return (load_u16(source, at + 1) if columns == _TWO_BYTES else -1), at + 3


@register_jitable(forceinline=True)
def _find_layout(source: Bytes, state: Longs, buffers: Buffers, layouts: Longs, layout: int) -> int:
    """Return the layout for images of KIND with the bitmap at REQUEST, among those of a table."""
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
    return PRINTED


@register_jitable(forceinline=True)
def _end_statement(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Print the end of a statement's rows events, unless the caller must."""
    if not state[lay.IS_MYSQL]:
        state[lay.NOTE_AT] = 0
    state[lay.STATEMENT] += 1
    out = buffers[lay.OUT]
    at = state[lay.OUT_AT]
    size = state[lay.HEADS_AT] + state[lay.ENCODED_AT] + state[lay.ROWS_AT]
    if state[lay.SPILLED] or at + size + _EVENT_ROOM > out.shape[0]:
        state[lay.OFFSET] += load_u32(data, state[lay.OFFSET] + 9)
        state[lay.INNER_EVENTS] += 1
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
        out[at] = LINE_END
        at += 1
    state[lay.OUT_AT] = at
    state[lay.HEADS_AT] = 0
    state[lay.ENCODED_AT] = 0
    state[lay.ROWS_AT] = 0
    state[lay.ROW_COUNT] = 0
    return PRINTED
