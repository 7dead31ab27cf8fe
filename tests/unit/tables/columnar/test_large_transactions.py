"""A transaction larger than memory may hold is read with little of it."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.shop_log import ShopLog, Table

TRANSACTION_BYTES = 600 << 20
RSS_MB_MAX = 300
READ = """
import resource, sys, binlane
rows = sum(batch.num_rows for batch in binlane.scan(sys.argv[1]))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "cut"])
def test_a_huge_transaction_takes_little_memory(tmp_path: Path, *, is_whole: bool) -> None:
    rows, repeats = 8000, 0
    log = ShopLog()
    log.insert(Table("orders", ("id", "state")), *((row, "x" * 150) for row in range(rows)))
    name, data = log.file()
    ends = event_ends(data)
    head, gtid, table_map, change, xid = (
        data[start:end] for start, end in zip([0, *ends], ends, strict=False)
    )
    path = tmp_path / name
    with path.open("wb") as stream:
        stream.write(head + gtid)
        while stream.tell() < TRANSACTION_BYTES:
            stream.write(without_position(table_map) + without_position(change))
            repeats += 1
        stream.write(without_position(xid) if is_whole else b"")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    found, rss_mb = map(int, done.stdout.split())
    assert found == (rows * repeats if is_whole else 0)
    assert rss_mb < RSS_MB_MAX


def event_ends(data: bytes) -> list[int]:
    """Where each event of a file ends."""
    ends, at = [], 4
    while at < len(data):
        at += int.from_bytes(data[at + 9 : at + 13], "little")
        ends.append(at)
    return ends


def without_position(event: bytes) -> bytes:
    """An event of a cached group, whose position is 0, with its checksum right."""
    plain = event[:13] + bytes(4) + event[17:-4]
    return plain + zlib.crc32(plain).to_bytes(4, "little")
