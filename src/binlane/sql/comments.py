r"""Executable comments (`/*! … */`, `/*!50100 … */`, `/*M! … */`) as one server reads them.

A server runs those that are meant for it and takes the others for ordinary comments. Elsewhere in
this package all of them are code: what a log or proxy sees may have been run by any server.

Source: MariaDB 10.11 and MySQL 9.7, sql/sql_lex.cc, lex_one_token and consume_comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final

from binlane.sql.dialect import Dialect
from binlane.sql.tokens import BACKTICKS, literals

Version = tuple[int, int, int]

# What came into MySQL with 5.7 MariaDB does not have; its own numbers begin at 100000.
_ONLY_MYSQL: Final = range(50700, 100000)
_SIX_DIGITS_SINCE: Final[Version] = (8, 1, 0)
"""MySQL: before, the sixth digit of a number was code."""

_NESTED: Final = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_END: Final = re.compile(r"(?:[^*/]|/(?!\*)|\*(?!/)|/\*(?:[^*]|\*(?!/))*\*/)*\*/", re.DOTALL)
"""A comment that is not run may hold ordinary comments."""


class _Piece(Enum):
    RUN = "the opening bracket of a comment that is run"
    CLOSED = "its closing bracket"
    SKIPPED = "a comment that is not run"


@dataclass(frozen=True, slots=True)
class ServerText:
    """A statement with executable comments, as a server has it.

    Attributes:
        read: As it parses it: what it does not run are ordinary comments. As long as the statement.
        logged: As it logs most statements.
        stored: As it keeps, and logs, the definition of a view, trigger, event or routine: without
            brackets of comments that are run, and without those that are not.
    """

    read: str
    logged: str
    stored: str


def server_text(statement: str, dialect: Dialect) -> ServerText:
    """How the server of a dialect has a statement."""
    if "/*" not in statement or "!" not in statement:
        return ServerText(statement, statement, statement)
    read: list[str] = []
    logged: list[str] = []
    stored: list[str] = []
    done = 0
    pattern = _pattern(
        ansi_quotes=dialect.ansi_quotes, no_backslash_escapes=dialect.no_backslash_escapes
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
    """What executable comments consist of, in the order of the text."""
    is_open = False
    offset = 0
    while found := pattern.search(statement, offset):
        offset = found.end()
        if found["OPEN"] is not None:
            length = _run_length(found, dialect)
            if length:
                is_open = True
                offset = found.start() + length
                yield _Piece.RUN, found.start(), offset
            elif ended := _END.match(statement, found.end("OPEN")):
                offset = ended.end()
                yield _Piece.SKIPPED, found.start(), offset
        elif found["CLOSE"] is not None and is_open:
            is_open = False
            yield _Piece.CLOSED, found.start(), offset


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
def _pattern(*, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[str]:
    """Executable comments, and what else may hold their brackets."""
    single = literals("'", backslash_escapes=not no_backslash_escapes)
    double = literals('"', backslash_escapes=not (no_backslash_escapes or ansi_quotes))
    return re.compile(
        rf"""
        (?P<OPEN> /\*M?! )(?P<DIGITS> \d{{5,6}} )?
      | /\*.*?\*/
      | (?P<CLOSE> \*/ )
      | {single} | {double} | {BACKTICKS}
      | (?: \# | --(?=[\x00-\x20]|\Z) )[^\n]*+
        """,
        re.VERBOSE | re.DOTALL,
    )
