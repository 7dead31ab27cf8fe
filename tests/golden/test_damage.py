"""Damaged files: every fault is reported where it stands, and nothing after it is given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from binlane.errors import CodecError
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set

FLAVORS = {"corrupt_mariadb1011": Flavor.MARIADB, "corrupt_mysql97": Flavor.MYSQL}
CASES = [(name, file) for name in FLAVORS for file in sorted(fixture_set(name).expected["files"])]
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
}
# All checksums are right, but end_log_pos tells that an event is missing or too many.
MISSING_OR_DOUBLED: dict[tuple[str, str], int] = {
    ("corrupt_mariadb1011", "missing_event.bin"): 5411,
    ("corrupt_mariadb1011", "dup_event.bin"): 5453,
    ("corrupt_mariadb1011", "no_table_map.bin"): 6276,
    ("corrupt_mysql97", "missing_event.bin"): 6380,
    ("corrupt_mysql97", "dup_event.bin"): 6459,
    ("corrupt_mysql97", "no_table_map.bin"): 7524,
}


def read(name: str, file: str) -> Iterator[Event]:
    """All events of the file, with all that is inside of them and all their rows decoded."""
    maps = TableMaps()
    for event in expanded_all(walk([fixture_set(name).files[file]], file=file), file=file):
        table_map = maps.feed(event, file=file)
        if table_map is not None and isinstance(event.body, RowsEvent):
            try:
                list(decode_rows(event.body, table_columns(table_map, flavor=FLAVORS[name])))
            except CodecError as error:
                raise error.at(file, event.position) from None
        if not event.inner:
            yield event


def expected_position(name: str, file: str) -> int | None:
    if (name, file) in MISSING_OR_DOUBLED:
        return MISSING_OR_DOUBLED[name, file]
    if file in POSITIONS:
        return POSITIONS[file]
    match = re.search(
        r"(?:at|from|after) (\d+)", fixture_set(name).expected["files"][file]["error"]
    )
    assert match, file
    return int(match[1])


@pytest.mark.parametrize(("name", "file"), CASES)
def test_damage_is_reported_at_the_faulty_event(name: str, file: str) -> None:
    fixture = fixture_set(name)
    stated = fixture.expected["files"][file]
    events: list[Event] = []
    position = expected_position(name, file)
    if position is None:
        events.extend(read(name, file))
    else:
        with pytest.raises(CodecError) as caught:
            events.extend(read(name, file))
        assert (caught.value.file, caught.value.position) == (file, position)
        assert caught.value.hint or stated.get("crc_ok") or "fde" in file
    if file == "payload_broken.bin":
        # The carrier itself is sound; what is inside of it is not.
        assert events.pop().position == position
    if events:
        assert events[-1].next_position == (position or len(fixture.files[file]))
    if not stated.get("crc_ok") and (name, file) not in MISSING_OR_DOUBLED:
        assert len(events) == stated["events"]


def test_a_rows_event_without_its_table_map_is_damage_even_where_no_position_tells() -> None:
    data = fixture_set("corrupt_mariadb1011").files["ok.bin"]
    events = list(walk([data], file="ok.bin"))
    rows = next(event for event in events if isinstance(event.body, RowsEvent))
    with pytest.raises(CodecError, match="no TABLE_MAP") as caught:
        TableMaps().feed(rows, file="ok.bin")
    assert caught.value.position == rows.position


@pytest.fixture(scope="module", params=["md1011_live_copy", "my97_live_copy"])
def small(request: pytest.FixtureRequest) -> bytes:
    """A file of a few transactions."""
    return fixture_set(request.param).binlogs[0][1]


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
