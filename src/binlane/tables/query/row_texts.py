"""The statements that rows came from, for rows that a query already chose.

A log may have a statement's text beside its rows: MariaDB's ANNOTATE_ROWS, MySQL's ROWS_QUERY. Only
the parts of the log are walked in which chosen rows lie.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.walk import Walker
from binlane.tables.columnar.log_notes import storable
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.storage import named
from binlane.tables.ranges.stored_files import chunks_of, description_of, open_range


class RowText(NamedTuple):
    """The origin of a rows event, as far as the log tells it.

    Attributes:
        statement: Text of the statement; None if the log has none.
        thread_id: Id of the session that ran the statement; None if the log has none.
    """

    statement: str | None
    thread_id: int | None


_NOTHING: Final = RowText(None, None)


class RowTexts:
    """Finds the texts beside rows of one range of a log.

    Args:
        cuts: Positions in the range's file at which an event group begins, ascending; the first is
            the beginning of the range, the last its end.
        part_of: Gives the part of the range between two of these positions.
    """

    def __init__(self, cuts: list[int], part_of: Callable[[int, int], LogRange]) -> None:
        self._cuts = cuts
        self._part_of = part_of
        self._known: dict[int, RowText] = {}
        self._known_of: int | None = None

    def of(self, positions: Iterable[int]) -> list[RowText]:
        """The texts of some rows events.

        Args:
            positions: Positions of the events in the file, ascending.

        Raises:
            CodecError: With file and position, if the log is damaged.
            StoreError: If the file cannot be read.
        """
        return [self._text_at(position) for position in positions]

    def _text_at(self, position: int) -> RowText:
        number = min(max(bisect_right(self._cuts, position) - 1, 0), len(self._cuts) - 2)
        if number != self._known_of:
            start, stop = self._cuts[number], self._cuts[number + 1]
            self._known = dict(_texts_in(self._part_of(start, stop)))
            self._known_of = number
        return self._known.get(position, _NOTHING)


def _texts_in(piece: LogRange) -> Iterator[tuple[int, RowText]]:
    """Give the position and text of each rows event of a range that stands alone in the log."""
    head = description_of(piece)
    start = max(piece.start, head.next_position)
    statement: str | None = None
    thread_id: int | None = None
    with closing(open_range(piece)) as source:
        walker = Walker(
            chunks_of(source.reread(start)),
            file=named(piece.uri),
            position=start,
            format_=format_of(head),
        )
        for event in walker.events():
            body = event.body
            if isinstance(body, GtidEvent | FormatDescriptionEvent):
                statement, thread_id = None, None
            elif isinstance(body, AnnotateRowsEvent | RowsQueryEvent):
                statement = storable(body.query.decode("utf-8", "surrogateescape"))
            elif isinstance(body, QueryEvent):
                statement, thread_id = None, body.thread_id
            elif isinstance(body, RowsEvent):
                yield event.position, RowText(statement, thread_id)
