"""Account statements as they are logged: MySQL writes most of them anew, MariaDB a few.

Source: MariaDB 10.11 sql/sql_acl.cc, MySQL 9.7 sql/sql_rewrite.cc. Hashes of passwords that MySQL
makes are random: they stand as `#`.
"""

from __future__ import annotations

import hashlib

from binlane.session.account_names import account, account_parts, own_account
from binlane.session.mysql_accounts import mysql_text
from binlane.session.state import Command, SessionState
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import tokenise


def account_text(state: SessionState, command: Command) -> str:
    """The text of an account statement in the log."""
    tokens = list(tokenise(command.text, **state.variables.quoting))
    rewrite = _mariadb if state.server.is_mariadb else mysql_text
    try:
        return rewrite(Cursor(tokens), command.database) or command.text
    except Stopped:
        # The analysis found it good; what this smaller grammar does not know is left as it is.
        return command.text


def _mariadb(cursor: Cursor, _: str) -> str | None:
    cursor.expect("SET")
    if cursor.accept("PASSWORD"):
        user = account(cursor) if cursor.accept("FOR") else own_account()
        cursor.expect_operator("=")
        if cursor.accept("PASSWORD"):
            value = _hash(cursor.group()[0].value)
        else:
            value = cursor.advance().value
        return f"SET PASSWORD FOR {user}='{value}'"
    if cursor.accept("DEFAULT", "ROLE"):
        token = cursor.advance()
        role = "NONE" if token.word == "NONE" else token.value
        user = account(cursor) if cursor.accept("FOR") else own_account()
        return f"SET DEFAULT ROLE '{role}' FOR {user}"
    return None


def _hash(password: str) -> str:
    """What MariaDB's PASSWORD() makes of a text."""
    if not password:
        return ""
    first = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(first, usedforsecurity=False).hexdigest().upper()


def alters_no_account(state: SessionState, command: Command) -> bool:
    """Whether it is ALTER USER IF EXISTS and none of the accounts exists."""
    cursor = Cursor(list(tokenise(command.text, **state.variables.quoting)))
    if not cursor.accept("ALTER", "USER", "IF", "EXISTS"):
        return False
    parts = [account_parts(Cursor(part)) for part in split(cursor.rest()) if part]
    return not any(state.objects.has_account(f"{user}@{host}") for user, host in parts)
