"""The GTIDs of many event groups at once, read from the bytes of their GTID events.

A log's GTIDs mostly come one after the other; that they do is seen here without making a value of
each. Where they do not, whoever asks looks at them one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, Self, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt

from binlane.log.codec.types import EventType
from binlane.log.grouping.window import Bytes
from binlane.positions import Gtid, GtidPosition, GtidRun, GtidSet, Position

_TYPE: Final = 4
_SERVER_ID: Final = 5
_SEQUENCE: Final = 19
_DOMAIN: Final = 27
_UUID: Final = 20
_NUMBER: Final = 36

_Kind = TypeVar("_Kind", np.uint32, np.uint64, np.int64)

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class GtidColumns(Protocol):
    """GTIDs of one flavor, in the order of the log; at least one.

    Attributes:
        flavor: Flavor of the position that they make.
    """

    flavor: ClassVar[str]

    def advance(self, position: Position) -> Position | None:
        """The position behind them all; None if one of them was done before it."""

    def position(self) -> Position:
        """The position that these GTIDs alone make, if they are in order."""

    def first(self, count: int) -> Self:
        """The first of them."""


@dataclass(frozen=True, slots=True)
class MariadbGtids:
    """Columns of MariaDB's GTIDs."""

    flavor: ClassVar[str] = "mariadb"

    domains: npt.NDArray[np.uint32]
    servers: npt.NDArray[np.uint32]
    sequences: Words

    def advance(self, position: Position) -> Position | None:
        """Implement `GtidColumns.advance`: within each domain the sequences grow."""
        assert isinstance(position, GtidPosition), "of one flavor"
        for domain, rows in self._by_domain():
            sequences = self.sequences[rows]
            last = position.last(domain)
            if last is not None and int(sequences[0]) <= last.sequence:
                return None
            if not bool((sequences[1:] > sequences[:-1]).all()):
                return None
        return position.union(self.position())

    def position(self) -> GtidPosition:
        """Implement `GtidColumns.position`."""
        return GtidPosition.of(
            Gtid(domain, int(self.servers[rows][-1]), int(self.sequences[rows][-1]))
            for domain, rows in self._by_domain()
        )

    def first(self, count: int) -> MariadbGtids:
        """Implement `GtidColumns.first`."""
        return MariadbGtids(self.domains[:count], self.servers[:count], self.sequences[:count])

    def _by_domain(self) -> list[tuple[int, npt.NDArray[np.bool_] | slice]]:
        """The rows of each domain."""
        domain = self.domains[0]
        if bool((self.domains == domain).all()):
            return [(int(domain), slice(None))]
        return [(int(one), self.domains == one) for one in np.unique(self.domains)]


@dataclass(frozen=True, slots=True)
class MysqlGtids:
    """Columns of MySQL's GTIDs without tags; the source is given as two halves of 8 bytes."""

    flavor: ClassVar[str] = "mysql"

    high: Words
    low: Words
    numbers: Numbers

    def advance(self, position: Position) -> Position | None:
        """Implement `GtidColumns.advance`: no GTID is in the set before, and none is there twice."""
        assert isinstance(position, GtidSet), "of one flavor"
        done = self.position()
        count = sum(last - first + 1 for run in done.runs for first, last in run.intervals)
        if count < self.numbers.shape[0] or position.intersection(done):
            return None
        return position.union(done)

    def position(self) -> GtidSet:
        """Implement `GtidColumns.position`."""
        return GtidSet.of(
            GtidRun(source_id, "", _intervals(numbers)) for source_id, numbers in self._by_source()
        )

    def first(self, count: int) -> MysqlGtids:
        """Implement `GtidColumns.first`."""
        return MysqlGtids(self.high[:count], self.low[:count], self.numbers[:count])

    def _by_source(self) -> list[tuple[str, Numbers]]:
        high, low = self.high[0], self.low[0]
        if bool((self.high == high).all() and (self.low == low).all()):
            return [(_source_id(high, low), self.numbers)]
        pairs = np.stack([self.high, self.low], axis=1)
        sources, owners = np.unique(pairs, axis=0, return_inverse=True)
        return [
            (_source_id(*source), self.numbers[owners.ravel() == index])
            for index, source in enumerate(sources)
        ]


def gtid_columns(data: Bytes, offsets: Numbers) -> MariadbGtids | MysqlGtids | None:
    """The GTIDs of GTID events in a buffer, at least one.

    Args:
        data: A buffer with padding behind its events.
        offsets: Positions of the events in the buffer.

    Returns:
        None if they are not all of one kind whose fields have fixed places.
    """
    kinds = data[offsets + _TYPE]
    if bool((kinds == EventType.GTID).all()):
        return MariadbGtids(
            domains=_at(data, offsets + _DOMAIN, np.uint32),
            servers=_at(data, offsets + _SERVER_ID, np.uint32),
            sequences=_at(data, offsets + _SEQUENCE, np.uint64),
        )
    if bool((kinds == EventType.GTID_LOG).all()):
        return MysqlGtids(
            high=_at(data, offsets + _UUID, np.uint64),
            low=_at(data, offsets + _UUID + 8, np.uint64),
            numbers=_at(data, offsets + _NUMBER, np.int64),
        )
    return None


def _at(data: Bytes, offsets: Numbers, kind: type[_Kind]) -> npt.NDArray[_Kind]:
    """Little-endian numbers that stand at any offsets."""
    size = np.dtype(kind).itemsize
    numbers = np.dtype(kind).newbyteorder("<")
    overlapping: npt.NDArray[_Kind] = np.ndarray(
        (data.shape[0] - size + 1,), numbers, data.data, 0, (1,)
    )
    return overlapping[offsets].astype(kind, copy=False)


def _source_id(high: np.uint64, low: np.uint64) -> str:
    return str(UUID(bytes=int(high).to_bytes(8, "little") + int(low).to_bytes(8, "little")))


def _intervals(numbers: Numbers) -> tuple[tuple[int, int], ...]:
    """Give numbers as intervals; those that are there twice count once."""
    ordered = np.unique(numbers)
    breaks = np.flatnonzero(ordered[1:] != ordered[:-1] + 1)
    firsts = ordered[np.concatenate([[0], breaks + 1])]
    lasts = ordered[np.concatenate([breaks, [ordered.shape[0] - 1]])]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))
