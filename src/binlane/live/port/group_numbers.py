"""Numbers of the source's groups, and what replies and positions tell by them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from binlane.log.codec.types import Flavor
from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, Position

_UUID_BYTES: Final = 16
Stream = str
"""Within it numbers only grow: a domain of MariaDB, a source with its tag of MySQL."""


class GroupNumber(NamedTuple):
    """A group of the source.

    Attributes:
        stream: Stream in which the group is numbered.
    """

    stream: Stream
    number: int


class GroupSpan(NamedTuple):
    """Groups that follow each other in a stream.

    Attributes:
        stream: Stream in which the groups are numbered.
        first: Number of the first; 0 where only the last is known.
        last: Number of the last group.
    """

    stream: Stream
    first: int
    last: int


@lru_cache(maxsize=1024)
def stream_of(domain_id: int) -> Stream:
    """Give the stream of a domain of MariaDB."""
    return str(domain_id)


def point_of(gtid: AnyGtid) -> GroupNumber:
    """Give the point of a group's GTID."""
    if isinstance(gtid, Gtid):
        # As `GroupNumber(…)`, in a third of the time.
        return tuple.__new__(GroupNumber, (stream_of(gtid.domain_id), gtid.sequence))
    return GroupNumber(f"{gtid.source_id}:{gtid.tag}", gtid.sequence)


class StreamNumbers:
    """Numbers of streams, by which kernels know them: MariaDB's domains; MySQL's sources in order of appearance.

    Attributes:
        sources: UUIDs of MySQL's sources, an array of their bytes, one after another; for MariaDB none.

    Args:
        flavor: Flavor of the source server.
    """

    def __init__(self, flavor: Flavor) -> None:
        self._is_mysql = flavor is Flavor.MYSQL
        # One that no server has: a kernel takes no sources for those of MariaDB.
        self.sources: Any = np.zeros(_UUID_BYTES * self._is_mysql, np.uint8)
        self._streams: list[Stream] = [""] if self._is_mysql else []
        self._numbers: dict[Stream, int] = {}

    def stream(self, number: int) -> Stream:
        """Give the stream of a number that `number_of` or a kernel gave."""
        return self._streams[number] if self._is_mysql else stream_of(number)

    def number_of(self, stream: Stream) -> int | None:
        """Give the number of a stream; None for one that kernels do not know, which has a tag."""
        if not self._is_mysql:
            return int(stream)
        number = self._numbers.get(stream)
        if number is None and stream.endswith(":"):
            number = self._numbers[stream] = len(self._streams)
            self._streams.append(stream)
            added = np.frombuffer(UUID(stream[:-1]).bytes, np.uint8)
            self.sources = np.concatenate([self.sources, added])
        return number

    def pairs(self, ends: Mapping[Stream, int]) -> list[tuple[int, int]]:
        """Give numbers of streams with their ends, without those that kernels do not know."""
        known = ((self.number_of(stream), end) for stream, end in ends.items())
        return [(number, end) for number, end in known if number is not None]

    def told(self, number: int, sequence: int) -> GroupSpan:
        """Give the span of one group, as a reply tells it."""
        span = self.stream(number), sequence * self._is_mysql, sequence
        # As `GroupSpan(…)`, in a third of the time.
        return tuple.__new__(GroupSpan, span)


def ends_of(position: Position) -> dict[Stream, int]:
    """The last number of each stream at a position."""
    if isinstance(position, GtidPosition):
        return {str(gtid.domain_id): gtid.sequence for gtid in position}
    assert isinstance(position, GtidSet), "there are two flavors"
    return {f"{run.source_id}:{run.tag}": run.intervals[-1][1] for run in position.runs}
