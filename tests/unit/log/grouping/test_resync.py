"""Finding an event behind damage, and an event group from anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ChecksumAlgorithm
from binlane.log.grouping.resync import Found, find_event, find_group
from binlane.log.grouping.walk import walk
from tests.build import FORMAT, PLAIN_FORMAT, format_description, log
from tests.fixture_sets import fixture_set

HEADS = {
    FORMAT: format_description(),
    PLAIN_FORMAT: format_description(checksum=ChecksumAlgorithm.NONE),
}


def reader(data: bytes) -> Callable[[int], Iterator[bytes]]:
    """Gives the bytes from a position on, in pieces of no round size."""
    return lambda position: (data[at : at + 9973] for at in range(position, len(data), 9973))


def small_log(format_: Format) -> tuple[bytes, list[int]]:
    """A log of a few events, and where they stand."""
    data = log(*(XidEvent(xid=number) for number in range(5)), head=HEADS[format_])
    return data, [event.position for event in walk([data], file="f")]


@pytest.mark.parametrize("format_", HEADS)
def test_the_next_event_is_found_from_anywhere(format_: Format) -> None:
    data, positions = small_log(format_)
    for start in range(4, len(data)):
        following = [position for position in positions if position >= start]
        expected = Found(following[0]) if following else None
        assert find_event(reader(data), start, format_) == expected


@pytest.mark.parametrize("format_", HEADS)
@pytest.mark.parametrize("size", [1, 30, (1 << 20) - 7, 1_500_000])
def test_events_behind_garbage_are_found_with_their_shift(format_: Format, size: int) -> None:
    data, positions = small_log(format_)
    garbage = random.Random(size).randbytes(size)
    position = positions[2]
    damaged = data[:position] + garbage + data[position:]
    assert find_event(reader(damaged), position, format_) == Found(position + size, -size)
    missing = data[: positions[1]] + data[position:]
    lost = position - positions[1]
    assert find_event(reader(missing), positions[1], format_) == Found(positions[1], lost)
    assert find_event(reader(missing), positions[1], format_, shift=lost) == Found(
        positions[1], lost
    )


def test_nothing_is_found_where_nothing_is() -> None:
    for data in (b"", bytes(100), random.Random(1).randbytes(100_000), b"\xff" * 50_000):
        assert find_event(reader(data), 0, FORMAT) is None


def test_an_event_with_a_wrong_checksum_is_not_certain() -> None:
    data, positions = small_log(FORMAT)
    damaged = bytearray(data)
    damaged[positions[3] - 1] ^= 1
    assert find_event(reader(bytes(damaged)), positions[2], FORMAT) == Found(positions[3])


GTIDS = (GtidEvent, MysqlGtidEvent)


def log_of(name: str) -> tuple[bytes, Format, list[int]]:
    """Bytes, format, and where the event groups of a real file begin."""
    file, data = fixture_set(name).binlogs[0]
    events = list(walk([data], file=file))
    body = events[0].body
    assert isinstance(body, FormatDescriptionEvent)
    starts = [event.position for event in events if isinstance(event.body, GTIDS)]
    return data, body.format, starts


@pytest.mark.parametrize(
    "name",
    [
        *("md1011_types_string", "md118_txn", "md1011_checksum_none", "md118_bigcommit"),
        "my97_txn",
    ],
)
def test_from_every_byte_the_next_group_is_found(name: str) -> None:
    data, format_, starts = log_of(name)
    for position in range(4, len(data), max(13, len(data) // 300)):
        expected = next((start for start in starts if start >= position), None)
        assert find_group([data[position:]], position, format_) == expected


def test_pieces_of_any_size_give_the_same() -> None:
    data, format_, starts = log_of("md118_txn")
    chosen = random.Random(1)
    for _ in range(50):
        position, size = chosen.randrange(4, len(data)), chosen.randrange(1, 60)
        pieces = [data[start : start + size] for start in range(position, len(data), size)]
        expected = next((start for start in starts if start >= position), None)
        assert find_group(pieces, position, format_) == expected


def test_nothing_is_found_at_or_behind_the_end() -> None:
    data, format_, starts = log_of("md118_txn")
    for stop in (starts[3] - 1, starts[3]):
        assert find_group([data[starts[2] + 1 :]], starts[2] + 1, format_, stop=stop) is None
    position = starts[2] + 1
    assert find_group([data[position:]], position, format_, stop=starts[3] + 1) == starts[3]


def test_a_copy_of_a_group_inside_a_value_is_not_taken() -> None:
    data, format_, starts = log_of("md118_txn")
    # The bytes of a whole log as a value in another one: right checksums at wrong positions.
    moved = b"\0" * 7 + data
    assert find_group([moved], 4, format_) is None
    assert find_group([data[starts[0] :]], starts[0], format_) == starts[0]
