"""Landing: a log's changes → tables, as a loop of batches over any engine.

Plan the next ranges behind the journal's position; have tasks decode and write them; commit, table
by table; note the position. Tables say themselves up to where they are complete (see `lander`), so
that a crash anywhere loses and doubles nothing.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.routing.cut_group import MARKS
from binlane.errors import BinlaneError, ConfigError, StoreLockedError
from binlane.names import TableName, nearest
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.engine import EmbeddedEngine, Engine
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.landed_log import LandedLog, filter_at
from binlane.tables.landing.lander import BatchTerms, Lander, TargetTables
from binlane.tables.landing.landing_progress import LandingProgress, LandingReport
from binlane.tables.landing.landing_settings import LandingSettings
from binlane.tables.landing.lease import Lease
from binlane.tables.landing.linked_tables import StaleBatchError
from binlane.tables.landing.range_work import Mode, RangeResult, RangeWork
from binlane.tables.landing.snapshot.same_server import check_place, check_same_server
from binlane.tables.landing.snapshot.snapshot_reader import SnapshotReader, SnapshotTarget
from binlane.tables.landing.snapshot.snapshot_records import SnapshotRecords
from binlane.tables.landing.snapshot.splicing import Snapshots, landed_up_to
from binlane.tables.landing.tables.opening import check_format, open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_faults import UnusableTableError
from binlane.tables.landing.target_files import forget_batch, sweep
from binlane.tables.landing.tasks import land_range
from binlane.tables.ranges.log_range import Limits, LogRange, Offset
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.scopes import read_scope

Observer = Callable[[LandingProgress], None]
"""Function that is told of progress: after each range of the log, and each time that nothing is new."""


def land(
    source: str | Sequence[str],
    into: str,
    settings: LandingSettings | None = None,
    *,
    engine: Engine | None = None,
    observer: Observer | None = None,
) -> LandingReport:
    """Land a log's changes, or follow it.

    Current tables need full row images. With the primary key in the log
    (`binlog_row_metadata=FULL`) changes are merged by key; without, all rows are counted, which is
    as exact but rewrites the table. A current table holds what the log tells from its beginning on:
    rows that were there before are not in it, nor are cascades that MariaDB does not log.

    Args:
        source: Files, a directory, or `DATA#name`.
        into: URI or path of the target: gets `current/<database>/<table>` and `changes/…`.
        settings: Settings of the landing; the defaults if None.
        engine: The engine that runs the tasks; processes of this machine if None.
        observer: Told of progress while the landing runs.

    Raises:
        CodecError: With file and position, if the log is damaged or holds what cannot be landed.
        ConfigError: If source, target and checkpoint do not fit together.
        StoreLockedError: If another driver lands there.
        StoreError: If the log or the target cannot be used.
    """
    with Landing(source, into, settings, engine=engine, observer=observer) as landing:
        landing.run()
        return landing.report()


class Landing:
    """One landing, as a context manager that holds the target.

    Args:
        source: Files, a directory, or `DATA#name`, as of `land`.
        into: URI or path of the target.
        settings: Settings of the landing; the defaults if None.
        engine: The engine that runs the tasks; processes of this machine if None.
        observer: Told of progress while the landing runs.

    Attributes:
        progress: Counters of the landing so far.
    """

    def __init__(
        self,
        source: str | Sequence[str],
        into: str,
        settings: LandingSettings | None = None,
        *,
        engine: Engine | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._settings = settings or LandingSettings()
        self._sources = [source] if isinstance(source, str) else list(source)
        self._into = into.rstrip("/") if "://" in into else str(Path(into).absolute())
        self._given_engine = engine
        self._observe = observer or (lambda _progress: None)
        self._stack = ExitStack()
        self._stopped = threading.Event()
        self._run_id = uuid.uuid4().hex[:12]
        self._is_first = True
        self._started = time.monotonic()
        self._cpu_started = _cpu_seconds()
        self.progress = LandingProgress()

    def __enter__(self) -> Self:
        """Take the target.

        Raises:
            BinlaneError: As `land`.
        """
        settings = self._settings
        check_format(settings.format)
        self._planner = Planner(self._sources, PlanOptions(keys=settings.keys))
        self._planner.files()  # what is wrong with them is said before the target is touched
        with ExitStack() as stack:
            lease = stack.enter_context(
                Lease.take(self._into, is_taking_over=settings.is_taking_over)
            )
            lease.check()
            self._lease = lease
            self._journal = Journal.open(
                self._into,
                settings.checkpoint,
                settings.terms,
                epoch=lease.epoch,
                kept={"tables"} if settings.snapshot else (),
            )
            scope = scope_of(self._journal.state.terms["tables"])
            terms = settings.filter_terms
            self._want = ReadOptions(
                selection=Selection(scope=scope, filter_terms=terms), has_statements=True
            )
            found = self._journal.state.position
            self._place = None if found is None else Offset.parse(found)
            self._is_from_beginning = found is None
            state = None
            if terms is not None and not terms.is_everything:
                state = FilterState.restored(terms, self._journal.state.followed)
                self._planner = Planner(
                    self._sources,
                    PlanOptions(keys=settings.keys, filter_at=filter_at(state, self._place)),
                )
            self._log = LandedLog(scope, FollowedLog(self._journal.definitions(), state))
            self._engine = self._given_engine or stack.enter_context(EmbeddedEngine())
            self._lander = self._new_lander()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _new_lander(self) -> Lander:
        journal, into = self._journal, self._into
        app_id = journal.state.app_id
        cdf = self._settings.cdf
        if cdf is not None:
            journal.state.cdf = cdf
        keeping = TableStoreSettings(
            run_id=self._run_id,
            run=self._engine.run,
            fence=self._lease.check,
            soft_deletes=self._settings.soft_deletes,
            keep_hours=self._settings.keep_hours,
            catalog=self._settings.catalog,
            merger=self._engine.merger,
            app_id=app_id,
            feed=journal.state.cdf or cdf,
            source=lambda: self._lander.source,
        )
        kept = self._kept = {
            mode: open_store(into, mode, self._settings.format, app_id, keeping)
            for mode in self._settings.modes
        }
        sweep(into, journal.state.run_id)
        audit = Audit(journal.state, is_strict=self._settings.is_audited)
        tables = TargetTables.of(kept, journal, audit)
        current = tables.current
        if cdf is not None and current is not None:
            journal.save()
            for table in current.names():
                current.exists(table)  # which has what is asked for then
        self._records = SnapshotRecords(journal, into)
        self._snapshots = Snapshots(
            self._records, into, current=current, changes=tables.changes, history=tables.history
        )
        return Lander(
            journal,
            kept=tables,
            log=self._log,
            audit=audit,
            progress=self.progress,
            snapshots=self._snapshots,
        )

    def run(self, until: Offset | None = None) -> None:
        """Land what there is; following, go on until stopped.

        Changes that the source writes meanwhile are left to the next run, unless it follows: a
        source that never rests would hold it for ever.

        Args:
            until: Land no more than up to this place in the log.

        Raises:
            BinlaneError: As `land`.
        """
        try:
            self._run(until)
        except StoreLockedError:
            raise
        except (BinlaneError, OSError):
            # A driver that took the target over may have removed files that are missed here.
            self._check_held()
            raise

    def _run(self, until: Offset | None) -> None:
        settings = self._settings
        if settings.snapshot:
            self._take_snapshots(self._is_wanted, scope_of(settings.tables).log_tables)
        end = until
        while not self._stopped.is_set():
            place = self._begin()
            self._land_snapshots(place)
            if settings.snapshot and self._snapshots.starts_over():
                self._take_snapshots(lambda _: False)
                end = until
            if end is None and settings.follow_s is None:
                end = self._planner.end(place)
            began = time.monotonic()
            batch = self._next(place, end)
            if batch is not None:
                self._land(batch)
            elif settings.follow_s is None:
                break
            else:
                self._lease.check()
            if settings.follow_s is not None and (batch is None or batch.is_last):
                self._stopped.wait(max(0.0, began + settings.follow_s - time.monotonic()))
        if self._journal.state.run_id:
            self._journal.state.run_id = ""
            self._journal.save()
        if self._is_from_beginning and settings.follow_s is None and not self._stopped.is_set():
            self._look_for_named()

    def _land_snapshots(self, place: Offset) -> None:
        if self._snapshots.are_under_way():
            reach = self._planner.reach(place)
            self._snapshots.reached(place, reach, self._lander.objects)

    def _check_held(self) -> None:
        """See, behind an error, whether the target is still ours.

        Raises:
            StoreLockedError: If it is not; where that cannot be told, the first error says enough.
        """
        try:
            self._lease.check()
        except StoreLockedError:
            raise
        except (BinlaneError, OSError):
            return

    def _look_for_named(self) -> None:
        """See that a log that is read from its beginning has the tables that were asked for.

        Raises:
            ConfigError: If it has none of them.
        """
        there = set(self._lander.objects.tables)
        there |= {TableName(*name.split(".", 1)) for name in self.progress.tables}
        scope = scope_of(self._settings.tables)
        missing = sorted(scope.log_tables - there)
        if missing:
            named = ", ".join(table.plain for table in missing)
            what = f"there is no such table in the log: {named}"
            near = [found.plain for table in missing if (found := nearest(table, there))]
            hint = f"did you mean {' or '.join(near)}?" if near else "see the names in the log"
            if missing == sorted(scope.log_tables) and not (scope.log_databases or scope.log_all):
                self._journal.unbind()
                raise ConfigError(what, key="tables", hint=hint)
            self.progress.notes.append(f"{what}; {hint}")
        unmatched = self._log.unmatched
        if unmatched and not self.progress.tables:
            what, _, hint = unmatched.partition("; ")
            self._journal.unbind()
            raise ConfigError(what, key="tables", hint=hint)

    def _begin(self) -> Offset:
        """The place in the log from which the landing goes on."""
        if self._place is None:
            self._place = self._planner.begin()
            self._journal.state.began = self._place.json()
        return self._place

    def stop(self) -> None:
        """End `run` behind the batch that is under way; may be called from a signal handler."""
        self._stopped.set()

    def report(self, error: str = "") -> LandingReport:
        """Return a report of the landing so far.

        Args:
            error: The error that ended the landing; empty if it ended well.
        """
        self._lander.look()
        progress = self.progress
        return LandingReport(
            source=", ".join(self._sources),
            into=self._into,
            terms=self._settings.terms,
            tables=dict(sorted(progress.tables.items())),
            batches=progress.batches,
            size_bytes=progress.size_bytes,
            seconds=time.monotonic() - self._started,
            cpu_seconds=_cpu_seconds() - self._cpu_started,
            last_gtid=progress.last_gtid,
            outside=progress.outside,
            by_reference=progress.by_reference,
            notes=(*progress.notes, *progress.left_out.texts),
            given_up=tuple(progress.given_up),
            error=error,
        )

    def _next(self, place: Offset, until: Offset | None) -> Batch | None:
        settings = self._settings
        batch = None
        if until is None or place.place < until.place:
            stops = [stop for stop in (self._snapshots.stop(), until) if stop is not None]
            batch = next_batch(
                self._planner,
                place,
                batch_bytes=settings.batch_bytes,
                task_bytes=settings.task_bytes,
                cores=self._engine.cores,
                stop=min(stops, key=lambda stop: stop.place, default=None),
            )
        self.progress.caught_up = 0.0 if batch else time.time()
        self.progress.bytes_behind = batch.bytes_behind if batch else 0
        self._observe(self.progress)
        return batch

    def _take_snapshots(
        self, is_wanted: Callable[[TableName], bool], named: Collection[TableName] = ()
    ) -> None:
        settings = self._settings
        place = self._begin()
        files = self._planner.files()
        with closing(
            SnapshotReader(
                settings.snapshot,
                records=self._records,
                target=SnapshotTarget(
                    into=self._into, modes=settings.modes, chunk_rows=settings.chunk_rows
                ),
                engine=self._engine,
                progress=self.progress,
                observe=self._look_up,
            )
        ) as reader:
            check_same_server(reader.session, files, self._planner.end(place).server_id)
            landed = landed_up_to(place)
            reader.begin(is_wanted, lambda place: check_place(place, files, landed), named)
            reader.read(self._stopped.is_set)

    def _look_up(self) -> None:
        """Between two ranges of a snapshot: is the target still ours?"""
        self._lease.check()
        self._observe(self.progress)

    def _is_wanted(self, table: TableName) -> bool:
        """True if a snapshot is to be taken of a table: the table is missing, or asked for."""
        state, tables = self._journal.state, self._settings.tables
        if not self._log.includes(table):
            return False
        if tables not in {"", state.terms["tables"]}:
            return scope_of(tables).includes(table)
        modes = (Mode.CURRENT, Mode.CHANGES, Mode.HISTORY)
        kept = next(self._kept[mode] for mode in modes if mode in self._kept)
        is_lacking = table.plain in state.abandoned or table.plain in state.partial
        try:
            return is_lacking or not kept.exists(table)
        except UnusableTableError:
            return True

    def _land(self, batch: Batch) -> None:
        state = self._journal.state
        if not state.run_id:
            state.run_id = self._run_id
            self._journal.save()
        terms = self._lander.begin()
        while True:
            works, left_out = self._works(batch, terms), Losses()
            try:
                results = self._engine.run(land_range, works)
                self._lander.apply(self._observed(results, left_out))
                break
            except StaleBatchError:
                self._is_first = True  # the tables know what is done
                terms = self._lander.begin(is_again=True)
        self._place = batch.end
        self._journal.state.followed = self._log.followed
        self._journal.reach(batch.end.json(), self._lander.objects)
        self.progress.left_out.add(left_out)
        forget_batch(self._into, self._run_id)
        self._is_first = False

    def _works(self, batch: Batch, terms: BatchTerms) -> list[RangeWork]:
        # Only the tables know what an earlier landing did of the first batch; the rest is ours.
        applied = self._lander.applied() if self._is_first else {}
        selection = self._want.selection
        scope = selection.scope.with_tables(terms.links)
        selected = replace(selection, scope=scope, beside=frozenset(terms.links))
        want = replace(self._want, selection=selected)
        return [
            RangeWork(
                piece=terms.of(piece, number),
                want=want,
                modes=self._settings.modes,
                into=self._into,
                format=self._settings.format,
                run_id=self._run_id,
                done=self._journal.state.flushed if self._is_first else 0,
                applied=applied,
                skip=self._settings.skip,
                lost=self._lander.lost,
                links=terms.links,
                is_audited=self._settings.is_audited,
            )
            for number, piece in enumerate(batch.pieces)
        ]

    def _observed(self, results: Iterator[RangeResult], left_out: Losses) -> Iterator[RangeResult]:
        for result in results:
            yield result
            # Asked for the next one, so this one is taken.
            left_out.add(result.left_out)
            self.progress.size_bytes += result.size_bytes
            self.progress.bytes_behind = max(0, self.progress.bytes_behind - result.size_bytes)
            self._observe(self.progress)


def scope_of(tables: str) -> Scope:
    """The tables that a setting names; all if it is empty, but for binlane's own marks."""
    scope = read_scope(tables) if tables else Scope.everything()
    return scope if MARKS in scope.log_tables else scope.added(ScopeList.IGNORE, [MARKS])


def _cpu_seconds() -> float:
    """CPU seconds of this process and of its children that ended."""
    return sum(os.times()[:4])


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Ranges of a log that are landed together.

    Attributes:
        pieces: Ranges of the log, in order; there may be none with whole event groups.
        end: The place in the log behind the ranges.
        bytes_behind: Bytes of log that are not landed yet, those of the batch included.
        is_last: Whether the log had nothing more behind the batch.
    """

    pieces: tuple[LogRange, ...]
    end: Offset
    bytes_behind: int
    is_last: bool


def next_batch(
    planner: Planner,
    start: Offset,
    *,
    batch_bytes: int,
    task_bytes: int,
    cores: int,
    stop: Offset | None = None,
) -> Batch | None:
    """The next batch; None if there is nothing new.

    Args:
        planner: The planner that reads the log.
        start: The place up to which the log is landed.
        batch_bytes: Bytes of log that a batch has, about.
        task_bytes: Bytes of log that a range has at most, about.
        stop: A place where a group ends that a batch must end at, if the log is there.
        cores: A batch that is large enough has at least so many ranges.

    Raises:
        StoreError: If the log is not the one any more that `start` stands in, or has a gap.
    """
    there = planner.end(start)
    if there.place == start.place:
        return None
    is_stopped = stop is not None and start.place < stop.place < there.place
    until = stop if is_stopped else there
    end = planner.next(start, Limits(size_bytes=batch_bytes), end=until)
    return Batch(
        pieces=tuple(planner.ranges(start, end, size_bytes=task_bytes, cores=cores)),
        end=end,
        bytes_behind=_distance(planner, start, there),
        is_last=end.place == there.place,
    )


def _distance(planner: Planner, start: Offset, end: Offset) -> int:
    if start.file == end.file:
        return end.position - start.position
    between = sum(
        file.size_bytes for file in planner.files() if start.number <= file.number < end.number
    )
    return max(0, between - start.position + end.position)
