from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import CodecError
from binlane.log.codec.rows import DUMMY_TABLE_ID
from binlane.log.codec.transaction import XidEvent
from binlane.log.codec.types import ColumnType
from binlane.log.grouping.table_maps import TableMaps, rows_with_tables
from tests.build import event, rows, table_map

MAP = table_map(ColumnType.TINY, table_id=7)
OTHER = table_map(ColumnType.TINY, table="u", table_id=8)
ROWS = rows(1, b"\xfe\1", table_id=7)
OPEN_ROWS = replace(ROWS, flags=0)


def test_rows_come_with_their_table() -> None:
    events = [event(body) for body in (MAP, OTHER, OPEN_ROWS, rows(1, b"\xfe\2", table_id=8))]
    assert [
        (body.images, table.table) for _, body, table in rows_with_tables(events, file="f")
    ] == [(b"\xfe\1", "t"), (b"\xfe\2", "u")]


def test_maps_are_forgotten_at_the_end_of_their_statement() -> None:
    maps = TableMaps()
    assert maps.feed(event(MAP), file="f") is None
    assert maps.feed(event(OPEN_ROWS), file="f") == MAP
    assert maps.feed(event(ROWS), file="f") == MAP
    with pytest.raises(CodecError, match="table id 7, which no TABLE_MAP") as caught:
        maps.feed(replace(event(ROWS), position=99), file="f")
    assert (caught.value.file, caught.value.position) == ("f", 99)


def test_the_last_map_of_an_id_counts() -> None:
    maps = TableMaps()
    again = replace(MAP, table="again")
    maps.feed(event(MAP), file="f")
    maps.feed(event(again), file="f")
    assert maps.feed(event(ROWS), file="f") == again


def test_the_dummy_event_ends_a_statement_and_has_no_table() -> None:
    maps = TableMaps()
    maps.feed(event(MAP), file="f")
    assert maps.feed(event(rows(0, b"", table_id=DUMMY_TABLE_ID)), file="f") is None
    with pytest.raises(CodecError):
        maps.feed(event(ROWS), file="f")


def test_rows_and_their_map_have_the_same_columns() -> None:
    maps = TableMaps()
    maps.feed(event(MAP), file="f")
    with pytest.raises(CodecError, match="has 2 columns, its TABLE_MAP has 1"):
        maps.feed(event(rows(2, b"\xfc\1\2")), file="f")


def test_other_events_have_no_table() -> None:
    assert TableMaps().feed(event(XidEvent(xid=1)), file="f") is None
