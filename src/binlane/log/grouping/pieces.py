"""Bytes that arrive in pieces of any size and are read in any lengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain


class Pieces:
    """The bytes of a file in order.

    Args:
        chunks: The file's bytes in pieces of any size.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._buffer = b""
        self._start = 0

    def fill(self, length: int) -> int:
        """Have at least `length` bytes; how many there are, fewer only at the end of the file."""
        available = len(self._buffer) - self._start
        if available >= length:
            return available
        parts = [self._buffer[self._start :]]
        while available < length and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            available += len(chunk)
        self._buffer, self._start = b"".join(parts), 0
        return available

    def peek(self, length: int, offset: int = 0) -> bytes:
        """`length` bytes, `offset` behind the next one; fewer only at the end of the file."""
        if len(self._buffer) - self._start < offset + length:
            self.fill(offset + length)
        start = self._start + offset
        return self._buffer[start : start + length]

    def take(self, length: int) -> bytes:
        """Read the next bytes, fewer only at the end of the file."""
        if len(self._buffer) - self._start < length:
            self.fill(length)
        data = self._buffer[self._start : self._start + length]
        self._start += len(data)
        return data

    def rest(self) -> Iterator[bytes]:
        """All bytes that are left."""
        left = self._buffer[self._start :]
        self._buffer, self._start = b"", 0
        return chain((left,) if left else (), self._chunks)
