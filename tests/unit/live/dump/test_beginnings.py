"""Which rows of a binlog a replica has, wants, or cannot use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from binlane.binlogs.store.fills import BLOCK, Seeding, SeedSource, without_seeds
from binlane.errors import StatementError
from binlane.live.dump.beginnings import dump_start, files_for, left_out_rows
from binlane.live.dump.start import file_for
from binlane.positions import GtidPosition, GtidSet, Position

_UUID = "aaaaaaaa-0000-0000-0000-000000000001"
_OWN = "bbbbbbbb-0000-0000-0000-000000000002"
_MARIADB = SeedSource(name="77-9", server_id=9)
_MYSQL = SeedSource(name=_OWN, server_id=9)


def _position(text: str) -> GtidPosition:
    return GtidPosition.parse(text)


def _set(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("S:", f"{_UUID}:").replace("R:", f"{_OWN}:"))


def _seeding(place: Position, first: int, last: int | None, *, is_beginning: bool) -> Seeding:
    source = _MYSQL if isinstance(place, GtidSet) else _MARIADB
    return Seeding(
        log_id=1,
        source=source,
        first=first,
        last=last,
        place=place,
        is_beginning=is_beginning,
        first_file="orders.000001",
    )


_BEGINNING = _seeding(_position("0-1-500,2-1-7"), 1, 30, is_beginning=True)
_FIRST_BEGINNING = _seeding(_position("0-1-10,2-1-3"), 1, 30, is_beginning=True)
_ADDITION = _seeding(_position("0-1-800,2-1-9"), BLOCK + 1, BLOCK + 5, is_beginning=False)
_SET_BEGINNING = _seeding(_set("S:1-500"), 1, 30, is_beginning=True)
_SET_ADDITION = _seeding(_set("S:1-800"), BLOCK + 1, BLOCK + 5, is_beginning=False)


@pytest.mark.parametrize(
    "state, asked",
    [
        ("", ""),
        ("5-5-5", "5-5-5"),  # of another source
        ("77-9-12", "77-9-12"),  # on the way
        ("77-9-30", "77-9-30"),
        ("0-1-500,77-9-30", "0-1-500,77-9-30"),
        ("0-1-500,2-1-7", "0-1-500,2-1-7,77-9-30"),  # set up otherwise
        ("0-1-900,2-1-7", "0-1-900,2-1-7,77-9-30"),
        (f"77-9-{5 * BLOCK + 1}", ""),  # it followed another binlog of the source
        (f"0-1-600,2-1-8,77-9-{5 * BLOCK + 1}", "0-1-600,2-1-8,77-9-30"),
    ],
)
def test_a_mariadb_at_a_beginning(state: str, asked: str) -> None:
    start = dump_start(_position(state), [_BEGINNING], "orders")
    assert start.asked == _position(asked)
    assert start.done == start.asked


@dataclass(frozen=True)
class _BeginningFile:
    begin: GtidPosition


@pytest.mark.parametrize(
    "state, number",
    [
        ("", 2),
        ("77-9-15", 0),  # within the beginning before
        ("0-1-50,2-1-7", 0),  # before the beginning that is being placed
        ("0-1-50,2-1-7,77-9-30", 0),
        ("0-1-450,2-1-7,77-9-30", 1),
        ("0-1-500,2-1-7", 2),
        (f"77-9-{BLOCK + 12}", 2),
        (f"77-9-{BLOCK + 25}", 3),
    ],
)
def test_a_replica_on_its_way_goes_on_before_a_beginning_that_is_being_placed(
    state: str, number: int
) -> None:
    begins = ("", "0-1-400,2-1-7,77-9-30", "", f"77-9-{BLOCK + 20}")
    files = [_BeginningFile(_position(begin)) for begin in begins]
    placing = _seeding(_position("0-1-500,2-1-7"), BLOCK + 1, None, is_beginning=True)
    seedings = [_FIRST_BEGINNING, placing]
    asked = dump_start(_position(state), seedings, "orders").asked
    assert file_for(asked, files_for(asked, seedings, files)) is files[number]


@pytest.mark.parametrize(
    "state, number", [("", 2), (f"77-9-{BLOCK + 25}", 3), ("0-1-600,2-1-8,77-9-30", 3)]
)
def test_files_that_stay_before_a_beginning_are_not_for_who_lacks_what_was_before(
    state: str, number: int
) -> None:
    begins = ("0-1-300,2-1-7,77-9-30", "0-1-400,2-1-7,77-9-30", "", f"77-9-{BLOCK + 20}")
    files = [_BeginningFile(_position(begin)) for begin in begins]
    later = _seeding(_position("0-1-500,2-1-7"), BLOCK + 1, BLOCK + 40, is_beginning=True)
    seedings = [_FIRST_BEGINNING, later]
    asked = dump_start(_position(state), seedings, "orders").asked
    assert file_for(asked, files_for(asked, seedings, files)) is files[number]


def test_a_replica_within_an_earlier_beginning_cannot_begin() -> None:
    later = _seeding(_position("0-1-500,2-1-7"), BLOCK + 1, BLOCK + 40, is_beginning=True)
    for state in ("77-9-15", "0-1-10,2-1-3,77-9-30"):
        with pytest.raises(StatementError, match="Could not find GTID state"):
            dump_start(_position(state), [_FIRST_BEGINNING, later], "orders")


@pytest.mark.parametrize("state", ["0-1-499,2-1-7", "0-1-500", "2-1-3"])
def test_a_mariadb_with_a_part_cannot_begin(state: str) -> None:
    with pytest.raises(StatementError, match="Could not find GTID state") as caught:
        dump_start(_position(state), [_BEGINNING], "orders")
    assert caught.value.errno == 1236
    assert "0-1-500,2-1-7" in caught.value.hint


@pytest.mark.parametrize(
    "state, has_rows",
    [
        ("0-1-800,2-1-9,77-9-30", False),  # it stands just there: they come next
        ("0-1-700,2-1-8,77-9-30", False),
        ("0-1-801,2-1-9,77-9-30", True),  # it has come by without them
        ("0-1-900,2-1-9", True),
        (f"0-1-900,2-1-9,77-9-{BLOCK + 2}", False),
    ],
)
def test_a_mariadb_at_a_table_that_came_in(state: str, *, has_rows: bool) -> None:
    start = dump_start(_position(state), [_BEGINNING, _ADDITION], "orders")
    last = start.asked.covers(_MARIADB.gtid(BLOCK + 5))
    assert last is has_rows


@pytest.mark.parametrize(
    "state, asked, known",
    [
        ("", "", "S:1-500"),
        ("R:1-12", "R:1-12", "S:1-500,R:1-12"),
        ("R:1-30", "R:1-30,S:1-500", "S:1-500,R:1-30"),
        ("R:1-30,S:501-510", "R:1-30,S:1-510", "S:1-510,R:1-30"),
        ("S:1-600", "S:1-600,R:1-30", "S:1-600,R:1-30"),
        # It has come by the rows of a later place, too.
        (
            f"R:1-30:{BLOCK + 1}-{BLOCK + 5},S:501-510",
            f"R:1-30:{BLOCK + 1}-{BLOCK + 5},S:1-510",
            f"R:1-30:{BLOCK + 1}-{BLOCK + 5},S:1-510",
        ),
    ],
)
def test_a_mysql_at_a_beginning(state: str, asked: str, known: str) -> None:
    start = dump_start(_set(state), [_SET_BEGINNING], "orders")
    assert (start.asked, start.known) == (_set(asked), _set(known))


def test_a_mysql_with_a_part_cannot_begin() -> None:
    with pytest.raises(StatementError, match="Could not find GTID state"):
        dump_start(_set("S:1-400"), [_SET_BEGINNING], "orders")


@pytest.mark.parametrize(
    "state, has_rows", [("R:1-30,S:501-800", False), ("R:1-30,S:501-801", True)]
)
def test_a_mysql_at_a_table_that_came_in(state: str, *, has_rows: bool) -> None:
    start = dump_start(_set(state), [_SET_BEGINNING, _SET_ADDITION], "orders")
    assert start.asked.covers(_MYSQL.gtid(BLOCK + 5)) is has_rows


_STATEMENT = _position("0-1-900")
_TRIED = replace(_ADDITION, place=_STATEMENT, is_arrival=True, last=BLOCK + 3)
_ARRIVAL = replace(_TRIED, first=2 * BLOCK + 1, last=2 * BLOCK + 9)


@pytest.mark.parametrize(
    "state, is_sent",
    [
        ("", True),
        ("0-1-899,2-1-70", True),
        (f"0-1-899,77-9-{BLOCK + 2}", True),  # it has come by a part of the first try
        (f"0-1-899,77-9-{2 * BLOCK + 5}", True),
        ("0-1-900", False),  # it has the statement from elsewhere
        ("0-1-950,2-1-9", False),
        ("0-1-950,77-9-30", False),
    ],
)
def test_a_mariadb_at_a_statement_that_brings_a_table_in(state: str, *, is_sent: bool) -> None:
    start = dump_start(_position(state), [_TRIED, _ARRIVAL], "orders")
    last = _MARIADB.gtid(2 * BLOCK + 9)
    assert start.asked.covers(last) is start.done.covers(last) is not is_sent
    assert start.asked.covers(_MARIADB.gtid(2 * BLOCK + 10)) is False
    # While it is being placed nobody asks for it, and who has the statement is not sent it.
    placing = dump_start(_position(state), [replace(_ARRIVAL, last=None)], "orders")
    assert placing.done.covers(last) is not is_sent
    assert not placing.asked.covers(last)


@pytest.mark.parametrize(
    "state, is_sent", [("S:1-899", True), ("S:901", True), ("S:900", False), ("S:1-950", False)]
)
def test_a_mysql_at_a_statement_that_brings_a_table_in(state: str, *, is_sent: bool) -> None:
    arrival = replace(_SET_ADDITION, place=_set("S:900"), is_arrival=True)
    start = dump_start(_set(state), [arrival], "orders")
    last = _MYSQL.gtid(BLOCK + 5)
    assert start.done.covers(last) is start.known.covers(last) is not is_sent


def test_rows_that_are_being_placed_are_not_sent_to_who_has_them() -> None:
    placing = _seeding(_position("0-1-500"), 1, None, is_beginning=True)
    start = dump_start(_position("0-1-500"), [placing], "orders")
    assert start.asked == _position("0-1-500")
    assert start.done.covers(_MARIADB.gtid(BLOCK))
    # Who has a part is told to wait by nobody yet: the binlog may still have what it lacks.
    dump_start(_position("0-1-400"), [placing], "orders")


def test_a_dump_that_comes_to_a_later_beginning_leaves_it_out() -> None:
    left = left_out_rows(_BEGINNING)
    assert left.covers(_MARIADB.gtid(30))
    assert left.includes(_BEGINNING.place)
    assert not left.covers(_MARIADB.gtid(31))


def test_the_part_of_a_position_that_is_the_sources() -> None:
    both = [_BEGINNING]
    assert without_seeds(_position("0-1-5,77-9-3"), both) == _position("0-1-5")
    assert without_seeds(_set("S:1-5,R:1-3"), [_SET_BEGINNING]) == _set("S:1-5")
    position = _position("0-1-5")
    assert without_seeds(position, both) is position
    assert without_seeds(position, ()) is position
