"""What one statement does to each binlog: the answer of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from binlane.sql.logging_mode import LoggingFormat


class LoggedEvent(NamedTuple):
    """An event as SHOW BINLOG EVENTS prints it, ids as `#`: `Query`, "use `d`; insert …"."""

    type: str
    info: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What in a statement leads to a refusal or note, by name.

    Attributes:
        what: The object or expression meant: `shop.bar`, `uuid()`.
        through: How the statement comes to it: `view d.v`, `trigger d.t` …, outermost first.
        offset: Where in the statement's text, in characters from 0.
        length: Of what is to be underlined.
        hint: What would make it safe.
    """

    what: str = ""
    through: tuple[str, ...] = ()
    offset: int = 0
    length: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a statement is not executed.

    Attributes:
        errno: As the client gets it.
        sqlstate: Five characters.
        symbol: `ER_BINLOG_…`; `BINLANE_PARTIAL_WRITE`, `BINLANE_DEPENDENCY`,
            `BINLANE_PARTIAL_TRANSACTION`, … for the refusals of seed 000.
        message: The whole text.
        binlogs: Names of the binlogs that refuse it.
        is_stated: It is what the script stated with `-- @error`, no refusal.
        why: What leads to it.
    """

    errno: int
    sqlstate: str
    symbol: str
    message: str
    binlogs: tuple[str, ...] = ()
    is_stated: bool = False
    why: tuple[Why, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note 1592: the statement is logged as its text although that is unsafe.

    Attributes:
        errno: 1592.
        reason: `ER_BINLOG_UNSAFE_…`.
        message: The server's whole text.
        binlogs: Names of the binlogs in which it is logged so.
        why: What leads to it.
    """

    errno: int
    reason: str
    message: str
    binlogs: tuple[str, ...] = ()
    why: Why = field(default_factory=Why)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogResult:
    """What a statement does to one binlog.

    Attributes:
        logged_as: The format of its own changes; None if nothing of it would be logged.
        events: What it appends now, also of earlier statements that it commits.
        steps: The decision, one sentence each.
        unsafe: Symbols of the unsafe reasons that hold (`ER_BINLOG_UNSAFE_…`), also where rows are
            logged because of them.
    """

    logged_as: LoggingFormat | None = None
    events: tuple[LoggedEvent, ...] = ()
    steps: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()


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
    """

    error: Refusal | None = None
    notes: tuple[Note, ...] = ()
    binlogs: dict[str, BinlogResult] = field(default_factory=dict)
    unanalysed: Unanalysed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened when the statement ran, as far as it cannot be told from its text.

    Attributes:
        error: The server's error number after the decision; None if it succeeded.
        rows: Rows changed; None if not said (then: some, unless `error`).
        is_proven_empty: The optimiser proved that nothing matches; logged in no format.
    """

    error: int | None = None
    rows: int | None = None
    is_proven_empty: bool = False
