"""What the kernel makes of a file's bytes is what the reference makes, and large events pass in parts."""

from __future__ import annotations

import pytest

from binlane.errors import CodecError
from binlane.live.dump.packing import SLICE_BYTES, Packer, can_pack
from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.event import encode_event
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frame
from binlane.log.codec.registry import OpaqueEvent
from binlane.log.codec.types import EventType
from binlane.log.kernels.load import Build, builds, running
from tests.build import PLAIN_FORMAT, event
from tests.fixture_sets import fixture_set

FILE, DATA = fixture_set("md1011_netstream").binlogs[0]
HEAD = FileBeginning.decode(FILE, DATA)
ANNOTATE = 2


def _opened(flags: int) -> ReplicaDump:
    dump = ReplicaDump(ReplicaRequest(flags=flags))
    dump.open_file(HEAD)
    return dump


@pytest.mark.parametrize("build", builds())
@pytest.mark.parametrize("flags", [0, ANNOTATE])
def test_packets_are_those_of_the_reference(build: Build, flags: int) -> None:
    expected, dump, packer = _opened(flags), _opened(flags), Packer()
    with running(build):
        for size in (0, 18, 19, 300, 1000, len(DATA)):
            data = DATA[dump.position : dump.position + size]
            packer.room[: len(data)] = data
            assert bytes(dump.pack(packer, len(data))) == expected.feed(data)
            assert dump.position == expected.position
            assert bytes(dump.heartbeat()) == bytes(expected.heartbeat())  # the same number
    assert dump.position == len(DATA)


@pytest.mark.parametrize("build", builds())
def test_a_full_room_of_the_shortest_events_fits(build: Build) -> None:
    dump, expected, packer = _opened(ANNOTATE), _opened(ANNOTATE), Packer()
    data = _event(b"") * (len(packer.room) // 19)
    if build is Build.PLAIN:
        data = data[: 19 * 100]
    packer.room[: len(data)] = data
    with running(build):
        assert bytes(dump.pack(packer, len(data))) == expected.feed(data)


@pytest.mark.parametrize("length", [0, 18, FRAME_PAYLOAD_MAX - 1, 0xFFFFFFFF])
def test_what_has_no_place_in_a_frame_is_left_to_the_reference(length: int) -> None:
    dump, packer = _opened(0), Packer()
    data = _event(b"whole") + b"\0" * 9 + length.to_bytes(4, "little") + b"\0" * 50
    packer.room[: len(data)] = data
    dump.pack(packer, len(data))
    assert dump.position == HEAD.format_description.next_position + len(_event(b"whole"))
    with pytest.raises(CodecError):
        dump.feed(data[len(_event(b"whole")) :], size_bytes=50)


def test_the_kernel_is_there() -> None:
    assert can_pack()


@pytest.mark.parametrize(
    "length",
    [
        SLICE_BYTES + 1,
        *(FRAME_PAYLOAD_MAX + extra for extra in (-2, -1, 0)),
        2 * FRAME_PAYLOAD_MAX - 1,
    ],
)
@pytest.mark.parametrize("step", [2 * SLICE_BYTES, 1 << 20, FRAME_PAYLOAD_MAX])
def test_a_large_event_passes_in_parts(length: int, step: int) -> None:
    dump = _opened(ANNOTATE)
    small = _event(b"small")
    data = small + _event(b"x" * (length - 19)) + small
    start, stream = dump.position, b""
    while (done := dump.position - start) < len(data):
        stream += dump.feed(data[done : done + step], size_bytes=len(data) - done)
    assert not dump.is_inside_event
    large = b"\0" + data[len(small) : -len(small)]
    count = len(large) // FRAME_PAYLOAD_MAX + 1
    expected = frame(b"\0" + small, 3) + frame(large, 4) + frame(b"\0" + small, 4 + count)
    assert stream == expected


def test_a_large_event_must_be_there_as_a_whole() -> None:
    dump = _opened(ANNOTATE)
    data = _event(b"x" * (1 << 20))
    with pytest.raises(CodecError) as caught:
        dump.feed(data[: 1 << 18], size_bytes=len(data) - 1)
    assert caught.value.position == dump.position


def test_a_large_event_that_is_left_out_is_not_read() -> None:
    dump = _opened(0)
    data = _event(b"x" * (1 << 20), EventType.ANNOTATE_ROWS)
    start = dump.position
    assert dump.feed(data[: 1 << 18], size_bytes=len(data)) == b""
    assert (dump.position, dump.is_inside_event) == (start + len(data), False)


def _event(body: bytes, type_code: int = EventType.XID) -> bytes:
    return encode_event(event(OpaqueEvent(data=body), type_code=type_code), PLAIN_FORMAT)
