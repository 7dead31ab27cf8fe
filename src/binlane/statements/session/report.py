"""The answer of a session: the effects of one statement on each binlog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from binlane.statements.policy.reasons import Reason, symbol
from binlane.statements.policy.refusals import Outcome, Refusal, Why
from binlane.statements.policy.server import Server
from binlane.statements.programs.ways import DataCondition
from binlane.statements.session.group_plan import GroupPlan, TextPart
from binlane.statements.session.log_events import Body, LoggedEvent, printed
from binlane.statements.session.transaction import Runs
from binlane.statements.sql.servers import LoggingFormat

__all__ = [
    "BinlogResult",
    "LoggedEvent",
    "Note",
    "Outcome",
    "Refusal",
    "StatementPlan",
    "StatementResult",
    "Unanalysed",
    "Why",
]


_SERVER: Final = Server.parse("mariadb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note 1592: the statement is logged as its text although that is unsafe.

    Attributes:
        reason: Symbol of the reason, as `ER_BINLOG_UNSAFE_…`.
        message: The server's message in full.
        binlogs: Names of the binlogs in which the statement is logged as text.
        why: Part of the statement that leads to the note.
        is_told: The server sends the note to the client; it does not with sql_notes=0, and sends no more
            notes than max_error_count allows.
        on_some_ways: Data decides whether the note is given.
    """

    errno: int
    reason: str
    message: str
    binlogs: tuple[str, ...] = ()
    why: Why = field(default_factory=Why)
    is_told: bool = True
    on_some_ways: bool = False


class BinlogResult(NamedTuple):
    """The effects of a statement on one binlog.

    Attributes:
        logged_as: The format of the statement's own changes; None if nothing of it would be logged.
        bodies: Events that the statement appends now, also those of earlier statements that it commits.
        server: Server as whose events `bodies` are printed.
        steps: Steps of the decision, one sentence each.
        unsafe: Symbols of the unsafe reasons that hold (`ER_BINLOG_UNSAFE_…`), also where rows are
            logged because of them.
        ways: Number of different outcomes that data can give; `events` are those of the first way.
        runs: Ranges of `bodies` that are of earlier statements, or of statements that this one ran itself,
            with their numbers; all others are its own. Only where the session logs for its source.
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
        """Return the appended events, as SHOW BINLOG EVENTS prints them."""
        return tuple(printed(body, self.server) for body in self.bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanalysed:
    """The reason why a statement could not be analysed; such a statement is never taken for safe.

    Attributes:
        reason: The fault in the text, such as `expected a table at 'x'`.
        offset: Position of the fault, in characters of the statement from 0.
        length: Length of the token at `offset`, in characters.
    """

    reason: str
    offset: int
    length: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """The effects of one statement.

    Attributes:
        error: Error that keeps the statement from running, or that the script states; None if it runs.
        notes: Notes 1592 in the servers' order.
        binlogs: Effects by binlog, in the order of the definitions.
        unanalysed: Set where the text was not understood.
        ways: Number of ways that were followed, where data decides and it makes a difference; else 1.
        depends_on: Conditions that decide between the ways.
    """

    error: Refusal | None = None
    notes: tuple[Note, ...] = ()
    binlogs: dict[str, BinlogResult] = field(default_factory=dict)
    unanalysed: Unanalysed | None = None
    ways: int = 1
    depends_on: tuple[DataCondition, ...] = ()


class StatementPlan(NamedTuple):
    """The effects of a statement, and the content of the groups that it makes.

    Attributes:
        result: Effects of the statement on each log.
        number: Number of the statement, from 1.
        last: Number of the last statement that it ran, which follow its own number; without any, its own.
        groups: Plans of the groups that the source writes because of the statement, in order.
        mark: Plan of one more group, which a mark makes in the source's log: texts on temporary tables of
            which the source logs nothing. None without such texts.
        has_texts: Some of the statement is in a binlog as text, now or later.
        values: Events of values that stand before the statement's text, in some binlog.
    """

    result: StatementResult
    number: int
    last: int
    groups: tuple[GroupPlan, ...] = ()
    mark: GroupPlan | None = None
    has_texts: bool = False
    values: tuple[Body, ...] = ()

    @property
    def numbers(self) -> range:
        """Return the statement's number, and those of the statements that it ran."""
        return range(self.number, self.last + 1)

    def own_texts(self) -> Iterator[TextPart]:
        """Give the texts of the statement, and of those that it ran, in every binlog."""
        plans = self.groups if self.mark is None else (*self.groups, self.mark)
        own = self.numbers
        for plan in plans:
            for parts in plan.binlogs.values():
                for part in parts:
                    if isinstance(part, TextPart) and part.number in own:
                        yield part


_POSITIONS: Final = {symbol(reason): reason.position for reason in Reason}


def merged_notes(notes: Sequence[Note]) -> list[Note]:
    """The notes of a program's statements: each reason once, in the order of the server.

    A reason's note is that of the first statement whose note the client gets, if there is one.
    """
    told = [note for note in notes if note.is_told]
    first = {note.reason: note for note in (*reversed(notes), *reversed(told))}
    return sorted(first.values(), key=lambda note: _POSITIONS[note.reason])
