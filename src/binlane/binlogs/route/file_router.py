"""Routing of source files into the binlogs of a target, one event group or run of groups after another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.filtered_runs import RunFilter
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.route.route_request import BinlogCounts, RouteReport, RouteRequest
from binlane.binlogs.route.schedule import ScheduledChange
from binlane.binlogs.route.source_files import SourceFile
from binlane.binlogs.routing.dispatcher import DecisiveTrace, Dispatcher
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.byte_source import FileBytes, MeteredBytes
from binlane.binlogs.store.chunks import open_chunks
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.event_group import (
    CONTROL_TYPES,
    EventGroup,
    GroupTracker,
    group_events,
    whole_group,
)
from binlane.log.grouping.raw import Item, LargeGroup, RawRun, raw_groups
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.kernels.load import is_compiled
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition

_KERNELS: Final = ("copying", "scan")


class RoutedBinlogs(Protocol):
    """The binlogs that files are routed into."""

    @property
    def binlogs(self) -> Mapping[str, Binlog]:
        """The binlogs by their names."""
        ...

    def define(self, definitions: Sequence[Definition], source: SourceFile, done: Position) -> None:
        """Go on with other definitions."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of the files, in the two forms that groups have."""

    groups: GroupFilter
    runs: RunFilter


class FileRouter:
    """Routes files into the binlogs of a target.

    Attributes:
        report: Report of the run, to which counts and notes are added.
        done: Position of the source that is done.
        position: Position in the file of the next event group, in bytes.
        left: Changes of definitions that are still to come.
        unkept_bytes: Bytes of the files that were routed since the caller set it to 0.
        trace: Takes note of groups; None if nobody asks for them.
    """

    def __init__(
        self,
        request: RouteRequest,
        target: RoutedBinlogs,
        report: RouteReport,
        *,
        meter: Callable[[int], None] | None = None,
        filter_: Filter | None = None,
    ) -> None:
        self._request = request
        self._target = target
        self._meter = meter
        self._filter = filter_
        self._dispatcher = Dispatcher()
        self._uses_kernels = request.uses_kernels and is_compiled(_KERNELS)
        self._may_repeat = False
        self._file: SourceFile
        self.report = report
        self.done: Position
        self.position = 0
        self.left: tuple[ScheduledChange, ...] = ()
        self.unkept_bytes = 0
        self.trace: DecisiveTrace | None = None
        if request.uses_kernels and not self._uses_kernels:
            report.notes.append(
                "the kernels are not compiled here, and all goes some hundred times slower: "
                "python -m binlane.log.kernels.build"
            )

    @property
    def is_fast(self) -> bool:
        """True if runs of groups are routed as bytes: by kernels, with definitions that stay."""
        return self._uses_kernels and not self.left

    def note_binlogs(self) -> None:
        """Have the report name all binlogs, also those that get nothing."""
        for name in self._target.binlogs:
            self.report.counts.setdefault(name, BinlogCounts())

    def route(
        self,
        file: SourceFile,
        position: int,
        *,
        may_repeat: bool = False,
        goes_on: bool = False,
    ) -> Generator[None]:
        """Route a file from a group on; the caller may look at the binlogs at each step.

        Args:
            file: The file, whose head is known.
            position: Position at which a group begins; 0 for the beginning of the file.
            may_repeat: True if the file may have groups that are done already.
            goes_on: True if the binlogs already have the form that the settings want.

        Raises:
            CodecError: If the file is damaged; what comes before is in the binlogs.
            StoreError: If the file or the binlogs cannot be used.
        """
        self._file, self.position, self._may_repeat = file, position, may_repeat
        self._format = file.description.format
        for binlog in self._target.binlogs.values():
            binlog.advance_to(self.done)
            binlog.note_source(file.description.format)
            if not goes_on:
                binlog.take_form(file.first.header.timestamp)
        for item in self._items(file, position):
            self._take(item)
            yield

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
        before = self.position
        if isinstance(item, RawRun):
            if self._filter is None:
                self._take_run(item)
            else:
                self._take_filtered(item, self._filter)
        elif isinstance(item, LargeGroup):
            self._take_large(item)
        else:
            self._take_part(item)
        self.unkept_bytes += max(0, self.position - before)

    def _take_filtered(self, run: RawRun, filter_: Filter) -> None:
        """Take what the filter leaves of a run; what it leaves out is done all the same."""
        if self._may_repeat or self.left:
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
            self.done = done.position_after(self.done)
            self.position = done.next_position
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
            self.position = group.next_position
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
        if self._may_repeat or self.left or not self._dispatcher.read(groups, binlogs):
            for number in range(run.count):
                self._take_group(groups.group(number))
            return
        # Nothing of a group may be in one binlog if another one cannot have its part.
        damage = self._dispatcher.route_ahead(groups, self.trace)
        if damage is not None:
            groups.run = run = run.head(damage[0])
        if run.count:
            after = run.position_after(self.done)
            for place, binlog in enumerate(binlogs):
                # A group that came by itself left the binlog behind; a new file says what is
                # before it.
                binlog.advance_to(self.done)
                parts = self._dispatcher.run_parts(groups, place, None, after)
                self._write(binlog, parts, groups)
            self.done = after
            self.position = run.next_position
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
        if not ends or self._may_repeat or self.left:
            raise UnexpectedError
        if self.trace is not None:
            self.trace.large()
        losses = Losses()
        kept = self._large_part(large, losses)
        if self._filter is not None and not any(isinstance(e.body, RowsEvent) for e in kept()):
            raise UnexpectedError
        binlogs = tuple(self._target.binlogs.values())
        made = self._dispatcher.large_parts(large, binlogs, [None] * len(binlogs), kept)
        if self._filter is not None:
            self._filter.groups.count(losses)
        for binlog, parts in zip(binlogs, made, strict=True):
            binlog.advance_to(self.done)
            self._write(binlog, parts)
        assert large.end is not None, "its last event said so"
        self.position = large.end
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
                binlog.advance_to(self.done)
                binlog.set_format(first.body, timestamp=first.header.timestamp)
            self.position = group.next_position
        elif group.is_control and first.header.type_code in CONTROL_TYPES:
            return
        elif not group.is_complete:
            self.report.notes.append(
                f"{self._file.path}:{group.position}: an event group has no end here; its server "
                "rolled it back, and it is left out"
            )
        elif not (self._may_repeat and group.gtid and self.done.covers(group.gtid)):
            binlogs = tuple(self._target.binlogs.values())
            if self.trace is not None:
                self.trace.group(group)
            try:
                made = [self._dispatcher.group_part(group, binlog, None) for binlog in binlogs]
            except CodecError as error:
                raise self._located(error, group) from None
            for binlog, part in zip(binlogs, made, strict=True):
                binlog.advance_to(self.done)
                self._write(binlog, [part], group)
            self.position = group.next_position
            self._pass(group.gtid)
        else:
            self.position = group.next_position

    def _pass(self, gtid: AnyGtid | None) -> None:
        """Note that a group is done; other definitions may hold from here on."""
        if gtid is None or self.done.covers(gtid):
            return
        self.done = self.done.advance(gtid)
        while self.left and self.done.covers(self.left[0].after):
            self._target.define(self.left[0].definitions, self._file, self.done)
            self.left = self.left[1:]
            self.note_binlogs()
