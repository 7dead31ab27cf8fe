"""The choice of binlog files that a purge deletes: by age and by size, as the servers decide it (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.binlogs.store.files import BinlogFile


def ended_before(closed: Sequence[BinlogFile], timestamp: float) -> int:
    """Count the closed files that ended before a time, up to the first that did not.

    Args:
        closed: The closed files, oldest first.
        timestamp: Seconds since 1970, as events have them.
    """
    for count, file in enumerate(closed):
        if file.ended is None or file.ended >= timestamp:
            return count
    return len(closed)


def beyond_size(files: Sequence[BinlogFile], total_bytes: int) -> int:
    """Count the oldest files that are too many for a total size; never the last.

    Args:
        files: All files of the binlog, oldest first.
        total_bytes: Bytes that the remaining files may have together.
    """
    left_bytes = sum(file.size_bytes for file in files)
    for count, file in enumerate(files[:-1]):
        if left_bytes <= total_bytes:
            return count
        left_bytes -= file.size_bytes
    return len(files) - 1
