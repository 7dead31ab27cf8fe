"""The event groups by which tables come into a binlog with their rows.

The tables are made and filled under other names, by groups with GTIDs of their own; then the source's
statement stands by these names, with the GTID of the source's; at last what is left over is dropped.
Each table gets its second name when it is whole, and only then the statement finds it: where a
replica applies groups side by side, the statement fails rather than bring in the half of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlogs.routing.query_events import with_made_text
from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.routing.table_births import ComingTable, TableArrival
from binlane.binlogs.routing.table_history import without_checks
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent, TaggedGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.names import TableName
from binlane.positions import AnyGtid, Gtid, MysqlGtid

TRANSACTION_BYTES: Final = 4 << 20
"""Bytes of rows that one transaction has at most, but for those of its last statement."""
_EVENT_BYTES: Final = 4 << 10
"""Bytes of rows that cost as much as an event beside its rows."""
_PADDING: Final = bytes(5)


@dataclass(frozen=True, slots=True)
class ArrivedTable:
    """A table that comes in, with its history.

    Attributes:
        table: The table, with its names on the way.
        statements: The statements that make it under the name that it is filled under.
        rows: TABLE_MAPs and rows of that name.
    """

    table: ComingTable
    statements: Sequence[Event]
    rows: Iterable[Event]


def without_equal_names(arrival: TableArrival, tables: Iterable[ArrivedTable]) -> TableArrival:
    """The form of an arrival in which two tables of a database never have one constraint's name at once.

    Args:
        arrival: The statement that brings the tables in.
        tables: The tables with their histories.
    """
    other = arrival.without_left
    if other is None or not any(map(_may_name_constraints, tables)):
        return arrival
    return other


def _may_name_constraints(table: ArrivedTable) -> bool:
    bodies = [event.body for event in table.statements]
    texts = [body.query.upper() for body in bodies if isinstance(body, QueryEvent)]
    return any(word in text for text in texts for word in (b"CONSTRAINT", b"FOREIGN"))


class ArrivalGroups:
    """Makes the groups of one arrival.

    Args:
        arrival: The statement that brings the tables in.
        gtid: GTID event of the source's statement.
        server_id: Server id in the headers of groups that are not the source's.
        next_gtid: Gives the GTIDs of these groups, one after the other.
    """

    def __init__(
        self,
        arrival: TableArrival,
        gtid: Event,
        server_id: int,
        next_gtid: Callable[[], AnyGtid],
    ) -> None:
        self._arrival = arrival
        self._gtid = gtid
        self._server_id = server_id
        self._next_gtid = next_gtid
        self._is_mysql = isinstance(gtid.body, MysqlGtidEvent)

    def before(self, tables: Iterable[ArrivedTable]) -> Iterator[RoutedGroup]:
        """Groups that make and fill the tables; what an earlier try has left is dropped first."""
        coming = self._arrival.tables
        named = [name for one in coming for name in (one.filling, one.stage)]
        others = [name for name in self._arrival.left if name not in named]
        yield self._dropped([*named, *others, *self._arrival.dropped_first])
        for one in tables:
            for event in one.statements:
                yield self._ddl(event)
            for events in _transactions(one.rows):
                yield self._transaction(events)
        # On MariaDB it may run twice, if a server ends between a statement and its GTID.
        if_exists = "" if self._is_mysql else "IF EXISTS "
        for table in coming:
            text = f"RENAME TABLE {if_exists}{table.filling} TO {table.stage}"
            yield self._ddl(self._statement(text))

    def statement(self) -> RoutedGroup:
        """The source's statement, by the names of the stages."""
        body, first = self._gtid.body, self._gtid
        gtid: AnyGtid
        if isinstance(body, MysqlGtidEvent):
            made = body.gtid
            assert made is not None, "it has a GTID"
            gtid = made
        else:
            assert isinstance(body, GtidEvent), "it is MariaDB's"
            gtid = body.gtid(first.header.server_id)
            flags = GtidFlag.STANDALONE | GtidFlag.DDL
            first = replace(first, body=_mariadb_gtid(gtid, flags))
        header = replace(first.header, type_code=EventType.QUERY, flags=0)
        events = first, Event(header, self._arrival.query)
        return RoutedGroup(gtid=gtid, events=events, is_alone=True)

    def behind(self) -> Iterator[RoutedGroup]:
        """The group that drops what is left over, if there is anything."""
        if self._arrival.left:
            yield self._dropped(self._arrival.left)

    def _dropped(self, names: Iterable[TableName]) -> RoutedGroup:
        return self._ddl(self._statement(f"DROP TABLE IF EXISTS {', '.join(map(str, names))}"))

    def _statement(self, text: str) -> Event:
        body = with_made_text(self._arrival.query, text)
        variables = without_checks(body.status_vars)
        header = replace(self._gtid.header, type_code=EventType.QUERY, flags=0)
        return Event(header, replace(body, database=b"", status_vars=variables))

    def _ddl(self, event: Event) -> RoutedGroup:
        return self._group([event], GtidFlag.STANDALONE | GtidFlag.DDL)

    def _transaction(self, events: Sequence[Event]) -> RoutedGroup:
        header = replace(self._gtid.header, type_code=EventType.XID, flags=0)
        begin = [self._statement("BEGIN")] if self._is_mysql else []
        return self._group(
            [*begin, *events, Event(header, XidEvent(xid=0))], GtidFlag.TRANSACTIONAL
        )

    def _group(self, events: Sequence[Event], flags: int) -> RoutedGroup:
        gtid, body = self._next_gtid(), self._gtid.body
        first: MysqlGtidEvent | GtidEvent
        if isinstance(gtid, Gtid):
            first = _mariadb_gtid(gtid, flags)
        else:
            assert isinstance(body, MysqlGtidEvent), "it is MySQL's"
            first = _mysql_gtid(body, gtid)
        made = (replace(self._gtid, body=first), *events)
        return RoutedGroup(gtid=gtid, events=tuple(map(self._placed, made)), is_alone=True)

    def _placed(self, event: Event) -> Event:
        """An event of now, by no server that may be the replica itself."""
        timestamp = self._gtid.header.timestamp
        header = replace(event.header, timestamp=timestamp, server_id=self._server_id)
        return replace(event, header=header)


def _mariadb_gtid(gtid: Gtid, flags: int) -> GtidEvent:
    return GtidEvent(
        sequence=gtid.sequence,
        domain_id=gtid.domain_id,
        flags=flags,
        flags_extra=0,
        padding=_PADDING,
    )


def _mysql_gtid(body: MysqlGtidEvent, gtid: MysqlGtid) -> MysqlGtidEvent:
    # One after the other: each of them is alone.
    made = replace(
        body,
        source_id=gtid.source_id,
        sequence=gtid.sequence,
        last_committed=0,
        sequence_number=1,
    )
    return replace(made, tag="") if isinstance(made, TaggedGtidEvent) else made


def _transactions(rows: Iterable[Event]) -> Iterator[list[Event]]:
    """Rows in pieces that cost about the same to place, each of whole statements."""
    events: list[Event] = []
    size = 0
    for event in rows:
        events.append(event)
        body = event.body
        size += _EVENT_BYTES + len(body.images) if isinstance(body, RowsEvent) else 0
        if size >= TRANSACTION_BYTES and isinstance(body, RowsEvent) and body.ends_statement:
            yield events
            events, size = [], 0
    if events:
        yield events
