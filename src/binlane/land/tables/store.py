"""The tables of one kind of a target: what a landing asks for, the same in every format.

Rows are read and written by tasks; here it is decided which files they are, and each change of a
table is one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.columnar.table_schema import SEQUENCE_COLUMN
from binlane.columnar.unify import unify_schemas
from binlane.errors import StoreError
from binlane.land.net_changes import COUNT
from binlane.land.places import file_name
from binlane.land.table_files import move_file, write_file
from binlane.land.tables import merge_work
from binlane.land.tables.bounds import LiveFile, SortedKeys
from binlane.land.tables.formats import Change, Snapshot, TableFormat
from binlane.land.tables.merge_work import How, MergeResult, MergeWork, RunSlice
from binlane.land.tables.merging import DELETED_AT, MOMENT, conformed, known_columns, merge_file
from binlane.land.tables.parquet_files import footer_bounds, read_columns, read_rows
from binlane.land.tables.planning import crowded, parts, target_bytes
from binlane.land.tables.versions import VALID_TO, VERSION_COLUMNS, ended
from binlane.land.work import DataFile, Mode
from binlane.names import TableName

Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a function over works, as an engine does."""

_OWN_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    ("_gtid", pa.string()),
    (SEQUENCE_COLUMN, pa.int64()),
]
OWN_COLUMNS: Final = pa.schema(_OWN_COLUMNS)
"""What a current table has behind the source's columns: of the change that made each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """How tables are kept.

    Attributes:
        run_id: Names this landing in the files that it writes.
        run: Runs works; here, one after the other, if nothing else is given.
        fence: Raises if the target is not ours any more; asked before each change of a table.
        catalog: Of Iceberg tables, see `iceberg.open_catalog`.
        soft_deletes: Whether rows that are deleted stay in current tables, with `_deleted_at`.
    """

    run_id: str
    run: Run = map
    fence: Callable[[], None] = lambda: None
    soft_deletes: bool = False
    catalog: Mapping[str, str] = field(default_factory=dict)


class TableStore:
    """The tables of one kind.

    Args:
        mode: The kind.
        tables: In their format.
        settings: How to keep them.
    """

    def __init__(self, mode: Mode, tables: TableFormat, settings: StoreSettings) -> None:
        self._mode = mode
        self._tables = tables
        self._settings = settings
        self._known: dict[TableName, Snapshot] = {}
        self._keys: dict[TableName, tuple[str, ...]] = {}

    # What there is --------------------------------------------------------------------------------

    @property
    def added(self) -> pa.Schema:
        """What tables have behind the source's columns."""
        if self._mode is Mode.HISTORY:
            return VERSION_COLUMNS
        if self._settings.soft_deletes:
            return OWN_COLUMNS.append(pa.field(DELETED_AT, MOMENT))
        return OWN_COLUMNS

    def names(self) -> list[TableName]:
        """The tables there are."""
        return list(self._tables.names())

    def exists(self, table: TableName) -> bool:
        """Whether there is such a table."""
        return self.snapshot(table) is not None

    def schema(self, table: TableName) -> pa.Schema:
        """Names and types of a table's columns, those that landing adds included."""
        return self._there(table).schema

    def has_rows(self, table: TableName) -> bool:
        """Whether a table, which exists, has any row."""
        return self._there(table).rows > 0

    def applied(self, table: TableName) -> int:
        """Up to which `_seq` the log is applied to a table; 0 if there is no such table."""
        found = self.snapshot(table)
        return 0 if found is None else found.applied

    def snapshot(self, table: TableName) -> Snapshot | None:
        """A table's columns and files; None if there is no such table."""
        found = self._known.get(table)
        if found is None:
            found = self._tables.load(table)
            if found is not None:
                self._known[table] = found
        return found

    def read(self, table: TableName) -> pa.Table:
        """All rows of a table."""
        found = self._there(table)
        folder = self.uri(table)
        rows = [conformed(read_rows(f"{folder}/{path}"), found.schema) for path in found.files]
        return pa.concat_tables(rows) if rows else found.schema.empty_table()

    def uri(self, table: TableName) -> str:
        """The directory of a table."""
        return self._tables.uri(table)

    # Rows -----------------------------------------------------------------------------------------

    def append(self, table: TableName, files: Sequence[DataFile], applied: int) -> None:
        """Add files that tasks wrote to a change table.

        Args:
            table: Made if there is none. Columns that it lacks are added; one that gets another
                type gets a type that holds both.
            files: In its directory.
            applied: Up to which `_seq` the table is complete then.

        Raises:
            StoreError: If the table cannot be written.
        """
        schemas = [self._tables.storable(file.schema) for file in files]
        now = self.snapshot(table)
        if now is None:
            now = self._create(table, unify_schemas(schemas))
        wider = _in_front(now.schema, unify_schemas([*schemas, now.schema]))
        if not wider.equals(now.schema):
            now = self._widen(table, now, wider)
        fitting = [file for file in files if self._fits(file.schema, wider)]
        others = [file for file in files if not self._fits(file.schema, wider)]
        works = [self._rewriting(table, [LiveFile.of(each)], wider) for each in others]
        fitting += [each for result in self._run(works) for each in result.add]
        self._commit(table, now, Change(add=fitting, applied=applied))

    def plan_merge(
        self, table: TableName, runs: Sequence[DataFile], key: Sequence[str], schema: pa.Schema
    ) -> list[MergeWork]:
        """What is to be done so that a table holds what some runs tell.

        Args:
            table: One that has the columns of the runs, or one that does not exist.
            runs: Staged, in log order, not empty; of a history table those of versions.
            key: Names of the key's columns; empty if the table has none, then rows are counted.
            schema: The source's columns, in the order of the runs.

        Returns:
            Works for `merge_file`; none of their results may be left out.

        Raises:
            StoreError: If a run cannot be read.
        """
        now = self.snapshot(table) or Snapshot(schema=self.whole(schema))
        self._keys[table] = tuple(key)
        if not key:
            return [self._counting(table, runs, now, schema)]
        live = self._bounded(table, self._holding(now), key)
        keys = [SortedKeys(read_columns(run.path, key), key) for run in runs]
        total = now.size_bytes + sum(run.size_bytes for run in runs)
        how = How.VERSIONS if self._mode is Mode.HISTORY else How.MERGE
        works = []
        for part in parts(live, keys, key, target_bytes(total)):
            slices = [
                (run, RunSlice(uri=run.path, drop=drop, add=add))
                for run, drop, add in zip(runs, part.drop, part.add, strict=True)
                if drop[0] < drop[1] or add[0] < add[1]
            ]
            work = self._rewriting(table, part.files, now.schema, key=tuple(key))
            work = replace(work, how=how, names=tuple(schema.names))
            works.append(_merging(work, slices, target_bytes(total)))
        return works

    def _counting(
        self, table: TableName, runs: Sequence[DataFile], now: Snapshot, schema: pa.Schema
    ) -> MergeWork:
        lowest = [pc.min(read_columns(run.path, [COUNT]).column(COUNT)).as_py() for run in runs]
        base = list(now.files.values()) if min(lowest) < 0 else []
        slices = [(run, RunSlice(uri=run.path, drop=(0, 0), add=(0, run.rows))) for run in runs]
        total = now.size_bytes + sum(run.size_bytes for run in runs)
        work = self._rewriting(table, base, now.schema)
        work = replace(work, how=How.COUNT, names=tuple(schema.names))
        return _merging(work, slices, target_bytes(total))

    def commit_merge(
        self, table: TableName, results: Sequence[MergeResult], applied: int | None
    ) -> int:
        """Let a table be what tasks made of it.

        Args:
            table: Made if there is none.
            results: Of all works of one plan.
            applied: Up to which `_seq` the table is complete then; None leaves it as it is.

        Returns:
            How many rows were to be removed that were not there.

        Raises:
            StoreError: If the table cannot be written.
        """
        now = self.snapshot(table)
        if now is None:
            now = self._create(table, results[0].schema)
        add = [file for result in results for file in result.add]
        remove = [path for result in results for path in result.remove]
        self._commit(table, now, Change(add=add, remove=remove, applied=applied))
        return sum(result.missing for result in results)

    def merge(
        self,
        table: TableName,
        runs: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
    ) -> int:
        """Plan a merge, have tasks do it, commit it; see there."""
        works = self.plan_merge(table, runs, key, schema)
        return self.commit_merge(table, list(self._run(works)), applied)

    # Snapshots ------------------------------------------------------------------------------------

    def seed(
        self,
        table: TableName,
        files: Sequence[DataFile],
        key: Sequence[str],
        schema: pa.Schema,
        applied: int,
    ) -> None:
        """Let a table have the rows of some files and no others; made if there is none.

        Args:
            table: Its name.
            files: URIs elsewhere, which are moved to the table, also by a process that died.
            key: Names of the key's columns.
            schema: The source's columns, which the files have, and behind them what landing adds.
            applied: Up to which `_seq` the table is complete then.

        Raises:
            StoreError: If the table cannot be written.
        """
        whole = self.whole(schema)
        now = self.snapshot(table) or self._create(table, whole)
        add = self.adopt(table, files)
        self._keys[table] = tuple(key)
        change = Change(add=add, remove=list(now.files), applied=applied, schema=whole)
        self._commit(table, now, change)

    def adopt(self, table: TableName, files: Sequence[DataFile]) -> list[DataFile]:
        """Move files that lie elsewhere to a table, which does not know them yet."""
        folder = self.uri(table)
        return [move_file(file, folder) for file in files]

    # Statements -----------------------------------------------------------------------------------

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows.

        Args:
            table: Not there; if it is, it stays.
            schema: The source's columns.
        """
        self._create(table, self.whole(schema))

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._forget(table)
        self._settings.fence()
        self._tables.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name; if it has it already, nothing happens."""
        self._forget(old)
        self._forget(new)
        self._settings.fence()
        self._tables.rename(old, new)

    def truncate(self, table: TableName) -> None:
        """Remove all rows of a table, if there is one."""
        now = self.snapshot(table)
        if now is not None and now.files:
            self._commit(table, now, Change(remove=list(now.files)))

    def end_versions(self, table: TableName, moment: pa.TimestampScalar[Any, Any]) -> None:
        """Let all versions of a history table's rows end: its source has none any more."""
        now = self.snapshot(table)
        if now is None:
            return
        change = partial(ended, moment=moment)
        works = [self._rewriting(table, [file], now.schema, change) for file in self._holding(now)]
        if works:
            self.commit_merge(table, list(self._run(works)), None)

    def rewrite(
        self, table: TableName, change: merge_work.Change, applied: int | None = None
    ) -> str:
        """Give all rows of a table other columns or values.

        Args:
            table: One that exists.
            change: What becomes of any of its rows, those that landing adds included.
            applied: Up to which `_seq` the table is complete then; None leaves it as it is.

        Returns:
            Why that cannot be; empty if it is done.

        Raises:
            StoreError: If the table cannot be read or written.
        """
        now = self._there(table)
        try:
            schema = self._tables.storable(change(now.schema.empty_table()).schema)
        except (ValueError, NotImplementedError) as error:
            return str(error)
        works = [self._rewriting(table, [file], schema, change) for file in now.files.values()]
        results = list(self._run(works))
        for result in results:
            if result.error:
                return result.error
        add = [file for result in results for file in result.add]
        if add or applied is not None or not schema.equals(now.schema):
            rewritten = Change(add=add, remove=list(now.files), schema=schema, applied=applied)
            self._commit(table, now, rewritten)
        return ""

    def conform(self, table: TableName, schema: pa.Schema) -> str:
        """Give a table the source's columns by name; those that it lacks are NULL.

        Returns:
            Why that cannot be; empty if it is done.
        """
        whole = self.whole(schema)
        if whole.equals(self.schema(table)):
            return ""
        return self.rewrite(table, partial(conformed, schema=whole))

    def replace(self, table: TableName, rows: pa.Table) -> None:
        """Replace all rows and columns by others; up to where it is complete stays."""
        now = self._there(table)
        schema = self._tables.storable(rows.schema)
        add = []
        if rows.num_rows:
            name = file_name(self._tables.format, self._settings.run_id)
            known = known_columns(schema, self._keys.get(table, ()))
            add = [write_file(conformed(rows, schema), self.uri(table), name, known)]
        self._commit(table, now, Change(add=add, remove=list(now.files), schema=schema))

    def whole(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a table of which the source's are known.

        Raises:
            ConfigError: If the format cannot hold a table with such columns.
        """
        return self._tables.storable(pa.schema([*schema, *self.added]))

    # Upkeep ---------------------------------------------------------------------------------------

    def plan_compaction(self, table: TableName) -> list[MergeWork]:
        """What is to be done so that a table has few files; nothing, most of the time.

        The results are committed with `applied` None.
        """
        now = self.snapshot(table)
        key = self._keys.get(table)
        if self._mode is Mode.CHANGES:
            key = (SEQUENCE_COLUMN,)
        if now is None or key is None:
            return []
        target = target_bytes(now.size_bytes)
        holding = self._holding(now)
        paths = {file.path for file in holding}
        over = [file for path, file in now.files.items() if path not in paths]
        works = []
        for files, order in ((holding, key), (over, (SEQUENCE_COLUMN,))):
            groups = crowded(self._bounded(table, files, order), order, target)
            works += [self._rewriting(table, group, now.schema, key=order) for group in groups]
        return works

    def compact(self, table: TableName) -> int:
        """Join small files where there are many; how many there were."""
        results = list(self._run(self.plan_compaction(table)))
        if results:
            self.commit_merge(table, results, None)
        return sum(len(result.remove) for result in results)

    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Delete files that no version of the last hours needs; how many there were."""
        self._known.pop(table, None)
        return self._tables.vacuum(table, keep_hours)

    # ----------------------------------------------------------------------------------------------

    def _run(self, works: Sequence[MergeWork]) -> Iterable[MergeResult]:
        return self._settings.run(merge_file, works)

    def _there(self, table: TableName) -> Snapshot:
        found = self.snapshot(table)
        if found is None:
            raise StoreError(f"there is no table {table.plain}", path=self.uri(table))
        return found

    def _forget(self, table: TableName) -> None:
        self._known.pop(table, None)
        self._keys.pop(table, None)

    def _create(self, table: TableName, schema: pa.Schema) -> Snapshot:
        self._forget(table)
        self._settings.fence()
        self._tables.create(table, schema)
        return self._there(table)

    def _commit(self, table: TableName, now: Snapshot, change: Change) -> None:
        self._known.pop(table, None)
        self._settings.fence()
        self._known[table] = self._tables.commit(table, now, change)

    def _widen(self, table: TableName, now: Snapshot, schema: pa.Schema) -> Snapshot:
        known = list(now.schema)
        if self._tables.may_lack_columns and list(schema)[: len(known)] == known:
            self._commit(table, now, Change(schema=schema))
        else:
            works = [self._rewriting(table, [file], schema) for file in now.files.values()]
            add = [each for result in self._run(works) for each in result.add]
            self._commit(table, now, Change(add=add, remove=list(now.files), schema=schema))
        return self._there(table)

    def _fits(self, schema: pa.Schema, wider: pa.Schema) -> bool:
        """Whether a file can be the table's as it is."""
        if not self._tables.may_lack_columns and set(schema.names) != set(wider.names):
            return False
        return all(wider.field(field.name).type.equals(field.type) for field in schema)

    def _holding(self, now: Snapshot) -> list[LiveFile]:
        """Files of rows that hold; versions in a history table that ended are left alone."""
        files = list(now.files.values())
        if self._mode is not Mode.HISTORY:
            return files
        return [file for file in files if file.nulls.get(VALID_TO, file.rows) > 0]

    def _rewriting(
        self,
        table: TableName,
        base: Sequence[LiveFile],
        schema: pa.Schema,
        change: merge_work.Change | None = None,
        key: tuple[str, ...] = (),
    ) -> MergeWork:
        size_bytes = sum(file.size_bytes for file in base)
        return MergeWork(
            how=How.REWRITE,
            directory=self.uri(table),
            format=self._tables.format,
            run_id=self._settings.run_id,
            base=tuple(file.path for file in base),
            key=key,
            schema=schema,
            change=change,
            target_bytes=max(size_bytes, 1),
            size_bytes=size_bytes,
            rows=sum(file.rows for file in base),
            soft_deletes=self._settings.soft_deletes,
        )

    def _bounded(
        self, table: TableName, files: Sequence[LiveFile], key: Sequence[str]
    ) -> list[LiveFile]:
        """Files with the bounds of their keys, from their footers where the log has none."""
        found = {
            file.path: footer_bounds(self.uri(table), file)
            for file in files
            if not all(name in file.low or file.nulls.get(name) == file.rows for name in key)
        }
        if found:
            now = self._there(table)
            self._known[table] = replace(now, files={**now.files, **found})
        return [found.get(file.path, file) for file in files]


def _merging(work: MergeWork, runs: Sequence[tuple[DataFile, RunSlice]], target: int) -> MergeWork:
    """A work on base files that merges runs into them."""
    sizes = [run.size_bytes * part.rows // max(run.rows, 1) for run, part in runs]
    return replace(
        work,
        runs=tuple(part for _, part in runs),
        target_bytes=target,
        size_bytes=work.size_bytes + sum(sizes),
        rows=work.rows + sum(part.rows for _, part in runs),
    )


def _in_front(known: pa.Schema, wider: pa.Schema) -> pa.Schema:
    """A schema with the columns that are known first."""
    new = [field for field in wider if field.name not in set(known.names)]
    return pa.schema([*(wider.field(name) for name in known.names), *new])
