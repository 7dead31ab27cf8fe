"""Executable comments: texts that servers of some versions alone read, and statements as a server has them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from binlane.statements.sql.lexis import BEHIND_DASHES, lexed_by
from binlane.statements.sql.servers import Dialect, Version
from binlane.statements.sql.tokens import BACKTICKS, literals

# Syntax that came into MySQL with 5.7 is not in MariaDB, whose own numbers begin at 100000.
_ONLY_MYSQL: Final = range(50700, 100000)
_SIX_DIGITS_SINCE: Final[Version] = (8, 1, 0)
"""MySQL: before, the sixth digit of a number was code."""
_NESTED: Final = re.compile(r"/\*(.*?)\*/", re.DOTALL)


class _CommentEnds:
    """Ends of comments that are not run, and may hold ordinary ones.

    Each end is found once, however many comments there are, with or without one.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._openings: list[int] | None = None
        self._closings: list[int] = []
        self._known: dict[int, int] = {}

    def behind(self, place: int) -> int:
        """The place behind the end of the comment that goes on at a place; -1 if it has none."""
        if self._openings is None:
            self._openings = [each.start() for each in re.finditer(r"/\*", self._text)]
            self._closings = [each.start() for each in re.finditer(r"\*/", self._text)]
        passed = []
        while (end := self._known.get(place)) is None:
            passed.append(place)
            opening = _next(self._openings, place)
            closing = _next(self._closings, place)
            if opening < 0 or 0 <= closing < opening:
                end = closing + 2 if closing >= 0 else -1
                break
            closing = _next(self._closings, opening + 2)
            if closing < 0:
                end = -1
                break
            place = closing + 2
        self._known.update(dict.fromkeys(passed, end))
        return end


def _next(places: Sequence[int], place: int) -> int:
    """The first of some places that is not before one; -1 if none is."""
    index = bisect_left(places, place)
    return places[index] if index < len(places) else -1


class _Piece(Enum):
    RUN = "the opening bracket of a comment that is run"
    CLOSED = "its closing bracket"
    SKIPPED = "a comment that is not run"


class ServerText(NamedTuple):
    """A statement with executable comments, as a server has it.

    Attributes:
        read: Text as the server parses it, with comments that are not run as ordinary ones. As long
            as the statement.
        logged: Text as the server logs most statements.
        stored: Text as the server keeps, and logs, the definition of a view, trigger, event or
            routine: without brackets of comments that are run, and without those that are not.
    """

    read: str
    logged: str
    stored: str


def server_text(statement: str, dialect: Dialect) -> ServerText:
    """Give a statement as the server of a dialect has it."""
    if "/*" not in statement or "!" not in statement:
        return ServerText(statement, statement, statement)
    read: list[str] = []
    logged: list[str] = []
    stored: list[str] = []
    done = 0
    pattern = _comment_pattern(
        ansi_quotes=dialect.ansi_quotes,
        no_backslash_escapes=dialect.no_backslash_escapes,
        charset=dialect.charset,
    )
    for kind, start, end in _pieces(statement, pattern, dialect):
        for texts in (read, logged, stored):
            texts.append(statement[done:start])
        text = statement[start:end]
        done = end
        if kind is not _Piece.SKIPPED:
            read.append(text)
            logged.append(text)
            continue
        skipped = _as_ordinary(text)
        read.append(skipped)
        # To MySQL it was an ordinary comment all along.
        is_foreign = dialect.flavor == "mysql" and text.startswith("/*M!")
        logged.append(text if is_foreign else skipped)
        if is_foreign:
            stored.append(text)
    rest = statement[done:]
    return ServerText("".join([*read, rest]), "".join([*logged, rest]), "".join([*stored, rest]))


def _as_ordinary(comment: str) -> str:
    """A comment that a server does not run, as it leaves it in the statement's text.

    So replicas do not run it either.
    """
    opening, _, content = comment.partition("!")
    inside = _NESTED.sub(r"(*\1*)", content.removesuffix("*/"))
    return f"{opening} {inside}*/"


def _pieces(
    statement: str, pattern: re.Pattern[str], dialect: Dialect
) -> Iterator[tuple[_Piece, int, int]]:
    """Yield the pieces of executable comments, in the order of the text."""
    is_open = False
    offset = 0
    ends = _CommentEnds(statement)
    while found := pattern.search(statement, offset):
        offset = found.end()
        if found["OPEN"] is not None:
            length = _run_length(found, dialect)
            if length:
                is_open = True
                offset = found.start() + length
                yield _Piece.RUN, found.start(), offset
            elif (ended := ends.behind(found.end("OPEN"))) >= 0:
                offset = ended
                yield _Piece.SKIPPED, found.start(), offset
        elif found["CLOSE"] is not None and is_open:
            is_open = False
            yield _Piece.CLOSED, found.start(), offset
        elif found["UNENDED"] is not None:
            return  # it is no statement


def _run_length(found: re.Match[str], dialect: Dialect) -> int:
    """The length of the opening bracket of a comment that a server runs, else 0."""
    opening, digits = found["OPEN"], found["DIGITS"] or ""
    is_mysql = dialect.flavor == "mysql"
    if is_mysql and opening == "/*M!":
        return 0
    if is_mysql and dialect.version < _SIX_DIGITS_SINCE:
        digits = digits[:5]
    if digits:
        number = int(digits)
        major, minor, patch = dialect.version
        if number > major * 10_000 + minor * 100 + patch:
            return 0
        if not is_mysql and opening == "/*!" and number in _ONLY_MYSQL:
            return 0
    return len(opening) + len(digits)


@cache
def _comment_pattern(
    *, ansi_quotes: bool, no_backslash_escapes: bool, charset: str
) -> re.Pattern[str]:
    """Executable comments, and what else may hold their brackets."""
    single = literals("'", backslash_escapes=not no_backslash_escapes)
    double = literals('"', backslash_escapes=not (no_backslash_escapes or ansi_quotes))
    pattern = rf"""
        (?P<OPEN> /\*M?! )(?P<DIGITS> \d{{5,6}} )?
      | /\*.*?\*/
      | (?P<CLOSE> \*/ )
      | {single} | {double} | {BACKTICKS}
      | (?: \# | --(?=[{BEHIND_DASHES}]|\Z) )[^\n]*+
      | (?P<UNENDED> /\* | ['"`] )
        """
    return re.compile(lexed_by(pattern, charset, ""), re.VERBOSE | re.DOTALL)
