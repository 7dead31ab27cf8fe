"""The bytes of a file, read into somebody's buffer: what the fast path takes.

A plain file is read without a copy in between, any other by way of `chunks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from binlane.binlogs.store.chunks import STDIN, open_chunks, unreadable
from binlane.binlogs.store.decompression import MAGICS
from binlane.binlogs.store.log_chunks import is_plain, log_chunks

if TYPE_CHECKING:
    from binlane.log.codec.encryption import KeyRing

FAST_BYTES_MIN: Final = 2 << 20
"""Below, a file is read before the fast path has begun."""


def is_large(path: str | Path, bytes_min: int | None = None) -> bool:
    """True if a file is worth the fast path: large, and a file that can be read twice.

    Args:
        path: Path of the file; `-` for standard input, which is never large.
        bytes_min: Least size that counts as large; `FAST_BYTES_MIN` by default.
    """
    least = FAST_BYTES_MIN if bytes_min is None else bytes_min
    plain = Path(path)
    return str(path) != STDIN and plain.is_file() and plain.stat().st_size >= least


class ChunkBytes:
    """Bytes in pieces of any size, to be read into buffers.

    Args:
        chunks: The pieces, each of any size.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = memoryview(b"")

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end."""
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        length = min(len(view), len(self._left))
        view[:length] = self._left[:length]
        self._left = self._left[length:]
        return length


class FileBytes:
    """The bytes of a file from a position on.

    Args:
        path: A file, plain or compressed by gzip, xz or zstd.
        position: Start, in bytes of the uncompressed file.
        chunks_from: Function that gives other bytes than the file's own from a position on, such as
            decrypted ones.

    Raises:
        StoreError: If the file cannot be read.
    """

    def __init__(
        self,
        path: str | Path,
        position: int = 0,
        *,
        chunks_from: Callable[[int], Iterator[bytes]] | None = None,
    ) -> None:
        self._path = path
        self._plain: FileIO | None = None
        self._chunks = ChunkBytes(())
        self._chunks_from = chunks_from or self._own_chunks
        try:
            if chunks_from is None and _is_uncompressed(path):
                self._plain = FileIO(path)
        except OSError as error:
            raise unreadable(path, error) from error
        self.reread(position)

    @classmethod
    def of_log(cls, path: str | Path, *, keys: KeyRing | None) -> Self:
        """The bytes of a log, decrypted where they are encrypted.

        Args:
            path: Path of the log; `-` is standard input, which cannot be reread.
            keys: Keys of encrypted logs; None if the user gave none.

        Raises:
            StoreError: If it cannot be read.
        """
        if is_plain(path):
            return cls(path)
        return cls(
            path, chunks_from=lambda position: log_chunks(path, position=position, keys=keys)
        )

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If the file cannot be read.
            CorruptStoreError: If its compression is damaged.
            UnsupportedError: If it is an encrypted log, and its key is missing.
        """
        if self._plain is None:
            return self._chunks.read_into(view)
        try:
            return self._plain.readinto(view) or 0
        except OSError as error:
            raise unreadable(self._path, error) from error

    def reread(self, position: int) -> Self:
        """Go to another position, and give itself.

        Raises:
            StoreError: If it cannot be read.
        """
        if self._plain is None:
            self._chunks = ChunkBytes(self._chunks_from(position))
        else:
            self._plain.seek(position)
        return self

    def close(self) -> None:
        """Close the file."""
        if self._plain is not None:
            self._plain.close()

    def _own_chunks(self, position: int) -> Iterator[bytes]:
        return open_chunks(self._path, position=position)


def _is_uncompressed(path: str | Path) -> bool:
    with Path(path).open("rb") as stream:
        return not stream.read(max(map(len, MAGICS))).startswith(MAGICS)


class MeteredBytes:
    """The bytes of a file, told to a meter as they are read.

    Args:
        source: The bytes of the file.
        meter: Called with the number of bytes that were read for the first time.
        position: Position in the file at which `source` begins.
    """

    def __init__(
        self, source: FileBytes, meter: Callable[[int], None], *, position: int = 0
    ) -> None:
        self._source = source
        self._meter = meter
        self._at = self._told = position

    def read_into(self, view: memoryview) -> int:
        """Do as `FileBytes.read_into` does."""
        size_bytes = self._source.read_into(view)
        self._at += size_bytes
        if self._at > self._told:
            self._meter(self._at - self._told)
            self._told = self._at
        return size_bytes

    def reread(self, position: int) -> Self:
        """Do as `FileBytes.reread` does."""
        self._source.reread(position)
        self._at = position
        return self
