"""The index of groups beside a file: what it says is so, and what it cannot say does no harm."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.group_index import POINT_BYTES, GroupIndex
from binlane.binlogs.store.group_points import group_index
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from binlane.live.dump.dump_sending import serve_dump
from binlane.live.dump.lookup import gtid_position_at, gtid_position_in
from binlane.live.dump.request import ReplicaRequest
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import HeaderFlag
from binlane.log.grouping.placing import place_group
from binlane.positions import Gtid, GtidPosition
from tests.groups import (
    TIMESTAMP,
    add,
    create,
    kill,
    real_groups,
    sequences,
    stored,
    transaction,
)

LAST = 90
SIZE = 200_000
NON_BLOCK = 1


def fill(store: Store) -> Binlog:
    """A binlog with one file of some 18 MB, each group as large as another."""
    binlog = create(store)
    add(binlog, [transaction(n, size=SIZE) for n in range(1, LAST + 1)])
    return binlog


def index_path(data_dir: Path, number: int = 1) -> Path:
    return data_dir / f"groups/orders/orders.{number:06}.idx"


def index_at(path: Path) -> GroupIndex:
    index = GroupIndex.read(path)
    assert index
    return index


def dumped(binlog: Binlog, state: str) -> list[Event]:
    """What a dump by GTID that does not wait sends."""
    sent: list[bytes] = []

    async def send(packets: bytes | memoryview) -> None:
        sent.append(bytes(packets))

    async def dump() -> None:
        request = ReplicaRequest(connect_state=GtidPosition.parse(state), flags=NON_BLOCK)
        await serve_dump(request, LiveBinlog(binlog), send)

    asyncio.run(dump())
    payloads = [packet.payload for packet in PacketSplitter().feed(b"".join(sent))]
    assert all(payload[0] == 0 for payload in payloads)
    return [decode_event(payload[1:], binlog.format) for payload in payloads]


def told(events: list[Event]) -> tuple[list[Event], list[GtidPosition]]:
    """The events of the file, and what the dump said that the replica has."""
    made = [event for event in events if event.header.flags & HeaderFlag.ARTIFICIAL]
    lists = [event.body.position for event in made if isinstance(event.body, GtidListEvent)]
    return [event for event in events if event not in made], lists


def test_points_are_where_groups_end_and_tell_what_is_before(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        add(binlog, groups := real_groups("md1011_txn"))
        last = groups[-1].gtid
        assert isinstance(last, Gtid)
        first = last.sequence + 1
        add(binlog, [transaction(first + n, size=SIZE) for n in range(LAST)])
        path = binlog.files()[0].path
        ends = {group.next_position: str(group.gtid) for group in stored(binlog)}
        index = index_at(path)
        assert len(index.points) == binlog.size_bytes // POINT_BYTES
        for point in index.points:
            assert point.gtids == ends[point.position]
        for before, after in pairwise((index.start, *(p.position for p in index.points))):
            assert POINT_BYTES <= after - before <= POINT_BYTES + 2 * SIZE
        assert all(name.startswith("shop.") for name in index.points[0].tables or ("",))
        assert index.points[0].tables
        assert (index.points[0].last_timestamp or 0) > TIMESTAMP
        assert index.points[1].tables == ()
        assert index.points[1].first_timestamp == index.points[1].last_timestamp == TIMESTAMP
    assert not list(verify([tmp_path]))


def test_a_dump_by_gtid_sends_the_same_with_and_without_index(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        index = index_at(binlog.files()[0].path)
        for sequence in (0, 1, 20, 21, 22, 43, 70, LAST - 1, LAST):
            state = f"0-1-{sequence}" if sequence else ""
            events, positions = told(dumped(binlog, state))
            index_path(tmp_path).rename(tmp_path / "away")
            (tmp_path / "groups").rename(tmp_path / "no groups")
            (tmp_path / "groups").write_text("")
            assert told(dumped(binlog, state)) == (events, positions)
            (tmp_path / "groups").unlink()
            (tmp_path / "no groups").rename(tmp_path / "groups")
            (tmp_path / "away").rename(index_path(tmp_path))
            assert positions == ([GtidPosition.parse(state)] if sequence else [])
        assert len(index.points) == 4


def test_the_position_at_a_place_is_the_same_with_and_without_index(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        path = binlog.files()[0].path
        ends = [group.next_position for group in stored(binlog)]
        point = index_at(path).points[2].position
        for position in (4, ends[0], ends[30], ends[30] + 1, point, point + 1, ends[-1]):
            expected = gtid_position_at(open_chunks(path), position, file=path.name)
            assert gtid_position_in(path, position) == expected


def garbage(index: Path) -> None:
    index.write_bytes(bytes(range(256)) * 9)


def torn(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:-30])


def empty(index: Path) -> None:
    index.write_bytes(b"")


def altered(index: Path) -> None:
    index.write_bytes(index.read_bytes().replace(b"0-1-2", b"0-1-9"))


def of_another_log(index: Path) -> None:
    directory = index.parent.parent.parent / "other"
    with Store.open(directory) as store:
        binlog = create(store)
        add(binlog, [transaction(n, size=SIZE + 7) for n in range(500, 500 + LAST)])
        shutil.copy(index_path(directory), index)


@pytest.mark.parametrize("damage", [garbage, torn, empty, altered, of_another_log])
def test_an_index_that_does_not_fit_does_no_harm(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        expected = told(dumped(binlog, "0-1-50"))
        damage(index_path(tmp_path))
        assert told(dumped(binlog, "0-1-50")) == expected
    with Store.open(tmp_path) as store:
        binlog = store.binlogs["orders"]
        add(binlog, [transaction(n, size=SIZE) for n in range(LAST + 1, 2 * LAST)])
        events, _ = told(dumped(binlog, f"0-1-{LAST + 30}"))
        assert len(events) == 2 + 4 * (LAST - 31)
    assert not list(verify([tmp_path]))


def test_a_closed_file_without_index_gets_one(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        binlog.rotate(TIMESTAMP)
        file = binlog.files()[0]
        written = index_at(file.path)
        index_path(tmp_path).unlink()
        made = group_index(file.path, size_bytes=POINT_BYTES * 3)
        assert made == index_at(file.path)
        assert [p.position for p in made.points] == [p.position for p in written.points]
        assert [p.gtids for p in made.points] == [p.gtids for p in written.points]
        assert [p.check for p in made.points] == [p.check for p in written.points]


def test_points_behind_what_a_crash_left_are_forgotten(tmp_path: Path) -> None:
    settings = StoreSettings(watermark_interval_s=3600)
    store = Store.open(tmp_path, settings)
    path = fill(store).files()[0].path
    kill(store)
    index = index_at(path)
    cut = index.points[1].position + 10
    with path.open("r+b") as stream:
        stream.truncate(cut)
    with Store.open(tmp_path, settings) as store:
        binlog = store.binlogs["orders"]
        assert index_at(path).points == index.points[:2]
        add(binlog, [transaction(n, size=SIZE + n) for n in range(1, LAST + 1)])
        assert sequences(stored(binlog)) == list(range(1, LAST + 1))
        again = index_at(path).points
        assert again[:2] == index.points[:2]
        assert again[2].tables is None
        assert again[3].tables == ()
        assert all(index_at(path).at(point.position) == point for point in again)


def test_groups_of_which_only_bytes_are_known_have_no_times(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        for n in range(1, 60):
            events = transaction(n, size=SIZE).events
            binlog.take(BinlogPart(place_group(events, binlog.size_bytes, binlog.format), groups=1))
            binlog.advance_to(GtidPosition.parse(f"0-1-{n}"))
            binlog.sync()
        index = index_at(binlog.files()[0].path)
        assert len(index.points) == 2
        assert {point.first_timestamp for point in index.points} == {None}
        assert index.older(TIMESTAMP + 1) is None
        point = index.behind(GtidPosition.parse("0-1-50"))
        assert point == index.points[-1]
        assert sequences(stored(binlog)) == list(range(1, 60))


def test_points_are_found_by_time(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        index = index_at(fill(store).files()[0].path)
        assert index.older(TIMESTAMP) is None
        assert index.older(TIMESTAMP + 1) == index.points[-1]


def test_indexes_go_with_their_files(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        binlog.rotate(TIMESTAMP)
        add(binlog, [transaction(LAST + n, size=SIZE) for n in range(1, 30)])
        assert index_path(tmp_path, 2).exists()
        binlog.purge("orders.000002")
        assert not index_path(tmp_path, 1).exists()
        store.drop_binlog("orders")
        assert not (tmp_path / "groups/orders").exists()


def test_a_store_that_cannot_write_indexes_works(tmp_path: Path) -> None:
    (tmp_path / "groups").write_text("in the way")
    with Store.open(tmp_path) as store:
        binlog = fill(store)
        assert sequences(stored(binlog)) == list(range(1, LAST + 1))
        assert len(told(dumped(binlog, "0-1-80"))[0]) == 2 + 4 * 10
