"""Applies a log's batches and statements to Delta tables, in log order, each exactly once.

Row changes wait, table by table, until a statement concerns tables or the micro-batch ends; then
each table gets one commit, which also records how far it is. A micro-batch that is run again finds
in those records, and in the journal, what is done, and does the rest: places in the log decide, not
the number of the micro-batch.
"""

from __future__ import annotations

from itertools import groupby

import pyarrow as pa

from binlane.columnar.table_schema import invalid_dates_of, table_of
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.journal import Journal
from binlane.land.log_items import log_items, shape, with_seq
from binlane.land.progress import Progress, TableReport
from binlane.land.table_changes import DropDatabase, Step, steps, tables_of
from binlane.names import TableName
from binlane.ranges.statements import Statement
from binlane.scope.scope import Scope


class Lander:
    """Lands in one target.

    Args:
        journal: Of the target.
        current: The current tables, None to keep none.
        changes: The change tables, None to keep none.
        scope: The tables to land.

    Attributes:
        progress: What was done so far.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        current: CurrentTables | None,
        changes: ChangeTables | None,
        scope: Scope,
    ) -> None:
        self._journal = journal
        self._current = current
        self._changes = changes
        self._scope = scope
        self._pending: dict[TableName, list[pa.RecordBatch]] = {}
        self.progress = Progress()

    def apply(self, rows: pa.Table) -> None:
        """Apply one micro-batch of the layout `batches`, its rows in any order.

        Raises:
            UnsupportedError: If a statement changes rows.
            StoreError: If the target cannot be written.
        """
        self._pending.clear()
        items = log_items(rows)
        for item in items:
            if item.seq <= self._journal.state.done:
                continue  # applied before a crash, with all that precedes that statement
            if isinstance(item.content, Statement):
                self._apply_statement(item.seq, item.content)
            else:
                table = table_of(item.content.schema)
                self._pending.setdefault(table, []).append(item.content)
        self._flush()
        if items:
            self.progress.batches += 1
            self.progress.last_gtid = max(items, key=lambda item: item.last_seq).last_gtid

    def finish(self) -> Progress:
        """What was done, and how the tables are now."""
        if self._current is not None:
            for name, reason in self._current.abandoned.items():
                self.progress.tables.setdefault(name, TableReport()).why_not = reason
            for table in self._current.names():
                self.progress.of(table).is_current = True
            self.progress.notes += self._current.notes
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
        for table, batches in self._pending.items():
            report = self.progress.of(table)
            for _, run in groupby(batches, key=shape):
                changes = with_seq(list(run))
                if self._changes is not None:
                    self._changes.append(table, changes)
                if self._current is not None:
                    self._current.merge(table, changes)
                report.rows += changes.num_rows
            report.invalid_dates += sum(invalid_dates_of(batch.schema) for batch in batches)
        self._pending.clear()
