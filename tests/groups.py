"""Event groups and definitions made for tests, where it does not matter what a real server says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import read_groups
from binlane.errors import StoreFullError
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag, HeaderFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.positions import Gtid, GtidPosition
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode
from tests.fixture_sets import fixture_set

SERVER_ID = 1
TIMESTAMP = 1_700_000_000
_FLAGS = {EventType.GTID: int(HeaderFlag.SUPPRESS_USE)}


def source_format() -> FormatDescriptionEvent:
    """The FORMAT_DESCRIPTION of a real MariaDB 10.11 that has been running for a while."""
    name, data = fixture_set("md1011_rotation").binlogs[1]
    body = next(walk([data], file=name)).body
    assert isinstance(body, FormatDescriptionEvent)
    assert body.created == 0
    return body


def definition(name: str = "orders", log_id: int = 1, scope: Scope | None = None) -> Definition:
    """A definition, unscoped unless a scope is given."""
    return Definition(
        name=name,
        scope=scope or Scope.everything(),
        logging_mode=LoggingMode.ROW,
        log_id=log_id,
    )


def create(store: Store, name: str = "orders", start: GtidPosition | None = None) -> Binlog:
    """Make a binlog."""
    return store.create_binlog(
        definition(name, store.next_log_id()),
        start=start or GtidPosition(),
        format_description=source_format(),
        server_id=SERVER_ID,
        timestamp=TIMESTAMP,
    )


def event(type_code: EventType, body: Body, *, timestamp: int = TIMESTAMP) -> Event:
    """An event with the header that a source would give it, except for length and position."""
    header = EventHeader(
        timestamp=timestamp,
        type_code=type_code,
        server_id=SERVER_ID,
        length=0,
        next_position=0,
        flags=_FLAGS.get(type_code, 0),
    )
    return Event(header, body)


def query(text: bytes) -> Event:
    """A QUERY event in database `shop`."""
    body = QueryEvent(
        thread_id=1, execution_time=0, error_code=0, status_vars=b"", database=b"shop", query=text
    )
    return event(EventType.QUERY, body)


def transaction(sequence: int, *, size: int = 20, domain_id: int = 0) -> RoutedGroup:
    """A transaction with one statement of `size` bytes that differ from sequence to sequence."""
    text = b"INSERT INTO t VALUES (%d)" % sequence
    gtid = GtidEvent(
        sequence=sequence,
        domain_id=domain_id,
        flags=GtidFlag.TRANSACTIONAL,
        flags_extra=0,
        padding=bytes(5),
    )
    events = (
        event(EventType.GTID, gtid),
        query(b"BEGIN"),
        query(text.ljust(size, b" ")),
        event(EventType.XID, XidEvent(xid=sequence)),
    )
    return RoutedGroup(gtid=Gtid(domain_id, SERVER_ID, sequence), events=events)


def incident(message: bytes = b"the source lost events") -> RoutedGroup:
    """An INCIDENT of the source, which has no GTID."""
    body = IncidentEvent(number=1, message=message)
    return RoutedGroup(gtid=None, events=(event(EventType.INCIDENT, body),))


def replaced(sequence: int, *, binlog: str = "orders") -> RoutedGroup:
    """An INCIDENT in the place of a group."""
    begin = GtidEvent(
        sequence=sequence, domain_id=0, flags=GtidFlag.STANDALONE, flags_extra=0, padding=bytes(5)
    )
    gtid = Gtid(0, SERVER_ID, sequence)
    message = f"{gtid}: rows from outside; binlog {binlog}; rebuild the replica"
    body = IncidentEvent(number=1, message=message.encode())
    events = (event(EventType.GTID, begin), event(EventType.INCIDENT, body))
    return RoutedGroup(gtid=gtid, events=events)


def real_groups(fixture: str) -> list[RoutedGroup]:
    """The groups of a real server's log, whole."""
    return [
        RoutedGroup(gtid=group.mariadb_gtid, events=group.events)
        for name, data in fixture_set(fixture).binlogs
        for group in group_events(walk([data], file=name), file=name)
        if not group.is_control
    ]


def kill(store: Store) -> None:
    """Let go of a store as the end of its process does: without closing anything."""
    store._release()
    store._binlogs = {}


def add(binlog: Binlog, groups: Iterable[RoutedGroup]) -> None:
    """Append groups and publish each."""
    for group in groups:
        binlog.append(group)
        binlog.sync()


def stored(binlog: Binlog | Sequence[Path]) -> list[EventGroup]:
    """The groups that a binlog's files hold, without those of the log itself."""
    paths = [file.path for file in binlog.files()] if isinstance(binlog, Binlog) else binlog
    return [group for group in read_groups(paths) if not group.is_control]


def sequences(groups: Iterable[EventGroup]) -> list[int]:
    """The sequence numbers of groups."""
    return [group.gtid.sequence for group in groups if group.gtid]


def sync_all(store: Store, *, force: bool = False) -> None:
    """Publish what was appended to all binlogs of a store, and save the marks if they are due.

    Raises:
        StoreFullError: If nothing else is wrong than that some binlogs have no room.
        StoreError: If a disk failed. Either is raised when all other binlogs are synced.
    """
    is_due = force or store.marks_are_due
    faults = list(store.sync_each(store.binlogs.values(), force=is_due).values())
    if is_due and (save := store.take_marks()) is not None:
        save()
    faults.sort(key=lambda error: isinstance(error, StoreFullError))
    if faults:
        raise faults[0]
