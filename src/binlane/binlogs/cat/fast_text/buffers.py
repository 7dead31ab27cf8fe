"""The buffers that the text kernel writes into.

Files take over when the text of one statement outgrows them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from binlane.errors import StoreError
from binlane.log.kernels import text_layout as lay

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Write = Callable[[memoryview], object]

# Bytes that one buffer takes before the text of an incomplete statement goes to a file.
SPILL_BYTES: Final = 16 << 20
_COPY_BYTES: Final = 1 << 20
_ENDS: Final = {
    lay.OUT: lay.OUT_AT,
    lay.HEADS: lay.HEADS_AT,
    lay.NOTE: lay.NOTE_AT,
    lay.ENCODED: lay.ENCODED_AT,
    lay.ROWS: lay.ROWS_AT,
}


class TextBuffers:
    """The buffers of the next output, and of the parts of a statement's rows.

    Args:
        state: State of the kernel; it holds how full the buffers are.
        write: Function that takes the next output, and is done with it when it returns.
        size: Bytes of each buffer to begin with.
        spill_bytes: Bytes of a statement's part that are held in memory.
    """

    def __init__(self, state: Longs, write: Write, *, size: int, spill_bytes: int) -> None:
        self._state = state
        self._write = write
        self._spill_bytes = spill_bytes
        self._arrays = {buffer: np.zeros(size + lay.PADDING, np.uint8) for buffer in _ENDS}
        self._files: dict[int, IO[bytes]] = {}
        self._stack = ExitStack()

    def __getitem__(self, buffer: int) -> Bytes:
        """A buffer's array, which the next call of `make_room` may replace."""
        return self._arrays[buffer]

    def flush(self) -> None:
        """Print the contents of OUT."""
        self._print(lay.OUT)

    def print(self, text: bytes) -> None:
        """Print some text behind the contents of OUT."""
        at, array = int(self._state[lay.OUT_AT]), self._arrays[lay.OUT]
        end = at + len(text)
        if end + lay.PADDING > len(array):
            self.flush()
            self._write(memoryview(text))
            return
        array[at:end] = np.frombuffer(text, np.uint8)
        self._state[lay.OUT_AT] = end

    def add(self, buffer: int, text: bytes) -> None:
        """Add some text to a part of the statement."""
        while len(self._arrays[buffer]) - self._state[_ENDS[buffer]] < len(text) + lay.PADDING:
            self.make_room(buffer, len(text) + lay.PADDING)
        at = int(self._state[_ENDS[buffer]])
        self._arrays[buffer][at : at + len(text)] = np.frombuffer(text, np.uint8)
        self._state[_ENDS[buffer]] = at + len(text)

    def make_room(self, buffer: int, need: int) -> None:
        """Empty a buffer, or make it larger.

        Args:
            buffer: Number of the buffer in the layout.
            need: Bytes that must be free then.

        Raises:
            StoreError: If a file for a long statement cannot be written.
        """
        array, end = self._arrays[buffer], int(self._state[_ENDS[buffer]])
        if buffer == lay.OUT:
            self.flush()
            end = 0
        elif len(array) >= self._spill_bytes and end and buffer != lay.NOTE:
            self._spill(buffer)
            end = 0
        if need > len(array) - end or (end and buffer != lay.OUT):
            grown = np.zeros(max(2 * len(array), end + need + lay.PADDING), np.uint8)
            grown[:end] = array[:end]
            self._arrays[buffer] = grown

    def print_part(self, buffer: int) -> None:
        """Print a part of a statement, wherever it is, and empty it."""
        file = self._files.pop(buffer, None)
        if file is not None:
            file.seek(0)
            while block := file.read(_COPY_BYTES):
                self._write(memoryview(block))
            file.close()
            self._state[lay.SPILLED] = int(bool(self._files))
        self._print(buffer)

    def taken(self, buffer: int) -> bytes:
        """A part of a statement, which is empty then."""
        file, end = self._files.pop(buffer, None), int(self._state[_ENDS[buffer]])
        text = self._arrays[buffer][:end].tobytes()
        self._state[_ENDS[buffer]] = 0
        if file is None:
            return text
        self._state[lay.SPILLED] = int(bool(self._files))
        file.seek(0)
        with file:
            return file.read() + text

    def has(self, buffer: int) -> bool:
        """True if a part of a statement is not empty."""
        return buffer in self._files or bool(self._state[_ENDS[buffer]])

    def drop(self) -> None:
        """Forget all parts of a statement."""
        self._files.clear()
        self._stack.close()
        self._state[[lay.HEADS_AT, lay.ENCODED_AT, lay.ROWS_AT, lay.SPILLED]] = 0

    def _print(self, buffer: int) -> None:
        end = int(self._state[_ENDS[buffer]])
        if end:
            self._write(self._arrays[buffer][:end].data)
            self._state[_ENDS[buffer]] = 0

    def _spill(self, buffer: int) -> None:
        try:
            if buffer not in self._files:
                self._files[buffer] = self._stack.enter_context(
                    tempfile.TemporaryFile()  # noqa: SIM115  # the stack closes it
                )
            end = int(self._state[_ENDS[buffer]])
            self._files[buffer].write(self._arrays[buffer][:end].data)
        except OSError as error:
            raise StoreError(
                "the text of a long statement cannot be kept: " + (error.strerror or str(error)),
                path=tempfile.gettempdir(),
                hint="make room there, or set TMPDIR to another directory",
            ) from error
        self._state[_ENDS[buffer]] = 0
        self._state[lay.SPILLED] = 1
        if buffer == lay.ROWS:
            self._state[lay.EVENT_TEXT] = 0
            self._state[lay.EVENT_KEPT] = self._state[lay.EVENT_ROWS]
