"""Replies to a session whose statements are judged: which packets are read, changed or kept back.

The source is told that the client wants to hear of the session's state. A client that did not ask
for that gets OK packets without it. Rows pass unread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol

from binlane.codec.packets.flags import Capability, Command, ExtendedCapability
from binlane.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    FRAME_PAYLOAD_MAX,
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
from binlane.codec.packets.session_state import SessionState
from binlane.gateway.judge import Reply
from binlane.gateway.reply_tracker import HEAD_MAX, NO_REPLY, ReplyTracker, Step

_WARNINGS_MAX: Final = 0xFFFF
_COUNT_OF_WARNINGS: Final = b"  Warnings: "
_MARKS: Final = frozenset((OK_MARK, EOF_MARK, ERR_MARK))
_NO_OK: Final = frozenset((Command.STMT_PREPARE, Command.STATISTICS))
"""Commands whose reply may begin as an OK packet does, and is none."""


class Role(Enum):
    """Whose reply it is, and who is told of it."""

    PASSES = "the client's"
    WATCHED = "the client's; its first packet is told"
    JUDGED = "the client's; what came of each statement is told"
    OWN = "binlane's own; the client does not get it"


class Listener(Protocol):
    """Who is told of replies, while they are read."""

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
        self._capabilities = capabilities
        self._client = client
        self._is_untold = client != capabilities
        self._listener = listener
        self._roles: deque[Role] = deque()
        self._replies: list[Reply] = []
        self._drops = False
        self._result_ended = False

    @property
    def is_judged(self) -> bool:
        """Whether the reply that comes is one to statements that a judge has let run."""
        return bool(self._roles) and self._roles[0] is Role.JUDGED

    def expect(self, command: int, role: Role = Role.PASSES) -> None:
        """A command goes to the source."""
        if command not in NO_REPLY:
            self._roles.append(role)
            super().expect(command)

    def feed(self, data: bytes) -> bytes:  # noqa: C901, PLR0912 - the hottest loop
        """Look at bytes from the source; arguments and errors as of `ReplyTracker.feed`."""
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

    def _is_read(self, mark: int, length: int) -> bool:
        """Whether a packet is to be there as a whole; a row of 16 MB may begin as an end does."""
        return (
            mark in _MARKS
            and length < FRAME_PAYLOAD_MAX
            and (self._is_untold or self._roles[0] is not Role.PASSES)
        )

    def _end(self) -> None:
        self._result_ended = True
        self._roles.popleft()
        super()._end()

    def _end_or_more(self, status: int) -> None:
        self._result_ended = True
        super()._end_or_more(status)

    def _read(self, payload: bytes) -> bytes | None:
        """Follow a packet that is there as a whole; gives what the client gets in its place."""
        role, step, command = self._roles[0], self._step, self._commands[0]
        count = len(self._roles)
        self._result_ended = False
        self._packet(len(payload), payload[:HEAD_MAX])
        has_ended = len(self._roles) < count
        if role is Role.WATCHED and step is Step.HEAD:
            self._listener.watched(payload)
        if not self._result_ended:
            return None
        mark = payload[0] if payload else OK_MARK
        ok: OkPacket | EofPacket | None = None
        if mark != ERR_MARK and command not in _NO_OK:
            ok = self._ok(payload, step)
        if role in (Role.PASSES, Role.WATCHED):
            is_changed = self._is_untold and isinstance(ok, OkPacket)
            return self._encoded(ok, 0) if ok is not None and is_changed else None
        reply = self._reply(payload, ok, is_result_set=step is not Step.HEAD)
        if role is Role.OWN:
            if has_ended:
                self._listener.own_answered(reply, payload)
            return None
        self._replies.append(reply)
        warnings = 0
        if has_ended:
            replies, self._replies = self._replies, []
            warnings = self._listener.answered(replies)
        if ok is None or not (warnings or (self._is_untold and isinstance(ok, OkPacket))):
            return None
        return self._encoded(ok, warnings)

    def _ok(self, payload: bytes, step: Step) -> OkPacket | EofPacket:
        is_ok = payload[0] == OK_MARK or (step is Step.ROWS and self._deprecates_eof)
        return OkPacket.decode(payload, self._capabilities) if is_ok else EofPacket.decode(payload)

    def _reply(
        self, payload: bytes, ok: OkPacket | EofPacket | None, *, is_result_set: bool
    ) -> Reply:
        if ok is None:
            error = ErrPacket.decode(payload)
            return Reply(errno=error.errno, message=error.message, status=self.status)
        if isinstance(ok, EofPacket):
            return Reply(status=ok.status, warnings=ok.warnings, is_result_set=is_result_set)
        return reply_of(ok, is_result_set=is_result_set)

    def _encoded(self, ok: OkPacket | EofPacket, warnings: int) -> bytes:
        """An OK or EOF packet for the client, with some more warnings."""
        if warnings:
            ok = replace(ok, warnings=min(ok.warnings + warnings, _WARNINGS_MAX))
        if isinstance(ok, OkPacket):
            if warnings and ok.info:
                ok = replace(ok, info=_with_more(ok.info, warnings))
            return ok.encode(self._client)
        return ok.encode()


def _with_more(info: bytes, warnings: int) -> bytes:
    """What the servers say for people counts warnings too: those of logging where these come first.

    Source: measured; `Records: 1  Duplicates: 0  Warnings: 1`, `Rows matched: 1  Changed: 1
    Warnings: 1`.
    """
    text, found, count = info.rpartition(_COUNT_OF_WARNINGS)
    if not found or not count.isdigit():
        return info
    return b"%s%s%d" % (text, found, int(count) + warnings)


def reply_of(ok: OkPacket, *, is_result_set: bool = False) -> Reply:
    """What an OK packet says."""
    state = SessionState.decode(ok.session_state)
    return Reply(
        affected_rows=ok.affected_rows,
        insert_id=ok.insert_id,
        status=ok.status,
        warnings=ok.warnings,
        info=text_of(ok.info),
        is_result_set=is_result_set,
        tracked=state.variables,
        gtids=state.gtids,
        database=state.database,
    )
