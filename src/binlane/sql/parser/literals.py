"""Literals, variables and names of columns: operands with no expression inside.

Source: MySQL 9.7 and MariaDB 11.8, sql/sql_yacc.yy: literal, variable, simple_ident.
"""

from __future__ import annotations

from typing import Final

from binlane.sql.parser.cursor import Cursor
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.expressions import (
    Literal,
    LiteralKind,
    Name,
    SystemVariable,
    UserVariable,
)

INTRODUCED: Final = (TokenKind.STRING, TokenKind.NUMBER)


def number_kind(text: str) -> LiteralKind:
    """What a NUMBER token is."""
    second = text[1:2]
    if second in ("x", "X", "b", "B", "'"):
        first = text[0]
        if second == "x" or first in "xX":
            return LiteralKind.HEX
        if second == "b" or first in "bB":
            return LiteralKind.BIT
    return LiteralKind.NUMBER


def read_literal(c: Cursor) -> Literal:
    """Read a string or number without a sign.

    Raises:
        Stopped: If none comes next.
    """
    kind = c.kinds[c.index]
    if kind is TokenKind.STRING:
        return read_string(c)
    if kind is TokenKind.NUMBER:
        at, text = c.start, c.texts[c.index]
        c.index += 1
        return Literal(at, at + len(text), number_kind(text))
    raise c.stop("a literal")


def read_string(c: Cursor) -> Literal:
    """A string, or several side by side, which are one."""
    index = c.index
    at = c.starts[index]
    introducer = "n" if c.texts[index][0] in "nN" else ""
    kinds = c.kinds
    index += 1
    while kinds[index] is TokenKind.STRING and c.texts[index][0] not in "nN":
        index += 1
    c.index = index
    index -= 1
    return Literal(at, c.starts[index] + len(c.texts[index]), LiteralKind.STRING, introducer)


def read_introduced(c: Cursor) -> Literal:
    """A literal with its character set before it."""
    at = c.start
    introducer = c.texts[c.index][1:].lower()
    c.index += 1
    literal = read_literal(c)
    if literal.kind is LiteralKind.NUMBER:
        raise c.stop("a string")
    return Literal(at, literal.end, literal.kind, introducer)


def read_user_variable(c: Cursor) -> UserVariable:
    """Read `@name`.

    Raises:
        Stopped: If none comes next.
    """
    index = c.index
    if c.kinds[index] is not TokenKind.USER_VARIABLE:
        raise c.stop("a user variable")
    c.index = index + 1
    at = c.starts[index]
    text = c.texts[index]
    name = text[1:]
    if name[0] in "`'\"":
        name = name[1:-1].replace(name[0] * 2, name[0])
    return UserVariable(at, at + len(text), name.lower())


_SCOPES: Final = {
    "global": "global",
    "session": "session",
    "local": "session",
    "persist": "persist",
    "persist_only": "persist",
}


def read_system_variable(c: Cursor) -> SystemVariable:
    """Read `@@name`.

    Raises:
        Stopped: If it has too many parts.
    """
    index = c.index
    c.index = index + 1
    at = c.starts[index]
    text = c.texts[index]
    name = text[2:].replace("`", "").lower()
    first, dot, rest = name.partition(".")
    scope = _SCOPES.get(first, "") if dot else ""
    if (rest if scope else name).count(".") > 1:
        c.index = index
        raise c.stop("a system variable")
    if scope:
        return SystemVariable(at, at + len(text), rest, scope)
    return SystemVariable(at, at + len(text), name)


def read_column(c: Cursor) -> Name:
    """Read the name of a column with its qualifiers.

    Raises:
        Stopped: If none comes next.
    """
    at = c.start
    if c.words[c.index] == ".":
        if c.word_ahead(2) != "." or not c.dialect.may_be_mariadb:
            raise c.stop("a name")
        c.index += 1
    parts = [c.identifier()]
    is_quoted = c.kinds[c.index - 1] is TokenKind.QUOTED_NAME
    while c.words[c.index] == ".":
        if len(parts) == 3:
            raise c.stop("a name of at most three parts")
        c.index += 1
        is_quoted = c.kind is TokenKind.QUOTED_NAME
        parts.append(c.identifier())
    return Name(at, c.end, tuple(parts), is_quoted)


def read_digits(c: Cursor) -> Literal:
    """Read how many digits of a second."""
    if c.kind is not TokenKind.NUMBER:
        raise c.stop("a number")
    return read_literal(c)
