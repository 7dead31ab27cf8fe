"""The reading of tables that come in, in a thread with connections of its own.

Each is read from the source's log, by its history; if that does not tell its rows, they are read from
the source itself (`rows_before`). What is read goes into files that are lost with the process.
"""

from __future__ import annotations

import logging
import select
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, NamedTuple

from binlane.binlogs.routing.packed_rows import RowsPacker
from binlane.binlogs.routing.routing_memory import TableBirth
from binlane.binlogs.routing.table_births import ComingTable, TableArrival
from binlane.binlogs.routing.table_history import HistoryError, TableHistory
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.errors import BinlaneError
from binlane.live.capture.backoff import Backoff
from binlane.live.capture.capture import is_transient
from binlane.live.loop.rows_before import HistorySource, RowsBefore
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, whole_group
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.positions import AnyGtid
from binlane.statements.scope.scope import Scope

HISTORY_BYTES_MAX: Final = 16 << 30
"""Largest history of a table that comes in."""
_FREE_BYTES_MIN: Final = 1 << 30
_TRIES_MAX: Final = 8
_LOOK_S: Final = 0.2
_LENGTH_BYTES: Final = 4

_UNKNOWN_BIRTH: Final = (
    "it is not known where it was made: before the binlog was, or under another name"
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundHistory:
    """A table that was read, by its history or by the rows that it has.

    Attributes:
        path: The file that holds the rows.
        table: The table, with its names on the way.
        format: The format of the events.
        statements: The statements that make the table.
        size_bytes: The size of the rows.
    """

    path: Path
    table: ComingTable
    format: Format
    statements: tuple[Event, ...]
    size_bytes: int

    def rows(self) -> Iterator[Event]:
        """Give the TABLE_MAPs and rows in order."""
        with self.path.open("rb") as file:
            while head := file.read(_LENGTH_BYTES):
                length = int.from_bytes(head, "little")
                yield decode_event(file.read(length), self.format)


class ScopeWithLinks(NamedTuple):
    """Facts of a binlog on which the histories of tables depend that come into it.

    Attributes:
        scope: Scope that the tables come into.
        links: Links between tables, before the statement that brings them in.
    """

    scope: Scope
    links: TableLinks


class _TableReading:
    """The history of one table, as far as it was read.

    Args:
        table: The table that comes in.
        binlog: Facts of the binlog that it comes into.
        path: The file for its rows.
        file: The same file, open for writing.

    Attributes:
        reason: The reason why the history does not tell the rows; empty while it may.
    """

    def __init__(
        self, table: ComingTable, binlog: ScopeWithLinks, path: Path, file: IO[bytes]
    ) -> None:
        self._table = table
        self._path = path
        self._file = file
        self._history = TableHistory(table, binlog.scope, binlog.links)
        self._has_begun = False
        self._format: Format | None = None
        self._statements: list[Event] = []
        self._rows = RowsPacker()
        self._size = 0
        self.reason = ""

    def is_behind(self, gtid: AnyGtid | None) -> bool:
        """True from the statement on that made the table, while its history may tell its rows."""
        self._has_begun = self._has_begun or str(gtid) == self._table.birth.gtid
        return self.has_begun

    @property
    def has_begun(self) -> bool:
        """True if the statement that made the table was read, and its history may tell its rows."""
        return self._has_begun and not self.reason

    def concerns(self, table: TableName) -> bool:
        """True if rows of a table bear on the history."""
        return not self.reason and self._history.concerns(table)

    def take(self, group: EventGroup, format_: Format) -> None:
        """Take a group that may bear on the table.

        Raises:
            HistoryError: If the group leaves it open what the table is behind it.
            OSError: If the disk cannot be written.
        """
        found = self._history.read(group, format_)
        if found.begins:
            self._statements = []
        if found.begins or found.empties:
            self._file.seek(0)
            self._file.truncate()
            self._rows.clear()
            self._size = 0
        if found.statement is not None:
            self._statements.append(found.statement)
        elif not found.rows:
            return
        if self._format is not None and self._format != format_:
            raise HistoryError("the source's log has another format since")
        self._format = format_
        self._write(self._rows.pack(found.rows), format_)
        if self._size > HISTORY_BYTES_MAX:
            raise HistoryError(f"its history is larger than {HISTORY_BYTES_MAX >> 30} GiB")
        if shutil.disk_usage(self._path.parent).free < _FREE_BYTES_MIN:
            raise HistoryError("the disk has no room for its history")

    def _write(self, events: Iterable[Event], format_: Format) -> None:
        for event in events:
            data = encode_event(event, format_)
            self._file.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
            self._size += len(data)

    def finished(self) -> FoundHistory:
        """The whole history.

        Raises:
            HistoryError: If it does not tell the rows, or if the table is not there at the end.
            OSError: If the disk cannot be written.
        """
        if self.reason:
            raise HistoryError(self.reason)
        if not self._history.is_there or self._format is None:
            raise HistoryError("the log does not hold the statement that made it")
        self._write(self._rows.rest(), self._format)
        self._file.flush()
        statements = tuple(self._statements)
        return FoundHistory(self._path, self._table, self._format, statements, self._size)


class HistoryReading:
    """The reading of tables that come in together, in a thread of its own.

    Args:
        arrival: The tables that come in.
        first: GTID of the statement that brings them in, and the event with it.
        binlog: Facts of the binlog that waits.
        source: The source's log and rows.
        folder: Folder of this reading alone.
        wake: Wakes the loop at its end.

    Attributes:
        found: What was read, in order of the tables; empty before the end, and if one is missing.
        reason: The reason why there is none; empty if all are there, and before the end.
    """

    def __init__(  # what is read, from where, and where it goes
        self,
        arrival: TableArrival,
        first: tuple[AnyGtid, Event],
        binlog: ScopeWithLinks,
        source: HistorySource,
        folder: Path,
        wake: Callable[[], None],
    ) -> None:
        self.found: tuple[FoundHistory, ...] = ()
        self.reason = ""
        self._arrival = arrival
        self._until, self._first = first
        self._binlog = binlog
        self._source = source
        self._folder = folder
        self._wake = wake
        self._is_ending = False
        self._own: list[_TableReading] = []
        self._decoding: Format | None = None
        self._tables: dict[int, bool] = {}
        self._known: object = None
        self._thread = threading.Thread(target=self._run, name="table history", daemon=True)

    @property
    def is_over(self) -> bool:
        """True if all tables were read, or if there is a reason why they cannot be."""
        return bool(self.found or self.reason)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def end(self) -> None:
        """Have the reading end soon, and remove what was read; waits for nothing."""
        self._is_ending = True
        if not self._thread.is_alive():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        backoff = Backoff()
        reason = ""
        try:
            for _ in range(_TRIES_MAX):
                try:
                    self.found = self._read()
                except (BinlaneError, OSError) as error:
                    reason = str(error)
                    if isinstance(error, HistoryError) or not is_transient(error):
                        break
                    time.sleep(backoff.next_delay_s(0))
                else:
                    return
                if self._is_ending:
                    return
        except Exception as error:  # the binlog gets an INCIDENT, as without us
            logger.exception("the history of a table: failed")
            reason = f"internal error: {error!r}"
        finally:
            if not self.found:
                self.reason = reason or "it was not read"
            if self._is_ending:
                shutil.rmtree(self._folder, ignore_errors=True)
            else:
                self._wake()

    def _read(self) -> tuple[FoundHistory, ...]:
        """Read each table by its history or, where that does not tell its rows, by those that it has.

        Raises:
            HistoryError: If one can be had by neither.
            BinlaneError: If the source cannot be read.
            OSError: Likewise, or if the disk cannot be written.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        found: list[FoundHistory] = []
        for table, history in zip(self._arrival.tables, self._read_histories(), strict=True):
            if isinstance(history, FoundHistory):
                found.append(history)
                continue
            reason = history.reason
            if self._arrival.into_partition or self._is_ending:
                raise history
            logger.info(
                "%s: its history does not tell its rows, so that they are read from the source: %s",
                *(table.new, reason),
            )
            try:
                found.append(self._read_rows(table))
            except HistoryError as error:
                raise HistoryError(f"{table.new}: {reason}; {error}") from error
        return tuple(found)

    def _read_histories(self) -> list[FoundHistory | HistoryError]:
        """Read the history of each table, or the reason why it does not tell the rows.

        Raises:
            BinlaneError: If the source cannot be read.
            OSError: Likewise, or if the disk cannot be written.
        """
        with ExitStack() as stack:
            self._own = []
            for table in self._arrival.tables:
                path = self._path_of(table)
                file = stack.enter_context(path.open("wb"))
                one = _TableReading(table, self._binlog, path, file)
                one.reason = "" if table.birth.since else _UNKNOWN_BIRTH
                self._own.append(one)
            try:
                self._read_log()
            except BinlaneError as error:
                if not isinstance(error, HistoryError) and is_transient(error):
                    raise
                for one in self._own:
                    one.reason = one.reason or str(error)
            found: list[FoundHistory | HistoryError] = []
            for one in self._own:
                try:
                    found.append(one.finished())
                except HistoryError as error:
                    found.append(error)
            return found

    def _read_log(self) -> None:
        """Read the source's log up to the statement, while it may tell the rows of a table.

        Raises:
            HistoryError: If it does not tell those of any.
            BinlaneError: If it cannot be read.
            OSError: Likewise, or if the disk cannot be written.
        """
        if all(one.reason for one in self._own):
            return
        log = self._source.open_history()
        try:
            log.connect()
            while not all(one.reason for one in self._own):
                if self._is_ending:
                    raise HistoryError("binlane ends")
                if not select.select([log], [], [], _LOOK_S)[0]:
                    if log.is_silent:
                        raise TimeoutError("the source was silent")
                    continue
                if any(map(self._takes_last, log.receive())):
                    return
        finally:
            log.close()

    def _read_rows(self, table: ComingTable) -> FoundHistory:
        """Read the rows that a table has, and undo what has changed them since it came in.

        Raises:
            HistoryError: If they cannot be had.
            BinlaneError: If the source cannot be read.
            OSError: Likewise, or if the disk cannot be written.
        """
        folder = self._folder / f"rows-{table.number}"
        folder.mkdir()
        rows = RowsBefore(
            table.new,
            (self._until, self._first),
            self._source,
            folder,
            lambda: self._is_ending,
            size_max=HISTORY_BYTES_MAX,
        )
        path = self._path_of(table)
        # They are made of rows that nothing has changed since.
        binlog = self._binlog._replace(links=NO_LINKS)
        now = replace(table, birth=TableBirth(name=table.new))
        with path.open("wb") as file:
            reading = _TableReading(now, binlog, path, file)
            for group, format_ in rows.groups():
                reading.take(group, format_)
            found = reading.finished()
        shutil.rmtree(folder)
        return found

    def _path_of(self, table: ComingTable) -> Path:
        return self._folder / f"history-{table.number}"

    def _takes_last(self, item: Item) -> bool:
        """Take an item of the log; True if the statement that brings the tables in has come."""
        if isinstance(item, RawRun):
            for number in range(item.count):
                gtid = item.gtid(number)
                if gtid == self._until:
                    return True
                if self._is_behind(gtid) and self._may_concern(item, number):
                    self._take(item.group(number), item.format)
            return False
        gtid = item.gtid
        if gtid is not None and gtid == self._until:
            return True
        if isinstance(item, LargeGroup):
            if self._is_behind(gtid):
                self._take(self._reduced(item), item.format)
            return False
        self._take_decoded(item)
        return False

    def _take_decoded(self, group: EventGroup) -> None:
        """Take an event of the log itself, or a group that kernels were not made for."""
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            self._decoding = first.body.format
        elif first.header.type_code == EventType.INCIDENT and self._has_begun:
            raise HistoryError("the source's log has an INCIDENT in it")
        elif not group.is_control and self._is_behind(group.gtid):
            assert self._decoding is not None, "groups stand behind a FORMAT_DESCRIPTION"
            self._take(group, self._decoding)

    def _take(self, group: EventGroup, format_: Format) -> None:
        # A statement may have made another table bear on them.
        self._known = None
        for one in self._own:
            if one.has_begun:
                try:
                    one.take(group, format_)
                except HistoryError as error:
                    one.reason = str(error)

    @property
    def _has_begun(self) -> bool:
        return any(one.has_begun for one in self._own)

    def _is_behind(self, gtid: AnyGtid | None) -> bool:
        """True from the statement on that made the first of the tables."""
        return bool([one for one in self._own if one.is_behind(gtid)])

    def _concerns(self, table: TableName) -> bool:
        return any(one.concerns(table) for one in self._own)

    def _may_concern(self, run: RawRun, number: int) -> bool:
        """True unless a group surely holds only rows of other tables."""
        if run.tables is not self._known:
            self._known, self._tables = run.tables, {}
        first, end = run.groups[[layout.GROUP_FIRST, layout.GROUP_END], number].tolist()
        types = run.events[layout.EVENT_TYPE, first:end].tolist()
        queries = types.count(EventType.QUERY)
        # MySQL begins each transaction by a statement.
        has_begin = queries == 1 and len(types) > 2 and types[1] == EventType.QUERY
        is_rows = types[-1] == EventType.XID and EventType.TABLE_MAP in types
        if queries > has_begin or not is_rows:
            return True
        maps = run.events[layout.EVENT_MAP, first:end].tolist()
        return any(
            self._is_own(run, at)
            for kind, at in zip(types, maps, strict=True)
            if kind == EventType.TABLE_MAP
        )

    def _is_own(self, run: RawRun, number: int) -> bool:
        found = self._tables.get(number)
        if found is None:
            table_map = run.tables[number].table_map
            found = self._concerns(TableName(table_map.database, table_map.table))
            self._tables[number] = found
        return found

    def _reduced(self, large: LargeGroup) -> EventGroup:
        """A group that is not held, without rows of other tables but those that end a statement."""
        kept: list[Event] = []
        owners: dict[int, bool] = {}
        size = 0
        for event in whole_group(large.events()):
            body = event.body
            if isinstance(body, TableMapEvent):
                owners[body.table_id] = self._concerns(body.name)
            elif isinstance(body, RowsEvent):
                if not owners.get(body.table_id, True) and not body.ends_statement:
                    continue
                size += event.header.length
            if size > HISTORY_BYTES_MAX // 8:
                raise HistoryError("a transaction of its history is too large")
            kept.append(event)
        return EventGroup(gtid=large.gtid, events=tuple(kept), file=large.file)
