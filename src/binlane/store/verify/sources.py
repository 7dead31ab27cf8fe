"""The plain bytes of a log for a window: decompressed, decrypted, also from standard input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from binlane.codec.encryption import KeyRing
from binlane.grouping.decryption import plain_chunks
from binlane.store.chunks import open_chunks


class LogBytes:
    """The bytes of a log, as its positions count them.

    Args:
        path: Of the file, as `open_chunks` takes it.
        keys: If it is encrypted.
    """

    def __init__(self, path: str | Path, keys: KeyRing | None) -> None:
        self._path, self._keys = path, keys
        self._chunks = self._open()
        self._left = memoryview(b"")

    def _open(self) -> Iterator[bytes]:
        return plain_chunks(open_chunks(self._path), file=str(self._path), keys=self._keys)

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If the file cannot be read, or its compression is damaged.
            CodecError: If it is encrypted and cannot be decrypted.
        """
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        length = min(len(view), len(self._left))
        view[:length] = self._left[:length]
        self._left = self._left[length:]
        return length
