"""Account statements as they are logged: MySQL writes most of them anew, MariaDB a few.

MySQL: passwords as hashes, options in its own order. The hashes are random: they stand as `#`.

Source: MariaDB 10.11 sql/sql_acl.cc, MySQL 9.7 sql/sql_rewrite.cc.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from binlane.names import quote
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.parser import Stopped, cursor_over
from binlane.sql.parser.cursor import Cursor
from binlane.sql.tokens import Token, TokenKind, split
from binlane.sql.tree.definitions import AccountStatement


def account_text(state: SessionState, statement: SessionStatement) -> str:
    """The text of an account statement in the log."""
    cursor = cursor_over(statement.text, state.variables.settings.dialect)
    rewrite = _mariadb if state.server.is_mariadb else mysql_text
    try:
        return rewrite(cursor, statement.database) or statement.text
    except Stopped:
        # The analysis found it good; what this smaller grammar does not know is left as it is.
        return statement.text


def _mariadb(cursor: Cursor, _: str) -> str | None:
    cursor.expect("SET")
    if cursor.accept("PASSWORD"):
        user = account(cursor) if cursor.accept("FOR") else own_account()
        cursor.expect_operator("=")
        if cursor.accept("PASSWORD"):
            cursor.expect_operator("(")
            value = _hash(cursor.advance().value)
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


def alters_no_account(state: SessionState, statement: SessionStatement) -> bool:
    """Whether it is ALTER USER IF EXISTS and none of the accounts exists."""
    tree = statement.facts.tree
    if not isinstance(tree, AccountStatement) or tree.verb != "ALTER USER":
        return False
    return "IF EXISTS" in tree.options and not any(
        account.is_current
        or state.objects.has_account(
            f"{account.user}@{'%' if account.host is None else account.host}"
        )
        for account in tree.accounts
    )


# Names of accounts --------------------------------------------------------------------------------


_SELF: Final = ("root", "localhost")


def account(cursor: Cursor) -> str:
    """Read an account, and give it with quotes."""
    return named(*account_parts(cursor))


def account_parts(cursor: Cursor) -> tuple[str, str]:
    """Read an account: its user and host."""
    token = cursor.advance()
    if token.word in ("CURRENT_USER", "USER"):
        if cursor.accept_operator("("):
            cursor.expect_operator(")")
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


# MySQL --------------------------------------------------------------------------------------------


_PLUGIN: Final = "'caching_sha2_password'"
_PRIVILEGES: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "SHUTDOWN", "PROCESS"),
    *("FILE", "REFERENCES", "INDEX", "ALTER", "SHOW DATABASES", "SUPER"),
    *("CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "REPLICATION SLAVE"),
    *("REPLICATION CLIENT", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE"),
    *("CREATE USER", "EVENT", "TRIGGER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE"),
)
"""In the order in which the server writes them; others follow."""
_OPTIONS: Final = (
    *("DEFAULT ROLE", "REQUIRE", "WITH", "PASSWORD EXPIRE", "ACCOUNT", "PASSWORD HISTORY"),
    *("PASSWORD REUSE", "PASSWORD REQUIRE", "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"),
    *("COMMENT", "ATTRIBUTE"),
)
"""Options of accounts in the order in which the server writes them."""
_LIMITS: Final = (
    *("MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR"),
    "MAX_USER_CONNECTIONS",
)
_CERTIFICATE: Final = ("SUBJECT", "ISSUER", "CIPHER")
_PASSWORD_OPTIONS: Final = ("EXPIRE", "HISTORY", "REUSE", "REQUIRE")
_STARTS: Final = (
    *("DEFAULT", "REQUIRE", "WITH", "PASSWORD", "ACCOUNT", "FAILED_LOGIN_ATTEMPTS"),
    *("PASSWORD_LOCK_TIME", "COMMENT", "ATTRIBUTE"),
)
_ESCAPES: Final = str.maketrans({"'": "\\'", '"': '\\"', "\\": "\\\\"})


def mysql_text(cursor: Cursor, database: str) -> str | None:
    """The text of an account statement; None where it is logged as it stands.

    Raises:
        Stopped: If it is not understood.
    """
    verb = cursor.advance().word
    if verb == "GRANT":
        return _grant(cursor, database)
    if verb == "SET" and cursor.accept("PASSWORD"):
        user = account(cursor) if cursor.accept("FOR") else own_account()
        is_empty = cursor.accept_operator("=") and not cursor.token.value
        value = "" if is_empty else "#"
        cursor.advance()
        return f"ALTER USER {user} IDENTIFIED WITH {_PLUGIN} AS '{value}'{_retained(cursor)}"
    if verb in ("CREATE", "ALTER") and cursor.accept("USER"):
        return _user_statement(cursor, verb)
    return None


# CREATE USER and ALTER USER ----------------------------------------------------------------------


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
    options = dict(_options(cursor))
    written = "".join(f" {options[name]}" for name in _OPTIONS if name in options)
    return f"{verb} USER {condition}{','.join(users)}{written}"


def _user(cursor: Cursor, verb: str) -> str:
    shown = account(cursor)
    if not cursor.accept("IDENTIFIED"):
        is_new = verb == "CREATE"
        return f"{shown} IDENTIFIED WITH {_PLUGIN}" if is_new else shown + _retained(cursor)
    plugin = _PLUGIN
    if cursor.accept("WITH"):
        plugin = f"'{cursor.advance().value}'"
    shown += f" IDENTIFIED WITH {plugin}"
    if cursor.accept("BY"):
        value = "#"
        if cursor.accept("RANDOM"):
            cursor.expect("PASSWORD")
        elif not cursor.advance().value:
            value = ""
        shown += f" AS '{value}'"
    elif cursor.accept("AS"):
        shown += f" AS {_plain(cursor.advance())}"
    return shown + _retained(cursor)


def _retained(cursor: Cursor) -> str:
    """What happens to the old password; the old one itself is not written."""
    if cursor.accept("REPLACE"):
        cursor.advance()
    if cursor.accept("RETAIN", "CURRENT", "PASSWORD"):
        return " RETAIN CURRENT PASSWORD"
    return " DISCARD OLD PASSWORD" if cursor.accept("DISCARD", "OLD", "PASSWORD") else ""


def _options(cursor: Cursor) -> Iterable[tuple[str, str]]:
    """The options by name, each with its text."""
    while not cursor.is_at_end:
        if cursor.accept("DEFAULT", "ROLE"):
            yield "DEFAULT ROLE", f"DEFAULT ROLE {','.join(_roles(cursor))}"
        elif cursor.accept("REQUIRE"):
            yield "REQUIRE", _certificate(cursor)
        elif cursor.accept("WITH"):
            yield "WITH", _limits(cursor)
        elif cursor.accept("PASSWORD"):
            kind = cursor.accept_any(_PASSWORD_OPTIONS)
            yield f"PASSWORD {kind}", f"PASSWORD {kind}{_until_next(cursor)}"
        else:
            name = cursor.accept_any(_STARTS)
            if not name:
                raise cursor.stop("an option of an account")
            yield name, name + _until_next(cursor)


def _until_next(cursor: Cursor) -> str:
    return "".join(f" {_plain(token)}" for token in cursor.until(_STARTS[1:]))


def _roles(cursor: Cursor) -> list[str]:
    roles = [account_parts(cursor)]
    while cursor.accept_operator(","):
        roles.append(account_parts(cursor))
    return [f"{quote(user)}@{quote(host)}" for user, host in roles]


def _certificate(cursor: Cursor) -> str:
    """What REQUIRE says."""
    given: dict[str, str] = {}
    while kind := cursor.accept_any(_CERTIFICATE):
        given[kind] = _plain(cursor.advance())
        cursor.accept("AND")
    if not given:
        return f"REQUIRE {cursor.advance().word}"
    return "REQUIRE " + " ".join(f"{kind} {given[kind]}" for kind in _CERTIFICATE if kind in given)


def _limits(cursor: Cursor) -> str:
    given: dict[str, str] = {}
    while kind := cursor.accept_any(_LIMITS):
        given[kind] = cursor.advance().text
    return "WITH " + " ".join(f"{kind} {given[kind]}" for kind in _LIMITS if kind in given)


# GRANT -------------------------------------------------------------------------------------------


def _grant(cursor: Cursor, database: str) -> str | None:
    privileges = [_privilege(part) for part in split(cursor.until(("ON", "TO")))]
    if not cursor.accept("ON"):
        return None
    target = account(cursor) if ("PROXY", "") in privileges else _target(cursor, database)
    cursor.expect("TO")
    users = [account(cursor)]
    while cursor.accept_operator(","):
        users.append(account(cursor))
    gives_on = cursor.accept("WITH", "GRANT", "OPTION") or ("GRANT OPTION", "") in privileges
    end = " WITH GRANT OPTION" if gives_on else ""
    if cursor.accept("AS"):
        end += f" AS {account(cursor)} WITH ROLE {_active_roles(cursor)}"
    listed = ", ".join(name + columns for name, columns in sorted(privileges, key=_place))
    return f"GRANT {listed} ON {target} TO {','.join(users)}{end}"


def _active_roles(cursor: Cursor) -> str:
    cursor.accept("WITH", "ROLE")
    return "".join(token.text for token in cursor.until(())) or "NONE"


def _place(privilege: tuple[str, str]) -> int:
    name = privilege[0]
    return _PRIVILEGES.index(name) if name in _PRIVILEGES else len(_PRIVILEGES)


def _privilege(tokens: list[Token]) -> tuple[str, str]:
    """A privilege in capitals, and its columns."""
    opening = next((i for i, token in enumerate(tokens) if token.text == "("), len(tokens))
    text = " ".join(token.value.upper() for token in tokens[:opening])
    if text in ("ALL", "ALL PRIVILEGES"):
        return "ALL PRIVILEGES", ""
    columns = [quote(part[0].value) for part in split(tokens[opening + 1 : -1]) if part]
    return text, f" ({', '.join(columns)})" if columns else ""


def _target(cursor: Cursor, database: str) -> str:
    kind = cursor.accept_any(("TABLE", "PROCEDURE", "FUNCTION"))
    prefix = f"{kind} " if kind in ("PROCEDURE", "FUNCTION") else ""
    if cursor.accept_operator("*"):
        return "*.*" if cursor.accept_operator(".") and cursor.advance() else f"{quote(database)}.*"
    first = cursor.any_name()
    if not cursor.accept_operator("."):
        return f"{prefix}{quote(database)}.{quote(first)}"
    if cursor.accept_operator("*"):
        return f"{prefix}{quote(first)}.*"
    return f"{prefix}{quote(first)}.{quote(cursor.advance().value)}"


def _plain(token: Token) -> str:
    if token.kind is TokenKind.STRING:
        return f"'{token.value.translate(_ESCAPES)}'"
    return token.text.upper() if token.kind is TokenKind.NAME else token.text
