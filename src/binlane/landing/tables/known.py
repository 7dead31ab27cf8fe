"""What is known of tables, so that nothing is read twice: their files, and what these hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from binlane.errors import StoreError
from binlane.landing.tables.bounds import LiveFile
from binlane.landing.tables.formats import Change, Snapshot, Source, TableFormat
from binlane.landing.tables.parquet_files import footer_bounds
from binlane.names import TableName


class KnownTables:
    """Tables as they were last read or committed; nobody else changes them.

    Args:
        tables: In their format.
        fence: Raises if the target is not ours any more; asked before each change of a table.
        source: The place in the log that the next commits come from, where that is known.
    """

    def __init__(
        self,
        tables: TableFormat,
        fence: Callable[[], None],
        source: Callable[[], Source | None],
    ) -> None:
        self._tables = tables
        self._fence = fence
        self._source = source
        self._known: dict[TableName, Snapshot] = {}

    def find(self, table: TableName) -> Snapshot | None:
        """A table; None if there is none."""
        found = self._known.get(table)
        if found is None:
            found = self._tables.load(table)
            if found is not None:
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
        self._tables.create(table, schema)
        return self.there(table)

    def commit(self, table: TableName, now: Snapshot, change: Change) -> None:
        """Change a table."""
        self.forget(table)
        self._fence()
        change = replace(change, source=self._source())
        self._known[table] = self._tables.commit(table, now, change)

    def drop(self, table: TableName) -> None:
        """Remove a table, if there is one."""
        self.forget(table)
        self._fence()
        self._tables.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name."""
        self.forget(old)
        self.forget(new)
        self._fence()
        self._tables.rename(old, new)

    def bounded(
        self, table: TableName, files: Sequence[LiveFile], key: Sequence[str]
    ) -> list[LiveFile]:
        """Files with the bounds of their keys, from their footers where the log has none."""
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
