"""Row images: which columns an UPDATE changes, and the same images with fewer columns.

The reference is `codec.row_cutting`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, copy_bytes, is_equal

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

DAMAGED: Final = -1


@register_jitable(inline="always")
def _bit(bits: Bytes, at: int) -> int:
    return (int(bits[at >> 3]) >> (at & 7)) & 1


@register_jitable(inline="always")
def _places(
    data: Bytes, end: int, offset: int, widths: Small, present: Bytes, places: Numbers, row: int
) -> int:
    """Find where each value of an image stands; where the image ends, or `DAMAGED`.

    Two rows of `places` get starts and ends, a column each; -1 where the image has none, -2 for
    NULL.
    """
    count = 0
    for column in range(widths.shape[0]):
        count += _bit(present, column)
    nulls = offset
    offset += (count + 7) >> 3
    if offset > end:
        return DAMAGED
    index = 0
    for column in range(widths.shape[0]):
        places[row, column] = -1
        places[row + 1, column] = -1
        if not _bit(present, column):
            continue
        at = nulls + (index >> 3)
        is_null = (int(data[at]) >> (index & 7)) & 1
        index += 1
        if is_null:
            places[row, column] = -2
            places[row + 1, column] = -2
            continue
        places[row, column] = offset
        width = int(widths[column])
        if width < 0:
            if offset - width > end:
                return DAMAGED
            length = 0
            for byte in range(-width):
                length |= int(data[offset + byte]) << (8 * byte)
            width = length - width
        offset += width
        places[row + 1, column] = offset
        if offset > end:
            return DAMAGED
    return offset


def find_changed(
    data: Bytes,
    end: int,
    widths: Small,
    before: Bytes,
    after: Bytes,
    places: Numbers,
    changed: Bytes,
) -> int:
    """Mark the columns that differ between before and after image in any row of an UPDATE.

    Args:
        data: The images, and room behind them.
        end: The number of bytes of the images.
        widths: The widths of all columns, as `row_count.value_widths` has them.
        before: Bitmap of the columns in before images.
        after: Bitmap of those in after images.
        places: Room for four rows of as many numbers as there are columns.
        changed: Gets the bits; the same length.

    Returns:
        0, or `DAMAGED`.
    """
    count = widths.shape[0]
    for at in range(changed.shape[0]):
        changed[at] = after[at] & ~before[at]
    offset = 0
    while offset < end:
        start = offset
        offset = _places(data, end, offset, widths, before, places, 0)
        if offset < 0:
            return DAMAGED
        offset = _places(data, end, offset, widths, after, places, 2)
        if offset <= start:
            return DAMAGED
        for column in range(count):
            if places[2, column] == -1 or _bit(changed, column):
                continue
            first, second = places[0, column], places[2, column]
            length = places[3, column] - second
            differs = places[1, column] - first != length or (first < 0) != (second < 0)
            if not differs and second >= 0:
                differs = not is_equal(data, first, data, second, length)
            if differs:
                changed[column >> 3] |= 1 << (column & 7)
    return 0


def cut(
    data: Bytes,
    end: int,
    widths: Small,
    present: Bytes,
    kept: Bytes,
    fill: int,
    places: Numbers,
    out: Bytes,
) -> int:
    """Write row images without some of their columns.

    Args:
        data: The images, and room behind them.
        end: The number of bytes of the images.
        widths: The widths of all columns, as `row_count.value_widths` has them.
        present: Bitmaps of the columns in the images: one, or of an UPDATE two.
        kept: Bitmaps of those that stay.
        fill: 0xFF where the bits behind those of NULLs are set, else 0.
        places: Room as in `find_changed`: four rows of numbers.
        out: Gets the images; as much room as `data`.

    Returns:
        Bytes written, or `DAMAGED`.
    """
    count = widths.shape[0]
    offset = 0
    written = 0
    while offset < end:
        start = offset
        for which in range(present.shape[0]):
            offset = _places(data, end, offset, widths, present[which], places, 0)
            if offset < 0:
                return DAMAGED
            staying = 0
            for column in range(count):
                staying += _bit(kept[which], column) and places[0, column] != -1
            nulls = written
            written += (staying + 7) >> 3
            for at in range(nulls, written):
                out[at] = fill
            index = 0
            for column in range(count):
                if not _bit(kept[which], column) or places[0, column] == -1:
                    continue
                bit = 1 << (index & 7)
                if places[0, column] < 0:
                    out[nulls + (index >> 3)] |= bit
                else:
                    out[nulls + (index >> 3)] &= 0xFF ^ bit
                    length = places[1, column] - places[0, column]
                    copy_bytes(out, written, data, places[0, column], length)
                    written += length
                index += 1
        if offset == start:
            return DAMAGED
    return written


EXPORTS: Final = (
    (
        find_changed,
        "int64(uint8[::1], int64, int32[::1], uint8[::1], uint8[::1], int64[:, ::1], uint8[::1])",
    ),
    (
        cut,
        "int64(uint8[::1], int64, int32[::1], uint8[:, ::1], uint8[:, ::1], int64, int64[:, ::1], uint8[::1])",
    ),
)
