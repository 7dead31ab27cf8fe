"""Finding an event group from any byte of a file, so that one file is read by many tasks.

A GTID event begins every group. It is told by its type, by its own end position, which the header
repeats, and by its checksum: bytes inside a value would have to hold all three at their very place.
Groups of logs without GTIDs are not found; such a file is read by one task.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from struct import Struct
from typing import Final

import numpy as np

from binlane.codec.format import HEADER_LENGTH, Format
from binlane.codec.types import EventType, Flavor

# 11.7+ pads the GTID event of a large transaction that became a file of its own.
_GTID_LENGTH_MAX: Final = 1 << 20
_TYPES: Final = {
    Flavor.MARIADB: (EventType.GTID,),
    Flavor.MYSQL: (EventType.GTID_LOG, EventType.ANONYMOUS_GTID_LOG, EventType.GTID_TAGGED_LOG),
}
_TYPE_OFFSET: Final = 4
_LENGTHS: Final = Struct("<II")
_LENGTHS_OFFSET: Final = 9
_POSITION_MASK: Final = (1 << 32) - 1


def find_group(
    chunks: Iterable[bytes], position: int, format_: Format, *, stop: int | None = None
) -> int | None:
    """The position of the first GTID event at or after a position.

    Args:
        chunks: The file's bytes from `position` on, in pieces of any size.
        position: Of the first byte, from the start of the file.
        format_: Of the file.
        stop: Where to give up; None for the end.

    Returns:
        Where the event begins, None if there is none that ends within the bytes.
    """
    buffer, start = b"", position
    for chunk in chunks:
        buffer += chunk
        found, undecided = _search(buffer, start, format_)
        if found is not None:
            return found if stop is None or found < stop else None
        if stop is not None and start + undecided >= stop:
            return None
        buffer, start = buffer[undecided:], start + undecided
    return None


def _search(buffer: bytes, start: int, format_: Format) -> tuple[int | None, int]:
    """A GTID event in the buffer, and from which offset on more bytes could still make one."""
    data = np.frombuffer(buffer, np.uint8)
    typed = np.isin(data[_TYPE_OFFSET:], _TYPES[format_.flavor]).nonzero()[0]
    for offset in typed.tolist():
        if offset + HEADER_LENGTH > len(buffer):
            return None, offset
        length, next_position = _LENGTHS.unpack_from(buffer, offset + _LENGTHS_OFFSET)
        if not HEADER_LENGTH < length <= _GTID_LENGTH_MAX:
            continue
        if next_position != (start + offset + length) & _POSITION_MASK:
            continue
        if offset + length > len(buffer):
            return None, offset
        if _has_right_checksum(buffer[offset : offset + length], format_):
            return start + offset, offset
    return None, max(len(buffer) - _TYPE_OFFSET, 0)


def _has_right_checksum(event: bytes, format_: Format) -> bool:
    end = len(event) - format_.checksum_length
    if end == len(event):
        return True
    return zlib.crc32(event[:end]) == int.from_bytes(event[end:], "little")
