"""Names of accounts in statements, and as the servers write them."""

from __future__ import annotations

from typing import Final

from binlane.sql.cursor import Cursor
from binlane.sql.tokens import TokenKind

_SELF: Final = ("root", "localhost")


def account(cursor: Cursor) -> str:
    """Read an account, and give it with quotes."""
    return named(*account_parts(cursor))


def account_parts(cursor: Cursor) -> tuple[str, str]:
    """Read an account: its user and host."""
    token = cursor.advance()
    if token.word in ("CURRENT_USER", "USER"):
        if cursor.token.text == "(":
            cursor.group()
        return _SELF
    if cursor.token.kind is TokenKind.USER_VARIABLE:
        return token.value, cursor.advance().text[1:].strip("`'\"")
    if cursor.accept_operator("@"):
        return token.value, cursor.advance().value
    return token.value, "%"


def own_account() -> str:
    """The session's own."""
    return named(*_SELF)


def named(user: str, host: str) -> str:
    """An account with quotes."""
    return f"'{user}'@'{host}'"
