"""What happened when a statement ran, as it was stated, and why it did not run."""

from __future__ import annotations

from dataclasses import dataclass


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
        others: More reasons against the statement, of this and other binlogs; a server names the
            first alone.
        is_own: A program raises it by itself, on data that it finds wrong.
        on_some_ways: Data decides whether it comes to it.
    """

    errno: int
    sqlstate: str
    symbol: str
    message: str
    binlogs: tuple[str, ...] = ()
    is_stated: bool = False
    why: tuple[Why, ...] = ()
    others: tuple[Refusal, ...] = ()
    is_own: bool = False
    on_some_ways: bool = False


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
