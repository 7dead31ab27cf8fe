"""Groups at another place: positions, lengths and MySQL's clock are those of the new file."""

from __future__ import annotations

import pytest

from binlane.codec.event import decode_event
from binlane.codec.format import Format
from binlane.codec.mysql_transaction import MysqlGtidEvent
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.placing import fitted, place_group
from binlane.grouping.walk import Walker
from tests.fixture_sets import fixture_set


def groups(name: str) -> tuple[Format, list[EventGroup]]:
    file, data = fixture_set(name).binlogs[0]
    walker = Walker([data], file=file)
    found = list(group_events(walker.events(), file=file))
    assert walker.format is not None
    return walker.format, [group for group in found if not group.is_control]


@pytest.mark.parametrize("name", ["my97_txn", "my97_gtid_tagged", "my97_compressed", "md1011_txn"])
def test_a_group_at_its_own_place_is_as_it_was(name: str) -> None:
    format_, found = groups(name)
    for group in found:
        whole = b"".join(event.raw or b"" for event in group.events)
        assert place_group(group.events, group.position, format_) == whole


@pytest.mark.parametrize("name", ["my97_txn", "my97_gtid_tagged"])
def test_a_shorter_transaction_says_so(name: str) -> None:
    format_, found = groups(name)
    for group in found:
        data = place_group(group.events[:-1], 4, format_, clock=1000)
        first = decode_event(data[: int.from_bytes(data[9:13], "little")], format_, position=4)
        before = group.events[0].body
        assert isinstance(first.body, MysqlGtidEvent)
        assert isinstance(before, MysqlGtidEvent)
        assert first.body.transaction_length == len(data)
        assert first.body.sequence_number == (before.sequence_number or 0) + 1000
        assert first.body.last_committed == (before.last_committed or 0) + 1000


def test_lengths_that_count_themselves_have_an_end() -> None:
    format_, found = groups("my97_txn")
    first = found[0].events[0]
    for size in range(150, 400):
        assert isinstance(first.body, MysqlGtidEvent)
        body = fitted(first.body, size, format_, clock=0)
        assert body.transaction_length == size + len(body.encode(format_))


def test_events_of_a_placed_group_end_where_they_say() -> None:
    format_, found = groups("md118_txn")
    data = place_group(found[3].events, 1000, format_)
    walker = Walker([data], file="x", position=1000, format_=format_)
    ends = [(event.header.next_position, event.next_position) for event in walker.events()]
    assert len(ends) == len(found[3].events)
    assert all(told == end for told, end in ends)
