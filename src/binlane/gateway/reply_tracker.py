"""Where one reply ends and the next begins, in bytes that are forwarded unread.

A statement that binlane answers itself must not overtake what the source still owes, a client's
packet is a command only if it is not the content of a LOAD DATA LOCAL file, and the status flags of
the session are those of its last reply. That much is read of replies, and no more.

Source: MariaDB 10.11 sql/protocol.cc; MySQL 9.7 "Command Phase".
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from struct import Struct
from typing import Final

from binlane.codec.buffer import Reader
from binlane.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX
from binlane.codec.packets.replies import EOF_MARK, ERR_MARK, OK_MARK
from binlane.codec.packets.results import LOCAL_INFILE_MARK

NO_REPLY: Final = frozenset({Command.QUIT, Command.STMT_SEND_LONG_DATA, Command.STMT_CLOSE})
_ROWS_ONLY: Final = frozenset({Command.FIELD_LIST, Command.STMT_FETCH})
# An OK packet's fields up to its status: a mark, two packed integers, the flags.
HEAD_MAX: Final = 24
EOF_LENGTH_MAX: Final = 8
_PROGRESS: Final = bytes((ERR_MARK, 0xFF, 0xFF))
_MORE_RESULTS: Final = int(ServerStatus.MORE_RESULTS)
_CURSOR_EXISTS: Final = int(ServerStatus.CURSOR_EXISTS)
_EXECUTE_WITH_CURSOR: Final = 0x100 | Command.STMT_EXECUTE
"""Among the commands under way, whose numbers are a byte each."""
_LASTING: Final = int(
    ServerStatus.IN_TRANSACTION
    | ServerStatus.AUTOCOMMIT
    | ServerStatus.DB_DROPPED
    | ServerStatus.NO_BACKSLASH_ESCAPES
    | ServerStatus.IN_READ_ONLY_TRANSACTION
    | ServerStatus.ANSI_QUOTES
)
_PREPARED: Final = Struct("<BIHH")
_STATUS_OFFSET_OF_EOF: Final = 3
_SHORT_OK_LENGTH: Final = 7
_ONE_BYTE: Final = 0xFB


class Step(Enum):
    """Where in a reply its next packet stands."""

    HEAD = "head"
    DEFINITIONS = "definitions"
    DEFINITIONS_END = "end of definitions"
    ROWS = "rows"
    SKIP = "skip"


class ReplyTracker:
    """Follows the source's replies to the commands that it was sent.

    Attributes:
        wants_local_data: Whether the client's next packets are a file's content.
        local_number: Of the next of those, 0 to 255.
        user_changes: Of each COM_CHANGE_USER that was answered whether it succeeded, in order; for
            others to take out.
    """

    def __init__(self, capabilities: Capability, extended: ExtendedCapability) -> None:
        self._deprecates_eof = Capability.DEPRECATE_EOF in capabilities
        self._caches_metadata = ExtendedCapability.CACHE_METADATA in extended
        self._reports_progress = ExtendedCapability.PROGRESS in extended
        self._commands: deque[int] = deque()
        self._step = Step.HEAD
        self._packets_left = 0
        self._rest = b""
        self._bytes_left = 0
        self._continues = False
        self._status = int(ServerStatus.AUTOCOMMIT)
        self.wants_local_data = False
        self.local_number = 0
        self._number = 0
        self.user_changes: deque[bool] = deque()

    @property
    def status(self) -> ServerStatus:
        """Of the session, as its last reply said; without what is said of that reply alone."""
        return ServerStatus(self._status & _LASTING)

    @property
    def is_idle(self) -> bool:
        """Whether the source owes no reply, not even the last bytes of one."""
        return not self._commands and not self._bytes_left

    @property
    def is_authenticating(self) -> bool:
        """Whether the client's next packets answer the source's questions on who it is."""
        return bool(self._commands) and self._commands[0] == Command.CHANGE_USER

    def expect(self, command: int, *, opens_cursor: bool = False) -> None:
        """A command goes to the source.

        Args:
            command: Its number.
            opens_cursor: It is a COM_STMT_EXECUTE whose rows shall be fetched.
        """
        if command in NO_REPLY:
            return
        self._commands.append(_EXECUTE_WITH_CURSOR if opens_cursor else command)
        if len(self._commands) == 1:
            self._begin()

    def local_data_ended(self) -> None:
        """The client has sent the empty packet behind a file's content."""
        self.wants_local_data = False

    def feed(self, data: bytes) -> bytes:
        """Look at bytes from the source, in order.

        Returns:
            What the client gets of them.

        Raises:
            CodecError: If a packet is not what the protocol has at its place.
        """
        given = data
        if self._rest:
            data, self._rest = self._rest + data, b""
        offset, size = 0, len(data)
        while True:
            step = min(self._bytes_left, size - offset)
            offset, self._bytes_left = offset + step, self._bytes_left - step
            if self._bytes_left or size - offset < FRAME_HEADER_LENGTH:
                break
            length = data[offset] | data[offset + 1] << 8 | data[offset + 2] << 16
            start = offset + FRAME_HEADER_LENGTH
            end = start + min(length, HEAD_MAX)
            if end > size:
                break
            is_plain_row = self._step is Step.ROWS and length and data[start] < EOF_MARK
            if not self._continues and not is_plain_row and self._commands:
                self._number = data[offset + 3]
                self._packet(length, data[start:end])
            self._continues = length == FRAME_PAYLOAD_MAX
            offset, self._bytes_left = start, length
        self._rest = data[offset:]
        return given

    def _begin(self) -> None:
        self._step = Step.ROWS if self._commands[0] in _ROWS_ONLY else Step.HEAD

    def _end(self) -> None:
        self._commands.popleft()
        if self._commands:
            self._begin()
        else:
            self._step = Step.HEAD

    def _end_or_more(self, status: int) -> None:
        """The end of one result: another one follows where the flags say so."""
        self._status = status
        if status & _MORE_RESULTS and self._commands[0] not in _ROWS_ONLY:
            self._step = Step.HEAD
        else:
            self._end()

    def _packet(self, length: int, head: bytes) -> None:
        mark = head[0] if head else OK_MARK
        if self._commands[0] == Command.CHANGE_USER and mark in (OK_MARK, ERR_MARK):
            self.user_changes.append(mark == OK_MARK)
        if mark == ERR_MARK:
            if not (self._reports_progress and head.startswith(_PROGRESS)):
                self._end()
        elif self._step is Step.HEAD:
            self._head(mark, length, head)
        elif self._step is Step.ROWS:
            self._row(mark, length, head)
        elif self._step is Step.DEFINITIONS_END:
            status = _status_of_eof(head)
            if self._has_cursor(status):
                self._end_or_more(status)
            else:
                self._step = Step.ROWS
        else:
            self._count()

    def _has_cursor(self, status: int) -> bool:
        """Whether the rows of a result are kept for COM_STMT_FETCH.

        The flag alone does not say so: a cursor of a routine leaves it to all results that follow,
        of COM_QUERY too. Results of CALL are sent whatever was asked for, and another one follows.
        Measured.
        """
        is_told = status & _CURSOR_EXISTS and not status & _MORE_RESULTS
        return bool(is_told) and self._commands[0] == _EXECUTE_WITH_CURSOR

    def _count(self) -> None:
        self._packets_left -= 1
        if self._packets_left:
            return
        if self._step is Step.SKIP:
            self._end()
        else:
            self._step = Step.ROWS if self._deprecates_eof else Step.DEFINITIONS_END

    def _head(self, mark: int, length: int, head: bytes) -> None:
        command = self._commands[0]
        if command == Command.STATISTICS:
            self._end()
        elif command == Command.STMT_PREPARE:
            self._prepared(head)
        elif command == Command.CHANGE_USER and mark != OK_MARK:
            return
        elif mark == OK_MARK:
            self._end_or_more(_status_of_ok(head))
        elif mark == EOF_MARK and length <= EOF_LENGTH_MAX:
            self._end_or_more(_status_of_eof(head))
        elif mark == LOCAL_INFILE_MARK:
            self.wants_local_data = True
            self.local_number = (self._number + 1) & 0xFF
        else:
            self._columns(head)

    def _columns(self, head: bytes) -> None:
        reader = Reader(head)
        count = reader.packed_int()
        sends_definitions = not self._caches_metadata or reader.u8()
        self._packets_left = count
        if sends_definitions and count:
            self._step = Step.DEFINITIONS
        else:
            self._step = Step.ROWS if self._deprecates_eof else Step.DEFINITIONS_END

    def _prepared(self, head: bytes) -> None:
        _, _, columns, parameters = Reader(head).unpack(_PREPARED)
        ends = 0 if self._deprecates_eof else 1
        self._packets_left = sum(count + ends for count in (parameters, columns) if count)
        if self._packets_left:
            self._step = Step.SKIP
        else:
            self._end()

    def _row(self, mark: int, length: int, head: bytes) -> None:
        # A row may begin with 0xFE too: its first cell is then at least 16 MB long.
        if mark != EOF_MARK:
            return
        if self._deprecates_eof and length < FRAME_PAYLOAD_MAX:
            self._end_or_more(_status_of_ok(head))
        elif not self._deprecates_eof and length <= EOF_LENGTH_MAX:
            self._end_or_more(_status_of_eof(head))


def _status_of_ok(head: bytes) -> int:
    if len(head) >= _SHORT_OK_LENGTH and head[1] < _ONE_BYTE and head[2] < _ONE_BYTE:
        return head[3] | head[4] << 8
    reader = Reader(head, 1)
    reader.packed_int()
    reader.packed_int()
    return reader.u16()


def _status_of_eof(head: bytes) -> int:
    return Reader(head, _STATUS_OFFSET_OF_EOF).u16()
