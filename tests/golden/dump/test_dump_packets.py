"""A dump sends, byte for byte, what MariaDB 10.11.19 sent from the same files."""

from __future__ import annotations

import json

import pytest

from binlane.codec.packets.framing import PacketSplitter
from binlane.codec.packets.replies import EofPacket
from binlane.codec.types import ChecksumAlgorithm, EventType
from binlane.dump.machine import Dump
from binlane.dump.request import DumpRequest
from binlane.dump.start import FileHead
from binlane.positions import GtidPosition
from tests.fixture_sets import fixture_set

# The recorded dumps ended here; the server wrote a STOP event when it was shut down later.
LAST_FILE_END = 612


def _recorded(name: str) -> list[bytes]:
    text = fixture_set("md1011_netstream").text(f"{name}.packets.jsonl")
    return [bytes.fromhex(json.loads(line)["hex"]) for line in text.splitlines()]


def _without_heartbeats(payloads: list[bytes]) -> list[bytes]:
    return [payload for payload in payloads if payload[5:6] != bytes((EventType.HEARTBEAT,))]


def _dumped(request: DumpRequest, chunk_size: int) -> tuple[Dump, list[bytes]]:
    dump = Dump(request)
    stream = bytearray()
    for file, data in fixture_set("md1011_netstream").binlogs:
        end = LAST_FILE_END if file == "binlog.000002" else len(data)
        stream += dump.open_file(FileHead.decode(file, data))
        while dump.position < end:
            size = max(chunk_size, dump.wanted)
            stream += dump.feed(data[dump.position : min(dump.position + size, end)])
    packets = PacketSplitter().feed(bytes(stream))
    assert [packet.sequence for packet in packets] == [
        number & 0xFF for number in range(1, len(packets) + 1)
    ]
    return dump, [packet.payload for packet in packets]


@pytest.mark.parametrize("chunk_size", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    "name, request_",
    [
        ("crc_heartbeat_annotate", DumpRequest(flags=2)),
        ("nochecksum_noannotate_nonblock", DumpRequest(checksum=ChecksumAlgorithm.NONE, flags=1)),
        ("gtid_connect", DumpRequest(connect_state=GtidPosition.parse("0-1-4"), flags=1)),
    ],
)
def test_same_packets_as_the_server(name: str, request_: DumpRequest, chunk_size: int) -> None:
    recorded = _without_heartbeats(_recorded(name))
    if request_.is_non_blocking:
        assert recorded.pop() == EofPacket().encode()
    _, payloads = _dumped(request_, chunk_size)
    assert payloads == recorded


def test_same_heartbeat_as_the_server() -> None:
    dump, _ = _dumped(DumpRequest(flags=2), 1 << 20)
    (packet,) = PacketSplitter().feed(dump.heartbeat())
    assert packet.payload == _recorded("crc_heartbeat_annotate")[-1]
