"""Questions that a session's machine asks: while one is open, the client's commands wait (pure)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from binlane.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave
from binlane.gateway.answers import RowsInParts
from binlane.gateway.client_statements import ClientCommand, Uncut, Unwritten
from binlane.gateway.judge import ClientStatement


@dataclass(frozen=True, slots=True)
class Entering:
    """A question: may the account that has just logged in be here?

    Attributes:
        ok: The packet by which the source lets it in, kept back.
    """

    ok: bytes


@dataclass(frozen=True, slots=True)
class Starting:
    """A question: may the session begin?

    Attributes:
        is_reset: It was reset, and is not new.
    """

    is_reset: bool


@dataclass(frozen=True, slots=True)
class Learning:
    """A question: how does the source read what the client says?

    Attributes:
        command: That cannot be told without.
    """

    command: ClientCommand


@dataclass(frozen=True, slots=True)
class Cutting:
    """A question: which are the statements of a long command?

    Attributes:
        uncut: They.
        command: That holds them.
    """

    uncut: Uncut | Unwritten
    command: ClientCommand


@dataclass(frozen=True, slots=True)
class Judging:
    """A question: what becomes of a command?

    Attributes:
        statements: In it.
        command: It.
        answer: Whose rows are to be sent in parts; None if the verdict is not known yet.
    """

    statements: Sequence[ClientStatement]
    command: ClientCommand
    answer: RowsInParts | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """A question: is done what was to follow a command?

    Attributes:
        then: Does it.
    """

    then: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A question: does binlane answer this statement?

    Attributes:
        text: SQL as the client sent it.
        packet: Its frame, for the source.
        is_prepared: It is to be prepared, and executed later.
        is_executed: It was prepared, and is executed now.
    """

    text: str
    packet: bytes
    is_prepared: bool = False
    is_executed: bool = False


Question = (
    Statement
    | RegisterSlave
    | BinlogDump
    | BinlogDumpGtid
    | Entering
    | Starting
    | Learning
    | Cutting
    | Judging
    | Following
)
"""What binlane is asked: to answer a statement, to let somebody in or register, to dump, to judge."""
