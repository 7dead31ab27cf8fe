"""Applies what tasks found in a batch of the log to tables, in log order, each change exactly once.

Rows wait, table by table, until a statement concerns tables or the batch ends; then each table gets
its commits, which also record how far it is. A batch that is run again finds in those records, and
in the journal, what is done, and does the rest: places in the log decide, not what a batch was.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.positions import file_number
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.log_notes import Statement, Trouble, TroubleKind
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.change_tables import ChangeTables
from binlane.tables.landing.current_tables import CurrentTables
from binlane.tables.landing.generated_columns import generated_names
from binlane.tables.landing.history_tables import HistoryTables
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.landing_progress import LandingProgress, TableReport
from binlane.tables.landing.linked_tables import StaleBatchError
from binlane.tables.landing.range_work import (
    Mode,
    RangeItem,
    RangeResult,
    Rows,
    Skipped,
    place_of,
    sequence,
)
from binlane.tables.landing.snapshot.splicing import Snapshots
from binlane.tables.landing.statement_steps import steps, steps_of_trouble
from binlane.tables.landing.steps import AbandonAll, DropDatabase, Step, tables_of
from binlane.tables.landing.tables.formats import CommitSource
from binlane.tables.landing.tables.table_faults import UnusableTableError
from binlane.tables.landing.tables.table_store import TableStore
from binlane.tables.ranges.log_range import LogRange

_TOLD_BY_DEFINITIONS: Final = frozenset({"UUID", "INET4", "INET6"})
"""Types that the log takes for others, even with all of its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTerms:
    """Terms that the tasks of a batch need beside their ranges.

    Attributes:
        links: The tables that links need, as `RangeWork.links`.
        catalogs: Catalogs of the tables as they are known where each range begins; ranges behind
            the last catalog have the last one.
    """

    links: Mapping[TableName, frozenset[str] | None]
    catalogs: tuple[LoggedObjects, ...]

    def of(self, piece: LogRange, number: int) -> LogRange:
        """A range with what is known of tables before it."""
        return replace(piece, catalog=self.catalogs[min(number, len(self.catalogs) - 1)])


@dataclass(frozen=True, slots=True)
class TargetTables:
    """The tables that a target keeps.

    Attributes:
        current: The current tables; None to keep none.
        changes: The change tables; None to keep none.
        history: The history tables; None to keep none.
    """

    current: CurrentTables | None = None
    changes: ChangeTables | None = None
    history: HistoryTables | None = None

    @classmethod
    def of(cls, stores: Mapping[Mode, TableStore], journal: Journal, audit: Audit) -> Self:
        """Make the tables of some stores, by kind."""
        current, changes, history = map(stores.get, (Mode.CURRENT, Mode.CHANGES, Mode.HISTORY))
        return cls(
            None if current is None else CurrentTables(current, journal, audit),
            None if changes is None else ChangeTables(changes, journal, audit),
            None if history is None else HistoryTables(history, journal, audit),
        )

    def by_mode(self) -> dict[Mode, CurrentTables | ChangeTables | HistoryTables]:
        """Give the tables that are kept, by kind."""
        found = {
            Mode.CURRENT: self.current,
            Mode.CHANGES: self.changes,
            Mode.HISTORY: self.history,
        }
        return {mode: tables for mode, tables in found.items() if tables is not None}


class Lander:
    """The applier of a landing's results to one target.

    Args:
        journal: The journal of the target.
        kept: The tables of the target.
        log: The log at the place that the landing has come to.
        audit: Holds what the tables get against what the log has.
        progress: Counters of the landing, which are kept up to date.
        snapshots: Snapshots of tables whose rows are taken from the server.

    Attributes:
        source: The place in the log that is being applied; None before the first one.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        kept: TargetTables,
        log: LandedLog,
        audit: Audit,
        progress: LandingProgress | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._journal = journal
        self._current = kept.current
        self._changes = kept.changes
        self._history = kept.history
        self._kept = kept.by_mode()
        self._seconds = 0
        self._log = log
        self._audit = audit
        self._snapshots = snapshots
        self._pending: dict[TableName, list[Rows]] = {}
        self.progress = LandingProgress() if progress is None else progress
        self.source: CommitSource | None = None
        self._file_names: dict[int, str] = {}
        self._before = log.copy()
        self._catalogs: list[LoggedObjects] = []
        self._given = 0
        # `_seq` of the last statement of the batch that was done.
        self._done = 0
        self._changed: set[TableName] = set()
        # Tables that had generated columns before they changed.
        self._computed: set[TableName] = set()
        self._linked = None if kept.current is None else kept.current.linked(log)
        self._cascaded: dict[TableName, int] = {}
        self._skipped: dict[str, list[str]] = {}

    @property
    def objects(self) -> LoggedObjects:
        """Objects of the log as its statements told them so far."""
        return self._log.objects

    def begin(self, *, is_again: bool = False) -> BatchTerms:
        """Begin a batch: what its tasks need beside their ranges.

        Args:
            is_again: Whether `apply` raised `StaleBatchError`, and the batch begins anew.
        """
        if is_again:
            self._log.become(self._before)
        else:
            self._catalogs = [self.objects.copy()]
        self._before = self._log.copy()
        self._given = len(self._catalogs)
        links = {} if self._linked is None else self._linked.to_read(self.objects)
        return BatchTerms(links=links, catalogs=tuple(self._catalogs))

    def apply(self, results: Iterable[RangeResult]) -> None:
        """Apply one batch.

        Args:
            results: Results of the batch's ranges, in log order.

        Raises:
            StaleBatchError: If statements in it bear on what its tasks read: begin it again.
            StoreError: If the target cannot be written.
        """
        self._audit.begin()
        self._pending.clear()
        self._changed.clear()
        self._computed.clear()
        self._done = 0
        has_items = False
        for number, result in enumerate(results):
            for item in result.items:
                has_items = True
                if number >= self._given and self._is_stale(item):
                    raise StaleBatchError
                self._take(item)
            self._audit.count(result)
            self.progress.by_reference += result.by_reference
            if number + 1 == len(self._catalogs):
                self._catalogs.append(self.objects.copy())
            if number + 1 < self._given:
                self._changed.clear()
                self._computed.clear()  # the next one was read with what is known now
        self._flush()
        self._check()
        self.progress.batches += has_items

    def _check(self) -> None:
        """See that the tables have what the batch has.

        Raises:
            StoreError: If one has not.
        """

        def images(mode: Mode, table: TableName) -> int | None:
            return self._kept[mode].images(table) if mode in self._kept else None

        self._audit.check(images)
        self._audit.reach(self.progress)

    def _is_stale(self, item: RangeItem) -> bool:
        """True if rows were read without facts that an earlier range tells of their table."""
        if not isinstance(item, Rows) or item.table not in self._changed:
            return False
        # With a key the log tells all else itself.
        columns = self.objects.defined_columns(item.table)
        types = {column.type_name for column in columns.values()}
        return (
            not item.key
            or not types.isdisjoint(_TOLD_BY_DEFINITIONS)
            or bool(generated_names(columns))
            or item.table in self._computed
        )

    def _take(self, item: RangeItem) -> None:
        if isinstance(item, Rows):
            if not item.images:  # applied before, so that the tables have them
                for mode in item.fresh:
                    self._audit.expect(mode, item.table, (item,))
                return
            if item.first_seq <= self._done:
                # A landing that begins here again would take these rows for applied.
                raise StoreError(
                    f"rows up to GTID {item.last_gtid} came behind a statement that they precede; they"
                    " are not landed",
                    path=item.table.plain,
                    hint="this is a fault of binlane's: report it, and land the table anew",
                )
            self._seconds = item.last_timestamp
            self._file_names[place_of(item.last_seq)[0]] = item.file
            self._pending.setdefault(item.table, []).append(item)
            return
        if isinstance(item, Skipped):
            self._skip(item)
            return
        seq = sequence(file_number(item.file), item.position)
        self._file_names[place_of(seq)[0]] = item.file
        if isinstance(item, Trouble):
            found = steps_of_trouble(item, self._log)
            self._lack(item)
            if item.kind in {TroubleKind.COLUMN, TroubleKind.ROWS}:
                self._give_up(seq, found)
            else:
                self._do(seq, item.gtid, found)
            return
        self._seconds = item.timestamp
        after = self._log.after(item)
        self._do(seq, item.gtid, steps(item, self._log, after))
        self._go_on(item, after)
        self.progress.reached(seq, item.gtid, item.timestamp)

    def _lack(self, trouble: Trouble) -> None:
        """Remember that change tables lack rows that cannot be read."""
        if self._changes is not None and trouble.kind is TroubleKind.ROWS:
            tables = [table for table in trouble.tables if self._log.includes(table)]
            where = f"{trouble.file}:{trouble.position}"
            self._changes.lack(tables, f"{trouble.what} ({where})")

    def applied(self) -> dict[Mode, dict[TableName, int]]:
        """The `_seq` up to which the log is in each table; tables that cannot be read are given up."""
        return {
            mode: {table: kept.applied(table) for table in kept.names()}
            for mode, kept in self._kept.items()
        }

    @property
    def lost(self) -> frozenset[TableName]:
        """Tables whose changes are not landed, since their change tables cannot be written."""
        return frozenset() if self._changes is None else self._changes.lost

    def _go_on(self, statement: Statement, after: LandedLog) -> None:
        """Go on with the statements behind one."""
        before = self.objects
        self._log.become(after)
        if self.objects.version is before.version:
            return
        effects = statement.effects()
        named = effects.changed_tables
        self._computed |= {each for each in named if generated_names(before.defined_columns(each))}
        self._changed |= {*effects.writes, *(new for _, new in effects.renames)}

    def _skip(self, item: Skipped) -> None:
        """Pass over what the user wants to be passed over, and remember it."""
        if item.statement is not None:
            # Rows behind it are as it left the tables.
            self._go_on(item.statement, self._log.after(item.statement))
        known = self._journal.state.skipped.setdefault(item.gtid, [])
        known[:] = sorted({*known, *(table.plain for table in item.tables)})
        self._skipped[item.gtid] = known

    def look(self) -> LandingProgress:
        """Bring the progress up to date with the state of the tables, and return it."""
        self._look_for_columns()
        for gtid, tables in self._skipped.items():
            rows = f", with rows of {', '.join(tables)}" if tables else ""
            self.progress.notes.append(f"event group {gtid} was passed over, as asked{rows}")
        self._skipped.clear()
        self.progress.notes += self._log.notes
        self._log.notes.clear()
        if self._current is not None:
            self._look_at_current(self._current)
        if self._history is not None:
            for report in self.progress.tables.values():
                report.no_history = ""
            for name, reason in self._history.abandoned.items():
                self.progress.tables.setdefault(name, TableReport()).no_history = reason
        if self._changes is not None:
            for name, reason in self._changes.gaps.items():
                self.progress.tables.setdefault(name, TableReport()).gap = reason
        self.progress.given_up = sorted(self._given_up())
        if self._snapshots is not None:
            self._snapshots.report(self.progress)
        return self.progress

    def _look_for_columns(self) -> None:
        """Tell which generated columns tables are without."""
        for report in self.progress.tables.values():
            report.without = ()
        for kept in [each for each in (self._current, self._history) if each is not None]:
            for table in kept.names():
                if table.plain in kept.abandoned or not kept.exists(table):
                    continue
                missing = kept.without(table, self.objects)
                if missing:
                    report = self.progress.of(table)
                    report.without = tuple(sorted({*report.without, *missing}))

    def _look_at_current(self, current: CurrentTables) -> None:
        for name, reason in current.abandoned.items():
            self.progress.tables.setdefault(name, TableReport()).why_not = reason
        for table in current.names():
            report = self.progress.of(table)
            report.is_current = table.plain not in current.abandoned
            if report.is_current:
                report.why_not = ""
            report.lacks = self._journal.state.partial.get(table.plain, "")
        self.progress.notes += [
            f"{table.plain}: foreign keys changed {count} rows, of which its changes tell nothing"
            for table, count in self._cascaded.items()
        ]
        self._cascaded.clear()
        self.progress.notes += current.notes
        current.notes.clear()

    def _given_up(self) -> set[str]:
        """Names of the tables of which this landing could not go on with one kind or another."""
        found = set() if self._current is None else set(self._current.given_up_now())
        for kept in (self._history, self._changes):
            found |= set() if kept is None else kept.given_up_now()
        return found

    def _do(self, seq: int, gtid: str | None, found: Sequence[Step]) -> None:
        """Do the steps of a statement or trouble, unless they are done."""
        state = self._journal.state
        is_resumed = state.doing == seq
        kept = [each for each in (self._current, self._history) if each is not None]
        if not kept or seq <= state.done:
            self._audit.follow(found)
            return
        if not is_resumed and not any(
            self._is_pending(step) or any(each.concerns(step) for each in kept) for step in found
        ):
            return
        if is_resumed:
            # All rows before a statement were flushed before its first step was written down.
            self._pending.clear()
        else:
            self._flush()
        self._audit.follow(found)
        self._come_to(seq, gtid)
        first = state.step if is_resumed else 0
        for number, step in enumerate(found[first:], first):
            state.doing, state.step = seq, number
            self._journal.save()
            self._do_step(seq, step)
        state.done, state.doing, state.step = seq, 0, 0
        self._done = seq
        self._journal.save()

    def _give_up(self, seq: int, found: Iterable[Step]) -> None:
        """Give tables up whose rows cannot be landed; rows of others from before may still come."""
        steps = tuple(found)
        self._audit.follow(steps)
        if seq > self._journal.state.done:
            for step in steps:
                self._do_step(seq, step)

    def _do_step(self, seq: int, step: Step) -> None:
        if self._current is not None:
            self._current.do(step, seq)
        if self._history is not None:
            self._history.do(step, seq, self._seconds)
        if self._changes is not None:
            self._changes.do(step)
        if self._snapshots is not None:
            self._snapshots.see(step, seq)

    def _is_pending(self, step: Step) -> bool:
        """True if rows wait that a step is about."""
        if isinstance(step, DropDatabase | AbandonAll):
            return step.database is None or any(
                table.database == step.database for table in self._pending
            )
        return any(table in self._pending for table in tables_of(step))

    def _flush(self) -> None:
        waiting = self._with_cascades()
        for table in waiting:
            pieces = waiting[table]
            if not self._log.includes(table):
                continue
            report = self.progress.of(table)
            last = max(pieces, key=lambda rows: rows.last_seq)
            self._come_to(last.last_seq, last.last_gtid)
            if self._changes is not None:
                self._changes.append(table, pieces)
            # The current table comes last: from its rows it is told what foreign keys do.
            generated = generated_names(self.objects.defined_columns(table))
            if self._history is not None:
                self._history.merge(table, pieces, generated=generated)
            if self._current is not None:
                is_told = self.objects.is_told(table)
                self._current.merge(table, pieces, is_told=is_told, generated=generated)
            for rows in pieces:
                report.rows += rows.images
                report.invalid_dates += rows.invalid_dates
                report.has_absent |= self._changes is not None and rows.has_absent
                report.committed = time.time()
                self.progress.reached(rows.last_seq, rows.last_gtid, rows.last_timestamp)
        self._pending.clear()

    def _come_to(self, seq: int, gtid: str | None) -> None:
        """Set the place in the log that the next commits come from."""
        number, position = place_of(seq)
        self.source = CommitSource(
            gtid=gtid, file=self._file_names.get(number, ""), position=position
        )

    def _with_cascades(self) -> dict[TableName, list[Rows]]:
        """The rows that wait, and what foreign keys did to others with them."""
        if self._current is None or self._linked is None:
            return self._pending
        while True:
            try:
                found = self._linked.apply(
                    self._pending,
                    self.objects,
                    lambda table: table.plain in self._journal.state.abandoned,
                )
                break
            except UnusableTableError as error:
                if error.table.plain in self._journal.state.abandoned:
                    raise
                self._current.give_up(error.table, f"it could not be read: {error.message}")
        for table, reason in found.given_up.items():
            if table.plain not in self._current.abandoned:
                self._current.give_up(table, reason)
        for table, rows in found.runs.items():
            others = self._pending.setdefault(table, [])
            last_seq = max(each.last_seq for each in (*others, rows))
            others.append(replace(rows, last_seq=last_seq))
            assert rows.versions is not None, "something was done"
            self._cascaded[table] = self._cascaded.get(table, 0) + rows.versions.rows
        ordered = self._linked.order(list(self._pending), self.objects)
        return {table: self._pending[table] for table in ordered}
