"""Numbers of the source's groups, and what replies and positions tell by them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, Position

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


def ends_of(position: Position) -> dict[Stream, int]:
    """The last number of each stream at a position."""
    if isinstance(position, GtidPosition):
        return {str(gtid.domain_id): gtid.sequence for gtid in position}
    assert isinstance(position, GtidSet), "there are two flavors"
    return {f"{run.source_id}:{run.tag}": run.intervals[-1][1] for run in position.runs}
