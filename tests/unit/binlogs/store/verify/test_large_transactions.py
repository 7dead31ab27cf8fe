"""A transaction larger than memory may hold is checked with little of it."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from binlane.log.codec.body import Body
from binlane.log.codec.event import Event, encode_event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.rows import WriteRowsCompressedV1Event, WriteRowsV1Event
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType
from tests.build import PLAIN_FORMAT, event, format_description, log, rows, table_map

TRANSACTION_BYTES = 600 << 20
RSS_MB_MAX = 300
VERIFY = """
import resource, sys
from binlane.binlogs.store.verify import verify
for fault in verify(sys.argv[1:], by_kernels=True):
    print(fault)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
IMAGES = b"".join(b"\0\x60\0" + bytes(96) for _ in range(3000))
MAP = table_map(ColumnType.VARCHAR, metadata=(200).to_bytes(2, "little"))
MYSQL_GTID = MysqlGtidEvent(flags=0, source_id="3e11fa47-71ca-11e1-9e33-c80aa9429562", sequence=1)


def without_position(made: Event) -> bytes:
    """An event of a cached group, whose position is 0, with its checksum."""
    data = encode_event(made, PLAIN_FORMAT)
    data = data[:9] + (len(data) + 4).to_bytes(4, "little") + data[13:]
    return data + zlib.crc32(data).to_bytes(4, "little")


def plain(path: Path, *, is_compressed: bool = False) -> None:
    kind = WriteRowsCompressedV1Event if is_compressed else WriteRowsV1Event
    change = without_position(event(MAP)) + without_position(event(rows(1, IMAGES, kind=kind)))
    with path.open("wb") as stream:
        stream.write(log(GtidEvent(sequence=1, domain_id=0, flags=0)))
        size = 0
        while size < TRANSACTION_BYTES:
            stream.write(change)
            size += len(IMAGES)
        stream.write(without_position(event(XidEvent(xid=1))))


def inner() -> Iterator[bytes]:
    change = b"".join(encode_event(event(body), PLAIN_FORMAT) for body in changes())
    for _ in range(TRANSACTION_BYTES // len(change)):
        yield change


def changes() -> tuple[Body, ...]:
    return MAP, rows(1, IMAGES)


def payload(path: Path) -> None:
    size = sum(map(len, inner()))
    compressor = ZstdCompressor().compressobj()
    packed = b"".join(compressor.compress(piece) for piece in inner()) + compressor.flush()
    body = TransactionPayloadEvent(
        compression=PayloadCompression.ZSTD, uncompressed_size=size, payload=packed
    )
    path.write_bytes(log(MYSQL_GTID, body, head=format_description(server_version="8.4.1")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "compressed", "payload"])
def test_a_huge_transaction_takes_little_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "binlog.000001"
    if kind == "payload":
        payload(path)
    else:
        plain(path, is_compressed=kind == "compressed")
    done = subprocess.run(
        [sys.executable, "-c", VERIFY, str(path)], capture_output=True, text=True, check=True
    )
    *found, rss_mb = done.stdout.splitlines()
    assert found == []
    assert int(rss_mb) < RSS_MB_MAX
