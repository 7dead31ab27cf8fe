"""What one statement does to each binlog: the answer of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from binlane.statements.policy.refusals import Outcome, Refusal, Why
from binlane.statements.policy.server import Server
from binlane.statements.programs.ways import Condition
from binlane.statements.session.log_events import Body, LoggedEvent, printed
from binlane.statements.session.transaction import Runs
from binlane.statements.sql.servers import LoggingFormat

__all__ = [
    "BinlogResult",
    "LoggedEvent",
    "Note",
    "Outcome",
    "Refusal",
    "StatementResult",
    "Unanalysed",
    "Why",
]


_SERVER: Final = Server.parse("mariadb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note 1592: the statement is logged as its text although that is unsafe.

    Attributes:
        errno: 1592.
        reason: `ER_BINLOG_UNSAFE_…`.
        message: The server's whole text.
        binlogs: Names of the binlogs in which it is logged so.
        why: What leads to it.
        is_told: The server tells the client; it does not with sql_notes=0, and tells no more than
            max_error_count allows.
        on_some_ways: Data decides whether it comes to it.
    """

    errno: int
    reason: str
    message: str
    binlogs: tuple[str, ...] = ()
    why: Why = field(default_factory=Why)
    is_told: bool = True
    on_some_ways: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogResult:
    """What a statement does to one binlog.

    Attributes:
        logged_as: The format of its own changes; None if nothing of it would be logged.
        bodies: What it appends now, also of earlier statements that it commits.
        server: As whose events these are printed.
        steps: The decision, one sentence each.
        unsafe: Symbols of the unsafe reasons that hold (`ER_BINLOG_UNSAFE_…`), also where rows are
            logged because of them.
        ways: How many different outcomes data can give; `events` are those of the first way.
        runs: Which of `bodies` are of earlier statements, or of statements that it ran itself, by
            their numbers; all others are its own. Only where the session logs for its source.
    """

    logged_as: LoggingFormat | None = None
    bodies: tuple[Body, ...] = ()
    server: Server = _SERVER
    steps: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    ways: int = 1
    runs: Runs = ()

    @property
    def events(self) -> tuple[LoggedEvent, ...]:
        """What it appends, as SHOW BINLOG EVENTS prints it."""
        return tuple(printed(body, self.server) for body in self.bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanalysed:
    """A statement that could not be analysed; it is never taken for safe.

    Attributes:
        reason: What is wrong, such as `expected a table at 'x'`.
        offset: Where, in characters of the statement from 0.
        length: Of the token there.
    """

    reason: str
    offset: int
    length: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """What one statement does.

    Attributes:
        error: Why it is not executed, or the error that the script states; None if it runs.
        notes: In the servers' order.
        binlogs: By name, in the order of the definitions.
        unanalysed: Set where the text was not understood.
        ways: How many were followed, where data decides and it makes a difference; else 1.
        depends_on: On what that hangs.
    """

    error: Refusal | None = None
    notes: tuple[Note, ...] = ()
    binlogs: dict[str, BinlogResult] = field(default_factory=dict)
    unanalysed: Unanalysed | None = None
    ways: int = 1
    depends_on: tuple[Condition, ...] = ()
