"""Event groups as bytes with an index of their events: the form in which groups flow.

A file's bytes go through a window. The kernel `scan` checks each event as the reference decoder
does and notes where it stands; nothing is decoded. Whole groups come in runs, as many as a window
holds. Where the kernel meets what it was not made for, be it damage, encryption or a type of old,
the reference takes over at the next group, and raises what is to be raised: `EventGroup`s come from
there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.query import POST_HEADER_LENGTH, QueryEvent, compressed_text
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, group_events, gtid_of
from binlane.log.grouping.first_event import description_in, format_of
from binlane.log.grouping.run_gtids import SEQUENCE_AT, mariadb_gtids, mysql_gtids, numbers_at
from binlane.log.grouping.scanner import KnownTable, Numbers, Scanner, Small, is_fast
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PADDING, PIECE_BYTES, Bytes, ByteSource, Window
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.positions import (
    AnyGtid,
    Gtid,
    GtidPosition,
    GtidRun,
    GtidSet,
    MysqlGtid,
    Position,
    uuid_text,
)

WINDOW_BYTES: Final = 4 << 20
HELD_BYTES_MAX: Final = 64 << 20
_FEW: Final = 8
# Plain ints: they are looked at once a commit, and a member of an enum is found slowly.
_GTID_TYPE: Final = int(EventType.GTID)
_GTID_LOG_TYPE: Final = int(EventType.GTID_LOG)
_TAGGED_TYPE: Final = int(EventType.GTID_TAGGED_LOG)
_PARTIAL_TYPE: Final = int(EventType.PARTIAL_ROW_DATA)
# From the event's first byte on.
_GTID: Final = Struct("<5xI10xQI")
_MYSQL_GTID: Final = Struct("<20x16sq")

_Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRun:
    """A run of whole event groups as bytes.

    Attributes:
        data: Holds the events; what it holds changes when the next run is asked for.
        base: Position in the file of its first byte.
        events: The index of events, a column each, as `kernels.layout` has its rows.
        groups: The groups, a column each.
        format: The format of the FORMAT_DESCRIPTION before them.
        tables: The table maps by the numbers that the index gives; it only grows.
        file: Base name of the file.
    """

    data: Bytes
    base: int
    events: Small
    groups: Numbers
    format: Format
    tables: list[KnownTable]
    file: str

    @property
    def count(self) -> int:
        """The number of groups in the run."""
        return int(self.groups.shape[1])

    @property
    def next_position(self) -> int:
        """The end of the last group in the file, in bytes."""
        end = int(self.events[layout.EVENT_END, self.groups[layout.GROUP_END, -1] - 1])
        return self.base + end + self.format.checksum_length

    @property
    def last_timestamp(self) -> int:
        """The time of the last group, in seconds since 1970."""
        return int(self.groups[layout.GROUP_TIME, -1])

    def head(self, count: int) -> RawRun:
        """The first groups of the run."""
        return replace(self, groups=np.ascontiguousarray(self.groups[:, :count]))

    def size_bytes(self, first: int, end: int) -> int:
        """Return the size of the groups from a number up to the one before another, in bytes."""
        if first >= end:
            return 0
        begin = self.groups.item(layout.GROUP_FIRST, first)
        behind = self.groups.item(layout.GROUP_END, end - 1)
        start = self.events.item(layout.EVENT_OFFSET, begin)
        return self.events.item(layout.EVENT_END, behind - 1) - start

    def kept(self, first: int) -> RawRun:
        """Return the groups from one on, as a run of its own that never changes.

        Where row images begin, its index does not say.
        """
        begin = self.groups.item(layout.GROUP_FIRST, first)
        end = self.groups.item(layout.GROUP_END, self.count - 1)
        events = self.events[:, begin:end].copy()
        start = int(events[layout.EVENT_OFFSET, 0])
        stop = int(events[layout.EVENT_END, -1]) + self.format.checksum_length
        for row in (layout.EVENT_OFFSET, layout.EVENT_END):
            events[row] -= start
        groups = self.groups[:, first:].copy()
        groups[layout.GROUP_FIRST] -= begin
        groups[layout.GROUP_END] -= begin
        return replace(
            self,
            data=np.concatenate([self.data[start:stop], np.zeros(PADDING, np.uint8)]),
            base=self.base + start,
            events=events,
            groups=groups,
        )

    def timestamp(self, number: int) -> int:
        """Return the time of a group, in seconds since 1970."""
        return int(self.groups[layout.GROUP_TIME, number])

    def group(self, number: int) -> EventGroup:
        """Return a group, decoded.

        Raises:
            CodecError: With file and position, if an event in it cannot be decoded.
        """
        first, end = self.groups[[layout.GROUP_FIRST, layout.GROUP_END], number]
        if not (self.events[layout.EVENT_TYPE, first:end] == _PARTIAL_TYPE).any():
            # The kernel has seen where each event ends; whatever it did not see is told below.
            with suppress(CodecError):
                events = tuple(map(self.event, range(first, end)))
                return EventGroup(gtid=gtid_of(events[0]), events=events, file=self.file)
        start = int(self.events[layout.EVENT_OFFSET, first])
        stop = int(self.events[layout.EVENT_END, end - 1]) + self.format.checksum_length
        walker = Walker(
            (self.data[start:stop].tobytes(),),
            file=self.file,
            position=self.base + start,
            format_=self.format,
        )
        (group,) = group_events(walker.events(), file=self.file)
        return group

    def gtid(self, number: int) -> AnyGtid | None:
        """The GTID of a group."""
        first = self.groups.item(layout.GROUP_FIRST, number)
        kind = self.events.item(layout.EVENT_TYPE, first)
        start = self.events.item(layout.EVENT_OFFSET, first)
        if kind == _GTID_TYPE:
            server_id, sequence, domain_id = _GTID.unpack_from(self.data.data, start)
            return Gtid(domain_id, server_id, sequence)
        if kind == _GTID_LOG_TYPE:
            source, sequence = _MYSQL_GTID.unpack_from(self.data.data, start)
            return MysqlGtid(uuid_text(source.hex()), sequence)
        return gtid_of(self._first_event(number))

    def sequences(self) -> npt.NDArray[np.int64]:
        """The sequence numbers of the groups' GTIDs; -1 for a GTID with a tag, or for none."""
        first = self.groups[layout.GROUP_FIRST, : self.count]
        bodies = self.events[layout.EVENT_OFFSET, first].astype(np.int64) + HEADER_LENGTH
        types = self.events[layout.EVENT_TYPE, first]
        found = np.full(self.count, -1, np.int64)
        for kind, place in ((_GTID_TYPE, 0), (_GTID_LOG_TYPE, SEQUENCE_AT)):
            is_kind = types == kind
            found[is_kind] = numbers_at(self.data, bodies[is_kind] + place, 8).astype(np.int64)
        return found

    def follow(self, position: Position) -> tuple[Position, int]:
        """A position with the groups of the run done, as long as their GTIDs are new and in order.

        Returns:
            The position, and how many groups these are: all of them, or those before the first
            that is done already.
        """
        if self.count > _FEW:
            after = self._position_in_order(position)
            if after is not None:
                return after, self.count
        for number in range(self.count):
            gtid = self.gtid(number)
            if gtid is not None:
                if position.covers(gtid):
                    return position, number
                position = position.advance(gtid)
        return position, self.count

    def _position_in_order(self, position: Position) -> Position | None:
        """A position with the groups of the run done; None if their GTIDs may not be new and in order."""
        first = self.groups[layout.GROUP_FIRST]
        types = self.events[layout.EVENT_TYPE, first]
        if isinstance(position, GtidPosition) and (types == _GTID_TYPE).all():
            sequences = np.empty(self.count, np.int64)
            run = self.data, self.events, self.groups
            domain: int = kernels().common_domain(run, sequences)
            if domain < 0:
                return self._position_of_domains(position)
            if position.covers(Gtid(domain, 0, int(sequences[0]))):
                return None
            last = self.gtid(self.count - 1)
            assert last is not None, "its type says so"
            return position.advance(last)
        is_mysql = ((types == _GTID_LOG_TYPE) | (types == _TAGGED_TYPE)).all()
        if is_mysql and isinstance(position, GtidSet):
            given = GtidSet.of(self._mysql_gtids(first))
            size = sum(last - first + 1 for run in given.runs for first, last in run.intervals)
            if size == self.count and not position.intersection(given):
                return position.union(given)
        return None

    def _position_of_domains(self, position: GtidPosition) -> Position | None:
        """Do as `_position_in_order`, for GTIDs of several domains of MariaDB."""
        first = self.groups[layout.GROUP_FIRST]
        bodies = self.events[layout.EVENT_OFFSET, first].astype(np.int64) + HEADER_LENGTH
        domains, sequences = numbers_at(self.data, bodies + 8, 4), numbers_at(self.data, bodies, 8)
        order = np.argsort(domains, kind="stable")
        domains, sequences = domains[order], sequences[order]
        is_same = domains[1:] == domains[:-1]
        if (is_same & (sequences[1:] <= sequences[:-1])).any():
            return None
        begins = np.append(True, ~is_same)
        starts = zip(domains[begins].tolist(), sequences[begins].tolist(), strict=True)
        if any(position.covers(Gtid(domain, 0, sequence)) for domain, sequence in starts):
            return None
        return self.position_after(position)

    def position_after(
        self, position: Position, count: int | None = None, *, start: int = 0
    ) -> Position:
        """A position with the first groups of the run done, with all of them by default.

        Args:
            position: The position before the groups of the run.
            count: The number of groups that are done; None for all.
            start: The number of these groups that `position` has.
        """
        first = self.groups[layout.GROUP_FIRST, start:count]
        types = self.events[layout.EVENT_TYPE, first]
        offsets = self.events[layout.EVENT_OFFSET, first].astype(np.int64)
        mariadb = offsets[types == _GTID_TYPE]
        if mariadb.shape[0]:
            assert isinstance(position, GtidPosition), "a log is of one flavor"
            position = position.union(GtidPosition.of(mariadb_gtids(self.data, mariadb)))
        mysql = first[(types == _GTID_LOG_TYPE) | (types == _TAGGED_TYPE)]
        if mysql.shape[0]:
            assert isinstance(position, GtidSet), "a log is of one flavor"
            position = position.union(GtidSet.of(self._mysql_gtids(mysql)))
        return position

    def _mysql_gtids(self, first: npt.NDArray[np.int64]) -> list[GtidRun | MysqlGtid]:
        """The GTIDs of the groups that begin with such events."""
        runs, unread = mysql_gtids(self.data, self.events, first)
        others = (gtid_of(self.event(number)) for number in unread)
        return [*runs, *(gtid for gtid in others if isinstance(gtid, MysqlGtid))]

    def _first_event(self, number: int) -> Event:
        return self.event(self.groups.item(layout.GROUP_FIRST, number))

    def event(self, number: int) -> Event:
        """Return an event, decoded.

        Raises:
            CodecError: If it cannot be decoded.
        """
        start = self.events.item(layout.EVENT_OFFSET, number)
        stop = self.events.item(layout.EVENT_END, number) + self.format.checksum_length
        return decode_event(
            self.data[start:stop].tobytes(), self.format, position=self.base + start
        )

    def group_of(self, event: int) -> int:
        """The number of the group that an event of the run is in."""
        firsts = self.groups[layout.GROUP_FIRST]
        return int(np.searchsorted(firsts, event, side="right")) - 1

    def compressed_text(self, number: int) -> bytes:
        """The text of a QUERY_COMPRESSED, by its event's number.

        Raises:
            CodecError: If it cannot be decoded.
        """
        start = self.events.item(layout.EVENT_OFFSET, number)
        stop = self.events.item(layout.EVENT_END, number)
        if self.format.post_header_length(EventType.QUERY) == POST_HEADER_LENGTH:
            data = self.data[start:stop].tobytes()
            text = compressed_text(data, HEADER_LENGTH, stop - start)
            if text is not None:
                return text
        body = self.event(number).body
        assert isinstance(body, QueryEvent), "its type says so"
        return body.query


@dataclass(slots=True)
class LargeGroup:
    """A group that is too large to be held; its reader may read it several times.

    Attributes:
        position: The beginning of the group in the file.
        format: The format of the FORMAT_DESCRIPTION before it.
        file: The file's name, as messages shall give it.
        chunks: Gives its bytes, and maybe those behind it, each time anew.
        gtid: The GTID of the group; None also where it is not known before the group is read.
        end: The end of the group; where the file is read, set by whoever took the group, before the
            next item is asked for.
        timestamp: The time of its last event, in seconds since 1970, where the end is known.
    """

    position: int
    format: Format
    file: str
    chunks: Callable[[], Iterable[bytes]]
    gtid: AnyGtid | None = None
    end: int | None = None
    timestamp: int = 0

    def events(self) -> Iterator[Event]:
        """Yield the group's events, and possibly later ones, from the first on.

        Raises:
            CodecError: With file and position, if one cannot be decoded.
            StoreError: If the bytes cannot be read again.
        """
        walker = Walker(self.chunks(), file=self.file, position=self.position, format_=self.format)
        return walker.events()


Item = RawRun | EventGroup | LargeGroup
"""A part of a file: a FORMAT_DESCRIPTION as control group, or whole groups in either form."""


def raw_groups(  # noqa: PLR0913 - what a file is, and from where on
    source: ByteSource,
    *,
    file: str,
    name: str,
    position: int = 0,
    format_: Format | None = None,
    keys: KeyRing | None = None,
    window_bytes: int = WINDOW_BYTES,
    held_bytes_max: int = HELD_BYTES_MAX,
) -> Iterator[Item]:
    """The event groups of one file, from its beginning or from a group on.

    Args:
        source: The bytes, from `position` on.
        file: The file's name, as messages shall give it.
        name: The file's base name, as groups have it.
        position: The beginning of a group, when `format_` is given.
        format_: The format of the FORMAT_DESCRIPTION before `position`.
        keys: The keys of an encrypted file, which is read from its beginning only.
        window_bytes: The number of bytes that are looked at at once; a larger group makes the
            window larger.
        held_bytes_max: The largest size of a group that is held.

    Yields:
        Runs and groups in file order. A run is good until the next item is asked for. Control
        groups other than FORMAT_DESCRIPTION, and groups that do not end, come from the reference
        only.

    Raises:
        CodecError: At the first fault, with file and position, behind all groups before it.
        StoreError: If the bytes cannot be read.
    """
    reader = _Reader(
        source,
        file=file,
        name=name,
        keys=keys,
        window_bytes=window_bytes,
        held_bytes_max=held_bytes_max,
    )
    return reader.from_start() if format_ is None else reader.from_group(position, format_)


def _scanner(format_: Format) -> Scanner:
    scanner = Scanner(format_, notes_all=True)
    # A group that another one cuts off is for the reference to tell of.
    scanner.state[layout.IS_STRICT] = 1
    return scanner


class _Reader:
    def __init__(
        self,
        source: ByteSource,
        *,
        file: str,
        name: str,
        keys: KeyRing | None,
        window_bytes: int,
        held_bytes_max: int,
    ) -> None:
        self._source = source
        self._file = file
        self._name = name
        self._keys = keys
        self._window_bytes = window_bytes
        self._held_bytes_max = held_bytes_max
        self._window = Window(source, size_bytes=window_bytes)

    def from_start(self) -> Iterator[Item]:
        """Read a file from its beginning."""
        first = description_in(self._window)
        if first is None:
            yield from self._by_reference(Walker(self._rest(0), file=self._file, keys=self._keys))
            return
        yield self._control(first)
        self._scanner = _scanner(format_of(first))
        self._scanner.state[layout.OFFSET] = first.next_position
        yield from self._scan_all()

    def from_group(self, position: int, format_: Format) -> Iterator[Item]:
        """Read a file from a group on."""
        self._window.base = position
        if not is_fast(format_):
            walker = Walker(self._rest(0), file=self._file, position=position, format_=format_)
            yield from self._by_reference(walker)
            return
        self._scanner = _scanner(format_)
        self._scanner.state[layout.BASE] = position
        yield from self._scan_all()

    def _control(self, event: Event) -> EventGroup:
        return EventGroup(gtid=None, events=(event,), file=self._name, is_control=True)

    def _scan_all(self) -> Iterator[Item]:
        try:
            yield from self._scan()
        except UnexpectedError:
            yield from self._run()
            yield from self._read_on()

    def _scan(self) -> Iterator[Item]:
        scanner = self._scanner
        while True:
            window = self._window
            status = scanner.scan(window.data, window.end)
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                yield from self._answer()
                continue
            is_full = scanner.is_full
            if not is_full and not window.is_full and window.fill():
                continue
            yield from self._run()
            count = scanner.offset
            if scanner.is_open:
                count = scanner.group_position - window.base
            scanner.forget(count)
            window.drop(count)
            if scanner.is_open and window.end > self._held_bytes_max:
                yield from self._large()
            elif is_full:
                scanner.make_room()
            elif not window.fill():
                if window.end > scanner.offset:
                    raise UnexpectedError
                yield from self._unfinished()
                return

    def _answer(self) -> Iterator[Item]:
        """Look at the event that the kernel asks about."""
        event = self._asked()
        if event is not None and isinstance(event.body, FormatDescriptionEvent):
            yield from self._run()
            yield self._control(event)
            self._take_format(event.body.format)

    def _large(self) -> Iterator[LargeGroup]:
        """Hand the open group over to a reader of its own, and go on behind it."""
        start = self._scanner.group_position

        def chunks() -> Iterator[bytes]:
            return Window(self._source.reread(start), size_bytes=PIECE_BYTES).rest(0)

        group = LargeGroup(start, self._scanner.format, file=self._file, chunks=chunks)
        yield group
        assert group.end is not None, "whoever takes a large group says where it ends"
        self._source = self._source.reread(group.end)
        self._window = Window(self._source, size_bytes=self._window_bytes, base=group.end)
        self._scanner.rewind(group.end)

    def _asked(self) -> Event | None:
        """The event that the kernel asks about; None if nobody needs it decoded."""
        scanner, window = self._scanner, self._window
        start = scanner.offset
        data = window.bytes(start, start + scanner.length_in(window.data))
        if scanner.passes(data):
            return None
        try:
            return scanner.look_at(data, window.base + start)
        except CodecError:
            raise UnexpectedError from None  # it is raised again behind what came before

    def _take_format(self, format_: Format) -> None:
        if not is_fast(format_):
            raise UnexpectedError
        self._scanner.take_format(format_)

    def _run(self) -> Iterator[RawRun]:
        """The complete groups that were found since the last run."""
        scanner = self._scanner
        count = scanner.group_count
        if count:
            yield RawRun(
                data=self._window.data,
                base=self._window.base,
                events=scanner.events,
                groups=scanner.groups[:, :count].copy(),
                format=scanner.format,
                tables=scanner.tables,
                file=self._name,
            )
            scanner.forget(0)

    def _unfinished(self) -> Iterator[EventGroup]:
        """The group that the file ends in."""
        if self._scanner.is_open:
            offset = self._scanner.group_position - self._window.base
            yield from self._by_reference(self._walker(offset))

    def _read_on(self) -> Iterator[EventGroup]:
        """Let the reference read from the open group, or the next event, to the end."""
        scanner, window = self._scanner, self._window
        offset = scanner.group_position - window.base
        if int(window.data[scanner.offset + 4]) == EventType.START_ENCRYPTION:
            source = self._source.reread(0)
            chunks = Window(source, size_bytes=self._window_bytes).rest(0)
            walker = Walker(chunks, file=self._file, keys=self._keys)
            done = window.base + offset
            for group in self._by_reference(walker):
                if group.position >= done:
                    yield group
            return
        yield from self._by_reference(self._walker(offset))

    def _walker(self, offset: int) -> Walker:
        return Walker(
            self._rest(offset),
            file=self._file,
            position=self._window.base + offset,
            format_=self._scanner.format,
        )

    def _rest(self, offset: int) -> Iterator[bytes]:
        return self._window.rest(offset)

    def _by_reference(self, walker: Walker) -> Iterator[EventGroup]:
        return group_events(walker.events(), file=self._name)
