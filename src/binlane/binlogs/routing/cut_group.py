"""An event group of the source, cut where its statements end, and its rows held against the sections of a plan.

Rows end with STMT_END once for each part of a statement that rolls back alike. A TABLE_MAP says which tables
a statement locks, so which tables are mapped hangs on the statement alone; which rows there are hangs on data
and is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlogs.routing.row_selection import PIECES, ends_statement, table_name, whole_rows
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import END_QUERIES, GTID_TYPES, EventGroup, is_begin
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.sections import Section
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import StatementKind

MARKS: Final = TableName("binlane", "marks")
"""Table whose rows give a GTID to changes the source does not log; in no binlog (decision 0042)."""

MARK_BYTES_MAX: Final = 512
"""A TRANSACTION_PAYLOAD that may be a mark has fewer."""

CONTROL: Final = frozenset(
    {
        StatementKind.SAVEPOINT,
        StatementKind.ROLLBACK_TO,
        StatementKind.RELEASE_SAVEPOINT,
    }
)

_MAKING: Final = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT})

_ENDS: Final = frozenset({EventType.XID, EventType.XA_PREPARE_LOG})

_XA_END: Final = b"XA END "


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The group is not the planned one, or cannot be expressed as planned: it goes as rows.

    Attributes:
        reason: Cause of the mismatch, naming no object.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Control:
    """A statement on savepoints.

    Attributes:
        kind: Kind of statement, such as SAVEPOINT.
        name: The savepoint, in small letters.
        event: The event as the source logged it.
    """

    kind: StatementKind
    name: str
    event: Event | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows up to a STMT_END, with what stands before them.

    Attributes:
        events: The statement that made the table, if it is a CREATE TABLE … SELECT, the text for
            people, TABLE_MAPs and rows.
        mapped: The tables of the TABLE_MAPs.
        changed: Those of them that have rows.
    """

    events: tuple[Event, ...]
    mapped: frozenset[TableName]
    changed: frozenset[TableName]

    @property
    def makes_table(self) -> bool:
        """True if a statement stands before the rows, or in their place."""
        return isinstance(self.events[0].body, QueryEvent)

    @property
    def made(self) -> frozenset[TableName]:
        """The table that the statement before the rows makes; none without one."""
        body = self.events[0].body
        if not isinstance(body, QueryEvent):
            return frozenset()
        return frozenset(logged_statement(body).facts().effects.writes)

    @property
    def is_mark(self) -> bool:
        """True if the piece only marks a place in the log."""
        return self.mapped == {MARKS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CutGroup:
    """An event group, cut where its statements end.

    Attributes:
        head: The GTID event, and MySQL's BEGIN.
        items: Pieces and statements on savepoints in between, in order.
        end: COMMIT, or XA END and the preparing; empty where one statement stands alone.
    """

    head: tuple[Event, ...]
    items: tuple[Piece | Control, ...]
    end: tuple[Event, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The rows of the client."""
        return tuple(one for one in self.items if isinstance(one, Piece) and not one.is_mark)

    @property
    def has_mark(self) -> bool:
        """True if the group holds a mark."""
        return any(isinstance(one, Piece) and one.is_mark for one in self.items)

    @property
    def without_marks(self) -> tuple[Event, ...]:
        """The events of the group without marks."""
        middle = (_events_of(one) for one in self.items if not is_mark(one))
        return (*self.head, *(event for events in middle for event in events), *self.end)


def is_mark(item: Piece | Control) -> bool:
    """True if an item only marks a place in the log."""
    return isinstance(item, Piece) and item.is_mark


def _events_of(item: Piece | Control) -> tuple[Event, ...]:
    if isinstance(item, Piece):
        return item.events
    return () if item.event is None else (item.event,)


def cut_group(group: EventGroup, format_: Format) -> CutGroup | Mismatch:
    """Cut a group where its statements end.

    Args:
        group: A complete group with a GTID.
        format_: Format of the FORMAT_DESCRIPTION before it.
    """
    try:
        return _Cutter(group, format_).cut()
    except CodecError as error:
        return Mismatch(f"the group cannot be read: {error}")


def plain_events(group: EventGroup, format_: Format) -> tuple[Event, ...]:
    """The events of a group; those of a TRANSACTION_PAYLOAD in its place.

    Raises:
        CodecError: If the payload is broken.
    """
    last = group.events[-1]
    if not isinstance(last.body, TransactionPayloadEvent):
        return group.events
    inside = tuple(expanded(last, format_, file=group.file))[1:]
    return (*group.events[:-1], *(replace(one, inner=0, carrier_length=0) for one in inside))


class _Cutter:
    def __init__(self, group: EventGroup, format_: Format) -> None:
        self._events = plain_events(group, format_)
        self._file = group.file
        self._format = format_
        self._head: list[Event] = []
        self._items: list[Piece | Control] = []
        self._end: list[Event] = []
        self._made: list[Event] = []
        self._statement: list[Event] = []

    def cut(self) -> CutGroup | Mismatch:
        if self._events[0].header.type_code not in GTID_TYPES:
            return Mismatch("the group has no GTID")
        self._head.append(self._events[0])
        for event in self._events[1:]:
            if self._end and event.header.type_code not in _ENDS:
                return Mismatch("events stand behind the group's end")
            if not self._take(event):
                name = event.header.type_name
                return Mismatch(f"an event {name} stands where none was planned")
        if self._statement or not (self._end or self._is_lone):
            return Mismatch("the group does not end")
        self._add_made()
        return CutGroup(head=tuple(self._head), items=tuple(self._items), end=tuple(self._end))

    @property
    def _is_lone(self) -> bool:
        """True if the group is one statement, which needs no end."""
        body = self._events[0].body
        has_begun = len(self._head) > 1
        is_standalone = body.is_standalone if isinstance(body, GtidEvent) else not has_begun
        return is_standalone and len(self._made) == 1 and not self._items

    def _take(self, event: Event) -> bool:
        """Take an event; whether it belongs into a group of rows."""
        body, type_code = event.body, event.header.type_code
        if isinstance(body, PIECES):
            self._statement.append(event)
            if ends_statement(event, self._format):
                self._end_statement()
            return True
        if self._statement:
            return False
        if type_code in _ENDS:
            self._end.append(event)
            return True
        return isinstance(body, QueryEvent) and self._take_query(event, body)

    def _take_query(self, event: Event, body: QueryEvent) -> bool:
        if is_begin(event):
            self._head.append(event)
            return len(self._head) == 2 and not self._items
        if body.query in END_QUERIES or body.query.startswith(_XA_END):
            self._end.append(event)
            return True
        facts = logged_statement(body).facts()
        if facts.effects.kind in CONTROL:
            self._add_made()
            self._items.append(Control(facts.effects.kind, facts.name.lower(), event))
            return True
        is_alone = len(self._events) == 2
        if self._made or not (is_alone or facts.effects.kind in _MAKING):
            return False
        self._made.append(event)
        return True

    def _end_statement(self) -> None:
        maps, changed = TableMaps(), set[TableName]()
        mapped = {
            table_name(event.body)
            for event in self._statement
            if isinstance(event.body, TableMapEvent)
        }
        for event in self._statement:
            owner = maps.feed(whole_rows(event, self._format), file=self._file)
            if owner is not None:
                changed.add(table_name(owner))
        events = (*self._made, *self._statement)
        self._items.append(Piece(events, frozenset(mapped), frozenset(changed)))
        self._made, self._statement = [], []

    def _add_made(self) -> None:
        """Behind a statement that made a table, and filled it with nothing."""
        if self._made:
            self._items.append(Piece(tuple(self._made), frozenset(), frozenset()))
            self._made = []


def sections_of(cut: CutGroup, sections: Sequence[Section]) -> list[list[Piece]] | None:
    """The pieces of each section; None if they are not those of the group."""
    pieces = cut.pieces
    if not cut.end and not sections:
        return []  # a statement that stands alone, and is none of rows
    found = is_same_group([piece.mapped for piece in pieces], sections)
    if found is None:
        # The plan may foresee that a table is filled, and data decided otherwise.
        found = is_same_group([piece.mapped or piece.made for piece in pieces], sections)
    return None if found is None else [[pieces[number] for number in one] for one in found]


def annotated(events: Iterable[Event]) -> bytes | None:
    """The text that MariaDB wrote before the rows of a statement; None without one."""
    for event in events:
        if isinstance(event.body, AnnotateRowsEvent):
            return event.body.query
    return None


def is_same_group(
    mapped: Sequence[frozenset[TableName]], sections: Sequence[Section]
) -> list[range] | None:
    """Assign the pieces of a group to sections; None if it is not the planned group.

    Args:
        mapped: The tables that have maps in each piece.
        sections: Sections of the group's plan.
    """
    wanted = [
        frozenset(piece.tables) if piece else frozenset[TableName]()
        for section in sections
        for piece in section or (None,)
    ]
    if len(sections) == 1:
        # The tables that changed may depend on data: the parts are those of one statement.
        is_same = bool(mapped) and all_of(mapped) == all_of(wanted)
        return [range(len(mapped))] if is_same else None
    if list(mapped) != wanted:
        return None
    found, end = list[range](), 0
    for section in sections:
        start, end = end, end + max(len(section), 1)
        found.append(range(start, end))
    return found


def all_of(sets: Iterable[frozenset[TableName]]) -> frozenset[TableName]:
    """Return the tables of all sets."""
    return frozenset[TableName]().union(*sets)
