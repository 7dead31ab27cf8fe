"""Users, roles and privileges: CREATE USER, GRANT and the like.

Source: MySQL 9.7, sql/sql_yacc.yy: create_user_stmt, grant_stmt; MariaDB 11.8: grant, user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.forms import number, string
from binlane.sql.parser.literals import read_names, read_object_name
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.definitions import Account, AccountStatement
from binlane.sql.tree.expressions import Literal, ObjectName

_REQUIREMENTS: Final = ("SUBJECT", "ISSUER", "CIPHER")
_LIMITS: Final = (
    *("MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR"),
    *("MAX_USER_CONNECTIONS", "MAX_STATEMENT_TIME"),
)
_OBJECT_KINDS: Final = ("TABLE", "FUNCTION", "PROCEDURE", "PACKAGE", "LIBRARY")
_PRIVILEGES: Final = (
    *("ALTER ROUTINE", "CREATE ROUTINE", "CREATE TABLESPACE", "CREATE TEMPORARY TABLES"),
    *("CREATE USER", "CREATE VIEW", "GRANT OPTION", "LOCK TABLES", "REPLICATION CLIENT"),
    *("REPLICATION SLAVE", "SHOW DATABASES", "SHOW VIEW"),
    *("ALTER", "CREATE", "DELETE", "DROP", "EVENT", "EXECUTE", "FILE", "INDEX", "INSERT"),
    *("PROCESS", "REFERENCES", "RELOAD", "SELECT", "SHUTDOWN", "SUPER", "TRIGGER", "UPDATE"),
    "USAGE",
)
_MYSQL_PRIVILEGES: Final = ("CREATE ROLE", "DROP ROLE")
_MARIADB_PRIVILEGES: Final = (
    *("BINLOG ADMIN", "BINLOG MONITOR", "BINLOG REPLAY", "CONNECTION ADMIN", "DELETE HISTORY"),
    *("DELETE VERSIONING ROWS", "FEDERATED ADMIN", "READ ONLY ADMIN", "READ_ONLY ADMIN"),
    *("REPLICA MONITOR", "REPLICATION MASTER ADMIN", "REPLICATION REPLICA"),
    *("REPLICATION REPLICA ADMIN", "REPLICATION SLAVE ADMIN", "SET USER"),
    *("SHOW CREATE ROUTINE", "SLAVE MONITOR"),
)


def _by_words(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Longer ones first, for one may begin with another."""
    return tuple(sorted((tuple(each.split()) for each in names), key=lambda words: -len(words)))


_KNOWN: Final = {
    "": _by_words((*_PRIVILEGES, *_MYSQL_PRIVILEGES, *_MARIADB_PRIVILEGES)),
    "mysql": _by_words((*_PRIVILEGES, *_MYSQL_PRIVILEGES)),
    "mariadb": _by_words((*_PRIVILEGES, *_MARIADB_PRIVILEGES)),
}


@dataclass(slots=True)
class _Found:
    """Parts of a statement while they are read; see `AccountStatement`."""

    at: int
    accounts: list[Account] = field(default_factory=list)
    privileges: list[str] = field(default_factory=list)
    object_kind: str = ""
    on: ObjectName | None = None
    passwords: list[Literal] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    roles: list[Account] = field(default_factory=list)

    def statement(self, verb: str, cursor: Cursor) -> AccountStatement:
        """As a node that ends where the cursor stands."""
        return AccountStatement(
            self.at,
            cursor.end,
            verb,
            accounts=tuple(self.accounts),
            privileges=tuple(self.privileges),
            object_kind=self.object_kind,
            on=self.on,
            passwords=tuple(self.passwords),
            options=frozenset(self.options),
            roles=tuple(self.roles),
        )


def read_account(cursor: Cursor) -> Account:
    """Read `user@host`, with or without quotes and host, CURRENT_USER, or a role."""
    start = cursor.start
    if word := cursor.accept_any(("CURRENT_USER", "CURRENT_ROLE")):
        if cursor.accept_operator("("):
            cursor.expect_operator(")")
        return Account(start, cursor.end, word, is_current=True)
    user = _part(cursor)
    host = None
    if cursor.kind is TokenKind.USER_VARIABLE and cursor.start == cursor.end:
        host = _unquoted(cursor.advance().text[1:])
    elif cursor.accept_operator("@"):
        host = _part(cursor)
    return Account(start, cursor.end, user, host)


def _part(cursor: Cursor) -> str:
    if cursor.kind is TokenKind.STRING:
        return cursor.advance().value
    return cursor.identifier()


def _unquoted(text: str) -> str:
    if text[:1] in {"`", "'", '"'}:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _accounts(cursor: Cursor) -> list[Account]:
    found = [read_account(cursor)]
    while cursor.accept_operator(","):
        found.append(read_account(cursor))
    return found


# CREATE, ALTER, DROP, RENAME ------------------------------------------------------------------


def create_user(cursor: Cursor, at: int, *, is_or_replace: bool = False) -> AccountStatement:
    """Read what stands behind CREATE USER."""
    found = _Found(at)
    if is_or_replace:
        found.options.add("OR REPLACE")
    if cursor.accept("IF", "NOT", "EXISTS"):
        found.options.add("IF NOT EXISTS")
    _users(cursor, found)
    if cursor.dialect.has_mysql(8) and cursor.accept("DEFAULT", "ROLE"):
        found.roles += _accounts(cursor)
    _account_options(cursor, found)
    return found.statement("CREATE USER", cursor)


def alter_user(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind ALTER USER."""
    found = _Found(at)
    if cursor.accept("IF", "EXISTS"):
        found.options.add("IF EXISTS")
    if cursor.word == "USER" and cursor.word_ahead(1) == "(" and cursor.dialect.may_be_mysql:
        start = cursor.advance().offset
        cursor.expect_operator("(")
        cursor.expect_operator(")")
        found.accounts.append(Account(start, cursor.end, "CURRENT_USER", is_current=True))
        _authentication(cursor, found)
        return found.statement("ALTER USER", cursor)
    _users(cursor, found)
    if cursor.dialect.has_mysql(8) and cursor.accept("DEFAULT", "ROLE"):
        if word := cursor.accept_any(("NONE", "ALL")):
            found.options.add(f"DEFAULT ROLE {word}")
        else:
            found.roles += _accounts(cursor)
    _account_options(cursor, found)
    return found.statement("ALTER USER", cursor)


def _users(cursor: Cursor, found: _Found) -> None:
    while True:
        found.accounts.append(read_account(cursor))
        _authentication(cursor, found)
        if not cursor.accept_operator(","):
            return


def _authentication(cursor: Cursor, found: _Found) -> None:
    """IDENTIFIED … of one account, if it comes next."""
    mysql = cursor.dialect.may_be_mysql
    if mysql and cursor.accept("DISCARD", "OLD", "PASSWORD"):
        return
    while mysql and cursor.word in {"ADD", "MODIFY", "DROP"} and cursor.word_ahead(2) == "FACTOR":
        word = cursor.advance().word
        number(cursor)
        cursor.expect("FACTOR")
        if word != "DROP":
            _identified(cursor, found)
    if cursor.word != "IDENTIFIED":
        return
    _identified(cursor, found)
    while cursor.accept("AND"):
        _identified(cursor, found)


def _identified(cursor: Cursor, found: _Found) -> None:  # noqa: C901 - one branch a clause
    cursor.expect("IDENTIFIED")
    mysql, mariadb = cursor.dialect.may_be_mysql, cursor.dialect.may_be_mariadb
    if cursor.accept("BY"):
        _secret(cursor, found)
    elif (mariadb and cursor.accept("VIA")) or cursor.accept("WITH"):
        while True:
            _part(cursor)
            if mysql and cursor.accept("BY"):
                _secret(cursor, found)
            elif cursor.accept_any(("AS", "USING") if mariadb else ("AS",)):
                if mariadb and cursor.accept("PASSWORD"):
                    cursor.expect_operator("(")
                    found.passwords.append(string(cursor))
                    cursor.expect_operator(")")
                else:
                    _secret(cursor, found)
            elif mysql and cursor.accept("INITIAL", "AUTHENTICATION", "IDENTIFIED", "BY"):
                _secret(cursor, found)
            if not (mariadb and cursor.accept("OR")):
                break
    else:
        raise cursor.stop("BY or WITH")
    if mysql and cursor.accept("REPLACE"):
        found.passwords.append(string(cursor))
    if mysql:
        cursor.accept("RETAIN", "CURRENT", "PASSWORD")


def _secret(cursor: Cursor, found: _Found) -> None:
    if cursor.dialect.may_be_mysql and cursor.accept("RANDOM", "PASSWORD"):
        return
    if cursor.dialect.flavor != "mysql" or cursor.dialect.version < (8,):
        cursor.accept("PASSWORD")
    if cursor.kind is TokenKind.NUMBER and cursor.token.text[:2].lower() in {"0x", "x'"}:
        cursor.advance()
        return
    found.passwords.append(string(cursor))


def _account_options(cursor: Cursor, found: _Found) -> None:
    """REQUIRE, limits, and options of passwords and accounts."""
    if cursor.accept("REQUIRE") and not cursor.accept_any(("NONE", "SSL", "X509")):
        if cursor.word not in _REQUIREMENTS:
            raise cursor.stop("what is required")
        while cursor.accept_any(_REQUIREMENTS):
            string(cursor)
            cursor.accept("AND")
    if cursor.accept("WITH"):
        if cursor.word not in _LIMITS:
            raise cursor.stop("a limit")
        while cursor.accept_any(_LIMITS):
            if cursor.kind is not TokenKind.NUMBER:
                raise cursor.stop("a number")
            cursor.advance()
    while _account_option(cursor, found):
        pass
    if cursor.dialect.may_be_mysql and cursor.accept_any(("COMMENT", "ATTRIBUTE")):
        string(cursor)


def _account_option(cursor: Cursor, found: _Found) -> bool:  # noqa: C901 - one branch a clause
    mysql = cursor.dialect.may_be_mysql
    if cursor.accept("ACCOUNT"):
        word = cursor.accept_any(("LOCK", "UNLOCK"))
        if not word:
            raise cursor.stop("LOCK or UNLOCK")
        found.options.add(f"ACCOUNT {word}")
    elif cursor.accept("PASSWORD", "EXPIRE"):
        found.options.add("PASSWORD EXPIRE")
        if cursor.accept("INTERVAL"):
            number(cursor)
            cursor.expect("DAY")
        else:
            cursor.accept_any(("NEVER", "DEFAULT"))
    elif mysql and cursor.accept("PASSWORD", "HISTORY"):
        cursor.accept("DEFAULT") or number(cursor)
    elif mysql and cursor.accept("PASSWORD", "REUSE", "INTERVAL"):
        if not cursor.accept("DEFAULT"):
            number(cursor)
            cursor.expect("DAY")
    elif mysql and cursor.accept("PASSWORD", "REQUIRE", "CURRENT"):
        cursor.accept_any(("DEFAULT", "OPTIONAL"))
    elif mysql and cursor.accept("FAILED_LOGIN_ATTEMPTS"):
        number(cursor)
    elif mysql and cursor.accept("PASSWORD_LOCK_TIME"):
        cursor.accept("UNBOUNDED") or number(cursor)
    else:
        return False
    return True


def create_role(cursor: Cursor, at: int, *, is_or_replace: bool = False) -> AccountStatement:
    """Read what stands behind CREATE ROLE."""
    found = _Found(at)
    if is_or_replace:
        found.options.add("OR REPLACE")
    if cursor.accept("IF", "NOT", "EXISTS"):
        found.options.add("IF NOT EXISTS")
    found.accounts += _accounts(cursor)
    if cursor.dialect.may_be_mariadb and cursor.accept("WITH", "ADMIN"):
        found.roles.append(read_account(cursor))
    return found.statement("CREATE ROLE", cursor)


def drop_accounts(cursor: Cursor, at: int, verb: str) -> AccountStatement:
    """Read what stands behind DROP USER and DROP ROLE."""
    found = _Found(at)
    if cursor.accept("IF", "EXISTS"):
        found.options.add("IF EXISTS")
    found.accounts += _accounts(cursor)
    return found.statement(verb, cursor)


def rename_users(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind RENAME USER."""
    found = _Found(at)
    while True:
        found.accounts.append(read_account(cursor))
        cursor.expect("TO")
        found.accounts.append(read_account(cursor))
        if not cursor.accept_operator(","):
            return found.statement("RENAME USER", cursor)


# GRANT and REVOKE -----------------------------------------------------------------------------


def read_grant(cursor: Cursor) -> AccountStatement:
    """Read GRANT of privileges, roles or PROXY."""
    found = _Found(cursor.start)
    cursor.expect("GRANT")
    if _privileges_and_object(cursor, found):
        cursor.expect("TO")
        if cursor.dialect.flavor == "mysql" and cursor.dialect.version >= (8,):
            found.accounts += _accounts(cursor)
        else:
            _users(cursor, found)
        _grant_options(cursor, found)
    else:
        cursor.expect("TO")
        found.accounts += _accounts(cursor)
        if cursor.accept("WITH", "ADMIN", "OPTION"):
            found.options.add("WITH ADMIN OPTION")
    return found.statement("GRANT", cursor)


def read_revoke(cursor: Cursor) -> AccountStatement:
    """Read REVOKE."""
    found = _Found(cursor.start)
    cursor.expect("REVOKE")
    dialect = cursor.dialect
    if dialect.has_mysql(8, 0, 30) and cursor.accept("IF", "EXISTS"):
        found.options.add("IF EXISTS")
    if dialect.may_be_mariadb and cursor.accept("ADMIN", "OPTION", "FOR"):
        found.options.add("ADMIN OPTION FOR")
    _privileges_and_object(cursor, found)
    cursor.expect("FROM")
    found.accounts += _accounts(cursor)
    if dialect.has_mysql(8, 0, 30) and cursor.accept("IGNORE", "UNKNOWN", "USER"):
        found.options.add("IGNORE UNKNOWN USER")
    return found.statement("REVOKE", cursor)


def _privileges_and_object(cursor: Cursor, found: _Found) -> bool:
    """Read up to TO or FROM; say whether an object stands there, and no roles."""
    if cursor.accept("PROXY"):
        found.privileges.append("PROXY")
        cursor.expect("ON")
        found.roles.append(read_account(cursor))
        found.options.add("PROXY")
        return True
    if cursor.word == "ALL" and cursor.word_ahead(1) in {"PRIVILEGES", "ON", ","}:
        cursor.advance()
        cursor.accept("PRIVILEGES")
        found.privileges.append("ALL")
        if cursor.accept_operator(","):  # REVOKE ALL PRIVILEGES, GRANT OPTION FROM …
            cursor.expect("GRANT", "OPTION")
            found.privileges.append("GRANT OPTION")
    else:
        _privilege_list(cursor, found)
    if cursor.dialect.flavor == "mariadb" and found.roles:
        return False
    if (found.privileges and found.privileges != ["ALL", "GRANT OPTION"]) or cursor.word == "ON":
        cursor.expect("ON")
        found.privileges += [each.user.upper() for each in found.roles]  # MySQL's dynamic ones
        found.roles.clear()
        _object(cursor, found)
        return True
    return False


def _privilege_list(cursor: Cursor, found: _Found) -> None:
    """Privileges, or roles: MariaDB takes one role, MySQL several, and names of privileges."""
    is_mariadb = cursor.dialect.flavor == "mariadb"
    while True:
        start = cursor.index
        words = next((each for each in _KNOWN[cursor.dialect.flavor] if cursor.accept(*each)), None)
        if words is not None:
            found.privileges.append(" ".join(words))
        elif is_mariadb and found.privileges:
            raise cursor.stop("a privilege")
        else:
            each = read_account(cursor)
            if is_mariadb and each.host is not None:
                raise cursor.stop("TO")
            found.roles.append(each)
            if is_mariadb:
                return
        if cursor.word == "(":
            read_names(cursor)
        assert cursor.index > start
        if not cursor.accept_operator(","):
            return


def _object(cursor: Cursor, found: _Found) -> None:
    """What stands behind ON."""
    word = cursor.word
    dialect = cursor.dialect
    is_kind = word in _OBJECT_KINDS
    if word == "PACKAGE":
        is_kind = dialect.is_oracle or dialect.has_mariadb(11, 4)
    elif word == "LIBRARY":
        is_kind = dialect.has_mysql(9, 2)
    if is_kind and cursor.word_ahead(1) != ".":
        cursor.advance()
        found.object_kind = word
        if word == "PACKAGE" and cursor.accept("BODY"):
            found.object_kind = "PACKAGE BODY"
    else:
        found.object_kind = "TABLE"
    start = cursor.start
    if cursor.accept_operator("*"):
        database: str | None = None
        if cursor.accept_operator("."):
            cursor.expect_operator("*")
            database = "*"
        found.on = ObjectName(start, cursor.end, database, "*")
    elif cursor.word_ahead(1) == "." and cursor.word_ahead(2) == "*":
        name = cursor.object_identifier()
        cursor.advance()
        cursor.advance()
        found.on = ObjectName(start, cursor.end, name, "*")
    else:
        found.on = read_object_name(cursor)


def _grant_options(cursor: Cursor, found: _Found) -> None:
    dialect = cursor.dialect
    if dialect.flavor != "mysql" or dialect.version < (8,):
        _account_options_of_grant(cursor, found)
    elif cursor.accept("WITH", "GRANT", "OPTION"):
        found.options.add("WITH GRANT OPTION")
    if dialect.has_mysql(8, 0, 16) and cursor.accept("AS"):
        read_account(cursor)
        if cursor.accept("WITH", "ROLE"):
            if cursor.accept("ALL"):
                if cursor.accept("EXCEPT"):
                    _accounts(cursor)
            elif not cursor.accept_any(("NONE", "DEFAULT")):
                _accounts(cursor)


def _account_options_of_grant(cursor: Cursor, found: _Found) -> None:
    if cursor.accept("REQUIRE") and not cursor.accept_any(("NONE", "SSL", "X509")):
        if cursor.word not in _REQUIREMENTS:
            raise cursor.stop("what is required")
        while cursor.accept_any(_REQUIREMENTS):
            string(cursor)
            cursor.accept("AND")
    if not cursor.accept("WITH"):
        return
    while True:
        if cursor.accept("GRANT", "OPTION"):
            found.options.add("WITH GRANT OPTION")
        elif cursor.accept_any(_LIMITS):
            if cursor.kind is not TokenKind.NUMBER:
                raise cursor.stop("a number")
            cursor.advance()
        else:
            return


def read_password(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind SET PASSWORD."""
    found = _Found(at)
    if cursor.accept("FOR"):
        found.accounts.append(read_account(cursor))
    if cursor.dialect.has_mysql(8) and cursor.accept("TO", "RANDOM"):
        pass
    else:
        cursor.expect_operator("=")
        # MySQL 8.0 has no such function any more.
        is_gone = cursor.dialect.flavor == "mysql" and cursor.dialect.has_mysql(8)
        if not is_gone and cursor.accept_any(("PASSWORD", "OLD_PASSWORD")):
            cursor.expect_operator("(")
            found.passwords.append(string(cursor))
            cursor.expect_operator(")")
        else:
            found.passwords.append(string(cursor))
    if cursor.dialect.may_be_mysql:
        if cursor.accept("REPLACE"):
            found.passwords.append(string(cursor))
        cursor.accept("RETAIN", "CURRENT", "PASSWORD")
    return found.statement("SET PASSWORD", cursor)


def read_roles(cursor: Cursor, at: int, verb: str) -> AccountStatement:
    """Read what stands behind SET ROLE and SET DEFAULT ROLE."""
    found = _Found(at)
    if word := cursor.accept_any(("NONE", "ALL", "DEFAULT")):
        found.options.add(word)
        if word == "ALL" and cursor.accept("EXCEPT"):
            found.roles += _accounts(cursor)
    else:
        found.roles += _accounts(cursor)
    if verb == "SET DEFAULT ROLE":
        may_be_mariadb = cursor.dialect.may_be_mariadb
        if may_be_mariadb and cursor.accept("FOR"):
            found.accounts += _accounts(cursor)
        elif not may_be_mariadb or (cursor.dialect.may_be_mysql and cursor.word == "TO"):
            cursor.expect("TO")
            found.accounts += _accounts(cursor)
    return found.statement(verb, cursor)
