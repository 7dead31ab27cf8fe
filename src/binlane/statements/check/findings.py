"""Findings of a checked statement, as every report tells them: refusals, notes, gaps in knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.statements.check.binlog_forms import BinlogForm
from binlane.statements.check.hints import HINTS
from binlane.statements.check.script import ScriptStatement
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.session.report import Note, StatementResult, Unanalysed

UNKNOWN_OBJECTS: Final = frozenset(
    (1008, 1049, 1051, 1146, 1305, 1356, 1360, 1539, 3503, 4091, 4092)
)
"""Errors of statements that name an unknown database, table, view, routine, trigger or event, or a view of
one: the schema may lack the object, so nothing is known of the statement."""
_NO_FORMS: Final[Mapping[str, BinlogForm]] = MappingProxyType({})
_SAVEPOINT: Final = "SAVEPOINT "
_CONDITIONS_NAMED: Final = 3
SYNTAX_ERROR: Final = 1064
PARSE_ERROR: Final = "ER_PARSE_ERROR"
"""The symbol of a SYNTAX_ERROR that the server's grammar answers with."""
UNANALYSED: Final = "BINLANE_NOT_ANALYSED"
NOT_UNDERSTOOD: Final = "BINLANE_NOT_UNDERSTOOD"
"""A scope's refusal of a statement whose effects were not found out."""


class Kind(IntEnum):
    """The severity of a finding; the greater, the worse."""

    ALLOWED_UNSAFE = 0
    """Unsafe as a text, and logged as rows for that; counts only where it is denied."""
    UNSAFE = 1
    """Logged as its text although that is unsafe."""
    REFUSED = 2
    """Not executed."""
    UNANALYSED = 3
    """The effects of the statement are not known."""

    @property
    def exit_code(self) -> int:
        """Return the exit code of the process if no finding is worse."""
        return 2 if self is Kind.UNANALYSED else 1


class CheckedStatement(NamedTuple):
    """A statement of a script and its effects.

    Attributes:
        statement: The statement as the script has it.
        result: Effects of the statement on all binlogs.
        forms: Forms in which the binlogs hold these effects, by binlog.
    """

    statement: ScriptStatement
    result: StatementResult
    forms: Mapping[str, BinlogForm] = _NO_FORMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One refusal, note or gap in knowledge.

    Attributes:
        symbol: The servers' name of the reason, or binlane's own.
        errno: Error number as the client gets it.
        message: The server's message in full.
        sqlstate: SQLSTATE of a refusal; empty for others.
        binlogs: Names of the binlogs that the finding concerns; empty for all.
        whys: Parts of the statement that lead to the finding, by name and place.
    """

    kind: Kind
    symbol: str
    errno: int
    message: str
    sqlstate: str = ""
    binlogs: tuple[str, ...] = ()
    whys: tuple[Why, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a script, in lines and columns from 1; the last column is the one behind the stretch."""

    line: int
    column: int
    end_line: int
    end_column: int


def findings(checked: CheckedStatement) -> Iterator[Finding]:
    """All findings of a statement, the one that stops it first."""
    result = checked.result
    if result.unanalysed is not None:
        yield unanalysed_finding(result.unanalysed)
    elif result.error is not None and not result.error.is_stated:
        for error in (result.error, *result.error.others):
            yield _on_ways(_refusal(error), error, result)
    noted = set()
    for note in result.notes:
        noted.add(note.reason)
        yield _on_ways(_note(note), note, result)
    by_reason: dict[str, list[str]] = {}
    for name, binlog in result.binlogs.items():
        for reason in binlog.unsafe:
            if reason not in noted:
                by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield Finding(
            kind=Kind.ALLOWED_UNSAFE,
            symbol=reason,
            errno=0,
            message="Unsafe to log as a statement, logged in rows for that reason",
            binlogs=tuple(names),
        )


def what_is_unanalysed(result: StatementResult) -> Unanalysed | None:
    """Return the reason why nothing is known of a statement, also where that is an error of the server.

    Such errors are those of texts outside of the server's grammar, and of objects that are not known.
    """
    error = result.error
    if result.unanalysed is not None or error is None or error.is_stated:
        return result.unanalysed
    if _refusal(error).kind is not Kind.UNANALYSED:
        return None
    offset, length = next(((why.offset, why.length) for why in error.why), (0, 0))
    return Unanalysed(reason=error.message, offset=offset, length=length)


def unanalysed_finding(unanalysed: Unanalysed) -> Finding:
    """The finding of a statement that was not understood."""
    return Finding(
        kind=Kind.UNANALYSED,
        symbol=UNANALYSED,
        errno=SYNTAX_ERROR,
        sqlstate="42000",
        message=unanalysed.reason,
        whys=(Why(offset=unanalysed.offset, length=unanalysed.length),),
    )


def _refusal(error: Refusal) -> Finding:
    is_object = error.errno in UNKNOWN_OBJECTS and not error.message.startswith(_SAVEPOINT)
    # Also what the server does not take: nobody knows what was meant.
    is_unknown = is_object or error.symbol in (NOT_UNDERSTOOD, PARSE_ERROR)
    return Finding(
        kind=Kind.UNANALYSED if is_unknown else Kind.REFUSED,
        symbol=error.symbol,
        errno=error.errno,
        sqlstate=error.sqlstate,
        message=error.message,
        binlogs=error.binlogs,
        whys=error.why,
    )


def _note(note: Note) -> Finding:
    return Finding(
        kind=Kind.UNSAFE,
        symbol=note.reason,
        errno=note.errno,
        message=note.message,
        binlogs=note.binlogs,
        whys=(note.why,),
    )


def _on_ways(finding: Finding, found: Refusal | Note, result: StatementResult) -> Finding:
    """Return a finding whose message tells if data decides whether the finding comes up."""
    if not found.on_some_ways:
        return finding
    return replace(finding, message=f"{finding.message} (on some ways, by {depends_on(result)})")


def depends_on(result: StatementResult) -> str:
    """The conditions that decide on the way that a statement takes."""
    named = [f"{one.text} in {one.program}".removesuffix(" in ") for one in result.depends_on]
    more = len(named) - _CONDITIONS_NAMED
    return ", ".join(named[:_CONDITIONS_NAMED]) + (f" and {more} more" if more > 0 else "")


def place_of(statement: ScriptStatement, why: Why | None = None) -> Place:
    """Return a finding's place in the script: the part that leads to it, else the statement's first line.

    A part over several lines ends at the end of its first line.
    """
    sql = statement.sql
    offset, length = (0, 0) if why is None else (min(why.offset, len(sql)), why.length)
    if length == 0 and offset == 0:
        length = len(sql)
    line_start = sql.rfind("\n", 0, offset) + 1
    line_end = sql.find("\n", offset)
    end = min(offset + max(length, 1), len(sql) if line_end < 0 else line_end)
    before = sql.count("\n", 0, offset)
    first = statement.column if before == 0 else 1
    column = first + offset - line_start
    line = statement.line + before
    return Place(line, column, line, column + max(end - offset, 1))


def hints(finding: Finding) -> tuple[str, ...]:
    """Return advice against a finding, each piece once."""
    own = tuple(dict.fromkeys(why.hint for why in finding.whys if why.hint))
    general = HINTS.get(finding.symbol)
    return own or (() if general is None else (general,))


def main_why(finding: Finding) -> Why | None:
    """Return the part that a finding is shown at: the first cause that has a place."""
    return next((why for why in finding.whys if why.length), None)
