"""Change tables: every row image of a table, appended in log order."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.landing.audit import Audit
from binlane.landing.tables.store import TableStore
from binlane.landing.work import DataFile, Mode, Rows
from binlane.names import TableName


class ChangeTables:
    """The change tables of a target.

    A table's changes stay under the name that it had at their time. Columns come with the rows that
    first have them and stay; one that gets another type gets a type that holds both.
    """

    def __init__(self, tables: TableStore, audit: Audit) -> None:
        self._tables = tables
        self._audit = audit

    def images(self, table: TableName) -> int | None:
        """How many row images of the log a table has; None if nobody counted."""
        return self._tables.images(table)

    def seed(self, table: TableName, files: Sequence[DataFile], applied: int) -> None:
        """Add the rows of a snapshot; done again, nothing happens.

        Args:
            table: Their table.
            files: URIs elsewhere.
            applied: Up to which `_seq` the log is in the table with them.

        Raises:
            StoreError: If the table cannot be written.
        """
        if files and self._tables.applied(table) < applied:
            images = self._tables.images(table)
            self._tables.append(table, self._tables.adopt(table, files), applied, images)

    def append(self, table: TableName, pieces: Sequence[Rows]) -> None:
        """Add changes, whose files have what is not there already.

        Raises:
            StoreError: If the table cannot be written.
        """
        files = [rows.changes for rows in pieces if rows.changes is not None]
        images = self._audit.committing(Mode.CHANGES, table, self._tables.images(table), pieces)
        if files:
            self._tables.append(table, files, pieces[-1].last_seq, images)
