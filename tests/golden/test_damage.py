"""Damaged files: every fault is reported where it stands, and nothing after it is given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from binlane.codec.columns import decode_rows
from binlane.codec.event import Event
from binlane.codec.rows import RowsEvent
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import Flavor
from binlane.errors import CodecError
from binlane.grouping.table_maps import TableMaps
from binlane.grouping.walk import walk
from tests.fixture_sets import fixture_set

DAMAGED = fixture_set("corrupt_mariadb1011")
EXPECTED = DAMAGED.expected["files"]
# What the fixtures call no error, or give no position for.
POSITIONS: dict[str, int | None] = {
    "empty.bin": 0,
    "short_magic.bin": 0,
    "bad_magic.bin": 0,
    # Nothing but the magic, and a clean cut between two events, are whole files.
    "magic_only.bin": None,
    "cut_at_boundary.bin": None,
    "ok.bin": None,
    "fde_version9.bin": 4,
    "fde_alg7.bin": 4,
    # All checksums are right, but end_log_pos tells that an event is missing or too many.
    "missing_event.bin": 5411,
    "dup_event.bin": 5453,
    "no_table_map.bin": 6276,
}


def read(name: str) -> Iterator[Event]:
    """All events, with all their rows decoded."""
    maps = TableMaps()
    for event in walk([DAMAGED.files[name]], file=name):
        table_map = maps.feed(event, file=name)
        if table_map is not None and isinstance(event.body, RowsEvent):
            list(decode_rows(event.body, table_columns(table_map, flavor=Flavor.MARIADB)))
        yield event


def expected_position(name: str) -> int | None:
    if name in POSITIONS:
        return POSITIONS[name]
    match = re.search(r"(?:at|from|after) (\d+)", EXPECTED[name]["error"])
    assert match, name
    return int(match[1])


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_damage_is_reported_at_the_faulty_event(name: str) -> None:
    events: list[Event] = []
    position = expected_position(name)
    if position is None:
        events.extend(read(name))
    else:
        with pytest.raises(CodecError) as caught:
            events.extend(read(name))
        assert (caught.value.file, caught.value.position) == (name, position)
    if events:
        assert events[-1].next_position == (position or len(DAMAGED.files[name]))
    if not EXPECTED[name].get("crc_ok") and name not in {"missing_event.bin", "dup_event.bin"}:
        # `no_table_map` says how many events there are, not how many stand before its fault.
        assert name == "no_table_map.bin" or len(events) == EXPECTED[name]["events"]


def test_a_rows_event_without_its_table_map_is_damage_even_where_no_position_tells() -> None:
    data = DAMAGED.files["ok.bin"]
    events = list(walk([data], file="ok.bin"))
    rows = next(event for event in events if isinstance(event.body, RowsEvent))
    with pytest.raises(CodecError, match="no TABLE_MAP") as caught:
        TableMaps().feed(rows, file="ok.bin")
    assert caught.value.position == rows.position


@pytest.fixture(scope="module")
def small() -> bytes:
    """A file of a few transactions."""
    return fixture_set("md1011_live_copy").binlogs[0][1]


def read_bytes(data: bytes) -> tuple[list[Event], CodecError | None]:
    """The events before the first fault, and the fault."""
    events: list[Event] = []
    try:
        events.extend(walk([data], file="f"))
    except CodecError as error:
        return events, error
    return events, None


def test_a_file_cut_anywhere_gives_its_whole_events_and_says_so(small: bytes) -> None:
    whole, _ = read_bytes(small)
    ends = {4, *(event.next_position for event in whole)}
    for length in range(len(small)):
        events, error = read_bytes(small[:length])
        assert events == [event for event in whole if event.next_position <= length]
        assert (error is None) == (length in ends)
        if error is not None:
            last_end = events[-1].next_position if events else 4
            assert (error.file, error.position) == ("f", last_end if length > 4 else 0)


def test_no_flipped_bit_goes_unnoticed(small: bytes) -> None:
    whole = read_bytes(small)[0][:8]
    small = small[: whole[-1].next_position]
    # Bit 0 of the first event's flags says that the file is in use; its checksum leaves it out.
    in_use = (4 + 17) * 8
    for bit in range(len(small) * 8):
        damaged = bytearray(small)
        damaged[bit // 8] ^= 1 << bit % 8
        events, error = read_bytes(bytes(damaged))
        if bit == in_use:
            assert error is None
            continue
        assert error is not None
        assert events == whole[: len(events)]
        assert not events or events[-1].next_position <= bit // 8
