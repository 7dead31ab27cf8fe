"""The layout `changes`: one row a change of any table, images as JSON, and one a DDL statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from binlane.statements.sql.statement_kinds import DDL_KINDS, VIEW_KINDS, StatementKind
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.image_changes import (
    CHANGE_OPS,
    ImageChanges,
    WholeChanges,
    chosen_images,
    taken,
)
from binlane.tables.columnar.log_notes import Statement, Trouble
from binlane.tables.columnar.table_schema import JSON_COLUMN, ReadOptions, table_of
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import read_range
from binlane.tables.spark.change_columns import CHANGE_COLUMNS, change_fields, range_columns
from binlane.tables.spark.source_options import Include, SourceOptions

_MICROSECONDS: Final = 1_000_000
_TOLD: Final = DDL_KINDS - VIEW_KINDS


def change_log_schema(options: SourceOptions) -> pa.Schema:
    """The columns of the layout; `statement` only where DDL is included."""
    names = [f"{options.prefix}{name}" for name in ("database", "table")]
    fields: list[pa.Field[Any]] = [pa.field(name, pa.string()) for name in names]
    fields += change_fields(options.prefix, options.change_columns)
    fields += [pa.field(name, pa.string()) for name in ("before", "after")]
    if Include.DDL in options.include:
        fields.append(pa.field("statement", pa.string()))
    return pa.schema(fields)


def read_change_log(
    piece: LogRange,
    options: SourceOptions,
    schema: pa.Schema,
    counters: ReadCounters | None = None,
) -> Iterator[pa.RecordBatch]:
    """The changes of one range.

    Args:
        piece: The range of the log.
        options: The changes that are wanted.
        schema: The schema of every batch.
        counters: Counters that are kept up to date while the range is read.

    Raises:
        CodecError: With file and position, if a row cannot be decoded.
    """
    has_statements = Include.DDL in options.include
    wanted = {
        source
        for name, (source, _) in CHANGE_COLUMNS.items()
        if options.prefix + name in schema.names
    }
    want = ReadOptions(
        selection=options.selection,
        rows_max=options.rows_per_batch,
        has_statements=has_statements,
        change_columns=range_columns(wanted | {"_op"}),
        as_json=True,
    )
    whole = WholeChanges()
    statements: list[dict[str, object]] = []
    for item in read_range(piece, want, counters=counters):
        if isinstance(item, Trouble):
            statements.append(_of_trouble(item))
        elif isinstance(item, Statement):
            statements += _of_statement(item, options)
        elif Include.ROWS in options.include:
            for batch in whole.take(item):
                rows = chosen_images(batch, options.ops)
                if rows.num_rows:
                    yield _of_images(rows, options.prefix, schema)
    if options.ops is not None:
        statements = [row for row in statements if row["op"] in options.ops]
    if statements:
        rows_by_name = [_named(row, options.prefix) for row in statements]
        yield pa.RecordBatch.from_pylist(rows_by_name, schema=schema)


def _of_images(batch: pa.RecordBatch, prefix: str, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a batch of images of one table."""
    table = table_of(batch.schema)
    changes = ImageChanges.of(batch.column("_op"))
    count = len(changes.first)
    images = batch.column(JSON_COLUMN)
    arrays: dict[str, Any] = {
        prefix + name: taken(batch.column(source), changes.first)
        for name, (source, _) in CHANGE_COLUMNS.items()
        if source in batch.schema.names
    }
    arrays |= {
        prefix + "op": CHANGE_OPS.take(changes.codes),
        prefix + "database": pa.repeat(table.database, count),
        prefix + "table": pa.repeat(table.table, count),
        "before": taken(images, changes.before),
        "after": taken(images, changes.after),
    }
    columns = [
        arrays[field.name] if field.name in arrays else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _named(row: dict[str, object], prefix: str) -> dict[str, object]:
    return {name if name == "statement" else prefix + name: value for name, value in row.items()}


def _of_trouble(trouble: Trouble) -> dict[str, object]:
    (table,) = trouble.tables if len(trouble.tables) == 1 else (None,)
    return {
        "op": trouble.kind.value,
        "database": table.database if table else None,
        "table": table.table if table else None,
        "gtid": trouble.gtid,
        "file": trouble.file,
        "pos": trouble.position,
        "statement": trouble.what,
    }


def _of_statement(statement: Statement, options: SourceOptions) -> Iterator[dict[str, object]]:
    effects = statement.effects()
    scope = options.selection.scope
    if effects.kind not in _TOLD or not statement.is_wanted:
        return
    if not (
        scope.is_unscoped
        or any(map(scope.includes, effects.writes))
        or any(map(scope.includes_database, effects.databases))
        or any(map(scope.touches_database, effects.dropped_databases))
    ):
        return
    (table,) = effects.writes if len(effects.writes) == 1 else (None,)
    yield {
        "op": "truncate" if effects.kind is StatementKind.TRUNCATE_TABLE else "ddl",
        "database": table.database if table else statement.database,
        "table": table.table if table else None,
        "gtid": statement.gtid,
        "ts": statement.timestamp * _MICROSECONDS,
        "file": statement.file,
        "pos": statement.position,
        "row": 0,
        "statement": statement.text,
    }
