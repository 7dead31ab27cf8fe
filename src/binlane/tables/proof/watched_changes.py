"""The changes that a binlog has of one table between two places."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from binlane.names import TableName
from binlane.positions import Gtid, MysqlGtid, Position
from binlane.tables.proof.row_hashes import Places
from binlane.tables.proof.table_digest import Hashes, buckets_of

Signs = npt.NDArray[np.int8]
"""1 for each row image that came in, -1 for each that went."""

_NONE = np.empty(0, np.uint64)


@dataclass(slots=True)
class WatchedChanges:
    """The changes of one table while its rows are read from a server, or in a replay.

    Attributes:
        table: The table whose changes are kept.
        changes_max: Number of changes that are kept at most.
        buckets: Buckets whose changes are kept; None for all.
        is_replay: True if the binlog is read again from where the table began.
        wanted: Hashes of row images whose bytes are kept, too.
        hashes: Hashes of row images in the order of the log.
        signs: The signs of the same images.
        gtids: The GTID of the group of each piece of `hashes`.
        count: Number of changes that came.
        interruption: Why the reading does not count; empty if it does.
        images: Bytes of wanted row images, with the GTID of the last group that has them.
    """

    table: TableName
    changes_max: int = 20_000_000
    buckets: npt.NDArray[np.int64] | None = None
    is_replay: bool = False
    wanted: frozenset[int] = frozenset()
    hashes: list[Hashes] = field(default_factory=list)
    signs: list[Signs] = field(default_factory=list)
    gtids: list[str] = field(default_factory=list)
    count: int = 0
    interruption: str = ""
    images: dict[int, tuple[bytes, str]] = field(default_factory=dict)

    def restart(self) -> None:
        """Begin anew: the table has no rows here."""
        self.hashes.clear()
        self.signs.clear()
        self.gtids.clear()
        self.count, self.interruption = 0, ""

    def take(self, hashes: Hashes, signs: Signs, gtid: str) -> None:
        """Keep the changes of one event."""
        if self.buckets is not None:
            is_kept = np.isin(buckets_of(hashes), self.buckets)
            hashes, signs = hashes[is_kept], signs[is_kept]
        if not len(hashes):
            return
        self.count += len(hashes)
        if self.count > self.changes_max:
            self.interruption = f"more than {self.changes_max:,} rows of it changed meanwhile"
            self.hashes.clear()
            self.signs.clear()
            self.gtids.clear()
        if not self.interruption:
            self.hashes.append(hashes)
            self.signs.append(signs)
            self.gtids.append(gtid)

    def keep_wanted(self, hashes: Hashes, starts: Places, images: bytes, gtid: str) -> None:
        """Keep the bytes of the wanted ones among the row images of an event."""
        for number in np.flatnonzero(np.isin(hashes, list(self.wanted))).tolist():
            end = int(starts[number + 1]) if number + 1 < len(starts) else len(images)
            self.images[int(hashes[number])] = images[int(starts[number]) : end], gtid

    def finals(self) -> tuple[Hashes, Hashes]:
        """All images that were touched, in order, and those of them that are there at the end.

        No two rows of the table may be alike.
        """
        if not self.hashes:
            return _NONE, _NONE
        hashes, signs = np.concatenate(self.hashes), np.concatenate(self.signs)
        touched, last = np.unique(hashes[::-1], return_index=True)
        return touched, touched[signs[::-1][last] > 0]

    def net(self, done: Position | None = None) -> tuple[Hashes, Hashes]:
        """All images that came in and all that went, with repetitions.

        Args:
            done: Groups that this position covers are left out.
        """
        came, went = [_NONE], [_NONE]
        for hashes, signs, gtid in zip(self.hashes, self.signs, self.gtids, strict=True):
            if done is not None and _is_done(gtid, done):
                continue
            came.append(hashes[signs > 0])
            went.append(hashes[signs < 0])
        return np.concatenate(came), np.concatenate(went)


def _is_done(gtid: str, done: Position) -> bool:
    if not gtid:
        return False
    one = Gtid.parse(gtid) if done.flavor == "mariadb" else MysqlGtid.parse(gtid)
    return done.covers(one)


def multiset_difference(one: Hashes, other: Hashes) -> Hashes:
    """The hashes that one list has more often than another, each as often as it has it more."""
    values, inverse = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = np.bincount(inverse[: len(one)], minlength=len(values))
    counts -= np.bincount(inverse[len(one) :], minlength=len(values))
    found: Hashes = np.repeat(values, np.maximum(counts, 0))
    return found
