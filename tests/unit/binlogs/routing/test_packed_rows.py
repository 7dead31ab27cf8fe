"""Rows of one table in few large events: what is joined, and what ends a statement of its own."""

from __future__ import annotations

from dataclasses import replace

from binlane.binlogs.routing.packed_rows import EVENT_BYTES_MAX, RowsPacker
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.rows import (
    DeleteRowsV1Event,
    RowsEvent,
    TableMapEvent,
    UpdateRowsV1Event,
    WriteRowsV1Event,
)
from binlane.log.codec.types import ColumnType, EventType, RowsFlag

_MAP = TableMapEvent(
    table_id=1,
    flags=1,
    database="shop",
    table="orders",
    column_types=bytes((ColumnType.LONG,)),
    metadata=b"",
    null_bits=b"\x00",
    optional_metadata=b"",
)


def _event(body: Body, kind: EventType) -> Event:
    header = EventHeader(
        timestamp=1, type_code=kind, server_id=1, length=0, next_position=0, flags=0
    )
    return Event(header, body)


def _map(body: TableMapEvent = _MAP) -> Event:
    return _event(body, EventType.TABLE_MAP)


def _rows(
    images: bytes,
    kind: type[RowsEvent] = WriteRowsV1Event,
    *,
    flags: int = RowsFlag.STMT_END,
    table_id: int = 1,
) -> Event:
    after = b"\xff" if kind.has_after_bitmap else None
    body = kind(
        table_id=table_id,
        flags=flags,
        extra=None,
        column_count=1,
        columns_present=b"\xff",
        columns_present_after=after,
        images=images,
    )
    return _event(body, kind.event_type)


def _packed(*events: Event) -> list[tuple[str, bytes]]:
    """What becomes of events: classes and images of rows, each behind a TABLE_MAP."""
    packer = RowsPacker()
    found = [*packer.pack(events), *packer.rest()]
    assert not [*packer.rest()], "it was given"
    maps, rows = found[::2], found[1::2]
    assert len(maps) == len(rows)
    told = []
    for table_map, event in zip(maps, rows, strict=True):
        assert isinstance(table_map.body, TableMapEvent)
        assert isinstance(event.body, RowsEvent)
        assert event.body.ends_statement
        assert event.body.table_id == table_map.body.table_id
        told.append((type(event.body).__name__[:5], event.body.images))
    return told


def test_inserts_are_joined_over_statements() -> None:
    other = replace(_MAP, table_id=7)
    events = _map(), _rows(b"a", flags=0), _rows(b"b"), _map(other), _rows(b"c", table_id=7)
    assert _packed(*events) == [("Write", b"abc")]


def test_other_columns_begin_another_event() -> None:
    other = replace(_MAP, null_bits=b"\x01")
    assert _packed(_map(), _rows(b"a"), _map(other), _rows(b"b")) == [
        ("Write", b"a"),
        ("Write", b"b"),
    ]


def test_other_flags_begin_another_event() -> None:
    unchecked = RowsFlag.STMT_END | RowsFlag.RELAXED_UNIQUE_CHECKS
    assert _packed(_map(), _rows(b"a"), _map(), _rows(b"b", flags=unchecked)) == [
        ("Write", b"a"),
        ("Write", b"b"),
    ]


def test_changes_and_deletions_stay_as_they_are_in_their_order() -> None:
    events = (
        *(_map(), _rows(b"a", flags=0), _rows(b"bc", UpdateRowsV1Event, flags=0), _rows(b"d")),
        *(_map(), _rows(b"e"), _map(), _rows(b"f", DeleteRowsV1Event)),
        *(_map(), _rows(b"g", DeleteRowsV1Event), _map(), _rows(b"h")),
    )
    assert _packed(*events) == [
        ("Write", b"a"),
        ("Updat", b"bc"),
        ("Write", b"de"),
        ("Delet", b"f"),
        ("Delet", b"g"),
        ("Write", b"h"),
    ]


def test_an_event_that_is_full_is_given_at_once() -> None:
    half = bytes(EVENT_BYTES_MAX // 2)
    packer = RowsPacker()
    assert not [*packer.pack([_map(), _rows(half), _map(), _rows(half)])]
    assert len([*packer.pack([_map(), _rows(b"a")])]) == 2
    packer.clear()
    assert not [*packer.rest()]
    assert _packed(_map(), _rows(half * 3)) == [("Write", half * 3)]
