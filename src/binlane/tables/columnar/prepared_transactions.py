"""XA transactions that are prepared: where their rows stand, until an XA COMMIT gives them effect.

Places are remembered, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.window import ByteSource


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedGroup:
    """Place of the event group of a prepared transaction.

    Attributes:
        path: Path of the binlog file.
        start: Where the group begins, in bytes.
        end: Where the group ends, in bytes.
        format: The format that the FORMAT_DESCRIPTION before the group gives.
    """

    path: str
    start: int
    end: int
    format: Format


class PreparedGroups(Protocol):
    """A search of the log before the place from which it is read."""

    def source(self, group: PreparedGroup) -> ByteSource:
        """The bytes of a group; good until the next call.

        Raises:
            StoreError: If they cannot be read.
        """

    def find(self, xid: str) -> PreparedGroup | None:
        """The last group that prepares a transaction, before what is read of the log.

        Args:
            xid: The transaction's xid as statements write it.

        Raises:
            CodecError: If the log is damaged there.
            StoreError: If the log cannot be read.
        """


class PreparedTransactions:
    """The XA transactions that are prepared and neither committed nor rolled back yet.

    Args:
        log: Where groups are read again; without it they are held.

    Attributes:
        path: Path of the file that is read, as `log` takes it; None if it cannot be read again.
    """

    def __init__(self, log: PreparedGroups | None = None) -> None:
        self._log = log
        self._groups: dict[str, PreparedGroup | EventGroup] = {}
        self.path: str | None = None

    def prepare(self, xid: str, start: int, end: int, format_: Format) -> None:
        """Remember where the group stands that prepares a transaction."""
        assert self.path is not None, "other groups are held"
        place = PreparedGroup(path=self.path, start=start, end=end, format=format_)
        self._groups[xid] = place

    def prepare_group(self, xid: str, group: EventGroup, format_: Format) -> None:
        """Remember a group, by its place if it can be read again."""
        if self.path is None:
            self._groups[xid] = group
        else:
            self.prepare(xid, group.position, group.next_position, format_)

    def commit(self, xid: str) -> PreparedGroup | EventGroup | None:
        """Take a transaction out at its commit and give where its rows stand; None if that is not known.

        Raises:
            CodecError: If the log before is damaged.
            StoreError: If the log before cannot be read.
        """
        found = self._groups.pop(xid, None)
        if found is None and self._log is not None:
            return self._log.find(xid)
        return found

    def known(self, xid: str) -> PreparedGroup | None:
        """Return the place of the group of a transaction that is still prepared."""
        found = self._groups.get(xid)
        return found if isinstance(found, PreparedGroup) else None

    def forget(self, xid: str) -> None:
        """A transaction is rolled back, or its commit is of no interest."""
        self._groups.pop(xid, None)

    def source(self, group: PreparedGroup) -> ByteSource:
        """The bytes of a group; good until the next call."""
        assert self._log is not None, "only there groups have a place"
        return self._log.source(group)


def is_commit(event: Event) -> bool:
    """True if an event that finishes an XA transaction commits it."""
    query: bytes = getattr(event.body, "query", b"")
    return query.startswith(b"XA COMMIT")
