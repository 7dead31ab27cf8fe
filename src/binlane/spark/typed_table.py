"""The layout `table`: the changes of one table, with its columns and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.rows import TableMapEvent
from binlane.codec.types import Flavor
from binlane.columnar.table_schema import CHANGE_COLUMNS, table_schema
from binlane.columnar.unify import cast_exactly, unify_schemas
from binlane.errors import ConfigError
from binlane.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.ranges.files import LogFile, LogRange, read_groups_of, slices
from binlane.ranges.items import Want
from binlane.ranges.read import read_range
from binlane.spark.images import WholeChanges
from binlane.spark.options import SourceOptions
from binlane.spark.shapes import rendering


def typed_schema(options: SourceOptions, files: Iterable[LogFile]) -> pa.Schema:
    """The columns of a data frame over the whole log: all that the table ever had.

    Reads the log once for its table maps.

    Raises:
        ConfigError: If the log has no such table, or its columns clash with those that are added.
        CodecError: If a file is damaged.
    """
    own = own_schema(options, files)
    schema = rendering(options).schema(own)
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise ConfigError(
                f"the table has a column {name}, which is the name of one that is added",
                key="prefix",
                hint="name those otherwise, .option('prefix', '__'), or choose the table's columns "
                "without it, .option('columns', …)",
            )
    return schema


def own_schema(options: SourceOptions, files: Iterable[LogFile]) -> pa.Schema:
    """The table's columns.

    Raises:
        ConfigError: If the log has no such table, or it has no such column.
        CodecError: If a file is damaged.
    """
    table = options.table
    assert table is not None, "the layout table comes with its name"
    found: dict[tuple[object, ...], pa.Schema] = {}
    seen: set[str] = set()
    flavor = Flavor.MARIADB
    for group in _groups(files):
        for event in group.events:
            body = event.body
            if isinstance(body, FormatDescriptionEvent):
                flavor = body.format.flavor
            if not isinstance(body, TableMapEvent):
                continue
            name = TableName(body.database, body.table)
            seen.add(name.plain)
            # The id is the only field that changes from statement to statement.
            key = (flavor, replace(body, table_id=0))
            if name == table and key not in found:
                whole = table_schema(body, flavor=flavor, wanted=options.columns).arrow
                found[key] = pa.schema(list(whole)[len(CHANGE_COLUMNS) :])
    if not found:
        raise ConfigError(
            f"the log has no rows of {table.plain}",
            key="table",
            hint=f"it has rows of: {', '.join(sorted(seen)) or 'no table'}",
        )
    own = unify_schemas(found.values())
    for column in sorted((options.columns or frozenset()) - set(own.names)):
        raise ConfigError(f"{table.plain} has no column {column}", key="columns")
    return own


def _groups(files: Iterable[LogFile]) -> Iterator[EventGroup]:
    for file in files:
        for piece in slices(file, start=4, stop=file.size_bytes, size_bytes=1 << 62):
            yield from read_groups_of(piece)


def read_typed(
    piece: LogRange, options: SourceOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The changes of one range.

    Args:
        piece: The range.
        options: With the table.
        schema: Of every batch; columns that a batch's table lacks become NULL.

    Raises:
        CodecError: With file and position, if a row cannot be decoded.
        pa.ArrowInvalid: If a value does not fit the schema.
    """
    shape = rendering(options)
    own = shape.own(schema)
    change_columns = shape.needs(schema) | ({"_op"} if options.ops is not None else set())
    want = Want(
        selection=options.selection,
        columns=frozenset(field.name for field in own),
        rows_max=options.rows_per_batch,
    )
    whole = WholeChanges()
    for item in read_range(piece, want):
        if not isinstance(item, pa.RecordBatch):
            continue
        for batch in whole.take(item) if shape.has_whole_changes else (item,):
            images = _conformed(_chosen(batch, options.ops), own, change_columns)
            if images.num_rows:
                arrays = shape.arrays(images, own)
                count = len(next(iter(arrays.values())))
                yield pa.RecordBatch.from_arrays(
                    [
                        arrays[field.name] if field.name in arrays else pa.nulls(count, field.type)
                        for field in schema
                    ],
                    schema=schema,
                )


def _chosen(batch: pa.RecordBatch, ops: frozenset[str] | None) -> pa.RecordBatch:
    """The images of some operations."""
    if ops is None:
        return batch
    return batch.filter(pc.is_in(batch.column("_op"), pa.array(sorted(ops))))


def _conformed(
    batch: pa.RecordBatch, own: list[pa.Field[Any]], change_columns: frozenset[str] | set[str]
) -> pa.RecordBatch:
    """A batch with the change columns that are asked for, then exactly the table's columns.

    Raises:
        pa.ArrowInvalid: If a value does not fit its type.
    """
    there = {field.name: index for index, field in enumerate(batch.schema)}
    kept = [name for name in CHANGE_COLUMNS.names if name in change_columns]
    arrays = [batch.column(name) for name in kept]
    for field in own:
        index = there.get(field.name)
        arrays.append(
            pa.nulls(batch.num_rows, field.type)
            if index is None
            else cast_exactly(batch.column(index), field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, names=[*kept, *(field.name for field in own)])
