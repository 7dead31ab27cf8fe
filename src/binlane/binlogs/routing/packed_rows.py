"""Rows of one table in few large events, each a statement by itself.

A table that was filled row by row has a million statements in its history. What fills it again needs
only the rows, and what handles them costs by the event. INSERTs that follow each other are joined, over
statements and transactions. Changes and deletions stay events of their own: a replica that looks for the
rows of a whole event at once finds no row that the event has changed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent, TableMapEvent, WriteRowsEvent, WriteRowsV1Event
from binlane.log.codec.types import RowsFlag

EVENT_BYTES_MAX: Final = 256 << 10
"""Bytes of rows in an event, unless one row has more."""
_INSERTS: Final = (WriteRowsEvent, WriteRowsV1Event)


class RowsPacker:
    """Joins the rows of one table, event by event."""

    def __init__(self) -> None:
        self._map: Event | None = None
        self._first: Event | None = None
        self._first_map: Event | None = None
        self._images: list[bytes] = []
        self._size = 0

    def pack(self, events: Iterable[Event]) -> Iterator[Event]:
        """Take TABLE_MAPs and rows of the table, in order.

        Yields:
            A TABLE_MAP and a rows event that ends its statement, in turns, as far as they are full.
        """
        for event in events:
            body = event.body
            if isinstance(body, TableMapEvent):
                self._map = event
                continue
            assert isinstance(body, RowsEvent), "it is a table's rows"
            if self._joins(body):
                self._images.append(body.images)
                self._size += len(body.images)
                continue
            yield from self.rest()
            assert self._map is not None, "it stands before its rows"
            if type(body) in _INSERTS:
                self._first, self._first_map = event, self._map
                self._images, self._size = [body.images], len(body.images)
            else:
                yield self._map
                yield _ending(event, body, body.images)

    def rest(self) -> Iterator[Event]:
        """Give what is not full yet."""
        first, table_map = self._first, self._first_map
        if first is not None and table_map is not None:
            assert isinstance(first.body, RowsEvent), "it is an INSERT's"
            yield table_map
            yield _ending(first, first.body, b"".join(self._images))
        self.clear()

    def clear(self) -> None:
        """Forget what is not full yet."""
        self._first, self._images, self._size = None, [], 0

    def _joins(self, body: RowsEvent) -> bool:
        """True if rows may stand in the event that is being filled."""
        if self._first is None or self._size + len(body.images) > EVENT_BYTES_MAX:
            return False
        first = self._first.body
        assert isinstance(first, RowsEvent), "it is an INSERT's"
        if type(first) is not type(body) or not self._has_same_map():
            return False
        alike = replace(
            body,
            table_id=first.table_id,
            flags=(body.flags & ~RowsFlag.STMT_END) | (first.flags & RowsFlag.STMT_END),
            images=first.images,
        )
        return alike == first

    def _has_same_map(self) -> bool:
        """True if the table has the columns that it had before the event that is being filled."""
        now, before = self._map, self._first_map
        if now is before:
            return True
        if now is None or before is None:
            return False
        assert isinstance(now.body, TableMapEvent), "it was kept as one"
        assert isinstance(before.body, TableMapEvent), "it was kept as one"
        return replace(now.body, table_id=before.body.table_id) == before.body


def _ending(event: Event, body: RowsEvent, images: bytes) -> Event:
    """A rows event that ends its statement, with other rows."""
    return replace(event, body=replace(body, images=images, flags=body.flags | RowsFlag.STMT_END))
