"""A group that is too large to be held → its part in each binlog, by reading it twice.

The first time says what stays of it, event by event, and how long that is; the second time it is
written. Only groups of rows and their brackets can be routed so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.cascades import StatementWatch
from binlane.binlogs.routing.planned import MARKS
from binlane.binlogs.routing.queries import NO_TABLES, confined, statement_of
from binlane.binlogs.routing.row_images import ImageCutter
from binlane.binlogs.routing.rows import STATEMENT_TEXTS, table_name
from binlane.binlogs.routing.texts import TextNames, names_in
from binlane.binlogs.store.binlog import Binlog
from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, Flavor, RowsFlag
from binlane.log.grouping.placing import fitted, moved, place
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

    Attributes:
        events: Number of events that stay.
        rows_events: Number of rows events among them.
        texts_left_out: Texts of row changes that may name something outside of the scope.
    """

    def __init__(
        self, binlog: Binlog, format_: Format, *, file: str, image: RowImage = RowImage.FULL
    ) -> None:
        self._binlog = binlog
        self._image = smaller(binlog.definition.row_image, image)
        self._format = format_
        self._file = file
        self._scope = binlog.definition.scope
        self._converts = binlog.may_have_tables_info or format_.has_tables_info
        self._actions = bytearray()
        self._maps = TableMaps()
        self._texts: list[tuple[int, TextNames]] = []
        self._map_places: list[int] = []
        self._changed: set[str] = set()
        self._watch = StatementWatch(binlog.memory.links, self._scope)
        self._filled: set[TableName] = set()
        self._has_outside = False
        self._last_rows = -1
        self._size = 0
        self._cutter: ImageCutter | None = None
        self.events = self.rows_events = self.texts_left_out = 0
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
            self._maps.feed(event, file=self._file)
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
        owner = self._maps.feed(event, file=self._file)
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
                self.texts_left_out += has_rows
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

    def remember(self) -> None:
        """Have the binlog know which tables have rows now.

        Raises:
            StoreError: As `Binlog.append`.
        """
        memory = self._binlog.memory
        self._binlog.remember(memory.with_rows(self._filled))

    def measure(self, events: Iterable[Event]) -> None:
        """Find out how long the part is, which MySQL's GTID event says."""
        for event, kept in zip(self._cut(events), self._kept(), strict=False):
            if kept:
                self._size += self._length(event, kept)

    def write(self, events: Iterable[Event]) -> None:
        """Append the part to the binlog, in pieces.

        Raises:
            StoreError: As `Binlog.append`.
        """
        binlog, data, clock = self._binlog, bytearray(), 0
        for event, kept in zip(self._cut(events), self._kept(), strict=False):
            if not kept:
                continue
            body = event.body
            if isinstance(body, MysqlGtidEvent):
                others = self._size - len(body.encode(self._format))
                body = fitted(body, others, binlog.format, clock=binlog.clock_base)
                clock = body.sequence_number or 0
            position = binlog.size_bytes + len(data)
            data += self._bytes(event, body, kept, position)
            self.events += 1
            self.rows_events += isinstance(body, RowsEvent)
            if len(data) >= _PIECE_BYTES:
                binlog.append_placed(data, groups=0, clock=clock)
                data = bytearray()
        binlog.append_placed(data, groups=1, clock=clock)
        if self._cutter is not None:
            binlog.note_uncut(self._cutter)

    def _cut(self, events: Iterable[Event]) -> Iterable[Event]:
        """Events with the row images that the binlog is to have."""
        if self._image is RowImage.FULL:
            return events
        self._cutter = cutter = ImageCutter(self._image)
        return (cutter.event(event, self._format) for event in events)

    def _kept(self) -> Iterator[int]:
        return iter(self._actions)

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


def route_large(
    binlogs: Iterable[Binlog], read: Callable[[], Iterator[Event]], format_: Format, *, file: str
) -> list[LargePart]:
    """Give binlogs their parts of a large group.

    Args:
        binlogs: Binlogs that are written to.
        read: Function that gives the group's events from its first on, each time anew.
        format_: Format of the FORMAT_DESCRIPTION before them.
        file: Name of the group's file, for errors.

    Raises:
        UnexpectedError: If the group has other events than rows and their brackets; nothing is
            written then.
        CodecError: If the group is damaged; nothing is written then.
        StoreError: As `Binlog.append`.
    """
    parts = [LargePart(binlog, format_, file=file) for binlog in binlogs]
    for event in read():
        try:
            for part in parts:
                part.feed(event)
        except CodecError as error:
            raise error.at(file, event.position) from None
    for part in parts:
        part.end()
    for part in parts:
        part.remember()
        if part.has_effect:
            if format_.flavor is Flavor.MYSQL:
                part.measure(read())
            part.write(read())
    return parts
