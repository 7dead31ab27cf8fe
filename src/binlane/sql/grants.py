"""What a GRANT or REVOKE is about: the object behind ON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from binlane.names import TableName
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.tokens import SqlSyntaxError, TokenKind, tokenise

_ROUTINES: Final = ("FUNCTION", "PROCEDURE", "PACKAGE")
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantObject:
    """What privileges are given on; nothing of it for `*.*`, roles and PROXY.

    Attributes:
        database: Whose objects, as a pattern without its escapes.
        name: A table, view or routine.
        what: `TABLE`, `FUNCTION`, `PROCEDURE`, `PACKAGE` or `PACKAGE BODY`.
    """

    database: str | None = None
    name: TableName | None = None
    what: str = "TABLE"


def grant_object(
    text: str, *, database: str, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> GrantObject | None:
    """What a GRANT or REVOKE is about; None if that cannot be told.

    Args:
        text: The statement.
        database: The default database.
        ansi_quotes: sql_mode ANSI_QUOTES.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.
    """
    try:
        cursor = Cursor(
            list(tokenise(text, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes))
        )
        return _object(cursor, database)
    except (SqlSyntaxError, Stopped):
        return None


def _object(cursor: Cursor, database: str) -> GrantObject:
    cursor.advance()
    # A role may be called anything, a column list stands in parentheses.
    cursor.until(("ON", "TO", "FROM"))
    is_proxy = cursor.ahead(-1).word == "PROXY"
    if not cursor.accept("ON") or is_proxy:
        return GrantObject()
    what = cursor.word if cursor.word in _ROUTINES or cursor.word == "TABLE" else "TABLE"
    if cursor.word == what and cursor.ahead(1).text != ".":
        cursor.advance()
        if what == "PACKAGE" and cursor.accept("BODY"):
            what = "PACKAGE BODY"
    if cursor.accept_operator("*"):
        if cursor.accept_operator("."):
            cursor.expect_operator("*")
            return GrantObject()
        return GrantObject(database=database)
    first = cursor.identifier()
    if not cursor.accept_operator("."):
        return GrantObject(name=TableName(database, first), what=what)
    if cursor.accept_operator("*"):
        return GrantObject(database=_ESCAPED.sub(r"\1", first))
    if cursor.token.kind is TokenKind.OPERATOR:
        raise cursor.stop("a name")
    return GrantObject(name=TableName(first, cursor.identifier()), what=what)
