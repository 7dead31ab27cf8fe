"""The part of a log that the text kernel looks at, and where in it the kernel stands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from binlane.errors import BinlaneError
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC
from binlane.log.grouping.window import ByteReader, Window
from binlane.log.kernels import text_layout as lay

_LENGTH_AT = slice(9, 13)
_TYPE_AT = 4


class TextWindow:
    """Bytes of a file from the next event on that is not printed yet.

    Args:
        state: State array of the kernel.
        source: Bytes of the file, decrypted.
        size_bytes: Bytes that are looked at together; a larger event makes the window larger.
        base: Position of the first byte.
    """

    def __init__(
        self,
        state: npt.NDArray[np.int64],
        source: ByteReader,
        *,
        size_bytes: int,
        base: int = 0,
    ) -> None:
        self._state = state
        self._size = size_bytes
        self._window = Window(source, size_bytes=size_bytes, base=base)
        self._error: BinlaneError | None = None
        self._state[[lay.BASE, lay.OFFSET, lay.END]] = 0
        self.fill()

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The buffer; the kernel's state has the offsets of the next event and of the end."""
        return self._window.data

    @property
    def position(self) -> int:
        """Position of the next event in the file."""
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
        """True if the next event is there as a whole, or begins with an impossible length."""
        offset, start = int(self._state[lay.OFFSET]), len(MAGIC) if not self.position else 0
        head = self.data[offset + start : offset + start + HEADER_LENGTH].tobytes()
        return self.left >= start + max(int.from_bytes(head[_LENGTH_AT], "little"), HEADER_LENGTH)

    def skip(self, position: int) -> None:
        """Go on at a later position."""
        self._state[lay.OFFSET] = position - self._state[lay.BASE]

    def event_bytes(self) -> bytes:
        """The next event, with the file's magic before the first one; as much as is there."""
        offset, end = int(self._state[lay.OFFSET]), int(self._state[lay.END])
        start = offset + (len(MAGIC) if not self.position else 0)
        head = self.data[start : min(start + HEADER_LENGTH, end)].tobytes()
        length = int.from_bytes(head[_LENGTH_AT], "little")
        # The decoder of the head tells of an impossible length.
        if HEADER_LENGTH <= length <= EVENT_LENGTH_MAX:
            end = min(end, start + length)
        else:
            end = min(end, start + HEADER_LENGTH)
        return self.data[offset:end].tobytes()

    def rest(self) -> Iterator[bytes]:
        """All bytes from the next event on; the window is of no use behind that."""
        offset = int(self._state[lay.OFFSET])
        if self._error is None:
            yield from self._window.rest(offset)
            return
        yield self._window.bytes(offset, self._window.end)
        raise self._error

    def fill(self) -> bool:
        """Drop the printed bytes and read on; False at the end of the file.

        Raises:
            BinlaneError: If no more can be read, once everything before that was given.
        """
        state, window = self._state, self._window
        window.drop(int(state[lay.OFFSET]))
        left = window.end
        wanted = self._size if left < self._size else 2 * left
        try:
            while self._error is None and window.end < wanted and window.fill():
                pass
        except BinlaneError as error:
            # The events before the fault come first.
            self._error = error
        state[lay.BASE], state[lay.OFFSET], state[lay.END] = window.base, 0, window.end
        if window.end == left and self._error is not None:
            raise self._error
        return window.end > left
