"""The groups between two places of a file → rows and what is told of them, by kernels if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.columnar.batches import ROWS_MAX_DEFAULT, ChangeBatcher, batches
from binlane.columnar.counters import ReadCounters
from binlane.columnar.told import RowItem
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.walk import Walker
from binlane.grouping.window import PIECE_BYTES, BoundedBytes, ByteSource, Window
from binlane.kernels.load import is_compiled
from binlane.ranges.log_range import LogRange
from binlane.ranges.opening import Bounds

KERNEL_MODULES: Final = ("scan", "rows", "convert", "strings")
_ROWS_OF_KERNELS: Final = 65536


def are_kernels_ready() -> bool:
    """Whether the kernels that decode rows were compiled ahead."""
    return is_compiled(KERNEL_MODULES)


def rows_max_of(*, by_kernels: bool) -> int:
    """How many rows a batch best has."""
    return _ROWS_OF_KERNELS if by_kernels else ROWS_MAX_DEFAULT


def read_bounds(
    piece: LogRange,
    bounds: Bounds,
    source: ByteSource,
    batcher: ChangeBatcher,
    *,
    by_kernels: bool,
    counters: ReadCounters,
) -> Iterator[RowItem]:
    """What stands between two places of a file.

    Args:
        piece: In the file.
        bounds: The places.
        source: The file's bytes, wherever it stands.
        batcher: Has the reader's wishes.
        by_kernels: Whether kernels read it, or the reference decoder alone.
        counters: Told how much was read.

    Raises:
        CodecError: With file and position, behind all rows before it.
        StoreError: If the file cannot be read.
    """
    source = source.reread(bounds.start)
    if bounds.stop is not None:
        source = BoundedBytes(source, bounds.start, bounds.stop)
    if by_kernels:
        from binlane.columnar.kernel_batches import (  # noqa: PLC0415 - small files do without
            LogBytes,
            kernel_batches,
        )

        log = LogBytes(
            source=source,
            file=piece.path,
            name=piece.name,
            position=bounds.start,
            format_=bounds.format,
        )
        yield from kernel_batches(log, batcher, counters=counters)
        return
    if bounds.format is not None:
        batcher.take_format(bounds.format)
    chunks = Window(source, size_bytes=PIECE_BYTES).rest(0)
    walker = Walker(chunks, file=piece.path, position=bounds.start, format_=bounds.format)
    groups = group_events(walker.events(), file=piece.name)
    yield from batches(_counted(groups, counters), batcher)


def _counted(groups: Iterator[EventGroup], counters: ReadCounters) -> Iterator[EventGroup]:
    for group in groups:
        if group.is_complete and not group.is_control:
            counters.groups += 1
            counters.bytes += group.size_bytes
            counters.groups_by_reference += 1
            counters.bytes_by_reference += group.size_bytes
        yield group
