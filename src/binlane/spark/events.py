"""The layout `events`: one row an event of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from binlane.codec.event import Event
from binlane.codec.query import QueryEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.grouping.event_group import EventGroup
from binlane.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.ranges.files import read_groups_of
from binlane.ranges.log_range import LogRange
from binlane.ranges.statements import storable
from binlane.spark.options import SourceOptions

_MICROSECONDS: Final = 1_000_000
_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("_file", pa.string()),
    pa.field("_pos", pa.int64()),
    pa.field("_next_pos", pa.int64()),
    pa.field("_size", pa.int32()),
    pa.field("_type", pa.string()),
    pa.field("_type_code", pa.int32()),
    pa.field("_ts", pa.timestamp("us", tz="UTC")),
    pa.field("_server_id", pa.int64()),
    pa.field("_gtid", pa.string()),
    pa.field("_database", pa.string()),
    pa.field("_table", pa.string()),
    pa.field("statement", pa.string()),
]
EVENTS: Final = pa.schema(_FIELDS)
"""`_database` and `_table` are of rows events and their table maps; of a statement `_database` is
the default one. `statement` is its text."""


def read_events(
    piece: LogRange, options: SourceOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The events of one range.

    Args:
        piece: The range.
        options: Which tables' events, of those that are of a table, and which groups.
        schema: Of every batch.

    Raises:
        CodecError: With file and position, if the log is damaged.
    """
    rows: list[dict[str, object]] = []
    for group in read_groups_of(piece):
        if options.selection.includes(group):
            rows += _rows_of(group, options)
        if len(rows) >= options.rows_per_batch:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _rows_of(group: EventGroup, options: SourceOptions) -> Iterator[dict[str, object]]:
    gtid = None if group.gtid is None else str(group.gtid)
    maps = TableMaps()
    for event in group.events:
        table = maps.feed(event, file=group.file)
        if isinstance(event.body, TableMapEvent):
            table = event.body
        name = None
        if table is not None and isinstance(event.body, TableMapEvent | RowsEvent):
            name = TableName(table.database, table.table)
            if not options.selection.scope.includes(name):
                continue
        yield {
            "_file": group.file,
            "_pos": event.position,
            "_next_pos": event.next_position,
            "_size": event.header.length,
            "_type": event.header.type_name,
            "_type_code": event.header.type_code,
            "_ts": event.header.timestamp * _MICROSECONDS,
            "_server_id": event.header.server_id,
            "_gtid": gtid,
            "_database": name.database if name else _database(event),
            "_table": name.table if name else None,
            "statement": _statement(event),
        }


def _database(event: Event) -> str | None:
    return storable_bytes(event.body.database) if isinstance(event.body, QueryEvent) else None


def _statement(event: Event) -> str | None:
    return storable_bytes(event.body.query) if isinstance(event.body, QueryEvent) else None


def storable_bytes(text: bytes) -> str:
    """A statement's text as Arrow can hold it."""
    return storable(text.decode("utf-8", "surrogateescape"))
