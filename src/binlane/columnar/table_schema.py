"""What a batch of one table's row images looks like: its Arrow schema."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from binlane.codec.columns import Column
from binlane.codec.rows import TableMapEvent
from binlane.codec.table_metadata import primary_key, table_columns
from binlane.codec.types import Flavor
from binlane.columnar.arrow_types import arrow_type
from binlane.errors import ConfigError
from binlane.names import TableName

_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    ("_op", pa.string()),
    ("_gtid", pa.string()),
    ("_timestamp", pa.timestamp("us", tz="UTC")),
    ("_file", pa.string()),
    ("_position", pa.int64()),
    ("_row", pa.int32()),
]
CHANGE_COLUMNS: Final = pa.schema(_COLUMNS)
"""What every batch begins with: one row image's operation (`insert`, `update_before`,
`update_after`, `delete`), GTID, time of its event, file, position of its event, and number of the
change within the event, from 0; both images of an update have the same number."""

SEQUENCE_COLUMN: Final = "_seq"
"""What landed tables have beside these: a number that grows with the log."""

TABLE: Final = b"table"
DATABASE: Final = b"database"
PRIMARY_KEY: Final = b"primary_key"
IMAGE: Final = b"image"
INVALID_DATES: Final = b"invalid_dates"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The columns of a table as one or more table maps describe them.

    Attributes:
        name: Of the table.
        columns: All of the table's columns, in table order.
        chosen: Indexes of those that batches hold.
        arrow: Schema of the batches, change columns first; its metadata has `table` (such as
            `shop.orders`), `database`, and `primary_key` (JSON, the names in key order) where the
            log tells it.
    """

    name: TableName
    columns: tuple[Column, ...]
    chosen: tuple[int, ...]
    arrow: pa.Schema


def column_name(column: Column) -> str:
    """Its name, or `@1`, `@2` … where the log has none."""
    return f"@{column.index + 1}" if column.name is None else _text(column.name)


def _text(name: str) -> str:
    r"""A name in valid Unicode: bytes that are none, which only damage makes, as `\xNN`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Names and types of a table's own columns; every one can be NULL, since images may lack it."""
    return pa.schema([pa.field(column_name(column), arrow_type(column)) for column in columns])


def table_schema(
    table_map: TableMapEvent,
    *,
    flavor: Flavor,
    wanted: Collection[str] | None = None,
    columns: tuple[Column, ...] | None = None,
) -> TableSchema:
    """The schema that a table map tells.

    Args:
        table_map: Of the table.
        flavor: Who wrote it.
        columns: All of the table's columns, if somebody knows more of them than the table map.
        wanted: Names of the columns to keep, all if None; names that the table lacks are ignored.

    Raises:
        CodecError: If the table map is malformed.
        ConfigError: If a column has the name of a change column.
    """
    name = TableName(table_map.database, table_map.table)
    if columns is None:
        columns = table_columns(table_map, flavor=flavor)
    chosen = tuple(
        index
        for index, column in enumerate(columns)
        if wanted is None or column_name(column) in wanted
    )
    own = arrow_schema([columns[index] for index in chosen])
    for clash in set(own.names) & {*CHANGE_COLUMNS.names, SEQUENCE_COLUMN}:
        raise ConfigError(
            f"{name} has a column {clash}, which is the name of one that binlane adds",
            key="columns",
            hint=f"choose the columns of {name.plain} without it",
        )
    metadata = {TABLE: _text(name.plain).encode(), DATABASE: _text(name.database).encode()}
    key = [column_name(columns[part.index]) for part in primary_key(table_map)]
    if key:
        metadata[PRIMARY_KEY] = json.dumps(key, ensure_ascii=False).encode()
    return TableSchema(
        name=name,
        columns=columns,
        chosen=chosen,
        arrow=pa.schema([*CHANGE_COLUMNS, *own]).with_metadata(metadata),
    )


def table_of(schema: pa.Schema) -> TableName:
    """The table that a batch is of."""
    database = schema.metadata[DATABASE].decode()
    return TableName(database, schema.metadata[TABLE].decode()[len(database) + 1 :])


def primary_key_of(schema: pa.Schema) -> list[str]:
    """Names of the primary key's columns in key order; empty if the log does not tell it."""
    return list(json.loads(schema.metadata.get(PRIMARY_KEY, b"[]")))


def has_full_images(schema: pa.Schema) -> bool:
    """Whether images suffice to apply them: whole ones, of before images at least the key."""
    return bool(schema.metadata.get(IMAGE, b"full") == b"full")


def invalid_dates_of(schema: pa.Schema) -> int:
    """How many zero or partial dates of a batch became NULL."""
    return int(schema.metadata.get(INVALID_DATES, b"0"))
