"""Counters of a reader: groups and bytes in all, and those decoded without kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.binlogs.filters.losses import Losses


@dataclass(slots=True)
class ReadCounters:
    """Filled while a log is read.

    Attributes:
        groups: Complete event groups that were looked at.
        bytes: Bytes of the log, those of groups that were not wanted included.
        groups_by_reference: Groups of which something was decoded by the reference decoder.
        bytes_by_reference: Bytes of the events that the reference decoder decoded.
        left_out: Losses that a filter made in tables that its rules name.
        absent: Columns of which a batch has NULL since the images of an event lack them.
    """

    groups: int = 0
    bytes: int = 0
    groups_by_reference: int = 0
    bytes_by_reference: int = 0
    left_out: Losses = field(default_factory=Losses)
    absent: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Ordinals:
    """Counts of the changes and images that the transaction being read has had so far.

    Attributes:
        group: Where that transaction begins, as `RowsSource` has it; None before the first.
    """

    group: int | None = None
    changes: int = 0
    images: int = 0

    def begin(self, group: int) -> None:
        """Go on in a transaction, which may be another one."""
        if group != self.group:
            self.group, self.changes, self.images = group, 0, 0
