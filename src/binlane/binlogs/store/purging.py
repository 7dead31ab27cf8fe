"""Which files of a binlog go: by age and by size, as the servers decide it (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.binlogs.store.files import BinlogFile


def ended_before(closed: Sequence[BinlogFile], timestamp: float) -> int:
    """How many of the closed files ended before a time, up to the first that did not.

    Args:
        closed: Oldest first.
        timestamp: Seconds since 1970, as events have them.
    """
    for count, file in enumerate(closed):
        if file.ended is None or file.ended >= timestamp:
            return count
    return len(closed)


def beyond_size(files: Sequence[BinlogFile], total_bytes: int) -> int:
    """How many of the oldest files are too many for a total size; never the last.

    Args:
        files: All files, oldest first.
        total_bytes: What the rest may have.
    """
    left_bytes = sum(file.size_bytes for file in files)
    for count, file in enumerate(files[:-1]):
        if left_bytes <= total_bytes:
            return count
        left_bytes -= file.size_bytes
    return len(files) - 1
