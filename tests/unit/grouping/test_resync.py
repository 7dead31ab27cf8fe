"""Finding the way back into a damaged log."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from binlane.codec.format import Format
from binlane.codec.transaction import XidEvent
from binlane.codec.types import ChecksumAlgorithm
from binlane.grouping.resync import Found, find_event
from binlane.grouping.walk import walk
from tests.build import FORMAT, PLAIN_FORMAT, format_description, log

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
