from __future__ import annotations

from datetime import UTC, datetime

import pytest

from binlane.errors import ConfigError
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import FilePosition, GtidPosition, file_number
from binlane.tables.columnar.selection import (
    Bound,
    Selection,
    parse_bound,
    parse_tables,
)
from tests.fixture_sets import fixture_set


def groups() -> list[EventGroup]:
    return [
        group
        for file, data in fixture_set("md1011_rotation").binlogs
        for group in group_events(walk([data], file=file), file=file)
        if not group.is_control
    ]


@pytest.mark.parametrize("index", [0, 1, 20, 44])
def test_start_and_stop_at_a_place_part_the_log(index: int) -> None:
    whole = groups()
    first = whole[index]
    assert first.gtid is not None
    before = GtidPosition.of(group.mariadb_gtid for group in whole[:index] if group.mariadb_gtid)
    bounds: list[Bound] = [FilePosition(first.file, first.position), before]
    for bound in bounds:
        tail = [group for group in whole if Selection(start=bound).includes(group)]
        head = [group for group in whole if Selection(stop=bound).includes(group)]
        assert head == whole[:index]
        assert tail == whole[index:]


def test_times_are_those_of_the_commit() -> None:
    whole = groups()
    middle = datetime.fromtimestamp(whole[20].timestamp, UTC)
    tail = [group for group in whole if Selection(start=middle).includes(group)]
    head = [group for group in whole if Selection(stop=middle).includes(group)]
    assert len(head) + len(tail) == len(whole)
    assert all(group.timestamp >= whole[20].timestamp for group in tail)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("orders.000001:4", FilePosition("orders.000001", 4)),
        ("0-1-5,2-1-7", GtidPosition.parse("0-1-5,2-1-7")),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31 12:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_places_as_users_write_them(text: str, expected: Bound) -> None:
    assert parse_bound(text, key="start") == expected


def test_what_is_no_place_says_what_is() -> None:
    with pytest.raises(ConfigError, match=r"'soon' is no place in a log \(start\)") as caught:
        parse_bound("soon", key="start")
    assert "FILE:POSITION" in caught.value.hint


def test_tables_as_users_write_them() -> None:
    scope = parse_tables(["shop.orders", "crm", "`a.b`.`c``d`"])
    for table in (
        TableName("shop", "orders"),
        TableName("crm", "person"),
        TableName("a.b", "c`d"),
    ):
        assert scope.includes(table)
    assert not scope.includes(TableName("shop", "items"))


@pytest.mark.parametrize("name", ["", "a.b.c", "a..b", ".a", "a b"])
def test_what_names_no_table_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="names neither a database nor a table"):
        parse_tables([name])


def test_numbers_of_files() -> None:
    assert [file_number(name) for name in ("orders.000001", "a.b.1000000", "dump")] == [1, 10**6, 0]
