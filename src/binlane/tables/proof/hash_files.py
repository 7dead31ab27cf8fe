"""Files of row hashes, 8 bytes a row: the rows of one table as they were read at some time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

import numpy as np

from binlane.binlogs.store.disk import unusable
from binlane.tables.proof.table_digest import Hashes, buckets_of

_PIECE_ROWS: Final = 1 << 18
_DRAFT: Final = ".draft"


class HashFile:
    """Writes hashes to a file that appears as a whole, and reads such a file.

    Args:
        path: Path of the whole file.

    Raises:
        StoreError: From each method, if the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._draft: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def begin(self) -> None:
        """Begin to write the file anew."""
        self.discard()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._draft = self._draft_path.open("w+b")
        except OSError as error:
            raise unusable(error, self._draft_path) from error

    def write(self, hashes: Hashes) -> None:
        """Write some more hashes."""
        assert self._draft is not None, "nothing was begun"
        try:
            self._draft.write(hashes.tobytes())
        except OSError as error:
            raise unusable(error, self._draft_path) from error

    def written(self) -> Iterator[Hashes]:
        """Give the hashes that were written since `begin`, in pieces; more may be written later."""
        assert self._draft is not None, "nothing was begun"
        self._draft.flush()
        self._draft.seek(0)
        yield from _pieces(self._draft)
        self._draft.seek(0, os.SEEK_END)

    def rewrite(self, change: Callable[[Iterator[Hashes]], Iterator[Hashes]]) -> None:
        """Replace what was written since `begin` by what a function makes of it, piece by piece."""
        other = HashFile(self.path.with_name(f"{self.path.name}.changed"))
        with other:
            other.begin()
            for hashes in change(self.written()):
                other.write(hashes)
            assert other._draft is not None, "it was begun"
            self.discard()
            try:
                other._draft_path.replace(self._draft_path)
            except OSError as error:
                raise unusable(error, self._draft_path) from error
            self._draft, other._draft = other._draft, None

    def put_in_place(self, path: Path) -> None:
        """End writing; the file is there afterwards, as a whole, under a name."""
        assert self._draft is not None, "nothing was begun"
        try:
            self._draft.flush()
            os.fsync(self._draft.fileno())
            self._draft.close()
            self._draft = None
            self._draft_path.replace(path)
        except OSError as error:
            raise unusable(error, path) from error

    def discard(self) -> None:
        """Take back everything that was written since `begin`."""
        if self._draft is not None:
            self._draft.close()
            self._draft = None
            self._draft_path.unlink(missing_ok=True)

    def read(self) -> Iterator[Hashes]:
        """Give the hashes of the file in pieces."""
        try:
            with self.path.open("rb") as stream:
                yield from _pieces(stream)
        except OSError as error:
            raise unusable(error, self.path) from error

    @property
    def _draft_path(self) -> Path:
        return self.path.with_name(self.path.name + _DRAFT)


def _pieces(stream: BinaryIO) -> Iterator[Hashes]:
    while data := stream.read(8 * _PIECE_ROWS):
        yield np.frombuffer(data, np.uint64)


def without(hashes: Hashes, touched: Hashes) -> Hashes:
    """The hashes that are not among others, which are in order."""
    if not len(touched):
        return hashes
    places = np.searchsorted(touched, hashes)
    places[places == len(touched)] = 0
    kept: Hashes = hashes[touched[places] != hashes]
    return kept


def in_buckets(hashes: Hashes, buckets: np.ndarray) -> Hashes:
    """The hashes in some buckets."""
    kept: Hashes = hashes[np.isin(buckets_of(hashes), buckets)]
    return kept
