"""Forms of the rows of one table's changes: columns of data frames from batches of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.tables.columnar.image_changes import (
    CHANGE_OPS,
    OP,
    ImageChanges,
    op_codes,
    struct_of,
    taken,
)
from binlane.tables.spark.change_columns import CHANGE_COLUMNS, change_fields
from binlane.tables.spark.source_options import RowForm, SourceOptions

Arrays = dict[str, "pa.Array[Any]"]

_STRING: Final = pa.string()
_LONG: Final = pa.int64()
_MOMENT: Final = pa.timestamp("us", tz="UTC")
_CDF_OPS: Final = pa.array(["insert", "delete", "update_preimage", "update_postimage"])
_DEBEZIUM_OPS: Final = pa.array(["c", "d", "u"])
_DELETED: Final = pa.array(["false", "true", "false"])
_FILE_SHIFT: Final = 40
_FEED_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("_change_type", _STRING),
    pa.field("_commit_version", _LONG),
    pa.field("_commit_timestamp", _MOMENT),
]
_FEED: Final = pa.schema(_FEED_FIELDS)


class Rendering(Protocol):
    """A form that images get as rows."""

    has_whole_changes: bool
    """True if both images of an update must stand in one batch."""

    def schema(self, own: pa.Schema) -> pa.Schema:
        """The columns of the data frame for a table with these columns."""

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """The table's columns that a data frame's schema asks for."""

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """Names, as ranges give them, of the change columns that the schema asks for."""

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """The columns, by name.

        Args:
            batch: Images; their change columns by the names that ranges give them, and `own`.
            own: The table's columns, behind the change columns.
        """


def rendering(options: SourceOptions) -> Rendering:
    """The one that the options ask for."""
    assert options.table is not None, "shapes are of one table"
    match options.shape:
        case RowForm.IMAGES:
            return ImageRows(options)
        case RowForm.CHANGES:
            return WithStructs(options)
        case RowForm.CDF:
            return ChangeDataFeed()
        case RowForm.DEBEZIUM:
            return Debezium(options.table)
        case RowForm.DEBEZIUM_FLAT:
            return DebeziumFlat(options.table)


class ImageRows:
    """One row an image: `_op` and its like, then the table's columns."""

    has_whole_changes = False

    def __init__(self, options: SourceOptions) -> None:
        self._added = change_fields(options.prefix, options.change_columns)
        self._sources = _sources(options.prefix)

    def schema(self, own: pa.Schema) -> pa.Schema:
        """The change columns, then the table's."""
        return pa.schema([*self._added, *own])

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """Return the table's columns: all that are no change columns."""
        added = {field.name for field in self._added}
        return [field for field in schema if field.name not in added]

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """The change columns that the schema needs."""
        return _needed(self._sources, schema)

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """The columns as they are, under their names here."""
        return {**_renamed(self._sources, batch), **_own_arrays(batch, own)}


class WithStructs:
    """One row a change: `_op` and its like, then the structs `before` and `after`."""

    has_whole_changes = True

    def __init__(self, options: SourceOptions) -> None:
        self._added = change_fields(options.prefix, options.change_columns)
        self._sources = _sources(options.prefix)
        self._op = f"{options.prefix}op"

    def schema(self, own: pa.Schema) -> pa.Schema:
        """The change columns, then both images."""
        row = pa.struct(list(own))
        return pa.schema([*self._added, pa.field("before", row), pa.field("after", row)])

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """The fields of the structs."""
        return _struct_fields(schema)

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """The change columns that the schema needs."""
        return _needed(self._sources, schema) | {"_op"}

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """Two images make a row."""
        changes = ImageChanges.of(batch.column(OP))
        arrays = {
            name: taken(values, changes.first)
            for name, values in _renamed(self._sources, batch).items()
            if name != self._op
        }
        arrays[self._op] = CHANGE_OPS.take(changes.codes)
        return {**arrays, **_structs(batch, own, changes)}


class ChangeDataFeed:
    """One row an image, as Delta's change data feed has it."""

    has_whole_changes = False
    _added = _FEED

    def schema(self, own: pa.Schema) -> pa.Schema:
        """Return the table's columns, then Debezium's columns of a change."""
        return pa.schema([*own, *self._added])

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """Return the table's columns: all that are not the feed's."""
        return [field for field in schema if field.name not in self._added.names]

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """Return the columns from which those of the feed are made."""
        del schema
        return frozenset({"_op", "_ts", "_file", "_pos"})

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """The version is the number of the file and the position in it."""
        return {
            **_own_arrays(batch, own),
            "_change_type": _CDF_OPS.take(op_codes(batch.column(OP))),
            "_commit_version": _versions(batch),
            "_commit_timestamp": _change_column(batch, "_ts"),
        }


_DEBEZIUM_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("__op", _STRING),
    pa.field("__db", _STRING),
    pa.field("__table", _STRING),
    pa.field("__source_ts_ms", _LONG),
    pa.field("__source_gtid", _STRING),
    pa.field("__source_file", _STRING),
    pa.field("__source_pos", _LONG),
    pa.field("__source_row", pa.int32()),
    pa.field("__source_server_id", _LONG),
]
_DEBEZIUM: Final = pa.schema(_DEBEZIUM_FIELDS)
_DEBEZIUM_SOURCES: Final[Mapping[str, str]] = {
    "__source_gtid": "_gtid",
    "__source_file": "_file",
    "__source_pos": "_pos",
    "__source_row": "_row",
    "__source_server_id": "_server_id",
    "__source_ts_ms": "_ts",
}


class Debezium:
    """One row a change: the fields of Debezium's envelope."""

    has_whole_changes = True

    def __init__(self, table: TableName) -> None:
        self._table = table

    def schema(self, own: pa.Schema) -> pa.Schema:
        """Return both images, then Debezium's columns of a change."""
        row = pa.struct(list(own))
        return pa.schema([pa.field("before", row), pa.field("after", row), *_DEBEZIUM])

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """The fields of the structs."""
        return _struct_fields(schema)

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """The change columns that the schema needs."""
        return _needed(_DEBEZIUM_SOURCES, schema) | {"_op"}

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """Two images make a row."""
        changes = ImageChanges.of(batch.column(OP))
        return {**_structs(batch, own, changes), **_envelope(self._table, batch, changes)}


class DebeziumFlat:
    """One row a change: the row itself, as Debezium's ExtractNewRecordState leaves it."""

    has_whole_changes = True
    _added = pa.schema([*_DEBEZIUM, pa.field("__deleted", _STRING)])

    def __init__(self, table: TableName) -> None:
        self._table = table

    def schema(self, own: pa.Schema) -> pa.Schema:
        """Return the table's columns, then Debezium's columns of a change."""
        return pa.schema([*own, *self._added])

    def own(self, schema: pa.Schema) -> list[pa.Field[Any]]:
        """Return the table's columns: all that are not Debezium's."""
        return [field for field in schema if field.name not in self._added.names]

    def needs(self, schema: pa.Schema) -> frozenset[str]:
        """The change columns that the schema needs."""
        return _needed(_DEBEZIUM_SOURCES, schema) | {"_op"}

    def arrays(self, batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
        """The row behind the change, of a delete the one before it."""
        changes = ImageChanges.of(batch.column(OP))
        arrays = _envelope(self._table, batch, changes)
        arrays["__deleted"] = _DELETED.take(changes.codes)
        row = changes.row
        own_arrays = _own_arrays(batch, own)
        return {**{name: taken(values, row) for name, values in own_arrays.items()}, **arrays}


def _sources(prefix: str) -> dict[str, str]:
    return {prefix + name: source for name, (source, _) in CHANGE_COLUMNS.items()}


def _needed(sources: Mapping[str, str], schema: pa.Schema) -> frozenset[str]:
    return frozenset(source for name, source in sources.items() if name in schema.names)


def _renamed(sources: Mapping[str, str], batch: pa.RecordBatch) -> Arrays:
    there = set(batch.schema.names)
    return {
        name: _change_column(batch, source) for name, source in sources.items() if source in there
    }


def _change_column(batch: pa.RecordBatch, source: str) -> pa.Array[Any]:
    """Change columns stand first; a table may have a column of that name, too."""
    return batch.column(batch.schema.names.index(source))


def _own_arrays(batch: pa.RecordBatch, own: Sequence[pa.Field[Any]]) -> Arrays:
    first = batch.num_columns - len(own)
    return {field.name: batch.column(first + index) for index, field in enumerate(own)}


def _struct_fields(schema: pa.Schema) -> list[pa.Field[Any]]:
    for name in ("after", "before"):
        if name in schema.names:
            return list(schema.field(name).type)
    return []


def _structs(batch: pa.RecordBatch, own: Sequence[pa.Field[Any]], changes: ImageChanges) -> Arrays:
    columns = list(_own_arrays(batch, own).values())
    return {
        "before": struct_of(columns, list(own), changes.before),
        "after": struct_of(columns, list(own), changes.after),
    }


def _envelope(table: TableName, batch: pa.RecordBatch, changes: ImageChanges) -> Arrays:
    arrays = {
        name: taken(values, changes.first)
        for name, values in _renamed(_DEBEZIUM_SOURCES, batch).items()
    }
    if "__source_ts_ms" in arrays:
        milliseconds = pc.cast(arrays["__source_ts_ms"], pa.timestamp("ms", tz="UTC"), safe=False)
        arrays["__source_ts_ms"] = pc.cast(milliseconds, _LONG)
    count = len(changes.first)
    arrays["__op"] = _DEBEZIUM_OPS.take(changes.codes)
    arrays["__db"] = pa.repeat(pa.scalar(table.database, _STRING), count)
    arrays["__table"] = pa.repeat(pa.scalar(table.table, _STRING), count)
    return arrays


def _versions(batch: pa.RecordBatch) -> pa.Array[Any]:
    """A number for each event that grows with the log."""
    from binlane.positions import file_number  # noqa: PLC0415 - of this shape only

    positions = _change_column(batch, "_pos").to_numpy()
    number = file_number(_change_column(batch, "_file")[0].as_py())
    versions: pa.Array[Any] = pa.array((np.int64(number) << _FILE_SHIFT) | positions)
    return versions
