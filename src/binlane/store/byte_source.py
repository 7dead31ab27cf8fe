"""The bytes of a file, read into somebody's buffer: what the fast path takes.

A plain file is read without a copy in between, a compressed one by way of `open_chunks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Final, Self

from binlane.errors import StoreError
from binlane.store.chunks import STDIN, open_chunks
from binlane.store.compression import MAGICS

FAST_BYTES_MIN: Final = 2 << 20
"""Below, a file is read before the fast path has begun."""


def is_large(path: str | Path, bytes_min: int | None = None) -> bool:
    """Whether a file is worth the fast path: large, and one that can be read twice.

    Args:
        path: Of the file.
        bytes_min: What counts as large; `FAST_BYTES_MIN` by default.
    """
    least = FAST_BYTES_MIN if bytes_min is None else bytes_min
    plain = Path(path)
    return str(path) != STDIN and plain.is_file() and plain.stat().st_size >= least


class FileBytes:
    """The bytes of a file from a position on.

    Args:
        path: A file, plain or compressed by gzip, xz or zstd; not standard input.
        position: Where to start, in bytes of the uncompressed file.

    Raises:
        StoreError: If it cannot be read.
    """

    def __init__(self, path: str | Path, position: int = 0) -> None:
        self._path = path
        self._stack = ExitStack()
        self._chunks: Iterator[bytes] | None = None
        self._left = memoryview(b"")
        try:
            self._plain = self._stack.enter_context(FileIO(path))
            if self._plain.read(max(map(len, MAGICS))).startswith(MAGICS):
                self._chunks = open_chunks(path, position=position)
                self.close()
            else:
                self._plain.seek(position)
        except OSError as error:
            raise self._failure(error) from error

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If the file cannot be read.
            CorruptStoreError: If its compression is damaged.
        """
        if self._chunks is None:
            try:
                return self._plain.readinto(view) or 0
            except OSError as error:
                raise self._failure(error) from error
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        length = min(len(view), len(self._left))
        view[:length] = self._left[:length]
        self._left = self._left[length:]
        return length

    def reread(self, position: int) -> Self:
        """Go to another position, and give itself.

        Raises:
            StoreError: If it cannot be read.
        """
        self._left = memoryview(b"")
        if self._chunks is None:
            self._plain.seek(position)
        else:
            self._chunks = open_chunks(self._path, position=position)
        return self

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def _failure(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot be read: {error.strerror or error}",
            path=str(self._path),
            hint="check the name and who may read it",
        )


class MeteredBytes:
    """The bytes of a file, told to a meter as they are read.

    Args:
        source: The file.
        meter: Told how many bytes were read.
    """

    def __init__(self, source: FileBytes, meter: Callable[[int], None]) -> None:
        self._source = source
        self._meter = meter

    def read_into(self, view: memoryview) -> int:
        """As `FileBytes.read_into`."""
        size_bytes = self._source.read_into(view)
        self._meter(size_bytes)
        return size_bytes

    def reread(self, position: int) -> Self:
        """As `FileBytes.reread`."""
        self._source.reread(position)
        return self
