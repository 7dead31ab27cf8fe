"""A memory of tables, so that nothing is read twice: their files, and the bounds of values in these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from binlane.errors import StoreError, StoreLockedError
from binlane.names import TableName
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.formats import CommitSource, Snapshot, TableCommit, TableFormat
from binlane.tables.landing.tables.parquet_files import footer_bounds
from binlane.tables.landing.tables.table_faults import Faults, UnusableTableError


class KnownTables:
    """Tables as they were last read or committed; nobody else changes them.

    An error of one table alone raises `UnusableTableError`.

    Args:
        tables: The tables in their format.
        fence: Raises if the target is not ours any more; asked before each change of a table.
        faults: Tells errors that one table can have alone from others.
        source: The place in the log that the next commits come from, where that is known.
    """

    def __init__(
        self,
        tables: TableFormat,
        fence: Callable[[], None],
        faults: Faults,
        source: Callable[[], CommitSource | None],
    ) -> None:
        self._tables = tables
        self._fence = fence
        self._faults = faults
        self._source = source
        self._known: dict[TableName, Snapshot] = {}

    def find(self, table: TableName) -> Snapshot | None:
        """A table; None if there is none."""
        found = self._known.get(table)
        if found is None:
            with self._faults.of(table):
                found = self._tables.load(table)
            if found is not None:
                if found.files and not found.applied:
                    raise UnusableTableError(
                        "it is somebody else's: nothing in it is of this landing",
                        table=table,
                        path=self._tables.uri(table),
                    )
                self._known[table] = found
        return found

    def there(self, table: TableName) -> Snapshot:
        """A table that exists.

        Raises:
            StoreError: If it does not.
        """
        found = self.find(table)
        if found is None:
            raise StoreError(f"there is no table {table.plain}", path=self._tables.uri(table))
        return found

    def forget(self, table: TableName) -> None:
        """Read the table anew next time."""
        self._known.pop(table, None)

    def create(self, table: TableName, schema: pa.Schema) -> Snapshot:
        """Make a table without rows, if there is none."""
        self.forget(table)
        self._fence()
        with self._faults.of(table):
            self._tables.create(table, schema)
        return self.there(table)

    def commit(self, table: TableName, now: Snapshot, change: TableCommit) -> None:
        """Commit a change of a table."""
        self.forget(table)
        self._fence()
        change = replace(change, source=self._source())
        try:
            with self._faults.of(table):
                self._known[table] = self._tables.commit(table, now, change)
        except UnusableTableError as error:
            again = self.find(table)
            if again is not None and again.applied != now.applied:
                # A commit of a driver that lost the lease: the next holder goes on behind it.
                raise StoreLockedError(
                    f"another driver has committed to {table.plain} meanwhile",
                    path=error.path,
                    hint="land again: it goes on behind it",
                ) from error
            raise

    def drop(self, table: TableName) -> None:
        """Remove a table, if there is one."""
        self._see_ours(table)
        self.forget(table)
        self._fence()
        with self._faults.of(table):
            self._tables.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name."""
        self._see_ours(new)
        self.forget(old)
        self.forget(new)
        self._fence()
        with self._faults.of(new):
            self._tables.rename(old, new)

    def _see_ours(self, table: TableName) -> None:
        """See that a table that is to be removed is not somebody else's.

        Raises:
            UnusableTableError: If it is.
        """
        try:
            self.find(table)
        except UnusableTableError as error:
            if error.__cause__ is None:
                raise

    def bounded(
        self, table: TableName, files: Sequence[LiveFile], key: Sequence[str]
    ) -> list[LiveFile]:
        """Files with the bounds of their keys, from their footers where the log has none."""
        with self._faults.of(table):
            found = {
                file.path: footer_bounds(self._tables.uri(table), file)
                for file in files
                if not file.is_read
                and not all(name in file.low or file.nulls.get(name) == file.rows for name in key)
            }
        if found:
            now = self.there(table)
            self._known[table] = replace(now, files={**now.files, **found})
        return [found.get(file.path, file) for file in files]
