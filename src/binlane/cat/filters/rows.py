"""The rows of a stream of events that concern certain tables, statement by statement.

A statement's rows run from its text (ANNOTATE_ROWS, ROWS_QUERY) or first TABLE_MAP to the rows event
that says STMT_END. What stands before the first row that is printed is held until it is known to be
needed, and the last row event until it is known whether it ends the statement: never more than that,
however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from binlane.codec.event import Event
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import EventType, RowsFlag
from binlane.grouping.table_maps import TableMaps
from binlane.names import TableName

_TEXT_TYPES: Final = frozenset({EventType.ANNOTATE_ROWS, EventType.ROWS_QUERY})


def is_of_rows(event: Event) -> bool:
    """Whether an event belongs to a statement that is logged as rows."""
    return (
        isinstance(event.body, TableMapEvent | RowsEvent) or event.header.type_code in _TEXT_TYPES
    )


class RowStatements:
    """Leaves out the rows of other tables, and table maps and texts that nothing is left of."""

    def __init__(self, includes: Callable[[TableName], bool]) -> None:
        """Start before the first statement.

        Args:
            includes: Whether rows of a table are printed.
        """
        self._includes = includes
        self._maps = TableMaps()
        self._before: list[Event] = []
        self._last: Event | None = None

    def feed(self, event: Event, *, file: str) -> Iterator[Event]:
        """Take an event of a statement that is logged as rows; give those that can be printed.

        Raises:
            CodecError: If a rows event has no TABLE_MAP.
        """
        table_map = self._maps.feed(event, file=file)
        body = event.body
        if isinstance(body, TableMapEvent):
            if self._includes(TableName(body.database, body.table)):
                self._before.append(event)
            return
        if not isinstance(body, RowsEvent):
            self._before.append(event)
            return
        if table_map is not None and self._includes(TableName(table_map.database, table_map.table)):
            yield from self._release()
            self._last = event
        if body.ends_statement:
            yield from self._end()

    def finish(self) -> Iterator[Event]:
        """What is held of a statement whose end was cut off."""
        if self._last is not None:
            yield self._last
        self._before, self._last = [], None

    def _release(self) -> Iterator[Event]:
        """Everything up to and with the rows event held."""
        if self._last is not None:
            yield self._last
        yield from self._before
        self._before = []

    def _end(self) -> Iterator[Event]:
        last = self._last
        if last is not None:
            assert isinstance(last.body, RowsEvent), "only rows events are held here"
            if not last.body.ends_statement:
                body = replace(last.body, flags=last.body.flags | RowsFlag.STMT_END)
                last = replace(last, body=body)
            yield last
        self._before, self._last = [], None
