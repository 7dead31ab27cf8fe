"""What a dump adds to the bytes of files; what it sends of them stands in tests/golden/dump."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, StatementError
from binlane.live.dump.lookup import gtid_position_at
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, decode_event, encode_event
from binlane.log.codec.heartbeat import HeartbeatEvent
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, PacketSplitter
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.query import AnnotateRowsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import ROWS_TYPES, ChecksumAlgorithm, EventType, Flavor, HeaderFlag
from binlane.log.grouping.walk import walk
from binlane.positions import GtidPosition
from tests.fixture_sets import fixture_set

FILE, DATA = fixture_set("md1011_netstream").binlogs[0]
HEAD = FileBeginning.decode(FILE, DATA)
EVENTS = list(walk([DATA], file=FILE))


def _events(packets: bytes) -> list[Event]:
    payloads = [packet.payload for packet in PacketSplitter().feed(packets)]
    assert all(payload[0] == 0 for payload in payloads)
    return [decode_event(payload[1:], HEAD.format) for payload in payloads]


def test_start_inside_a_file_moves_no_position() -> None:
    dump = ReplicaDump(ReplicaRequest(position=829, file=FILE))
    rotate, description = _events(dump.open_file(HEAD, position=829))
    assert rotate.body == RotateEvent(position=829, file=FILE)
    assert rotate.header.flags == HeaderFlag.ARTIFICIAL
    assert description.header.next_position == 0
    assert isinstance(description.body, FormatDescriptionEvent)
    assert description.body.created == 0
    events = _events(dump.feed(DATA[829:]))
    assert [event.header for event in events] == [
        event.header
        for event in EVENTS
        if event.position >= 829 and not isinstance(event.body, AnnotateRowsEvent)
    ]


def test_open_file_is_sent_as_closed() -> None:
    closed = HEAD.format_description
    in_use = replace(closed, header=replace(closed.header, flags=HeaderFlag.BINLOG_IN_USE))
    data = DATA[:4] + encode_event(in_use, None) + DATA[256:]
    head = FileBeginning.decode(FILE, data)
    assert head.format_description.header.flags == HeaderFlag.BINLOG_IN_USE
    _, description = PacketSplitter().feed(ReplicaDump(ReplicaRequest()).open_file(head))
    assert description.payload[1:] == DATA[4:256]


@given(st.integers(0, 6), st.lists(st.integers(1, len(DATA)), max_size=6))
def test_by_gtid_any_position_in_any_pieces(sequence: int, sizes: list[int]) -> None:
    state = GtidPosition.parse(f"0-1-{sequence}" if sequence else "")
    dump = ReplicaDump(ReplicaRequest(connect_state=state, flags=2))
    stream = dump.open_file(HEAD)
    pieces = iter(sizes)
    end = dump.position
    while dump.position < len(DATA):
        end = max(dump.position, min(end + next(pieces, len(DATA)), len(DATA)))
        stream += dump.feed(DATA[dump.position : end], size_bytes=len(DATA) - dump.position)
    stream += dump.position_after_skipped()
    sent = [event for event in _events(stream) if not event.header.flags & HeaderFlag.ARTIFICIAL]
    made = [event for event in _events(stream) if event.header.flags & HeaderFlag.ARTIFICIAL]
    gtids = [str(done) for event in sent if (done := _gtid_of(event))]
    assert gtids == [f"0-1-{number}" for number in range(sequence + 1, 7)]
    lists = [event.body for event in made if isinstance(event.body, GtidListEvent)]
    assert [body.position for body in lists] == ([state] if sequence else [])


def _gtid_of(event: Event) -> object:
    body = event.body
    gtid = getattr(body, "gtid", None)
    return gtid(event.header.server_id) if callable(gtid) else None


def test_heartbeat_tells_the_position() -> None:
    dump = ReplicaDump(ReplicaRequest())
    dump.open_file(HEAD)
    dump.feed(DATA[dump.position : 367])
    (event,) = _events(dump.heartbeat())
    assert event.body == HeartbeatEvent(file=FILE)
    assert (event.header.timestamp, event.header.next_position) == (0, 367)


def test_events_larger_than_a_frame_are_split() -> None:
    dump = ReplicaDump(ReplicaRequest(flags=2))
    opened = PacketSplitter().feed(dump.open_file(HEAD))
    query = next(event for event in EVENTS if event.header.type_code == EventType.ANNOTATE_ROWS)
    huge = Event(query.header, AnnotateRowsEvent(query=b"x" * (FRAME_PAYLOAD_MAX + 10)))
    data = encode_event(huge, HEAD.format)
    small = encode_event(query, HEAD.format)
    stream = dump.feed(data + small)
    sent = PacketSplitter().feed(stream)
    assert [packet.payload[1:] for packet in sent] == [data, small]
    assert [packet.sequence for packet in (*opened, *sent)] == [1, 2, 3, 5]


def test_damage_stops_the_dump() -> None:
    dump = ReplicaDump(ReplicaRequest())
    dump.open_file(HEAD)
    with pytest.raises(CodecError) as caught:
        dump.feed(bytes(19))
    assert (caught.value.file, caught.value.position) == (FILE, 256)


def test_error_is_numbered_behind_what_was_sent() -> None:
    dump = ReplicaDump(ReplicaRequest())
    dump.open_file(HEAD)
    (packet,) = PacketSplitter().feed(dump.error(StatementError("gone", errno=1236)))
    assert packet.sequence == 3
    assert ErrPacket.decode(packet.payload).errno == 1236


@pytest.mark.parametrize(
    "position, expected",
    [(4, ""), (256, ""), (325, ""), (367, "0-1-1"), (456, "0-1-1"), (1258, "0-1-4")],
)
def test_gtid_position_at_an_event(position: int, expected: str) -> None:
    assert gtid_position_at([DATA], position, file=FILE) == GtidPosition.parse(expected)


def test_gtid_position_at_the_ends_of_files() -> None:
    assert gtid_position_at([DATA], len(DATA), file=FILE) == GtidPosition.parse("0-1-6")
    file, data = fixture_set("md1011_netstream").binlogs[1]
    for position in (4, 256, 299, 339):
        assert gtid_position_at([data], position, file=file) == GtidPosition.parse("0-1-6")


@pytest.mark.parametrize("position", [0, 5, 326, len(DATA) + 1])
def test_no_gtid_position_between_events(position: int) -> None:
    assert gtid_position_at([DATA], position, file=FILE) is None


def _statement_of_several_rows_events() -> tuple[bytes, list[int]]:
    """A file whose first statement has three rows events, and where each of its events begins."""
    rows = next(event for event in EVENTS if event.header.type_code in ROWS_TYPES)
    start, end = rows.position, rows.position + rows.header.length
    data = DATA[:start] + DATA[start:end] * 3 + DATA[end:]
    return data, [start + number * rows.header.length for number in range(4)]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_mariadb_that_comes_back_inside_of_a_statement_gets_its_rows_first(number: int) -> None:
    data, begins = _statement_of_several_rows_events()
    request = ReplicaRequest(
        position=begins[number], file=FILE, server_id=7, heartbeat_period_s=9.0
    )
    dump = ReplicaDump(request)
    assert dump.open_file(HEAD, position=begins[number], inside_statement=True) == b""
    assert not dump.can_be_packed
    sent = dump.feed(data[begins[number] : begins[2]]) + dump.feed(data[max(begins[number:3]) :])
    splitter = PacketSplitter().feed(sent)
    assert [packet.sequence for packet in splitter] == list(range(1, len(splitter) + 1))
    *rows, rotate, description, _ = _events(sent)[: 3 - number + 3]
    assert all(event.header.type_code in ROWS_TYPES for event in rows)
    assert rotate.body == RotateEvent(position=begins[3], file=FILE)
    assert isinstance(description.body, FormatDescriptionEvent)
    assert description.body.created == 0
    assert dump.can_be_packed


@pytest.mark.parametrize(
    "request_",
    [
        ReplicaRequest(server_id=7),
        ReplicaRequest(server_id=7, heartbeat_period_s=9.0, flags=1),
        ReplicaRequest(heartbeat_period_s=9.0),
        ReplicaRequest(server_id=7, heartbeat_period_s=9.0, flavor=Flavor.MYSQL),
        ReplicaRequest(server_id=7, heartbeat_period_s=9.0, checksum=ChecksumAlgorithm.NONE),
    ],
    ids=["no replica", "not waiting", "a tool", "a MySQL", "other checksums"],
)
def test_all_others_get_the_beginning_of_a_dump_first(request_: ReplicaRequest) -> None:
    _, begins = _statement_of_several_rows_events()
    dump = ReplicaDump(request_)
    opened = PacketSplitter().feed(dump.open_file(HEAD, position=begins[1], inside_statement=True))
    types = [packet.payload[5] for packet in opened]
    assert types == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
