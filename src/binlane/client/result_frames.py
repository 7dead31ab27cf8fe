"""The frames of a result set too large to hold, cut out of a connection's bytes as they arrive.

Pure; who reads the socket, and when, is the session's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX
from binlane.log.codec.packets.replies import is_ok


class ResultFrames(ABC):
    """The packets of one result set, without DEPRECATE_EOF, put together.

    Attributes:
        is_done: The last row has come.
        error: The server's refusal, which ends the result set.
        size_bytes: The bytes of the rows that wait to be taken.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.error: bytes | None = None
        self.size_bytes = 0
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = FRAME_HEADER_LENGTH
        self._parts: list[bytes] = []
        self._heads_left = -1

    def feed(self, data: bytes) -> None:
        """Take bytes as they arrive.

        Raises:
            CodecError: If they are not a result set.
        """
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return
        whole = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        end, start = len(whole), 0
        while end - start >= FRAME_HEADER_LENGTH and not (self.is_done or self.error):
            length = whole[start] | whole[start + 1] << 8 | whole[start + 2] << 16
            stop = start + FRAME_HEADER_LENGTH + length
            if stop > end:
                break
            if self._heads_left or self._parts or length == FRAME_PAYLOAD_MAX:
                self._take_slowly(whole[start + FRAME_HEADER_LENGTH : stop])
                start = stop
            else:
                start = self._take_rows(whole, start)
        self._chunks, self._held = [whole[start:]], end - start
        self._needed = FRAME_HEADER_LENGTH
        if self._held >= FRAME_HEADER_LENGTH:
            self._needed += int.from_bytes(whole[start : start + 3], "little")

    @abstractmethod
    def _take_rows(self, data: bytes, start: int) -> int:
        """Take whole frames from an offset on, as long as they are plain rows; return their end."""

    @abstractmethod
    def _take_slowly(self, payload: bytes) -> None:
        """Take one frame: of a head, of a row of several frames, of the end."""

    def _begin(self, payload: bytes) -> int:
        """Take the first packet; return the number of columns."""
        if is_ok(payload):
            raise CodecError("a statement that should give rows gives none")
        reader = Reader(payload)
        count = reader.packed_int()
        reader.finish()
        # Behind the columns stands an EOF packet.
        self._heads_left = count + 1
        return count
