"""Whatever a binlog leaves out, a replica by GTID ends with all that is done, and nothing is made too early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.live import LiveBinlog
from binlane.live.dump.dump_sending import serve_dump
from binlane.live.dump.left_out import OmissionPlace, OmittedTransactions, empty_transactions
from binlane.live.dump.packing import Packer
from binlane.live.dump.raw_gtids import RawGtids
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.control import IncidentEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.placing import place
from binlane.log.grouping.walk import walk
from binlane.positions import FilePosition, GtidSet, MysqlGtid
from tests.fixture_sets import fixture_set

FILES = fixture_set("my97_gtid_tagged").binlogs
FILE, DATA = FILES[0]
HEAD = FileBeginning.decode(FILE, DATA)
EVENTS = list(walk([DATA], file=FILE))
MARKED = [event for event in EVENTS if event.header.type_code in (33, 42)]
HELD = [gtid for event in MARKED if isinstance(gtid := gtid_of(event), MysqlGtid)]
SOURCE = HELD[0].source_id
OUTSIDE = [MysqlGtid(SOURCE, number, tag) for tag in ("", "a", "away") for number in (90, 91, 300)]
DONE = GtidSet.of([*HELD, *OUTSIDE])
LAST = max(event.next_position for event in EVENTS if event.header.type_code != EventType.ROTATE)


def _sent(packets: bytes) -> list[Event]:
    payloads = [packet.payload for packet in PacketSplitter().feed(packets)]
    assert all(payload[0] == 0 for payload in payloads)
    return [decode_event(payload[1:], HEAD.format) for payload in payloads]


def _dump(has: GtidSet, *, server_id: int = 20) -> ReplicaDump:
    request = ReplicaRequest(flavor=Flavor.MYSQL, connect_state=has, server_id=server_id)
    dump = ReplicaDump(request)
    dump.open_file(HEAD)
    return dump


def _made(dump: ReplicaDump, done: GtidSet) -> list[Event]:
    return _sent(b"".join(dump.left_out(done, timestamp=1_700_000_000)))


@pytest.mark.parametrize("is_packed", [False, True])
@given(has=st.sets(st.sampled_from([*HELD, *OUTSIDE])))
def test_what_is_sent_and_made_is_what_a_replica_lacks(
    has: set[MysqlGtid], *, is_packed: bool
) -> None:
    dump = _dump(GtidSet.of(has))
    data = DATA[dump.position : LAST]
    if is_packed and dump.can_be_packed:
        packer = Packer()
        packer.room[: len(data)] = data
        packets = bytes(dump.pack(packer, len(data)))
    else:
        packets = dump.feed(data)
    made = _made(dump, DONE)
    gtids = [gtid for event in _sent(packets) + made if (gtid := gtid_of(event))]
    assert len(gtids) == len(set(gtids))
    assert set(gtids) == {*HELD, *OUTSIDE} - has
    assert not _made(dump, DONE)


def test_transactions_are_whole_and_say_where_the_replica_stands() -> None:
    dump = _dump(GtidSet())
    dump.feed(DATA[dump.position : LAST])
    *events, rotate = _made(dump, DONE)
    assert len(events) == 3 * len(OUTSIDE)
    for first, begin, commit in zip(events[::3], events[1::3], events[2::3], strict=True):
        assert isinstance(first.body, MysqlGtidEvent)
        lengths = [event.header.length for event in (first, begin, commit)]
        assert first.body.transaction_length == sum(lengths)
        assert first.body.immediate_server_version == 90704
        texts = [
            event.body.query for event in (begin, commit) if isinstance(event.body, QueryEvent)
        ]
        assert texts == [b"BEGIN", b"COMMIT"]
        assert {event.header.next_position for event in (first, begin, commit)} == {LAST}
    assert rotate.body == RotateEvent(position=LAST, file=FILE)
    assert dump.position == LAST


@given(st.sets(st.integers(1, 1 << 62), min_size=1, max_size=5), st.sampled_from(["", "t"]))
def test_events_are_those_of_the_codec(numbers: set[int], tag: str) -> None:
    left = GtidSet.of(MysqlGtid(SOURCE, number, tag) for number in numbers)
    where = OmissionPlace(position=1000, server_id=1, timestamp=7, format=HEAD.format)
    reader = RawGtids()
    reader.format = HEAD.format
    found = []
    for first, *_ in empty_transactions(left, where):
        event = decode_event(first, HEAD.format)
        found.append(reader.at(event.header.type_code, first, 0))
        assert gtid_of(event) == found[-1]
    assert GtidSet.of(found) == left


@given(st.permutations(MARKED))
def test_raw_gtids_are_those_that_are_decoded(events: Sequence[Event]) -> None:
    data, offsets = bytearray(), []
    for event in events:
        offsets.append(len(data))
        data += event.raw or b""
    reader = RawGtids()
    reader.format = HEAD.format
    runs = reader.runs(np.frombuffer(data, np.uint8), np.array(offsets))
    assert GtidSet.of(runs) == GtidSet.of(HELD)


def test_bytes_without_gtids_hold_none() -> None:
    assert RawGtids().runs(np.zeros(100, np.uint8), np.zeros(0, np.int64)) == []


def test_nothing_is_made_for_whoever_keeps_no_gtids() -> None:
    by_file = ReplicaDump(ReplicaRequest(flavor=Flavor.MYSQL, server_id=20))
    by_file.open_file(HEAD)
    for dump in (by_file, _dump(GtidSet(), server_id=0)):
        dump.feed(DATA[dump.position : LAST])
        assert not _made(dump, DONE)


def test_nothing_is_made_behind_an_incident_that_tells_of_a_gap() -> None:
    header = EventHeader(
        timestamp=1, type_code=EventType.INCIDENT, server_id=1, length=0, next_position=0, flags=0
    )
    incident = Event(header, IncidentEvent(number=1, message=b"a gap"))
    dump = _dump(GtidSet())
    dump.feed(DATA[dump.position : LAST])
    dump.feed(place(incident, LAST, HEAD.format))
    assert not _made(dump, DONE)
    # What is left out behind it is told of again.
    later = GtidSet.of([MysqlGtid(SOURCE, 1000)])
    assert len(_made(dump, DONE.union(later))) == 3 + 1


def test_an_incident_alone_is_sent_to_whoever_has_the_group_before_it() -> None:
    last = EVENTS[-2] if EVENTS[-1].header.type_code == EventType.ROTATE else EVENTS[-1]
    dump = _dump(GtidSet.of(HELD))
    assert not [each for each in _sent(dump.feed(DATA[dump.position : LAST])) if gtid_of(each)]
    header = replace(last.header, type_code=EventType.INCIDENT, flags=0)
    incident = Event(header, IncidentEvent(number=1, message=b"a gap"))
    (sent,) = _sent(dump.feed(place(incident, LAST, HEAD.format)))
    assert isinstance(sent.body, IncidentEvent)


def test_a_place_is_reached_once_and_in_order() -> None:
    def done(*numbers: int) -> GtidSet:
        return GtidSet.of(MysqlGtid(SOURCE, number) for number in numbers)

    left_out = OmittedTransactions(done(2, 9))
    left_out.enter(done(1), HEAD.format)
    assert left_out.reach(done(1, 2, 3)) == done(3)
    assert left_out.reach(done(1, 2, 3, 4)) == done(4)
    assert not left_out.reach(done(1, 2, 3, 4))
    # What the replica has from elsewhere is not made when the log comes to it.
    assert left_out.reach(done(1, 2, 3, 4, 9, 10)) == done(10)


class Binlog:
    """The recorded files as a binlog that leaves something out."""

    name = "binlog"

    def __init__(self, directory: Path) -> None:
        for name, data in FILES:
            (directory / name).write_bytes(data)
        self.directory = directory
        self.position = GtidSet.of(OUTSIDE)
        for name, data in FILES:
            found = (gtid_of(event) for event in walk([data], file=name))
            held = GtidSet.of(gtid for gtid in found if isinstance(gtid, MysqlGtid))
            self.position = self.position.union(held)

    @property
    def published(self) -> Published:
        *closed, last = (
            BinlogFile(
                directory=self.directory,
                name=name,
                size_bytes=len(data),
                begin_gtids=str(FileBeginning.decode(name, data).done),
                flavor="mysql",
            )
            for name, data in FILES
        )
        return Published(closed=tuple(closed), last=last, position=self.position)


def _places(path: Path, position: int, end: int) -> list[tuple[int, GtidSet]]:
    """As an index has them that has a point behind every group."""
    found: list[tuple[int, GtidSet]] = []
    data, done = dict(FILES)[path.name], GtidSet()
    for event in walk([data], file=path.name):
        gtid = gtid_of(event)
        if isinstance(gtid, MysqlGtid):
            if position < event.position <= end:
                found.append((event.position, done.union(GtidSet.of(OUTSIDE[: len(found)]))))
            done = done.advance(gtid)
        elif not done and event.header.type_code == EventType.PREVIOUS_GTIDS_LOG:
            done = FileBeginning.decode(path.name, data).done  # type: ignore[assignment]  # MySQL's
    return found


@pytest.mark.parametrize("has_index", [False, True])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(has=st.sets(st.sampled_from([*HELD, *OUTSIDE])))
def test_a_dump_tells_all_that_is_done(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    has: set[MysqlGtid],
    *,
    has_index: bool,
) -> None:
    if has_index:
        monkeypatch.setattr("binlane.live.dump.dump_sending._places", _places)
    binlog = Binlog(tmp_path_factory.mktemp("log"))
    packets = bytearray()

    async def send(data: bytes | memoryview) -> None:
        packets.extend(data)

    request = ReplicaRequest(
        flavor=Flavor.MYSQL, flags=1, connect_state=GtidSet.of(has), server_id=20
    )
    asyncio.run(serve_dump(request, LiveBinlog(binlog), send))
    gtids = [
        gtid for event in _sent(bytes(packets)) if isinstance(gtid := gtid_of(event), MysqlGtid)
    ]
    assert len(gtids) == len(set(gtids))
    assert GtidSet.of([*gtids, *has]) == binlog.position
    assert binlog.published.end == FilePosition(FILES[-1][0], len(FILES[-1][1]))
