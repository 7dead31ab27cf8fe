"""Printing by position, time, id and GTID."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from binlane.binlogs.cat.event_selection import EventSelection, IdList, Selector
from binlane.errors import CodecError
from binlane.log.codec.types import EventType
from binlane.log.grouping.walk import walk
from binlane.positions import GtidPosition, GtidSet
from tests.fixture_sets import fixture_set

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def chosen(
    name: str, selection: EventSelection, files: Iterable[int] = (0,)
) -> list[tuple[int, int]]:
    """Number of the file, and position, of each event that is printed, but FORMAT_DESCRIPTIONs."""
    selector = Selector(selection)
    numbers, binlogs = list(files), fixture_set(name).binlogs
    found: list[tuple[int, int]] = []
    for number in numbers:
        file, data = binlogs[number]
        selector.begin_file(file, is_first=number == numbers[0], is_last=number == numbers[-1])
        for event in walk([data], file=file):
            is_taken = selector.takes(event)
            if selector.is_done:
                return found
            if is_taken and event.header.type_code != EventType.FORMAT_DESCRIPTION:
                found.append((number, event.position))
        selector.end_file()
    return found


def positions(name: str, selection: EventSelection) -> list[int]:
    return [position for _, position in chosen(name, selection)]


def gtids(name: str, selection: EventSelection) -> list[str]:
    """GTIDs of the groups that are printed, from the server's own list of events."""
    taken = set(chosen(name, selection, range(len(fixture_set(name).binlogs))))
    numbers = {file: number for number, (file, _) in enumerate(fixture_set(name).binlogs)}
    return [
        row["info"].rpartition("GTID ")[2].removeprefix("SET @@SESSION.GTID_NEXT= ").strip("'")
        for row in fixture_set(name).events()
        if (numbers[row["file"]], row["pos"]) in taken and row["type"].lower().startswith("gtid")
        if not row["type"].lower().startswith("gtid_list")
    ]


def test_everything_by_default() -> None:
    name, data = fixture_set("md1011_txn").binlogs[0]
    everything = [event.position for event in walk([data], file=name)]
    assert positions("md1011_txn", EventSelection()) == everything[1:]


def test_positions_are_of_the_first_and_the_last_file() -> None:
    everything = chosen("md1011_gtid", EventSelection(), range(3))
    window = EventSelection(start_position=829, stop_position=400)
    assert chosen("md1011_gtid", window, range(3)) == [
        (number, position)
        for number, position in everything
        if (number > 0 or position >= 829) and (number < 2 or position < 400)
    ]


@pytest.mark.parametrize(
    ("start", "message", "place"),
    [
        (830, "no event starts at 830: ANNOTATE_ROWS stands from 829 to 1008", 830),
        (100, "no event starts at 100: FORMAT_DESCRIPTION stands from 4 to 256", 100),
        (9999, "no event starts at 9999: the file ends at 4138", 4138),
    ],
)
def test_a_start_that_is_no_event_is_an_error(start: int, message: str, place: int) -> None:
    with pytest.raises(CodecError) as caught:
        positions("md1011_gtid", EventSelection(start_position=start))
    assert (caught.value.message, caught.value.position) == (message, place)


def test_the_end_of_a_file_is_a_start() -> None:
    assert positions("md1011_gtid", EventSelection(start_position=4138)) == []


def test_times_are_looked_for_once() -> None:
    name, data = fixture_set("md1011_types_temporal").binlogs[0]
    events = list(walk([data], file=name))[1:]
    times = sorted({event.header.timestamp for event in events})
    assert len(times) > 1
    start = times[len(times) // 2]
    first = next(index for index, event in enumerate(events) if event.header.timestamp >= start)
    assert positions("md1011_types_temporal", EventSelection(start_time=start)) == [
        event.position for event in events[first:]
    ]
    stop = next(index for index, event in enumerate(events) if event.header.timestamp >= start)
    assert positions("md1011_types_temporal", EventSelection(stop_time=start)) == [
        event.position for event in events[:stop]
    ]


def test_offset_counts_every_event() -> None:
    # As mariadb-binlog 10.11 prints this file with --offset=5.
    assert positions("md1011_gtid", EventSelection(offset=5))[:2] == [456, 498]


def test_server_ids() -> None:
    rows = [row for row in fixture_set("md1011_gtid").events() if row["file"] == "binlog.000001"]
    of_77 = [row["pos"] for row in rows if row["server_id"] == 77]
    rotate = rows[-1]["pos"]
    assert positions("md1011_gtid", EventSelection(server_ids=IdList(do=frozenset({77})))) == [
        *of_77,
        rotate,
    ]
    others = positions("md1011_gtid", EventSelection(server_ids=IdList(ignore=frozenset({77}))))
    assert set(others) == {row["pos"] for row in rows[1:]} - set(of_77)
    masked = EventSelection(server_ids=IdList(do=frozenset({77 & 7})), server_id_mask=7)
    assert set(of_77) <= set(positions("md1011_gtid", masked))


def test_domains() -> None:
    assert gtids("md1011_gtid", EventSelection(domain_ids=IdList(do=frozenset({4}))))[:1] == [
        "4-1-1"
    ]
    found = gtids("md1011_gtid", EventSelection(domain_ids=IdList(ignore=frozenset({0, 4}))))
    assert found[:2] == ["4294967295-1-1", "4294967295-77-2"]
    assert all(gtid.startswith("4294967295-") for gtid in found)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        # As mariadb-binlog 10.11 prints this set.
        ("0-1-3", "0-1-5", ["0-1-4", "0-1-5"]),
        ("", "0-1-2", ["0-1-1", "0-1-2"]),
        ("4-1-0,0-1-5", "0-1-6", ["0-1-6"]),
    ],
)
def test_gtid_positions(start: str, stop: str, expected: list[str]) -> None:
    selection = EventSelection(
        start_gtids=GtidPosition.parse(start), stop_gtids=GtidPosition.parse(stop)
    )
    assert gtids("md1011_gtid", selection) == expected


def test_nothing_is_read_behind_the_last_stop() -> None:
    window = {"stop_gtids": GtidPosition.parse("0-1-3,4-1-1")}
    files = range(3)
    found = chosen("md1011_gtid", EventSelection(**window), files)  # type: ignore[arg-type]
    assert found[-1] == (0, 2553)
    not_strict = EventSelection(**window, is_gtid_strict=False)  # type: ignore[arg-type]
    assert chosen("md1011_gtid", not_strict, files)[-1][0] == 2


def test_no_group_of_one_server_is_among_gtids_of_the_other() -> None:
    assert gtids("md1011_gtid", EventSelection(include_gtids=GtidSet.parse(f"{SOURCE}:1"))) == []
    assert gtids("my97_gtid", EventSelection(stop_gtids=GtidPosition.parse("0-1-5"))) == []
    assert gtids("my97_gtid", EventSelection(domain_ids=IdList(do=frozenset({0})))) == []


def test_domains_that_a_start_does_not_name_are_printed_whole() -> None:
    found = gtids("md1011_gtid", EventSelection(start_gtids=GtidPosition.parse("0-1-5,4-1-1")))
    assert found[:3] == ["0-1-6", "4294967295-1-1", "4294967295-77-2"]


def test_files_in_the_wrong_order_are_an_error_in_strict_mode() -> None:
    window = {"start_gtids": GtidPosition.parse("0-1-1")}
    with pytest.raises(CodecError, match="sequence numbers do not grow"):
        chosen("md1011_gtid", EventSelection(**window), (1, 0))  # type: ignore[arg-type]
    assert chosen("md1011_gtid", EventSelection(**window, is_gtid_strict=False), (1, 0))  # type: ignore[arg-type]


def test_gtid_sets_of_mysql() -> None:
    only = EventSelection(include_gtids=GtidSet.parse(f"{SOURCE}:2-3"))
    assert gtids("my97_gtid", only) == [f"{SOURCE}:2", f"{SOURCE}:3"]
    others = gtids("my97_gtid", EventSelection(exclude_gtids=GtidSet.parse(f"{SOURCE}:1-5")))
    assert others[:2] == [f"{SOURCE}:6", "aaaaaaaa-bbbb-cccc-dddd-0096ab1aafee:9"]
    first = fixture_set("my97_gtid").binlogs[0]
    types = {
        event.header.type_code
        for event in walk([first[1]], file=first[0])
        if Selector(EventSelection(skips_gtids=True)).takes(event)
    }
    assert types.isdisjoint({EventType.GTID_LOG, EventType.PREVIOUS_GTIDS_LOG})
    assert EventType.QUERY in types
