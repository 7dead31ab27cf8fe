"""Result sets of prepared statements: bytes of a connection → heads and frames of rows; pure.

Rows stay packets: a block is as many whole frames as have come. Only a row that takes several frames
is put together. Prepared statements give numbers and times in binary form, exact and without texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from binlane.client.dialogue import Dialogue, SendCommand, refusal
from binlane.client.result_frames import ResultFrames
from binlane.errors import CodecError
from binlane.log.codec.packets.flags import Command
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX
from binlane.log.codec.packets.replies import is_error
from binlane.log.codec.packets.results import ColumnDefinition

_PREPARED: Final = Struct("<BIHH")
_EXECUTE: Final = Struct("<BIBI")
_CLOSE: Final = Struct("<BI")
_ROW_MARK: Final = 0


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A statement that a server has prepared; it has no parameters.

    Attributes:
        statement_id: The number that the session's server knows it by.
        column_count: The number of columns of its rows.
    """

    statement_id: int
    column_count: int

    def execute(self) -> bytes:
        """The command that runs it, without a cursor."""
        return _EXECUTE.pack(Command.STMT_EXECUTE, self.statement_id, 0, 1)

    def close(self) -> bytes:
        """The command by which the server forgets it, which has no answer."""
        return _CLOSE.pack(Command.STMT_CLOSE, self.statement_id)


def prepare(statement: str, *, peer: str) -> Dialogue[PreparedQuery]:
    """Have a server prepare a query.

    Raises:
        PeerError: If the server refuses it.
    """
    payload = yield (SendCommand(bytes((Command.STMT_PREPARE,)) + statement.encode()),)
    if is_error(payload):
        raise refusal(payload, peer=peer, phase="query")
    if len(payload) < _PREPARED.size:
        raise CodecError("the answer to a statement's preparation is too short")
    _, statement_id, columns, parameters = _PREPARED.unpack_from(payload)
    # Behind the parameters and behind the columns stands an EOF packet.
    for count in (parameters, columns):
        for _ in range(count + 1 if count else 0):
            yield ()
    return PreparedQuery(statement_id, columns)


@dataclass(frozen=True, slots=True)
class RowFrames:
    """Rows as a server sent them.

    Attributes:
        data: Frames of one row each, or, if `is_long`, the payload of one row without a head.
        rows: The number of these rows.
        is_long: True if this is one row that took several frames.
    """

    data: bytes
    rows: int
    is_long: bool = False


class BinaryRows(ResultFrames):
    """The rows of one result set of a prepared statement.

    Attributes:
        heads: The columns, once they have come.
    """

    def __init__(self) -> None:
        super().__init__()
        self.heads: tuple[ColumnDefinition, ...] = ()
        self._waiting: list[RowFrames] = []

    def take(self) -> list[RowFrames]:
        """The rows that came since, in order."""
        waiting, self._waiting, self.size_bytes = self._waiting, [], 0
        return waiting

    def _take_rows(self, data: bytes, start: int) -> int:
        end, rows, first = len(data), 0, start
        while end - start > FRAME_HEADER_LENGTH and data[start + FRAME_HEADER_LENGTH] == _ROW_MARK:
            length = data[start] | data[start + 1] << 8 | data[start + 2] << 16
            stop = start + FRAME_HEADER_LENGTH + length
            if stop > end or length == FRAME_PAYLOAD_MAX:
                break
            rows += 1
            start = stop
        if rows:
            self._waiting.append(RowFrames(data[first:start], rows))
            self.size_bytes += start - first
            return start
        length = data[start] | data[start + 1] << 8 | data[start + 2] << 16
        stop = start + FRAME_HEADER_LENGTH + length
        self._take_slowly(data[start + FRAME_HEADER_LENGTH : stop])
        return stop

    def _take_slowly(self, payload: bytes) -> None:
        self._parts.append(payload)
        if len(payload) == FRAME_PAYLOAD_MAX:
            return
        whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        if is_error(whole) and self._heads_left <= 0:
            self.error = whole
        elif self._heads_left < 0:
            self._begin(whole)
        elif self._heads_left:
            self._heads_left -= 1
            if self._heads_left:
                self.heads += (ColumnDefinition.decode(whole),)
        elif whole[:1] == bytes((_ROW_MARK,)):
            self._waiting.append(RowFrames(whole, 1, is_long=True))
            self.size_bytes += len(whole)
        else:
            self.is_done = True
