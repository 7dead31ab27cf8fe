"""XA transactions: prepared in one event group, finished in another, maybe of another file."""

from __future__ import annotations

from typing import Final

from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.transaction import XaPrepareEvent

_FINISHES: Final = (b"XA COMMIT ", b"XA ROLLBACK ")


def prepared_by(event: Event) -> str | None:
    """The XA transaction that an event prepares, as statements name it; None if it prepares none."""
    body = event.body
    return str(body.xid) if isinstance(body, XaPrepareEvent) and not body.one_phase else None


def finished_by(event: Event) -> str | None:
    """The XA transaction that an event commits or rolls back; None if it is no such statement."""
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
