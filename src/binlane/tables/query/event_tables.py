"""Tables of what a log has beside rows: its events, its groups, its statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.tables.columnar.log_notes import statement_of, storable
from binlane.tables.query.log_tables import LogTables
from binlane.tables.query.unread_parts import PlaceCondition, QueryWish
from binlane.tables.ranges.stored_files import read_groups_of

_STRING: Final = pa.string()
_LONG: Final = pa.int64()
_MOMENT: Final = pa.timestamp("us", tz="UTC")
_MICROSECONDS: Final = 1_000_000
_ROWS_MAX: Final = 8192
_TRANSACTION_WORDS: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK"})


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


EVENTS: Final = _schema(
    _timestamp=_MOMENT,
    _gtid=_STRING,
    _file=_STRING,
    _pos=_LONG,
    next_pos=_LONG,
    size=_LONG,
    type=_STRING,
    database=_STRING,
    table=_STRING,
    statement=_STRING,
    _server_id=_LONG,
)
"""`database` and `table` are of rows events and their table maps; of a statement `database` is its
default one. `statement` is a statement's text, also that of an annotation of rows."""

GROUPS: Final = _schema(
    _timestamp=_MOMENT,
    _gtid=_STRING,
    _file=_STRING,
    _pos=_LONG,
    next_pos=_LONG,
    size=_LONG,
    events=_LONG,
    rows=_LONG,
    tables=pa.list_(_STRING),
    statement=_STRING,
    thread_id=_LONG,
    _server_id=_LONG,
)
"""`rows` are changed rows, `tables` the tables that have some. `statement` is the first text."""

STATEMENTS: Final = _schema(
    _timestamp=_MOMENT,
    _gtid=_STRING,
    _file=_STRING,
    _pos=_LONG,
    database=_STRING,
    statement=_STRING,
    is_annotation=pa.bool_(),
    thread_id=_LONG,
    _server_id=_LONG,
)
"""`is_annotation` is true of texts that the log has beside the rows that they changed."""

Row = dict[str, Any]
RowsOf = Callable[[EventGroup, Format, Collection[str]], Iterator[Row]]


def event_rows(group: EventGroup, format_: Format, columns: Collection[str]) -> Iterator[Row]:
    """Give a row for each event of a group, inner ones behind their carrier.

    Args:
        group: The event group whose rows are wanted.
        format_: The format of its file.
        columns: Names of the columns that are needed; others may come too.

    Raises:
        CodecError: If an event in another cannot be decoded.
    """
    del columns
    maps = TableMaps()
    for event in expanded_all(group.events, file=group.file, format_=format_):
        table = maps.feed(event, file=group.file)
        if isinstance(event.body, TableMapEvent):
            table = event.body
        name = None
        if table is not None and isinstance(event.body, TableMapEvent | RowsEvent):
            name = table.name
        text = _text_of(event)
        yield {
            **_place(group, event),
            "next_pos": event.next_position,
            "size": event.header.length,
            "type": event.header.type_name,
            "database": storable(name.database) if name else _database(event),
            "table": storable(name.table) if name else None,
            "statement": None if text is None else _storable(text),
        }


def group_rows(group: EventGroup, format_: Format, columns: Collection[str]) -> Iterator[Row]:
    """Give the row of a group; none for the log's own events, such as its FORMAT_DESCRIPTION.

    Args:
        group: The event group whose rows are wanted.
        format_: The format of its file.
        columns: Names of the columns that are needed; others may come too.

    Raises:
        CodecError: If an event in another cannot be decoded.
    """
    if group.is_control:
        return
    maps = TableMaps()
    tables: dict[str, None] = {}
    rows, text, thread_id = 0, None, None
    for event in expanded_all(group.events, file=group.file, format_=format_):
        table = maps.feed(event, file=group.file)
        body = event.body
        if table is not None and isinstance(body, RowsEvent):
            tables.setdefault(storable(table.name.plain))
            if "rows" in columns:
                rows += count_rows(body, table_columns(table, flavor=format_.flavor))
        if text is None and not _is_transaction_word(event):
            text = _text_of(event)
        if thread_id is None and isinstance(body, QueryEvent):
            thread_id = body.thread_id
    last = group.events[-1]
    yield {
        **_place(group, group.events[0]),
        "_timestamp": group.timestamp * _MICROSECONDS,
        "next_pos": last.next_position,
        "size": group.size_bytes,
        "events": len(group.events),
        "rows": rows,
        "tables": list(tables),
        "statement": None if text is None else _storable(text),
        "thread_id": thread_id,
    }


def statement_rows(group: EventGroup, format_: Format, columns: Collection[str]) -> Iterator[Row]:
    """Give a row for each text of a group that is more than its frame.

    Args:
        group: The event group whose rows are wanted.
        format_: The format of its file.
        columns: Names of the columns that are needed; others may come too.

    Raises:
        CodecError: If an event in another cannot be decoded.
    """
    del columns
    thread_id = None
    for event in expanded_all(group.events, file=group.file, format_=format_):
        statement = statement_of(event)
        if statement is not None:
            thread_id = statement.thread_id
        text = _text_of(event)
        if text is None or _is_transaction_word(event):
            continue
        yield {
            **_place(group, event),
            "database": _database(event),
            "statement": _storable(text),
            "is_annotation": statement is None,
            "thread_id": thread_id,
        }


def _place(group: EventGroup, event: Event) -> Row:
    return {
        "_timestamp": event.header.timestamp * _MICROSECONDS,
        "_gtid": None if group.gtid is None else str(group.gtid),
        "_file": group.file,
        "_pos": event.position,
        "_server_id": event.header.server_id,
    }


def _is_transaction_word(event: Event) -> bool:
    return isinstance(event.body, QueryEvent) and event.body.query in _TRANSACTION_WORDS


def _text_of(event: Event) -> bytes | None:
    if isinstance(event.body, AnnotateRowsEvent | RowsQueryEvent):
        return event.body.query
    statement = statement_of(event)
    return None if statement is None else statement.query


def _database(event: Event) -> str | None:
    statement = statement_of(event)
    return None if statement is None else _storable(statement.database)


def _storable(text: bytes) -> str:
    return storable(text.decode("utf-8", "surrogateescape"))


EVENT_TABLES: Final[Mapping[str, tuple[pa.Schema, RowsOf]]] = MappingProxyType(
    {
        "events": (EVENTS, event_rows),
        "groups": (GROUPS, group_rows),
        "statements": (STATEMENTS, statement_rows),
    }
)
"""By name: the columns, and the function that gives a group's rows."""


def read_event_table(
    log: LogTables, name: str, columns: Collection[str], condition: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """The rows of one of these tables in log order.

    Args:
        log: The log that is read.
        name: Name of the table, one of `EVENT_TABLES`.
        columns: Names of the columns that batches are to have.
        condition: The query's condition, by which parts of the log are left unread; the batches
            may hold rows for which it does not hold.

    Raises:
        CodecError: With file and position, if the log is damaged.
        StoreError: If a file cannot be read.
    """
    whole, rows_of = EVENT_TABLES[name]
    schema = pa.schema([each for each in whole if each.name in columns])
    selection = log.selection
    wish = QueryWish(
        selection,
        None
        if condition is None
        else PlaceCondition(whole, condition, has_control=name == "events"),
        is_of_tables=False,
    )
    rows: list[Row] = []
    for piece in log.event_ranges(wish):
        format_: Format | None = None
        for group in read_groups_of(piece):
            first = group.events[0].body
            if isinstance(first, FormatDescriptionEvent):
                format_ = first.format
                if group.events[0].position < piece.start:
                    continue  # the head of a file whose beginning is not read
            assert format_ is not None, "a range begins with one"
            if selection.includes(group):
                rows += rows_of(group, format_, columns)
            if len(rows) >= _ROWS_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)
