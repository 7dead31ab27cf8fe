"""Compressed rows events and transactions → plain ones in a buffer that kernels take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from isal import igzip_lib

from binlane.log.codec.format import EVENT_LENGTH_MAX
from binlane.log.codec.types import EventType
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import PADDING, Bytes, padded
from binlane.log.kernels import layout
from binlane.tables.columnar.noted_events import NotedEvents, Small

ARENA_BYTES: Final = 4 << 20

_IsalError: Any = igzip_lib.IsalError
_RECORD: Final = 0x80
_LENGTH_BYTES: Final = 0x07
COMPRESSED_TYPES: Final = frozenset(
    {
        EventType.WRITE_ROWS_COMPRESSED_V1,
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        EventType.DELETE_ROWS_COMPRESSED_V1,
        EventType.WRITE_ROWS_COMPRESSED,
        EventType.UPDATE_ROWS_COMPRESSED,
        EventType.DELETE_ROWS_COMPRESSED,
    }
)


def inflated(
    noted: NotedEvents, picked: Small, arena: Bytes
) -> Iterator[tuple[Small, NotedEvents]]:
    """Rows events with their images plain, in pieces of a few MiB.

    Args:
        noted: Noted events of any tables.
        picked: Columns of their table, in log order; compressed and plain ones.
        arena: Room of `ARENA_BYTES` and the padding, in which one piece after the other stands.

    Yields:
        For each piece the numbers of its events, and their plain copies under the same numbers.

    Raises:
        UnexpectedError: If a compressed record is broken.
    """
    start = 0
    events = noted.events.copy()
    while start < picked.shape[0]:
        room, size, stop = arena, 0, start
        while stop < picked.shape[0]:
            index = int(picked[stop])
            bitmap, images, end = (
                int(noted.events[row, index])
                for row in (layout.EVENT_BITMAP, layout.EVENT_IMAGES, layout.EVENT_END)
            )
            record = noted.data[images:end].data
            if int(events[layout.EVENT_TYPE, index]) in COMPRESSED_TYPES:
                record = memoryview(_plain(record.tobytes()))
            at = size + images - bitmap
            if at + len(record) + PADDING > room.shape[0]:
                if stop > start:
                    break
                room = padded(at + len(record))
            room[size:at] = noted.data[bitmap:images]
            events[layout.EVENT_BITMAP, index] = size
            events[layout.EVENT_IMAGES, index] = at
            size = at + len(record)
            room[at:size] = np.frombuffer(record, np.uint8)
            events[layout.EVENT_END, index] = size
            stop += 1
        yield picked[start:stop], replace(noted, data=room, events=events)
        start = stop


def _plain(record: bytes) -> bytes:
    """The row images in a compressed record, by the fastest decompressor there is."""
    head = record[0] if record else 0
    length_bytes = head & _LENGTH_BYTES
    if head & ~_LENGTH_BYTES != _RECORD or not 1 <= length_bytes <= 4:
        raise UnexpectedError
    length = int.from_bytes(record[1 : 1 + length_bytes], "big")
    if length > EVENT_LENGTH_MAX:
        raise UnexpectedError
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_ZLIB)
    try:
        plain = inflater.decompress(record[1 + length_bytes :], length + 1)
    except (_IsalError, EOFError):
        raise UnexpectedError from None
    if len(plain) != length or not inflater.eof or inflater.unused_data:
        raise UnexpectedError
    return plain
