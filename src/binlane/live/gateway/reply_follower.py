"""The source's replies: where each ends and the next begins, and which are read, changed or kept back.

A statement that binlane answers itself must not overtake what the source still owes, a client's
packet is a command only if it is not the content of a LOAD DATA LOCAL file, and the status flags of
the session are those of its last reply. That much is read of every reply; rows pass unread.

Where statements are judged, the source is told that the client wants to hear of the session's state.
A client that did not ask for that gets OK packets without it, one that did not ask for GTIDs gets them
without those.

Source: MariaDB 10.11 sql/protocol.cc; MySQL 9.7 "Command Phase".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from struct import Struct
from typing import Final, Protocol

from binlane.errors import CodecError
from binlane.live.gateway.judge import OkFields, StatementReply
from binlane.live.gateway.ok_packets import (
    SHORT_OK,
    WARNINGS_MAX,
    ok_for_client,
    read_ok,
    reply_of_ok,
    short_ok,
    status_of_eof,
    status_of_ok,
)
from binlane.live.gateway.passing_sessions import PassedSession
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX, frame
from binlane.log.codec.packets.replies import (
    EOF_MARK,
    ERR_MARK,
    OK_MARK,
    EofPacket,
    ErrPacket,
)
from binlane.log.codec.packets.results import LOCAL_INFILE_MARK
from binlane.log.codec.packets.session_state import SessionState
from binlane.log.kernels.passing_layout import (
    CACHES_METADATA,
    DEPRECATES_EOF,
    HIDES_STATE,
    REPORTS_PROGRESS,
    STEP_IDLE,
    STRIPS_GTIDS,
)

_NO_REPLY: Final = frozenset({Command.QUIT, Command.STMT_SEND_LONG_DATA, Command.STMT_CLOSE})
_ROWS_ONLY: Final = frozenset({Command.FIELD_LIST, Command.STMT_FETCH})
_NO_OK: Final = frozenset((Command.STMT_PREPARE, Command.STATISTICS))
"""Commands whose reply may begin as an OK packet does, and is none."""
_HEAD_MAX: Final = 24
"""Bytes of an OK packet's fields up to its status: a mark, two packed integers, the flags."""
_EOF_LENGTH_MAX: Final = 8
_SHORT_REPLY: Final = 250
_PROGRESS: Final = bytes((ERR_MARK, 0xFF, 0xFF))
_MORE_RESULTS: Final = int(ServerStatus.MORE_RESULTS)
_CURSOR_EXISTS: Final = int(ServerStatus.CURSOR_EXISTS)
_LASTING: Final = int(
    ServerStatus.IN_TRANSACTION
    | ServerStatus.AUTOCOMMIT
    | ServerStatus.DB_DROPPED
    | ServerStatus.NO_BACKSLASH_ESCAPES
    | ServerStatus.IN_READ_ONLY_TRANSACTION
    | ServerStatus.ANSI_QUOTES
)
_PREPARED: Final = Struct("<BIHH")
_MARKS: Final = frozenset((OK_MARK, EOF_MARK, ERR_MARK))
_RESULTS: Final = b"\x15character_set_results"
"""A variable's name behind its length."""


class ReplyStep(Enum):
    """The place of the next packet in a reply."""

    HEAD = "head"
    DEFINITIONS = "definitions"
    DEFINITIONS_END = "end of definitions"
    ROWS = "rows"
    SKIP = "skip"


class Role(Enum):
    """The receiver of a reply, and who is told of it."""

    PASSES = "the client's"
    WATCHED = "the client's; its watcher is told the packet that answers the command"
    JUDGED = "the client's; the listener is told what came of each statement"
    OWN = "binlane's own; the client does not get it"


Watcher = Callable[[bytes], None]
"""Takes the OK, ERR or EOF packet that answers a command, or the head of the reply."""
_Expected = tuple[int, Role, Watcher | None]
"""A command under way, the role of its reply, and its watcher."""

# Members of enumerations are looked up anew each time that they are named.
_HEAD: Final = ReplyStep.HEAD
_PASSES: Final = Role.PASSES
_JUDGED: Final = Role.JUDGED
_QUERY: Final = int(Command.QUERY)
_EXECUTE: Final = int(Command.STMT_EXECUTE)
_RUNNING: Final = (_QUERY, _EXECUTE)
_EXECUTE_WITH_CURSOR: Final = 0x100 | Command.STMT_EXECUTE
"""Among the commands under way, whose numbers are a byte each."""
_STEPS: Final = (_HEAD, *ReplyStep)
"""The places of packets by the numbers that the kernel has for them."""
QUERY_THAT_PASSES: Final[_Expected] = (_QUERY, Role.PASSES, None)
JUDGED_QUERY: Final[_Expected] = (_QUERY, Role.JUDGED, None)
JUDGED_EXECUTION: Final[_Expected] = (_EXECUTE, Role.JUDGED, None)


class Listener(Protocol):
    """Listener that is told of replies while they are read."""

    @property
    def hides_gtids(self) -> bool:
        """True if the source tells GTIDs in the session's state that the client has not asked for."""
        ...

    def answered(self, replies: list[StatementReply]) -> int:
        """Take the replies to a judged command; give the number of warnings to add."""
        ...

    def answered_at_once(self, ok: OkFields) -> bool:
        """Take an OK packet that answers a judged command in full; False if `answered` has to be called."""
        ...

    def own_answered(self, reply: StatementReply, payload: bytes) -> None:
        """Take the outcome of a statement of binlane's own, and its last packet."""
        ...


class _Nobody:
    """The listener where no reply is judged, and none is binlane's own."""

    hides_gtids = False

    def answered(self, replies: list[StatementReply]) -> int:
        """Add no warnings."""
        del replies
        return 0

    def answered_at_once(self, ok: OkFields) -> bool:
        """Add no warnings."""
        del ok
        return True

    def own_answered(self, reply: StatementReply, payload: bytes) -> None:
        """Do nothing."""


class ReplyFollower:
    """Follows the source's replies to the commands that it was sent.

    Args:
        capabilities: Capabilities that the source takes to be agreed on.
        extended: MariaDB's own capabilities among them.
        client: Capabilities that the client has agreed on; None for the same.
        listener: Told of replies to judged commands and of binlane's own; None for nobody.

    Attributes:
        wants_local_data: True if the client's next packets are a file's content.
        results_charset: Value of `character_set_results` as the source told last that it changed; empty
            before.
    """

    def __init__(
        self,
        capabilities: Capability,
        extended: ExtendedCapability,
        *,
        client: Capability | None = None,
        listener: Listener | None = None,
    ) -> None:
        client = capabilities if client is None else client
        self._deprecates_eof = Capability.DEPRECATE_EOF in capabilities
        self._caches_metadata = ExtendedCapability.CACHE_METADATA in extended
        self._reports_progress = ExtendedCapability.PROGRESS in extended
        self._client_has_state = Capability.SESSION_TRACK in client
        self._hides_state = client != capabilities
        self._listener = _Nobody() if listener is None else listener
        self._expected: deque[_Expected] = deque()
        self._step = _HEAD
        self._packets_left = 0
        self._rest = b""
        self._bytes_left = 0
        self._continues = False
        self._drops = False
        self._status = int(ServerStatus.AUTOCOMMIT)
        self._number = 0
        self._local_number = 0
        self._replies: list[StatementReply] = []
        self._result_ended = False
        self.wants_local_data = False
        self.results_charset = ""

    @property
    def status(self) -> ServerStatus:
        """Flags of the session as its last reply told them, without those of that reply alone."""
        return ServerStatus(self._status & _LASTING)

    @property
    def is_idle(self) -> bool:
        """True if the source owes no reply, not even the last bytes of one."""
        return not self._expected and not self._bytes_left

    @property
    def expects_more(self) -> bool:
        """True if a command is without a reply."""
        return bool(self._expected)

    @property
    def is_authenticating(self) -> bool:
        """True if the client's next packets answer the source's questions on who it is."""
        return bool(self._expected) and self._expected[0][0] == Command.CHANGE_USER

    @property
    def is_judged(self) -> bool:
        """True if the reply that comes is one to statements that a judge has let run."""
        return bool(self._expected) and self._expected[0][1] is _JUDGED

    def expect(
        self,
        command: int,
        role: Role = Role.PASSES,
        *,
        opens_cursor: bool = False,
        watcher: Watcher | None = None,
    ) -> None:
        """Expect the reply to a command that goes to the source, if it has one.

        Args:
            command: Number of the command's kind.
            role: Role that the reply plays.
            opens_cursor: True for a COM_STMT_EXECUTE whose rows shall be fetched.
            watcher: Watcher of a reply that is watched.
        """
        if command in _NO_REPLY:
            return
        self._expected.append((_EXECUTE_WITH_CURSOR if opens_cursor else command, role, watcher))
        if len(self._expected) == 1:
            self._begin()

    def expect_known(self, known: tuple[int, Role, Watcher | None]) -> None:
        """Expect the reply to a COM_QUERY or COM_STMT_EXECUTE, as `expect` does, in a third of the time.

        Args:
            known: One of `QUERY_THAT_PASSES`, `JUDGED_QUERY` and `JUDGED_EXECUTION`.
        """
        if not self._expected:
            self._step = _HEAD
        self._expected.append(known)

    def take_local_frame(self, number: int, *, is_last: bool) -> None:
        """Count a frame of a file's content that goes to the source.

        A server that finds another number than the next takes what comes then for commands.

        Args:
            number: Sequence number of the frame.
            is_last: True if the frame is empty, and no continuation: the content has ended.

        Raises:
            CodecError: If the number is not the next one.
        """
        if number != self._local_number:
            raise wrong_number(number, self._local_number)
        self._local_number = (number + 1) & 0xFF
        if is_last:
            self.wants_local_data = False

    def feed(self, data: bytes) -> bytes:
        """Look at bytes from the source, in order.

        An OK packet that came alone, to the only command under way, is read here; anything else by
        `_read_packets`: replies to binlane's own statements, packets that are long or not whole, and
        those of which more follow.

        Returns:
            What the client gets of them.

        Raises:
            CodecError: If a packet is not what the protocol has at its place.
        """
        length = len(data) - FRAME_HEADER_LENGTH
        if not SHORT_OK <= length < _SHORT_REPLY or data[0] != length or data[1] or data[2]:
            return self._read_packets(data)
        if self._step is not _HEAD or self._rest or self._bytes_left or self._continues:
            return self._read_packets(data)
        expected = self._expected
        if len(expected) != 1 or data[4] != OK_MARK or self._drops or self._replies:
            return self._read_packets(data)
        command, role, _ = expected[0]
        if command not in _RUNNING or not (role is _JUDGED or role is _PASSES):
            return self._read_packets(data)
        payload = data[FRAME_HEADER_LENGTH:]
        ok = short_ok(payload)
        if ok is None or ok[2] & _MORE_RESULTS:
            return self._read_packets(data)
        expected.clear()
        self._status = ok[2]
        if _RESULTS in ok[5]:
            self._note_results(ok[5])
        warnings, listener = 0, self._listener
        if role is _JUDGED and not listener.answered_at_once(ok):
            warnings = listener.answered([reply_of_ok(ok)])
        hides_gtids = self._client_has_state and listener.hides_gtids
        if not (warnings or hides_gtids or self._hides_state):
            return data
        changed = ok_for_client(payload, ok, warnings, self._client_has_state, hides_gtids)
        return data if changed is None else bytes((len(changed), 0, 0, data[3])) + changed

    def _read_packets(self, data: bytes) -> bytes:  # noqa: C901, PLR0912 - the hottest loop
        """Look at any bytes from the source."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        pieces: list[bytes] = []
        offset = told = 0  # what stands before `told` is in `pieces`, or kept back
        size = len(data)
        while True:
            step = min(self._bytes_left, size - offset)
            offset, self._bytes_left = offset + step, self._bytes_left - step
            if self._drops:
                told = offset
            if self._bytes_left or size - offset < FRAME_HEADER_LENGTH:
                break
            length = data[offset] | data[offset + 1] << 8 | data[offset + 2] << 16
            start = offset + FRAME_HEADER_LENGTH
            head_end = start + (min(_HEAD_MAX, length))
            if head_end > size:
                break
            is_plain_row = self._step is ReplyStep.ROWS and length and data[start] < EOF_MARK
            if not self._continues and (not is_plain_row or self._drops):
                expected = self._expected
                drops = bool(expected) and expected[0][1] is Role.OWN
                if drops is not self._drops:
                    pieces.append(data[told:offset])
                    told, self._drops = offset, drops
                if not is_plain_row and expected:
                    self._number = data[offset + 3]
                    stop = start + length
                    if self._is_read(data[start] if length else OK_MARK, length):
                        if stop > size:
                            break
                        payload = data[start:stop]
                        changed = self._read(payload)
                        if changed is not None:
                            pieces += (data[told:offset], frame(changed, data[offset + 3]))
                            offset = told = stop
                            continue
                    else:
                        self._packet(length, data[start:head_end])
            self._continues = length == FRAME_PAYLOAD_MAX
            offset, self._bytes_left = start, length
        self._rest = data[offset:]
        if not pieces and not told:
            return data if offset == size else data[:offset]
        pieces.append(data[told:offset])
        return b"".join(pieces)

    # Sessions that pass ---------------------------------------------------------------------------

    @property
    def passing_rules(self) -> int:
        """Capabilities that bear on the replies' packets, as in `passing_layout`."""
        strips_gtids = not self._client_has_state or self._listener.hides_gtids
        return (
            self._deprecates_eof * DEPRECATES_EOF
            | self._caches_metadata * CACHES_METADATA
            | self._reports_progress * REPORTS_PROGRESS
            | self._hides_state * HIDES_STATE
            | strips_gtids * STRIPS_GTIDS
        )

    def go_on(self, passed: PassedSession, role: Role) -> None:
        """Go on where a session has passed unread up to now.

        Args:
            passed: State of the session, as the kernel gives it back.
            role: Role of the reply that is under way, if one is.
        """
        self._status = passed.status
        self._bytes_left, self._continues = passed.bytes_left, passed.is_continued
        self._rest, self._packets_left = passed.held, passed.packets_left
        self._step = _STEPS[passed.step]
        if passed.step != STEP_IDLE:
            command = _EXECUTE if passed.execution > 0 else _QUERY
            self._expected.append((command, role, None))

    # Packets that are read as wholes --------------------------------------------------------------

    def _note_results(self, state: bytes) -> None:
        told = SessionState.decode(state).variables.get("character_set_results")
        self.results_charset = self.results_charset if told is None else told

    @property
    def _is_changed(self) -> bool:
        """True if the client gets OK packets without something that the source tells."""
        return self._hides_state or (self._client_has_state and self._listener.hides_gtids)

    def _is_read(self, mark: int, length: int) -> bool:
        """True if a packet is to be there as a whole; a row of 16 MB may begin as an end does."""
        return (
            mark in _MARKS
            and length < FRAME_PAYLOAD_MAX
            and (self._expected[0][1] is not _PASSES or self._is_changed)
        )

    def _read(self, payload: bytes) -> bytes | None:
        """Follow a packet that is there as a whole; give the bytes for the client in its place."""
        command, role, watcher = self._expected[0]
        step, count = self._step, len(self._expected)
        mark = payload[0] if payload else OK_MARK
        ok: OkFields | None = None
        self._result_ended = False
        if self._is_ok(mark, step):
            ok = read_ok(payload)
            if _RESULTS in ok[5]:
                self._note_results(ok[5])
            self._end_or_more(ok[2])
        else:
            self._packet(len(payload), payload[:_HEAD_MAX])
        has_ended = len(self._expected) < count
        if watcher is not None and step is _HEAD and (has_ended or command == Command.STMT_PREPARE):
            watcher(payload)
        if not self._result_ended:
            return None
        if role is _PASSES or role is Role.WATCHED:
            return self._for_client(payload, ok, 0) if ok is not None and self._is_changed else None
        reply = self._reply(payload, mark, ok, is_result_set=step is not _HEAD)
        if role is _JUDGED:
            return self._judged(payload, mark, ok, reply, has_ended=has_ended)
        if has_ended:
            self._listener.own_answered(reply, payload)
        return None

    def _is_ok(self, mark: int, step: ReplyStep) -> bool:
        if mark == EOF_MARK:
            return step is ReplyStep.ROWS and self._deprecates_eof
        return mark == OK_MARK and step is _HEAD and self._expected[0][0] not in _NO_OK

    def _judged(
        self,
        payload: bytes,
        mark: int,
        ok: OkFields | None,
        reply: StatementReply,
        *,
        has_ended: bool,
    ) -> bytes | None:
        self._replies.append(reply)
        warnings = 0
        if has_ended:
            replies, self._replies = self._replies, []
            warnings = self._listener.answered(replies)
        if ok is not None:
            if warnings or self._is_changed:
                return self._for_client(payload, ok, warnings)
        elif warnings and mark == EOF_MARK:
            eof = EofPacket.decode(payload)
            return replace(eof, warnings=min(eof.warnings + warnings, WARNINGS_MAX)).encode()
        return None

    def _reply(
        self, payload: bytes, mark: int, ok: OkFields | None, *, is_result_set: bool
    ) -> StatementReply:
        if ok is not None:
            return reply_of_ok(ok)._replace(is_result_set=is_result_set)
        if mark == ERR_MARK:
            error = ErrPacket.decode(payload)
            return StatementReply(errno=error.errno, message=error.message, status=self.status)
        eof = EofPacket.decode(payload)
        return StatementReply(status=eof.status, warnings=eof.warnings, is_result_set=is_result_set)

    def _for_client(self, payload: bytes, ok: OkFields, warnings: int) -> bytes | None:
        hides_gtids = self._client_has_state and self._listener.hides_gtids
        return ok_for_client(payload, ok, warnings, self._client_has_state, hides_gtids)

    # Ends of replies ------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._step = ReplyStep.ROWS if self._expected[0][0] in _ROWS_ONLY else _HEAD

    def _end(self) -> None:
        self._result_ended = True
        self._expected.popleft()
        if self._expected:
            self._begin()
        else:
            self._step = _HEAD

    def _end_or_more(self, status: int) -> None:
        """End one result: another one follows where the flags say so."""
        self._status = status
        self._result_ended = True
        command, role, _ = self._expected[0]
        # A watched command has one reply, whatever the source says.
        if status & _MORE_RESULTS and command not in _ROWS_ONLY and role is not Role.WATCHED:
            self._step = _HEAD
        else:
            self._end()

    def _packet(self, length: int, head: bytes) -> None:
        mark = head[0] if head else OK_MARK
        if mark == ERR_MARK:
            if not (self._reports_progress and head.startswith(_PROGRESS)):
                self._end()
        elif self._step is _HEAD:
            self._head(mark, length, head)
        elif self._step is ReplyStep.ROWS:
            self._row(mark, length, head)
        elif self._step is ReplyStep.DEFINITIONS_END:
            status = status_of_eof(head)
            if self._has_cursor(status):
                self._end_or_more(status)
            else:
                self._step = ReplyStep.ROWS
        else:
            self._count()

    def _has_cursor(self, status: int) -> bool:
        """True if the rows of a result are kept for COM_STMT_FETCH.

        The flag alone does not say so: a cursor of a routine leaves it to all results that follow,
        of COM_QUERY too. Results of CALL are sent whatever was asked for, and another one follows.
        Measured.
        """
        is_told = status & _CURSOR_EXISTS and not status & _MORE_RESULTS
        return bool(is_told) and self._expected[0][0] == _EXECUTE_WITH_CURSOR

    def _count(self) -> None:
        self._packets_left -= 1
        if self._packets_left:
            return
        if self._step is ReplyStep.SKIP:
            self._end()
        else:
            self._step = ReplyStep.ROWS if self._deprecates_eof else ReplyStep.DEFINITIONS_END

    def _head(self, mark: int, length: int, head: bytes) -> None:
        command = self._expected[0][0]
        if command == Command.STATISTICS:
            self._end()
        elif command == Command.STMT_PREPARE:
            self._prepared(head)
        elif command == Command.CHANGE_USER and mark != OK_MARK:
            return
        elif mark == OK_MARK:
            self._end_or_more(status_of_ok(head))
        elif mark == EOF_MARK and length <= _EOF_LENGTH_MAX:
            self._end_or_more(status_of_eof(head))
        elif mark == LOCAL_INFILE_MARK:
            self.wants_local_data = True
            self._local_number = (self._number + 1) & 0xFF
        else:
            self._columns(head)

    def _columns(self, head: bytes) -> None:
        reader = Reader(head)
        count = reader.packed_int()
        sends_definitions = not self._caches_metadata or reader.u8()
        self._packets_left = count
        if sends_definitions and count:
            self._step = ReplyStep.DEFINITIONS
        else:
            self._step = ReplyStep.ROWS if self._deprecates_eof else ReplyStep.DEFINITIONS_END

    def _prepared(self, head: bytes) -> None:
        _, _, columns, parameters = Reader(head).unpack(_PREPARED)
        ends = 0 if self._deprecates_eof else 1
        self._packets_left = sum(count + ends for count in (parameters, columns) if count)
        if self._packets_left:
            self._step = ReplyStep.SKIP
        else:
            self._end()

    def _row(self, mark: int, length: int, head: bytes) -> None:
        # A row may begin with 0xFE too: its first cell is then at least 16 MB long.
        if mark != EOF_MARK:
            return
        if self._deprecates_eof and length < FRAME_PAYLOAD_MAX:
            self._end_or_more(status_of_ok(head))
        elif not self._deprecates_eof and length <= _EOF_LENGTH_MAX:
            self._end_or_more(status_of_eof(head))


def wrong_number(number: int, expected: int) -> CodecError:
    """Make the error of a client's packet that is numbered otherwise than the next one."""
    return CodecError(f"the client sends packet {number}, and {expected} is next")
