from __future__ import annotations

import random

import pytest

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.format import Format
from binlane.codec.transaction import GtidEvent
from binlane.grouping.walk import walk
from binlane.spark.resync import find_group
from tests.fixture_sets import fixture_set


def log_of(name: str) -> tuple[bytes, Format, list[int]]:
    """Bytes, format, and where the event groups of a real file begin."""
    file, data = fixture_set(name).binlogs[0]
    events = list(walk([data], file=file))
    body = events[0].body
    assert isinstance(body, FormatDescriptionEvent)
    starts = [event.position for event in events if isinstance(event.body, GtidEvent)]
    return data, body.format, starts


@pytest.mark.parametrize(
    "name", ["md1011_types_string", "md118_txn", "md1011_checksum_none", "md118_bigcommit"]
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
