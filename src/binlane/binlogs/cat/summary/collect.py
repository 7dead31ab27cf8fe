"""The contents of a log, counted in one pass.

Memory does not grow with the log, only with the number of its tables and files.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from binlane.binlogs.cat.summary.counts import (
    EventCount,
    FileCount,
    GroupSummary,
    GtidRanges,
    TableCount,
    Timeline,
    Top,
)
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.rows import DeleteRowsEvent, RowsEvent, TableMapEvent, WriteRowsEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName

_WORD: Final = re.compile(rb"[A-Za-z_]+")
_COMMENT: Final = re.compile(rb"\s*(?:/\*(?![!M]).*?\*/|--[^\n]*\n|#[^\n]*\n)", re.DOTALL)
_HEAD_LENGTH: Final = 256
_OBJECTS: Final = frozenset(
    b"TABLE DATABASE SCHEMA VIEW INDEX TRIGGER PROCEDURE FUNCTION EVENT SEQUENCE USER ROLE SERVER"
    b" TABLESPACE PACKAGE".split()
)
OBJECT_VERBS: Final = frozenset({b"CREATE", b"ALTER", b"DROP", b"RENAME"})
"""Their kind is told by more than the first word."""
_CHANGES: Final = frozenset(b"INSERT UPDATE DELETE REPLACE LOAD WITH CALL SELECT DO".split())
_VERBS: Final = _CHANGES | frozenset(
    b"BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE XA TRUNCATE GRANT REVOKE SET FLUSH ANALYZE OPTIMIZE"
    b" REPAIR START INSTALL UNINSTALL".split()
)
CLOSING_TYPES: Final = frozenset({EventType.STOP, EventType.ROTATE})


class Summary:
    """Counts the events of one or more files.

    Attributes:
        files: Files in the order in which they were read.
        events: Counts by type name and by True for events inside a compressed transaction.
        tables: Counts of each table, by its name.
        statements: Number of statements by kind, such as `CREATE TABLE`.
        biggest: The ten transactions of the most bytes.
        widest: The ten transactions with the most rows.
        longest: The ten transactions that took the most time.
        timeline: Amount that was logged, over time.
        gtids: GTIDs that the log holds.
        transactions: Number of event groups in the log.
        unfinished: Number of the event groups that the log does not end.
        uncounted: Number of rows events whose rows could not be counted.
    """

    def __init__(self) -> None:
        self.files: list[FileCount] = []
        self.events: dict[tuple[str, bool], EventCount] = {}
        self.tables: dict[TableName, TableCount] = {}
        self.statements: Counter[str] = Counter()
        self.biggest, self.widest, self.longest = Top("size_bytes"), Top("rows"), Top("duration")
        self.timeline = Timeline()
        self.gtids = GtidRanges()
        self.transactions = self.unfinished = self.uncounted = 0
        self._tracker = GroupTracker()
        self._maps = TableMaps()
        self._flavor = Flavor.MARIADB
        self._group: GroupSummary | None = None
        self._is_ended = True

    def feed(self, event: Event, *, file: str) -> None:
        """Count one event.

        Args:
            event: The next event; events inside a compressed transaction follow their carrier.
            file: Base name of its file.

        Raises:
            CodecError: If a rows event has no TABLE_MAP, or its rows do not end where it does.
        """
        header, body = event.header, event.body
        if not event.inner:
            self._count_file(event, file)
        key = (header.type_name, bool(event.inner))
        count = self.events.get(key)
        if count is None:
            count = self.events[key] = EventCount()
        count.count += 1
        count.size_bytes += header.length
        self._count_group(event, file)
        table_map = self._maps.feed(event, file=file)
        if isinstance(body, TableMapEvent):
            self.table(body).size_bytes += header.length
        elif table_map is not None and isinstance(body, RowsEvent):
            self._count_rows(event, body, table_map, file)
        elif isinstance(body, QueryEvent):
            self.count_statement(body.query)
        elif isinstance(body, ExecuteLoadQueryEvent):
            self.statements["LOAD"] += 1
        elif isinstance(body, FormatDescriptionEvent):
            self._flavor = body.format.flavor

    def count_statement(self, query: bytes) -> str:
        """Count a statement by its kind, which is given back."""
        kind = statement_kind(query)
        self.statements[kind] += 1
        return kind

    def table(self, table_map: TableMapEvent) -> TableCount:
        """The figures of a table."""
        name = table_map.name
        return self.tables.setdefault(name, TableCount())

    def rows_of(self, event: Event, table_map: TableMapEvent, *, file: str) -> int:
        """Rows of a rows event; none, which is noted, where they cannot be counted.

        Raises:
            CodecError: If they do not end where the event does.
        """
        assert isinstance(event.body, RowsEvent), "only they have rows"
        try:
            return count_rows(event.body, table_columns(table_map, flavor=self._flavor))
        except UnsupportedError:
            self.uncounted += 1
            return 0
        except CodecError as error:
            raise error.at(file, event.position) from None

    def resume(self, group: GroupSummary | None, tracker: GroupTracker, maps: TableMaps) -> None:
        """Go on behind events that the kernel has counted.

        Args:
            group: The group that is open; None if none is.
            tracker: Tracker of groups that is in the same group.
            maps: The table maps of the statement that is open.
        """
        self._group, self._tracker, self._maps = group, tracker, maps
        self._is_ended = group is None

    def finish(self) -> None:
        """End the log: groups that are still open count as they are."""
        self._end_group()

    @property
    def size_bytes(self) -> int:
        """Bytes of all events, as written."""
        return sum(count.size_bytes for (_, is_inner), count in self.events.items() if not is_inner)

    @property
    def logged_as(self) -> str:
        """`row`, `statement`, `mixed`; empty if only definitions changed."""
        has_rows = any(table.rows for table in self.tables.values())
        has_statements = any(kind.encode() in _CHANGES for kind in self.statements)
        if has_rows and has_statements:
            return "mixed"
        return "row" if has_rows else "statement" if has_statements else ""

    def _count_file(self, event: Event, file: str) -> None:
        # Two files of one name may follow each other.
        is_new = event.position == len(MAGIC)
        if is_new or not self.files or self.files[-1].name != file:
            self.files.append(FileCount(name=file))
        current = self.files[-1]
        current.size_bytes = max(current.size_bytes, event.next_position)
        current.is_closed = event.header.type_code in CLOSING_TYPES
        if isinstance(event.body, FormatDescriptionEvent):
            current.server_version = event.body.server_version
            current.checksum = event.body.format.checksum.name
            current.is_marked_in_use = bool(event.header.flags & HeaderFlag.BINLOG_IN_USE)

    def _count_group(self, event: Event, file: str) -> None:
        place = self._tracker.feed(event)
        time = event.header.timestamp
        if place.begins:
            self._end_group()
            if not place.is_control:
                gtid = None if place.gtid is None else str(place.gtid)
                self._group = GroupSummary(
                    gtid=gtid, file=file, position=event.position, first_time=time, last_time=time
                )
                if place.gtid is not None:
                    self.gtids.add(place.gtid)
        if not event.inner:
            self._is_ended = place.ends
            if time:
                self.timeline.at(time).size_bytes += event.header.length
        group = self._group
        if group is None:
            return
        group.events += 1
        if not event.inner:
            group.size_bytes += event.header.length
        if time:
            group.first_time = min(group.first_time or time, time)
            group.last_time = max(group.last_time, time)

    def _end_group(self) -> None:
        group, self._group = self._group, None
        if group is None:
            return
        self.transactions += 1
        self.unfinished += not self._is_ended
        for top in (self.biggest, self.widest, self.longest):
            top.add(group)
        if group.last_time:
            bucket = self.timeline.at(group.last_time)
            bucket.transactions += 1
            bucket.rows += group.rows

    def _count_rows(
        self, event: Event, body: RowsEvent, table_map: TableMapEvent, file: str
    ) -> None:
        table = self.table(table_map)
        table.events += 1
        table.size_bytes += event.header.length
        rows = self.rows_of(event, table_map, file=file)
        if isinstance(body, WriteRowsEvent):
            table.inserts += rows
        elif isinstance(body, DeleteRowsEvent):
            table.deletes += rows
        else:
            table.updates += rows
        if self._group is not None:
            self._group.rows += rows


def statement_kind(query: bytes) -> str:
    """Return the kind of a statement by its first words: `INSERT`, `CREATE TABLE`, `OTHER`."""
    head = query[:_HEAD_LENGTH]
    while comment := _COMMENT.match(head):
        head = head[comment.end() :]
    words = [word.upper() for word in _WORD.findall(head)]
    if not words:
        return "OTHER"
    if words[0] in OBJECT_VERBS:
        name = next((word for word in words if word in _OBJECTS), b"")
        return f"{words[0].decode()} {name.decode()}".strip()
    return words[0].decode() if words[0] in _VERBS else "OTHER"
