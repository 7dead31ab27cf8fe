"""What a source sends → groups: as bytes by kernels, and by reference, which must be the same."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import BinlaneError, ChecksumError, CodecError, PeerError
from binlane.live.capture import raw_stream
from binlane.live.capture.event_stream import EventStream
from binlane.live.capture.raw_stream import RawStream
from binlane.log.codec.control import RotateEvent
from binlane.log.codec.event import Event, EventHeader, encode_event
from binlane.log.codec.format import Format
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.packets.framing import frames
from binlane.log.codec.packets.replies import ErrPacket
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor, HeaderFlag
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import LargeGroup, RawRun
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import Build, builds, running
from binlane.positions import FilePosition, GtidPosition, Position
from tests.build import event
from tests.dumps import dump_packets
from tests.fixture_sets import fixture_set

PEER = "mariadb://binlane@127.0.0.1:3306"
CRC = Format(
    server_version="10.11.19-MariaDB-log",
    flavor=Flavor.MARIADB,
    checksum=ChecksumAlgorithm.CRC32,
    post_header_lengths=b"",
)
PLAIN = replace(CRC, checksum=ChecksumAlgorithm.NONE)
END_OF_DUMP = b"\xfe"
Stream = RawStream | EventStream
Given = tuple[str, str, int, int, list[bytes | None]]
"""GTID, file, where it begins and ends, and the bytes of its events."""


class Spilled:
    """A group that is put aside in memory."""

    def __init__(self, kept: list[Spilled]) -> None:
        self.data = bytearray()
        self.is_open = True
        kept.append(self)

    def write(self, data: memoryview) -> None:
        self.data += data

    def chunks(self) -> Iterator[bytes]:
        assert self.is_open
        yield bytes(self.data)

    def close(self) -> None:
        self.is_open = False


class Spill:
    def __init__(self) -> None:
        self.kept: list[Spilled] = []

    def begin(self) -> Spilled:
        return Spilled(self.kept)


Maker = Callable[[Format, Position | None], Stream]


def raw(format_: Format, position: Position | None, **limits: int) -> RawStream:
    return RawStream(format_, position, peer=PEER, spill=Spill(), **limits)


def by_reference(format_: Format, position: Position | None) -> EventStream:
    return EventStream(format_, position, peer=PEER)


BOTH = pytest.mark.parametrize("make", [raw, by_reference])


def received(stream: Stream, data: bytes) -> Iterator[Given]:
    """What comes of some bytes, decoded as long as it is good."""
    while data:
        room = stream.room
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        for item in stream.feed(count, has_more=bool(data)):
            if isinstance(item, RawRun):
                groups = [item.group(number) for number in range(item.count)]
                assert [str(group.gtid) for group in groups] == [
                    str(item.gtid(number)) for number in range(item.count)
                ]
                assert stream.file_position == FilePosition(item.file, groups[-1].next_position)
            elif isinstance(item, LargeGroup):
                (groups,) = [list(group_events(item.events(), file=item.file))]
                assert (item.end, item.gtid) == (groups[0].next_position, groups[0].gtid)
                assert item.timestamp == groups[0].timestamp
            else:
                groups = [item]
            yield from map(given_group, groups)


def given_group(group: EventGroup) -> Given:
    raw_bytes = [event.raw for event in group.events]
    return str(group.gtid), group.file, group.position, group.next_position, raw_bytes


def packets_of(name: str) -> list[bytes]:
    return [data for data in dump_packets(name) if not data.startswith(END_OF_DUMP)]


def gtids(groups: Iterable[Given]) -> list[str]:
    return [group[0] for group in groups if group[0] != "None"]


DUMPS = [
    ("crc_heartbeat_annotate", CRC, None),
    ("gtid_connect", CRC, GtidPosition.parse("0-1-4")),
    ("nochecksum_noannotate_nonblock", PLAIN, None),
]


@BOTH
def test_a_whole_dump_is_what_the_files_hold(make: Maker) -> None:
    stream = make(CRC, None)
    given_groups = list(received(stream, frames(packets_of("crc_heartbeat_annotate"), 1)))
    in_files = [
        given_group(group)
        for name, data in fixture_set("md1011_netstream").binlogs
        for group in group_events(walk([data], file=name), file=name)
        if group.gtid is not None
    ]
    assert [group for group in given_groups if group[0] != "None"] == in_files
    heads = [group[1:3] for group in given_groups if group[0] == "None"]
    assert heads == [("binlog.000001", 4), ("binlog.000002", 4)]
    assert stream.position == GtidPosition.parse("0-1-7")
    assert stream.first_position == GtidPosition()
    assert stream.has_progressed
    assert stream.created


@BOTH
def test_a_source_that_turns_to_where_no_file_reaches_is_told(make: Maker) -> None:
    body = RotateEvent(position=1 << 63, file="b.000001")
    turn = event(body, type_code=EventType.ROTATE, flags=HeaderFlag.ARTIFICIAL)
    with pytest.raises(CodecError, match="which no file has"):
        list(received(make(PLAIN, None), frames([b"\0" + encode_event(turn, PLAIN)], 1)))


@pytest.mark.parametrize(("name", "format_", "position"), DUMPS)
def test_both_ways_give_the_same(name: str, format_: Format, position: Position | None) -> None:
    data = frames(packets_of(name), 1)
    streams = raw(format_, position), by_reference(format_, position)
    one, other = (list(received(stream, data)) for stream in streams)
    assert one == other
    assert streams[0].position == streams[1].position
    assert streams[0].created == streams[1].created


@given(st.lists(st.integers(0, 5000), max_size=12), st.sampled_from(DUMPS))
def test_any_chunking_of_a_dump_gives_the_same_groups(
    cuts: list[int], dump: tuple[str, Format, Position | None]
) -> None:
    name, format_, position = dump
    data = frames(packets_of(name), 1)
    whole = list(received(raw(format_, position), data))
    stream = raw(format_, position)
    places = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    in_pieces = [
        group for start, end in pairwise(places) for group in received(stream, data[start:end])
    ]
    assert in_pieces == whole


# Not by numba now, which would compile `scan` for a minute.
@pytest.mark.parametrize("build", [build for build in builds() if build is not Build.JIT])
def test_all_forms_of_the_kernels_give_the_same(build: Build) -> None:
    data = frames(packets_of("crc_heartbeat_annotate"), 1)
    wanted = list(received(by_reference(CRC, None), data))
    with running(build):
        assert list(received(raw(CRC, None), data)) == wanted


def test_table_maps_are_forgotten_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_stream, "TABLES_MAX", 0)
    data = frames(packets_of("crc_heartbeat_annotate"), 1)
    wanted = list(received(by_reference(CRC, None), data))
    assert list(received(raw(CRC, None), data)) == wanted


@BOTH
def test_a_dump_by_gtid_leaves_out_what_is_done(make: Maker) -> None:
    stream = make(CRC, GtidPosition.parse("0-1-4"))
    groups = list(received(stream, frames(packets_of("gtid_connect"), 1)))
    assert gtids(groups) == ["0-1-5", "0-1-6", "0-1-7"]
    first = next(group for group in groups if group[0] != "None")
    assert first[2:4] == (1258, 1730)


@BOTH
def test_groups_before_a_fault_in_the_same_read_are_given(make: Maker) -> None:
    purged = ErrPacket(errno=1236, message="Could not find the log file").encode()
    stream = make(CRC, GtidPosition.parse("0-1-4"))
    groups: list[Given] = []
    with pytest.raises(PeerError) as caught:
        groups.extend(received(stream, frames([*packets_of("gtid_connect"), purged], 1)))
    assert caught.value.errno == 1236
    assert "purged" in caught.value.hint
    assert gtids(groups) == ["0-1-5", "0-1-6", "0-1-7"]
    assert stream.position == GtidPosition.parse("0-1-7")


@BOTH
def test_a_source_that_shuts_down_ends_the_dump(make: Maker) -> None:
    stream = make(CRC, GtidPosition())
    assert list(received(stream, frames([b"\xfe\0\0\x02\0"], 1))) == []
    assert stream.has_ended


@BOTH
def test_a_damaged_event_is_told_with_file_and_position(make: Maker) -> None:
    packets = packets_of("crc_heartbeat_annotate")
    damaged = bytearray(packets[5])
    damaged[40] ^= 1
    groups: list[Given] = []
    with pytest.raises(ChecksumError) as caught:
        groups.extend(received(make(CRC, None), frames([*packets[:5], bytes(damaged)], 1)))
    assert (caught.value.file, caught.value.position) == ("binlog.000001", 367)


@BOTH
def test_packets_out_of_order_are_told(make: Maker) -> None:
    packets = packets_of("gtid_connect")
    data = frames(packets[:5], 1) + frames(packets[5:], 9)
    with pytest.raises(PeerError, match="packet 9 came where packet 6 is expected"):
        list(received(make(CRC, GtidPosition.parse("0-1-4")), data))


@BOTH
def test_groups_that_come_again_are_an_error(make: Maker) -> None:
    stream = make(CRC, GtidPosition.parse("0-1-5"))
    with pytest.raises(PeerError, match="0-1-5 comes after 0-1-5") as caught:
        list(received(stream, frames(packets_of("gtid_connect"), 1)))
    assert "gtid_strict_mode" in caught.value.hint
    assert stream.position == GtidPosition.parse("0-1-5")


# Dumps that no server made.


def packet(
    body: GtidEvent | XidEvent | RotateEvent | HeartbeatEvent | HeartbeatV2Event,
    type_code: EventType,
    *,
    next_position: int,
    flags: int = 0,
) -> bytes:
    header = EventHeader(
        timestamp=1,
        type_code=type_code,
        server_id=1,
        length=0,
        next_position=next_position,
        flags=flags,
    )
    return b"\0" + encode_event(Event(header, body), CRC)


def rotate(file: str, position: int = 4) -> bytes:
    body = RotateEvent(position=position, file=file)
    return packet(body, EventType.ROTATE, next_position=0, flags=HeaderFlag.ARTIFICIAL)


def head(position: int) -> list[bytes]:
    """What a dump begins with that starts at a position of a file."""
    real = next(data for data in packets_of("gtid_connect") if data[5] == 15)
    description = bytearray(real)
    description[14:18] = bytes(4)  # the position
    description[-4:] = checksum_of(description[1:-4])
    return [rotate("binlog.000009", position), bytes(description)]


def checksum_of(data: bytes | bytearray) -> bytes:
    cleared = bytearray(data)
    cleared[17] &= 0xFE
    return zlib.crc32(cleared).to_bytes(4, "little")


def transaction(sequence: int, position: int, *, left_out: int = 0) -> tuple[list[bytes], int]:
    """The packets of a transaction without rows, and where it ends."""
    begin = GtidEvent(sequence=sequence, domain_id=0, flags=0, padding=bytes(6))
    length = len(packet(begin, EventType.GTID, next_position=0)) - 1
    middle = position + left_out + length
    end = middle + 31
    mask = (1 << 32) - 1
    return [
        packet(begin, EventType.GTID, next_position=middle & mask),
        packet(XidEvent(xid=1), EventType.XID, next_position=end & mask),
    ], end


@BOTH
@pytest.mark.parametrize("start", [1000, (1 << 32) + 500, (1 << 32) - 20, (1 << 34) - 60])
@pytest.mark.parametrize("left_out", [0, 1000])
def test_positions_go_on_beyond_four_gib(make: Maker, start: int, left_out: int) -> None:
    first, middle = transaction(1, start)
    second, end = transaction(2, middle, left_out=left_out)
    stream = make(CRC, GtidPosition())
    groups = [*received(stream, frames([*head(start), *first, *second], 1))][1:]
    assert [group[2:4] for group in groups] == [(start, middle), (middle + left_out, end)]
    assert stream.file_position == FilePosition("binlog.000009", end)


@BOTH
def test_events_without_a_position_follow_the_one_before(make: Maker) -> None:
    (begin, _), end = transaction(1, 1000)
    xid = packet(XidEvent(xid=1), EventType.XID, next_position=0)
    (_, group) = received(make(CRC, GtidPosition()), frames([*head(1000), begin, xid], 1))
    assert group[2:4] == (1000, end)


@BOTH
def test_a_hole_inside_of_a_group(make: Maker) -> None:
    (begin, _), middle = transaction(1, 1000)
    xid = packet(XidEvent(xid=1), EventType.XID, next_position=middle + 500)
    after, end = transaction(2, middle + 500)
    stream = make(CRC, GtidPosition())
    groups = list(received(stream, frames([*head(1000), begin, xid, *after], 1)))[1:]
    assert [group[2:4] for group in groups] == [(1000, middle + 500), (middle + 500, end)]


@BOTH
def test_a_group_that_a_crash_cut_off_is_not_complete(make: Maker) -> None:
    (begin, _), _ = transaction(1, 1000)
    whole, end = transaction(1, 1000)
    stream = make(CRC, GtidPosition())
    packets = [*head(1000), begin, *head(1000), *whole]
    groups = list(received(stream, frames(packets, 1)))
    assert [group[0] for group in groups] == ["None", "0-1-1", "None", "0-1-1"]
    assert stream.file_position == FilePosition("binlog.000009", end)


@BOTH
def test_a_file_is_of_no_time_until_it_says_so(make: Maker) -> None:
    stream = make(CRC, GtidPosition())
    list(received(stream, frames(head(1000), 1)))
    created = stream.created
    assert created
    again = frames([rotate("binlog.000009", 1000)], 3)
    assert not list(received(stream, again))
    assert stream.created == created
    assert not list(received(stream, frames([rotate("binlog.000010")], 4)))
    assert stream.created == 0
    assert stream.file_position == FilePosition("binlog.000010", 4)


@BOTH
@pytest.mark.parametrize(
    "body, kind",
    [
        (HeartbeatEvent(file="binlog.000009"), EventType.HEARTBEAT),
        (HeartbeatV2Event(file="binlog.000009", position=1000), EventType.HEARTBEAT_V2),
    ],
)
def test_heartbeats_only_say_that_the_dump_works(
    make: Maker, body: HeartbeatEvent | HeartbeatV2Event, kind: EventType
) -> None:
    stream = make(CRC, GtidPosition())
    beat = packet(body, kind, next_position=1000)
    assert len(list(received(stream, frames([*head(1000), beat], 1)))) == 1
    assert stream.has_progressed
    assert stream.file_position == FilePosition("binlog.000009", 1000)
    first, end = transaction(1, 1000)
    assert len(list(received(stream, frames([beat, *first], 4)))) == 1
    assert stream.file_position == FilePosition("binlog.000009", end)


@BOTH
def test_groups_of_a_source_that_does_not_say_where_it_starts(make: Maker) -> None:
    first, _ = transaction(1, 1000)
    with pytest.raises(PeerError, match="before the source said what stands before"):
        list(received(make(CRC, None), frames([*head(1000), *first], 1)))


def rows_of(count: int, size: int) -> tuple[list[bytes], int]:
    """A transaction of many events that kernels take, with one of rows' size each."""
    begin, position = transaction(1, 1000)[0][0], transaction(1, 1000)[1] - 31
    packets = [begin]
    for _ in range(count):
        length = 19 + size + 4
        position += length
        note = struct.pack("<IBIIIH", 1, EventType.ANNOTATE_ROWS, 1, length, position, 0)
        body = note + b"x" * size
        packets.append(b"\0" + body + checksum_of(body))
    position += 31
    packets.append(packet(XidEvent(xid=1), EventType.XID, next_position=position))
    return packets, position


@pytest.mark.parametrize("piece", [1 << 20, 3000, 17])
def test_a_group_that_is_too_large_is_put_aside(piece: int) -> None:
    large, middle = rows_of(40, 5000)
    after, _ = transaction(2, middle)
    data = frames([*head(1000), *large, *after], 1)
    wanted = list(received(by_reference(CRC, GtidPosition()), data))
    spill = Spill()
    stream = RawStream(
        CRC, GtidPosition(), peer=PEER, spill=spill, held_bytes_max=30_000, window_bytes=16_384
    )
    groups = [
        group
        for start in range(0, len(data), piece)
        for group in received(stream, data[start : start + piece])
    ]
    assert groups == wanted
    (kept,) = spill.kept
    assert len(kept.data) == middle - 1000
    assert not kept.is_open


def test_what_was_put_aside_is_thrown_away_with_its_connection() -> None:
    large, _ = rows_of(40, 5000)
    spill = Spill()
    stream = RawStream(CRC, GtidPosition(), peer=PEER, spill=spill, held_bytes_max=30_000)
    assert len(list(received(stream, frames([*head(1000), *large[:-1]], 1)))) == 1
    assert spill.kept[0].is_open
    stream.close()
    assert not spill.kept[0].is_open


def test_an_event_of_several_frames() -> None:
    large, middle = rows_of(2, (1 << 24) - 1)
    after, _ = transaction(2, middle)
    data = frames([*head(1000), *large, *after], 1)
    for held in (1 << 30, 1 << 20):
        groups = list(received(raw(CRC, GtidPosition(), held_bytes_max=held), data))
        assert gtids(groups) == ["0-1-1", "0-1-2"]
        assert [len(event or b"") for event in groups[1][4][1:3]] == [(1 << 24) + 22] * 2


# Whatever comes.


def end_of(
    stream: Stream, pieces: Sequence[bytes]
) -> tuple[list[Given], type[BaseException] | None]:
    """The groups that come, and the error."""
    groups: list[Given] = []
    try:
        for piece in pieces:
            groups.extend(received(stream, piece))
    except BinlaneError as error:
        return groups, type(error)
    return groups, None


@given(st.binary(max_size=400), st.sampled_from(DUMPS))
def test_any_bytes_give_groups_or_an_error(
    data: bytes, dump: tuple[str, Format, Position | None]
) -> None:
    name, format_, position = dump
    start = frames(packets_of(name)[:3], 1)
    for make in (raw, by_reference):
        end_of(make(format_, position), [data])
        end_of(make(format_, position), [start, data])


@given(st.data(), st.sampled_from(DUMPS))
def test_changed_bytes_give_the_same_either_way(
    data: st.DataObject, dump: tuple[str, Format, Position | None]
) -> None:
    name, format_, position = dump
    packets = packets_of(name)
    number = data.draw(st.integers(0, len(packets) - 1))
    at = data.draw(st.integers(0, len(packets[number]) - 1))
    changed = bytearray(packets[number])
    changed[at] = data.draw(st.integers(0, 255))
    packets[number] = bytes(changed)
    sent = [frames(packets, 1)]
    one, failure = end_of(raw(format_, position), sent)
    other, expected = end_of(by_reference(format_, position), sent)
    assert one == other
    assert (failure is None) == (expected is None)
    if expected is not None and failure is not None:
        assert issubclass(failure, CodecError) == issubclass(expected, CodecError)
