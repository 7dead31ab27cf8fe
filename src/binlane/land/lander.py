"""Applies what tasks found in a batch of the log to tables, in log order, each change exactly once.

Rows wait, table by table, until a statement concerns tables or the batch ends; then each table gets
its commits, which also record how far it is. A batch that is run again finds in those records, and
in the journal, what is done, and does the rest: places in the log decide, not what a batch was.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from binlane.columnar.selection import file_number
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.journal import Journal
from binlane.land.progress import Progress, TableReport
from binlane.land.snapshot.splicing import Snapshots
from binlane.land.steps import AbandonAll, DropDatabase, Step, tables_of
from binlane.land.table_changes import steps, steps_of_trouble
from binlane.land.work import RangeItem, RangeResult, Rows, sequence
from binlane.names import TableName
from binlane.ranges.items import Trouble
from binlane.scope.scope import Scope


class Lander:
    """Lands in one target.

    Args:
        journal: Of the target.
        current: The current tables, None to keep none.
        changes: The change tables, None to keep none.
        scope: The tables to land.
        progress: Takes what is done.
        snapshots: Of tables whose rows are taken from the server.

    Attributes:
        definitions: What the log told of the tables so far.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        current: CurrentTables | None,
        changes: ChangeTables | None,
        scope: Scope,
        progress: Progress | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._journal = journal
        self._current = current
        self._changes = changes
        self._scope = scope
        self._snapshots = snapshots
        self._pending: dict[TableName, list[Rows]] = {}
        self.progress = Progress() if progress is None else progress
        self.definitions = journal.definitions()

    def apply(self, results: Iterable[RangeResult]) -> None:
        """Apply one batch.

        Args:
            results: Of its ranges, in log order.

        Raises:
            UnsupportedError: If it holds what cannot be followed.
            StoreError: If the target cannot be written.
        """
        self._pending.clear()
        has_items = False
        for result in results:
            for item in result.items:
                has_items = True
                self._take(item)
            self.progress.by_reference += result.by_reference
        self._flush()
        self.progress.batches += has_items

    def _take(self, item: RangeItem) -> None:
        if isinstance(item, Rows):
            self._pending.setdefault(item.table, []).append(item)
            return
        seq = sequence(file_number(item.file), item.position)
        if isinstance(item, Trouble):
            self._do(seq, steps_of_trouble(item, self._scope, self.definitions))
            return
        self._do(seq, steps(item, self._scope, self.definitions))
        self.definitions.follow(item)
        self.progress.reached(seq, item.gtid, item.timestamp)

    def look(self) -> Progress:
        """What was done, and how the tables are now."""
        if self._current is not None:
            for name, reason in self._current.abandoned.items():
                self.progress.tables.setdefault(name, TableReport()).why_not = reason
            for table in self._current.names():
                report = self.progress.of(table)
                report.is_current = True
                report.lacks = self._journal.state.partial.get(table.plain, "")
            self.progress.given_up = self._current.given_up_now()
            self.progress.notes += self._current.notes
            self._current.notes.clear()
        if self._snapshots is not None:
            self._snapshots.report(self.progress)
        return self.progress

    def _do(self, seq: int, found: Sequence[Step]) -> None:
        """Do the steps of a statement or trouble, unless they are done."""
        state = self._journal.state
        is_resumed = state.doing == seq
        current = self._current
        if (
            current is None
            or seq <= state.done
            or not (
                is_resumed
                or any(self._is_pending(step) or current.concerns(step) for step in found)
            )
        ):
            return
        if is_resumed:
            # What precedes a statement was flushed before its first step was written down.
            self._pending.clear()
        else:
            self._flush()
        first = state.step if is_resumed else 0
        for number, step in enumerate(found[first:], first):
            state.doing, state.step = seq, number
            self._journal.save()
            current.do(step, seq)
            if self._snapshots is not None:
                self._snapshots.see(step, seq)
        state.done, state.doing, state.step = seq, 0, 0
        self._journal.save()

    def _is_pending(self, step: Step) -> bool:
        """Whether rows wait that a step is about."""
        if isinstance(step, DropDatabase | AbandonAll):
            return step.database is None or any(
                table.database == step.database for table in self._pending
            )
        return any(table in self._pending for table in tables_of(step))

    def _flush(self) -> None:
        for table, pieces in self._pending.items():
            report = self.progress.of(table)
            if self._changes is not None:
                self._changes.append(table, pieces)
            if self._current is not None:
                self._current.merge(table, pieces, is_told=self.definitions.is_told(table))
            for rows in pieces:
                report.rows += rows.images
                report.invalid_dates += rows.invalid_dates
                report.committed = time.time()
                self.progress.reached(rows.last_seq, rows.last_gtid, rows.last_timestamp)
        self._pending.clear()
