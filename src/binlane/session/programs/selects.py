"""SELECT … INTO variables: what is selected, where it is told by the text, and into which."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise

_CACHE_SIZE: Final = 1024
_LIST_ENDS: Final = (
    "FROM",
    "INTO",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "FOR",
    "PROCEDURE",
)
_OPTIONS: Final = ("ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE")


@lru_cache(_CACHE_SIZE)
def selected_into(query: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """What a query selects, and the variables that it is stored in.

    Args:
        query: A SELECT.

    Returns:
        The texts of the selected expressions, None where they come from tables; and the names of
        the variables, user variables with their `@`.
    """
    try:
        tokens = list(tokenise(query))
        cursor = Cursor(tokens)
        cursor.expect("SELECT")
    except (Stopped, SqlSyntaxError):
        return None, ()
    while cursor.accept_any(_OPTIONS):
        pass
    selected = cursor.until(_LIST_ENDS)
    targets: tuple[str, ...] = ()
    reads_tables = False
    while not cursor.is_at_end:
        if cursor.accept("INTO"):
            targets = _targets(cursor)
        else:
            reads_tables |= cursor.word == "FROM"
            cursor.advance()
    return (None if reads_tables else _texts(query, selected)), targets


def selected_expressions(query: str) -> tuple[str, ...]:
    """The texts of what a query selects, also from tables."""
    try:
        cursor = Cursor(list(tokenise(query)))
        cursor.expect("SELECT")
    except (Stopped, SqlSyntaxError):
        return ()
    return _texts(query, cursor.until(_LIST_ENDS))


def _targets(cursor: Cursor) -> tuple[str, ...]:
    found: list[str] = []
    while cursor.token.kind in {*NAME_KINDS, TokenKind.USER_VARIABLE}:
        token = cursor.advance()
        name = token.value if token.kind in NAME_KINDS else token.text
        if cursor.accept_operator("."):
            name = f"{name}.{cursor.advance().value}"
        found.append(name)
        if not cursor.accept_operator(","):
            break
    return tuple(found)


def _texts(query: str, tokens: list[Token]) -> tuple[str, ...]:
    """The expressions of a list, without their aliases."""
    texts: list[str] = []
    for part in split(tokens):
        end = next((index for index, token in enumerate(part) if token.word == "AS"), len(part))
        named = part[:end] if end and not _has_cast(part) else part
        if named:
            texts.append(query[named[0].offset : named[-1].end])
    return tuple(texts)


def _has_cast(tokens: list[Token]) -> bool:
    return any(token.word in {"CAST", "CONVERT"} for token in tokens)
