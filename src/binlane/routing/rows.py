"""One statement's row events → those of them that are in a scope.

A statement runs from its ANNOTATE_ROWS or first TABLE_MAP to the rows event with STMT_END. Table
maps are kept only for tables that keep rows: a map alone tells the name of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from binlane.codec.event import Event
from binlane.codec.query import AnnotateRowsEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import RowsFlag
from binlane.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.scope.scope import Scope


def table_name(table_map: TableMapEvent) -> TableName:
    """The table that a TABLE_MAP names."""
    return TableName(table_map.database, table_map.table)


def select_rows(events: Sequence[Event], scope: Scope, *, file: str) -> tuple[Event, ...]:
    """The in-scope part of one statement.

    Args:
        events: ANNOTATE_ROWS, TABLE_MAP and rows events of one statement, in order.
        scope: Of the binlog.
        file: Where they stand, for errors.

    Returns:
        The events to keep, the last of them with STMT_END; empty if no row is in scope. An
        ANNOTATE_ROWS event is kept with the rows: whether its text may be is the caller's to say.

    Raises:
        CodecError: If a rows event has no TABLE_MAP.
    """
    maps = TableMaps()
    owners = [maps.feed(event, file=file) for event in events]
    kept_ids = {
        owner.table_id
        for owner in owners
        if owner is not None and scope.includes(table_name(owner))
    }
    kept = tuple(
        event for event, owner in zip(events, owners, strict=True) if _keeps(event, owner, kept_ids)
    )
    return _end_statement(kept) if kept_ids else ()


def _keeps(event: Event, owner: TableMapEvent | None, kept_ids: set[int]) -> bool:
    body = event.body
    if isinstance(body, TableMapEvent):
        return body.table_id in kept_ids
    if isinstance(body, RowsEvent):
        return owner is not None and owner.table_id in kept_ids
    return isinstance(body, AnnotateRowsEvent)


def _end_statement(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Have the last rows event end the statement, and no other."""
    last = max(index for index, event in enumerate(events) if isinstance(event.body, RowsEvent))
    event = events[last]
    assert isinstance(event.body, RowsEvent), "found as such above"
    if event.body.ends_statement:
        return events
    body = replace(event.body, flags=event.body.flags | RowsFlag.STMT_END)
    return (*events[:last], replace(event, body=body), *events[last + 1 :])
