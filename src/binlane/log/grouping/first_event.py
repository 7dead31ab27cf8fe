"""The first event of a log, for drivers of kernels over its window."""

from __future__ import annotations

from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.scanner import is_fast
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import Window

_LENGTH_MAX: Final = 1 << 16


def description_in(window: Window) -> Event | None:
    """Return the FORMAT_DESCRIPTION at a log's beginning; None if no kernel can go on behind it.

    Args:
        window: The window at the log's beginning; it is filled as far as the event needs it.
    """
    start = len(MAGIC)
    while window.end < start + HEADER_LENGTH and window.fill():
        pass
    if window.end < start + HEADER_LENGTH:
        return None
    header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
    end = start + header.length
    if header.type_code != EventType.FORMAT_DESCRIPTION or header.length > _LENGTH_MAX:
        return None
    while window.end < end and window.fill():
        pass
    # The walker looks at more than the event itself.
    try:
        event = next(Walker((window.bytes(0, min(end, window.end)),), file="").events(), None)
    except CodecError:
        return None
    if event is None or event.header.flags & HeaderFlag.RELAY_LOG:
        return None
    return event if is_fast(format_of(event)) else None


def format_of(event: Event) -> Format:
    """Return the format that a FORMAT_DESCRIPTION decides."""
    assert isinstance(event.body, FormatDescriptionEvent), "nothing else decides a format"
    return event.body.format
