"""The rules by which a client's commands are read, pass unread, or wait for the source (pure)."""

from __future__ import annotations

from typing import Final, NamedTuple

from binlane.errors import CodecError
from binlane.live.gateway.client_frames import ClientFrames
from binlane.live.gateway.replica_statements import INSPECTED_MAX
from binlane.log.codec.packets.flags import Command
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX

TEXT_COMMANDS: Final = frozenset({Command.QUERY, Command.STMT_PREPARE})
"""Commands that hold a statement's text, which may be of any length."""
JUDGED_COMMANDS: Final = frozenset({Command.QUERY, Command.STMT_EXECUTE, Command.STMT_BULK_EXECUTE})
"""Commands that run statements: a judge is asked of them."""
RESETTING_COMMANDS: Final = frozenset({Command.CHANGE_USER, Command.RESET_CONNECTION})
QUESTIONS: Final = frozenset(
    {Command.REGISTER_SLAVE, Command.BINLOG_DUMP, Command.BINLOG_DUMP_GTID}
)
"""Commands that binlane always answers by itself."""
_READ_WHOLE: Final = QUESTIONS | RESETTING_COMMANDS
_READ_WHOLE_MAX: Final = 1 << 18
"""Bytes of the longest of these, but for a set of GTIDs, which may take as much as one frame."""
# Several commands in one packet, of MariaDB 10.2 to 10.6: none of them would be looked at.
_MULTI: Final = 0xFE


class CommandRules(NamedTuple):
    """The rules of one kind of session.

    Attributes:
        read: Commands that are read as wholes; all others pass by their first byte.
        lone: Commands that wait until the source owes nothing; what is a question waits too.
        text_max: Bytes of the longest statement that is read; longer ones pass, too.
    """

    read: frozenset[int]
    lone: frozenset[int]
    text_max: int


UNJUDGED: Final = CommandRules(TEXT_COMMANDS | _READ_WHOLE, frozenset(), INSPECTED_MAX)
"""Rules of a session that nobody judges: only commands that may be questions are read."""
UNJUDGED_WITH_LOGINS: Final = UNJUDGED._replace(lone=frozenset({Command.CHANGE_USER}))
"""The same rules where changes of user are read."""
JUDGED: Final = CommandRules(
    read=TEXT_COMMANDS
    | _READ_WHOLE
    | JUDGED_COMMANDS
    | {
        Command.INIT_DB,
        Command.SET_OPTION,
        Command.STMT_SEND_LONG_DATA,
        Command.STMT_CLOSE,
        Command.STMT_RESET,
    },
    lone=JUDGED_COMMANDS | RESETTING_COMMANDS,
    text_max=FRAME_PAYLOAD_MAX,
)
"""Rules of a session with a judge."""


def check_beginning(frames: ClientFrames, length: int) -> None:
    """See that the client's first frame begins as a command does.

    A command that is read whole before anything is done with it has a greatest length; were a longer one
    passed on unread, the source would serve a dump or change the user by itself.

    Args:
        frames: Client's frames, which hold the first one or its beginning.
        length: Length of the frame's payload.

    Raises:
        CodecError: If the frame does not begin as a command.
    """
    if not length:
        raise CodecError("the client sends an empty command")
    if frames.number:
        raise CodecError(f"the client sends packet {frames.number} where a command begins")
    if len(frames.data) == FRAME_HEADER_LENGTH:
        return
    command = frames.data[FRAME_HEADER_LENGTH]
    if command == _MULTI:
        raise CodecError("the client sends COM_MULTI, which is not offered")
    if command in _READ_WHOLE:
        is_set = command == Command.BINLOG_DUMP_GTID
        longest = FRAME_PAYLOAD_MAX - 1 if is_set else _READ_WHOLE_MAX
        if length > longest:
            raise CodecError(f"the client sends command {command} with {length} bytes")
