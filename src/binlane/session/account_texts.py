"""Account statements as they are logged: MySQL writes most of them anew, MariaDB a few.

MySQL: passwords as hashes, options in its own order. The hashes are random: they stand as `#`.

Source: MariaDB 10.11 sql/sql_acl.cc, MySQL 9.7 sql/sql_rewrite.cc.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.names import quote
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.table_definitions import string_of
from binlane.sql.tree.definitions import (
    Account,
    AccountClause,
    AccountStatement,
    Credential,
    Privilege,
)
from binlane.sql.tree.expressions import Literal
from binlane.sql.tree.statements import innermost

_PLUGIN: Final = "'caching_sha2_password'"
_PRIVILEGES: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "SHUTDOWN", "PROCESS"),
    *("FILE", "REFERENCES", "INDEX", "ALTER", "SHOW DATABASES", "SUPER"),
    *("CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "REPLICATION SLAVE"),
    *("REPLICATION CLIENT", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE"),
    *("CREATE USER", "EVENT", "TRIGGER", "CREATE TABLESPACE", "CREATE ROLE", "DROP ROLE"),
)
"""In the order in which the server writes them; others follow."""
_CLAUSES: Final = (
    *("REQUIRE", "WITH", "PASSWORD EXPIRE", "ACCOUNT", "PASSWORD HISTORY"),
    *("PASSWORD REUSE INTERVAL", "PASSWORD REQUIRE CURRENT", "FAILED_LOGIN_ATTEMPTS"),
    *("PASSWORD_LOCK_TIME", "COMMENT", "ATTRIBUTE"),
)
"""Clauses in the order in which the server writes them."""
_ORDERED: Final = (
    *("SUBJECT", "ISSUER", "CIPHER", "MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR"),
    *("MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"),
)
"""What stands in a clause by pairs, in that order likewise."""
_ESCAPES: Final = str.maketrans({"'": "\\'", '"': '\\"', "\\": "\\\\"})


def account_text(state: SessionState, statement: SessionStatement) -> str:
    """The text of an account statement in the log."""
    tree = innermost(statement.facts.tree)
    assert isinstance(tree, AccountStatement)
    writers = _MARIADB if state.server.is_mariadb else _MYSQL
    write = writers.get(tree.verb)
    text = None if write is None else write(_Writer(state, statement, tree))
    return statement.text if text is None else text


@dataclass(frozen=True, slots=True)
class _Writer:
    """A statement that is written anew."""

    state: SessionState
    statement: SessionStatement
    tree: AccountStatement

    def account(self, account: Account) -> str:
        """An account with quotes."""
        user, host = account.user, account.host or "%"
        if account.is_current:
            user, host = self.state.identity.account
        if self.state.server.is_mariadb:
            return f"'{user}'@'{host}'"
        return f"{_string(user)}@{_string(host)}"

    def accounts(self, accounts: Iterable[Account]) -> str:
        """Several of them."""
        return ",".join(map(self.account, accounts))

    @property
    def subject(self) -> str:
        """The one account that a SET is about: the session's own where none is named."""
        own = Account(0, 0, "CURRENT_USER", is_current=True)
        return self.account(self.tree.accounts[0] if self.tree.accounts else own)

    def value(self, part: str | Literal) -> str:
        """A word, number or string of a clause."""
        return _string(string_of(part, self.statement.facts)) if isinstance(part, Literal) else part

    def secret(self, credential: Credential) -> str:
        """A password; empty where it is or has none."""
        secret = credential.secret
        return "" if secret is None else string_of(secret, self.statement.facts)


def _string(value: str) -> str:
    return f"'{value.translate(_ESCAPES)}'"


# MariaDB ------------------------------------------------------------------------------------------


def _mariadb_password(writer: _Writer) -> str:
    (credential,) = writer.tree.credentials
    assert credential is not None, "SET PASSWORD has one"
    value = writer.secret(credential)
    shown = value if credential.is_hash else _hash(value)
    return f"SET PASSWORD FOR {writer.subject}='{shown}'"


def _mariadb_role(writer: _Writer) -> str:
    role = writer.tree.roles[0].user if writer.tree.roles else "NONE"
    return f"SET DEFAULT ROLE '{role}' FOR {writer.subject}"


def _hash(password: str) -> str:
    """What MariaDB's PASSWORD() makes of a text."""
    if not password:
        return ""
    first = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(first, usedforsecurity=False).hexdigest().upper()


# MySQL --------------------------------------------------------------------------------------------


def _password(writer: _Writer) -> str:
    (credential,) = writer.tree.credentials
    assert credential is not None, "SET PASSWORD has one"
    value = "#" if credential.is_random or writer.secret(credential) else ""
    return (
        f"ALTER USER {writer.subject} IDENTIFIED WITH {_PLUGIN} AS '{value}'"
        f"{_old_password(credential)}"
    )


def _user_statement(writer: _Writer) -> str | None:
    tree = writer.tree
    if "DEFAULT ROLE" in tree.options:
        return None
    users = ",".join(
        writer.account(account) + _identified(writer, credential)
        for account, credential in zip(tree.accounts, tree.credentials, strict=True)
    )
    condition = "".join(f"{one} " for one in tree.options if one.startswith("IF"))
    roles = [writer.state.account(role) for role in tree.roles]
    default = ",".join(f"{quote(user)}@{quote(host)}" for user, host in roles)
    clauses = sorted(tree.clauses, key=lambda clause: _CLAUSES.index(clause.name))
    return (
        f"{tree.verb} {condition}{users}{' DEFAULT ROLE ' if default else ''}{default}"
        f"{''.join(_clause(writer, clause) for clause in clauses)}"
    )


def _identified(writer: _Writer, credential: Credential | None) -> str:
    if credential is None or not credential.is_identified:
        is_new = writer.tree.verb == "CREATE USER"
        return f" IDENTIFIED WITH {_PLUGIN}" if is_new else _old_password(credential)
    plugin = f"'{credential.plugin}'" if credential.plugin else _PLUGIN
    text = f" IDENTIFIED WITH {plugin}"
    if credential.is_hash:
        text += f" AS {_string(writer.secret(credential))}"
    elif credential.is_random or credential.secret is not None:
        is_empty = not (credential.is_random or writer.secret(credential))
        text += f" AS '{'' if is_empty else '#'}'"
    return text + _old_password(credential)


def _old_password(credential: Credential | None) -> str:
    """What happens to the old password; the old one itself is not written."""
    return f" {credential.then}" if credential and credential.then else ""


def _clause(writer: _Writer, clause: AccountClause) -> str:
    parts = [writer.value(part) for part in clause.parts]
    if parts and parts[0] in _ORDERED:
        given = dict(zip(parts[::2], parts[1::2], strict=True))
        parts = [f"{name} {given[name]}" for name in _ORDERED if name in given]
    return " ".join(("", clause.name, *parts))


def _grant(writer: _Writer) -> str | None:
    tree = writer.tree
    if not tree.privileges:
        return None
    names = {one.name for one in tree.privileges}
    target = writer.account(tree.roles[0]) if "PROXY" in names else _target(writer)
    gives_on = "WITH GRANT OPTION" in tree.options or "GRANT OPTION" in names
    end = " WITH GRANT OPTION" if gives_on else ""
    if tree.grantor is not None:
        word, roles = tree.grantor_roles
        listed = f"{' EXCEPT ' if word else ''}{writer.accounts(roles)}" if roles else ""
        end += f" AS {writer.account(tree.grantor)} WITH ROLE {word}{listed}"
        end += "" if word or roles else "NONE"
    privileges = ", ".join(
        _privilege(writer.state, one) for one in sorted(tree.privileges, key=_place)
    )
    return f"GRANT {privileges} ON {target} TO {writer.accounts(tree.accounts)}{end}"


def _place(privilege: Privilege) -> int:
    name = privilege.name
    return _PRIVILEGES.index(name) if name in _PRIVILEGES else len(_PRIVILEGES)


def _privilege(state: SessionState, privilege: Privilege) -> str:
    if privilege.name == "ALL":
        return "ALL PRIVILEGES"
    columns = ", ".join(map(state.quote, privilege.columns))
    return f"{privilege.name} ({columns})" if columns else privilege.name


def _target(writer: _Writer) -> str:
    tree, state = writer.tree, writer.state
    on = tree.on
    assert on is not None, "privileges are granted on something"
    if (on.database, on.name) == ("*", "*"):
        return "*.*"
    kind = "" if tree.object_kind == "TABLE" else f"{tree.object_kind} "
    name = "*" if on.name == "*" else state.quote(on.name)
    return f"{kind}{state.quote(on.database or writer.statement.database)}.{name}"


_Rewrite = Callable[[_Writer], str | None]
_MARIADB: Final[Mapping[str, _Rewrite]] = MappingProxyType(
    {"SET PASSWORD": _mariadb_password, "SET DEFAULT ROLE": _mariadb_role}
)
_MYSQL: Final[Mapping[str, _Rewrite]] = MappingProxyType(
    {
        "CREATE USER": _user_statement,
        "ALTER USER": _user_statement,
        "SET PASSWORD": _password,
        "GRANT": _grant,
    }
)
