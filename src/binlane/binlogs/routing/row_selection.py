"""One statement's row events → those of them that are in a scope.

A statement runs from its text or first TABLE_MAP to the rows event with STMT_END. Table maps of
in-scope tables stay with its rows, also those that only say which tables a server locks; where no
row stays, no map does: a map alone tells the name of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from binlane.errors import UnsupportedError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.query import AnnotateRowsEvent, RowsQueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.types import RowsFlag
from binlane.log.grouping.fragment_joining import joined_event
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.scope.scope import Scope

STATEMENT_TEXTS = AnnotateRowsEvent | RowsQueryEvent
PIECES = STATEMENT_TEXTS | TableMapEvent | RowsEvent | PartialRowDataEvent
"""Bodies of the events that make a statement of row changes."""


def table_name(table_map: TableMapEvent) -> TableName:
    """The table that a TABLE_MAP names."""
    return TableName(table_map.database, table_map.table)


def whole_rows(event: Event, format_: Format) -> Event:
    """The rows event that an event is, or completes as its last piece; else the event itself."""
    return event if event.joined is None else joined_event(event, event.joined, format_)


def ends_statement(event: Event, format_: Format) -> bool:
    """True if an event of a statement is its last."""
    body = whole_rows(event, format_).body
    return isinstance(body, RowsEvent) and body.ends_statement


def select_rows(
    events: Sequence[Event], scope: Scope, *, file: str, format_: Format
) -> tuple[Event, ...]:
    """The in-scope part of one statement.

    Args:
        events: Text, TABLE_MAP and rows events of one statement, in order.
        scope: Scope of the binlog to route to.
        file: Name of the events' file, for errors.
        format_: Format of the FORMAT_DESCRIPTION before them.

    Returns:
        The events to keep, the last of them with STMT_END; empty if no row is in scope. A text is
        kept with the rows: the caller decides if it may be.

    Raises:
        CodecError: If a rows event has no TABLE_MAP.
        UnsupportedError: If the statement would end with a rows event that was cut up.
    """
    maps = TableMaps()
    kept: list[Event] = []
    pieces: list[Event] = []
    has_rows = False
    for event in events:
        if isinstance(event.body, PartialRowDataEvent):
            pieces.append(event)
            if event.joined is None:
                continue
        owner = maps.feed(whole_rows(event, format_), file=file)
        if owner is not None and scope.includes(table_name(owner)):
            kept += pieces or (event,)
            has_rows = True
        elif isinstance(event.body, TableMapEvent):
            kept += (event,) if scope.includes(table_name(event.body)) else ()
        elif isinstance(event.body, STATEMENT_TEXTS):
            kept.append(event)
        pieces = []
    return _end_statement(kept, format_) if has_rows else ()


def _end_statement(events: list[Event], format_: Format) -> tuple[Event, ...]:
    """Have the last rows event end the statement."""
    last = max(
        index
        for index, event in enumerate(events)
        if isinstance(event.body, RowsEvent | PartialRowDataEvent)
    )
    event = events[last]
    if ends_statement(event, format_):
        return tuple(events)
    if not isinstance(event.body, RowsEvent):
        raise UnsupportedError("the last rows in scope are in pieces, which cannot end a statement")
    body = replace(event.body, flags=event.body.flags | RowsFlag.STMT_END)
    return (*events[:last], replace(event, body=body), *events[last + 1 :])
