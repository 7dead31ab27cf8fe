"""The bytes of a file that the fast path looks at: a run of them, longer at its end, cut at its front."""

from __future__ import annotations

from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

PADDING: Final = 64
"""Bytes behind what a buffer holds that kernels may read, and write to."""


PIECE_BYTES: Final = 1 << 19
"""Bytes that are read at once, so that they are looked at while they are in the cache."""


class ByteSource(Protocol):
    """Where the bytes of one file come from."""

    def read_into(self, view: memoryview) -> int:
        """Read at most as many bytes as fit; 0 at the end.

        Raises:
            StoreError: If they cannot be read.
        """

    def reread(self, position: int) -> Self:
        """The same bytes again from a position on.

        Raises:
            StoreError: If they cannot be read again.
        """


@runtime_checkable
class MappedSource(ByteSource, Protocol):
    """One whose bytes can be looked at where they lie."""

    def mapped(self, position: int, held: int, length: int) -> memoryview | None:
        """The bytes from a position on where they lie, without a copy.

        Args:
            position: In the file.
            held: How many behind it were looked at before.
            length: At most so many; fewer at the end of the file.

        Returns:
            The bytes, which may be written to without changing the file; None if they can only
            be read.

        Raises:
            StoreError: If the file has become so short that `held` bytes are not there any more.
        """


def padded(length: int) -> Bytes:
    """A buffer of `length` bytes and the padding."""
    return np.zeros(length + PADDING, np.uint8)


class Window:
    """A run of bytes of a file: mapped into memory where that can be done, else read.

    The last bytes of a file are always read, since kernels look behind the end.

    Args:
        source: Of the bytes.
        size_bytes: How many are looked at at once.
        base: The position in the file of the first byte.

    Attributes:
        data: The buffer, with `PADDING` behind it.
        end: Bytes in it.
        base: The position in the file of the first one.
    """

    def __init__(self, source: ByteSource, *, size_bytes: int, base: int = 0) -> None:
        self._source = source
        self._size = size_bytes
        self._is_mapped = False
        self.data = padded(0)
        self.end = 0
        self.base = base
        self._is_mapped = self._map()

    def fill(self) -> bool:
        """Take more behind what is there; False at the end of the file."""
        if self._is_mapped:
            if self._map():
                return True
            self._is_mapped = False
            self._read_on()
        piece = min(self._size, PIECE_BYTES)
        if self.data.shape[0] - PADDING - self.end < piece:
            self._renew(max(2 * self.end, self._size + piece))
        length = self._source.read_into(self.data.data[self.end : self.end + piece])
        self.end += length
        return length > 0

    def _map(self) -> bool:
        """Map what is held and a window more behind it; False if there is no whole one."""
        length = self.end + self._size + PADDING
        if not isinstance(self._source, MappedSource):
            return False
        view = self._source.mapped(self.base, self.end, length)
        if view is None or len(view) < length:
            return False
        self.data = np.frombuffer(view, np.uint8)
        self.end += self._size
        return True

    def _read_on(self) -> None:
        """Copy what is held; what comes behind it is read."""
        self._renew(self.end + self._size)
        self._source = self._source.reread(self.base + self.end)

    def _renew(self, length: int) -> None:
        """Take another buffer for what is held."""
        other = padded(length)
        other[: self.end] = self.data[: self.end]
        self.data = other

    @property
    def is_full(self) -> bool:
        """Whether there is a window of bytes."""
        return self.end >= self._size

    def drop(self, count: int) -> None:
        """Forget the first bytes; give back the room that one large event needed."""
        if not count:
            return
        left = self.end - count
        if self._is_mapped:
            self.data = self.data[count:]
        else:
            self.data[:left] = self.data[count : self.end]  # numpy minds that they may overlap
        self.base += count
        self.end = left
        is_large = self.data.shape[0] > 8 * self._size + PADDING
        if is_large and not self._is_mapped and left <= 2 * self._size:
            self._renew(2 * self._size)

    def bytes(self, start: int, end: int) -> bytes:
        """A copy of some bytes."""
        return self.data[start:end].tobytes()

    def rest(self, start: int) -> Remainder:
        """What comes from an offset on, to the end of the file, in pieces."""
        head = self.bytes(start, self.end)
        if self._is_mapped:
            self._source = self._source.reread(self.base + self.end)
        return Remainder(head, self._source, self._size)


class Remainder:
    """Bytes that were read and those behind them, as pieces.

    Args:
        head: The bytes that were read.
        source: Of those behind them.
        size_bytes: Of a piece.
    """

    def __init__(self, head: bytes, source: ByteSource, size_bytes: int) -> None:
        self._head = head
        self._source = source
        self._piece = bytearray(size_bytes)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        """The next piece."""
        if self._head:
            head, self._head = self._head, b""
            return head
        length = self._source.read_into(memoryview(self._piece))
        if not length:
            raise StopIteration
        return bytes(self._piece[:length])
