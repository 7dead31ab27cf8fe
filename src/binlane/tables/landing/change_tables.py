"""Change tables: every row image of a table, appended in log order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from binlane.names import TableName
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.journal import Journal
from binlane.tables.landing.range_work import DataFile, Mode, Rows
from binlane.tables.landing.steps import DropDatabase, DropTable, Step
from binlane.tables.landing.tables.table_faults import UnusableTableError
from binlane.tables.landing.tables.table_store import TableStore

LOST: Final = "not in changes, whose table could not be written"


class ChangeTables:
    """The change tables of a target.

    A table's changes stay under the name that it had at their time. Columns come with the rows that
    first have them and stay; one that gets another type gets a type that holds both. A table that
    cannot be written lacks changes from then on: until the landing ends, and the journal tells it
    for as long as the table is there.
    """

    def __init__(self, tables: TableStore, journal: Journal, audit: Audit) -> None:
        self._tables = tables
        self._journal = journal
        self._audit = audit
        self._lost: set[TableName] = set()
        self._lacking: set[TableName] = set()

    @property
    def gaps(self) -> dict[str, str]:
        """Tables that lack changes, and why."""
        return self._journal.state.gaps

    @property
    def lost(self) -> frozenset[TableName]:
        """Tables that this landing does not go on with."""
        return frozenset(self._lost)

    def given_up_now(self) -> set[str]:
        """Names of the tables that this landing has not given all changes."""
        return {table.plain for table in self._lacking} & self.gaps.keys()

    def names(self) -> list[TableName]:
        """The tables there are."""
        return self._tables.names()

    def applied(self, table: TableName) -> int:
        """The `_seq` up to which the log is in a table."""
        try:
            return self._tables.applied(table)
        except UnusableTableError as error:
            self.lose(table, error.message)
            return 0

    def images(self, table: TableName) -> int | None:
        """Return how many row images of the log a table has; None if nobody counted, or goes on with it."""
        return None if table in self._lost else self._tables.images(table)

    def lack(self, tables: Iterable[TableName], reason: str) -> None:
        """Some changes of tables are not known; those behind them come."""
        for table in tables:
            self._lacking.add(table)
            self.gaps.setdefault(table.plain, reason)
        self._journal.save()

    def lose(self, table: TableName, reason: str) -> None:
        """Go on with a table no more, which cannot be written."""
        self._lost.add(table)
        self.lack([table], f"it could not be written: {reason}")

    def do(self, step: Step) -> None:
        """Follow a statement: what a table lacked is forgotten with all of its rows."""
        if isinstance(step, DropTable):
            self.gaps.pop(step.table.plain, None)
        elif isinstance(step, DropDatabase):
            for name in [name for name in self.gaps if name.startswith(f"{step.database}.")]:
                del self.gaps[name]

    def seed(self, table: TableName, files: Sequence[DataFile], applied: int) -> None:
        """Add a snapshot's rows, with which nothing is missing; a second call changes nothing.

        Args:
            table: The table of the rows.
            files: Files elsewhere with the rows, by URI.
            applied: The `_seq` up to which the log is in the table with these rows.

        Raises:
            StoreError: If the table cannot be written.
        """
        try:
            if files and self._tables.applied(table) < applied:
                images = self._tables.images(table)
                self._tables.append(table, self._tables.adopt(table, files), applied, images)
        except UnusableTableError as error:
            self.lose(table, error.message)
            return
        self._lost.discard(table)
        if self.gaps.pop(table.plain, None) is not None:
            self._journal.save()

    def append(self, table: TableName, pieces: Sequence[Rows]) -> None:
        """Add changes, whose files have what is not there already.

        Raises:
            StoreError: If the target cannot be written.
        """
        if table in self._lost:
            self._audit.leave_out(LOST, table, pieces)
            return
        had = self._audit.had(Mode.CHANGES, table)
        try:
            for rows in pieces:
                if rows.fault:
                    self._tables.fail(table, rows.fault)
            if had and not self._tables.exists(table):
                self.lack([table], "somebody has removed from the target what was there before")
                self._audit.undo(Mode.CHANGES, table, 0)
            files = [rows.changes for rows in pieces if rows.changes is not None]
            images = self._audit.committing(Mode.CHANGES, table, self._tables.images(table), pieces)
            if files:
                self._tables.append(table, files, pieces[-1].last_seq, images)
        except UnusableTableError as error:
            self.lose(table, error.message)
            if not error.is_committed:
                self._audit.undo(Mode.CHANGES, table, had)
                self._audit.leave_out(LOST, table, pieces)
