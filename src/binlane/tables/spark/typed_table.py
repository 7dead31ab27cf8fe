"""The layout `table`: the changes of one table, with its columns and types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from binlane.errors import ConfigError
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.image_changes import WholeChanges, chosen_images
from binlane.tables.columnar.table_schema import ReadOptions, absent_columns, table_schema
from binlane.tables.columnar.unify import cast_exactly, unify_schemas
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.planner import Planner
from binlane.tables.ranges.read import read_range
from binlane.tables.spark.change_columns import range_columns
from binlane.tables.spark.shapes import rendering
from binlane.tables.spark.source_options import SourceOptions


def typed_schema(options: SourceOptions, planner: Planner) -> pa.Schema:
    """Return the columns of a data frame over the whole log: all that the table ever had.

    Raises:
        ConfigError: If the log has no such table, or its columns clash with those that are added.
        CodecError: If a file is damaged.
    """
    schema = rendering(options).schema(own_schema(options, planner))
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise ConfigError(
                f"the table has a column {name}, which is the name of one that is added",
                key="prefix",
                hint='name those otherwise, .option("prefix", "log_"), or choose the table\'s '
                'columns without it, .option("columns", "id, …")',
            )
    return schema


def own_schema(options: SourceOptions, planner: Planner) -> pa.Schema:
    """Return the table's columns.

    Raises:
        ConfigError: If the log has no such table, or the table no such column.
        CodecError: If a file is damaged.
    """
    table = options.table
    assert table is not None, "the layout table comes with its name"
    found: list[pa.Schema] = []
    for table_map, columns, flavor in planner.columns_of(table):
        made = table_schema(
            table_map,
            flavor=flavor,
            columns=columns,
            options=ReadOptions(columns=options.columns, change_columns=(), may_clash=True),
        )
        found.append(made.arrow)
    if not found:
        maps = (table_map for table_map, _ in planner.table_maps())
        names = {each.name.plain for each in maps}
        raise ConfigError(
            f"the log has no rows of {table.plain}",
            key="table",
            hint=f"it has rows of: {', '.join(sorted(names)) or 'no table'}",
        )
    own = unify_schemas(found)
    for column in sorted((options.columns or frozenset()) - set(own.names)):
        raise ConfigError(
            f"{table.plain} has no column {column}",
            key="columns",
            hint=f"it has: {', '.join(own.names)}" if own.names else "",
        )
    return own


def read_typed(
    piece: LogRange,
    options: SourceOptions,
    schema: pa.Schema,
    counters: ReadCounters | None = None,
) -> Iterator[pa.RecordBatch]:
    """The changes of one range.

    Args:
        piece: The range of the log.
        options: The options of the read, with the table.
        schema: The schema of every batch; columns that a batch's table lacks become NULL.
        counters: Counters that get the bytes that were read, and the columns that images lack.

    Raises:
        CodecError: With file and position, if a row cannot be decoded.
        pa.ArrowInvalid: If a value does not fit the schema.
    """
    shape = rendering(options)
    own = shape.own(schema)
    needs = shape.needs(schema) | ({"_op"} if options.ops is not None else frozenset())
    change_columns = range_columns(needs)
    want = ReadOptions(
        selection=options.selection,
        columns=frozenset(field.name for field in own),
        change_columns=change_columns,
        rows_max=options.rows_per_batch,
        may_clash=True,
    )
    whole = WholeChanges()
    for item in read_range(piece, want, counters=counters):
        if not isinstance(item, pa.RecordBatch):
            continue
        if counters is not None:
            absent = absent_columns(item.schema)
            names = {field.name for field in own}
            counters.absent |= (absent.before | absent.after) & names
        for batch in whole.take(item) if shape.has_whole_changes else (item,):
            images = _conformed(chosen_images(batch, options.ops), own, change_columns)
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


def _conformed(
    batch: pa.RecordBatch, own: list[pa.Field[Any]], change_columns: tuple[str, ...]
) -> pa.RecordBatch:
    """Return a batch with the requested change columns, then exactly the table's columns.

    Raises:
        pa.ArrowInvalid: If a value does not fit its type.
    """
    count = len(change_columns)
    there = {field.name: index for index, field in enumerate(batch.schema) if index >= count}
    arrays = batch.columns[:count]
    for field in own:
        index = there.get(field.name)
        arrays.append(
            pa.nulls(batch.num_rows, field.type)
            if index is None
            else cast_exactly(batch.column(index), field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, [*change_columns, *(field.name for field in own)])
