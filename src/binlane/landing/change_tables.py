"""Change tables: every row image of a table, appended in log order."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.landing.tables.store import TableStore
from binlane.landing.work import DataFile, Rows
from binlane.names import TableName


class ChangeTables:
    """The change tables of a target.

    A table's changes stay under the name that it had at their time. Columns come with the rows that
    first have them and stay; one that gets another type gets a type that holds both.
    """

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables

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
            self._tables.append(table, self._tables.adopt(table, files), applied)

    def append(self, table: TableName, pieces: Sequence[Rows]) -> None:
        """Add changes, whose files have what is not there already.

        Raises:
            StoreError: If the table cannot be written.
        """
        files = [rows.changes for rows in pieces if rows.changes is not None]
        if files:
            self._tables.append(table, files, pieces[-1].last_seq)
