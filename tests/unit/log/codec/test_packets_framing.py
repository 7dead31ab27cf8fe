from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.framing import (
    FRAME_PAYLOAD_MAX,
    Packet,
    PacketSplitter,
    frame,
    frames,
    nul_bytes,
)


def chunks_of(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at some places, in order."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def test_a_frame_is_length_and_sequence_and_payload() -> None:
    assert frame(b"\x03SELECT 1", 7) == b"\x09\0\0\x07\x03SELECT 1"


def test_several_payloads_are_numbered_on_and_wrap() -> None:
    assert frames([b"a", b"", b"b"], 254) == b"\x01\0\0\xfea\0\0\0\xff\x01\0\0\0b"


@given(
    payloads=st.lists(st.binary(max_size=40), max_size=8),
    first=st.integers(0, 255),
    cuts=st.lists(st.integers(0, 400), max_size=10),
)
def test_any_chunking_gives_the_same_packets(
    payloads: list[bytes], first: int, cuts: list[int]
) -> None:
    splitter = PacketSplitter()
    packets = [
        packet
        for chunk in chunks_of(frames(payloads, first), cuts)
        for packet in splitter.feed(chunk)
    ]
    assert [packet.payload for packet in packets] == payloads
    assert [packet.sequence for packet in packets] == [
        (first + number) % 256 for number in range(len(payloads))
    ]
    assert not splitter.pending


@pytest.mark.parametrize("extra", [-1, 0, 1, FRAME_PAYLOAD_MAX])
def test_a_long_payload_takes_several_frames(extra: int) -> None:
    payload = bytes(FRAME_PAYLOAD_MAX + extra)
    data = frame(payload, 255)
    splitter = PacketSplitter()
    packets = [
        packet
        for start in range(0, len(data), 5_000_001)
        for packet in splitter.feed(data[start : start + 5_000_001])
    ]
    assert packets == [Packet(255, payload)]
    expected_frames = 1 + (extra >= 0) + (extra == FRAME_PAYLOAD_MAX)
    assert packets[0].next_sequence == (255 + expected_frames) % 256
    assert len(data) == len(payload) + 4 * expected_frames


def test_what_is_behind_the_last_frame_waits() -> None:
    splitter = PacketSplitter()
    assert splitter.feed(b"\x02\0\0\0ab\x05\0\0") == [Packet(0, b"ab")]
    assert splitter.pending == b"\x05\0\0"


def test_frames_of_one_packet_must_follow_each_other() -> None:
    splitter = PacketSplitter()
    splitter.feed(b"\xff\xff\xff\x03" + bytes(FRAME_PAYLOAD_MAX))
    with pytest.raises(CodecError, match="frame 5 follows frame 3"):
        splitter.feed(b"\x01\0\0\x05a")


def test_a_packet_over_the_maximum_is_refused_by_its_length_alone() -> None:
    splitter = PacketSplitter(payload_max=100)
    with pytest.raises(CodecError, match="more than 100 bytes"):
        splitter.feed(b"\x65\0\0\0")


@pytest.mark.parametrize(
    ("data", "rest"), [(b"name\0tail", b"tail"), (b"name\0", b""), (b"name", b"")]
)
def test_a_nul_string_may_also_end_with_its_packet(data: bytes, rest: bytes) -> None:
    reader = Reader(data)
    assert nul_bytes(reader) == b"name"
    assert reader.rest() == rest
