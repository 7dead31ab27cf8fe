"""XA transactions: prepared in one event group, finished in another, maybe of another file."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import islice
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import XaPrepareEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.inner import expanded

_FINISHES: Final = (b"XA COMMIT ", b"XA ROLLBACK ")


def prepared_by(event: Event) -> str | None:
    """The XA transaction that an event prepares, as statements name it; None if it prepares none."""
    body = event.body
    return str(body.xid) if isinstance(body, XaPrepareEvent) and not body.one_phase else None


def prepared_in(event: Event, format_: Format) -> str | None:
    """The XA transaction that an event prepares, also inside of a TRANSACTION_PAYLOAD.

    What is broken prepares nothing; whoever reads it will tell.

    Args:
        event: An event of a log, not from inside of another.
        format_: The format of the FORMAT_DESCRIPTION before it.
    """
    if event.header.type_code != EventType.TRANSACTION_PAYLOAD:
        return prepared_by(event)
    with suppress(CodecError):
        inner = islice(expanded(event, format_), 1, None)
        first = next(inner, None)
        if first is not None and isinstance(first.body, QueryEvent):
            if not first.body.query.startswith(b"XA START"):
                return None
            (last,) = deque(inner, maxlen=1) or (first,)
            return prepared_by(last)
    return None


def finished_by(event: Event) -> str | None:
    """Return the XA transaction that an event commits or rolls back; None for other events."""
    if isinstance(event.body, QueryEvent):
        for words in _FINISHES:
            if event.body.query.startswith(words):
                return event.body.query.removeprefix(words).decode("ascii", "replace").strip()
    return None


def prepared_after(prepared: frozenset[str], event: Event) -> frozenset[str]:
    """The XA transactions that are prepared behind an event."""
    if xid := prepared_by(event):
        return prepared | {xid}
    if xid := finished_by(event):
        return prepared - {xid}
    return prepared
