"""Replies to a session whose statements are judged: which packets are read, changed or kept back.

The source is told that the client wants to hear of the session's state. A client that did not ask
for that gets OK packets without it, one that did not ask for GTIDs gets them without those. Rows pass
unread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from struct import Struct
from types import MappingProxyType
from typing import Final, Protocol

from binlane.codec.buffer import encode_packed_int
from binlane.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
    encode_packed_bytes,
    frame,
    text_of,
)
from binlane.codec.packets.replies import (
    EOF_MARK,
    ERR_MARK,
    OK_MARK,
    EofPacket,
    ErrPacket,
    OkPacket,
)
from binlane.codec.packets.session_state import SessionState, without_gtids
from binlane.gateway.judge import Reply
from binlane.gateway.reply_tracker import HEAD_MAX, NO_REPLY, ReplyTracker, Step

_WARNINGS_MAX: Final = 0xFFFF
_COUNT_OF_WARNINGS: Final = b"  Warnings: "
_STATUS: Final = Struct("<HH")
_STATE_CHANGED: Final = int(ServerStatus.SESSION_STATE_CHANGED)
_MORE_RESULTS: Final = int(ServerStatus.MORE_RESULTS)
_ONE_BYTE: Final = 0xFB
"""Length-encoded integers below are one byte; this one stands for NULL."""
_WIDTHS: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
_SHORT_OK: Final = 7
_SHORT_REPLY: Final = 250
_SHORT_STATE: Final = 4
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_MARKS: Final = frozenset((OK_MARK, EOF_MARK, ERR_MARK))
_NO_OK: Final = frozenset((Command.STMT_PREPARE, Command.STATISTICS))
"""Commands whose reply may begin as an OK packet does, and is none."""
_QUERY: Final = int(Command.QUERY)
# Members of enumerations are looked up anew each time that they are named.
_HEAD: Final = Step.HEAD
_RESULTS: Final = b"\x15character_set_results"
"""A variable's name behind its length."""


class Role(Enum):
    """Whose reply it is, and who is told of it."""

    PASSES = "the client's"
    WATCHED = "the client's; its first packet is told"
    JUDGED = "the client's; what came of each statement is told"
    OWN = "binlane's own; the client does not get it"


_PASSES: Final = Role.PASSES
_JUDGED: Final = Role.JUDGED


class Listener(Protocol):
    """Who is told of replies, while they are read."""

    @property
    def hides_gtids(self) -> bool:
        """Whether the source tells GTIDs in the session's state that the client has not asked for."""
        ...

    def watched(self, payload: bytes) -> None:
        """Be told the OK, ERR or EOF packet that answers a command, or the head of its reply."""
        ...

    def answered(self, replies: list[Reply]) -> int:
        """Be told what came of a command; by how many its count of warnings grows."""
        ...

    def own_answered(self, reply: Reply, payload: bytes) -> None:
        """Be told what came of a statement of binlane's own, and its last packet."""
        ...


class FollowedReplies(ReplyTracker):
    """Follows the source's replies to commands and to statements of binlane's own.

    Args:
        capabilities: What the source takes to be agreed on.
        extended: MariaDB's own among them.
        client: What the client has agreed on.
        listener: Is told.

    Attributes:
        results_charset: `character_set_results` as the source told last that it changed; empty
            before.
    """

    def __init__(
        self,
        capabilities: Capability,
        extended: ExtendedCapability,
        *,
        client: Capability,
        listener: Listener,
    ) -> None:
        super().__init__(capabilities, extended)
        self._is_told = Capability.SESSION_TRACK in client
        self._is_untold = client != capabilities
        self._listener = listener
        self._roles: deque[Role] = deque()
        self._replies: list[Reply] = []
        self._drops = False
        self._result_ended = False
        self.results_charset = ""

    @property
    def is_judged(self) -> bool:
        """Whether the reply that comes is one to statements that a judge has let run."""
        return bool(self._roles) and self._roles[0] is Role.JUDGED

    def expect(self, command: int, role: Role = Role.PASSES, *, opens_cursor: bool = False) -> None:
        """A command goes to the source; arguments as of `ReplyTracker.expect`."""
        if command not in NO_REPLY:
            self._roles.append(role)
            super().expect(command, opens_cursor=opens_cursor)

    def expect_query(self, role: Role) -> None:
        """A COM_QUERY goes to the source, which owes nothing."""
        self._roles.append(role)
        self._commands.append(_QUERY)
        self._step = _HEAD

    def feed(self, data: bytes) -> bytes:
        """Look at bytes from the source; arguments and errors as of `ReplyTracker.feed`.

        An OK packet that came alone, to the only command under way, is read here; anything else by
        `_read_packets`: replies to binlane's own statements, packets that are long or not whole, and
        those of which more follow.
        """
        length = len(data) - FRAME_HEADER_LENGTH
        if not _SHORT_OK <= length < _SHORT_REPLY or data[0] != length or data[1] or data[2]:
            return self._read_packets(data)
        if self._step is not _HEAD or self._rest or self._bytes_left or self._continues:
            return self._read_packets(data)
        commands, roles = self._commands, self._roles
        if len(commands) != 1 or commands[0] != _QUERY or data[4] != OK_MARK or self._drops:
            return self._read_packets(data)
        role, payload = roles[0], data[FRAME_HEADER_LENGTH:]
        ok = _short_ok(payload)
        if ok is None or ok[2] & _MORE_RESULTS or self._replies:
            return self._read_packets(data)  # of several results
        if role is not _JUDGED and role is not _PASSES:
            return self._read_packets(data)
        commands.clear()
        roles.clear()
        self._status = ok[2]
        if _RESULTS in ok[5]:
            self._note_results(ok[5])
        warnings = 0
        if role is _JUDGED:
            warnings = self._listener.answered([_reply_of(ok)])
        if not (warnings or self._is_untold or self._listener.hides_gtids):
            return data
        changed = self._for_client(payload, ok, warnings)
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
            if start + min(length, HEAD_MAX) > size:
                break
            if not self._continues:
                drops = bool(self._roles) and self._roles[0] is Role.OWN
                if drops is not self._drops:
                    pieces.append(data[told:offset])
                    told, self._drops = offset, drops
                is_plain_row = self._step is Step.ROWS and length and data[start] < EOF_MARK
                if not is_plain_row and self._roles:
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
                        self._packet(length, data[start : start + HEAD_MAX])
            self._continues = length == FRAME_PAYLOAD_MAX
            offset, self._bytes_left = start, length
        self._rest = data[offset:]
        if not pieces and not told:
            return data if offset == size else data[:offset]
        pieces.append(data[told:offset])
        return b"".join(pieces)

    def _note_results(self, state: bytes) -> None:
        told = SessionState.decode(state).variables.get("character_set_results")
        self.results_charset = self.results_charset if told is None else told

    @property
    def _is_changed(self) -> bool:
        """Whether the client gets OK packets without something that the source tells."""
        return self._is_untold or self._listener.hides_gtids

    def _is_read(self, mark: int, length: int) -> bool:
        """Whether a packet is to be there as a whole; a row of 16 MB may begin as an end does."""
        return (
            mark in _MARKS
            and length < FRAME_PAYLOAD_MAX
            and (self._is_changed or self._roles[0] is not Role.PASSES)
        )

    def _end(self) -> None:
        self._result_ended = True
        self._roles.popleft()
        super()._end()

    def _end_or_more(self, status: int) -> None:
        self._result_ended = True
        if self._roles[0] is Role.WATCHED:
            status &= ~_MORE_RESULTS  # such a command has one reply, whatever the source says
        super()._end_or_more(status)

    def _read(self, payload: bytes) -> bytes | None:
        """Follow a packet that is there as a whole; gives what the client gets in its place."""
        role, step = self._roles[0], self._step
        count = len(self._roles)
        mark = payload[0] if payload else OK_MARK
        ok: _Ok | None = None
        self._result_ended = False
        if self._is_ok(mark, step):
            ok = _read_ok(payload)
            if _RESULTS in ok[5]:
                self._note_results(ok[5])
            self._end_or_more(ok[2])
        else:
            self._packet(len(payload), payload[:HEAD_MAX])
        if role is Role.WATCHED and step is Step.HEAD:
            self._listener.watched(payload)
        if not self._result_ended:
            return None
        if role is Role.PASSES or role is Role.WATCHED:
            return self._for_client(payload, ok, 0) if ok is not None and self._is_changed else None
        has_ended = len(self._roles) < count
        reply = self._reply(payload, mark, ok, is_result_set=step is not Step.HEAD)
        if role is Role.JUDGED:
            return self._judged(payload, mark, ok, reply, has_ended=has_ended)
        if has_ended:
            self._listener.own_answered(reply, payload)
        return None

    def _is_ok(self, mark: int, step: Step) -> bool:
        if mark == EOF_MARK:
            return step is Step.ROWS and self._deprecates_eof
        return mark == OK_MARK and step is Step.HEAD and self._commands[0] not in _NO_OK

    def _judged(
        self, payload: bytes, mark: int, ok: _Ok | None, reply: Reply, *, has_ended: bool
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
            return replace(eof, warnings=min(eof.warnings + warnings, _WARNINGS_MAX)).encode()
        return None

    def _reply(self, payload: bytes, mark: int, ok: _Ok | None, *, is_result_set: bool) -> Reply:
        if ok is not None:
            return _reply_of(ok)._replace(is_result_set=is_result_set)
        if mark == ERR_MARK:
            error = ErrPacket.decode(payload)
            return Reply(errno=error.errno, message=error.message, status=self.status)
        eof = EofPacket.decode(payload)
        return Reply(status=eof.status, warnings=eof.warnings, is_result_set=is_result_set)

    def _for_client(self, payload: bytes, ok: _Ok, warnings: int) -> bytes | None:
        """An OK packet as the client gets it, with some more warnings; None for as it came."""
        _, _, status, count, info, state, status_at = ok
        if not warnings and not status & _STATE_CHANGED:
            return None
        if warnings:
            count = min(count + warnings, _WARNINGS_MAX)
            info = _with_more(info, warnings)
        tells = bool(status & _STATE_CHANGED) and self._is_told
        if tells and self._listener.hides_gtids:
            state = without_gtids(state)
            tells = bool(state)
        if not tells:
            status &= ~_STATE_CHANGED
        head = payload[:status_at] + _STATUS.pack(status, count)
        if tells:
            return head + encode_packed_bytes(info) + encode_packed_bytes(state)
        return head + encode_packed_bytes(info) if info else head


_Ok = tuple[int, int, int, int, bytes, bytes, int]
"""An OK packet: affected rows, insert id, status, warnings, info, session state as of `OkPacket`, the
status as a number; and where that stands in the payload."""


def _read_ok(payload: bytes) -> _Ok:
    """What `OkPacket.decode` gives, in a fraction of the time for packets that are short."""
    return _short_ok(payload) or _long_ok(OkPacket.decode(payload))


def _short_ok(payload: bytes) -> _Ok | None:
    """An OK packet whose texts are short; None where it is none, or its end is not where it says."""
    size = len(payload)
    if size < _SHORT_OK or payload[1] >= _ONE_BYTE or payload[2] == _ONE_BYTE:
        return None
    insert_id, at = payload[2], 3
    if insert_id > _ONE_BYTE:
        at += _WIDTHS.get(insert_id, size)
        insert_id = int.from_bytes(payload[3:at], "little")
    start = at + _STATUS.size
    if start > size:
        return None
    status, warnings = _STATUS.unpack_from(payload, at)
    if start == size:
        return payload[1], insert_id, status, warnings, b"", b"", at
    info_end = start + 1 + payload[start]
    state = b""
    end = info_end
    if status & _STATE_CHANGED and info_end < size:
        end = info_end + 1 + payload[info_end]
        state = payload[info_end + 1 :]
        if payload[info_end] >= _ONE_BYTE:
            return None
    if end != size or payload[start] >= _ONE_BYTE:
        return None
    info = payload[start + 1 : info_end]
    return payload[1], insert_id, status, warnings, info, state, at


def _long_ok(ok: OkPacket) -> _Ok:
    numbers = encode_packed_int(ok.affected_rows) + encode_packed_int(ok.insert_id)
    return (
        ok.affected_rows,
        ok.insert_id,
        int(ok.status),
        ok.warnings,
        ok.info,
        ok.session_state,
        1 + len(numbers),
    )


def _reply_of(ok: _Ok) -> Reply:
    rows, insert_id, status, warnings, info, state, _ = ok
    tracked: Mapping[str, str] = _NOTHING
    gtids, database = "", None
    if state:
        pair = _only_variable(state)
        if pair is not None:
            tracked = pair
        else:
            told = SessionState.decode(state)
            tracked, gtids, database = told.variables, told.gtids, told.database
    fields = (
        0,
        "",
        rows,
        insert_id,
        status,
        warnings,
        text_of(info) if info else "",
        False,
        tracked,
        gtids,
        database,
    )
    return tuple.__new__(Reply, fields)  # as `Reply(*fields)`, in a third of the time


def _only_variable(state: bytes) -> dict[str, str] | None:
    """The variable of a session state that is nothing else, as it mostly is; else None."""
    size = len(state)
    if size < _SHORT_STATE or state[0] or state[1] != size - 2 or state[1] >= _ONE_BYTE:
        return None
    name_end = 3 + state[2]
    if name_end >= size or name_end + 1 + state[name_end] != size:
        return None
    return {text_of(state[3:name_end]): text_of(state[name_end + 1 :])}


def _with_more(info: bytes, warnings: int) -> bytes:
    """What the servers say for people counts warnings too: those of logging where these come first.

    Source: measured; `Records: 1  Duplicates: 0  Warnings: 1`, `Rows matched: 1  Changed: 1
    Warnings: 1`.
    """
    text, found, count = info.rpartition(_COUNT_OF_WARNINGS)
    if not found or not count.isdigit():
        return info
    return b"%s%s%d" % (text, found, int(count) + warnings)


def reply_of(ok: OkPacket) -> Reply:
    """What an OK packet says."""
    state = SessionState.decode(ok.session_state)
    return Reply(
        affected_rows=ok.affected_rows,
        insert_id=ok.insert_id,
        status=ok.status,
        warnings=ok.warnings,
        info=text_of(ok.info),
        tracked=state.variables,
        gtids=state.gtids,
        database=state.database,
    )
