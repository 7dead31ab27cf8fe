"""Going on behind damage: what can be read is read, and what is left out is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from binlane.binlogs.cat.force import ForcedWalk, LeftOut
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GroupTracker
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set

SETS = ("corrupt_mariadb1011", "corrupt_mysql97")
CASES = [
    (name, file)
    for name in SETS
    for file in sorted(fixture_set(name).files)
    if file.endswith(".bin")
]
# Nothing can be read: no format is known, or nothing follows.
LOST = {
    "empty.bin",
    "short_magic.bin",
    "cut_in_fde.bin",
    "fde_alg7.bin",
    "fde_version9.bin",
}
# Damage that only decoding a body shows, which is done by whoever prints it.
DEEP = {"payload_broken.bin"}


def forced(data: bytes, file: str = "f") -> tuple[list[Event], list[LeftOut]]:
    left_out: list[LeftOut] = []

    def bytes_from(position: int) -> Iterator[bytes]:
        yield from (data[start : start + 777] for start in range(position, len(data), 777))

    walked = ForcedWalk(bytes_from, file=file, keys=None, report=left_out.append)
    return list(walked.events()), left_out


def until_damage(data: bytes) -> tuple[list[Event], CodecError | None]:
    events: list[Event] = []
    try:
        events.extend(walk([data], file="f"))
    except CodecError as error:
        return events, error
    return events, None


@pytest.mark.parametrize(("name", "file"), CASES)
def test_what_is_given_and_what_is_left_out_are_the_whole_file(name: str, file: str) -> None:
    data = fixture_set(name).files[file]
    before, error = until_damage(data)
    events, left_out = forced(data)
    assert events[: len(before)] == before
    assert bool(left_out) == (error is not None)
    if error is not None:
        assert (left_out[0].position, left_out[0].cause) == (error.position, error.message)
    if file in LOST:
        assert (events, left_out[-1].next_position) == ([], len(data))
        return
    parts = [(event.position, event.next_position) for event in events]
    parts += [(part.position, part.next_position) for part in left_out]
    ends = sorted([(4, 4), *parts])  # behind the magic
    assert [start for start, _ in ends[1:]] == [end for _, end in ends[:-1]]
    assert ends[0][0] in {0, 4}
    assert ends[-1][1] == len(data)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_reading_goes_on_with_a_group_of_the_whole_log(name: str, file: str) -> None:
    whole = {(e.header, e.body) for e in until_damage(fixture_set(name).files["ok.bin"])[0]}
    data = fixture_set(name).files[file]
    events, left_out = forced(data)
    behind = [event for event in events if left_out and event.position >= left_out[0].next_position]
    begins = [event for event in behind if GroupTracker().feed(event).begins]
    assert bool(begins) == bool(behind)
    if behind and file not in DEEP | {"maria_compressed_broken.bin"}:
        assert {(event.header, event.body) for event in behind} <= whole


def test_only_the_damaged_group_is_lost() -> None:
    data = fixture_set("corrupt_mariadb1011").files["flip_body.bin"]
    _, (part,) = forced(data)
    ok = until_damage(fixture_set("corrupt_mariadb1011").files["ok.bin"])[0]
    following = next(event for event in ok if event.position == part.next_position)
    assert following.header.type_code == EventType.GTID
    assert not [
        event
        for event in ok
        if part.position < event.position < part.next_position
        and event.header.type_code == EventType.GTID
    ]
    assert str(part) == (
        f"f:6328–{part.next_position} ({part.next_position - 6328} bytes): "  # noqa: RUF001  # a range
        "checksum is b1d4a8f6, the event's bytes give 93a1e8a3"
    )


@pytest.mark.parametrize("name", ["md1011_checksum_none", "my97_checksum_none"])
def test_a_log_without_checksums_is_found_again(name: str) -> None:
    _, data = fixture_set(name).binlogs[0]
    whole = until_damage(data)[0]
    victim = next(e for e in whole[len(whole) // 2 :] if e.header.type_name.startswith("WRITE"))
    damaged = bytearray(data)
    damaged[victim.position + 9 : victim.position + 13] = (5).to_bytes(4, "little")
    events, (part,) = forced(bytes(damaged))
    assert part.position == victim.position
    assert events == [
        event for event in whole if not part.position <= event.position < part.next_position
    ]
    assert 1 < len(whole) - len(events) < 6


def test_several_damaged_groups_are_each_left_out() -> None:
    _, data = fixture_set("md1011_format_row").binlogs[0]
    whole = until_damage(data)[0]
    victims = [event for event in whole if event.header.type_code == EventType.XID][2:30:9]
    damaged = bytearray(data)
    for event in victims:
        damaged[event.next_position - 1] ^= 0xFF
    events, left_out = forced(bytes(damaged))
    assert [part.position for part in left_out] == [event.position for event in victims]
    assert [part.next_position for part in left_out] == [event.next_position for event in victims]
    assert events == [event for event in whole if event not in victims]
