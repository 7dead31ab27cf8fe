"""One run: files in, scoped binlogs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.filtered_runs import RunFilter
from binlane.binlogs.filters.schema_objects import SchemaObjects
from binlane.binlogs.route.file_router import FileRouter, Filter
from binlane.binlogs.route.files_at_once import FileEngine, FilesAtOnce
from binlane.binlogs.route.route_record import Reached, Record
from binlane.binlogs.route.route_request import RouteReport, RouteRequest
from binlane.binlogs.route.source_files import SourceFile, look
from binlane.binlogs.route.stretch import StretchPoint, state_of
from binlane.binlogs.route.target import RouteTarget
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.errors import CodecError, ConfigError
from binlane.log.codec.format import MAGIC

_NOTES_MAX: Final = 100


def route_files(
    request: RouteRequest,
    *,
    disk: Disk | None = None,
    meter: Callable[[int], None] | None = None,
    engine: FileEngine | None = None,
) -> RouteReport:
    """Route files into binlogs.

    Args:
        request: Files, definitions and target of the run.
        disk: The disk of the target; the local one by default.
        meter: Called with the number of bytes that were read.
        engine: Processes that route several files at the same time, on the same file system; None
            for this process alone.

    Raises:
        CodecError: If a file is none of a binlog, before anything is written. Damage behind a
            file's beginning is in the report instead: what comes before it is in the binlogs.
        ConfigError: If the target holds something else.
        StoreError: If files or the target cannot be used; the next run goes on.
    """
    files = look(request.paths, request.keys)
    settings, disk = request.settings, disk or LocalDisk()
    with RouteTarget(request.out, request.schedule, settings=settings, disk=disk) as target:
        job = _Job(request, files, target, meter, engine)
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
        engine: FileEngine | None,
    ) -> None:
        self._request = request
        self._files = files
        self._target = target
        self._meter = meter
        self._at_once = None if engine is None else FilesAtOnce(request, engine)
        self.report = RouteReport()
        self._filter = _filter(request, target.record, self._note)
        for name in sorted(_following(request)):
            self._note(
                f"binlog {name}: FOLLOW CASCADES does nothing here: changes by keys of outside "
                "parents are INCIDENTs"
            )
        if engine is not None and self._filter is not None:
            self._note("with a filter, files are routed one after another, in one process")
        self._router = FileRouter(request, target, self.report, meter=meter, filter_=self._filter)

    def _note(self, text: str) -> None:
        """Take a note of the filter; not all of very many."""
        if len(self.report.notes) < _NOTES_MAX:
            self.report.notes.append(text)
        elif len(self.report.notes) == _NOTES_MAX:
            self.report.notes.append("further notes are not kept")

    def run(self) -> None:
        """Route all files from where the run before ended."""
        files, position = self._from()
        record, router = self._target.record, self._router
        router.done = record.reached.done if record else files[0].done
        router.left = self._request.schedule.left_at(record.reached.done if record else None)
        is_begun = False
        while files and self.report.fault is None:
            is_first = not is_begun and position <= len(MAGIC)
            may_repeat = bool(router.done) and is_first and not files[0].done.includes(router.done)
            self._check_gap(files[0])
            if not is_begun:
                self._target.begin(files[0], router.done)
                self._begin_memory(is_new=record is None)
                router.note_binlogs()
            is_begun = True
            count = 0 if position or may_repeat else self._route_at_once(files)
            if not count:
                self._route_file(files[0], position, may_repeat=may_repeat)
            files, position = files[count or 1 :], 0

    def _route_file(self, file: SourceFile, position: int, *, may_repeat: bool) -> None:
        """Route one file from a group on, in this process."""
        router = self._router
        self.report.files += 1
        try:
            for _ in router.route(file, position, may_repeat=may_repeat):
                if router.unkept_bytes >= self._request.keep_bytes:
                    self._keep(file)
        except CodecError as error:
            self.report.fault = error
        self._keep(file)

    def _route_at_once(self, files: Sequence[SourceFile]) -> int:
        """Route some of the next files by the engine; the number of files that are routed then."""
        router = self._router
        if self._at_once is None or self._filter is not None or not router.is_fast:
            return 0
        files = self._at_once.batch(files)
        if len(files) < 2:
            return 0
        binlogs = self._target.binlogs
        for binlog in binlogs.values():
            binlog.advance_to(router.done)
            binlog.sync(force=True)
        start = StretchPoint(
            position=0,
            done=router.done,
            binlogs={name: state_of(binlog) for name, binlog in binlogs.items()},
        )
        definitions = [binlog.definition for binlog in binlogs.values()]
        routed = self._at_once.route(files, start, definitions)
        self._target.take(routed)
        for number, (file, each) in enumerate(zip(files, routed, strict=False)):
            if number:
                self._check_gap(file)
            self.report.add(each.report)
            router.done, router.position = each.end.done, each.end.position
            if self._meter is not None:
                self._meter(file.size_bytes)
            last = file
        if routed:
            self._keep(last)
        return len(routed)

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

    def _check_gap(self, file: SourceFile) -> None:
        """Note what is missing before a file."""
        done = self._router.done
        missing = file.done.subtract(done)
        if missing and self._target.record is not None and not self._request.start_position:
            self.report.notes.append(
                f"{file.path}: {missing} was done before this file and is in no file before it"
            )
        if missing:
            self._router.done = done.union(file.done)

    def _keep(self, file: SourceFile) -> None:
        """Have everything on disk, and note how far it goes in a file."""
        router = self._router
        router.unkept_bytes = 0
        self._target.keep(
            Reached(
                file=file.name,
                fingerprint=file.fingerprint,
                position=router.position,
                done=router.done,
                filter_terms=self._request.filter_terms.text,
                followed={} if self._filter is None else self._filter.groups.state.saved,
            )
        )


def _following(request: RouteRequest) -> set[str]:
    """Names of binlogs that are to follow cascades, which needs the store of a live system."""
    definitions = [*request.schedule.definitions]
    for change in request.schedule.changes:
        definitions += change.definitions
    return {each.name for each in definitions if each.follows_cascades}


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
