"""Counts of an event's rows, found from the lengths of its columns: part of `summarise`."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.layout import HAS_AFTER, MAP_COLUMNS
from binlane.log.kernels.memory import Bytes, load_le
from binlane.log.kernels.scan import bitmap_of_rows

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Tables = tuple[Numbers, ...]

_HEADER: Final = 19
# Results of `count_rows` instead of a count.
ASKS_ROWS: Final = -1
ASKS_IMAGES: Final = -2
IS_DAMAGED: Final = -3


@register_jitable
def _count_bits(data: Bytes, bitmap: int, columns: int) -> int:
    """Return the number of columns in a bitmap."""
    count = 0
    for column in range(columns):
        count += (int(data[bitmap + (column >> 3)]) >> (column & 7)) & 1
    return count


@register_jitable
def _image_end(
    data: Bytes,
    start: int,
    end: int,
    present: Bytes,
    bitmap: int,
    count: int,
    widths: Small,
    first: int,
    columns: int,
) -> int:
    """Return the end of the row image that begins at `start`, or -1.

    Args:
        data: The buffer that has the images.
        start: The start of this image in it.
        end: The end of the last image.
        present: Has the bitmap of the columns.
        bitmap: The place of the bitmap there.
        count: The number of columns in the bitmap.
        widths: The widths of the columns of all tables.
        first: The place of this table's columns there.
        columns: The number of the table's columns.
    """
    at = start + (count + 7) // 8
    if at > end:
        return -1
    index = 0
    for column in range(columns):
        if count < columns and not (int(present[bitmap + (column >> 3)]) >> (column & 7)) & 1:
            continue
        is_null = (int(data[start + (index >> 3)]) >> (index & 7)) & 1
        index += 1
        if is_null:
            continue
        width = int(widths[first + column])
        if width < 0:
            if at - width > end:
                return -1
            width = load_le(data, at, -width) - width
        at += width
    return at if at <= end else -1


@register_jitable
def count_rows(
    data: Bytes,
    at: int,
    stop: int,
    kind: int,
    number: int,
    figures: Numbers,
    tables: Tables,
    widths: Small,
    plain: Bytes,
) -> int:
    """Return the number of an event's rows, or a code for the reason why it is unknown.

    Args:
        data: The buffer of the events.
        at: The start of the event in it.
        stop: The end of the event's images.
        kind: The class of the event.
        number: The number of its table map, negative if it has none.
        figures: The figures of the kernel, where somebody may have told the count.
        tables: The tables of the kernel.
        widths: The widths of the columns of all tables.
        plain: The plain images of a compressed event.
    """
    columns = int(tables[lay.MAPS][MAP_COLUMNS, number]) if number >= 0 else -1
    bitmap = bitmap_of_rows(data, at + _HEADER, stop, kind, columns)
    if bitmap < 0:
        return IS_DAMAGED
    if figures[lay.TOLD] >= 0:
        return int(figures[lay.TOLD])
    if kind & lay.IS_COMPRESSED and figures[lay.PLAIN_LENGTH] < 0:
        return ASKS_IMAGES
    if number < 0:
        return 0
    first = tables[lay.TABLES][lay.WIDTHS_START, number]
    if first < 0 or kind & lay.IS_PARTIAL:
        return ASKS_ROWS
    after = bitmap + (columns + 7) // 8
    before_count, after_count = _count_bits(data, bitmap, columns), 0
    images, place, end = data, after, stop
    if kind & HAS_AFTER:
        place += after - bitmap
        after_count = _count_bits(data, after, columns)
    if kind & lay.IS_COMPRESSED:
        images, place, end = plain, 0, int(figures[lay.PLAIN_LENGTH])
    rows = 0
    while place < end:
        start = place
        place = _image_end(images, place, end, data, bitmap, before_count, widths, first, columns)
        if place >= 0 and kind & HAS_AFTER:
            place = _image_end(images, place, end, data, after, after_count, widths, first, columns)
        if place <= start:
            return IS_DAMAGED
        rows += 1
    return rows
