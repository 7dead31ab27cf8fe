"""Batches of a landing: the next ranges of a log behind a place, up to some bytes."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.tables.ranges.limits import Limits
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.offset import Offset
from binlane.tables.ranges.plan import Planner


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Ranges of a log that are landed together.

    Attributes:
        pieces: Ranges of the log, in order; there may be none with whole event groups.
        end: The place in the log behind the ranges.
        bytes_behind: Bytes of log that are not landed yet, those of the batch included.
        is_last: Whether the log had nothing more behind the batch.
    """

    pieces: tuple[LogRange, ...]
    end: Offset
    bytes_behind: int
    is_last: bool


def next_batch(
    planner: Planner,
    start: Offset,
    *,
    batch_bytes: int,
    task_bytes: int,
    cores: int,
    stop: Offset | None = None,
) -> Batch | None:
    """The next batch; None if there is nothing new.

    Args:
        planner: The planner that reads the log.
        start: The place up to which the log is landed.
        batch_bytes: Bytes of log that a batch has, about.
        task_bytes: Bytes of log that a range has at most, about.
        stop: A place where a group ends that a batch must end at, if the log is there.
        cores: A batch that is large enough has at least so many ranges.

    Raises:
        StoreError: If the log is not the one any more that `start` stands in, or has a gap.
    """
    there = planner.end(start)
    if there.place == start.place:
        return None
    is_stopped = stop is not None and start.place < stop.place < there.place
    until = stop if is_stopped else there
    end = planner.next(start, Limits(size_bytes=batch_bytes), end=until)
    return Batch(
        pieces=tuple(planner.ranges(start, end, size_bytes=task_bytes, cores=cores)),
        end=end,
        bytes_behind=_distance(planner, start, there),
        is_last=end.place == there.place,
    )


def _distance(planner: Planner, start: Offset, end: Offset) -> int:
    if start.file == end.file:
        return end.position - start.position
    between = sum(
        file.size_bytes for file in planner.files() if start.number <= file.number < end.number
    )
    return max(0, between - start.position + end.position)
