"""The one value that flows through binlane: an event group, and how a run of events is cut into them.

An event group is what replicas apply as one: from one GTID event to the next (MariaDB's word;
MySQL calls it a transaction). A TRANSACTION_PAYLOAD is one event here, whatever it holds. Events
that belong to the log and not to a change (FORMAT_DESCRIPTION, ROTATE, GTID_LIST …) come as control
groups of one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.positions import AnyGtid, Gtid

GTID_TYPES: Final = frozenset(
    {
        EventType.GTID,
        EventType.GTID_LOG,
        EventType.ANONYMOUS_GTID_LOG,
        EventType.GTID_TAGGED_LOG,
    }
)
CONTROL_TYPES: Final = frozenset(
    {
        EventType.START_V3,
        EventType.STOP,
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.PREVIOUS_GTIDS_LOG,
        EventType.BINLOG_CHECKPOINT,
        EventType.GTID_LIST,
        EventType.START_ENCRYPTION,
    }
)
# These come before the event that makes a standalone change, and do not end it.
CONTEXT_TYPES: Final = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
        EventType.ANNOTATE_ROWS,
        EventType.ROWS_QUERY,
        EventType.TABLE_MAP,
        EventType.IGNORABLE,
        EventType.LARGE_TRANSACTION_HEADER,
        EventType.TRANSACTION_CONTEXT,
        EventType.CREATE_FILE,
    }
)
# Outside of a group they stand alone: MariaDB writes incidents without a GTID, MySQL within one.
LONE_NAMES: Final = frozenset({"UNKNOWN", "INCIDENT", "IGNORABLE", "LARGE_TRANSACTION_HEADER"})
END_TYPES: Final = frozenset(
    {
        EventType.XID,
        EventType.XA_PREPARE_LOG,
        EventType.TRANSACTION_PAYLOAD,
        EventType.INCIDENT,
    }
)
END_QUERIES: Final = frozenset({b"COMMIT", b"ROLLBACK"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGroup:
    """The events that replicas apply as one.

    Attributes:
        gtid: None in control groups, in anonymous ones, and in logs without GTIDs.
        events: The events in file order, from the GTID event to the one that ends the group.
        file: Base name of the file they stand in.
        is_control: True if this is one event of the log itself.
        is_complete: False where the log ends or begins anew before the group does: its server
            crashed, and replicas roll it back.
    """

    gtid: AnyGtid | None
    events: tuple[Event, ...]
    file: str
    is_control: bool = False
    is_complete: bool = True

    @property
    def mariadb_gtid(self) -> Gtid | None:
        """The GTID, if it is one of MariaDB's."""
        return self.gtid if isinstance(self.gtid, Gtid) else None

    @property
    def position(self) -> int:
        """Start of the group in its file, in bytes."""
        return self.events[0].position

    @property
    def next_position(self) -> int:
        """Start of the next group in the file, in bytes."""
        return self.events[-1].next_position

    @property
    def timestamp(self) -> int:
        """Seconds since 1970 of the last event, which ended the group."""
        return self.events[-1].header.timestamp

    @property
    def size_bytes(self) -> int:
        """Bytes of all events."""
        return sum(event.header.length for event in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of an event among event groups.

    Attributes:
        gtid: The GTID of the event's group; None in control events, anonymous groups and logs
            without GTIDs.
        begins: True if it is the first of a group, which cuts off one that is still open.
        ends: True if it is the last of its group.
        is_control: True if it belongs to the log itself; it then begins and ends.
    """

    gtid: AnyGtid | None
    begins: bool
    ends: bool
    is_control: bool = False


_CONTROL_PLACE: Final = Place(gtid=None, begins=True, ends=True, is_control=True)


class GroupTracker:
    """Determines the place of each event of a run among event groups, without holding any.

    Events inside a TRANSACTION_PAYLOAD may be fed too: they neither begin nor end a group, and
    have the GTID of the carrier before them.
    """

    def __init__(self) -> None:
        self._is_open = False
        self._gtid: AnyGtid | None = None
        self._is_transaction = False
        self._last_gtid: AnyGtid | None = None

    def feed(self, event: Event) -> Place:
        """Take one event of a file; return what it completes: mostly nothing or one group."""
        if event.inner:
            return Place(gtid=self._last_gtid, begins=False, ends=False)
        type_code = event.header.type_code
        is_control = type_code in CONTROL_TYPES
        if is_control or type_code in GTID_TYPES:
            self._close()
        if is_control or (not self._is_open and not _begins_group(event)):
            return _CONTROL_PLACE
        if type_code in GTID_TYPES:
            self._gtid = gtid_of(event)
        if isinstance(event.body, GtidEvent):
            self._is_transaction = not event.body.is_standalone
        elif is_begin(event):
            self._is_transaction = True
        ends = _ends_group(event, is_transaction=self._is_transaction)
        place = Place(gtid=self._gtid, begins=not self._is_open, ends=ends)
        self._is_open, self._last_gtid = True, self._gtid
        if ends:
            self._close()
        return place

    def resume(self, gtid: AnyGtid | None, *, is_transaction: bool) -> None:
        """Go on inside an open group whose events so far were read elsewhere."""
        self._is_open, self._is_transaction = True, is_transaction
        self._gtid = self._last_gtid = gtid

    def _close(self) -> None:
        self._is_open, self._gtid, self._is_transaction = False, None, False


class Grouper:
    """Cuts a run of events into event groups.

    Attributes:
        file: The file that events stand in; whoever feeds events of another sets it.
    """

    def __init__(self, *, file: str = "") -> None:
        self.file = file
        self._tracker = GroupTracker()
        self._events: list[Event] = []
        self._gtid: AnyGtid | None = None

    @property
    def is_open(self) -> bool:
        """True if a group has begun that has not ended."""
        return bool(self._events)

    def feed(self, event: Event) -> Iterator[EventGroup]:
        """Take one event of a file; return what it completes: mostly nothing or one group."""
        assert not event.inner, "a group holds carriers, not what is inside of them"
        place = self._tracker.feed(event)
        if place.begins:
            yield from self.finish()
        self._events.append(event)
        self._gtid = place.gtid
        if place.ends:
            yield self._close(is_control=place.is_control)

    def finish(self) -> Iterator[EventGroup]:
        """The group that is still open, marked as not complete."""
        if self._events:
            yield self._close(is_complete=False)

    def _close(self, *, is_control: bool = False, is_complete: bool = True) -> EventGroup:
        group = EventGroup(
            gtid=self._gtid,
            events=tuple(self._events),
            file=self.file,
            is_control=is_control,
            is_complete=is_complete,
        )
        self._events = []
        return group


def group_events(events: Iterable[Event], *, file: str) -> Iterator[EventGroup]:
    """The event groups of one file, the last one marked where the file ends inside it."""
    grouper = Grouper(file=file)
    for event in events:
        yield from grouper.feed(event)
    yield from grouper.finish()


def gtid_of(event: Event) -> AnyGtid | None:
    """The GTID that an event begins; None for an anonymous one and for every other event."""
    if isinstance(event.body, GtidEvent):
        return event.body.gtid(event.header.server_id)
    if event.header.type_code not in GTID_TYPES:
        return None
    from binlane.log.codec.mysql_transaction import MysqlGtidEvent  # noqa: PLC0415  # as the event was

    return event.body.gtid if isinstance(event.body, MysqlGtidEvent) else None


def whole_group(events: Iterable[Event]) -> Iterator[Event]:
    """Return the events of the first group."""
    tracker = GroupTracker()
    for event in events:
        place = tracker.feed(event)
        yield event
        if place.ends:
            return


def _begins_group(event: Event) -> bool:
    """True if an event outside of any group opens one."""
    return event.header.type_name not in LONE_NAMES


def is_begin(event: Event) -> bool:
    """True if an event is a statement that opens a transaction."""
    body = event.body
    return isinstance(body, QueryEvent) and (
        body.query == b"BEGIN" or body.query.startswith((b"XA START", b"XA BEGIN"))
    )


def _ends_group(event: Event, *, is_transaction: bool) -> bool:
    type_code, body = event.header.type_code, event.body
    if type_code in END_TYPES:
        return True
    if isinstance(body, QueryEvent) and body.query in END_QUERIES:
        return True
    if is_transaction or type_code in GTID_TYPES or type_code in CONTEXT_TYPES:
        return False
    if event.header.flags & HeaderFlag.IGNORABLE and event.header.type_name == "UNKNOWN":
        return False
    return not isinstance(body, RowsEvent) or body.ends_statement
