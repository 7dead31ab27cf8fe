"""Questions that a session's machine asks: while one is open, the client's commands wait (pure)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from binlane.live.gateway.answers import RowsInParts
from binlane.live.gateway.client_statements import ClientCommand, UncutStatements, Unwritten
from binlane.live.gateway.judge import ClientStatement
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid, RegisterSlave


@dataclass(frozen=True, slots=True)
class Entering:
    """Ask if the account that has just logged in may be here.

    Attributes:
        ok: The packet by which the source lets it in, kept back.
    """

    ok: bytes


@dataclass(frozen=True, slots=True)
class Resetting:
    """Tell the judge that the session was reset, and may have another user."""


@dataclass(frozen=True, slots=True)
class Learning:
    """Ask for the source's reading of the client's texts.

    Attributes:
        command: Cannot be judged without the answer.
        is_again: True if the first answer was not enough.
    """

    command: ClientCommand
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Cutting:
    """Ask for the statements of a long command.

    Attributes:
        uncut: Gives the statements, which takes long.
        command: Client's command that holds them.
    """

    uncut: UncutStatements | Unwritten
    command: ClientCommand


@dataclass(frozen=True, slots=True)
class Judging:
    """Ask the judge for the verdict on a command.

    Attributes:
        statements: Statements of the client's command.
        command: Command to whose reply the client waits.
        answer: The verdict, if that is rows to be sent in parts; None if it is not known yet.
    """

    statements: Sequence[ClientStatement]
    command: ClientCommand
    answer: RowsInParts | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """Ask for the work that is to be done before the next command is read.

    Attributes:
        then: Does what the judge wants behind a command.
    """

    then: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StatementQuestion:
    """Ask if binlane answers a statement.

    Attributes:
        text: SQL as the client sent it.
        packet: Frame of the statement, for the source.
        is_prepared: True if the statement is to be prepared, and executed later.
        is_executed: True if the statement was prepared, and is executed now.
    """

    text: str
    packet: bytes
    is_prepared: bool = False
    is_executed: bool = False


Question = (
    StatementQuestion
    | RegisterSlave
    | BinlogDump
    | BinlogDumpGtid
    | Entering
    | Resetting
    | Learning
    | Cutting
    | Judging
    | Following
)
"""All questions; a replica that registers and a dump are asked for by their commands."""
