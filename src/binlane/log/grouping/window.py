"""The bytes of a file that kernels look at: one buffer, filled at its end and cut at its front."""

from __future__ import annotations

from typing import Final, Protocol, Self

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

PADDING: Final = 64
"""Bytes behind what a buffer holds that kernels may read, and write to."""


PIECE_BYTES: Final = 1 << 19
"""Bytes that are read at once, so that they are looked at while they are in the cache."""


class ByteReader(Protocol):
    """A source of the bytes of one file, once."""

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If they cannot be read.
        """


class ByteSource(ByteReader, Protocol):
    """A source of the bytes of one file, as often as need be."""

    def reread(self, position: int) -> Self:
        """The same bytes again from a position on.

        Raises:
            StoreError: If they cannot be read again.
        """


def padded(length: int) -> Bytes:
    """A buffer of `length` bytes and the padding."""
    return np.zeros(length + PADDING, np.uint8)


class Buffer:
    """A run of bytes of a file, filled at its end and cut at its front.

    Args:
        size_bytes: The number of bytes that are looked at at once.
        base: The position in the file of the first byte.

    Attributes:
        data: The buffer, with `PADDING` behind it.
        end: The number of bytes in it.
        base: The position in the file of the first one.
    """

    def __init__(self, *, size_bytes: int, base: int = 0) -> None:
        self._size = size_bytes
        self.data = padded(size_bytes + min(size_bytes, PIECE_BYTES))
        self.end = 0
        self.base = base

    @property
    def room(self) -> int:
        """The number of bytes that the window holds, present ones included."""
        return int(self.data.shape[0]) - PADDING

    def grow(self, room: int) -> None:
        """Have room for so many bytes in all."""
        larger = padded(room)
        larger[: self.end] = self.data[: self.end]
        self.data = larger

    @property
    def is_full(self) -> bool:
        """True if there is a window of bytes."""
        return self.end >= self._size

    def drop(self, count: int) -> None:
        """Forget the first bytes; give back the room that one large event needed."""
        if not count:
            return
        left = self.end - count
        if self.data.shape[0] > 8 * self._size + PADDING and left < self._size:
            smaller = padded(2 * self._size)
            smaller[:left] = self.data[count : self.end]
            self.data = smaller
        elif left:
            view = self.data.data  # bytes that overlap are moved by a memoryview without a copy
            view[:left] = view[count : self.end]
        self.base += count
        self.end = left

    def bytes(self, start: int, end: int) -> bytes:
        """A copy of some bytes."""
        return self.data[start:end].tobytes()


class Window(Buffer):
    """A run of bytes of a file that is read.

    Args:
        source: Gives the bytes of the file.
        size_bytes: The number of bytes that are read at once.
        base: The position in the file of the first byte.
    """

    def __init__(self, source: ByteReader, *, size_bytes: int, base: int = 0) -> None:
        super().__init__(size_bytes=size_bytes, base=base)
        self._source = source

    def fill(self) -> bool:
        """Append one more piece; False at the end of the file."""
        piece = min(self._size, PIECE_BYTES)
        if self.room - self.end < piece:
            self.grow(max(2 * self.end, self._size + piece))
        length = self._source.read_into(self.data.data[self.end : self.end + piece])
        self.end += length
        return length > 0

    def reserve(self, count: int) -> None:
        """Make room for so many bytes in all, so that a large event is not copied as it grows."""
        if count + PIECE_BYTES > self.room:
            self.grow(count + PIECE_BYTES)

    def rest(self, start: int) -> Remainder:
        """Give the bytes from an offset on, to the end of the file, in pieces."""
        return Remainder(self.bytes(start, self.end), self._source, self._size)


class Remainder:
    """The bytes of a file behind some place: those already read, then the rest, as pieces.

    Args:
        head: The bytes that were read.
        source: Gives the bytes behind the head.
        size_bytes: The size of a piece.
    """

    def __init__(self, head: bytes, source: ByteReader, size_bytes: int) -> None:
        self._head = head
        self._source = source
        self._piece = bytearray(size_bytes)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        """Return the next piece."""
        if self._head:
            head, self._head = self._head, b""
            return head
        length = self._source.read_into(memoryview(self._piece))
        if not length:
            raise StopIteration
        return bytes(self._piece[:length])
