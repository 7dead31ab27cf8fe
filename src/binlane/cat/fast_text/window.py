"""The part of a file that the text kernel looks at: one buffer that moves along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from binlane.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC
from binlane.errors import BinlaneError, StoreError
from binlane.grouping.decryption import is_encrypted, plain_chunks
from binlane.kernels import text_layout as lay
from binlane.store.chunks import STDIN, open_chunks

if TYPE_CHECKING:
    from binlane.codec.encryption import KeyRing

ReadInto = Callable[[memoryview], int]
"""Fills a buffer with the next bytes of a file and gives how many; 0 at its end."""

_LENGTH_AT = slice(9, 13)
_TYPE_AT = 4
_PIECE_BYTES = 1 << 20
_HEAD_BYTES = 4096


def read_chunks(chunks: Iterable[bytes]) -> ReadInto:
    """Bytes in pieces of any size, to be read into a buffer."""
    pieces = iter(chunks)
    rest = memoryview(b"")

    def read(buffer: memoryview) -> int:
        nonlocal rest
        while not rest:
            chunk = next(pieces, None)
            if chunk is None:
                return 0
            rest = memoryview(chunk)
        taken, rest = rest[: len(buffer)], rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    return read


@contextmanager
def open_log(
    path: str, *, keys: KeyRing | None, meter: Callable[[int], None] | None
) -> Iterator[ReadInto]:
    """The plain bytes of a file, compressed or encrypted or not, or of standard input.

    Args:
        path: The file; `-` is standard input.
        keys: Of encrypted files.
        meter: Told how many bytes were read.
    """
    with ExitStack() as stack:
        if _is_plain(path):
            stream = stack.enter_context(Path(path).open("rb", buffering=0))
            read = _told(stream.readinto, path)
        else:
            read = read_chunks(plain_chunks(open_chunks(path), file=path, keys=keys))
        yield read if meter is None else _metered(read, meter)


def _is_plain(path: str) -> bool:
    """Whether the file's bytes are those of the log, to be read without a copy."""
    if path == STDIN or not Path(path).is_file():
        return False
    with Path(path).open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return head.startswith(MAGIC) and not is_encrypted(head)


def _told(readinto: Callable[[memoryview], int | None], path: str) -> ReadInto:
    def read(buffer: memoryview) -> int:
        try:
            return readinto(buffer) or 0
        except OSError as error:
            raise StoreError(
                f"cannot be read: {error.strerror or error}",
                path=path,
                hint="check the name and who may read it",
            ) from error

    return read


def _metered(read: ReadInto, meter: Callable[[int], None]) -> ReadInto:
    def metered(buffer: memoryview) -> int:
        size = read(buffer)
        meter(size)
        return size

    return metered


class Window:
    """Bytes of a file from the first event that is not printed on.

    Attributes:
        data: The buffer; the kernel's state says where the next event and the end are.

    Args:
        state: Of the kernel.
        size: Bytes to begin with; an event that is larger makes the buffer larger.
    """

    def __init__(self, state: npt.NDArray[np.int64], size: int) -> None:
        self._state = state
        self._size = size
        self._read: ReadInto = lambda _: 0
        self._error: BinlaneError | None = None
        self.data = np.zeros(size + lay.PADDING, np.uint8)

    def open(self, read: ReadInto) -> None:
        """Begin a file, and look at its first bytes."""
        self._read = read
        self._error = None
        self._state[[lay.BASE, lay.OFFSET, lay.END]] = 0
        self.fill()

    @property
    def position(self) -> int:
        """Where the next event stands in the file."""
        return int(self._state[lay.BASE] + self._state[lay.OFFSET])

    @property
    def left(self) -> int:
        """Bytes that are there from the next event on."""
        return int(self._state[lay.END] - self._state[lay.OFFSET])

    @property
    def event_type(self) -> int:
        """Code of the next event's type."""
        return int(self.data[self._state[lay.OFFSET] + _TYPE_AT])

    @property
    def has_event(self) -> bool:
        """Whether the next event is there as a whole, or begins with no length of one."""
        offset, start = int(self._state[lay.OFFSET]), len(MAGIC) if not self.position else 0
        head = self.data[offset + start : offset + start + HEADER_LENGTH].tobytes()
        return self.left >= start + max(int.from_bytes(head[_LENGTH_AT], "little"), HEADER_LENGTH)

    def skip(self, position: int) -> None:
        """Go on at another position."""
        self._state[lay.OFFSET] = position - self._state[lay.BASE]

    def event_bytes(self) -> bytes:
        """The next event, with the file's magic before the first one; as much as is there."""
        offset, end = int(self._state[lay.OFFSET]), int(self._state[lay.END])
        start = offset + (len(MAGIC) if not self.position else 0)
        head = self.data[start : min(start + HEADER_LENGTH, end)].tobytes()
        length = int.from_bytes(head[_LENGTH_AT], "little")
        # What is no length is told by whoever decodes the head.
        if HEADER_LENGTH <= length <= EVENT_LENGTH_MAX:
            end = min(end, start + length)
        else:
            end = min(end, start + HEADER_LENGTH)
        return self.data[offset:end].tobytes()

    def rest(self) -> Iterator[bytes]:
        """All bytes from the next event on; the window is of no use behind that."""
        yield self.data[self._state[lay.OFFSET] : self._state[lay.END]].tobytes()
        if self._error is not None:
            raise self._error
        piece = memoryview(bytearray(_PIECE_BYTES))
        while size := self._read(piece):
            yield bytes(piece[:size])

    def fill(self) -> bool:
        """Drop what is printed and read on; False at the end of the file.

        Raises:
            BinlaneError: If no more can be read, once everything before that was given.
        """
        state = self._state
        offset, left = int(state[lay.OFFSET]), self.left
        if offset:
            self.data[:left] = self.data[offset : offset + left]
            state[lay.BASE] += offset
            state[lay.OFFSET] = 0
        if left >= self._size:
            self._grow(left)
        end = left
        while end < self._size and (taken := self._next_bytes(end)):
            end += taken
        state[lay.END] = end
        if end == left and self._error is not None:
            raise self._error
        return end > left

    def _next_bytes(self, at: int) -> int:
        if self._error is not None:
            return 0
        try:
            return self._read(self.data[at : self._size].data)
        except BinlaneError as error:
            # What stands before the fault comes first.
            self._error = error
            return 0

    def _grow(self, left: int) -> None:
        self._size *= 2
        grown = np.zeros(self._size + lay.PADDING, np.uint8)
        grown[:left] = self.data[:left]
        self.data = grown
