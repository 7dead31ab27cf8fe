"""A group that is too large to be held → its part in each binlog, by reading it twice.

The first time says what stays of it, event by event, and how long that is; the second time it is
written. Only groups of rows and their brackets can be routed so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.cascades import StatementWatch
from binlane.binlogs.routing.cut_group import MARKS
from binlane.binlogs.routing.query_events import NO_TABLES, confined, statement_of
from binlane.binlogs.routing.routed_group import TEXT_LEFT_OUT, BinlogPart, RoutedBinlog
from binlane.binlogs.routing.row_images import ImageCutter
from binlane.binlogs.routing.row_selection import STATEMENT_TEXTS, table_name
from binlane.binlogs.routing.texts import TextNames, names_in
from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, Flavor, RowsFlag
from binlane.log.grouping.placing import fitted, moved, place
from binlane.log.grouping.raw import LargeGroup
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.names import TableName
from binlane.statements.sql.servers import RowImage, smaller

_PIECE_BYTES: Final = 1 << 20
_BRACKETS: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK"})
_WHOLE: Final = frozenset({EventType.LARGE_TRANSACTION_HEADER, EventType.INCIDENT})
_DROP, _COPY, _END, _PUT = range(4)


class LargePart:
    """The part of a large group that one binlog gets.

    Args:
        binlog: The binlog, which has everything before the group.
        large: The group, which is read from its bytes again.
        image: Images to which the session that made the group wants its rows cut.
        reason: Reason why rows stand in the places of statements; empty if there is none.
        is_left_out: True if the binlog gets nothing of the group, as its plan says.

    Attributes:
        has_effect: True if something of the group stays.
    """

    def __init__(
        self,
        binlog: RoutedBinlog,
        large: LargeGroup,
        image: RowImage = RowImage.FULL,
        reason: str = "",
        *,
        is_left_out: bool = False,
    ) -> None:
        self._binlog = binlog
        self._reasons = (reason,) if reason else ()
        self._is_left_out = is_left_out
        self._image = smaller(binlog.definition.row_image, image)
        self._large = large
        self._format = large.format
        self._scope = binlog.definition.scope
        self._converts = binlog.may_have_tables_info or self._format.has_tables_info
        self._actions = bytearray()
        self._maps = TableMaps()
        self._texts: list[tuple[int, TextNames]] = []
        self._map_places: list[int] = []
        self._changed: set[str] = set()
        self._watch = StatementWatch(binlog.memory.links, self._scope)
        self._filled: set[TableName] = set()
        self._has_outside = False
        self._last_rows = -1
        self._texts_left_out = 0
        self.has_effect = False

    def feed(self, event: Event) -> None:
        """Take the next event, the first time.

        Raises:
            UnexpectedError: If it is none of rows and their brackets, or if rows may have changed
                others in scope.
            CodecError: If a rows event has no TABLE_MAP.
        """
        body, at = event.body, len(self._actions)
        self._actions.append(_COPY)
        if self._scope.is_unscoped:
            self.has_effect = True
            is_xa = prepared_by(event) or finished_by(event)
            if is_xa or event.header.type_code in _WHOLE:
                raise UnexpectedError
            holds_statements = isinstance(body, TransactionPayloadEvent)
            if self._converts and (holds_statements or statement_of(body) is not None):
                self._see_bracket(body, at)
        elif isinstance(body, QueryEvent):
            self._see_bracket(body, at)
        elif isinstance(body, STATEMENT_TEXTS):
            self._texts.append((at, names_in(body.query)))
        elif isinstance(body, TableMapEvent):
            self._maps.feed(event, file=self._large.file)
            self._map_places.append(at)
            self._see_map(body, at)
        elif isinstance(body, RowsEvent):
            self._see_rows(event, body, at)
        elif not isinstance(body, GtidEvent | MysqlGtidEvent | XidEvent):
            raise UnexpectedError

    def _see_bracket(self, body: Body, at: int) -> None:
        if not isinstance(body, QueryEvent) or body.query not in _BRACKETS:
            raise UnexpectedError
        if self._converts or self._inside(body) != body:
            self._actions[at] = _PUT

    def _inside(self, body: QueryEvent) -> QueryEvent:
        """A bracket as it stands in the binlog's file."""
        inside = confined(body, self._scope, None)
        return inside.in_form(NO_TABLES if self._binlog.has_tables_info else None)

    def _see_map(self, body: TableMapEvent, at: int) -> None:
        if table_name(body) == MARKS:
            raise UnexpectedError
        self._watch.see_map(body)
        self._filled.add(self._scope.key(table_name(body)))
        if self._scope.includes(table_name(body)):
            self._changed.add(body.table)
        else:
            self._actions[at] = _DROP
            self._has_outside = True

    def _see_rows(self, event: Event, body: RowsEvent, at: int) -> None:
        owner = self._maps.feed(event, file=self._large.file)
        if owner is not None:
            self._watch.see_rows(body, owner)
        if owner is not None and self._scope.includes(table_name(owner)):
            self._last_rows = at
        else:
            self._actions[at] = _DROP
        if body.ends_statement:
            self._end_statement(at)

    def _end_statement(self, at: int) -> None:
        if self._watch.end():
            raise UnexpectedError
        has_rows = self._last_rows >= 0
        for place_ in () if has_rows else self._map_places:
            self._actions[place_] = _DROP
        changed = set[str]() if self._has_outside else self._changed
        for place_, names in self._texts:
            if not (has_rows and names.is_inside(self._scope, changed)):
                self._actions[place_] = _DROP
                self._texts_left_out += has_rows
        if has_rows and self._last_rows != at:
            self._actions[self._last_rows] = _END
        self.has_effect |= has_rows
        self._texts, self._map_places, self._last_rows = [], [], -1
        self._changed, self._has_outside = set(), False

    def end(self) -> None:
        """The group has ended, the first time.

        Raises:
            UnexpectedError: If its last statement has not.
        """
        if self._last_rows >= 0:
            raise UnexpectedError
        for place_ in (*self._map_places, *(place_ for place_, _ in self._texts)):
            self._actions[place_] = _DROP

    def parts(self, read: Callable[[], Iterator[Event]]) -> Iterator[BinlogPart]:
        """Give the part in pieces, once the group was read the first time.

        Args:
            read: Gives the group's events from its first on, each time anew.
        """
        binlog, gtid = self._binlog, self._large.gtid
        memory = binlog.memory.with_rows(self._filled)
        if self._is_left_out or not self.has_effect:
            yield BinlogPart(gtid=gtid, memory=memory)
            return
        rotates_at = None if binlog.room_bytes else self._large.timestamp
        yield BinlogPart(memory=memory, rotates_at=rotates_at, reasons=self._reasons)
        size = self._size(read()) if self._format.flavor is Flavor.MYSQL else 0
        left_out = ((TEXT_LEFT_OUT, self._texts_left_out),) if self._texts_left_out else ()
        cutter = None if self._image is RowImage.FULL else ImageCutter(self._image)
        data, events, rows_events, clock = bytearray(), 0, 0, 0
        for event, action in zip(self._cut(read(), cutter), self._actions, strict=False):
            if action == _DROP:
                continue
            body = event.body
            if isinstance(body, MysqlGtidEvent):
                others = size - len(body.encode(self._format))
                body = fitted(body, others, binlog.format, clock=binlog.clock_base)
                clock = body.sequence_number or 0
            data += self._bytes(event, body, action, binlog.size_bytes + len(data))
            events += 1
            rows_events += isinstance(body, RowsEvent)
            if len(data) >= _PIECE_BYTES:
                yield BinlogPart(data, clock=clock, cutter=cutter)
                data = bytearray()
        yield BinlogPart(
            data,
            groups=1,
            events=events,
            rows_events=rows_events,
            gtid=gtid,
            clock=clock,
            cutter=cutter,
            omissions=left_out,
        )

    def _size(self, events: Iterable[Event]) -> int:
        """Length of the part in bytes, which MySQL's GTID event says."""
        cutter = None if self._image is RowImage.FULL else ImageCutter(self._image)
        pairs = zip(self._cut(events, cutter), self._actions, strict=False)
        return sum(self._length(event, action) for event, action in pairs if action != _DROP)

    def _cut(self, events: Iterable[Event], cutter: ImageCutter | None) -> Iterable[Event]:
        """Events with the row images that the binlog is to have."""
        if cutter is None:
            return events
        return (cutter.event(event, self._format) for event in events)

    def _length(self, event: Event, action: int) -> int:
        if action == _PUT and isinstance(event.body, QueryEvent):
            inside = self._inside(event.body)
            return HEADER_LENGTH + len(inside.encode(self._format)) + CHECKSUM_LENGTH
        if event.raw is None:
            return HEADER_LENGTH + len(event.body.encode(self._format)) + CHECKSUM_LENGTH
        return event.header.length - self._format.checksum_length + CHECKSUM_LENGTH

    def _bytes(self, event: Event, body: object, action: int, position: int) -> bytes:
        format_ = self._binlog.format
        if action == _PUT and isinstance(body, QueryEvent):
            return place(replace(event, body=self._inside(body)), position, format_)
        if action == _END and isinstance(body, RowsEvent):
            ended = replace(body, flags=body.flags | RowsFlag.STMT_END)
            return place(replace(event, body=ended), position, format_)
        if isinstance(body, MysqlGtidEvent):
            return place(replace(event, body=body), position, format_)
        if event.raw is None:
            return place(event, position, format_)
        return moved(event, position, self._format)


def feed_parts(
    parts: Sequence[LargePart], read: Callable[[], Iterator[Event]], large: LargeGroup
) -> None:
    """Read a large group the first time, for its parts in some binlogs.

    Args:
        parts: Parts of the group, one for each binlog.
        read: Gives the group's events from its first on, each time anew.
        large: The group that the events are of.

    Raises:
        UnexpectedError: If the group has other events than rows and their brackets.
        CodecError: If the group is damaged.
    """
    for event in read():
        try:
            for part in parts:
                part.feed(event)
        except CodecError as error:
            raise error.at(large.file, event.position) from None
    for part in parts:
        part.end()
