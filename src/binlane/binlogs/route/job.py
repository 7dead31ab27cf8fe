"""One run: files in, scoped binlogs out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.filtered_runs import RunFilter
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.filters.schema_objects import Load, SchemaObjects
from binlane.binlogs.filters.terms import FilterTerms
from binlane.binlogs.route.route_record import Reached, Record
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.route.source_files import SourceFile, look
from binlane.binlogs.route.target import RouteTarget
from binlane.binlogs.routing.dispatcher import Dispatcher, RunGroups
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.byte_source import FileBytes, MeteredBytes
from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import CodecError, ConfigError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.event_group import (
    CONTROL_TYPES,
    EventGroup,
    GroupTracker,
    group_events,
    whole_group,
)
from binlane.log.grouping.raw import (
    HELD_BYTES_MAX,
    WINDOW_BYTES,
    Item,
    LargeGroup,
    RawRun,
    raw_groups,
)
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.kernels.load import is_compiled
from binlane.positions import AnyGtid

KEEP_BYTES: Final = 256 << 20
"""Bytes of the files after which everything is forced to disk and noted."""

_KERNELS: Final = ("copying", "scan")
_NOTES_MAX: Final = 100


@dataclass(slots=True)
class BinlogCounts:
    """Counts of the events that one binlog got.

    Attributes:
        event_groups: Groups appended in this run.
        events: Events in these event groups.
        rows_events: Rows events among these events.
        incidents: Groups that an INCIDENT event stands for, each with its cause.
        omissions: Number of parts left out since they name outside objects, by kind.
    """

    event_groups: int = 0
    events: int = 0
    rows_events: int = 0
    incidents: list[str] = field(default_factory=list)
    omissions: Counter[str] = field(default_factory=Counter)

    def add(self, part: BinlogPart) -> None:
        """Add a part that the binlog got."""
        self.event_groups += part.groups
        self.events += part.events
        self.rows_events += part.rows_events
        for omission, number in part.omissions:
            self.omissions[omission.kind.value] += number


@dataclass(slots=True)
class RouteReport:
    """The results of a run.

    Attributes:
        counts: Counts of each binlog, by its name.
        files: Number of files that were read, at least in part.
        notes: Remarks for the user on the run.
        is_unmatched: True if the files have nothing that a filter names.
        fault: The damage at which the run ended early, behind whole groups; None if it did not.
    """

    counts: dict[str, BinlogCounts] = field(default_factory=dict)
    files: int = 0
    notes: list[str] = field(default_factory=list)
    is_unmatched: bool = False
    fault: CodecError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """The files, definitions and target of a run, with its settings.

    Attributes:
        paths: Paths of the files, oldest first.
        schedule: Definitions of the binlogs, with their history.
        out: Path of the target directory.
        keys: Keys for files that are encrypted.
        settings: Settings by which binlog files are written.
        start_position: Position in the first file at which to begin, in bytes; 0 for the place in
            the record, or its beginning.
        keep_bytes: Bytes of the files after which all is forced to disk and noted, as `KEEP_BYTES`.
        uses_kernels: True if kernels may be used where they are compiled.
        window_bytes: Bytes of a file that are looked at together.
        held_bytes_max: Most bytes of an event group in memory; a larger one is read from its file
            twice.
        links: Between the tables that there are before the first file, where that is known.
        filter_terms: The changes in the files that are routed; by default all.
        load_schema: Fills a catalog with the objects that there are where the run begins, for the
            filter; None where they are not known.
    """

    paths: tuple[str, ...]
    schedule: Schedule
    out: Path
    keys: KeyRing | None = None
    settings: StoreSettings = field(default_factory=StoreSettings)
    start_position: int = 0
    keep_bytes: int = KEEP_BYTES
    uses_kernels: bool = True
    window_bytes: int = WINDOW_BYTES
    held_bytes_max: int = HELD_BYTES_MAX
    links: TableLinks = NO_LINKS
    filter_terms: FilterTerms = field(default_factory=FilterTerms)
    load_schema: Load | None = None


def route_files(
    request: RouteRequest, *, disk: Disk | None = None, meter: Callable[[int], None] | None = None
) -> RouteReport:
    """Route files into binlogs.

    Args:
        request: Files, definitions and target of the run.
        disk: The disk of the target; the local one by default.
        meter: Called with the number of bytes that were read.

    Raises:
        CodecError: If a file is none of a binlog, before anything is written. Damage behind a
            file's beginning is in the report instead: what comes before it is in the binlogs.
        ConfigError: If the target holds something else.
        StoreError: If files or the target cannot be used; the next run goes on.
    """
    files = look(request.paths, request.keys)
    settings, disk = request.settings, disk or LocalDisk()
    with RouteTarget(request.out, request.schedule, settings=settings, disk=disk) as target:
        job = _Job(request, files, target, meter)
        job.run()
        job.tell_of_filter()
        return job.report


class _Job:
    """A run while it goes on."""

    def __init__(
        self,
        request: RouteRequest,
        files: Sequence[SourceFile],
        target: RouteTarget,
        meter: Callable[[int], None] | None,
    ) -> None:
        self._request = request
        self._files = files
        self._target = target
        self._meter = meter
        self._uses_kernels = request.uses_kernels and is_compiled(_KERNELS)
        self._unkept_bytes = 0
        self._dispatcher = Dispatcher()
        self.report = RouteReport()
        self._filter = _filter(request, target.record, self._note)
        if request.uses_kernels and not self._uses_kernels:
            self.report.notes.append(
                "the kernels are not compiled here, and all goes some hundred times slower: "
                "python -m binlane.log.kernels.build"
            )

    def _note(self, text: str) -> None:
        """Take a note of the filter; not all of very many."""
        if len(self.report.notes) < _NOTES_MAX:
            self.report.notes.append(text)
        elif len(self.report.notes) == _NOTES_MAX:
            self.report.notes.append("further notes are not kept")

    def run(self) -> None:
        """Route all files from where the run before ended."""
        files, position = self._from()
        record = self._target.record
        self._done = record.reached.done if record else files[0].done
        self._left = self._request.schedule.left_at(record.reached.done if record else None)
        for number, file in enumerate(files):
            self._file, self._position = file, position
            self._format = file.description.format
            self._check_gap(file, is_first=number == 0 and position <= len(MAGIC))
            if number == 0:
                self._target.begin(file, self._done)
                self._begin_memory(is_new=record is None)
                self._note_binlogs()
            self.report.files += 1
            for binlog in self._target.binlogs.values():
                binlog.advance_to(self._done)
                binlog.note_source(file.description.format)
                binlog.take_form(file.first.header.timestamp)
            try:
                for item in self._items(file, position):
                    self._take(item)
            except CodecError as error:
                self.report.fault = error
                break
            self._keep()
            position = 0
        else:
            return
        self._keep()

    def _note_binlogs(self) -> None:
        """Have the report name all binlogs, also those that get nothing."""
        for name in self._target.binlogs:
            self.report.counts.setdefault(name, BinlogCounts())

    def tell_of_filter(self) -> None:
        """Note what the filter left out, and whether it let anything through."""
        if self._filter is not None:
            state = self._filter.groups.state
            is_first = self._target.record is None
            self.report.is_unmatched = is_first and state.is_unmatched
            self.report.notes += state.summary(is_whole=is_first)

    def _begin_memory(self, *, is_new: bool) -> None:
        """Have binlogs know the tables before the first file, and no more than is true of a gap."""
        for binlog in self._target.binlogs.values():
            if is_new:
                binlog.remember(Memory(links=self._request.links))
            elif self._request.start_position:
                binlog.remember(binlog.memory.behind_gap())

    def _from(self) -> tuple[Sequence[SourceFile], int]:
        """The files that are left, and where to begin in the first."""
        record, files = self._target.record, self._files
        if self._request.start_position or record is None:
            return files, self._request.start_position
        reached = record.reached
        for number, file in enumerate(files):
            if (file.name, file.fingerprint) == (reached.file, reached.fingerprint):
                return files[number:], reached.position
        return files, 0

    def _check_gap(self, file: SourceFile, *, is_first: bool) -> None:
        """Note what is missing before a file."""
        self._may_repeat = bool(self._done) and is_first and not file.done.includes(self._done)
        missing = file.done.subtract(self._done)
        if missing and self._target.record is not None and not self._request.start_position:
            self.report.notes.append(
                f"{file.path}: {missing} was done before this file and is in no file before it"
            )
        if missing:
            self._done = self._done.union(file.done)

    def _items(self, file: SourceFile, position: int) -> Iterator[Item]:
        """The groups of a file, from a group on."""
        is_inside = position > file.first.next_position
        start = position if is_inside else 0
        if file.is_encrypted or not self._uses_kernels:
            # Only a file that is not encrypted can be read from its middle.
            goes_on = is_inside and not file.is_encrypted
            chunks = open_chunks(file.path, position=position if goes_on else 0)
            walker = Walker(
                self._metered(chunks),
                file=file.path,
                position=position if goes_on else 0,
                format_=file.description.format if goes_on else None,
                keys=self._request.keys,
            )
            for group in group_events(walker.events(), file=file.name):
                if group.position >= start:
                    yield group
            return
        with closing(FileBytes(file.path, start)) as plain:
            yield from raw_groups(
                plain if self._meter is None else MeteredBytes(plain, self._meter, position=start),
                file=file.path,
                name=file.name,
                position=start,
                format_=file.description.format if is_inside else None,
                keys=self._request.keys,
                window_bytes=self._request.window_bytes,
                held_bytes_max=self._request.held_bytes_max,
            )

    def _metered(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if self._meter is not None:
                self._meter(len(chunk))
            yield chunk

    def _take(self, item: Item) -> None:
        before = self._position
        if isinstance(item, RawRun):
            if self._filter is None:
                self._take_run(item)
            else:
                self._take_filtered(item, self._filter)
        elif isinstance(item, LargeGroup):
            self._take_large(item)
        else:
            self._take_part(item)
        self._unkept_bytes += max(0, self._position - before)
        if self._unkept_bytes >= self._request.keep_bytes:
            self._keep()

    def _take_filtered(self, run: RawRun, filter_: Filter) -> None:
        """Take what the filter leaves of a run; what it leaves out is done all the same."""
        if self._may_repeat or self._left:
            for number in range(run.count):
                self._take_part(run.group(number))
            return
        first = 0
        for part in filter_.runs.parts(run):
            if isinstance(part.item, RawRun):
                self._take_run(part.item)
            elif part.item is not None:
                self._take_group(part.item)
            done = replace(run, groups=np.ascontiguousarray(run.groups[:, first : part.stop]))
            self._done = done.position_after(self._done)
            self._position = done.next_position
            first = part.stop

    def _take_part(self, group: EventGroup) -> None:
        """Take what the filter, if there is one, leaves of a group."""
        if self._filter is None or not group.is_complete:
            self._take_group(group)
            return
        kept = self._filter.groups.group(group, self._format_of(group))
        if kept is not None:
            self._take_group(kept)
        if not group.is_control:
            self._position = group.next_position
            self._pass(group.gtid)

    def _format_of(self, group: EventGroup) -> Format:
        """The format of a group: that of the last FORMAT_DESCRIPTION."""
        body = group.events[0].body
        if isinstance(body, FormatDescriptionEvent):
            self._format = body.format
        return self._format

    def _take_run(self, run: RawRun) -> None:
        binlogs = tuple(self._target.binlogs.values())
        groups = RunGroups(run)
        if self._may_repeat or self._left or not self._dispatcher.read(run, binlogs):
            for number in range(run.count):
                self._take_group(groups.group(number))
            return
        # Nothing of a group may be in one binlog if another one cannot have its part.
        damage = self._dispatcher.route_ahead(groups)
        if damage is not None:
            groups.run = run = run.head(damage[0])
        if run.count:
            after = run.position_after(self._done)
            for place, binlog in enumerate(binlogs):
                # A group that came by itself left the binlog behind; a new file says what is
                # before it.
                binlog.advance_to(self._done)
                parts = self._dispatcher.run_parts(groups, place, None, after)
                self._write(binlog, parts, groups)
            self._done = after
            self._position = run.next_position
        if damage is not None:
            number, error = damage
            raise self._located(error, groups.group(number))

    def _located(self, error: CodecError, group: EventGroup) -> CodecError:
        """An error with the place of the event of a group that raised it."""
        from binlane.binlogs.routing.event_routing import damaged_event  # noqa: PLC0415  # parses SQL

        return error.at(self._file.path, damaged_event(group).position)

    def _write(
        self,
        binlog: Binlog,
        parts: Iterable[BinlogPart],
        groups: RunGroups | EventGroup | None = None,
    ) -> None:
        """Give a binlog its parts of some groups, or of one that is not held."""
        counts = self.report.counts.setdefault(binlog.name, BinlogCounts())
        for part in parts:
            binlog.take(part)
            counts.add(part)
            if part.incident is not None:
                group = (
                    groups.group(part.next_group - 1) if isinstance(groups, RunGroups) else groups
                )
                assert group is not None, "a group that is not held is no INCIDENT"
                place = f"{self._file.path}:{group.position}"
                counts.incidents.append(f"{place}: {part.gtid or 'no GTID'}: {part.incident}")

    def _take_large(self, large: LargeGroup) -> None:
        """Route a group that is not held; one that must be is, where nothing else can route it."""
        try:
            self._route_large(large)
        except UnexpectedError:
            groups = group_events(large.events(), file=self._file.name)
            group = next(groups)
            self._take_part(group)
            large.end = group.next_position

    def _route_large(self, large: LargeGroup) -> None:
        tracker, ends = GroupTracker(), False
        for event in large.events():
            placed = tracker.feed(event)
            if placed.begins and event.position != large.position:
                break
            large.gtid, large.timestamp, ends = placed.gtid, event.header.timestamp, placed.ends
            large.end = event.next_position
            if ends:
                break
        if not ends or self._may_repeat or self._left:
            raise UnexpectedError
        losses = Losses()
        kept = self._large_part(large, losses)
        if self._filter is not None and not any(isinstance(e.body, RowsEvent) for e in kept()):
            raise UnexpectedError
        binlogs = tuple(self._target.binlogs.values())
        made = self._dispatcher.large_parts(large, binlogs, [None] * len(binlogs), kept)
        if self._filter is not None:
            self._filter.groups.count(losses)
        for binlog, parts in zip(binlogs, made, strict=True):
            binlog.advance_to(self._done)
            self._write(binlog, parts)
        assert large.end is not None, "its last event said so"
        self._position = large.end
        self._pass(large.gtid)

    def _large_part(self, large: LargeGroup, losses: Losses) -> Callable[[], Iterator[Event]]:
        """Make a function that gives a large group's events, each time anew, without those the filter drops.

        Args:
            large: The group to be routed.
            losses: Counts of the changes left out, each time anew.

        Raises:
            UnexpectedError: If the group holds statements, of which the filter must know once.
        """
        filter_ = self._filter
        if filter_ is None:
            return lambda: whole_group(large.events())

        def part() -> Iterator[Event]:
            losses.clear()
            events = whole_group(large.events())
            yield from filter_.groups.rows(
                events, large.format, file=self._file.path, losses=losses
            )

        return part

    def _take_group(self, group: EventGroup) -> None:
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            for binlog in self._target.binlogs.values():
                binlog.advance_to(self._done)
                binlog.set_format(first.body, timestamp=first.header.timestamp)
            self._position = group.next_position
        elif group.is_control and first.header.type_code in CONTROL_TYPES:
            return
        elif not group.is_complete:
            self.report.notes.append(
                f"{self._file.path}:{group.position}: an event group has no end here; its server "
                "rolled it back, and it is left out"
            )
        elif not (self._may_repeat and group.gtid and self._done.covers(group.gtid)):
            binlogs = tuple(self._target.binlogs.values())
            try:
                made = [self._dispatcher.group_part(group, binlog, None) for binlog in binlogs]
            except CodecError as error:
                raise self._located(error, group) from None
            for binlog, part in zip(binlogs, made, strict=True):
                binlog.advance_to(self._done)
                self._write(binlog, [part], group)
            self._position = group.next_position
            self._pass(group.gtid)
        else:
            self._position = group.next_position

    def _pass(self, gtid: AnyGtid | None) -> None:
        """Note that a group is done; other definitions may hold from here on."""
        if gtid is None or self._done.covers(gtid):
            return
        self._done = self._done.advance(gtid)
        while self._left and self._done.covers(self._left[0].after):
            self._target.define(self._left[0].definitions, self._file, self._done)
            self._left = self._left[1:]
            self._note_binlogs()

    def _keep(self) -> None:
        """Have everything on disk, and note how far it goes."""
        self._unkept_bytes = 0
        self._target.keep(
            Reached(
                file=self._file.name,
                fingerprint=self._file.fingerprint,
                position=self._position,
                done=self._done,
                filter_terms=self._request.filter_terms.text,
                followed={} if self._filter is None else self._filter.groups.state.saved,
            )
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of the files, in the two forms that groups have."""

    groups: GroupFilter
    runs: RunFilter


def _filter(
    request: RouteRequest, record: Record | None, note: Callable[[str], None]
) -> Filter | None:
    """The filter of a run, where the run before left it; None if everything is routed.

    Raises:
        ConfigError: If the run before had another one.
    """
    terms = request.filter_terms
    if record is not None and record.reached.filter_terms != terms.text:
        before = record.reached.filter_terms or "none"
        raise ConfigError(
            f"what is there was routed with another filter: {before}",
            key="--do-table",
            hint="give the same options, or route into another directory",
        )
    if terms.is_everything:
        return None
    saved = {} if record is None else record.reached.followed
    state = FilterState.restored(terms, saved)
    known = None if request.load_schema is None else SchemaObjects(request.load_schema)
    groups = GroupFilter(state, note, known)
    return Filter(groups, RunFilter(groups))
