"""Hashes of whole row images, 64 bits each, to compare tables without keeping their rows.

A hash is the same for the same values wherever the image comes from: what the bitmap of NULLs holds
behind its last column does not count. The hash has no key, so it guards against faults, not against
somebody who wants two rows to be taken for one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, load_le, load_u32

Small = npt.NDArray[np.int32]
Halves = npt.NDArray[np.uint32]

_WORD: Final = 0xFFFFFFFF
_LOW_FACTOR: Final = 0x85EBCA6B
_HIGH_FACTOR: Final = 0xC2B2AE35
_LOW_SEED: Final = 0x9E3779B1
_HIGH_SEED: Final = 0x27D4EB2F


@register_jitable(inline="always")
def _mixed(half: int, word: int, factor: int) -> int:
    """One half of a hash behind one more word; products are cut to 32 bits."""
    word = (word * factor) & _WORD
    word ^= word >> 15
    half = ((half ^ word) * 0x01000193) & _WORD
    half ^= half >> 13
    return (half * factor) & _WORD


@register_jitable(inline="always")
def _ended(half: int) -> int:
    half ^= half >> 16
    half = (half * _LOW_FACTOR) & _WORD
    half ^= half >> 13
    half = (half * _HIGH_FACTOR) & _WORD
    return half ^ (half >> 16)


def hash_images(data: Bytes, end: int, widths: Small, hashes: Halves, starts: Small) -> int:
    """Hash row images that have all columns, one behind the other.

    Args:
        data: The images, and the padding behind them.
        end: The length of the images in bytes.
        widths: Size of each column's values; negative: the size of their length field.
        hashes: Receives the two halves of each image's hash, the lower one first.
        starts: Receives where each image begins.

    Returns:
        The number of images; -1 if they end inside a value, -2 if there are more than `hashes` has
        room for.
    """
    columns = int(widths.shape[0])
    bitmap = (columns + 7) >> 3
    count = 0
    at = 0
    while at < end:
        if count >= hashes.shape[0]:
            return -2
        start = at
        at += bitmap
        if at > end:
            return -1
        for column in range(columns):
            if (int(data[start + (column >> 3)]) >> (column & 7)) & 1:
                continue
            width = int(widths[column])
            if width < 0:
                if at - width > end:
                    return -1
                width = load_le(data, at, -width) - width
            at += width
            if width < 0 or at > end:
                return -1
        if at == start:
            return -1
        low = _LOW_SEED ^ (at - start)
        high = _HIGH_SEED ^ (at - start)
        place = start
        # The bitmap's last byte is taken by itself: bits of no column are not the same everywhere.
        for number in range(bitmap):
            byte = int(data[place + number])
            if number == bitmap - 1 and columns & 7:
                byte &= (1 << (columns & 7)) - 1
            low = _mixed(low, byte, _LOW_FACTOR)
            high = _mixed(high, byte, _HIGH_FACTOR)
        place += bitmap
        while place + 4 <= at:
            word = load_u32(data, place)
            low = _mixed(low, word, _LOW_FACTOR)
            high = _mixed(high, word, _HIGH_FACTOR)
            place += 4
        if place < at:
            word = load_le(data, place, at - place)
            low = _mixed(low, word, _LOW_FACTOR)
            high = _mixed(high, word, _HIGH_FACTOR)
        hashes[count, 0] = _ended(low)
        hashes[count, 1] = _ended(high)
        starts[count] = start
        count += 1
    return count


EXPORTS: Final = (
    (
        hash_images,
        "int64(uint8[::1], int64, int32[::1], uint32[:, ::1], int32[::1])",
    ),
)
