"""A text result set too large to hold: bytes of a connection → cells, column by column.

Cells stay what the server sent. Pure; who reads the socket, and when, is the session's.
"""

from __future__ import annotations

from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX
from binlane.log.codec.packets.replies import EOF_MARK, is_eof, is_error, is_ok
from binlane.log.codec.packets.results import decode_row

Cells = list[bytes | None]
"""Values of one column, one a row; NULL is None."""

_NULL: Final = 251
_TWO_BYTES: Final = 252
_THREE_BYTES: Final = 253
_EIGHT_BYTES: Final = 254
_EOF_PAYLOAD_MAX: Final = 8


class TextRows:
    """The packets of one result set, without DEPRECATE_EOF, put together.

    Attributes:
        is_done: The last row has come.
        error: The server's refusal, which ends the result set.
        rows: Rows that wait for `take`.
        size_bytes: The bytes of those rows' packets.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.error: bytes | None = None
        self.rows = 0
        self.size_bytes = 0
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = FRAME_HEADER_LENGTH
        self._parts: list[bytes] = []
        self._column_count = 0
        self._heads_left = -1
        self._columns: list[Cells] = []

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

    def take(self) -> list[Cells]:
        """The rows that came since, a list of cells for each column."""
        columns = self._columns
        self._columns = [[] for _ in range(self._column_count)]
        self.rows = self.size_bytes = 0
        return columns

    def _take_rows(self, data: bytes, start: int) -> int:
        """Take whole frames from an offset on, as long as they are plain rows; return their end."""
        end, rows, first = len(data), 0, start
        appends = [column.append for column in self._columns]
        while end - start >= FRAME_HEADER_LENGTH:
            length = data[start] | data[start + 1] << 8 | data[start + 2] << 16
            at = start + FRAME_HEADER_LENGTH
            stop = at + length
            if stop > end or length == FRAME_PAYLOAD_MAX:
                break
            mark = data[at] if length else 0
            if mark >= _EIGHT_BYTES and (mark > _EIGHT_BYTES or length <= _EOF_PAYLOAD_MAX):
                self._take_slowly(data[at:stop])
                start = stop
                break
            for append in appends:
                size = data[at]
                at += 1
                if size < _NULL:
                    append(data[at : at + size])
                    at += size
                elif size == _NULL:
                    append(None)
                else:
                    width = 2 if size == _TWO_BYTES else 3 if size == _THREE_BYTES else 8
                    size = int.from_bytes(data[at : at + width], "little")
                    at += width
                    append(data[at : at + size])
                    at += size
            if at != stop:
                raise CodecError("a row of a result set has another length than its cells")
            rows += 1
            start = stop
        self.rows += rows
        self.size_bytes += start - first
        return start

    def _take_slowly(self, payload: bytes) -> None:
        """Take one frame: of a head, of a row of several frames, of the end."""
        self._parts.append(payload)
        if len(payload) == FRAME_PAYLOAD_MAX:
            return
        whole = b"".join(self._parts)
        is_long, self._parts = len(self._parts) > 1, []
        if is_error(whole):
            self.error = whole
        elif self._heads_left < 0:
            self._begin(whole)
        elif self._heads_left:
            self._heads_left -= 1
        elif whole[:1] == bytes((EOF_MARK,)) and not is_long and is_eof(whole):
            self.is_done = True
        else:
            for column, cell in zip(
                self._columns, decode_row(whole, self._column_count), strict=True
            ):
                column.append(cell)
            self.rows += 1
            self.size_bytes += len(whole)

    def _begin(self, payload: bytes) -> None:
        if is_ok(payload):
            raise CodecError("a statement that should give rows gives none")
        reader = Reader(payload)
        self._column_count = reader.packed_int()
        reader.finish()
        # Behind the columns stands an EOF packet.
        self._heads_left = self._column_count + 1
        self.take()
