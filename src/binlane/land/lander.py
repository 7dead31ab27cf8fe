"""Applies what tasks found in a batch of the log to tables, in log order, each change exactly once.

Rows wait, table by table, until a statement concerns tables or the batch ends; then each table gets
its commits, which also record how far it is. A batch that is run again finds in those records, and
in the journal, what is done, and does the rest: places in the log decide, not what a batch was.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from binlane.columnar.selection import file_number
from binlane.errors import UnsupportedError
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.journal import Journal
from binlane.land.progress import Progress, TableReport
from binlane.land.table_changes import DropDatabase, Step, steps, tables_of
from binlane.land.work import RangeItem, RangeResult, Rows, sequence
from binlane.names import TableName
from binlane.ranges.items import Trouble
from binlane.ranges.statements import Statement
from binlane.scope.scope import Scope


class Lander:
    """Lands in one target.

    Args:
        journal: Of the target.
        current: The current tables, None to keep none.
        changes: The change tables, None to keep none.
        scope: The tables to land.
        progress: Takes what is done.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        current: CurrentTables | None,
        changes: ChangeTables | None,
        scope: Scope,
        progress: Progress | None = None,
    ) -> None:
        self._journal = journal
        self._current = current
        self._changes = changes
        self._scope = scope
        self._pending: dict[TableName, list[Rows]] = {}
        self.progress = Progress() if progress is None else progress

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
        if isinstance(item, Trouble):
            raise UnsupportedError(item.what, hint=item.hint).at(item.file, item.position)
        if isinstance(item, Statement):
            seq = sequence(file_number(item.file), item.position)
            if seq > self._journal.state.done:
                self._apply_statement(seq, item)
            self.progress.reached(seq, item.gtid, item.timestamp)
        else:
            self._pending.setdefault(item.table, []).append(item)

    def look(self) -> Progress:
        """What was done, and how the tables are now."""
        if self._current is not None:
            for name, reason in self._current.abandoned.items():
                self.progress.tables.setdefault(name, TableReport()).why_not = reason
            for table in self._current.names():
                self.progress.of(table).is_current = True
            self.progress.notes += self._current.notes
            self._current.notes.clear()
        return self.progress

    def _apply_statement(self, seq: int, statement: Statement) -> None:
        found = steps(statement, self._scope)
        state = self._journal.state
        is_resumed = state.doing == seq
        current = self._current
        if current is None or not (
            is_resumed or any(self._is_pending(step) or current.concerns(step) for step in found)
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
            current.do(step)
        state.done, state.doing, state.step = seq, 0, 0
        self._journal.save()

    def _is_pending(self, step: Step) -> bool:
        """Whether rows wait that a step is about."""
        if isinstance(step, DropDatabase):
            return any(table.database == step.database for table in self._pending)
        return any(table in self._pending for table in tables_of(step))

    def _flush(self) -> None:
        for table, pieces in self._pending.items():
            report = self.progress.of(table)
            if self._changes is not None:
                self._changes.append(table, pieces)
            if self._current is not None:
                self._current.merge(table, pieces)
            for rows in pieces:
                report.rows += rows.images
                report.invalid_dates += rows.invalid_dates
                report.committed = time.time()
                self.progress.reached(rows.last_seq, rows.last_gtid, rows.last_timestamp)
        self._pending.clear()
