"""The layout `events`: one row an event of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.losses import Losses
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.table_maps import TableMaps
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.log_notes import storable
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.read import filter_state_of
from binlane.tables.ranges.stored_files import read_groups_of
from binlane.tables.spark.source_options import SourceOptions

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
    piece: LogRange, options: SourceOptions, schema: pa.Schema, counters: ReadCounters
) -> Iterator[pa.RecordBatch]:
    """The events of one range.

    Args:
        piece: The range of the log.
        options: The groups that are wanted, and the tables whose events are, of those that are of a
            table.
        schema: The schema of every batch.
        counters: Counters that get the filter's losses.

    Raises:
        CodecError: With file and position, if the log is damaged.
    """
    rows: list[dict[str, object]] = []
    judge = _judge(piece, options, counters)
    for whole in read_groups_of(piece):
        group = judge(whole)
        if group is not None and options.selection.includes(whole):
            rows += _rows_of(group, options)
        if len(rows) >= options.rows_per_batch:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _judge(
    piece: LogRange, options: SourceOptions, counters: ReadCounters
) -> Callable[[EventGroup], EventGroup | None]:
    """Return the function that gives the part of each group of a range that the filter lets through."""
    state = filter_state_of(piece, options.selection)
    if state is None:
        return lambda group: group
    filtered = GroupFilter(state, lambda _note: None)
    format_: Format | None = None

    def judge(group: EventGroup) -> EventGroup | None:
        nonlocal format_
        first = group.events[0].body
        if isinstance(first, FormatDescriptionEvent):
            format_ = first.format
        assert format_ is not None, "a range begins with one"
        is_selected = options.selection.includes(group)
        state.left_out = counters.left_out if is_selected else Losses()
        return filtered.group(group, format_)

    return judge


def _rows_of(group: EventGroup, options: SourceOptions) -> Iterator[dict[str, object]]:
    gtid = None if group.gtid is None else str(group.gtid)
    maps = TableMaps()
    for event in group.events:
        table = maps.feed(event, file=group.file)
        if isinstance(event.body, TableMapEvent):
            table = event.body
        name = None
        if table is not None and isinstance(event.body, TableMapEvent | RowsEvent):
            name = table.name
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
