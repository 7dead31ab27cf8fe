"""The rows of a stream of events that concern certain tables, statement by statement.

A statement's rows run from its text (ANNOTATE_ROWS, ROWS_QUERY) or first TABLE_MAP to the rows
event that says STMT_END. Events before the first row that is printed are held until they are known
to be needed, and the last row event until it is known whether it ends the statement: never more
than that, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from binlane.binlogs.filters.kinds import RowKind, row_kind
from binlane.binlogs.routing.row_selection import whole_rows
from binlane.errors import UnsupportedError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType, RowsFlag
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName

_TEXT_TYPES: Final = frozenset({EventType.ANNOTATE_ROWS, EventType.ROWS_QUERY})


def is_of_rows(event: Event) -> bool:
    """True if an event belongs to a statement that is logged as rows."""
    return (
        isinstance(event.body, TableMapEvent | RowsEvent) or event.header.type_code in _TEXT_TYPES
    )


class RowStatements:
    """Leaves out the rows of other tables, and table maps and texts that nothing is left of."""

    def __init__(
        self,
        includes: Callable[[TableName], bool],
        kinds: frozenset[RowKind] | None = None,
        format_: Format | None = None,
        *,
        leave_out: Callable[[RowsEvent, TableMapEvent, str], None] = lambda *_: None,
    ) -> None:
        """Start before the first statement.

        Args:
            includes: Function that gives True if rows of a table are printed.
            kinds: Kinds of row changes that are printed; None for all.
            format_: Format of the FORMAT_DESCRIPTION before them: then rows events that were cut up
                are put together. None if the caller feeds the whole ones.
            leave_out: Called with each rows event of another table, its table map and its
                FILE:POSITION.
        """
        self._includes = includes
        self._leave_out = leave_out
        self._kinds = kinds
        self._format = format_
        self._pieces: list[Event] = []
        self._maps = TableMaps()
        self._before: list[Event] = []
        self._last: Event | None = None
        self._ends = False

    def feed(self, event: Event, *, file: str) -> Iterator[Event]:
        """Take an event of a statement that is logged as rows; give those that can be printed.

        Raises:
            CodecError: If a rows event has no TABLE_MAP.
            UnsupportedError: If a statement would end with a rows event that was cut up.
        """
        if isinstance(event.body, PartialRowDataEvent):
            self._pieces.append(event)
            if event.joined is None or self._format is None:
                return
        pieces, self._pieces = self._pieces, []
        whole = event if self._format is None else whole_rows(event, self._format)
        table_map = self._maps.feed(whole, file=file)
        body = whole.body
        if isinstance(body, TableMapEvent):
            if self._includes(body.name):
                self._before.append(event)
            return
        if not isinstance(body, RowsEvent):
            self._before.append(event)
            return
        if table_map is not None and self._takes(whole, table_map, file):
            yield from self._release()
            yield from pieces[:-1]
            self._last, self._ends = event, body.ends_statement
        if body.ends_statement:
            yield from self._end()

    def _takes(self, event: Event, table_map: TableMapEvent, file: str) -> bool:
        if self._kinds is not None and row_kind(event.header.type_code) not in self._kinds:
            return False
        table = table_map.name
        if self._includes(table):
            return True
        assert isinstance(event.body, RowsEvent), "only they have a table map"
        self._leave_out(event.body, table_map, f"{file}:{event.position}")
        return False

    def finish(self) -> Iterator[Event]:
        """Give the held events of a statement whose end was cut off."""
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
            if not self._ends:
                if not isinstance(last.body, RowsEvent):
                    raise UnsupportedError(
                        "the last rows that pass the filter are in pieces, which cannot end a statement"
                    )
                body = replace(last.body, flags=last.body.flags | RowsFlag.STMT_END)
                last = replace(last, body=body)
            yield last
        self._before, self._last = [], None
