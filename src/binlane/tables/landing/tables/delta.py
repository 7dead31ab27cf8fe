"""Delta tables: live files and commits by delta-rs.

Each commit says in Delta's own transaction record up to where in the log its table is complete. A
commit of somebody else in between is an error, never passed over.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    TableFeatures,
    Transaction,
)
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import fs

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.landing.landing_settings import KEEP_HOURS_DEFAULT
from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.delta_log import (
    FEED_PROPERTY,
    LOG,
    check_place,
    enable_feed,
    has_feed,
    write_entry,
    write_first,
)
from binlane.tables.landing.tables.formats import Snapshot, TableCommit, What, after, note_of
from binlane.tables.landing.tables.table_directories import Directories
from binlane.version import __version__

# delta-rs keeps the order of columns where only that would change; one column more makes it write.
_REORDERING: Final = "_reordering"
_OPEN_MAX: Final = 512
_CHECKPOINT_COMMITS: Final = 20
_NTZ: Final = "timestampNtz"
_VECTORS: Final = "deletionVectors"
_PROTOCOL: Final = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [_NTZ],
        "writerFeatures": ["appendOnly", "invariants", _NTZ],
    }
}
"""Protocol of a table of versions 1 and 2 that has got its first time without a zone."""


class DeltaFormat:
    """The Delta tables of one kind.

    Args:
        into: URI or path of the target.
        mode: The kind of tables that are kept.
        app_id: Name of the landing in the tables' transactions.
        keep_hours: How long files and commits of earlier versions are kept.
        feed: Whether commits shall tell which rows they change; None leaves tables as they are, and
            makes new ones without.
    """

    format = FormatName.DELTA
    may_lack_columns = True

    def __init__(
        self,
        into: str,
        mode: Mode,
        app_id: str,
        keep_hours: float = KEEP_HOURS_DEFAULT,
        *,
        feed: bool | None = None,
    ) -> None:
        self._directories = Directories(into, mode, LOG)
        self._feed = feed
        self._app_id = app_id
        self._images, self._images_at = f"{app_id}-images", f"{app_id}-images-at"
        kept = f"interval {max(1, round(keep_hours))} hours"
        self._configuration = {
            "delta.checkpointInterval": str(_CHECKPOINT_COMMITS),
            "delta.logRetentionDuration": kept,
            "delta.deletedFileRetentionDuration": kept,
        }
        if feed:
            check_place(into)
            self._configuration[FEED_PROPERTY] = "true"
        self._open: OrderedDict[str, DeltaTable] = OrderedDict()

    def uri(self, table: TableName) -> str:
        """The directory of a table."""
        return self._directories.uri(table)

    def names(self) -> Iterator[TableName]:
        """The tables there are."""
        return self._directories.names()

    def load(self, table: TableName) -> Snapshot | None:
        """A table as it is now; None if there is none."""
        if not self._directories.exists(table):
            return None
        found = self._table(table)
        found.update_incremental()  # an engine that merges by itself commits, too
        _refuse_vectors(table, found)
        if self._feed not in {None, has_feed(found)}:
            enable_feed(found, is_on=bool(self._feed))
        applied = found.transaction_version(self._app_id) or 0
        # An engine that merges by itself writes its own transaction alone.
        is_counted = (found.transaction_version(self._images_at) or 0) == applied
        return Snapshot(
            schema=_schema(found),
            applied=applied,
            images=(found.transaction_version(self._images) or 0) if is_counted else None,
            files={file.path: file for file in _files(found)},
            version=found.version(),
            has_feed=has_feed(found),
        )

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows."""
        uri = self._directories.uri(table)
        self._forget(uri)
        try:
            DeltaTable.create(uri, schema=schema, mode="ignore", configuration=self._configuration)
        except (DeltaError, OSError) as error:
            raise _unwritable(table, uri, error) from error

    def commit(self, table: TableName, now: Snapshot, change: TableCommit) -> Snapshot:
        """Change a table, all at once."""
        uri = self._directories.uri(table)
        try:
            self._commit(self._table(table), now, change)
        except (DeltaError, OSError) as error:
            self._forget(uri)
            raise _unwritable(table, uri, error) from error
        except BaseException:
            self._forget(uri)
            raise
        return after(now, change, {file.path: LiveFile.of(file) for file in change.add})

    def _commit(self, found: DeltaTable, now: Snapshot, change: TableCommit) -> None:
        schema = now.schema if change.schema is None else change.schema
        mode = "append"
        if change.schema is not None:
            _have_features(found, change.schema)
        if change.schema is not None and not change.schema.equals(_schema(found)):
            old, new = list(now.schema), list(change.schema)
            if new[: len(old)] == old and not change.remove:
                _add_columns(found, new[len(old) :])
            else:
                assert set(change.remove) == set(now.files), "all files get the new columns"
                mode = "overwrite"
                if set(old) == set(new):
                    _add_columns(found, [pa.field(_REORDERING, pa.int8())])
        told = self._transactions(now, change)
        if not told and not change.add and not change.remove and mode == "append":
            return
        moment = int(time.time() * 1000)
        if change.feed:
            assert mode == "append", "where columns change, all rows go and come"
            write_entry(found, self._entry(found, now, change, moment))
            if found.version() % _CHECKPOINT_COMMITS == 0:
                found.create_checkpoint()
            return
        is_new = change.what is not What.COMPACT
        actions: list[AddAction | RemoveAction] = [
            _add(each, moment, is_new) for each in change.add
        ]
        if mode == "append":
            actions += [
                RemoveAction(path, is_new, moment, now.files[path].size_bytes, {})
                for path in change.remove
            ]
        found.create_write_transaction(
            actions,
            mode,
            schema,
            commit_properties=CommitProperties(
                custom_metadata=_told(now, change),
                app_transactions=[Transaction(*each) for each in told],
                max_commit_retries=0,
            ),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=True),
        )
        found.update_incremental()

    def _transactions(self, now: Snapshot, change: TableCommit) -> list[tuple[str, int]]:
        """The transactions by which a commit says how much of the log is in the table; none if no news."""
        if change.applied is None and change.images is None:
            return []
        applied = now.applied if change.applied is None else change.applied
        images = now.images if change.images is None else change.images
        found = [(self._app_id, applied)]
        if images is not None:
            found += [(self._images, images), (self._images_at, applied)]
        return found

    def _entry(
        self, found: DeltaTable, now: Snapshot, change: TableCommit, moment: int
    ) -> list[dict[str, Any]]:
        """A commit with the rows that it changes, as Delta's log has it."""
        told = _told(now, change)
        told["operationParameters"] |= {"mode": "Append", "partitionBy": "[]"}
        info = {
            "timestamp": moment,
            "operation": "WRITE",
            "readVersion": found.version(),
            "isBlindAppend": False,
            "engineInfo": f"binlane:{__version__}",
            **told,
        }
        entry: list[dict[str, Any]] = [{"commitInfo": info}]
        for name, version in self._transactions(now, change):
            entry.append({"txn": {"appId": name, "version": version, "lastUpdated": moment}})
        for path in change.remove:
            remove = {
                "path": path,
                "deletionTimestamp": moment,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": now.files[path].size_bytes,
            }
            entry.append({"remove": remove})
        for file in change.add:
            add = {
                "path": file.path,
                "partitionValues": {},
                "size": file.size_bytes,
                "modificationTime": moment,
                "dataChange": True,
                "stats": _stats(file),
            }
            entry.append({"add": add})
        for file in change.feed:
            cdc = {
                "path": file.path,
                "partitionValues": {},
                "size": file.size_bytes,
                "dataChange": False,
            }
            entry.append({"cdc": cdc})
        return entry

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._forget(self._directories.uri(table))
        self._directories.drop(table)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name, in the place of one that has it."""
        for table in (old, new):
            self._forget(self._directories.uri(table))
        self._directories.rename(old, new)

    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Delete files that no version of the last hours needs, and those that none ever named."""
        uri = self._directories.uri(table)
        found = self._table(table)
        try:
            # Whole hours only; a moment is not told from none.
            gone = found.vacuum(
                retention_hours=int(keep_hours),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )
            found.cleanup_metadata()
            found.update_incremental()
        except (DeltaError, OSError) as error:
            self._forget(uri)
            raise _unwritable(table, uri, error) from error
        return len(gone)

    def storable(self, schema: pa.Schema) -> pa.Schema:
        """The schema that a table has that was made with another one: Delta has no NULL type."""
        return pa.schema(
            [
                field.with_type(pa.string()) if pa.types.is_null(field.type) else field
                for field in schema.remove_metadata()
            ]
        )

    def _table(self, table: TableName) -> DeltaTable:
        uri = self._directories.uri(table)
        found = self._open.get(uri)
        if found is None:
            found = self._open[uri] = self._opened(table, uri)
            if len(self._open) > _OPEN_MAX:
                self._open.popitem(last=False)
        self._open.move_to_end(uri)
        return found

    def _opened(self, table: TableName, uri: str) -> DeltaTable:
        try:
            return DeltaTable(uri)
        except DeltaError as error:
            if _NTZ not in str(error):
                raise
        # An earlier binlane wrote columns that the table's protocol did not allow.
        directory = f"{self._directories.path(table)}/{LOG}"
        files = self._directories.filesystem.get_file_info(fs.FileSelector(directory))
        last = max(int(file.base_name[:-5]) for file in files if _is_commit(file.base_name))
        write_first(uri, last + 1, [_PROTOCOL])
        return DeltaTable(uri)

    def _forget(self, uri: str) -> None:
        self._open.pop(uri, None)


def _unwritable(table: TableName, uri: str, error: Exception) -> StoreError:
    return StoreError(
        f"{table.plain} cannot be written: {error}",
        path=uri,
        hint="check who may write there, its room, and that nobody else does",
    )


def _refuse_vectors(table: TableName, found: DeltaTable) -> None:
    """See that the files of a table have its rows and no others.

    Raises:
        StoreError: If somebody marked rows of them as deleted.
    """
    if _VECTORS not in (found.protocol().reader_features or ()):
        return
    if pa.table(found.deletion_vectors()).num_rows:
        raise StoreError(
            f"{table.plain} has deletion vectors, which somebody else wrote; binlane keeps tables "
            "without",
            path=found.table_uri,
            hint="in Spark: ALTER TABLE … SET TBLPROPERTIES ('delta.enableDeletionVectors' = false), "
            "then REORG TABLE … APPLY (PURGE)",
        )


def _schema(table: DeltaTable) -> pa.Schema:
    schema: Any = table.schema().to_arrow()
    return pa.schema([field for field in pa.schema(schema) if field.name != _REORDERING])


def _add_columns(table: DeltaTable, fields: list[pa.Field[Any]]) -> None:
    schema: Any = pa.schema(fields)
    new: list[Field] = Schema.from_arrow(schema).fields
    known = {field.name for field in table.schema().fields}
    new = [field for field in new if field.name not in known]
    if new:
        table.alter.add_columns(new)


def _have_features(found: DeltaTable, schema: pa.Schema) -> None:
    """Have a table's protocol allow the types of its columns, to which no commit of files sees."""
    has_ntz = any(pa.types.is_timestamp(one.type) and one.type.tz is None for one in schema)
    if has_ntz and _NTZ not in (found.protocol().writer_features or ()):
        needed = [TableFeatures.TimestampWithoutTimezone]
        if has_feed(found):  # which a table of numbered versions has to name
            needed.append(TableFeatures.ChangeDataFeed)
        found.alter.add_feature(needed, allow_protocol_versions_increase=True)


def _is_commit(name: str) -> bool:
    return name.endswith(".json") and name[:-5].isdigit()


def _add(file: DataFile, moment: int, is_new: bool) -> AddAction:  # noqa: FBT001 - as Delta has it
    return AddAction(file.path, file.size_bytes, {}, moment, is_new, _stats(file))


def _stats(file: DataFile) -> str:
    # Not escaped: delta-rs takes two escaped halves of one character for another character.
    return json.dumps(file.stats, ensure_ascii=False)


def _told(now: Snapshot, change: TableCommit) -> dict[str, Any]:
    """The figures of a commit for DESCRIBE HISTORY, under the names of its columns."""
    metrics = {
        "numAddedFiles": len(change.add),
        "numRemovedFiles": len(change.remove),
        "numOutputRows": sum(file.rows for file in change.add),
    }
    if change.rows is not None:
        metrics |= {
            "numTargetRowsInserted": change.rows.inserted,
            "numTargetRowsUpdated": change.rows.updated,
            "numTargetRowsDeleted": change.rows.deleted,
        }
    elif change.what is What.TRUNCATE:
        metrics["numDeletedRows"] = sum(now.files[path].rows for path in change.remove)
    return {
        "operationParameters": {"binlane": change.what.value},
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "userMetadata": note_of(change.source),
    }


def _files(table: DeltaTable) -> Iterator[LiveFile]:
    actions: Any = table.get_add_actions(flatten=True)
    for row in pa.table(actions).to_pylist():
        known = {name: value for name, value in row.items() if value is not None}
        yield LiveFile(
            path=row["path"],
            rows=row["num_records"] or 0,
            size_bytes=row["size_bytes"],
            low=_named("min.", known),
            high=_named("max.", known),
            nulls=_named("null_count.", known),
        )


def _named(prefix: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)
    }
