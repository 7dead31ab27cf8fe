"""A range of a binlog file → record batches by kernels, and what stands between the rows.

It gives what `batches` gives for the file's event groups; only where a batch ends may differ. The
file goes through a window of a few MiB. Each event is checked as the reference decoder checks it.
Where the kernels meet what they are not made for, be it damage or a type of old, the reference
decoder looks at the same bytes, and raises what is to be raised.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.first_event import description_in, format_of
from binlane.log.grouping.scanner import Scanner, is_fast
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import Bytes, Window
from binlane.log.grouping.xa import prepared_in
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.tables.columnar.batches import ChangeBatcher
from binlane.tables.columnar.beside_rows import BesideRows, UnheldGroup
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.kernel_input import KernelInput, KernelOptions
from binlane.tables.columnar.log_notes import GroupOrigin, RowItem
from binlane.tables.columnar.noted_events import NotedEvents, Numbers, Small
from binlane.tables.columnar.noted_rows import NotedRows
from binlane.tables.columnar.prepared_transactions import PreparedGroup
from binlane.tables.columnar.selection import GroupFacts

if TYPE_CHECKING:
    from binlane.tables.columnar.payload_rows import PayloadRows

# Kinds of noted events.
_ROWS: Final = 0
_PAYLOAD: Final = 1
_BESIDE: Final = 2


def kernel_batches(
    log: KernelInput,
    batcher: ChangeBatcher,
    *,
    options: KernelOptions | None = None,
    counters: ReadCounters | None = None,
) -> Iterator[RowItem]:
    """The row changes of a file as record batches, and what is told between them.

    Args:
        log: The bytes of the file, and where they begin.
        batcher: Collects the rows by the reader's wishes, and decodes events that kernels cannot.
        options: How much may be held in memory at once.
        counters: Counters that are kept up to date while the file is read.

    Yields:
        Items as `batches` gives them.

    Raises:
        CodecError: At the first fault, with file and position, behind all rows before it.
    """
    counters = counters or ReadCounters()
    rows = NotedRows(batcher, file=log.file, counters=counters)
    reader = _FileReader(log, batcher, rows, options or KernelOptions(), counters)
    try:
        yield from reader.items()
    except CodecError:
        yield from rows.finish()
        raise
    yield from rows.finish()


class _FileReader:
    """Reads one file, or of an earlier one the group that an XA COMMIT brings into effect."""

    def __init__(
        self,
        log: KernelInput,
        reference: ChangeBatcher,
        rows: NotedRows,
        options: KernelOptions,
        counters: ReadCounters,
        *,
        place: GroupOrigin | None = None,
    ) -> None:
        self._log = log
        self._source = log.source
        self._file = log.file
        self._reference = reference
        self._rows = rows
        self._options = options
        self._counters = counters
        self._place = place
        self._payloads: PayloadRows | None = None
        self._window = Window(log.source, size_bytes=options.window_bytes, base=log.position)
        self._known_end = 0
        self._beside = BesideRows(reference, rows, is_prepared=place is not None)

    def items(self) -> Iterator[RowItem]:
        """All but the batches that are not full."""
        format_ = self._log.format_
        if format_ is None:
            first = description_in(self._window)
            if first is None:
                yield from self._by_reference(self._window.rest(0), 0, None)
                return
            self._begin(format_of(first), len(MAGIC))
        elif is_fast(format_):
            self._begin(format_, 0)
        else:
            chunks = self._window.rest(0)
            yield from self._by_reference(chunks, self._log.position, format_)
            return
        try:
            yield from self._scan_all()
        except UnexpectedError:
            yield from self._process()
            yield from self._read_on()

    def _begin(self, format_: Format, offset: int) -> None:
        self._scanner = Scanner(format_, told=self._beside.told, is_decrypted=True)
        self._scanner.state[layout.OFFSET] = offset
        self._scanner.state[layout.BASE] = self._window.base
        if self._place is None:
            self._reference.take_format(format_)

    def _scan_all(self) -> Iterator[RowItem]:
        """Go through the file, window by window."""
        scanner = self._scanner
        while True:
            status = scanner.scan(self._window.data, self._window.end)
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                yield from self._answer()
                continue
            is_full = scanner.is_full
            if not is_full and not self._window.is_full and self._window.fill():
                continue
            yield from self._process()
            self._cut()
            if is_full:
                scanner.make_room()
                continue
            if self._is_too_large():
                yield from self._look_ahead()
            elif not self._window.fill():
                if self._window.end > scanner.offset:
                    raise UnexpectedError
                return

    def _answer(self) -> Iterator[RowItem]:
        """Look at the event that the kernel asks about."""
        event = self._asked()
        if isinstance(event.body, FormatDescriptionEvent):
            yield from self._process()
            format_ = event.body.format
            if not is_fast(format_):
                raise UnexpectedError
            self._scanner.take_format(format_)
            self._reference.take_format(format_)
            self._rows.forget_tables()
            self._payloads = None

    def _asked(self) -> Event:
        scanner, window = self._scanner, self._window
        start = scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        try:
            data = window.bytes(start, start + header.length)
            return scanner.look_at(data, window.base + start)
        except CodecError:
            raise UnexpectedError from None  # it is raised again behind what came before

    def _cut(self) -> None:
        """Forget what lies before the open group, or before the next event."""
        scanner, window = self._scanner, self._window
        count = scanner.offset
        if scanner.is_open and not self._is_known_whole():
            count = scanner.group_position - window.base
        scanner.forget(count)
        window.drop(count)

    def _is_known_whole(self) -> bool:
        """True if the open group was looked through before and found complete."""
        return self._window.base + self._scanner.offset < self._known_end

    def _is_too_large(self) -> bool:
        scanner = self._scanner
        return (
            scanner.is_open
            and not self._is_known_whole()
            and self._window.end - (scanner.group_position - self._window.base)
            > self._options.held_bytes_max
        )

    def _look_ahead(self) -> Iterator[RowItem]:
        """Look through a large group to its end; go back to its start if its rows are wanted."""
        scanner, window = self._scanner, self._window
        start = scanner.group_position
        large = UnheldGroup(start)
        with scanner.one_group():
            while scanner.is_in(start):
                self._beside.note(large, scanner, window)
                scanner.drop_noted()
                status = scanner.scan(window.data, window.end)
                if status == layout.DAMAGED:
                    raise UnexpectedError
                if status == layout.ASK:
                    if scanner.is_open:
                        self._asked()
                    continue
                self._beside.note(large, scanner, window)
                scanner.drop_noted()
                count = scanner.offset
                if scanner.is_in(start):
                    scanner.forget(count)
                    window.drop(count)
                    if not window.fill():
                        if window.end > scanner.offset:
                            raise UnexpectedError
                        scanner.close()
                        return
            end = window.base + scanner.offset
            is_wanted = bool(scanner.group_count) and (yield from self._wants_large(large, end))
        if is_wanted:
            self._source = self._source.reread(start)
            self._window = Window(self._source, size_bytes=self._options.window_bytes, base=start)
            scanner.rewind(start)
            self._known_end = end

    def _wants_large(self, large: UnheldGroup, end: int) -> Generator[RowItem, None, bool]:
        """True if the rows of a large group that was looked through are to be given now."""
        place = self._group_place(0, large.position)
        is_wanted = yield from self._beside.decide_large(
            large, place, end, self._scanner.format, is_wanted=bool(self._wanted_groups(1)[0])
        )
        if not is_wanted:
            self._count_groups(1, end - large.position)
        return is_wanted

    def _group_place(self, number: int, start: int) -> GroupOrigin:
        """Return the facts that all events of a group share."""
        if self._place is not None:
            return self._place
        scanner = self._scanner
        at = number * layout.GTID_TEXT_MAX
        length = int(scanner.groups[layout.GROUP_GTID_LENGTH, number])
        text = scanner.texts[at : at + length].tobytes().decode()
        micros = int(scanner.groups[layout.GROUP_MICROS, number])
        return GroupOrigin(gtid=text or None, file=self._log.name, start=start, micros=micros)

    def _count_groups(self, groups: int, size_bytes: int) -> None:
        self._counters.groups += groups
        self._counters.bytes += size_bytes

    def _wanted_groups(self, count: int) -> Bytes:
        """True if the filter leaves out a table that its rules name, where the log is read."""
        scanner, selection = self._scanner, self._reference.selection
        if selection.is_unbounded or self._place is not None:
            return np.ones(count, np.uint8)
        of_places = selection.places(
            self._log.name,
            scanner.groups[layout.GROUP_START, :count],
            scanner.groups[layout.GROUP_TIME, :count],
        )
        if of_places is not None:
            return of_places
        wanted = np.zeros(count, np.uint8)
        for number in range(count):
            length = int(scanner.groups[layout.GROUP_GTID_LENGTH, number])
            start = number * layout.GTID_TEXT_MAX
            facts = GroupFacts(
                file=self._log.name,
                position=int(scanner.groups[layout.GROUP_START, number]),
                timestamp=int(scanner.groups[layout.GROUP_TIME, number]),
                gtid_text=scanner.texts[start : start + length].tobytes().decode(),
            )
            wanted[number] = selection.includes(facts)
        return wanted

    def _process(self) -> Iterator[RowItem]:
        """Give the rows of the complete groups, and of one that is known to become complete."""
        scanner = self._scanner
        count = scanner.group_count
        groups = scanner.groups[:, :count]
        if count and self._place is None:
            spans = groups[layout.GROUP_STOP] - groups[layout.GROUP_START]
            self._count_groups(count, int(spans.sum()))
        owners = np.empty(scanner.events_done, np.int32)
        picked = np.empty_like(owners)
        wanted = self._wanted_groups(count)
        picked = picked[: kernels().own(scanner.groups, wanted, owners, picked)]
        starts, micros = groups[layout.GROUP_START], groups[layout.GROUP_MICROS]
        lengths = groups[layout.GROUP_GTID_LENGTH].astype(np.int32)
        if scanner.is_open and self._is_known_whole():
            left = int(scanner.state[layout.EVENTS]) - owners.shape[0]
            more = np.arange(owners.shape[0], owners.shape[0] + left, dtype=np.int32)
            picked = np.concatenate([picked, more])
            owners = np.concatenate([owners, np.full(left, count, np.int32)])
            state, wanted = scanner.state, np.append(wanted, np.uint8(1))
            lengths = np.append(lengths, np.int32(state[layout.GTID_LENGTH]))
            starts = np.append(starts, state[layout.GROUP_POSITION])
            micros = np.append(micros, state[layout.GTID_MICROS])
        if owners.shape[0]:
            noted = self._noted(owners, lengths, starts, micros)
            yield from self._take(noted, picked, wanted)
        if scanner.is_open and self._is_known_whole():
            scanner.drop_noted()
        scanner.forget(0)

    def _noted(
        self, owners: Small, lengths: Small, starts: Numbers, micros: Numbers
    ) -> NotedEvents:
        scanner, window, place = self._scanner, self._window, self._place
        offsets = scanner.events[layout.EVENT_OFFSET, : owners.shape[0]]
        noted = NotedEvents(
            data=window.data,
            headers=window.data,
            events=scanner.events,
            groups=owners,
            texts=scanner.texts,
            lengths=lengths,
            starts=starts,
            micros=micros if micros.any() else None,
            positions=offsets.astype(np.int64) + window.base,
            file=self._log.name,
            tables=scanner.tables,
            format_=scanner.format,
        )
        return noted if place is None else noted.at(place)

    def _take(self, noted: NotedEvents, picked: Small, wanted: Bytes) -> Iterator[RowItem]:
        """Take plain events, transaction payloads and what is beside rows, in log order."""
        count = noted.groups.shape[0]
        maps = noted.events[layout.EVENT_MAP, :count]
        if maps.min() >= 0:
            yield from self._rows.take(noted, picked)
            return
        classes = np.where(maps >= 0, _ROWS, _BESIDE)
        types = noted.events[layout.EVENT_TYPE, :count]
        classes[types == EventType.TRANSACTION_PAYLOAD] = _PAYLOAD
        # A transaction that is prepared before the selection may be committed within it.
        for index in np.flatnonzero((classes == _PAYLOAD) & (wanted[noted.groups] == 0)).tolist():
            if prepared_in(noted.event(index), noted.format_) is not None:
                classes[index] = _BESIDE
        if (classes == _BESIDE).any():
            picked = self._beside.pick(noted, wanted, classes == _BESIDE)
        cuts = np.flatnonzero(np.diff(classes[picked])) + 1
        for run in np.split(picked, cuts):
            kind = classes[run[0]] if run.shape[0] else _ROWS
            if kind == _ROWS:
                yield from self._rows.take(noted, run)
            elif kind == _PAYLOAD:
                yield from self._payload_rows().take(noted, run)
            else:
                for index in run.tolist():
                    yield from self._tell(noted, index, is_wanted=bool(wanted[noted.groups[index]]))

    def _tell(
        self, noted: NotedEvents, index: int, *, is_wanted: bool = True, is_inner: bool = False
    ) -> Iterator[RowItem]:
        """Tell of an event that is no row, or give the rows that it brings into effect."""
        try:
            window = None if is_inner else self._window
            found = yield from self._beside.take(noted, index, window, is_wanted=is_wanted)
        except CodecError as error:
            raise error.at(self._file, int(noted.positions[index])) from None
        if found is None:
            return
        place = GroupOrigin.of_commit(noted.source(index, noted.event(index)))
        if isinstance(found, EventGroup):
            yield from self._rows.finish()
            yield from self._reference.add_group(found, place)
            return
        yield from self._read_prepared(found, place)

    def _read_prepared(self, group: PreparedGroup, place: GroupOrigin) -> Iterator[RowItem]:
        """Give the rows of a group that stands elsewhere, at another place."""
        log = KernelInput(
            source=self._reference.prepared.source(group),
            file=group.path,
            name=place.file,
            position=group.start,
            format_=group.format,
        )
        reader = _FileReader(
            log, self._reference, self._rows, self._options, self._counters, place=place
        )
        yield from reader.items()

    def _payload_rows(self) -> PayloadRows:
        """Return the reader of transaction payloads in this format; MariaDB's logs have no payloads."""
        if self._payloads is None:
            from binlane.tables.columnar.payload_rows import PayloadRows  # noqa: PLC0415 - as it says

            tell = partial(self._tell, is_inner=True)
            hold = self._beside.hold if self._place is None else None
            self._payloads = PayloadRows(
                self._rows, tell, hold, file=self._file, told=self._beside.told
            )
            self._payloads.take_format(self._scanner.format)
        return self._payloads

    def _read_on(self) -> Iterator[RowItem]:
        """Let the reference decoder read on from the open group, or the next event, to the end.

        Raises:
            CodecError: If something is wrong there, which is why it was called, mostly.
        """
        scanner, window = self._scanner, self._window
        start = scanner.group_position
        offset = scanner.offset
        if start >= window.base:
            chunks: Iterable[bytes] = window.rest(start - window.base)
        else:
            # Part of a group that is not held: what is wrong shows at the next event.
            position = window.base + offset
            format_ = scanner.format
            walker = Walker(
                window.rest(offset), file=self._file, position=position, format_=format_
            )
            for _ in walker.events():
                break
            chunks = Window(self._source.reread(start), size_bytes=self._options.window_bytes).rest(
                0
            )
        yield from self._by_reference(chunks, start, scanner.format)

    def _by_reference(
        self, chunks: Iterable[bytes], position: int, format_: Format | None
    ) -> Iterator[RowItem]:
        """Let the reference decoder read on to the end of the file, or of the prepared group."""
        yield from self._rows.finish()
        walker = Walker(chunks, file=self._file, position=position, format_=format_)
        for group in group_events(walker.events(), file=self._log.name):
            if not group.is_control and group.is_complete:
                self._count_groups(1, group.size_bytes)
                self._counters.groups_by_reference += 1
                self._counters.bytes_by_reference += group.size_bytes
            if self._place is None:
                yield from self._reference.feed(group)
            else:
                yield from self._reference.add_group(group, self._place, format_=format_)
                return
