"""Current tables: the rows of each table as they are, kept by changes and by statements.

Nothing that the log does not tell is guessed: the table is given up, which the journal remembers,
so that no later rows make a table that looks right and is not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import pyarrow as pa

from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.generated_columns import missing_names, shared
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.linked_tables import LinkedTables
from binlane.tables.landing.range_work import DataFile, Mode, Rows
from binlane.tables.landing.reshaping import reshaped
from binlane.tables.landing.steps import (
    Abandon,
    AbandonAll,
    Create,
    CreateLike,
    DropDatabase,
    DropTable,
    Relink,
    Rename,
    Reshape,
    Step,
    Truncate,
    tables_of,
)
from binlane.tables.landing.tables.table_faults import UnusableTableError
from binlane.tables.landing.tables.table_store import TableStore

GIVEN_UP: Final = "not in current, which gave the table up"
AWAITED: Final = "not in current, which gets its rows by a snapshot"
_UNUSABLE: Final = "it could not be read or written: {}"
_REMOVED: Final = "somebody has removed it from the target"
_LACKS: Final = (
    "rows from before the log's beginning are not in it, nor is what foreign keys did to its rows"
)


class CurrentTables:
    """The current tables of a target.

    Attributes:
        notes: Notes that a reader of the tables must know.
    """

    def __init__(self, tables: TableStore, journal: Journal, audit: Audit) -> None:
        self._tables = tables
        self._journal = journal
        self._audit = audit
        self.notes: list[str] = []
        self._given_up: list[TableName] = []
        for table in self.names():
            if table.plain in self.abandoned:
                self._remove(table)  # a crash came between giving it up and dropping it

    @property
    def abandoned(self) -> dict[str, str]:
        """Tables that were given up, and why."""
        return self._journal.state.abandoned

    def names(self) -> list[TableName]:
        """The tables there are."""
        return list(self._tables.names())

    def without(self, table: TableName, definitions: LoggedObjects) -> tuple[str, ...]:
        """The generated columns that a table does not have."""
        return missing_names(definitions.defined_columns(table), self._own(table))

    def images(self, table: TableName) -> int | None:
        """Return how many row images of the log a table has; None if nobody counted, or keeps it now."""
        is_kept = table.plain not in self.abandoned and not self._awaits_rows(table)
        return self._tables.images(table) if is_kept else None

    def exists(self, table: TableName) -> bool:
        """True if the table exists; a table that cannot be read is given up."""
        try:
            return self._tables.exists(table)
        except UnusableTableError as error:
            self.give_up(table, _UNUSABLE.format(error.message))
            return False

    def applied(self, table: TableName) -> int:
        """The `_seq` up to which the log is in a table; 0 if no such table can be read."""
        return self._tables.applied(table) if self.exists(table) else 0

    def linked(self, log: LandedLog) -> LinkedTables:
        """The current tables whose rows change with others'."""
        return LinkedTables(self._tables, log)

    def given_up_now(self) -> list[str]:
        """Names of the tables that this landing gave up, and that did not come back since."""
        return sorted({table.plain for table in self._given_up} & self.abandoned.keys())

    # Statements -----------------------------------------------------------------------------------

    def concerns(self, step: Step) -> bool:
        """True if a step is about a table that is kept or was given up."""
        if isinstance(step, Abandon | AbandonAll | Create | CreateLike | Relink):
            return True
        if isinstance(step, DropDatabase):
            return any(table.database == step.database for table in self.names())
        return any(table.plain in self.abandoned or self.exists(table) for table in tables_of(step))

    def do(self, step: Step, seq: int) -> None:
        """Do one step; a repeated step, or one about tables that are not kept, changes nothing.

        Args:
            step: A step of a statement before which all rows are applied.
            seq: The `_seq` of the step's statement.
        """
        try:
            self._do(step, seq)
        except UnusableTableError as error:
            for table in {error.table, *tables_of(step)}:
                self.give_up(table, _UNUSABLE.format(error.message))

    def _do(self, step: Step, seq: int) -> None:
        if isinstance(step, DropDatabase):
            self._drop_database(step.database)
        elif isinstance(step, AbandonAll):
            for table in self.names():
                if step.database in {None, table.database}:
                    self.give_up(table, step.reason)
        elif isinstance(step, Abandon):
            self.give_up(step.table, step.reason)
        elif isinstance(step, Rename):
            self._rename(step)
        elif not isinstance(step, Relink):
            self._do_to_table(step, seq)

    def _do_to_table(
        self, step: DropTable | Truncate | Create | CreateLike | Reshape, seq: int
    ) -> None:
        if isinstance(step, DropTable | Truncate):
            change = self._tables.drop if isinstance(step, DropTable) else self._tables.truncate
            change(step.table)
            self.abandoned.pop(step.table.plain, None)
            self._journal.state.partial.pop(step.table.plain, None)
        elif isinstance(step, Create | CreateLike):
            self._create_empty(step)
        elif self._tables.exists(step.table) and self._tables.applied(step.table) < seq:
            self._reshape(step, seq)

    def _rename(self, step: Rename) -> None:
        for known in (self.abandoned, self._journal.state.partial):
            known.pop(step.new.plain, None)
            if step.old.plain in known:
                known[step.new.plain] = known.pop(step.old.plain)
        self._tables.rename(step.old, step.new)

    def _create_empty(self, step: Create | CreateLike) -> None:
        if self._tables.exists(step.table) or step.table.plain in self.abandoned:
            return
        if isinstance(step, Create):
            columns = list(step.schema)
        elif self._tables.exists(step.like):
            own = self._own(step.like)
            columns = [each for each in self._tables.schema(step.like) if each.name in own]
        else:
            columns = []
        if columns:  # else it comes with its first rows
            self._tables.create(step.table, pa.schema(columns))

    def _drop_database(self, database: str) -> None:
        for table in self.names():
            if table.database == database:
                self._remove(table)
        for known in (self.abandoned, self._journal.state.partial):
            for name in [name for name in known if name.startswith(f"{database}.")]:
                del known[name]
        for table in self.names():
            if table.database == database:
                self.abandoned[table.plain] = "its database was dropped, and its directory stays"

    def give_up(self, table: TableName, reason: str) -> None:
        """Keep a table no longer, since what is in it cannot be known any more."""
        if table.plain not in self.abandoned:
            self._given_up.append(table)
        self.abandoned[table.plain] = reason
        self._journal.state.partial.pop(table.plain, None)
        self._journal.save()
        self._remove(table)

    def _remove(self, table: TableName) -> None:
        """Drop a table; what cannot be removed stays, and that is told."""
        try:
            self._tables.drop(table)
        except UnusableTableError as error:
            why = f"what lies in its directory stays, and is not current: {error.message}"
            if f"{table.plain}: {why}" not in self.notes:
                self.notes.append(f"{table.plain}: {why}")

    def _reshape(self, step: Reshape, seq: int) -> None:
        change = partial(reshaped, step=step, added=tuple(self._tables.added.names))
        why_not = self._tables.rewrite(step.table, change, seq)
        if why_not:
            self.give_up(step.table, f"{why_not} ({step.place})" if step.place else why_not)

    def seed(
        self,
        table: TableName,
        files: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
    ) -> None:
        """Replace all rows of a table by those of some files; a second call changes nothing.

        Args:
            table: The table, which may have been given up.
            files: Files elsewhere with the rows, by URI.
            key: Names of the key's columns.
            schema: Schema of the source's own columns.
            applied: The `_seq` up to which the log is in the rows.

        Raises:
            StoreError: If the table cannot be written.
        """
        state = self._journal.state
        if {self.abandoned.pop(table.plain, None), state.partial.pop(table.plain, None)} != {None}:
            # Without this save the table's files would be gone after a crash behind it.
            self._journal.save()
        self._audit.seed(Mode.CURRENT, table)
        try:
            if self._tables.applied(table) < applied:
                self._tables.seed(table, files, key, schema, applied)
        except UnusableTableError as error:
            self.give_up(table, _UNUSABLE.format(error.message))

    # Rows -----------------------------------------------------------------------------------------

    def merge(
        self,
        table: TableName,
        pieces: Sequence[Rows],
        *,
        is_told: bool,
        generated: Collection[str] = (),
    ) -> None:
        """Apply the rows of runs that are not applied already, in log order.

        Args:
            table: The table of the rows.
            pieces: Pieces of the log's rows, each with its run.
            is_told: Whether the log told of the table's beginning.
            generated: Names of the table's generated columns, in small letters.

        Raises:
            StoreError: If the table cannot be written.
        """
        for _, alike in groupby(pieces, key=_shape):
            if table.plain in self.abandoned:
                self._audit.leave_out(GIVEN_UP, table, alike)
            elif self._awaits_rows(table):
                self._audit.leave_out(AWAITED, table, alike)
            else:
                self._merge_or_give_up(table, list(alike), is_told=is_told, generated=generated)

    def _merge_or_give_up(
        self, table: TableName, pieces: list[Rows], *, is_told: bool, generated: Collection[str]
    ) -> None:
        try:
            self._merge(table, pieces, is_told=is_told, generated=generated)
        except UnusableTableError as error:
            self.give_up(table, _UNUSABLE.format(error.message))
            self._audit.leave_out(GIVEN_UP, table, pieces)

    def _awaits_rows(self, table: TableName) -> bool:
        """True if a snapshot is still to bring the rows that the table had before."""
        return table.plain in self._journal.state.snapshots and not self.exists(table)

    def _merge(
        self,
        table: TableName,
        pieces: Sequence[Rows],
        *,
        is_told: bool,
        generated: Collection[str],
    ) -> None:
        last = pieces[-1]
        if last.lacks:
            self.give_up(table, f"{last.lacks} ({pieces[0].place})")
            return
        runs = [rows.run for rows in pieces if rows.run is not None]
        if not runs:
            self._audit.expect(Mode.CURRENT, table, pieces)
            return
        if any(run.stats.get("nullCount", {}).get(name) for run in runs for name in last.key):
            reason = "a date in its primary key is zero or partial, which no table here can hold"
            self.give_up(table, f"{reason} ({pieces[0].place})")
            return
        columns = self._named(table, last.columns)
        if not self._tables.exists(table) and not is_told:
            self._journal.state.partial[table.plain] = _LACKS
            self._journal.save()
        place = pieces[0].place
        if self._tables.exists(table) and not self._is_reconciled(table, columns, place, generated):
            return
        before = self._tables.snapshot(table)
        if before is None and self._audit.had(Mode.CURRENT, table):
            raise UnusableTableError(_REMOVED, table=table, path=self._tables.uri(table))
        now = 0 if before is None else before.images
        images = self._audit.committing(Mode.CURRENT, table, now, pieces)
        missing = self._tables.merge(table, runs, last.key, columns, last.last_seq, images)
        if missing:
            self.notes.append(
                f"{table.plain}: {missing} rows were removed that the log had not added; "
                "it begins behind them"
            )
        self._count_rows(table, 0 if before is None else before.rows, pieces)

    def _count_rows(self, table: TableName, before: int, pieces: Sequence[Rows]) -> None:
        """See that a table has as many rows more as its changes add, where that can be known."""
        state = self._journal.state
        is_whole = table.plain not in state.partial and table.plain not in state.snapshots
        added = [rows.added for rows in pieces if rows.run is not None]
        if not is_whole or None in added or self._tables.keeps_deleted:
            return
        expected = before + sum(number for number in added if number is not None)
        found = self._tables.there(table).rows
        if found == expected:
            return
        state.partial[table.plain] = (
            f"up to GTID {pieces[-1].last_gtid} its changes make {expected} rows of it, and it has "
            f"{found}: the source changed rows that it did not log (sql_log_bin=0)"
        )
        self._journal.save()
        self.notes.append(f"{table.plain}: {state.partial[table.plain]}")

    def _named(self, table: TableName, columns: pa.Schema) -> pa.Schema:
        """Columns with the names that CREATE TABLE gave, where the rows have numbers only."""
        if not columns.names or columns.names[0] != "@1" or not self._tables.exists(table):
            return columns
        named = self._own(table)
        if len(named) != len(columns):
            return columns
        fields = zip(columns, named, strict=True)
        return pa.schema([field.with_name(name) for field, name in fields])

    def _own(self, table: TableName) -> list[str]:
        """Names of the source's columns."""
        added = set(self._tables.added.names)
        return [name for name in self._tables.schema(table).names if name not in added]

    def _is_reconciled(
        self, table: TableName, columns: pa.Schema, place: str, generated: Collection[str]
    ) -> bool:
        """Bring a table to the columns that its rows have now, from a place in the log on.

        ALTER TABLE was followed before; what still differs are types, generated columns that either
        does not have, or columns of a table whose ALTER TABLE the log does not hold.

        Returns:
            False if that is not possible; the table is then given up.
        """
        own = self._own(table)
        if self._tables.has_rows(table):
            # A generated column that only one of both has is not known of all rows.
            own = shared(own, columns.names, generated)
            names = shared(columns.names, own, generated)
            columns = pa.schema([columns.field(name) for name in names])
        if set(own) != set(columns.names) and self._tables.has_rows(table):
            gone = [name for name in own if name not in set(columns.names)]
            new = [name for name in columns.names if name not in set(own)]
            change = " and ".join(
                f"{', '.join(names)} {verb}"
                for names, verb in ((gone, "went"), (new, "came"))
                if names
            )
            reason = f"its columns changed, {change}, and no ALTER TABLE in the log tells how"
            self.give_up(table, f"{reason} ({place})")
            return False
        why_not = self._tables.conform(table, columns)
        if why_not:
            reason = f"its values do not fit its new column types: {why_not}"
            self.give_up(table, f"{reason} ({place})")
        return not why_not


def _shape(rows: Rows) -> tuple[object, ...]:
    """Return the facts that rows must have in common to be merged at once."""
    return rows.columns, rows.key, rows.is_full, rows.why_not
