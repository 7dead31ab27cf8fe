"""What a MySQL replica has already is left out, in whatever order and of whatever kind its GTIDs are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.walk import walk
from binlane.positions import GtidSet, MysqlGtid
from tests.fixture_sets import fixture_set

TAGGED = fixture_set("my97_gtid_tagged").binlogs
GTIDS = [
    gtid
    for file, data in TAGGED
    for event in walk([data], file=file)
    if isinstance(gtid := gtid_of(event), MysqlGtid)
]


def _sent(done: GtidSet, *, flags: int = 0) -> list[Event]:
    """What a dump of all files sends."""
    dump = ReplicaDump(ReplicaRequest(flavor=Flavor.MYSQL, flags=flags, connect_state=done))
    stream = b""
    for file, data in TAGGED:
        head = FileBeginning.decode(file, data)
        stream += dump.open_file(head)
        stream += dump.feed(data[dump.position :])
    stream += dump.position_after_skipped()
    payloads = [packet.payload for packet in PacketSplitter().feed(stream)]
    assert all(payload[0] == 0 for payload in payloads)
    return [decode_event(payload[1:], head.format) for payload in payloads]


def test_the_log_has_tagged_and_plain_gtids() -> None:
    assert {bool(gtid.tag) for gtid in GTIDS} == {True, False}


@given(st.sets(st.sampled_from(GTIDS)))
def test_groups_that_a_replica_has_are_left_out(done: set[MysqlGtid]) -> None:
    sent = _sent(GtidSet.of(done))
    assert [gtid_of(event) for event in sent if gtid_of(event)] == [
        gtid for gtid in GTIDS if gtid not in done
    ]
    # Nothing of a group goes without its first event.
    ends = [event.header.next_position for event in sent]
    everything = [event.header.next_position for event in _sent(GtidSet())]
    assert len(everything) - len(ends) >= len(done) or not done


@pytest.mark.parametrize("flags, kind", [(0, HeartbeatEvent), (2, HeartbeatV2Event)])
def test_a_heartbeat_tells_where_the_replica_stands(
    flags: int, kind: type[HeartbeatEvent | HeartbeatV2Event]
) -> None:
    file, data = TAGGED[-1]
    last = list(walk([data], file=file))[-1]
    sent = _sent(GtidSet.of(GTIDS), flags=flags)
    told = [event for event in sent if isinstance(event.body, kind)]
    assert isinstance(told[-1].body, HeartbeatEvent | HeartbeatV2Event)
    assert told[-1].body.file == file
    assert told[-1].header.next_position == last.next_position
    assert not [event for event in sent if gtid_of(event)]


def test_nothing_is_told_where_nothing_was_left_out() -> None:
    assert not [event for event in _sent(GtidSet()) if isinstance(event.body, HeartbeatEvent)]
