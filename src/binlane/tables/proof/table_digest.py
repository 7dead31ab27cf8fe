"""Digest of the rows of one table, in which the order of rows does not count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
"""Hashes of whole row images, as `row_hashes` gives them."""

BUCKETS: Final = 1024
_BUCKET_BITS: Final = np.uint64(BUCKETS - 1)


def _no_counts() -> npt.NDArray[np.int64]:
    return np.zeros(BUCKETS, np.int64)


def _no_sums() -> Hashes:
    return np.zeros(BUCKETS, np.uint64)


def buckets_of(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The bucket of each row, 0 to 1,023."""
    return (hashes & _BUCKET_BITS).astype(np.int64)


@dataclass(slots=True)
class TableDigest:
    """For each bucket of rows their number, and the sum of their hashes modulo 2^64.

    Equal digests mean equal tables but for a chance of about one in 2^64 a bucket.

    Attributes:
        counts: Number of rows by bucket; negative where more rows were deleted than there were.
        sums: Sum of the rows' hashes by bucket.
    """

    counts: npt.NDArray[np.int64] = field(default_factory=_no_counts)
    sums: Hashes = field(default_factory=_no_sums)

    @classmethod
    def of(cls, hashes: Hashes) -> Self:
        """Make the digest of some rows."""
        digest = cls()
        digest.add(hashes)
        return digest

    def add(self, hashes: Hashes) -> None:
        """Take rows in."""
        buckets = buckets_of(hashes)
        self.counts += np.bincount(buckets, minlength=BUCKETS)
        np.add.at(self.sums, buckets, hashes)

    def remove(self, hashes: Hashes) -> None:
        """Take rows out, which need not be there."""
        buckets = buckets_of(hashes)
        self.counts -= np.bincount(buckets, minlength=BUCKETS)
        np.subtract.at(self.sums, buckets, hashes)

    def copy(self) -> Self:
        """Return another digest of the same rows."""
        return type(self)(self.counts.copy(), self.sums.copy())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def differing(self, other: TableDigest) -> npt.NDArray[np.int64]:
        """The buckets in which two digests differ, in order."""
        is_other = (self.counts != other.counts) | (self.sums != other.sums)
        return np.flatnonzero(is_other).astype(np.int64)
