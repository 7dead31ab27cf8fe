"""Groups at another place: positions, lengths and MySQL's clock are those of the new file."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.routing.routed_group import RoutedGroup
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import read_groups
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import decode_event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import fitted, place_group
from binlane.log.grouping.walk import Walker
from binlane.positions import GtidSet
from tests.fixture_sets import fixture_set
from tests.groups import sync_all
from tests.routed_files import definitions


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


@pytest.mark.parametrize("name", ["my97_txn", "my97_gtid_tagged"])
def test_nothing_is_applied_beside_a_transaction_of_statements(name: str, tmp_path: Path) -> None:
    _, found = groups(name)
    (first,) = (one.events[0].body for one in group_events_of(name)[:1])
    assert isinstance(first, FormatDescriptionEvent)
    (definition,) = definitions("LOG ALL, FORMAT='STATEMENT'")
    with Store.open(tmp_path, StoreSettings()) as store:
        binlog = store.create_binlog(
            definition,
            start=GtidSet(),
            format_description=first,
            server_id=1,
            timestamp=0,
        )
        for number, group in enumerate(found):
            made = RoutedGroup(gtid=group.gtid, events=group.events, is_alone=number % 3 == 1)
            binlog.append(made)
        sync_all(store)
        clocks = [
            (group.events[0].body.last_committed, group.events[0].body.sequence_number)
            for group in read_groups([file.path for file in binlog.files()])
            if isinstance(group.events[0].body, MysqlGtidEvent)
        ]
    assert len(clocks) == len(found)
    for number, (last_committed, sequence_number) in enumerate(clocks):
        assert last_committed is not None
        assert sequence_number is not None
        earlier = [one or 0 for _, one in clocks[:number]]
        assert all(one < sequence_number for one in earlier)
        if number % 3 == 1:
            assert last_committed == sequence_number - 1
        alone = [one or 0 for _, one in clocks[1:number:3]]
        assert all(one <= last_committed for one in alone)


def group_events_of(name: str) -> list[EventGroup]:
    file, data = fixture_set(name).binlogs[0]
    return list(group_events(Walker([data], file=file).events(), file=file))
