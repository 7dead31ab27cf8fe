"""A text result set too large to hold: bytes of a connection → cells, column by column.

Cells stay what the server sent. Pure; who reads the socket, and when, is the session's.
"""

from __future__ import annotations

from typing import Final

from binlane.client.result_frames import ResultFrames
from binlane.errors import CodecError
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX
from binlane.log.codec.packets.replies import EOF_MARK, is_eof, is_error
from binlane.log.codec.packets.results import decode_row

Cells = list[bytes | None]
"""Values of one column, one a row; NULL is None."""

_NULL: Final = 251
_TWO_BYTES: Final = 252
_THREE_BYTES: Final = 253
_EIGHT_BYTES: Final = 254
_EOF_PAYLOAD_MAX: Final = 8


class TextRows(ResultFrames):
    """The rows of one result set in text form.

    Attributes:
        rows: Rows that wait for `take`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0
        self._column_count = 0
        self._columns: list[Cells] = []

    def take(self) -> list[Cells]:
        """The rows that came since, a list of cells for each column."""
        columns = self._columns
        self._columns = [[] for _ in range(self._column_count)]
        self.rows = self.size_bytes = 0
        return columns

    def _take_rows(self, data: bytes, start: int) -> int:
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
        self._parts.append(payload)
        if len(payload) == FRAME_PAYLOAD_MAX:
            return
        whole = b"".join(self._parts)
        is_long, self._parts = len(self._parts) > 1, []
        if is_error(whole):
            self.error = whole
        elif self._heads_left < 0:
            self._column_count = self._begin(whole)
            self.take()
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
