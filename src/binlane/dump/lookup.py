"""Which GTID position a byte position stands for: the servers' BINLOG_GTID_POS()."""

from __future__ import annotations

from collections.abc import Iterable

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.transaction import GtidEvent, GtidListEvent
from binlane.grouping.walk import walk
from binlane.positions import GtidPosition


def gtid_position_at(chunks: Iterable[bytes], position: int, *, file: str) -> GtidPosition | None:
    """What is done before a position in a file.

    Args:
        chunks: The file's bytes.
        position: Where an event begins, or the file's end, in bytes.
        file: Its base name.

    Returns:
        The GTID position; None if no event begins or ends there.

    Raises:
        CodecError: If the file is damaged before the position.
    """
    done = GtidPosition()
    is_boundary = False
    for event in walk(chunks, file=file):
        is_boundary = is_boundary or event.position == position
        if isinstance(event.body, FormatDescriptionEvent):
            # The GTID_LIST behind it says what is done before the file.
            is_boundary = is_boundary or event.next_position == position
            continue
        if isinstance(event.body, GtidListEvent):
            done = event.body.position
        elif event.position >= position:
            break
        elif isinstance(event.body, GtidEvent):
            done = done.advance(event.body.gtid(event.header.server_id))
        is_boundary = is_boundary or event.next_position == position
    return done if is_boundary else None
