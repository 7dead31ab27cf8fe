"""One fast pass over a file of a log, or over what is new in it: bytes → facts.

Kernels find the events; of rows only their tables are looked at, and checksums of rows are left to
whoever reads them. Events that kernels were not made for are read by the reference decoder, from
the next group on. Nothing is held beside a window of bytes, however large a transaction is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.store.stored_groups import fingerprint
from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, decode_event, encode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent, GtidListEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import CONTROL_TYPES, EventGroup, group_events, gtid_of
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.inner import expanded, expanded_all
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.scanner import Scanner, is_fast
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import Window
from binlane.log.kernels import layout
from binlane.log.kernels.load import can_jit, is_compiled
from binlane.positions import Gtid, MysqlGtid
from binlane.tables.ranges.log_file_facts import PIECE_BYTES, LogFileFacts
from binlane.tables.ranges.noting import GroupNotes, Notes
from binlane.tables.ranges.storage import LogBytes, bytes_before, first_events, named
from binlane.tables.ranges.stored_files import StoredLogFile, chunks_of

WINDOW_BYTES: Final = 4 << 20
_KERNEL_MODULES: Final = ("scan",)
_ROWS_TYPES: Final = tuple(code for code in EventType if "_ROWS" in code.name)
_NO_ROWS_TYPES: Final = frozenset({EventType.ANNOTATE_ROWS})
_SPECIAL_TYPES: Final = (
    EventType.QUERY_COMPRESSED,
    EventType.XA_PREPARE_LOG,
    EventType.INCIDENT,
    EventType.TRANSACTION_PAYLOAD,  # may prepare an XA transaction
)


def _is_of(types: Iterable[int]) -> npt.NDArray[np.bool_]:
    return np.isin(np.arange(256), list(types))


_IS_ROWS: Final = _is_of(code for code in _ROWS_TYPES if code not in _NO_ROWS_TYPES)
_IS_SPECIAL: Final = _is_of(_SPECIAL_TYPES)
_IS_GTID: Final = _is_of((EventType.GTID, EventType.GTID_LOG, EventType.GTID_TAGGED_LOG))
_TRANSACTION_WORDS: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK")


def first_facts(file: StoredLogFile, *, keys: str | None = None) -> LogFileFacts:
    """The facts that a file's first events tell.

    Raises:
        CodecError: With file and position, if it does not begin as a binlog file.
        StoreError: If it cannot be read.
    """
    begin: str | None = None
    with closing(LogBytes(file.uri, is_plain=file.is_plain, keys=keys)) as source:
        events = first_events(source, file.uri)
        head = next(events)
        start = head.next_position
        with suppress(CodecError):  # whoever goes on from here meets it again
            for event in events:
                if event.header.type_code not in CONTROL_TYPES:
                    break
                start = event.next_position
                if isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
                    begin = str(event.body.position)
                    break
    return LogFileFacts(
        fingerprint=fingerprint(head),
        server_id=head.header.server_id,
        head=MAGIC + encode_event(head, None),
        format=format_of(head),
        begin=begin,
        start=len(MAGIC),
        end=start,
    )


def survey(
    file: StoredLogFile,
    facts: LogFileFacts,
    *,
    keys: str | None = None,
    until: int | None = None,
    piece_bytes: int = PIECE_BYTES,
    window_bytes: int = WINDOW_BYTES,
) -> LogFileFacts:
    """Extend the facts of a file by a survey behind their end.

    Args:
        file: The file with its present size.
        facts: The facts that are known of the file.
        keys: Path of a key file, if the file is encrypted.
        until: Position up to which facts are enough; None for the end of the file.
        piece_bytes: Least distance of two cut points.
        window_bytes: How many bytes are looked at at once.

    Returns:
        More facts. Damage is no error here: the facts end before it, and `fault` tells of it.

    Raises:
        StoreError: If the file cannot be read.
    """
    if until is not None and facts.end >= until:
        return facts
    if file.is_plain and facts.read_to == file.size_bytes:
        return facts
    stop = file.size_bytes if file.is_plain else None
    source = LogBytes(file.uri, position=facts.end, stop=stop, is_plain=file.is_plain, keys=keys)
    with closing(source):
        surveyor = _Surveyor(
            source,
            file,
            Notes(facts, piece_bytes=piece_bytes),
            facts.format,
            window_bytes=window_bytes,
        )
        return surveyor.run(until)


class _Surveyor:
    def __init__(
        self,
        source: LogBytes,
        file: StoredLogFile,
        notes: Notes,
        format_: Format,
        *,
        window_bytes: int,
    ) -> None:
        self._source = source
        self._file = file
        self._notes = notes
        self._format = format_
        self._window_bytes = window_bytes
        self._window = Window(source, size_bytes=window_bytes, base=source.position)
        self._scanner = Scanner(format_, notes_all=True)
        self._scanner.state[layout.BASE] = source.position
        self._take_format(format_)
        self._numbers: dict[int, int] = {}
        self._ends_in_group = False
        self._open: GroupNotes | None = None
        self._open_maps: set[int] = set()

    def run(self, until: int | None) -> LogFileFacts:
        fault, is_cut = "", False
        try:
            if not is_fast(self._format) or not (is_compiled(_KERNEL_MODULES) or can_jit()):
                raise UnexpectedError  # noqa: TRY301 - the same way on
            self._scan(until)
            self._ends_in_group = self._scanner.is_open
        except UnexpectedError:
            with suppress(UnexpectedError):
                self._process()
            try:
                self._read_on(until)
            except CodecError as error:
                is_cut = self._is_cut(error)
                fault = "" if is_cut else str(error)
        check = b""
        if self._file.is_plain:
            check = bytes_before(self._file.uri, self._notes.end, CHECKSUM_LENGTH)
        is_read = (until is None or self._notes.end < until) and not self._ends_in_group
        return self._notes.facts(
            check=check,
            is_cut=is_cut,
            fault=fault,
            read_to=self._file.size_bytes if is_read and not is_cut else 0,
        )

    # By kernels ----------------------------------------------------------------------------------

    def _take_format(self, format_: Format) -> None:
        self._format = format_
        self._scanner.take_format(format_)
        # Checksums of what is decoded here are checked there.
        self._scanner.state[layout.CRC32] = 0

    def _scan(self, until: int | None) -> None:
        scanner, window = self._scanner, self._window
        while until is None or self._notes.end < until:
            status = scanner.scan(window.data, window.end)
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                self._answer()
                continue
            is_full = scanner.is_full
            if not is_full and not window.is_full and window.fill():
                continue
            self._process()
            self._cut()
            if is_full:
                scanner.make_room()
            elif not window.fill():
                if window.end > scanner.offset:
                    raise UnexpectedError
                return

    def _answer(self) -> None:
        scanner, window = self._scanner, self._window
        start = scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        data = window.bytes(start, start + header.length)
        try:
            event = scanner.look_at(data, window.base + start)
        except CodecError:
            raise UnexpectedError from None  # it is met again behind what came before
        if isinstance(event.body, FormatDescriptionEvent):
            self._process()
            if not is_fast(event.body.format):
                raise UnexpectedError
            self._take_format(event.body.format)

    def _cut(self) -> None:
        """Forget what lies before the next event, or before the open group if that is small."""
        scanner, window = self._scanner, self._window
        count = scanner.offset
        if scanner.is_open and scanner.group_position >= window.base:
            start = scanner.group_position - window.base
            if window.end - start < self._window_bytes // 2:
                count = start
        if scanner.is_open and count == scanner.offset:
            self._take_open()
        scanner.forget(count)
        window.drop(count)

    def _take_open(self) -> None:
        """Note what there is so far of a group that is too large to be held."""
        scanner = self._scanner
        first, last = scanner.events_done, int(scanner.state[layout.EVENTS])
        position = scanner.group_position
        if self._open is None or self._open.start != position:
            self._open, self._open_maps = GroupNotes(start=position), set()
            head = self._event(first)
            self._open.is_undone = isinstance(head.body, GtidEvent) and head.body.is_undone
        self._open.events += self._special(first, last)
        self._open_maps |= self._maps(first, last)
        self._take_times(first, last)
        scanner.drop_noted()

    def _process(self) -> None:
        """Note the complete groups, as far as they were not yet."""
        scanner, window = self._scanner, self._window
        count = scanner.group_count
        if not count:
            return
        run = RawRun(
            data=window.data,
            base=window.base,
            events=scanner.events,
            groups=scanner.groups[:, :count].copy(),
            format=scanner.format,
            tables=scanner.tables,
            file=self._file.name,
        )
        stops = run.groups[layout.GROUP_STOP]
        # If an event could not be decoded, the same groups come once more.
        low = int(np.searchsorted(stops, self._notes.end, side="right"))
        if low == 0 and run.groups[layout.GROUP_START, 0] < window.base:
            self._take_large(run)
            low = 1
        while low < count:
            high = min(int(np.searchsorted(stops, self._notes.cut_due)) + 1, count)
            self._take(run, low, high)
            low = high
        scanner.forget(0)

    def _take(self, run: RawRun, low: int, high: int) -> None:
        """Note some complete groups whose bytes are all there."""
        groups = np.ascontiguousarray(run.groups[:, low:high])
        first, last = int(groups[layout.GROUP_FIRST, 0]), int(groups[layout.GROUP_END, -1])
        notes = self._notes
        # All is decoded before any of it is noted.
        special = list(self._specials(groups, first, last))
        maps = self._maps(first, last)
        self._take_times(first, last)
        notes.gtids = replace(run, groups=groups).position_after(notes.gtids)
        for group in special:
            notes.take_special(group)
        is_known = _IS_GTID[run.events[layout.EVENT_TYPE, groups[layout.GROUP_FIRST]]]
        times = groups[layout.GROUP_TIME]
        notes.add(
            stop=int(groups[layout.GROUP_STOP, -1]),
            groups=high - low,
            first_timestamp=int(times.min()),
            last_timestamp=int(times.max()),
            maps=maps,
            has_anonymous=not bool(is_known.all()),
        )

    def _take_large(self, run: RawRun) -> None:
        """Note the first group, whose first bytes are gone."""
        scanner = self._scanner
        groups = run.groups
        start = int(groups[layout.GROUP_START, 0])
        first, last = int(groups[layout.GROUP_FIRST, 0]), int(groups[layout.GROUP_END, 0])
        length = int(groups[layout.GROUP_GTID_LENGTH, 0])
        group = self._open
        assert group is not None, "its first bytes were noted before they were dropped"
        assert group.start == start, "no other group is open"
        group.gtid = scanner.texts[:length].tobytes().decode()
        group.stop = int(groups[layout.GROUP_STOP, 0])
        group.events += self._special(first, last)
        maps = self._maps(first, last)
        self._take_times(first, last)
        self._notes.take_special(group)
        if group.gtid:
            parse = MysqlGtid.parse if ":" in group.gtid else Gtid.parse
            self._notes.take_gtid(parse(group.gtid))
        timestamp = int(groups[layout.GROUP_TIME, 0])
        self._notes.add(
            stop=group.stop,
            groups=1,
            first_timestamp=timestamp,
            last_timestamp=timestamp,
            maps=maps | self._open_maps,
            has_anonymous=not group.gtid,
        )
        self._open = None

    def _take_times(self, first: int, last: int) -> None:
        """Note the times of some events."""
        times = self._scanner.events[layout.EVENT_TIME, first:last].view(np.uint32)
        if times.size:
            self._notes.take_times(int(times.min()), int(times.max()))

    def _maps(self, first: int, last: int) -> set[int]:
        """The numbers of the table maps of some events' rows."""
        events = self._scanner.events[:, first:last]
        types = events[layout.EVENT_TYPE]
        maps = {
            self._number(number)
            for number in np.unique(events[layout.EVENT_MAP, _IS_ROWS[types]]).tolist()
            if number >= 0
        }
        for index in np.flatnonzero(types == EventType.TRANSACTION_PAYLOAD).tolist():
            maps |= self._maps_inside(self._event(first + index))
        return maps

    def _maps_inside(self, carrier: Event) -> set[int]:
        try:
            return _changed(self._notes, _timed(self._notes, expanded(carrier, self._format)))
        except CodecError:
            raise UnexpectedError from None

    def _number(self, number: int) -> int:
        found = self._numbers.get(number)
        if found is None:
            found = self._notes.number_of(self._scanner.tables[number].table_map)
            self._numbers[number] = found
        return found

    def _specials(
        self, groups: npt.NDArray[np.int64], first: int, last: int
    ) -> Iterator[GroupNotes]:
        """The groups that hold more than rows, and what that is."""
        indexes = self._special_indexes(first, last)
        owners = np.searchsorted(groups[layout.GROUP_END], indexes, side="right")
        for number in np.unique(owners).tolist():
            head = self._event(int(groups[layout.GROUP_FIRST, number]))
            yield GroupNotes(
                start=int(groups[layout.GROUP_START, number]),
                stop=int(groups[layout.GROUP_STOP, number]),
                gtid=str(gtid_of(head) or ""),
                is_undone=isinstance(head.body, GtidEvent) and head.body.is_undone,
                events=self._decoded(indexes[owners == number]),
            )

    def _special(self, first: int, last: int) -> list[Event]:
        return self._decoded(self._special_indexes(first, last))

    def _decoded(self, indexes: npt.NDArray[np.int64]) -> list[Event]:
        return [self._event(index) for index in indexes.tolist()]

    def _special_indexes(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """The events that are neither rows nor what every transaction has."""
        events = self._scanner.events[:, first:last]
        types = events[layout.EVENT_TYPE]
        is_special = _IS_SPECIAL[types]
        queries = np.flatnonzero(types == EventType.QUERY)
        if queries.size:
            is_special[queries] = self._are_statements(
                events[layout.EVENT_OFFSET, queries].astype(np.int64),
                events[layout.EVENT_END, queries].astype(np.int64),
            )
        return np.flatnonzero(is_special) + first

    def _are_statements(
        self, offsets: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return a flag for each QUERY event that is not one that begins or ends a transaction."""
        if self._format.post_header_length(EventType.QUERY) != 13:
            return np.ones(offsets.shape[0], np.bool_)
        data = self._window.data
        bodies = offsets + HEADER_LENGTH
        status = data[bodies + 11].astype(np.int64) | data[bodies + 12].astype(np.int64) << 8
        starts = bodies + 14 + status + data[bodies + 8]
        found = np.ones(offsets.shape[0], np.bool_)
        for word in _TRANSACTION_WORDS:
            same = np.flatnonzero(ends - starts == len(word))
            texts = data[starts[same, None] + np.arange(len(word))]
            found[same[(texts == np.frombuffer(word, np.uint8)).all(axis=1)]] = False
        return found

    def _event(self, index: int) -> Event:
        """A noted event, decoded.

        Raises:
            UnexpectedError: If it is damaged.
        """
        window = self._window
        start = int(self._scanner.events[layout.EVENT_OFFSET, index])
        stop = int(self._scanner.events[layout.EVENT_END, index]) + self._format.checksum_length
        try:
            return decode_event(
                window.bytes(start, stop), self._format, position=window.base + start
            )
        except CodecError:
            raise UnexpectedError from None

    # By the reference ----------------------------------------------------------------------------

    def _read_on(self, until: int | None) -> None:
        """Let the reference go on from the last complete group.

        Raises:
            CodecError: At the first fault, or where the file is cut.
        """
        position = self._notes.end
        walker = Walker(
            chunks_of(self._source.reread(position)),
            file=named(self._file.uri),
            position=position,
            format_=self._format,
        )
        for group in group_events(walker.events(), file=self._file.name):
            self._ends_in_group = not group.is_complete
            if _is_counted(group):
                self._take_group(group)
            if until is not None and self._notes.end >= until:
                return

    def _take_group(self, group: EventGroup) -> None:
        notes = self._notes
        head = group.events[0]
        gtid = "" if group.gtid is None else str(group.gtid)
        special = [
            event
            for event in group.events
            if (isinstance(event.body, QueryEvent) and event.body.query not in _TRANSACTION_WORDS)
            or event.header.type_code in _SPECIAL_TYPES
        ]
        notes.take_special(
            GroupNotes(
                start=group.position,
                stop=group.next_position,
                gtid=gtid,
                is_undone=isinstance(head.body, GtidEvent) and head.body.is_undone,
                events=special,
            )
        )
        if group.gtid is not None:
            notes.take_gtid(group.gtid)
        events = expanded_all(group.events, file=named(self._file.uri), format_=self._format)
        notes.add(
            stop=group.next_position,
            groups=1,
            first_timestamp=group.timestamp,
            last_timestamp=group.timestamp,
            maps=_changed(notes, _timed(notes, events)),
            has_anonymous=not gtid,
        )

    def _is_cut(self, error: CodecError) -> bool:
        """True if the only fault is that an event is not there to its end yet."""
        if not isinstance(error, TruncatedError) or error.position is None:
            return False
        position = error.position
        source = self._source.reread(position)
        head = bytearray(HEADER_LENGTH)
        view, count = memoryview(head), 0
        while count < len(head) and (length := source.read_into(view[count:])):
            count += length
        if count < len(head):
            return True
        left = EventHeader.decode(bytes(head)).length - HEADER_LENGTH
        rest = bytearray(1 << 16)
        while left > 0 and (length := source.read_into(memoryview(rest)[:left])):
            left -= length
        return left > 0


def _is_counted(group: EventGroup) -> bool:
    """True if a group is complete, and no event of the log itself; an INCIDENT may stand alone."""
    return group.is_complete and group.events[0].header.type_code not in CONTROL_TYPES


def _timed(notes: Notes, events: Iterable[Event]) -> Iterator[Event]:
    """Give events on, and note their times."""
    for event in events:
        notes.take_times(event.header.timestamp, event.header.timestamp)
        yield event


def _changed(notes: Notes, events: Iterable[Event]) -> set[int]:
    """The numbers of the tables that have rows among some events."""
    known: dict[int, TableMapEvent] = {}
    found: set[int] = set()
    for event in events:
        if isinstance(event.body, TableMapEvent):
            known[event.body.table_id] = event.body
        elif isinstance(event.body, RowsEvent) and event.body.table_id in known:
            found.add(notes.number_of(known[event.body.table_id]))
    return found
