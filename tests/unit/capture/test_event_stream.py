from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.capture.event_stream import EventStream
from binlane.codec.control import RotateEvent
from binlane.codec.event import Event, EventHeader, encode_event
from binlane.codec.format import Format
from binlane.codec.heartbeat import HeartbeatEvent
from binlane.codec.transaction import GtidListEvent, XidEvent
from binlane.codec.types import ChecksumAlgorithm, EventType, Flavor, HeaderFlag
from binlane.errors import ChecksumError, CodecError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.walk import walk
from binlane.positions import FilePosition, GtidPosition
from tests.dumps import dump_packets
from tests.fixture_sets import fixture_set

CRC = Format(
    server_version="10.11.19-MariaDB-log",
    flavor=Flavor.MARIADB,
    checksum=ChecksumAlgorithm.CRC32,
    post_header_lengths=b"",
)
PLAIN = replace(CRC, checksum=ChecksumAlgorithm.NONE)
END_OF_DUMP = b"\xfe"


def file_groups() -> list[EventGroup]:
    """The groups of the files that the dumps were taken from; their last event is no STOP yet."""
    return [
        group
        for name, data in fixture_set("md1011_netstream").binlogs
        for group in group_events(walk([data], file=name), file=name)
        if group.events[0].header.type_code != EventType.STOP
    ]


def feed_all(stream: EventStream, packets: list[bytes]) -> list[EventGroup]:
    return [
        group
        for packet in packets
        if not packet.startswith(END_OF_DUMP)
        for group in stream.feed(packet)
    ]


def bodies(groups: list[EventGroup]) -> list[tuple[str, list[tuple[int, str, object]]]]:
    return [
        (
            group.file,
            [(event.position, event.header.type_name, event.body) for event in group.events],
        )
        for group in groups
    ]


def packet(
    body: XidEvent | RotateEvent | HeartbeatEvent | GtidListEvent,
    type_code: EventType,
    *,
    next_position: int,
    flags: int = 0,
    length: int = 0,
) -> bytes:
    header = EventHeader(
        timestamp=1,
        type_code=type_code,
        server_id=1,
        length=length,
        next_position=next_position,
        flags=flags,
    )
    return b"\0" + encode_event(Event(header, body), CRC)


def rotate(file: str, position: int = 4) -> bytes:
    body = RotateEvent(position=position, file=file)
    return packet(body, EventType.ROTATE, next_position=0, flags=HeaderFlag.ARTIFICIAL)


def test_a_whole_dump_is_what_the_files_hold() -> None:
    stream = EventStream(CRC, None)
    groups = feed_all(stream, dump_packets("crc_heartbeat_annotate"))
    in_files = bodies(file_groups())
    in_dump = bodies(groups)
    # The source still wrote its files, so their FORMAT_DESCRIPTION differed in one flag only.
    assert in_dump == in_files
    assert stream.position == GtidPosition.parse("0-1-7")
    assert stream.file_position == FilePosition("binlog.000002", 612)
    assert stream.has_progressed


def test_a_dump_by_gtid_leaves_out_what_is_done() -> None:
    stream = EventStream(CRC, GtidPosition.parse("0-1-4"))
    groups = feed_all(stream, dump_packets("gtid_connect"))
    assert [str(group.gtid) for group in groups if group.gtid] == ["0-1-5", "0-1-6", "0-1-7"]
    first = next(group for group in groups if group.gtid)
    assert (first.position, first.next_position) == (1258, 1730)
    assert stream.position == GtidPosition.parse("0-1-7")


def test_a_dump_without_checksums_until_the_file_says_otherwise() -> None:
    stream = EventStream(PLAIN, None)
    groups = feed_all(stream, dump_packets("nochecksum_noannotate_nonblock"))
    assert [str(group.gtid) for group in groups if group.gtid] == [f"0-1-{n}" for n in range(1, 8)]


def test_artificial_events_move_the_position_and_are_no_groups() -> None:
    stream = EventStream(CRC, GtidPosition.parse("0-1-4"))
    packets = dump_packets("gtid_connect")
    assert feed_all(stream, packets[:1]) == []
    assert stream.file_position == FilePosition("binlog.000001", 4)
    control = feed_all(stream, packets[1:5])
    assert [group.events[0].header.type_name for group in control] == [
        "FORMAT_DESCRIPTION",
        "GTID_LIST",
        "BINLOG_CHECKPOINT",
    ]
    assert stream.file_position == FilePosition("binlog.000001", 1258)
    assert not stream.has_progressed


def test_from_the_beginning_of_a_file_its_gtid_list_says_the_position() -> None:
    stream = EventStream(CRC, None)
    packets = dump_packets("crc_heartbeat_annotate")
    second_file = [index for index, data in enumerate(packets) if data[5] == EventType.ROTATE][2]
    feed_all(stream, packets[second_file : second_file + 2])
    assert stream.position is None
    feed_all(stream, packets[second_file + 2 : second_file + 3])
    assert stream.position == GtidPosition.parse("0-1-6")


def test_events_without_a_position_follow_the_one_before() -> None:
    stream = EventStream(CRC, GtidPosition())
    feed_all(stream, [rotate("binlog.000009", 1000)])
    (group,) = feed_all(stream, [packet(XidEvent(xid=1), EventType.XID, next_position=0)])
    assert (group.position, group.next_position) == (1000, 1031)


def test_positions_go_on_beyond_four_gib() -> None:
    start = (1 << 32) + 500
    stream = EventStream(CRC, GtidPosition())
    feed_all(stream, [rotate("binlog.000009", start)])
    xid = packet(XidEvent(xid=1), EventType.XID, next_position=531)
    (group,) = feed_all(stream, [xid])
    assert (group.position, group.next_position) == (start, start + 31)
    # 100 bytes are left out, then the low 32 bits wrap again.
    stream = EventStream(CRC, GtidPosition())
    feed_all(stream, [rotate("binlog.000009", (1 << 32) - 100)])
    (group,) = feed_all(stream, [packet(XidEvent(xid=1), EventType.XID, next_position=31)])
    assert group.position == 1 << 32


def test_heartbeats_only_say_that_the_dump_works() -> None:
    stream = EventStream(CRC, GtidPosition())
    feed_all(stream, [rotate("binlog.000009", 1000)])
    beat = HeartbeatEvent(file="binlog.000009")
    assert feed_all(stream, [packet(beat, EventType.HEARTBEAT, next_position=1000)]) == []
    assert stream.has_progressed
    assert stream.file_position == FilePosition("binlog.000009", 1000)


def test_a_damaged_event_is_told_with_file_and_position() -> None:
    packets = dump_packets("crc_heartbeat_annotate")
    stream = EventStream(CRC, None)
    feed_all(stream, packets[:5])
    damaged = bytearray(packets[5])
    damaged[40] ^= 1
    with pytest.raises(ChecksumError) as caught:
        feed_all(stream, [bytes(damaged)])
    assert (caught.value.file, caught.value.position) == ("binlog.000001", 367)


def test_a_packet_that_holds_no_event() -> None:
    with pytest.raises(CodecError, match="begins with ef"):
        feed_all(EventStream(CRC, None), [b"\xef\0"])
