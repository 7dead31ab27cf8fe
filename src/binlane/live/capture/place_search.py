"""The position before a place in a source's files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from binlane.errors import ConfigError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import Item, RawRun
from binlane.log.kernels import layout
from binlane.positions import FilePosition, Position


class SourceDump(Protocol):
    """A dump that is read, with what it says of itself."""

    @property
    def first_position(self) -> Position | None:
        """The position before the dump's first group; None until the source said it."""

    @property
    def file_position(self) -> FilePosition:
        """The place where the group behind the given ones begins."""


def position_before(place: FilePosition, items: Iterable[tuple[SourceDump, Item]]) -> Position:
    """The position with all groups done that stand before a place.

    Args:
        place: The beginning of a group, or the end of the file.
        items: The items of that file from its beginning, and maybe of those behind it.

    Raises:
        ConfigError: If no group begins there.
    """
    search, dump = _Search(place), None
    for dump, item in items:
        search.take(item, dump.first_position)
        if search.is_behind:
            break
    done = search.done
    if done is None and dump is not None:
        done = dump.first_position
    if dump is None or done is None:
        raise no_place(place, "the file says nothing of what stands before it")
    if search.end > place.position:
        raise no_place(place, f"a group ends at {search.end}, and none there")
    if not search.is_behind and dump.file_position < place:
        raise no_place(place, f"the log ends at {dump.file_position}")
    return done


class _Search:
    """The state of reading a file up to a place.

    Attributes:
        done: The position with the groups before the place; None before the first group.
        end: The end of the last of these groups.
        is_behind: True if what comes stands behind the place.
    """

    def __init__(self, place: FilePosition) -> None:
        self._place = place
        self.done: Position | None = None
        self.end = 0
        self.is_behind = False

    def take(self, item: Item, first: Position | None) -> None:
        """Take what comes next; `first` was done before the first group."""
        if isinstance(item, EventGroup) and isinstance(item.events[0].body, FormatDescriptionEvent):
            self.is_behind = item.file != self._place.file
            return
        if self.done is None:
            self.done = first
        if isinstance(item, RawRun):
            self._take_run(item)
            return
        self.is_behind = item.position >= self._place.position
        if not self.is_behind:
            if item.gtid is not None and self.done is not None:
                self.done = self.done.advance(item.gtid)
            self.end = (item.next_position if isinstance(item, EventGroup) else item.end) or 0

    def _take_run(self, run: RawRun) -> None:
        count = int(np.searchsorted(run.groups[layout.GROUP_START], self._place.position))
        self.is_behind = count < run.count
        if count and self.done is not None:
            self.done = run.position_after(self.done, count)
            self.end = int(run.groups[layout.GROUP_STOP, count - 1])


def no_place(place: FilePosition, why: str) -> ConfigError:
    """The source has no such place."""
    return ConfigError(
        f"the source has no position {place} in its log: {why}",
        key="source.start",
        hint="SHOW BINARY LOGS and SHOW BINLOG EVENTS on the source name those that it has",
    )
