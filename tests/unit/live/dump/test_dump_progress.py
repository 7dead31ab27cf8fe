from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.files import BinlogFile
from binlane.live.dump.dump_progress import DumpProgress
from binlane.positions import FilePosition, GtidPosition


@pytest.mark.parametrize(
    "left, complete, timestamp, lag",
    [
        (0, None, None, 0.0),
        (0, 10.0, 20, 0.0),
        (5, None, None, None),
        (None, None, None, None),
        (5, None, 990, 10.0),
        (5, 996.0, 100, 4.0),
        (None, 100.0, 998, 2.0),
        (5, None, 2000, 0.0),
    ],
)
def test_lag(
    left: int | None, complete: float | None, timestamp: int | None, lag: float | None
) -> None:
    progress = DumpProgress(complete_s=complete, last_timestamp=timestamp)
    assert progress.lag_s(left, 1000.0) == lag


def test_events_without_a_time_tell_none() -> None:
    progress = DumpProgress()
    progress.read(bytes(19))
    assert progress.last_timestamp is None
    progress.read((77).to_bytes(4, "little") + bytes(15))
    progress.read(bytes(19))
    assert progress.last_timestamp == 77


def test_bytes_behind_a_place_are_counted_over_files() -> None:
    files = [
        BinlogFile(
            directory=Path("b"),
            name=f"b.{n:06}",
            size_bytes=100 * n,
            begin_gtids="",
            flavor="mariadb",
        )
        for n in (1, 2, 3)
    ]
    published = Published(closed=tuple(files[:2]), last=files[2], position=GtidPosition.parse(""))
    assert published.bytes_behind(FilePosition("b.000003", 300)) == 0
    assert published.bytes_behind(FilePosition("b.000003", 250)) == 50
    assert published.bytes_behind(FilePosition("b.000002", 4)) == 196 + 300
    assert published.bytes_behind(FilePosition("b.000001", 100)) == 500
    assert published.bytes_behind(FilePosition("b.000000", 4)) is None
