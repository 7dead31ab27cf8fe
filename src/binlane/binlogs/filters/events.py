"""A log's events → those that a filter lets through, group by group (seed 003, sections 4 to 6).

A change passes by the tables that an event writes. BEGIN, COMMIT and GTID, and the events before a
statement for its sake (INTVAR, RAND, USER_VAR, the text of its rows), go with it; of a group with
no change left nothing is given, or an empty group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.binlogs.filters.filter_state import FilterState, FilterVerdict
from binlane.binlogs.filters.filtered_rows import RowStatements, is_of_rows
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.filters.schema_objects import SchemaObjects
from binlane.binlogs.filters.statement_concern import Concern, concern_of
from binlane.binlogs.routing.payload_selection import select_inside
from binlane.binlogs.routing.query_events import with_text
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.load_data import DeleteFileEvent, ExecuteLoadQueryEvent, FileBlockEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.row_count import count_images
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.log.grouping.event_group import END_QUERIES, GTID_TYPES, EventGroup, GroupTracker
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.statements.sql.statement_kinds import WRITING_KINDS
from binlane.statements.sql.tables_info import encode_tables

CONTEXT_TYPES: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
# The data of files may be too large to be held until the statement that loads it; an INCIDENT may
# mean any table.
_ALWAYS_PRINTED: Final = frozenset(
    {EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.INCIDENT}
)
_NOTES_MAX: Final = 1000
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK", b"SAVEPOINT", b"RELEASE SAVEPOINT", b"XA ")


class EventFilter:
    """Gives the events that concern wanted tables, and only those.

    Attributes:
        state: The tables wanted by now: they change with renames and tables that could not be made.
    """

    def __init__(
        self,
        state: FilterState,
        note: Callable[[str], None],
        known: SchemaObjects | None = None,
        format_: Format | None = None,
        leave_out: Callable[[RowsEvent, TableMapEvent, str], None] | None = None,
    ) -> None:
        """Start before the first event.

        Args:
            state: The tables wanted before the first event.
            note: Called with a remark, with a place, where the rules do not plainly say what is
                left out.
            known: The objects of the log's server; None where there is no schema.
            format_: Format of the log, if events are fed as they stand in it; None if each rows
                event that was cut up follows its pieces as a whole.
            leave_out: Called with rows of other tables, as `RowStatements` does; None to count
                those of tables that the rules name.
        """
        self.state = state
        self._note = note
        self._known = known
        self._tracker = GroupTracker()
        terms = state.terms
        self._takes_pieces = format_ is not None
        kinds = terms.rows if terms.has_kinds else None
        self._rows = RowStatements(
            state.includes, kinds, format_, leave_out=leave_out or self._leave_out
        )
        # Events of the group that are needed only if something else of it is given.
        self._frame: list[Event] = []
        self._context: list[Event] = []
        self._is_given = False
        self._last_left: Event | None = None

    def feed(self, event: Event, *, file: str) -> Iterator[Event]:
        """Take the next event; give those that are let through, in order.

        Raises:
            CodecError: If a rows event has no TABLE_MAP, or if the tables info or context of a
                statement is damaged.
        """
        # The events inside a compressed transaction belong to the group that its carrier ends.
        place = None if event.inner else self._tracker.feed(event)
        if place is not None and place.begins:
            yield from self.finish()
        if place is not None and place.is_control:
            follow_control(event, self.state)
            if self._known is not None:
                self._known.feed(event)
            yield event
            return
        has_given = False
        for kept in self._select(event, file):
            has_given = True
            if not self._is_given:
                yield from self._frame
                self._frame, self._is_given = [], True
            yield kept
        if not has_given:
            self._last_left = event
        if self._known is not None:
            self._known.feed(event)  # what it was about was there before it
        if place is not None and place.ends and not _is_carrier(event):
            yield from self.finish()

    def finish(self) -> Iterator[Event]:
        """Give the held events of a group that has no end, and an empty group if nothing of it is left."""
        rows = list(self._rows.finish())
        if rows and not self._is_given:
            yield from self._frame
        yield from rows
        if self.state.terms.keeps_empty_groups and not (rows or self._is_given):
            yield from empty_group(self._frame, self._last_left)
        self._frame, self._context, self._is_given = [], [], False
        self._last_left = None

    def frame(self) -> list[Event]:
        """Give the group's events that stand before an event that is given, however it came to that."""
        frame, self._frame, self._is_given = self._frame, [], True
        return frame

    def _leave_out(self, rows: RowsEvent, table_map: TableMapEvent, place: str) -> None:
        """Count rows that are left out of a table that the rules name."""
        if (note := lost_rows(rows, table_map, self.state, place)) is not None:
            self._note(note)

    def _select(self, event: Event, file: str) -> Iterator[Event]:
        """Give the wanted parts of one event, without the frame of its group."""
        type_code = event.header.type_code
        if is_of_rows(event) or (self._takes_pieces and type_code == EventType.PARTIAL_ROW_DATA):
            yield from self._rows.feed(event, file=file)
        elif type_code in CONTEXT_TYPES:
            self._context.append(event)
        elif isinstance(event.body, QueryEvent):
            yield from self._select_query(event, event.body, file)
        elif isinstance(event.body, ExecuteLoadQueryEvent):
            yield from self._select_query(event, event.body.statement, file)
        elif self._is_given or type_code in _ALWAYS_PRINTED:
            yield event
        else:
            xid = prepared_by(event)
            if xid is not None:
                self.state.empty_xa.add(xid)
            self._frame.append(event)

    def _select_query(self, event: Event, body: QueryEvent, file: str) -> Iterator[Event]:
        context, self._context = self._context, []
        if is_frame(body):
            yield from self._select_frame(event)
            return
        place = f"{file}:{event.position}"
        verdict = self.state.take(concern_of(body, self._known), place)
        if verdict.note:
            self._note(f"{place}: {verdict.note}")
        if verdict.passes:
            yield from context
            yield event if verdict.text is None else _rewritten(event, body, verdict)

    def _select_frame(self, event: Event) -> Iterator[Event]:
        """XA COMMIT and ROLLBACK go with the XA PREPARE, which another group holds."""
        xid = finished_by(event)
        empty = self.state.empty_xa
        if self._is_given or (xid is not None and xid not in empty):
            yield event
        else:
            self._frame.append(event)
        if xid is not None:
            empty.discard(xid)


def follow_control(event: Event, state: FilterState) -> None:
    """Have a filter know of an event that stands between groups."""
    if isinstance(event.body, FormatDescriptionEvent) and event.body.created:
        state.restarted()


def lost_rows(
    rows: RowsEvent, table_map: TableMapEvent, state: FilterState, place: str
) -> str | None:
    """Count the rows of an event that is left out, if the rules name its table.

    Args:
        rows: The rows event that is left out.
        table_map: Table map of the rows event.
        state: State that counts the rows.
        place: Place of the event, as FILE:POSITION.

    Returns:
        A note for the user, with the place; None if there is nothing to say.
    """
    table = table_map.name
    if not state.is_lost(table):
        return None
    note = state.lose(table, count_images(rows, table_map), place)
    return f"{place}: {note}" if note else None


def judged(body: QueryEvent, state: FilterState, place: str | None) -> bool:
    """True if a statement passes; the state follows its effects on tables.

    Args:
        body: QUERY event of the statement.
        state: State that counts the statement's losses, and keeps the notes on them.
        place: Place of the statement, as FILE:POSITION; None if nothing is to be counted or noted.

    Raises:
        CodecError: If the statement's tables info or context is damaged.
    """
    return is_frame(body) or passes(concern_of(body), state, place)


def passes(concern: Concern, state: FilterState, place: str | None) -> bool:
    """True if a statement passes that begins or ends no group; arguments are as of `judged`."""
    verdict = state.take(concern, place)
    if verdict.row_note and place is not None and len(state.notes) < _NOTES_MAX:
        state.notes.append(f"{place}: {verdict.row_note}")
    return verdict.passes


class GroupFilter:
    """Gives the part of event groups that is let through.

    Attributes:
        state: The tables wanted by now.
    """

    def __init__(
        self,
        state: FilterState,
        note: Callable[[str], None],
        known: SchemaObjects | None = None,
    ) -> None:
        """Start before the first group; arguments as of `EventFilter`."""
        self.state = state
        self._note = note
        self._known = known

    def judge_text(self, event: Event) -> bool | None:
        """True if a statement passes that only changes rows; None if it must be judged in its place.

        A statement must be judged in its place if it is noted or counted, always where there is a
        schema, and while there are temporary tables.
        """
        body = event.body
        if self._known is not None or not isinstance(body, QueryEvent) or is_frame(body):
            return None
        concern = concern_of(body)
        if concern.kind not in WRITING_KINDS or self.state.goes_by_session:
            return None
        verdict = self.state.judge(concern)
        return None if verdict.note or verdict.lost else verdict.passes

    def group(self, group: EventGroup, format_: Format) -> EventGroup | None:
        """Give the part of a group that is left; None if nothing is.

        Args:
            group: A complete group, or a control group, which stays.
            format_: Format of the FORMAT_DESCRIPTION before it.

        Raises:
            CodecError: With file and position, if an event of the group is damaged.
        """
        if group.is_control:
            follow_control(group.events[0], self.state)
            if self._known is not None:
                self._known.feed(group.events[0])
            return group
        events = EventFilter(self.state, self._note, self._known, format_)
        kept: list[Event] = []
        for event in group.events:
            try:
                if isinstance(event.body, TransactionPayloadEvent):
                    kept += self._carrier(event, event.body, events, group.file, format_)
                else:
                    kept += events.feed(event, file=group.file)
            except CodecError as error:
                raise error.at(group.file, event.position) from None
        kept += events.finish()
        kept = _without_orphans(kept)
        return replace(group, events=tuple(kept)) if kept else None

    def lose_rows(self, rows: RowsEvent, table_map: TableMapEvent, place: str) -> None:
        """Count rows that are left out, if the rules name their table; arguments as of `lost_rows`."""
        if (note := lost_rows(rows, table_map, self.state, place)) is not None:
            self._note(note)

    def rows(
        self, events: Iterable[Event], format_: Format, *, file: str, losses: Losses
    ) -> Iterator[Event]:
        """Give the part of a group of rows that is left, as often as need be: the group is not held.

        Args:
            events: Events of one group, in order.
            format_: Format of the FORMAT_DESCRIPTION before them.
            file: Name of their file, for errors.
            losses: Counter of the rows that are left out, which `count` counts.

        Raises:
            UnexpectedError: If the group holds statements, which are judged once.
            CodecError: If the group is damaged.
        """

        def leave_out(rows: RowsEvent, table_map: TableMapEvent, place: str) -> None:
            table = table_map.name
            if self.state.is_lost(table):
                losses.lose(table, place, images=count_images(rows, table_map))

        found = EventFilter(self.state, self._note, None, format_, leave_out)
        for event in events:
            body = event.body
            if isinstance(body, QueryEvent) and not (
                body.query in END_QUERIES or body.query == b"BEGIN"
            ):
                raise UnexpectedError
            if isinstance(body, TransactionPayloadEvent | ExecuteLoadQueryEvent):
                raise UnexpectedError
            yield from found.feed(event, file=file)
        yield from found.finish()

    def count(self, losses: Losses) -> None:
        """Count rows that are left out of tables that the rules name."""
        for table, place in losses.places.items():
            if note := self.state.lose(table, losses.images[table], place):
                self._note(f"{place}: {note}")

    def _carrier(
        self,
        event: Event,
        payload: TransactionPayloadEvent,
        events: EventFilter,
        file: str,
        format_: Format,
    ) -> list[Event]:
        """A compressed transaction with what is left inside of it, and its frame before it."""

        def select(inner: Iterable[Event]) -> list[Event]:
            inside = EventFilter(self.state, self._note, self._known)
            found = [kept for each in inner for kept in inside.feed(each, file=file)]
            return [*found, *inside.finish()]

        carrier = select_inside(event, payload, select, format_=format_, file=file)
        frame = events.frame()
        if carrier is not None:
            return [*frame, carrier]
        return list(empty_group(frame, event)) if self.state.terms.keeps_empty_groups else []


def empty_group(frame: Iterable[Event], last: Event | None) -> Iterator[Event]:
    """Give an empty group in place of one with nothing left: its GTID, and a transaction without changes.

    Args:
        frame: Events that begin and end the group, as far as they were not left out.
        last: The last event that was left out.
    """
    events = list(frame)
    if not events or events[0].header.type_code not in GTID_TYPES:
        return
    first, *rest = events
    if isinstance(first.body, GtidEvent):
        flags = first.body.flags & ~GtidFlag.STANDALONE
        yield replace(first, body=replace(first.body, flags=flags))
    else:
        yield first
        if not any(_is_begin(event) for event in rest):
            yield _query(first, b"BEGIN")
    yield from rest
    if not (rest and _is_end(rest[-1])):
        yield _query(last or first, b"COMMIT")


def _query(like: Event, text: bytes) -> Event:
    """A Query event at the place of another one."""
    if isinstance(like.body, QueryEvent):
        # A log is of one form.
        info = None if like.body.tables_info is None else b""
        body = replace(like.body, query=text, tables_info=info, record=None)
    else:
        body = QueryEvent(
            thread_id=0, execution_time=0, error_code=0, status_vars=b"", database=b"", query=text
        )
    return replace(like, header=replace(like.header, type_code=EventType.QUERY), body=body)


def _is_begin(event: Event) -> bool:
    return isinstance(event.body, QueryEvent) and event.body.query == b"BEGIN"


def _is_end(event: Event) -> bool:
    body = event.body
    return isinstance(body, XidEvent) or (
        isinstance(body, QueryEvent) and body.query in END_QUERIES
    )


def _without_orphans(events: list[Event]) -> list[Event]:
    """Without the pieces of files that no statement which is left loads."""
    loaded = {
        event.body.file_id for event in events if isinstance(event.body, ExecuteLoadQueryEvent)
    }
    orphans = [
        event
        for event in events
        if isinstance(event.body, FileBlockEvent | DeleteFileEvent)
        and event.body.file_id not in loaded
    ]
    if not orphans:
        return events
    rest = [event for event in events if event not in orphans]
    has_effect = any(not _is_of_frame(event) for event in rest)
    return rest if has_effect else []


def _is_of_frame(event: Event) -> bool:
    if event.header.type_code in GTID_TYPES or isinstance(event.body, XidEvent):
        return True
    return isinstance(event.body, QueryEvent) and is_frame(event.body)


def _rewritten(event: Event, body: QueryEvent, verdict: FilterVerdict) -> Event:
    assert verdict.text is not None, "it has another text"
    made = with_text(body, verdict.text)
    if made.tables_info is not None:
        made = replace(made, tables_info=encode_tables(verdict.tables, made.database) or b"")
    return replace(event, body=made)


def _is_carrier(event: Event) -> bool:
    return event.header.type_code == EventType.TRANSACTION_PAYLOAD


def is_frame(body: QueryEvent) -> bool:
    """True if a statement only delimits transactions: it passes where anything in them does."""
    return body.query[:20].upper().startswith(_FRAMES) and body.query[:9].upper() != b"BEGIN NOT"
