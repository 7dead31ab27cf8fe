"""SHOW BINLOG EVENTS: what stands in a binlog file, listed as the source's own server lists it.

Events are read in a thread, some at a time, and sent as they are read: a file may have millions.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.stored_groups import first_event
from binlane.errors import CodecError, StatementError, StoreError
from binlane.live.gateway.answers import RowsInParts
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.packets.results import Cell, ColumnDefinition
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_list import ListedEvent, listed_event
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import Walker
from binlane.statements.scope.statements import ShowBinlogEvents

COLUMNS: Final = (
    *("Log_name", ColumnDefinition.integer("Pos"), "Event_type"),
    *(ColumnDefinition.integer("Server_id"), ColumnDefinition.integer("End_log_pos"), "Info"),
)
_ERROR: Final = 1220
_ROWS: Final = 500
_TEXT_MAX: Final = 1 << 20
"""A part of the list has this many rows, or characters of Info."""

_Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class _Listing:
    """A file and the part of it that is to be listed.

    Attributes:
        file: The file with its published size, behind which nothing is read.
        statement: Gives the position and LIMIT.
    """

    file: BinlogFile
    statement: ShowBinlogEvents

    @property
    def flavor(self) -> Flavor:
        return Flavor(self.file.flavor)

    def rows(self) -> Iterator[_Row]:
        """The rows asked for."""
        # No file has more events than an iterator can count.
        first = min(self.statement.skipped_rows, sys.maxsize)
        most = self.statement.rows_max
        stop = None if most is None else min(first + most, sys.maxsize)
        return (
            (
                self.file.name,
                event.position,
                event.type_name,
                event.server_id,
                event.end,
                event.info,
            )
            for event in islice(self._events(), first, stop)
        )

    def _events(self) -> Iterator[ListedEvent]:
        first = first_event(self.file.path)
        format_ = format_of(first)
        position = self._start(first.next_position, format_)
        name, is_at_head = self.file.name, position == len(MAGIC)
        walker = Walker(
            open_chunks(self.file.path, position=0 if is_at_head else position),
            file=name,
            position=0 if is_at_head else position,
            format_=None if is_at_head else format_,
        )
        for event in expanded_all(self._published(walker, position), file=name, format_=format_):
            yield listed_event(event, self.flavor)

    def _published(self, walker: Walker, position: int) -> Iterator[Event]:
        """The events up to the published end: what stands behind it may be taken back."""
        events = walker.events()
        while position < self.file.size_bytes:
            event = next(events, None)
            if event is None:
                return
            yield event
            position = event.next_position

    def _start(self, format_end: int, format_: Format) -> int:
        """Return the position where the listing begins."""
        position, size = max(self.statement.position or 0, len(MAGIC)), self.file.size_bytes
        is_mysql = self.flavor is Flavor.MYSQL
        if is_mysql and len(MAGIC) < position < format_end:
            return format_end
        if position > size and not is_mysql:
            raise wrong(
                f"Invalid pos specified. Requested from pos:{position} is greater than actual file "
                f"size:{size}"
            )
        if position == len(MAGIC) or position >= size or self._is_event(position, format_):
            return position
        what = "Wrong offset or I/O error"
        if is_mysql:
            what = f"Error reading Log_event at position {position}: Failed decoding event"
        raise wrong(what, hint=f"no event begins at {position}")

    def _is_event(self, position: int, format_: Format) -> bool:
        chunks = open_chunks(self.file.path, position=position)
        walker = Walker(chunks, file=self.file.name, position=position, format_=format_)
        try:
            event = next(walker.events(), None)
        except CodecError:
            return False
        return event is not None and event.next_position <= self.file.size_bytes


def wrong(what: str, *, hint: str = "") -> StatementError:
    """The servers' error for events that cannot be listed."""
    message = f"Error when executing command SHOW BINLOG EVENTS: {what}"
    return StatementError(message, errno=_ERROR, hint=hint)


async def show_events(file: BinlogFile, statement: ShowBinlogEvents) -> RowsInParts:
    """List the events of a file.

    Args:
        file: The file as it is published now.
        statement: The statement; its file name does not matter any more.

    Raises:
        StatementError: If no event begins at the position, or the file cannot be read.
    """
    reader = _Reader(_Listing(file, statement).rows())
    # An error at the very beginning is told instead of a list, as servers do.
    first = await asyncio.to_thread(reader.next_part)
    return RowsInParts(COLUMNS, _parts(first, reader))


async def _parts(first: Sequence[_Row], reader: _Reader) -> AsyncGenerator[Sequence[_Row], None]:
    part = first
    while part:
        yield part
        part = await asyncio.to_thread(reader.next_part)


class _Reader:
    """Takes rows from where they are made, some at a time."""

    def __init__(self, rows: Iterator[_Row]) -> None:
        self._rows = rows
        self._error: StatementError | None = None

    def next_part(self) -> list[_Row]:
        """The next rows; none at the end.

        Raises:
            StatementError: Where the file is damaged, once what stands before was given.
        """
        if self._error is not None:
            raise self._error
        part: list[_Row] = []
        text_length = 0
        try:
            for row in self._rows:
                part.append(row)
                text_length += len(str(row[-1]))
                if len(part) >= _ROWS or text_length >= _TEXT_MAX:
                    break
        except (CodecError, StoreError) as error:
            self._error = wrong("Wrong offset or I/O error", hint=str(error))
            if not part:
                raise self._error from None
        return part
