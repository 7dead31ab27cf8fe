"""Delta tables below one URI, written by delta-rs: what landing needs of an engine.

Each commit says in Delta's own transaction record up to where in the log its table is complete, so
that what was committed before a crash is not applied again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from pyarrow import fs

from binlane.errors import StoreError
from binlane.land.net_changes import GONE
from binlane.land.places import name_of, resolve, segment
from binlane.names import TableName

# delta-rs cannot quote these in the names of a MERGE.
_UNQUOTABLE: Final = "`"
# delta-rs keeps the order of columns where only that would change; one column more makes it write.
_REORDERING: Final = "_reordering"


class DeltaTables:
    """The tables of one kind: `URI/<kind>/<database>/<table>`.

    Args:
        into: URI or path of the target.
        kind: `current` or `changes`.
        app_id: Names the landing in the tables' transactions.
        fence: Raises if the target is not ours any more; asked before each change of a table.
    """

    def __init__(
        self, into: str, kind: str, app_id: str, fence: Callable[[], None] = lambda: None
    ) -> None:
        self._uri = f"{into.rstrip('/')}/{kind}"
        self._filesystem, self._root = resolve(self._uri)
        self._app_id = app_id
        self._fence = fence

    def uri(self, table: TableName) -> str:
        """Where a table is; `places.segment` tells how names become paths."""
        return f"{self._uri}/{segment(table.database)}/{segment(table.table)}"

    def names(self) -> Iterator[TableName]:
        """The tables there are."""
        for database in self._directories(self._root):
            for table in self._directories(f"{self._root}/{database}"):
                yield TableName(name_of(database), name_of(table))

    def exists(self, table: TableName) -> bool:
        """Whether there is such a table."""
        info = self._filesystem.get_file_info(f"{self._path(table)}/_delta_log")
        return bool(info.type is fs.FileType.Directory)

    def applied(self, table: TableName) -> int:
        """Up to which `_seq` the log is applied to a table; 0 if there is no such table."""
        if not self.exists(table):
            return 0
        return DeltaTable(self.uri(table)).transaction_version(self._app_id) or 0

    def schema(self, table: TableName) -> pa.Schema:
        """Names and types of a table's columns."""
        return pa.schema([field for field in self._fields(table) if field.name != _REORDERING])

    def _fields(self, table: TableName) -> list[pa.Field[Any]]:
        schema: Any = DeltaTable(self.uri(table)).schema().to_arrow()
        return list(pa.schema(schema))

    def read(self, table: TableName) -> pa.Table:
        """All rows of a table."""
        # Not to_pyarrow_table(): after it the process aborts at exit now and then (1.6.6).
        schema = self.schema(table)
        return pa.table(DeltaTable(self.uri(table)).scan()).select(schema.names).cast(schema)

    def create(self, table: TableName, rows: pa.Table, applied: int) -> None:
        """Make a table with some rows."""
        self._commit(table, lambda: self._write(table, rows, applied, mode="error"))

    def append(self, table: TableName, rows: pa.Table, applied: int) -> None:
        """Add rows; columns that the table lacks are added, too."""
        self._commit(
            table, lambda: self._write(table, rows, applied, mode="append", schema_mode="merge")
        )

    def replace(self, table: TableName, rows: pa.Table, applied: int | None) -> None:
        """Replace all rows and columns; `applied` None leaves it as it is."""
        names = [field.name for field in self._fields(table)]
        if names != rows.column_names and set(names) == set(rows.column_names):
            more = rows.append_column(_REORDERING, pa.array([None] * rows.num_rows, pa.int8()))
            self._commit(
                table,
                lambda: self._write(table, more, None, mode="overwrite", schema_mode="overwrite"),
            )
        self._commit(
            table,
            lambda: self._write(table, rows, applied, mode="overwrite", schema_mode="overwrite"),
        )

    def merge(self, table: TableName, changes: pa.Table, key: Sequence[str], applied: int) -> None:
        """Delete, update and insert by key.

        Args:
            table: One that exists, with the columns of `changes` but `GONE`.
            changes: One row a key; `GONE` where the key's row is to be deleted.
            key: Names of the key's columns.
            applied: Up to which `_seq` the log is applied afterwards.
        """
        if any(_UNQUOTABLE in name for name in changes.column_names):
            self._merge_by_replacing(table, changes, key, applied)
            return
        # A key is NULL only where a date in it cannot be held.
        equal = " AND ".join(
            f"t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)}" for name in key
        )
        if not any(changes.column(name).null_count for name in key):
            equal = equal.replace(" IS NOT DISTINCT FROM ", " = ")
        self._commit(
            table,
            lambda: (
                DeltaTable(self.uri(table))
                .merge(
                    changes,
                    predicate=equal,
                    source_alias="s",
                    target_alias="t",
                    commit_properties=self._properties(applied),
                )
                .when_matched_delete(predicate=f"s.{GONE}")
                .when_matched_update_all(except_cols=[GONE])
                .when_not_matched_insert_all(predicate=f"NOT s.{GONE}", except_cols=[GONE])
                .execute()
            ),
        )

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._fence()
        if self._filesystem.get_file_info(self._path(table)).type is fs.FileType.Directory:
            self._filesystem.delete_dir(self._path(table))

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name; if it has it already, nothing happens."""
        if not self.exists(old):
            return
        self.drop(new)
        self._filesystem.create_dir(self._path(new).rpartition("/")[0], recursive=True)
        self._filesystem.move(self._path(old), self._path(new))

    def truncate(self, table: TableName) -> None:
        """Remove all rows of a table, if there is one."""
        if self.exists(table):
            self._commit(table, lambda: DeltaTable(self.uri(table)).delete())

    def _merge_by_replacing(
        self, table: TableName, changes: pa.Table, key: Sequence[str], applied: int
    ) -> None:
        old = self.read(table)
        kept = old.join(changes.select(list(key)), keys=list(key), join_type="left anti")
        fresh = changes.filter(pc.invert(changes.column(GONE))).select(old.column_names)
        self.replace(table, pa.concat_tables([kept.select(old.column_names), fresh]), applied)

    def _write(self, table: TableName, rows: pa.Table, applied: int | None, **how: Any) -> None:
        properties = self._properties(applied)
        write_deltalake(self.uri(table), rows, commit_properties=properties, **how)

    def _properties(self, applied: int | None) -> CommitProperties | None:
        if applied is None:
            return None
        return CommitProperties(app_transactions=[Transaction(self._app_id, applied)])

    def _commit(self, table: TableName, write: Callable[[], object]) -> None:
        self._fence()
        try:
            write()
        except (DeltaError, OSError) as error:
            raise StoreError(
                f"{table.plain} cannot be written: {error}",
                path=self.uri(table),
                hint="check who may write there, and its room",
            ) from error

    def _path(self, table: TableName) -> str:
        return f"{self._root}/{segment(table.database)}/{segment(table.table)}"

    def _directories(self, path: str) -> Iterator[str]:
        selector = fs.FileSelector(path, allow_not_found=True)
        for info in self._filesystem.get_file_info(selector):
            if info.type is fs.FileType.Directory:
                yield info.base_name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
