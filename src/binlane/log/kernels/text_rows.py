"""Row images as text, by layouts that `text_layout` describes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import load_i64, load_le, load_u32
from binlane.log.kernels.text_floats import put_float
from binlane.log.kernels.text_memory import copy_long, store_u64
from binlane.log.kernels.text_numbers import (
    BLANK,
    FAILED,
    VALUE_ROOM,
    put_decimal,
    put_integer,
    put_number,
    put_padded,
)
from binlane.log.kernels.text_values import (
    put_bits,
    put_datetime,
    put_escaped,
    put_old_datetime,
    put_old_time,
    put_quoted_date,
    put_string,
    put_time,
    put_timestamp,
)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

# Below 0: the image is damaged or holds what the kernel does not print; the buffer is too short.
ODD = -1
FULL = -2

_NULL = 0x4C4C554E
_FLOAT_WIDTH, _FLOAT_DIGITS, _DOUBLE_DIGITS = 20, 6, 20
_ONE = 49


@register_jitable(forceinline=True)
def put_image(  # registers, not memory: this is the inner loop
    out: Bytes,
    at: int,
    data: Bytes,
    position: int,
    state: Longs,
    texts: Bytes,
    layouts: Longs,
    layout: int,
) -> tuple[int, int]:
    """Write one row image.

    Args:
        out: The buffer that receives the text.
        at: The text's position in that buffer.
        data: The bytes of the event.
        position: The start of the image; all images end at IMAGES_END.
        state: The state of the kernel.
        texts: The fixed pieces of text.
        layouts: The layouts of all tables.
        layout: The place of the layout to use.

    Returns:
        Where text and image end, or ODD or FULL instead of the former.
    """
    end = state[lay.IMAGES_END]
    limit = out.shape[0] - VALUE_ROOM - lay.PADDING
    count = layouts[layout + lay.COLUMNS]
    column = layout + lay.LAYOUT_SIZE
    nulls = position
    position += (count + 7) // 8
    if position > end:
        return ODD, position
    mark = -1
    for index in range(count + 1):
        length = layouts[column + lay.PIECE_LENGTH]
        if at + length > limit:
            return FULL, position
        copy_long(out, at, texts, layouts[column + lay.PIECE], length)
        if mark >= 0:
            out[at + mark] = _ONE
        at += length
        if index == count:
            break
        mark = -1
        if data[nulls + index // 8] >> (index & 7) & 1:
            store_u64(out, at, _NULL)
            at += 4
            mark = layouts[column + lay.NULL_AT]
        else:
            at, position = _put_value(out, at, data, position, state, layouts, column)
            if at < 0:
                return at, position
        column += lay.COLUMN_SIZE
    return at, position


@register_jitable(forceinline=True)
def _put_value(  # as above
    out: Bytes,
    at: int,
    data: Bytes,
    position: int,
    state: Longs,
    layouts: Longs,
    column: int,
) -> tuple[int, int]:
    """One value that is not NULL; as `put_image`."""
    end = state[lay.IMAGES_END]
    kind, size = layouts[column + lay.TYPE], layouts[column + lay.SIZE]
    after = position + size
    if after > end:
        return ODD, position
    if kind == lay.INTEGER:
        value = load_le(data, position, size)
        if size < 8 and value >> (8 * size - 1):
            value -= 1 << 8 * size
        return put_integer(out, at, value, size), after
    if kind == lay.STRING or kind == lay.ESCAPED:
        length = load_le(data, position, size)
        if length > end - after:
            return ODD, position
        if at + 4 * length > out.shape[0] - VALUE_ROOM - lay.PADDING:
            return FULL, position
        if kind == lay.ESCAPED:
            return put_escaped(out, at, data, after, length), after + length
        return put_string(out, at, data, after, length), after + length
    if kind == lay.DECIMAL:
        scale = layouts[column + lay.DETAIL]
        precision, scale = scale >> 8, scale & 255
        return put_decimal(out, at, data, position, precision, scale), after
    if kind == lay.DOUBLE:
        bits = load_i64(data, position)
        return put_float(out, at, bits, size, _DOUBLE_DIGITS, state), after
    if kind == lay.FLOAT:
        width = at + _FLOAT_WIDTH
        at = put_float(out, at, load_u32(data, position), size, _FLOAT_DIGITS, state)
        while at < width:
            out[at] = BLANK
            at += 1
        return at, after
    return _put_rarer(out, at, data, position, layouts, column), after


@register_jitable
def _put_rarer(out: Bytes, at: int, data: Bytes, position: int, layouts: Longs, column: int) -> int:
    """A date, a time or bits, which are all there."""
    kind, detail = layouts[column + lay.TYPE], layouts[column + lay.DETAIL]
    if kind == lay.DATETIME:
        return put_datetime(out, at, data, position, detail)
    if kind == lay.TIMESTAMP:
        return put_timestamp(out, at, data, position, detail)
    if kind == lay.TIME_OF_DAY:
        return put_time(out, at, data, position, detail)
    if kind == lay.DATE:
        return put_quoted_date(out, at, data, position)
    if kind == lay.CHOICE:
        return put_number(out, at, load_le(data, position, layouts[column + lay.SIZE]))
    if kind == lay.BITS:
        return put_bits(out, at, data, position, detail)
    if kind == lay.YEAR:
        return put_padded(out, at, 1900 + int(data[position]), 4)
    if kind == lay.OLD_DATETIME:
        return put_old_datetime(out, at, data, position)
    if kind == lay.OLD_TIME:
        return put_old_time(out, at, data, position)
    if kind == lay.OLD_TIMESTAMP:
        return put_number(out, at, load_u32(data, position))
    return FAILED
