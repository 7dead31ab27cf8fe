"""History tables: every version of each table's rows, with the time in which it held.

A history is never thrown away. Columns that are dropped stay, NULL in later versions; where a table
is dropped, emptied, or changes in a way that the log does not tell, its versions end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

import pyarrow as pa

from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.unify import is_same_value
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.generated_columns import missing_names, shared
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.range_work import DataFile, Mode, Rows
from binlane.tables.landing.reshaping import reshaped, set_aside
from binlane.tables.landing.steps import (
    Abandon,
    AbandonAll,
    Create,
    CreateLike,
    DropDatabase,
    DropTable,
    Rename,
    Reshape,
    Step,
    Truncate,
    tables_of,
)
from binlane.tables.landing.tables.row_versions import MOMENT, first_versions
from binlane.tables.landing.tables.table_faults import UnusableTableError
from binlane.tables.landing.tables.table_store import TableStore

GIVEN_UP = "not in history, which gave the table up"
_REMOVED = "somebody has removed it from the target"
_NO_KEY = (
    "it has no primary key, or the log does not tell it (binlog_row_metadata=FULL does), so that the "
    "versions of one row cannot be told from those of another"
)
_NO_DATE = "a date in its primary key is zero or partial, which no table here can hold"


class HistoryTables:
    """The history tables of a target."""

    def __init__(self, tables: TableStore, journal: Journal, audit: Audit) -> None:
        self._tables = tables
        self._journal = journal
        self._audit = audit
        self._left: set[TableName] = set()

    @property
    def abandoned(self) -> dict[str, str]:
        """Tables whose history is not gone on with, and why."""
        return self._journal.state.ended_histories

    def names(self) -> list[TableName]:
        """The tables there are."""
        return self._tables.names()

    def without(self, table: TableName, definitions: LoggedObjects) -> tuple[str, ...]:
        """The generated columns that a table does not have."""
        return missing_names(definitions.defined_columns(table), self._tables.schema(table).names)

    def exists(self, table: TableName) -> bool:
        """True if the table exists; a history that cannot be read ends."""
        try:
            return self._tables.exists(table)
        except UnusableTableError as error:
            self._leave(table, error)
            return False

    def applied(self, table: TableName) -> int:
        """The `_seq` up to which the log is in a table; 0 if no such table can be read."""
        return self._tables.applied(table) if self.exists(table) else 0

    def given_up_now(self) -> set[str]:
        """Names of the tables that could not be read or written, and did not come back since."""
        return {table.plain for table in self._left} & self.abandoned.keys()

    def _leave(self, table: TableName, error: UnusableTableError) -> None:
        """Go on with a table no more, which cannot be read or written; its versions stay as they are."""
        self._left.add(table)
        self.abandoned[table.plain] = (
            f"it could not be read or written, and its last versions did not end: {error.message}"
        )
        self._journal.save()

    def images(self, table: TableName) -> int | None:
        """Return how many row images of the log a table has; None if nobody counted, or goes on with it."""
        return None if table.plain in self.abandoned else self._tables.images(table)

    def concerns(self, step: Step) -> bool:
        """True if a step is about a table that is kept or was given up."""
        if isinstance(step, Create | CreateLike):
            return False
        if isinstance(step, Abandon | AbandonAll):
            return True
        if isinstance(step, DropDatabase):
            return any(table.database == step.database for table in self.names())
        return any(table.plain in self.abandoned or self.exists(table) for table in tables_of(step))

    def do(self, step: Step, seq: int, seconds: int) -> None:
        """Do one step; a repeated step, or one about tables that are not kept, changes nothing.

        Args:
            step: A step of a statement before which all rows are applied.
            seq: The `_seq` of the step's statement.
            seconds: Time of the statement's execution, in seconds since 1970.
        """
        try:
            self._do(step, seq, seconds)
        except UnusableTableError as error:
            for table in {error.table, *tables_of(step)}:
                self._leave(table, error)

    def _do(self, step: Step, seq: int, seconds: int) -> None:
        if isinstance(step, DropDatabase | AbandonAll):
            for table in self.names():
                if step.database in {None, table.database}:
                    self._end(table, seconds, getattr(step, "reason", ""))
        elif isinstance(step, Abandon):
            self._end(step.table, seconds, step.reason)
        elif isinstance(step, DropTable | Truncate):
            self._end(step.table, seconds, "")
        elif isinstance(step, Rename):
            self._rename(step, seq)
        elif isinstance(step, Reshape):
            self._reshape(step, seq, seconds)

    def _end(self, table: TableName, seconds: int, reason: str) -> None:
        """Let all versions end; without a reason the table may come back."""
        if reason and table.plain not in self.abandoned:
            self.abandoned[table.plain] = reason
            self._journal.save()
        elif not reason:
            self.abandoned.pop(table.plain, None)
        moment = datetime.fromtimestamp(seconds, UTC)
        try:
            self._tables.end_versions(table, pa.scalar(moment, MOMENT))
        except UnusableTableError as error:
            self._leave(table, error)

    def _rename(self, step: Rename, seq: int) -> None:
        self.abandoned.pop(step.new.plain, None)
        if step.old.plain in self.abandoned:
            self.abandoned[step.new.plain] = self.abandoned.pop(step.old.plain)
        if not self._tables.exists(step.old):
            return
        if self._tables.exists(step.new):  # of a table that was dropped
            aside = TableName(step.new.database, f"{step.new.table}_{seq}")
            self._tables.rename(step.new, aside)
        self._tables.rename(step.old, step.new)

    def _reshape(self, step: Reshape, seq: int, seconds: int) -> None:
        table = step.table
        if not self._tables.exists(table) or self._tables.applied(table) >= seq:
            return
        added = tuple(self._tables.added.names)
        change = partial(reshaped, step=step, added=added, keeps_dropped=True)
        why_not = self._tables.rewrite(table, change, seq)
        if why_not:
            self._end(table, seconds, f"{why_not} ({step.place})" if step.place else why_not)

    def seed(
        self,
        table: TableName,
        files: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
        seconds: int,
    ) -> None:
        """Begin anew with all rows of a table, each a version; a second call changes nothing.

        Args:
            table: The table, which may have been given up; its versions end.
            files: Files by URI elsewhere, whose rows have `_ts`, the moment that they were read.
            key: Names of the key's columns.
            schema: Schema of the source's own columns.
            applied: The `_seq` up to which the log is in the rows.
            seconds: Time at which the rows were read, in seconds since 1970.

        Raises:
            StoreError: If the table cannot be written.
        """
        self._audit.seed(Mode.HISTORY, table)
        try:
            self._seed(table, files, key, schema, applied, seconds)
        except UnusableTableError as error:
            self._leave(table, error)

    def _seed(
        self,
        table: TableName,
        files: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
        seconds: int,
    ) -> None:
        if self._tables.applied(table) >= applied:
            return
        if not key:
            self.abandoned[table.plain] = _NO_KEY
            self._journal.save()
            return
        if self._tables.exists(table):
            self._tables.end_versions(
                table, pa.scalar(datetime.fromtimestamp(seconds, UTC), MOMENT)
            )
            why_not = self._widened(table, schema)
            if why_not:
                self._end(table, 0, why_not)
                return
        self._tables.seed(table, files, key, schema, applied, first_versions)
        if self.abandoned.pop(table.plain, None) is not None:
            self._journal.save()

    def merge(
        self, table: TableName, pieces: Sequence[Rows], *, generated: Collection[str] = ()
    ) -> None:
        """Apply the versions that are not applied already, in log order.

        Args:
            table: The table of the versions.
            pieces: Pieces of the log's rows, each with its versions.
            generated: Names of the table's generated columns, in small letters.

        Raises:
            StoreError: If the table cannot be written.
        """
        for _, alike in groupby(pieces, key=lambda rows: (rows.columns, rows.key, rows.lacks)):
            if table.plain in self.abandoned:
                self._audit.leave_out(GIVEN_UP, table, alike)
                continue
            some = list(alike)
            try:
                self._merge(table, some, generated)
            except UnusableTableError as error:
                self._leave(table, error)
                self._audit.leave_out(GIVEN_UP, table, some)

    def _merge(self, table: TableName, pieces: Sequence[Rows], generated: Collection[str]) -> None:
        last = pieces[-1]
        # The effects of foreign keys are found out anew behind a crash.
        applied = self._tables.applied(table)
        runs = [
            rows.versions
            for rows in pieces
            if rows.versions and (rows.images or rows.last_seq > applied)
        ]
        why_not = last.lacks or ("" if last.key else _NO_KEY)
        if any(run.stats.get("nullCount", {}).get(name) for run in runs for name in last.key):
            why_not = why_not or _NO_DATE
        if runs and not why_not and self._tables.exists(table):
            why_not = self._widened(table, last.columns, generated)
        if why_not:
            self._end(table, last.last_timestamp, f"{why_not} ({pieces[0].place})")
        elif runs:
            now = self._tables.images(table)
            if self._audit.had(Mode.HISTORY, table) and not self._tables.exists(table):
                raise UnusableTableError(_REMOVED, table=table, path=self._tables.uri(table))
            images = self._audit.committing(Mode.HISTORY, table, now, pieces)
            self._tables.merge(table, runs, last.key, last.columns, last.last_seq, images)
        else:
            self._audit.expect(Mode.HISTORY, table, pieces)

    def _widened(
        self, table: TableName, columns: pa.Schema, generated: Collection[str] = ()
    ) -> str:
        """Give a table the columns of its rows now, others behind them; why that cannot be.

        Generated columns that either has not are left out.
        """
        added = set(self._tables.added.names)
        known = [field for field in self._tables.schema(table) if field.name not in added]
        if self._tables.has_rows(table):
            there = [field.name for field in known]
            names = shared(columns.names, there, generated)
            known = [known[there.index(name)] for name in shared(there, columns.names, generated)]
            columns = pa.schema([columns.field(name) for name in names])
        now = {field.name.lower(): field.type for field in columns}
        aside: dict[str, str] = {}
        if not self._tables.has_versions(table):  # of a table that was dropped, say
            for field in known:
                if not is_same_value(field.type, now.get(field.name.lower(), field.type)):
                    names = [*now, *(each.name for each in known), *aside.values()]
                    aside[field.name] = set_aside(field.name, names)
        known = [field.with_name(aside.get(field.name, field.name)) for field in known]
        gone = [field for field in known if field.name.lower() not in now]
        return self._tables.conform(table, pa.schema([*columns, *gone]), aside)
