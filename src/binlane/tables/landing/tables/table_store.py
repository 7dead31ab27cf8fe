"""The tables of one kind of a target: what a landing asks for, the same in every format.

Rows are read and written by tasks; here it is decided which files they are, and each change of a
table is one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.columnar.unify import (
    conform_table,
    in_front,
    is_same_value,
    spelled_alike,
    unify_schemas,
)
from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.table_files import move_file, write_file
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.formats import (
    Snapshot,
    TableCommit,
    TableFormat,
    What,
    note_of,
    reshaped,
)
from binlane.tables.landing.tables.known import KnownTables
from binlane.tables.landing.tables.merge_work import (
    How,
    MergeResult,
    MergeWork,
    RowChange,
    change_of,
)
from binlane.tables.landing.tables.merging import DELETED_AT, MOMENT, known_columns, merge_file
from binlane.tables.landing.tables.parquet_files import read_rows
from binlane.tables.landing.tables.planning import joined
from binlane.tables.landing.tables.row_versions import VERSION_COLUMNS, ended, holding
from binlane.tables.landing.tables.store_settings import MergeOrder, Merger, TableStoreSettings
from binlane.tables.landing.tables.table_faults import Faults, UnusableTableError, one_by_one
from binlane.tables.landing.tables.works import Works
from binlane.tables.landing.target_files import file_name

NOTHING: Final[Mapping[str, str]] = {}
_VACUUM_VERSIONS: Final = 100
"""After so many commits to a table its directory is looked through."""

_OWN_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    ("_gtid", pa.string()),
    (SEQUENCE_COLUMN, pa.int64()),
]
OWN_COLUMNS: Final = pa.schema(_OWN_COLUMNS)
"""Columns that a current table has behind the source's columns: of the change that made each row."""


class TableStore:
    """The tables of one kind.

    Args:
        into: URI or path of the target.
        mode: The kind of tables that are kept.
        tables: The tables in their format.
        settings: Settings of the store's tables.

    Attributes:
        faults: Tells errors that one table can have alone, which methods raise as
            `UnusableTableError`.
    """

    def __init__(
        self, into: str, mode: Mode, tables: TableFormat, settings: TableStoreSettings
    ) -> None:
        self._into = into
        self._mode = mode
        self._tables = tables
        self._settings = settings
        self.faults = Faults(into, settings.fence, self._ask, is_read_only=settings.is_read_only)
        self._known = KnownTables(tables, settings.fence, self.faults, settings.source)
        self._keys: dict[TableName, tuple[str, ...]] = {}
        self._vacuumed: dict[TableName, int] = {}
        run_id, soft_deletes = settings.run_id, settings.soft_deletes
        self._works = Works(tables, run_id, soft_deletes=soft_deletes)

    # Facts about tables ---------------------------------------------------------------------------

    @property
    def added(self) -> pa.Schema:
        """The columns that tables have behind the source's columns."""
        if self._mode is Mode.HISTORY:
            return VERSION_COLUMNS
        if self._settings.soft_deletes:
            return OWN_COLUMNS.append(pa.field(DELETED_AT, MOMENT))
        return OWN_COLUMNS

    @property
    def keeps_deleted(self) -> bool:
        """True if deleted rows stay in the tables."""
        return self._settings.soft_deletes

    def names(self) -> list[TableName]:
        """The tables there are."""
        return list(self._tables.names())

    def exists(self, table: TableName) -> bool:
        """True if the table exists."""
        return self.snapshot(table) is not None

    def schema(self, table: TableName) -> pa.Schema:
        """Names and types of a table's columns, those that landing adds included."""
        return self._known.there(table).schema

    def has_rows(self, table: TableName) -> bool:
        """True if a table, which exists, has any row."""
        return self._known.there(table).rows > 0

    def has_versions(self, table: TableName) -> bool:
        """True if a history table, which exists, has any version that holds."""
        return bool(holding(self._known.there(table), self._mode))

    def applied(self, table: TableName) -> int:
        """The `_seq` up to which the log is applied to a table; 0 if there is no such table."""
        found = self.snapshot(table)
        return 0 if found is None else found.applied

    def images(self, table: TableName) -> int | None:
        """Return how many row images of the log a table has; 0 without a table, None if nobody counted."""
        found = self.snapshot(table)
        return 0 if found is None else found.images

    def snapshot(self, table: TableName) -> Snapshot | None:
        """A table's columns and files; None if there is no such table."""
        return self._known.find(table)

    def there(self, table: TableName) -> Snapshot:
        """The columns and files of a table that exists."""
        return self._known.there(table)

    @one_by_one
    def read(self, table: TableName) -> pa.Table:
        """All rows of a table."""
        found = self._known.there(table)
        folder = self.uri(table)
        rows = [conform_table(read_rows(f"{folder}/{path}"), found.schema) for path in found.files]
        return pa.concat_tables(rows) if rows else found.schema.empty_table()

    def uri(self, table: TableName) -> str:
        """The directory of a table."""
        return self._tables.uri(table)

    def fail(self, table: TableName, why: str) -> None:
        """A task could not write to a table's directory.

        Raises:
            UnusableTableError: If the target can be used.
        """
        with self.faults.of(table):
            raise StoreError(why, path=self.uri(table))

    # Rows -----------------------------------------------------------------------------------------

    @one_by_one
    def append(
        self,
        table: TableName,
        files: Sequence[DataFile],
        applied: int,
        images: int | None = None,
    ) -> None:
        """Add files that tasks wrote to a change table.

        Args:
            table: The table, made if there is none. Columns that it lacks are added; one that gets
                another type gets a type that holds both, one that gets capitals for small letters
                keeps the letters it had.
            files: Files in the table's directory.
            applied: The `_seq` up to which the table is complete then.
            images: How many row images of the log are in the table then; None leaves that as it is.

        Raises:
            StoreError: If the table cannot be written.
        """
        now = self.snapshot(table)
        known = [] if now is None else now.schema.names
        schemas = spelled_alike(known, (self._tables.storable(file.schema) for file in files))
        if now is None:
            now = self._known.create(table, unify_schemas(schemas))
        wider = in_front(now.schema, unify_schemas([*schemas, now.schema]))
        if not wider.equals(now.schema):
            now = self._widen(table, now, wider)
        add = self._fitted(table, files, wider)
        change = TableCommit(what=What.APPEND, add=add, applied=applied, images=images)
        self._known.commit(table, now, change)
        self._tidy_committed(table)

    @one_by_one
    def plan_merge(
        self, table: TableName, runs: Sequence[DataFile], key: Sequence[str], schema: pa.Schema
    ) -> list[MergeWork]:
        """Plan the works after which a table holds the rows that some runs tell.

        Args:
            table: A table that has all or some of the columns of the runs, or one that does not
                exist.
            runs: Staged runs in log order, not empty; of a history table those of versions.
            key: Names of the key's columns; empty if the table has none, then rows are counted.
            schema: Schema of the source's columns, in the order of the runs.

        Returns:
            Works for `merge_file`; none of their results may be left out.

        Raises:
            StoreError: If a run cannot be read.
        """
        now = self.snapshot(table) or Snapshot(schema=self.whole(schema))
        self._keys[table] = tuple(key)
        if not key:
            return [self._works.counting(table, now, runs, tuple(schema.names))]
        how = How.VERSIONS if self._mode is Mode.HISTORY else How.MERGE
        like = self._works.rewriting(table, [], now.schema, key=tuple(key))
        like = replace(like, how=how, names=tuple(schema.names))
        live = self._known.bounded(table, holding(now, self._mode), key)
        return self._works.merging(table, now, live, runs, like)

    @one_by_one
    def commit_merge(
        self,
        table: TableName,
        results: Sequence[MergeResult],
        applied: int | None,
        images: int | None = None,
        *,
        what: What = What.MERGE,
    ) -> int:
        """Let a table be what tasks made of it.

        Args:
            table: The table, made if there is none.
            results: The results of all works of one plan.
            applied: The `_seq` up to which the table is complete then; None leaves it as it is.
            images: How many row images of the log are in the table then; None leaves that as it is.
            what: The kind of the commit.

        Returns:
            The number of rows that were to be removed and were not there.

        Raises:
            StoreError: If the table cannot be written.
        """
        now = self.snapshot(table)
        if now is None:
            now = self._known.create(table, results[0].schema)
        change = change_of(results, what, applied, images)
        self._known.commit(table, now, change)
        return sum(result.missing for result in results)

    @one_by_one
    def merge(
        self,
        table: TableName,
        runs: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
        images: int | None = None,
    ) -> int:
        """Plan a merge, have tasks do it, commit it; see there."""
        merger = self._settings.merger
        if key and merger is not None and self._leaves_to(merger, table, schema):
            if not self.exists(table):
                self._known.create(table, self.whole(schema))
            self._settings.fence()
            order = MergeOrder(
                uri=self.uri(table),
                format=self._tables.format,
                runs=runs,
                names=schema.names,
                key=key,
                app_id=self._settings.app_id,
                applied=applied,
                left_out=frozenset(schema.names).difference(self.schema(table).names),
                note=note_of(self._settings.source()),
            )
            merger.merge(order)
            self._known.forget(table)
            if images is not None:  # what the engine's own commit does not say
                now = self._known.there(table)
                self._known.commit(table, now, TableCommit(what=What.COUNT, images=images))
            return 0
        works = self.plan_merge(table, runs, key, schema)
        missing = self.commit_merge(table, list(self._run(works)), applied, images)
        self._tidy_committed(table)
        return missing

    def _leaves_to(self, merger: Merger, table: TableName, schema: pa.Schema) -> bool:
        if self._mode is not Mode.CURRENT or self._settings.soft_deletes:
            return False
        now = self.snapshot(table)
        has_feed = bool(self._settings.feed) if now is None else now.has_feed
        return merger.takes(self._tables.format, schema.names, has_feed=has_feed)

    # Snapshots ------------------------------------------------------------------------------------

    @one_by_one
    def seed(
        self,
        table: TableName,
        files: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
        change: RowChange | None = None,
    ) -> None:
        """Replace the rows of a table by those of some files; the table is made if there is none.

        A history table keeps the versions that it has.

        Args:
            table: The name of the table.
            files: Files by URI elsewhere, which are moved to the table, also by a process that
                died.
            key: Names of the key's columns.
            schema: Schema of the source's columns, which the files have, and behind them what
                landing adds.
            applied: The `_seq` up to which the table is complete then.
            change: Makes rows of the table of the files' rows, if these are none.

        Raises:
            StoreError: If the table cannot be written.
        """
        whole = self.whole(schema)
        now = self.snapshot(table) or self._known.create(table, whole)
        self._keys[table] = tuple(key)
        if self._mode is Mode.HISTORY:  # what was before stays
            add = self._fitted(table, self.adopt(table, files), now.schema, change)
            seeded = TableCommit(what=What.SNAPSHOT, add=add, applied=applied, images=0)
        else:
            add = self._fitted(table, self.adopt(table, files), whole, change)
            seeded = TableCommit(
                what=What.SNAPSHOT,
                add=add,
                remove=list(now.files),
                applied=applied,
                images=0,
                schema=whole,
            )
        self._known.commit(table, now, seeded)

    def adopt(self, table: TableName, files: Sequence[DataFile]) -> list[DataFile]:
        """Move files that lie elsewhere to a table, which does not know them yet."""
        folder = self.uri(table)
        is_hidden = self._tables.format is FormatName.PARQUET
        moved = []
        for file in files:
            name = file.path.rpartition("/")[2]
            moved.append(move_file(file, folder, "_" if is_hidden and name[0] != "_" else ""))
        return moved

    def _fitted(
        self,
        table: TableName,
        files: Sequence[DataFile],
        schema: pa.Schema,
        change: RowChange | None = None,
    ) -> list[DataFile]:
        """Files in a table's directory, those written anew that do not have its columns."""
        is_fit = [change is None and self._fits(file.schema, schema) for file in files]
        works = [
            self._works.rewriting(table, [LiveFile.of(file)], schema, change)
            for file, fits in zip(files, is_fit, strict=True)
            if not fits
        ]
        fitting = [file for file, fits in zip(files, is_fit, strict=True) if fits]
        return fitting + [file for result in self._run(works) for file in result.add]

    # Statements -----------------------------------------------------------------------------------

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows.

        Args:
            table: A name that has no table; if it has one, that stays.
            schema: Schema of the source's own columns.
        """
        self._known.create(table, self.whole(schema))

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._keys.pop(table, None)
        self._known.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name; if it has it already, nothing happens."""
        self._keys.pop(old, None)
        self._keys.pop(new, None)
        self._known.rename(old, new)

    @one_by_one
    def truncate(self, table: TableName) -> None:
        """Remove all rows of a table, if there is one."""
        now = self.snapshot(table)
        if now is not None and (now.files or now.images):
            emptied = TableCommit(what=What.TRUNCATE, remove=list(now.files), images=0)
            self._known.commit(table, now, emptied)

    @one_by_one
    def end_versions(self, table: TableName, moment: pa.TimestampScalar[Any, Any]) -> None:
        """Let all versions of a history table's rows end: its source has none any more."""
        now = self.snapshot(table)
        if now is None:
            return
        change = partial(ended, moment=moment)
        works = [
            self._works.rewriting(table, [file], now.schema, change)
            for file in holding(now, self._mode)
        ]
        results = list(self._run(works))
        if results or now.images:
            self.commit_merge(table, results, None, 0, what=What.END)

    @one_by_one
    def rewrite(self, table: TableName, change: RowChange, applied: int | None = None) -> str:
        """Give all rows of a table other columns or values.

        Args:
            table: A table that already exists.
            change: Makes new rows of any of the table's rows, which have the columns that landing
                adds.
            applied: The `_seq` up to which the table is complete then; None leaves it as it is.

        Returns:
            The reason why that cannot be done; empty if it is done.

        Raises:
            StoreError: If the table cannot be read or written.
        """
        now = self._known.there(table)
        try:
            schema = self._tables.storable(change(now.schema.empty_table()).schema)
        except (ValueError, NotImplementedError) as error:
            return str(error)
        works = [
            self._works.rewriting(table, [file], schema, change) for file in now.files.values()
        ]
        results: list[MergeResult] = list(self._settings.run(merge_file, works))
        for result in results:
            if result.error:
                return result.error
        add = [file for result in results for file in result.add]
        if add or applied is not None or not schema.equals(now.schema):
            self._known.commit(table, now, reshaped(now, add, schema, applied))
        return ""

    @one_by_one
    def conform(
        self, table: TableName, schema: pa.Schema, aside: Mapping[str, str] = NOTHING
    ) -> str:
        """Give a table the source's columns by name; those that it lacks are NULL.

        Args:
            table: A table that already exists.
            schema: Schema of the columns, some of which may have another type that has room for its
                values.
            aside: New names of columns that first make room, by old name.

        Returns:
            The reason why that cannot be done; empty if it is done.
        """
        whole = self.whole(schema)
        known = {aside.get(each.name, each.name): each.type for each in self.schema(table)}
        if not aside and whole.equals(self.schema(table)):
            return ""
        for each in whole if self.has_rows(table) else ():
            before = known.get(each.name, each.type)
            if not is_same_value(before, each.type):
                return f"{each.name} was {before} and is {each.type}, the log does not tell how"
        return self.rewrite(table, partial(_conformed, schema=whole, aside=aside))

    @one_by_one
    def replace(self, table: TableName, rows: pa.Table) -> None:
        """Replace all rows and columns; the position up to which the table is complete stays."""
        now = self._known.there(table)
        schema = self._tables.storable(rows.schema)
        add = []
        if rows.num_rows:
            name = file_name(self._tables.format, self._settings.run_id)
            known = known_columns(schema, self._keys.get(table, ()))
            add = [write_file(conform_table(rows, schema), self.uri(table), name, known)]
        self._known.commit(table, now, reshaped(now, add, schema))

    def whole(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a table of which the source's are known.

        Raises:
            ConfigError: If the format cannot hold a table with such columns.
        """
        return self._tables.storable(pa.schema([*schema, *self.added]))

    # Upkeep ---------------------------------------------------------------------------------------

    def plan_compaction(self, table: TableName) -> list[MergeWork]:
        """Plan the works after which a table has few files; none, most of the time.

        The results are committed with `applied` None.
        """
        now = self.snapshot(table)
        key = self._keys.get(table)
        if self._mode is Mode.CHANGES:
            key = (SEQUENCE_COLUMN,)
        if now is None or key is None:
            return []
        groups = joined(now, self._mode, key, partial(self._known.bounded, table))
        return [
            self._works.rewriting(table, group, now.schema, key=order) for group, order in groups
        ]

    def _tidy_committed(self, table: TableName) -> None:
        try:
            with self.faults.of(table):
                self._tidy(table)
        except UnusableTableError as error:
            error.is_committed = True
            raise

    def _tidy(self, table: TableName) -> None:
        """Keep a table's files few, and its directory small."""
        self.compact(table)
        version = self._known.there(table).version
        vacuumed = self._vacuumed.setdefault(table, (version - 1) // _VACUUM_VERSIONS)
        if version // _VACUUM_VERSIONS != vacuumed:
            self._vacuumed[table] = version // _VACUUM_VERSIONS
            self.vacuum(table, self._settings.keep_hours)

    @one_by_one
    def compact(self, table: TableName) -> int:
        """Join small files where there are many; how many there were."""
        results = list(self._run(self.plan_compaction(table)))
        if results:
            self.commit_merge(table, results, None, what=What.COMPACT)
        return sum(len(result.remove) for result in results)

    @one_by_one
    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Delete files that no version of the last hours needs; how many there were."""
        self._known.forget(table)
        return self._tables.vacuum(table, keep_hours)

    # ----------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """See that it can be known which tables there are."""
        next(iter(self._tables.names()), None)

    def _run(self, works: Sequence[MergeWork]) -> Iterator[MergeResult]:
        """Have tasks do works of which each can be done.

        Raises:
            StoreError: If one could not; nothing is committed then.
        """
        for result in self._settings.run(merge_file, works):
            if result.error:
                raise StoreError(
                    f"its values do not fit its columns: {result.error}",
                    path=works[0].directory,
                    hint="this is a fault of binlane's: report it",
                )
            yield result

    def _widen(self, table: TableName, now: Snapshot, schema: pa.Schema) -> Snapshot:
        known = list(now.schema)
        if self._tables.may_lack_columns and list(schema)[: len(known)] == known:
            self._known.commit(table, now, TableCommit(what=What.RESHAPE, schema=schema))
        else:
            works = [self._works.rewriting(table, [file], schema) for file in now.files.values()]
            add = [each for result in self._run(works) for each in result.add]
            self._known.commit(table, now, reshaped(now, add, schema))
        return self._known.there(table)

    def _fits(self, schema: pa.Schema, wider: pa.Schema) -> bool:
        """True if a file can be the table's as it is."""
        missing = set(wider.names).symmetric_difference(schema.names)
        if missing and not (self._tables.may_lack_columns and missing.isdisjoint(schema.names)):
            return False
        return all(wider.field(field.name).type.equals(field.type) for field in schema)


def _conformed(rows: pa.Table, schema: pa.Schema, aside: Mapping[str, str]) -> pa.Table:
    return conform_table(
        rows.rename_columns([aside.get(name, name) for name in rows.column_names]), schema
    )
