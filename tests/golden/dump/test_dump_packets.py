"""A dump sends, byte for byte, what MariaDB 10.11.19 and MySQL 9.7.4 sent from the same files."""

from __future__ import annotations

import json

import pytest

from binlane.live.dump.replica_dump import ReplicaDump
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.packets.replies import EofPacket
from binlane.log.codec.types import ChecksumAlgorithm, EventType, Flavor
from binlane.positions import GtidPosition
from tests.fixture_sets import fixture_set

MARIADB, MYSQL = "md1011_netstream", "my97_netstream"
# The recorded dumps ended here; the servers wrote a STOP event when they were shut down later.
LAST_FILE_END = {MARIADB: 612, MYSQL: 554}
HEARTBEATS = {EventType.HEARTBEAT, EventType.HEARTBEAT_V2}


def _recorded(name: str, servers: str = MARIADB) -> list[bytes]:
    text = fixture_set(servers).text(f"{name}.packets.jsonl")
    return [bytes.fromhex(json.loads(line)["hex"]) for line in text.splitlines()]


def _without_heartbeats(payloads: list[bytes]) -> list[bytes]:
    return [payload for payload in payloads if payload[5:6] not in map(_byte, HEARTBEATS)]


def _byte(code: int) -> bytes:
    return bytes((code,))


def _dumped(
    request: ReplicaRequest, chunk_size: int, servers: str = MARIADB
) -> tuple[ReplicaDump, list[bytes]]:
    dump = ReplicaDump(request)
    stream = bytearray()
    for file, data in fixture_set(servers).binlogs:
        end = LAST_FILE_END[servers] if file == "binlog.000002" else len(data)
        stream += dump.open_file(FileBeginning.decode(file, data))
        reached = dump.position
        while dump.position < end:
            # What was not used comes again, with more behind it.
            reached = min(max(reached, dump.position) + chunk_size, end)
            stream += dump.feed(data[dump.position : reached], size_bytes=end - dump.position)
    packets = PacketSplitter().feed(bytes(stream))
    assert [packet.sequence for packet in packets] == [
        number & 0xFF for number in range(1, len(packets) + 1)
    ]
    return dump, [packet.payload for packet in packets]


@pytest.mark.parametrize("chunk_size", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    "name, request_",
    [
        ("crc_heartbeat_annotate", ReplicaRequest(flags=2)),
        (
            "nochecksum_noannotate_nonblock",
            ReplicaRequest(checksum=ChecksumAlgorithm.NONE, flags=1),
        ),
        ("gtid_connect", ReplicaRequest(connect_state=GtidPosition.parse("0-1-4"), flags=1)),
    ],
)
def test_same_packets_as_the_server(name: str, request_: ReplicaRequest, chunk_size: int) -> None:
    recorded = _without_heartbeats(_recorded(name))
    if request_.is_non_blocking:
        assert recorded.pop() == EofPacket().encode()
    _, payloads = _dumped(request_, chunk_size)
    assert payloads == recorded


def test_same_heartbeat_as_the_server() -> None:
    dump, _ = _dumped(ReplicaRequest(flags=2), 1 << 20)
    (packet,) = PacketSplitter().feed(dump.heartbeat())
    assert packet.payload == _recorded("crc_heartbeat_annotate")[-1]


@pytest.mark.parametrize("chunk_size", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    "name, request_",
    [
        ("crc_heartbeat", ReplicaRequest(flavor=Flavor.MYSQL)),
        ("crc_heartbeat_v2", ReplicaRequest(flavor=Flavor.MYSQL, flags=2)),
        (
            "nochecksum_nonblock",
            ReplicaRequest(flavor=Flavor.MYSQL, checksum=ChecksumAlgorithm.NONE, flags=1),
        ),
    ],
)
def test_same_packets_as_mysql(name: str, request_: ReplicaRequest, chunk_size: int) -> None:
    recorded = _recorded(name, MYSQL)
    dump, payloads = _dumped(request_, chunk_size, MYSQL)
    if request_.is_non_blocking:
        assert recorded.pop() == EofPacket().encode()
    else:
        (heartbeat,) = PacketSplitter().feed(dump.heartbeat())
        assert heartbeat.payload == recorded[-1]
    assert payloads == _without_heartbeats(recorded)
