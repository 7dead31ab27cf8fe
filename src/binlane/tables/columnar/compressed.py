"""Compressed rows events and transactions → plain ones in a buffer that kernels take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from binlane.log.codec.types import EventType
from binlane.log.grouping.inflated_records import inflated_record
from binlane.log.grouping.window import PADDING, Bytes, padded
from binlane.log.kernels import layout
from binlane.tables.columnar.noted_events import NotedEvents, Small

ARENA_BYTES: Final = 4 << 20

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
                record = memoryview(b"".join(inflated_record(record)))
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
