"""Iceberg tables: live files and commits by pyiceberg, in any catalog that it knows.

Without a catalog of its own a target on this machine has one in a SQLite file. A commit changes
columns, files and the note up to where in the log the table is complete, all at once; the note is a
property of the table, and stands in the summary of the snapshot for people.

Files carry no field ids, so the table's name mapping says which column is which; it is renewed with
the columns. A table has a directory of its own for life, whatever its name becomes.
"""

from __future__ import annotations

import logging
import uuid
import weakref
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    RESTError,
    ValidationError,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file, pyarrow_to_schema
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.types import PrimitiveType

from binlane.errors import ConfigError, StoreError
from binlane.names import TableName
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.bounds import LiveFile
from binlane.tables.landing.tables.formats import Snapshot, TableCommit, after, told_of
from binlane.tables.landing.tables.table_directories import drop_empty_above
from binlane.tables.landing.target_files import FOLDER, name_of, resolve, segment, table_uri

_SUFFIXES: Final = {Mode.CURRENT: "", Mode.CHANGES: "_changes", Mode.HISTORY: "_history"}
_FIELD_ID: Final = b"PARQUET:field_id"
_MAPPING: Final = "schema.name-mapping.default"
_NO_RETRY: Final = {"commit.retry.num-retries": "0"}
"""Retries would let a driver that was overtaken between its look at the lease and its commit commit anew."""
_PROPERTIES: Final = {
    "format-version": "2",
    **_NO_RETRY,
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


# pyiceberg warns of each column of each file without bounds, which we mean to be without.
logging.getLogger("pyiceberg.io.pyarrow").setLevel(logging.ERROR)


def open_catalog(into: str, properties: Mapping[str, str]) -> Catalog:
    """The catalog of a target.

    Args:
        into: URI or path of the target.
        properties: Properties as pyiceberg takes them, with `name` for that of the catalog; empty
            for one in the target, which then is on this machine.

    Raises:
        ConfigError: If it cannot be reached.
    """
    given = dict(properties)
    name = given.pop("name", "binlane")
    if not given:
        filesystem, root = resolve(into)
        if not isinstance(filesystem, fs.LocalFileSystem):
            raise ConfigError(
                f"{into} is not a local directory, so no catalog can be kept in it",
                key="catalog",
                hint="name a catalog, such as --catalog uri=http://host:8181 type=rest",
            )
        folder = Path(root) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        given = {"type": "sql", "uri": f"sqlite:///{folder}/iceberg.db", "warehouse": _uri(into)}
    try:
        return load_catalog(name, **given)
    except ImportError as error:
        raise ConfigError(
            f"the catalog {name} cannot be opened: {error}",
            key="catalog",
            hint="pip install 'binlane[iceberg]', or what pyiceberg asks for",
        ) from error
    except (ValueError, OSError, RESTError) as error:
        raise ConfigError(
            f"the catalog {name} cannot be opened: {error}",
            key="catalog",
            hint="see pyiceberg's documentation for the properties of catalogs",
        ) from error


def _uri(into: str) -> str:
    return into if "://" in into else f"file://{into}"


class IcebergFormat:
    """The Iceberg tables of one kind: `<catalog>.<database>.<table>`, with `_changes`, `_history`.

    Args:
        into: URI or path of the target.
        mode: The kind of tables that are kept.
        app_id: Name of the landing in the tables' properties.
        catalog: The catalog of the tables; closed with what is made of it here.
    """

    format = FormatName.ICEBERG
    may_lack_columns = True

    def __init__(self, into: str, mode: Mode, app_id: str, catalog: Catalog) -> None:
        self._into = into
        self._mode = mode
        self._applied = f"binlane.applied.{app_id}"
        self._images = f"binlane.images.{app_id}"
        self._catalog = catalog
        weakref.finalize(self, catalog.close)
        self._open: dict[TableName, Table] = {}
        self._files: dict[TableName, dict[str, IcebergFile]] = {}
        self._planned: dict[TableName, str] = {}

    def uri(self, table: TableName) -> str:
        """The directory of a table, also of one that is not made yet."""
        if self._mode is Mode.CHANGES:  # tasks write there before it is made
            return table_uri(self._into, self._mode, table)
        found = self._table(table)
        if found is not None:
            location = found.location()
            return location if "://" in self._into else location.removeprefix("file://")
        planned = f"{table_uri(self._into, self._mode, table)}-{uuid.uuid4().hex[:8]}"
        return self._planned.setdefault(table, planned)

    def names(self) -> Iterator[TableName]:
        """The tables there are."""
        suffix = _SUFFIXES[self._mode]
        others = tuple(each for each in _SUFFIXES.values() if each)
        for namespace in self._catalog.list_namespaces():
            for identifier in self._catalog.list_tables(namespace):
                name = identifier[-1]
                if name.endswith(suffix) and (suffix or not name.endswith(others)):
                    own = name[: len(name) - len(suffix)]
                    yield TableName(name_of(namespace[-1]), name_of(own))

    def load(self, table: TableName) -> Snapshot | None:
        """A table as it is now; None if there is none."""
        self._open.pop(table, None)
        found = self._table(table)
        if found is None:
            return None
        files = {task.file.file_path: task.file for task in found.scan().plan_files()}
        prefix = f"{found.location()}/"
        self._files[table] = {path.removeprefix(prefix): file for path, file in files.items()}
        live = [_live(path, file, found.schema()) for path, file in self._files[table].items()]
        applied = int(found.properties.get(self._applied, 0))
        images = found.properties.get(self._images, None if applied else 0)
        return Snapshot(
            schema=_arrow(found.schema()),
            applied=applied,
            images=None if images is None else int(images),
            files={file.path: file for file in live},
            version=getattr(found.metadata, "last_sequence_number", 0),
        )

    def create(self, table: TableName, schema: pa.Schema) -> None:
        """Make a table without rows."""
        identifier = self._identifier(table)
        location = _uri(self.uri(table))
        self._catalog.create_namespace_if_not_exists(identifier[:1])
        made = self._catalog.create_table_if_not_exists(
            identifier, schema=schema, location=location, properties=_PROPERTIES
        )
        with made.transaction() as transaction:
            _map_names(transaction)
        self._open.pop(table, None)

    def commit(self, table: TableName, now: Snapshot, change: TableCommit) -> Snapshot:
        """Change a table, all at once."""
        found = self._table(table)
        assert found is not None, "it was loaded"
        known = self._files.get(table)
        if known is None:
            self.load(table)
            known = self._files[table]
        added: dict[str, IcebergFile] = {}
        try:
            if not _NO_RETRY.items() <= found.properties.items():  # an earlier binlane made it
                with found.transaction() as transaction:
                    transaction.set_properties(_NO_RETRY)
            with found.transaction() as transaction:
                if change.schema is not None and not change.schema.equals(now.schema):
                    _reshape(transaction, change.schema)
                notes = ((self._applied, change.applied), (self._images, change.images))
                summary = {name: str(number) for name, number in notes if number is not None}
                transaction.set_properties(summary)
                if change.add or change.remove:
                    told = {f"binlane.{name}": value for name, value in told_of(change).items()}
                    with transaction.update_snapshot({**summary, **told}).overwrite() as update:
                        for path in change.remove:
                            update.delete_data_file(known[path])
                        for file in change.add:
                            metadata, uri = transaction.table_metadata, f"{found.location()}/"
                            made = parquet_file_to_data_file(found.io, metadata, uri + file.path)
                            made.spec_id = metadata.default_spec_id
                            added[file.path] = made
                            update.append_data_file(made)
        except (CommitFailedException, OSError) as error:
            self._open.pop(table, None)
            raise StoreError(
                f"{table.plain} cannot be written: {error}",
                path=found.location(),
                hint="check who may write there, its room, and that nobody else does",
            ) from error
        for path in change.remove:
            del known[path]
        known.update(added)
        return after(now, change, {file.path: LiveFile.of(file) for file in change.add})

    def drop(self, table: TableName) -> None:
        """Remove a table with all its files, if there is one."""
        self._planned.pop(table, None)
        try:
            found = self._table(table)
        except (
            OSError,
            ValueError,
            ValidationError,
        ):  # nothing tells where its files are, if there are any
            self._catalog.drop_table(self._identifier(table))
            return
        if found is None:
            return
        self._open.pop(table)
        self._catalog.drop_table(self._identifier(table))
        filesystem, path = resolve(found.location())
        filesystem.delete_dir(path)
        drop_empty_above(filesystem, path)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a table another name, in the place of one that has it."""
        if self._table(old) is None:
            return
        self.drop(new)
        identifier = self._identifier(new)
        self._catalog.create_namespace_if_not_exists(identifier[:1])
        self._catalog.rename_table(self._identifier(old), identifier)
        self._open.pop(old)
        self._files.pop(old, None)

    def vacuum(self, table: TableName, keep_hours: float) -> int:
        """Forget snapshots, and delete files that no other one needs or that none ever named."""
        found = self._table(table)
        assert found is not None, "it is there"
        before = datetime.now(UTC) - timedelta(hours=keep_hours)
        found.maintenance.expire_snapshots().older_than(before).commit()
        found.refresh()
        needed = {found.metadata_location, *(e.metadata_file for e in found.metadata.metadata_log)}
        for snapshot in found.metadata.snapshots:
            needed.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(found.io):
                needed.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(found.io, discard_deleted=True)
                needed.update(entry.data_file.file_path for entry in entries)
        filesystem, root = resolve(found.location())
        kept = {resolve(path)[1] for path in needed}
        gone = 0
        for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True)):
            is_old = info.mtime is not None and info.mtime.timestamp() <= before.timestamp()
            if info.type is fs.FileType.File and info.path not in kept and is_old:
                filesystem.delete_file(info.path)
                gone += 1
        return gone

    def storable(self, schema: pa.Schema) -> pa.Schema:
        """The schema that a table has that was made with another one: its least integer is int."""
        return pa.schema([field.with_type(_stored(field.type)) for field in schema])

    def _table(self, table: TableName) -> Table | None:
        found = self._open.get(table)
        if found is None:
            try:
                found = self._open[table] = self._catalog.load_table(self._identifier(table))
            except NoSuchTableError:
                return None
        return found

    def _identifier(self, table: TableName) -> tuple[str, str]:
        """A dot would divide names."""
        database, name = (
            segment(each).replace(".", "@002e") for each in (table.database, table.table)
        )
        suffix = _SUFFIXES[self._mode]
        for taken in _SUFFIXES.values():
            if taken and not suffix and name.endswith(taken):
                raise ConfigError(
                    f"{table.plain} has the name of another table's {taken[1:]} in the catalog",
                    key="tables",
                    hint="leave it out, or use --format delta",
                )
        return database, name + suffix


def _stored(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(data_type) and data_type.bit_width < 32:
        return pa.int32()
    return pa.string() if pa.types.is_null(data_type) else data_type


def _plain(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(data_type):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(data_type) else data_type


def _arrow(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema.as_arrow()])


def _map_names(transaction: Transaction) -> None:
    mapping = create_mapping_from_schema(transaction.table_metadata.schema())
    transaction.set_properties({_MAPPING: mapping.model_dump_json()})


def _reshape(transaction: Transaction, schema: pa.Schema) -> None:
    """Give a table other columns; those with a known name stay the same ones."""
    known = {field.name: field.type for field in _arrow(transaction.table_metadata.schema())}
    types = {field.name: field.field_type for field in _iceberg(schema).fields}
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for name in known:
            if name not in types:
                update.delete_column((name,))
        before: tuple[str, ...] | None = None
        for field in schema:
            if field.name not in known:
                update.add_column((field.name,), types[field.name])
            elif not known[field.name].equals(field.type):
                update.update_column((field.name,), types[field.name])
            if list(known) != schema.names:
                if before is None:
                    update.move_first((field.name,))
                else:
                    update.move_after((field.name,), before)
            before = (field.name,)
    _map_names(transaction)


def _iceberg(schema: pa.Schema) -> Schema:
    fields = [
        field.with_metadata({_FIELD_ID: str(number)}) for number, field in enumerate(schema, 1)
    ]
    return pyarrow_to_schema(pa.schema(fields))


def _live(path: str, file: IcebergFile, schema: Schema) -> LiveFile:
    fields = {field.field_id: field for field in schema.fields}
    types = {field.name: field.type for field in _arrow(schema)}

    def values(found: Mapping[int, bytes] | None) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for number, data in (found or {}).items():
            if number in fields:
                name, kind = fields[number].name, fields[number].field_type
                assert isinstance(kind, PrimitiveType), "no columns are nested"
                named[name] = _value(from_bytes(kind, data), types[name])
        return named

    return LiveFile(
        path=path,
        rows=file.record_count,
        size_bytes=file.file_size_in_bytes,
        low=values(file.lower_bounds),
        high=values(file.upper_bounds),
        nulls={
            fields[number].name: count
            for number, count in (file.null_value_counts or {}).items()
            if number in fields
        },
    )


def _value(value: Any, data_type: pa.DataType) -> Any:
    if pa.types.is_date(data_type):
        return pa.scalar(value, pa.int32()).cast(data_type).as_py()
    if pa.types.is_timestamp(data_type):
        return pa.scalar(value, pa.int64()).cast(data_type).as_py()
    return value
