"""Progress of the routing thread in the source's log, as attribution of groups counts it."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import NamedTuple

from binlane.live.port.group_numbers import GroupNumber, Stream, ends_of
from binlane.log.codec.types import Flavor
from binlane.positions import Position


class Watch(NamedTuple):
    """The groups, among those read next, that `Attributions.read` is to be given.

    Attributes:
        threads: Threads of sessions that are followed, or were followed when they ended.
        is_any_open: True if it is also to be given the groups of which the log does not name the thread.
        is_any_known: True if some groups were told or found out already, which may be among them.
    """

    threads: Collection[int]
    is_any_open: bool
    is_any_known: bool = True


class LogProgress:
    """Last numbers that were read of each stream, and the position that they make.

    Attributes:
        read: Last number that was read of each stream.
        moved: Those of `read` that moved since the journal's last record.
        position: Position up to which everything is read; None before the first feed.
        is_begun: True once it is known where reading began.
        epoch: Number of the source that was read; another source has another number.
        run: Number of times that the log was seen to go on behind a start of the source.
    """

    def __init__(self, flavor: Flavor) -> None:
        """Begin without knowing where.

        Args:
            flavor: Flavor of the source server.
        """
        self._flavor = flavor
        self.read: dict[Stream, int] = {}
        self.moved: dict[Stream, int] = {}
        self.position: Position | None = None
        self.is_begun = False
        self.epoch = secrets.randbits(64)
        self.run = 0

    def recover(self, read: dict[Stream, int], epoch: int | None, run: int) -> None:
        """Go on where a journal ends; an epoch of None stands for no journal."""
        self.read, self.run, self.is_begun = read, run, epoch is not None
        self.epoch = self.epoch if epoch is None else epoch

    def has_read(self, point: GroupNumber) -> bool:
        """True if a group was read."""
        return self.read.get(point.stream, 0) >= point.number

    def lacks(self, ends: dict[Stream, int]) -> bool:
        """True if groups up to the ends of streams were not read, or that is not known."""
        return not self.is_begun or any(
            self.read.get(stream, 0) < end for stream, end in ends.items()
        )

    def begin(self, position: Position, *, is_gap: bool) -> None:
        """Groups come from a position on."""
        self.is_begun = True
        if self.position is None or is_gap:
            self.position = position

    def move(self, stream: Stream, number: int) -> None:
        """A stream was read up to a number."""
        self.read[stream] = self.moved[stream] = number

    def advance(self, after: Position | None) -> None:
        """Everything is read up to a position; None tells nothing."""
        if after is None or after is self.position:
            return
        read, is_further, ends = self.read, False, ends_of(after)
        for stream, number in ends.items():
            if read.get(stream, 0) < number:
                self.move(stream, number)
            is_further |= read[stream] == number
        if self.position is None or (self._flavor is Flavor.MARIADB and ends == read):
            self.position = after
        elif is_further:
            is_all = after.includes(self.position)
            self.position = after if is_all else self.position.union(after)

    def clear(self) -> None:
        """The source is another one; records of the one before stay its own if they stay."""
        self.read.clear()
        self.moved.clear()
        self.position, self.is_begun = None, False
        self.epoch = secrets.randbits(64)
