"""Account statements as they are logged: MySQL writes most of them anew, MariaDB a few.

Source: MariaDB 10.11 sql/sql_acl.cc, MySQL 9.7 sql/sql_rewrite.cc. Hashes of passwords that MySQL
makes are random: they stand as `#`.
"""

from __future__ import annotations

import hashlib
from typing import Final

from binlane.names import quote
from binlane.session.state import Command, SessionState
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import Token, TokenKind, tokenise

_SELF: Final = ("root", "localhost")
_PLUGIN: Final = "'caching_sha2_password'"


def account_text(state: SessionState, command: Command) -> str:
    """The text of an account statement in the log."""
    variables = state.variables
    tokens = list(
        tokenise(
            command.text,
            ansi_quotes=variables.ansi_quotes,
            no_backslash_escapes=variables.no_backslash_escapes,
        )
    )
    rewrite = _mariadb if state.server.is_mariadb else _mysql
    try:
        return rewrite(Cursor(tokens), command.database) or command.text
    except Stopped:
        # The analysis found it good; what this smaller grammar does not know is left as it is.
        return command.text


def _mariadb(cursor: Cursor, _: str) -> str | None:
    cursor.expect("SET")
    if cursor.accept("PASSWORD"):
        user = _account(cursor) if cursor.accept("FOR") else _named(*_SELF)
        cursor.expect_operator("=")
        if cursor.accept("PASSWORD"):
            value = _hash(cursor.group()[0].value)
        else:
            value = cursor.advance().value
        return f"SET PASSWORD FOR {user}='{value}'"
    if cursor.accept("DEFAULT", "ROLE"):
        token = cursor.advance()
        role = "NONE" if token.word == "NONE" else token.value
        user = _account(cursor) if cursor.accept("FOR") else _named(*_SELF)
        return f"SET DEFAULT ROLE '{role}' FOR {user}"
    return None


def _hash(password: str) -> str:
    """What MariaDB's PASSWORD() makes of a text."""
    if not password:
        return ""
    first = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(first, usedforsecurity=False).hexdigest().upper()


def _mysql(cursor: Cursor, database: str) -> str | None:
    verb = cursor.advance().word
    if verb == "GRANT":
        return _grant(cursor, database)
    if verb == "SET" and cursor.accept("PASSWORD"):
        user = _account(cursor) if cursor.accept("FOR") else _named(*_SELF)
        is_empty = cursor.accept_operator("=") and not cursor.token.value
        value = "" if is_empty else "#"
        return f"ALTER USER {user} IDENTIFIED WITH {_PLUGIN} AS '{value}'"
    if verb in ("CREATE", "ALTER") and cursor.accept("USER"):
        return _user_statement(cursor, verb)
    return None


def _user_statement(cursor: Cursor, verb: str) -> str | None:
    condition = ""
    if cursor.accept("IF", "NOT", "EXISTS"):
        condition = "IF NOT EXISTS "
    elif cursor.accept("IF", "EXISTS"):
        condition = "IF EXISTS "
    users = [_user(cursor, verb)]
    while cursor.accept_operator(","):
        users.append(_user(cursor, verb))
    if cursor.word == "DEFAULT" and verb == "ALTER":
        return None
    rest = "".join(f" {_plain(token)}" for token in cursor.rest())
    return f"{verb} USER {condition}{','.join(users)}{rest}"


def _user(cursor: Cursor, verb: str) -> str:
    shown = _account(cursor)
    if not cursor.accept("IDENTIFIED"):
        return f"{shown} IDENTIFIED WITH {_PLUGIN}" if verb == "CREATE" else shown
    plugin = _PLUGIN
    if cursor.accept("WITH"):
        plugin = f"'{cursor.advance().value}'"
    shown += f" IDENTIFIED WITH {plugin}"
    if cursor.accept("BY"):
        if cursor.accept("RANDOM"):
            cursor.expect("PASSWORD")
            return f"{shown} AS '#'"
        return f"{shown} AS '#'" if cursor.advance().value else f"{shown} AS ''"
    if cursor.accept("AS"):
        return f"{shown} AS {_plain(cursor.advance())}"
    return shown


def _grant(cursor: Cursor, database: str) -> str | None:
    privileges = [_privilege(part) for part in split(cursor.until(("ON", "TO")))]
    if not cursor.accept("ON"):
        return None
    is_proxy = privileges == ["PROXY"]
    target = _account(cursor) if is_proxy else _target(cursor, database)
    cursor.expect("TO")
    users = [_account(cursor)]
    while cursor.accept_operator(","):
        users.append(_account(cursor))
    gives_on = cursor.accept("WITH", "GRANT", "OPTION") or "GRANT OPTION" in privileges
    end = " WITH GRANT OPTION" if gives_on else ""
    order = [one for one in privileges if "_" not in one] + [
        one for one in privileges if "_" in one
    ]
    return f"GRANT {', '.join(order)} ON {target} TO {','.join(users)}{end}"


def _privilege(tokens: list[Token]) -> str:
    words = [token for token in tokens if token.kind is TokenKind.NAME or token.text == "("]
    names = []
    for token in words:
        if token.text == "(":
            break
        names.append(token.value.upper())
    text = " ".join(names)
    if text in ("ALL", "ALL PRIVILEGES"):
        return "ALL PRIVILEGES"
    opening = next((i for i, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        return text
    columns = split(tokens[opening + 1 : -1])
    return f"{text} ({', '.join(quote(part[0].value) for part in columns)})"


def _target(cursor: Cursor, database: str) -> str:
    kind = cursor.accept_any(("TABLE", "PROCEDURE", "FUNCTION"))
    prefix = f"{kind} " if kind in ("PROCEDURE", "FUNCTION") else ""
    if cursor.accept_operator("*"):
        return "*.*" if cursor.accept_operator(".") and cursor.advance() else f"{quote(database)}.*"
    first = cursor.identifier()
    if not cursor.accept_operator("."):
        return f"{prefix}{quote(database)}.{quote(first)}"
    if cursor.accept_operator("*"):
        return f"{prefix}{quote(first)}.*"
    return f"{prefix}{quote(first)}.{quote(cursor.advance().value)}"


def _account(cursor: Cursor) -> str:
    token = cursor.advance()
    if token.word in ("CURRENT_USER", "USER"):
        if cursor.token.text == "(":
            cursor.group()
        return _named(*_SELF)
    if cursor.token.kind is TokenKind.USER_VARIABLE:
        return _named(token.value, cursor.advance().text[1:].strip("`'\""))
    if cursor.accept_operator("@"):
        return _named(token.value, cursor.advance().value)
    return _named(token.value, "%")


def _named(user: str, host: str) -> str:
    return f"'{user}'@'{host}'"


def _plain(token: Token) -> str:
    return token.text.upper() if token.kind is TokenKind.NAME else token.text
