"""Files for transactions that are too large to be held."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Final, Protocol

from binlane.errors import StoreError, StoreFullError

_SUFFIX: Final = ".spill"
_PIECE_BYTES: Final = 1 << 20
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Spilled(Protocol):
    """A group that is put aside as it comes."""

    def write(self, data: memoryview) -> None:
        """Put some bytes more aside.

        Raises:
            StoreError: If they cannot be.
        """

    def chunks(self) -> Iterator[bytes]:
        """Give the bytes that were put aside, each time anew.

        Raises:
            StoreError: If it cannot be read.
        """

    def close(self) -> None:
        """Throw the group away."""


class Spill(Protocol):
    """The store where large groups are put aside."""

    def begin(self) -> Spilled:
        """Begin to put a group aside.

        Raises:
            StoreError: If there is no place for it.
        """


class SpillFolder:
    """The folder for a capture's large transactions, each in a file that is removed after use.

    Args:
        folder: The folder of this capture alone; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def clean(self) -> None:
        """Remove what an earlier process left, as far as it can be: it is in nobody's way."""
        with suppress(OSError):
            for left in self._folder.glob(f"*{_SUFFIX}"):
                left.unlink(missing_ok=True)

    def begin(self) -> SpillFile:
        """Begin with a transaction.

        Raises:
            StoreError: If the file cannot be made.
        """
        path = self._folder / f"{next(self._numbers)}{_SUFFIX}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return SpillFile(path, path.open("w+b", buffering=0))
        except OSError as error:
            raise _failure(error, path) from error


class SpillFile:
    """A transaction that was put aside.

    Args:
        path: The path of the file.
        stream: The file, open for both.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path = path
        self._stream = stream

    def write(self, data: memoryview) -> None:
        """Put some bytes more aside.

        Raises:
            StoreFullError: If the disk is full.
            StoreError: If it fails.
        """
        done = 0
        try:
            while done < len(data):
                done += self._stream.write(data[done:])
        except OSError as error:
            raise _failure(error, self._path) from error

    def chunks(self) -> Iterator[bytes]:
        """Give the bytes that were put aside, each time anew.

        Raises:
            StoreError: If it cannot be read.
        """
        try:
            with self._path.open("rb", buffering=0) as stream:
                while piece := stream.read(_PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise _failure(error, self._path) from error

    def close(self) -> None:
        """Throw the file away."""
        self._stream.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _failure(error: OSError, path: Path) -> StoreError:
    if error.errno in _FULL:
        return StoreFullError(
            "no room for a transaction that is too large to be held",
            path=str(path),
            hint="make room; the transaction is read from the source again",
        )
    return StoreError(
        f"a transaction that is too large to be held cannot be put aside: {error.strerror}",
        path=str(path),
    )
