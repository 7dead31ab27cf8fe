"""The groups of a range → rows and what is told of them, by kernels if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from binlane.log.codec.format import MAGIC
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.walk import Walker
from binlane.log.kernels.load import is_compiled
from binlane.tables.columnar.batches import ROWS_MAX_DEFAULT, ChangeBatcher, batches
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.kernel_input import KernelInput
from binlane.tables.columnar.log_notes import RowItem
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.storage import named
from binlane.tables.ranges.stored_files import chunks_of, description_of, open_range

KERNEL_MODULES: Final = ("scan", "rows", "convert", "strings")
_ROWS_OF_KERNELS: Final = 65536


def are_kernels_ready() -> bool:
    """True if the kernels that decode rows were compiled ahead."""
    return is_compiled(KERNEL_MODULES)


def rows_max_of(*, by_kernels: bool) -> int:
    """Return the number of rows that a batch best has."""
    return _ROWS_OF_KERNELS if by_kernels else ROWS_MAX_DEFAULT


def decoded(
    piece: LogRange, batcher: ChangeBatcher, *, by_kernels: bool, counters: ReadCounters
) -> Iterator[RowItem]:
    """Decode the items of a range.

    Args:
        piece: The range of the log.
        batcher: Collects the rows, by the reader's wishes.
        by_kernels: Whether kernels read the range, or the reference decoder alone.
        counters: Counters that are kept up to date while the range is read.

    Raises:
        CodecError: With file and position, behind all rows before it.
        StoreError: If the file cannot be read.
    """
    position, format_ = 0, None
    if piece.start > len(MAGIC):
        head = description_of(piece)
        position, format_ = max(piece.start, head.next_position), format_of(head)
        if piece.stop is not None and position >= piece.stop:
            return
    with closing(open_range(piece)) as source:
        source.reread(position)
        if by_kernels:
            from binlane.tables.columnar.kernel_batches import kernel_batches  # noqa: PLC0415 - as `scan`

            part = KernelInput(
                source=source,
                file=named(piece.uri),
                name=piece.name,
                position=position,
                format_=format_,
            )
            yield from kernel_batches(part, batcher, counters=counters)
            return
        if format_ is not None:
            batcher.take_format(format_)
        walker = Walker(
            chunks_of(source), file=named(piece.uri), position=position, format_=format_
        )
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
