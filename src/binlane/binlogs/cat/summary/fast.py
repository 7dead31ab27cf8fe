"""A summary of whole files by the kernel `summarise`, with the figures that `Summary.feed` gives.

The kernel goes through a window of the file and stops for what is rare: a table that is new, a
statement of another kind, an event of the log itself. Where it cannot go on, be it damage, a
compressed transaction of MySQL or a format of old, `Summary.feed` counts the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from struct import Struct
from types import MappingProxyType
from typing import Final
from uuid import UUID

import numpy as np

from binlane.binlogs.cat.summary.collect import CLOSING_TYPES, OBJECT_VERBS, Summary
from binlane.binlogs.cat.summary.counts import EventCount, GroupSummary
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.counting_scanner import CountingScanner
from binlane.log.grouping.decryption import is_encrypted
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.first_event import description_in
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import ByteSource, Window
from binlane.log.kernels import layout
from binlane.log.kernels import summary_layout as lay
from binlane.positions import AnyGtid, Gtid, MysqlGtid

WINDOW_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 4096
_SOURCE: Final = Struct("<qq")
_OBJECT_VERBS: Final = tuple(verb.decode() for verb in OBJECT_VERBS)


def count_file(
    summary: Summary,
    source: ByteSource,
    *,
    path: str,
    name: str,
    keys: KeyRing | None = None,
    window_bytes: int = WINDOW_BYTES,
) -> None:
    """Count all events of a file.

    Args:
        summary: Summary that takes the figures.
        source: Bytes of the file to count.
        path: Path of the file as the user named it, for errors.
        name: Base name of the file.
        keys: Keys for an encrypted file.
        window_bytes: Bytes of the file that are looked at together.

    Raises:
        CodecError: At the first fault.
        StoreError: If the file cannot be read.
    """
    window = Window(source, size_bytes=window_bytes)
    head = _first_event(window)
    if head is None:
        walker = Walker(window.rest(0), file=path, keys=keys)
        _feed_all(summary, walker, path=path, name=name)
        return
    summary.feed(head, file=name)
    _FileCounter(summary, window, head, path=path, name=name).run()


def _first_event(window: Window) -> Event | None:
    """Return a file's FORMAT_DESCRIPTION; None if the kernel cannot go on behind it."""
    while window.end < _HEAD_BYTES and window.fill():
        pass
    return (
        None
        if is_encrypted(window.bytes(0, min(window.end, _HEAD_BYTES)))
        else description_in(window)
    )


def _feed_all(summary: Summary, walker: Walker, *, path: str, name: str) -> None:
    """Count all events of a walker by `Summary.feed`."""
    for event in expanded_all(walker.events(), file=path, format_=walker.format):
        try:
            summary.feed(event, file=name)
        except CodecError as error:
            located = error.at(path, event.position)
            located.file = path  # a summary knows the base name only
            raise located from None


class _FileCounter:
    """Counts one file behind its first event."""

    def __init__(
        self, summary: Summary, window: Window, head: Event, *, path: str, name: str
    ) -> None:
        assert isinstance(head.body, FormatDescriptionEvent), "nothing else is first"
        self._summary = summary
        self._window = window
        self._head = head
        self._path = path
        self._name = name
        self._scanner = CountingScanner(head.body.format)
        self._scanner.state[layout.OFFSET] = head.next_position
        self._told: list[AnyGtid] = []
        self._answers: Mapping[int, Callable[[], None]] = MappingProxyType(
            {
                layout.ASK: self._look,
                lay.ASK_STATEMENT: self._take_statement,
                lay.ASK_ROWS: self._take_rows,
                lay.ASK_IMAGES: self._inflate,
                lay.FULL: self._take,
            }
        )
        self._set_least()

    def run(self) -> None:
        """Count all events of the files.

        Raises:
            CodecError: At the first fault.
        """
        scanner, window = self._scanner, self._window
        try:
            while self._go_on():
                pass
        except UnexpectedError:
            position, offset = window.base + scanner.offset, scanner.offset
            self._finish()
            walker = Walker(
                window.rest(offset), file=self._path, position=position, format_=scanner.format
            )
            _feed_all(self._summary, walker, path=self._path, name=self._name)
            return
        self._finish()

    def _go_on(self) -> bool:
        """Run the kernel until it stops; False at the end of the file."""
        scanner, window = self._scanner, self._window
        status = scanner.count(window.data, window.end)
        if status == layout.DAMAGED:
            raise UnexpectedError
        if status != layout.MORE:
            self._answers[status]()
            return True
        done = scanner.offset
        scanner.forget(done)
        window.drop(done)
        if window.fill():
            return True
        if window.end:
            raise UnexpectedError
        return False

    def _event_bytes(self) -> bytes:
        """The event that the kernel asks about."""
        start = self._scanner.offset
        data = self._window.data
        length = int.from_bytes(data[start + 9 : start + 13].tobytes(), "little")
        return self._window.bytes(start, start + length)

    def _event(self) -> Event:
        position = self._window.base + self._scanner.offset
        try:
            return decode_event(self._event_bytes(), self._scanner.format, position=position)
        except CodecError:
            raise UnexpectedError from None  # it is raised again by who counts the rest

    def _look(self) -> None:
        """Look at an event of a type, or of a form, that the kernel leaves alone."""
        scanner, summary, figures = self._scanner, self._summary, self._scanner.figures
        position = self._window.base + scanner.offset
        try:
            event = scanner.look_at(self._event_bytes(), position)
        except CodecError:
            raise UnexpectedError from None  # as above
        body = event.body
        if isinstance(body, RotateEvent) and event.header.next_position == 0:
            raise UnexpectedError  # a relay log: positions behind it are those of another file
        if isinstance(body, TableMapEvent):
            summary.table(body)
        elif isinstance(body, QueryEvent):
            summary.count_statement(body.query)
            figures[lay.TOLD] = 0
        elif isinstance(body, ExecuteLoadQueryEvent):
            summary.statements["LOAD"] += 1
        elif isinstance(body, GtidEvent):
            self._tell_gtid(body.gtid(event.header.server_id))
        elif isinstance(body, MysqlGtidEvent) and body.gtid is not None:
            self._tell_gtid(body.gtid)

    def _tell_gtid(self, gtid: AnyGtid) -> None:
        self._take()
        self._summary.gtids.add(gtid)
        figures = self._scanner.figures
        figures[lay.GTID_KIND] = lay.GTID_TOLD
        figures[lay.GTID] = len(self._told)
        self._told.append(gtid)

    def _take_statement(self) -> None:
        body = self._event().body
        assert isinstance(body, QueryEvent), "the kernel asks for nothing else"
        kind = self._summary.count_statement(body.query)
        if not kind.startswith(_OBJECT_VERBS):  # of which more than the first word counts
            self._scanner.give_verb(body.query, kind)
        self._scanner.figures[lay.TOLD] = 0

    def _take_rows(self) -> None:
        """Count rows of a table, or in a form, that the kernel cannot count."""
        event = self._event()
        assert isinstance(event.body, RowsEvent), "the kernel asks for nothing else"
        table_map = self._scanner.table_map_of(event.body.table_id)
        assert table_map is not None, "the kernel has found it"
        try:
            rows = self._summary.rows_of(event, table_map, file=self._path)
        except CodecError:
            raise UnexpectedError from None  # as above
        self._scanner.figures[lay.TOLD] = rows

    def _inflate(self) -> None:
        body = self._event().body
        assert isinstance(body, RowsEvent), "the kernel asks for nothing else"
        try:
            self._scanner.give_images(body.plain_images)
        except CodecError:
            raise UnexpectedError from None  # as above

    def _set_least(self) -> None:
        summary, figures = self._summary, self._scanner.figures
        figures[lay.LEAST_BYTES] = summary.biggest.least
        figures[lay.LEAST_ROWS] = summary.widest.least
        figures[lay.LEAST_DURATION] = summary.longest.least

    def _take(self) -> None:
        """Empty those tables of the kernel that are full."""
        self._take_times()
        self._take_gtids()
        summary, figures, counts = self._summary, self._scanner.figures, self._scanner.counts
        for group in counts[lay.GROUPS][:, : figures[lay.CANDIDATES]].T.tolist():
            transaction = self._transaction(
                group[lay.GROUP_POSITION], group[lay.GROUP_FIGURES : lay.GROUPS_ROWS]
            )
            for top in (summary.biggest, summary.widest, summary.longest):
                top.add(transaction)
        figures[lay.CANDIDATES] = 0
        self._set_least()
        if figures[lay.GTID_KIND] == lay.GTID_TOLD:
            self._told = [self._told[int(figures[lay.GTID])]]
            figures[lay.GTID] = 0
        else:
            self._told = []

    def _take_times(self) -> None:
        timeline, counts = self._summary.timeline, self._scanner.counts
        moments, ends = counts[lay.MOMENTS], counts[lay.ENDS]
        for time, size_bytes in moments[:, moments[lay.TIME] != lay.NONE].T.tolist():
            timeline.at(time).size_bytes += size_bytes
        for time, groups, rows in ends[:, ends[lay.TIME] != lay.NONE].T.tolist():
            bucket = timeline.at(time)
            bucket.transactions += groups
            bucket.rows += rows
        for table in (moments, ends):
            table[:] = 0
            table[lay.TIME] = lay.NONE

    def _take_gtids(self) -> None:
        gtids, figures = self._summary.gtids, self._scanner.figures
        domains = self._scanner.counts[lay.DOMAINS]
        for domain, *numbers in domains[:, domains[lay.DOMAIN] != lay.NONE].T.tolist():
            gtids.add(Gtid(domain, *numbers[:2]))
            gtids.add(Gtid(domain, *numbers[2:]))
        domains[:] = lay.NONE
        if figures[lay.RUN_LAST] != lay.NONE:
            low, high, sequence, last = figures[lay.RUN_SOURCE : lay.RUN_LAST + 1].tolist()
            first = _mysql_gtid(low, high, sequence)
            gtids.add_run(first, last)
            figures[lay.RUN_LAST] = lay.NONE

    def _transaction(self, position: int, numbers: list[int]) -> GroupSummary:
        """Return a group whose figures the kernel has stored from BYTES on."""
        size_bytes, rows, events, first_time, last_time, kind, *gtid = numbers
        return GroupSummary(
            gtid=self._gtid_text(kind, gtid),
            file=self._name,
            position=position,
            size_bytes=size_bytes,
            rows=rows,
            events=events,
            first_time=first_time,
            last_time=last_time,
        )

    def _gtid_text(self, kind: int, numbers: list[int]) -> str | None:
        gtid = self._gtid(kind, numbers)
        return None if gtid is None else str(gtid)

    def _gtid(self, kind: int, numbers: list[int]) -> AnyGtid | None:
        if kind == lay.GTID_MARIADB:
            return Gtid(*numbers)
        if kind == lay.GTID_MYSQL:
            low, high, sequence = numbers
            return _mysql_gtid(low, high, sequence)
        return self._told[numbers[0]] if kind == lay.GTID_TOLD else None

    def _finish(self) -> None:
        """Give the summary all counts, and the open group."""
        self._take()
        summary, scanner = self._summary, self._scanner
        figures, counts = scanner.figures, scanner.counts
        types = counts[lay.TYPES]
        seen = np.flatnonzero(types[lay.TYPE_COUNT])
        for code in seen[np.argsort(types[lay.TYPE_ORDER, seen])].tolist():
            key = (replace(self._head.header, type_code=code).type_name, False)
            count = summary.events.setdefault(key, EventCount())
            count.count += int(types[lay.TYPE_COUNT, code])
            count.size_bytes += int(types[lay.TYPE_BYTES, code])
        for known, figure in zip(scanner.tables, counts[lay.TABLES].T.tolist(), strict=False):
            table = summary.table(known.table_map)
            table.inserts += figure[lay.TABLE_INSERTS]
            table.updates += figure[lay.TABLE_UPDATES]
            table.deletes += figure[lay.TABLE_DELETES]
            table.events += figure[lay.TABLE_EVENTS]
            table.size_bytes += figure[lay.TABLE_BYTES]
        for kind, number in zip(scanner.verbs, counts[lay.VERBS][lay.VERB_COUNT], strict=False):
            summary.statements[kind] += int(number)
        summary.transactions += int(figures[lay.TRANSACTIONS])
        summary.unfinished += int(figures[lay.UNFINISHED])
        if seen.size:
            file = summary.files[-1]
            file.size_bytes = self._window.base + scanner.offset
            file.is_closed = int(figures[lay.LAST_TYPE]) in CLOSING_TYPES
        self._hand_over()

    def _hand_over(self) -> None:
        """Hand the open group and the open statement over to the summary."""
        scanner, figures, state = self._scanner, self._scanner.figures, self._scanner.state
        tracker, maps, group = GroupTracker(), TableMaps(), None
        if scanner.is_open:
            numbers = figures[lay.BYTES : lay.GTID + 3].tolist()
            group = self._transaction(int(state[layout.GROUP_POSITION]), numbers)
            gtid = self._gtid(numbers[lay.GTID_KIND - lay.BYTES], numbers[-3:])
            tracker.resume(gtid, is_transaction=bool(state[layout.IS_TRANSACTION]))
        for table_id, table_map in scanner.open_table_maps():
            body = replace(table_map, table_id=table_id)
            maps.feed(replace(self._head, body=body), file=self._path)
        self._summary.resume(group, tracker, maps)


def _mysql_gtid(low: int, high: int, sequence: int) -> MysqlGtid:
    """A GTID whose source is given as two halves."""
    return MysqlGtid(str(UUID(bytes=_SOURCE.pack(low, high))), sequence)
