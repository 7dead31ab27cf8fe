"""A stretch of a source file, routed in any process from a known state of each binlog.

A stretch is measured or written. Both are the same routing; measuring only counts the bytes. So the
states behind a stretch are known before the stretch is written, and several stretches can be
written at the same time, each to its place in the binlogs' files.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from binlane.binlogs.route.file_router import FileRouter
from binlane.binlogs.route.kept_parts import KeepingDisk, KeptPart, NoDisk, NoFile, place_part
from binlane.binlogs.route.route_request import RouteReport, RouteRequest
from binlane.binlogs.route.source_files import SourceFile
from binlane.binlogs.route.writers_lock import writing
from binlane.binlogs.routing.row_images import Uncut
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.disk import (
    DRAFT_SUFFIX,
    FILE_MODE,
    Disk,
    DiskFile,
    LocalFile,
    unusable,
)
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.group_form import ImageCutters
from binlane.binlogs.store.mark_keeper import BinlogMarks
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.errors import CodecError
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.positions import Position
from binlane.statements.scope.definition import Definition

_LOG: Final = logging.getLogger(ImageCutters.__module__)

KEPT_SHARE: Final = 0.3
"""Most bytes that measuring keeps, as a share of the source file."""

_DECISIVE_MAX: Final = 20_000
_ROOM_BYTES: Final = 1 << 50


class Decisive(NamedTuple):
    """A group on which the memory of binlogs may depend, and the tables with rows before it.

    Attributes:
        tables: Tables that have rows between the decisive group before and this one.
        group: The group; None behind the last one.
    """

    tables: frozenset[TableName]
    group: EventGroup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StretchPoint:
    """The state of everything at a place between two groups of a source file.

    Attributes:
        position: Position in the source file, in bytes.
        done: Position of the source that is done there.
        binlogs: State of each binlog, by its name.
        is_guess: True if the binlogs' places are not those that they will have.
    """

    position: int
    done: Position
    binlogs: dict[str, RecoveredBinlog]
    is_guess: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch to be routed.

    Attributes:
        request: Request of the run, with its settings.
        file: The source file of the stretch.
        start: State at the beginning of the stretch.
        stop: Position in the source file at which the stretch ends; None for the end of the file.
        definitions: Definitions of the binlogs in `start`.
        owner: Owner of the directory of the binlogs, for which they are written; empty to measure
            their growth.
        keeps_as: Name of the bytes that measuring keeps if there are few; empty to keep none.
        point_bytes: Bytes of the source file between two points.
    """

    request: RouteRequest
    file: SourceFile
    start: StretchPoint
    stop: int | None = None
    definitions: tuple[Definition, ...]
    owner: str = ""
    keeps_as: str = ""
    point_bytes: int

    @property
    def is_written(self) -> bool:
        """True if the binlogs' files are written, False if their growth is measured."""
        return bool(self.owner)

    @property
    def size_bytes(self) -> int:
        """Bytes of the source file, by which an engine judges the work."""
        return self.file.size_bytes

    @property
    def place(self) -> str:
        """File and position at which the stretch begins, for people."""
        return f"{self.file.path}:{self.start.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedStretch:
    """The outcome of a stretch.

    Attributes:
        points: States along the stretch, from its start to its end.
        report: Counts and notes of the stretch, and its fault.
        decisive: Groups on which memories may depend; None if they are too many or too large.
        ended: Files of each binlog that ended in the stretch.
        uncut: Events of each binlog whose row images stayed full, by reason.
        kept: Bytes of each binlog that measuring kept; None if it kept none.
    """

    points: tuple[StretchPoint, ...]
    report: RouteReport
    decisive: tuple[Decisive, ...] | None
    ended: dict[str, tuple[BinlogFile, ...]]
    uncut: dict[str, Counter[Uncut]]
    kept: dict[str, KeptPart] | None = None

    @property
    def end(self) -> StretchPoint:
        """State at the end of the stretch."""
        return self.points[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A stretch whose bytes measuring has kept.

    Attributes:
        stretch: The stretch as it is written where the bytes cannot be moved.
        kept: The bytes of each binlog.
        clocks: Number by which MySQL's logical timestamps in them grow.
    """

    stretch: Stretch
    kept: dict[str, KeptPart]
    clocks: dict[str, int]

    @property
    def size_bytes(self) -> int:
        """Bytes of the source file, by which an engine judges the work."""
        return self.stretch.size_bytes

    @property
    def place(self) -> str:
        """File and position at which the stretch begins, for people."""
        return self.stretch.place


def write(work: Stretch | Placement) -> RoutedStretch | None:
    """Write a stretch into the binlogs' files.

    Returns:
        The outcome; None if kept bytes were placed, of which the caller knows the outcome.

    Raises:
        StoreError: If the source file or a binlog's file cannot be used.
    """
    if isinstance(work, Stretch):
        return route_stretch(work)
    disk, states, directory = _SharedDisk(), work.stretch.start.binlogs, work.stretch.request.out
    try:
        with writing(directory, work.stretch.owner):
            is_placed = all(
                place_part(part, states[name], work.clocks[name], disk)
                for name, part in work.kept.items()
            )
    except OSError as error:
        raise unusable(error, directory) from error
    return None if is_placed else route_stretch(work.stretch)


def route_stretch(stretch: Stretch) -> RoutedStretch:
    """Route a stretch; a fault of the source file is in the report.

    Raises:
        StoreError: If the source file or a binlog's file cannot be used.
    """
    # Whoever asked tells once what several stretches count.
    _LOG.addFilter(_is_kept)
    try:
        if not stretch.is_written:
            return _route(stretch)
        with writing(stretch.request.out, stretch.owner):
            return _route(stretch)
    except OSError as error:
        raise unusable(error, stretch.request.out) from error
    except Exception as error:
        error.add_note(f"while {stretch.place} was routed")
        raise
    finally:
        _LOG.removeFilter(_is_kept)


def _route(stretch: Stretch) -> RoutedStretch:
    target = _StretchTarget(stretch)
    report = RouteReport(files=1)
    router = FileRouter(stretch.request, target, report)
    router.trace = trace = _Trace()
    router.done = stretch.start.done
    router.note_binlogs()
    points, position = [stretch.start], stretch.start.position
    try:
        route = router.route(stretch.file, position, goes_on=position > 0)
        with closing(route) as steps:
            for _ in steps:
                if stretch.stop is not None and router.position >= stretch.stop:
                    break
                if router.position >= points[-1].position + stretch.point_bytes:
                    points.append(target.point(router, points[-1]))
    except CodecError as error:
        report.fault = error
    points.append(target.point(router, points[-1]))
    target.close()
    binlogs = target.binlogs.items()
    return RoutedStretch(
        points=tuple(points),
        report=report,
        decisive=trace.decisive,
        ended={name: binlog.published.closed for name, binlog in binlogs},
        uncut={name: binlog.cutters.uncut for name, binlog in binlogs},
        kept=target.kept,
    )


def _is_kept(record: logging.LogRecord) -> bool:
    del record
    return False


def state_of(binlog: Binlog) -> RecoveredBinlog:
    """The state behind the last group of a binlog, from which another process can go on.

    INCIDENT events that nobody has dealt with are not in it.
    """
    binlog.write()
    binlog.publish()
    mark = binlog.mark
    return RecoveredBinlog(
        directory=binlog.published.last.directory,
        files=(mark.end.file,),
        head=binlog.head,
        end=mark.end.position,
        position=mark.position,
        clock=mark.clock,
        clock_base=mark.clock_base,
        prepared=mark.prepared,
        memory=mark.memory,
        source_created=binlog.source_created,
    )


class _StretchTarget:
    """The binlogs of a stretch, as they are at its start."""

    def __init__(self, stretch: Stretch) -> None:
        self._is_written = stretch.is_written
        self._keeping: KeepingDisk | None = None
        disk: Disk = _SharedDisk() if stretch.is_written else NoDisk()
        if stretch.keeps_as:
            disk = self._keeping = KeepingDisk(
                stretch.start.binlogs.values(),
                stretch.keeps_as,
                int(stretch.size_bytes * KEPT_SHARE),
            )
        kind = _EndlessBinlog if stretch.start.is_guess else Binlog
        self.binlogs = {
            definition.name: kind(
                definition,
                stretch.start.binlogs[definition.name],
                settings=stretch.request.settings,
                disk=disk,
                marks=BinlogMarks(lambda _mark: None),
            )
            for definition in stretch.definitions
        }

    def define(self, definitions: object, source: SourceFile, done: Position) -> None:
        """Definitions do not change in a stretch."""
        raise AssertionError((definitions, source, done))

    def point(self, router: FileRouter, before: StretchPoint) -> StretchPoint:
        """The state that is reached."""
        states = {}
        for name, binlog in self.binlogs.items():
            binlog.advance_to(router.done)
            state, earlier = state_of(binlog), before.binlogs[name]
            # One object, so that many points are small when they are pickled.
            states[name] = (
                replace(state, memory=earlier.memory) if state.memory == earlier.memory else state
            )
        return StretchPoint(position=router.position, done=router.done, binlogs=states)

    def close(self) -> None:
        """Have everything on disk, and let go of the files."""
        for binlog in self.binlogs.values():
            if self._is_written:
                binlog.sync(force=True)
            binlog.abandon()

    @property
    def kept(self) -> dict[str, KeptPart] | None:
        """Bytes that were kept, by the names of their binlogs."""
        return None if self._keeping is None else self._keeping.parts


class _Trace:
    """Collects the groups on which the memory of binlogs may depend.

    Attributes:
        decisive: The groups in their order; None once they are too many.
    """

    def __init__(self) -> None:
        self._groups: list[Decisive] | None = []
        self._tables: frozenset[TableName] = frozenset()

    @property
    def decisive(self) -> tuple[Decisive, ...] | None:
        return None if self._groups is None else (*self._groups, Decisive(self._tables, None))

    def run(self, groups: RunGroups, numbers: list[int]) -> None:
        """Take a run, of which some groups are routed event by event."""
        following = 0
        for number in numbers:
            self._tables |= _mapped(groups, following, number)
            self.group(groups.group(number))
            following = number
        self._tables |= _mapped(groups, following, groups.run.count)

    def group(self, group: EventGroup) -> None:
        """Take a group that is routed event by event."""
        if self._groups is not None:
            self._groups.append(Decisive(self._tables, group))
            self._tables = frozenset()
            if len(self._groups) > _DECISIVE_MAX:
                self._groups = None

    def large(self) -> None:
        """Take a group of which the events are not held."""
        self._groups = None


def _mapped(groups: RunGroups, first: int, stop: int) -> frozenset[TableName]:
    """The tables of which some groups of a run have maps, those in payloads of rows among them."""
    if first == stop:
        return frozenset()
    run = groups.run
    begin = int(run.groups[layout.GROUP_FIRST, first])
    events = slice(begin, int(run.groups[layout.GROUP_END, stop - 1]))
    types = run.events[layout.EVENT_TYPE, events]
    numbers = np.unique(run.events[layout.EVENT_MAP, events][types == EventType.TABLE_MAP])
    found = frozenset(table_name(run.tables[int(number)].table_map) for number in numbers)
    packed = (np.flatnonzero(types == EventType.TRANSACTION_PAYLOAD) + begin).tolist()
    return found.union(*(read.tables for read in map(groups.payload, packed) if read is not None))


class _EndlessBinlog(Binlog):
    """A binlog whose file never ends."""

    @property
    def room_bytes(self) -> int:
        return _ROOM_BYTES


class _SharedDisk(NoDisk):
    """The local disk while other processes write other places of the same files.

    No file is cut, since another process may have written behind its head; indexes are left to the
    owner of the binlogs.
    """

    def create(self, path: Path) -> DiskFile:
        return NoFile() if path.suffix == DRAFT_SUFFIX else self.open(path)

    def open(self, path: Path) -> DiskFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return LocalFile(os.open(path, flags, FILE_MODE))
