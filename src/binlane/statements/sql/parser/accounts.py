"""Users, roles and privileges: CREATE USER, GRANT and the like.

Source: MySQL 9.7, sql/sql_yacc.yy: create_user_stmt, grant_stmt; MariaDB 11.8: grant, user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.statements.sql.parser.cursor import Cursor, TooMuch
from binlane.statements.sql.parser.forms import number, string
from binlane.statements.sql.parser.literals import read_names, read_object_name
from binlane.statements.sql.tokens import TokenKind
from binlane.statements.sql.tree.account_statements import (
    Account,
    AccountClause,
    AccountStatement,
    Credential,
    Privilege,
)
from binlane.statements.sql.tree.expressions import Literal, ObjectName

_REQUIREMENTS: Final = ("SUBJECT", "ISSUER", "CIPHER")
_LIMITS: Final = (
    *("MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR"),
    *("MAX_USER_CONNECTIONS", "MAX_STATEMENT_TIME"),
)
_CLAUSES: Final[Mapping[str, tuple[tuple[str, ...], bool, bool]]] = MappingProxyType(
    {
        "ACCOUNT": (("LOCK", "UNLOCK"), False, False),
        "PASSWORD EXPIRE": (("NEVER", "DEFAULT", "INTERVAL"), False, True),
        "PASSWORD HISTORY": (("DEFAULT",), True, False),
        "PASSWORD REUSE INTERVAL": (("DEFAULT",), True, True),
        "PASSWORD REQUIRE CURRENT": (("DEFAULT", "OPTIONAL"), False, False),
        "FAILED_LOGIN_ATTEMPTS": ((), True, False),
        "PASSWORD_LOCK_TIME": (("UNBOUNDED",), True, False),
    }
)
"""Words that may follow a clause, a number if none of them does, DAY behind that."""
_MARIADB_CLAUSES: Final = ("ACCOUNT", "PASSWORD EXPIRE")
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
PAIRS_MAX: Final = 50_000
"""Accounts times what each of them is given in one statement."""


def _by_words(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Longer ones first, for one may begin with another."""
    return tuple(sorted((tuple(each.split()) for each in names), key=lambda words: -len(words)))


_KNOWN: Final = {
    "": _by_words((*_PRIVILEGES, *_MYSQL_PRIVILEGES, *_MARIADB_PRIVILEGES)),
    "mysql": _by_words((*_PRIVILEGES, *_MYSQL_PRIVILEGES)),
    "mariadb": _by_words((*_PRIVILEGES, *_MARIADB_PRIVILEGES)),
}


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
    if cursor.kind is TokenKind.STRING or cursor.texts[cursor.index] == "``":
        return cursor.advance().value
    return cursor.identifier()


def _unquoted(text: str) -> str:
    if text[:1] in {"`", "'", '"'}:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _roles(cursor: Cursor) -> tuple[Account, ...]:
    """Roles; MariaDB's have no host."""
    found = [_role(cursor)]
    while cursor.accept_operator(","):
        found.append(_role(cursor))
    return tuple(found)


def _role(cursor: Cursor) -> Account:
    start = cursor.start
    if cursor.dialect.flavor != "mariadb" or cursor.word == "CURRENT_ROLE":
        return read_account(cursor)
    user = _part(cursor)
    return Account(start, cursor.end, user)


def _accounts(cursor: Cursor) -> tuple[Account, ...]:
    found = [read_account(cursor)]
    while cursor.accept_operator(","):
        found.append(read_account(cursor))
    return tuple(found)


# CREATE, ALTER, DROP, RENAME ------------------------------------------------------------------


def _begun(cursor: Cursor, at: int, verb: str, condition: str) -> AccountStatement:
    """A statement of which what stands before its accounts is read."""
    node = AccountStatement(at, at, verb)
    if cursor.accept(*condition.split()):
        node.options = frozenset((condition,))
    return node


def _ended(cursor: Cursor, node: AccountStatement) -> AccountStatement:
    each = len(node.roles) + sum(1 + len(one.columns) for one in node.privileges)
    if len(node.accounts) * each > PAIRS_MAX:
        raise TooMuch(
            cursor.token,
            f"it grants or revokes more than {PAIRS_MAX:,} times one thing of an account",
        )
    node.end = cursor.end
    return node


def create_accounts(
    cursor: Cursor, at: int, verb: str, *, is_or_replace: bool = False
) -> AccountStatement:
    """Read what stands behind CREATE USER and CREATE ROLE."""
    node = _begun(cursor, at, verb, "IF NOT EXISTS")
    if is_or_replace:
        node.options |= {"OR REPLACE"}
    if verb == "CREATE USER":
        _users(cursor, node)
        if cursor.dialect.has_mysql(8) and cursor.accept("DEFAULT", "ROLE"):
            node.roles = _accounts(cursor)
        _account_clauses(cursor, node)
    else:
        node.accounts = _roles(cursor)
        if cursor.dialect.may_be_mariadb and cursor.accept("WITH", "ADMIN"):
            node.roles = (read_account(cursor),)
    return _ended(cursor, node)


def alter_user(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind ALTER USER."""
    node = _begun(cursor, at, "ALTER USER", "IF EXISTS")
    if cursor.word == "USER" and cursor.word_ahead(1) == "(" and cursor.dialect.may_be_mysql:
        start = cursor.advance().offset
        cursor.expect_operator("(")
        cursor.expect_operator(")")
        node.accounts = (Account(start, cursor.end, "CURRENT_USER", is_current=True),)
        node.credentials = (_credential(cursor),)
        return _ended(cursor, node)
    _users(cursor, node)
    if cursor.dialect.has_mysql(8) and cursor.accept("DEFAULT", "ROLE"):
        node.options |= {"DEFAULT ROLE"}
        _some_roles(cursor, node, ("NONE", "ALL"))
    _account_clauses(cursor, node)
    return _ended(cursor, node)


def _users(cursor: Cursor, node: AccountStatement) -> None:
    """Accounts, each with how it logs in."""
    accounts, credentials = [], []
    while True:
        accounts.append(read_account(cursor))
        credentials.append(_credential(cursor))
        if not cursor.accept_operator(","):
            break
    node.accounts, node.credentials = tuple(accounts), tuple(credentials)


def _credential(cursor: Cursor) -> Credential | None:
    """IDENTIFIED … of one account, if it comes next."""
    mysql, start = cursor.dialect.may_be_mysql, cursor.start
    if mysql and cursor.accept("DISCARD", "OLD", "PASSWORD"):
        return Credential(start, cursor.end, then="DISCARD OLD PASSWORD", is_identified=False)
    found: list[Credential] = []
    while mysql and cursor.word in {"ADD", "MODIFY", "DROP"} and cursor.word_ahead(2) == "FACTOR":
        word = cursor.advance().word
        number(cursor)
        cursor.expect("FACTOR")
        if word != "DROP":
            found.append(_identified(cursor))
    if cursor.word == "IDENTIFIED":
        found.append(_identified(cursor))
        while cursor.accept("AND"):
            _identified(cursor)
    return found[0] if found else None


def _identified(cursor: Cursor) -> Credential:
    found = Credential(cursor.start, cursor.start)
    cursor.expect("IDENTIFIED")
    mysql, mariadb = cursor.dialect.may_be_mysql, cursor.dialect.may_be_mariadb
    if cursor.accept("BY"):
        _secret(cursor, found)
    elif (mariadb and cursor.accept("VIA")) or cursor.accept("WITH"):
        _plugin(cursor, found)
        while mariadb and cursor.accept("OR"):
            _plugin(cursor, Credential(cursor.start, cursor.start))
    else:
        raise cursor.stop("BY or WITH")
    if mysql and cursor.accept("REPLACE"):
        string(cursor)
    if mysql and cursor.accept("RETAIN", "CURRENT", "PASSWORD"):
        found.then = "RETAIN CURRENT PASSWORD"
    found.end = cursor.end
    return found


def _plugin(cursor: Cursor, found: Credential) -> None:
    """A plugin, and its password or hash."""
    mysql, mariadb = cursor.dialect.may_be_mysql, cursor.dialect.may_be_mariadb
    found.plugin = _part(cursor)
    if mysql and cursor.accept("BY"):
        _secret(cursor, found)
    elif cursor.accept_any(("AS", "USING") if mariadb else ("AS",)):
        if mariadb and cursor.accept("PASSWORD"):
            cursor.expect_operator("(")
            found.secret = string(cursor)
            cursor.expect_operator(")")
        else:
            _secret(cursor, found)
            found.is_hash = True
    elif mysql and cursor.accept("INITIAL", "AUTHENTICATION", "IDENTIFIED", "BY"):
        _secret(cursor, found)


def _secret(cursor: Cursor, found: Credential) -> None:
    if cursor.dialect.may_be_mysql and cursor.accept("RANDOM", "PASSWORD"):
        found.is_random = True
        return
    if cursor.dialect.flavor != "mysql" or cursor.dialect.version < (8,):
        found.is_hash = cursor.accept("PASSWORD")
    if cursor.kind is TokenKind.NUMBER and cursor.token.text[:2].lower() in {"0x", "x'"}:
        cursor.advance()
    else:
        found.secret = string(cursor)


def _account_clauses(cursor: Cursor, node: AccountStatement) -> None:
    """REQUIRE, limits, and options of passwords and accounts."""
    _requirements(cursor, node)
    if cursor.word == "WITH":
        _limits(cursor, node)
    clauses = list(node.clauses)
    while clause := _account_clause(cursor):
        clauses.append(clause)
    if cursor.dialect.may_be_mysql:
        start = cursor.start
        if word := cursor.accept_any(("COMMENT", "ATTRIBUTE")):
            clauses.append(AccountClause(start, cursor.end, word, (string(cursor),)))
    node.clauses = tuple(clauses)


def _requirements(cursor: Cursor, node: AccountStatement) -> None:
    start = cursor.start
    if not cursor.accept("REQUIRE"):
        return
    parts: list[str | Literal] = []
    if word := cursor.accept_any(("NONE", "SSL", "X509")):
        parts.append(word)
    elif cursor.word not in _REQUIREMENTS:
        raise cursor.stop("what is required")
    else:
        while word := cursor.accept_any(_REQUIREMENTS):
            parts += (word, string(cursor))
            cursor.accept("AND")
    node.clauses += (AccountClause(start, cursor.end, "REQUIRE", tuple(parts)),)


def _limits(cursor: Cursor, node: AccountStatement, *, of_grant: bool = False) -> None:
    """WITH and limits; in GRANT also GRANT OPTION."""
    start = cursor.start
    cursor.expect("WITH")
    if cursor.word not in (*_LIMITS, *(("GRANT",) if of_grant else ())):
        raise cursor.stop("a limit")
    parts: list[str | Literal] = []
    while True:
        if of_grant and cursor.accept("GRANT", "OPTION"):
            node.options |= {"WITH GRANT OPTION"}
        elif word := cursor.accept_any(_LIMITS):
            if cursor.kind is not TokenKind.NUMBER:
                raise cursor.stop("a number")
            parts += (word, cursor.advance().text)
        else:
            break
    if parts:
        node.clauses += (AccountClause(start, cursor.end, "WITH", tuple(parts)),)


def _account_clause(cursor: Cursor) -> AccountClause | None:
    """Read one option of passwords or accounts, if it comes next."""
    start = cursor.start
    names = _CLAUSES if cursor.dialect.may_be_mysql else _MARIADB_CLAUSES
    name = next((each for each in names if cursor.accept(*each.split())), None)
    if name is None:
        return None
    words, takes_number, takes_day = _CLAUSES[name]
    word = cursor.accept_any(words)
    parts = [word] if word else []
    if word == "INTERVAL" or (takes_number and not word):
        parts.append(str(number(cursor)))
        if takes_day:
            cursor.expect("DAY")
            parts.append("DAY")
    elif name == "ACCOUNT" and not word:
        raise cursor.stop("LOCK or UNLOCK")
    return AccountClause(start, cursor.end, name, tuple(parts))


def drop_accounts(cursor: Cursor, at: int, verb: str) -> AccountStatement:
    """Read what stands behind DROP USER and DROP ROLE."""
    node = _begun(cursor, at, verb, "IF EXISTS")
    node.accounts = (_roles if verb == "DROP ROLE" else _accounts)(cursor)
    return _ended(cursor, node)


def rename_users(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind RENAME USER."""
    node = AccountStatement(at, at, "RENAME USER")
    accounts = []
    while True:
        accounts.append(read_account(cursor))
        cursor.expect("TO")
        accounts.append(read_account(cursor))
        if not cursor.accept_operator(","):
            break
    node.accounts = tuple(accounts)
    return _ended(cursor, node)


# GRANT and REVOKE -----------------------------------------------------------------------------


def read_grant(cursor: Cursor) -> AccountStatement:
    """Read GRANT of privileges, roles or PROXY."""
    node = AccountStatement(cursor.start, cursor.start, "GRANT")
    cursor.expect("GRANT")
    if _privileges_and_object(cursor, node):
        cursor.expect("TO")
        if cursor.dialect.flavor == "mysql" and cursor.dialect.version >= (8,):
            node.accounts = _accounts(cursor)
        else:
            _users(cursor, node)
        _grant_options(cursor, node)
    else:
        cursor.expect("TO")
        node.accounts = _accounts(cursor)
        if cursor.accept("WITH", "ADMIN", "OPTION"):
            node.options |= {"WITH ADMIN OPTION"}
    return _ended(cursor, node)


def read_revoke(cursor: Cursor) -> AccountStatement:
    """Read REVOKE."""
    start, dialect = cursor.start, cursor.dialect
    cursor.expect("REVOKE")
    node = AccountStatement(start, start, "REVOKE")
    if dialect.has_mysql(8, 0, 30) and cursor.accept("IF", "EXISTS"):
        node.options |= {"IF EXISTS"}
    if dialect.may_be_mariadb and cursor.accept("ADMIN", "OPTION", "FOR"):
        node.options |= {"ADMIN OPTION FOR"}
    _privileges_and_object(cursor, node)
    cursor.expect("FROM")
    node.accounts = _accounts(cursor)
    if dialect.has_mysql(8, 0, 30) and cursor.accept("IGNORE", "UNKNOWN", "USER"):
        node.options |= {"IGNORE UNKNOWN USER"}
    return _ended(cursor, node)


def _privileges_and_object(cursor: Cursor, node: AccountStatement) -> bool:
    """Read up to TO or FROM; say whether an object stands there, and no roles."""
    start = cursor.start
    if cursor.accept("PROXY"):
        node.privileges = (Privilege(start, cursor.end, "PROXY"),)
        cursor.expect("ON")
        node.roles = (read_account(cursor),)
        return True
    is_all = cursor.word == "ALL" and cursor.word_ahead(1) in {"PRIVILEGES", "ON", ","}
    if is_all:
        cursor.advance()
        cursor.accept("PRIVILEGES")
        node.privileges = (Privilege(start, cursor.end, "ALL"),)
        if cursor.accept_operator(","):  # REVOKE ALL PRIVILEGES, GRANT OPTION FROM …
            start = cursor.start
            cursor.expect("GRANT", "OPTION")
            node.privileges += (Privilege(start, cursor.end, "GRANT OPTION"),)
            is_all = cursor.word == "ON"
    else:
        _privilege_list(cursor, node)
    if cursor.dialect.flavor == "mariadb" and node.roles:
        return False
    is_list = node.privileges and node.privileges[0].name != "ALL"
    if not (is_all or is_list or cursor.word == "ON"):
        return False
    cursor.expect("ON")
    # MySQL's dynamic ones
    node.privileges += tuple(Privilege(one.at, one.end, one.user.upper()) for one in node.roles)
    node.roles = ()
    _object(cursor, node)
    return True


def _privilege_list(cursor: Cursor, node: AccountStatement) -> None:
    """Privileges, or roles: MariaDB takes one role, MySQL several, and names of privileges."""
    is_mariadb = cursor.dialect.flavor == "mariadb"
    privileges: list[Privilege] = []
    roles: list[Account] = []
    while True:
        start = cursor.start
        words = next((each for each in _KNOWN[cursor.dialect.flavor] if cursor.accept(*each)), None)
        if words is not None:
            columns = read_names(cursor) if cursor.word == "(" else ()
            privileges.append(Privilege(start, cursor.end, " ".join(words), columns))
        elif is_mariadb and privileges:
            raise cursor.stop("a privilege")
        else:
            each = read_account(cursor)
            if is_mariadb and each.host is not None:
                raise cursor.stop("TO")
            roles.append(each)
            if is_mariadb:
                break
            if cursor.word == "(":
                read_names(cursor)
        if not cursor.accept_operator(","):
            break
    node.privileges, node.roles = tuple(privileges), tuple(roles)


def _object(cursor: Cursor, node: AccountStatement) -> None:
    """Read the object behind ON."""
    word = cursor.word
    dialect = cursor.dialect
    is_kind = word in _OBJECT_KINDS
    if word == "PACKAGE":
        is_kind = dialect.is_oracle or dialect.has_mariadb(11, 4)
    elif word == "LIBRARY":
        is_kind = dialect.has_mysql(9, 2)
    node.object_kind = "TABLE"
    if is_kind and cursor.word_ahead(1) != ".":
        if word != "TABLE" and any(one.columns for one in node.privileges):
            raise cursor.stop("a table, which has columns")
        cursor.advance()
        node.object_kind = word
        if word == "PACKAGE" and cursor.accept("BODY"):
            node.object_kind = "PACKAGE BODY"
    start = cursor.start
    if cursor.accept_operator("*"):
        database: str | None = None
        if cursor.accept_operator("."):
            cursor.expect_operator("*")
            database = "*"
        node.on = ObjectName(start, cursor.end, database, "*")
    elif cursor.word_ahead(1) == "." and cursor.word_ahead(2) == "*":
        name = cursor.object_identifier()
        cursor.advance()
        cursor.advance()
        node.on = ObjectName(start, cursor.end, name, "*")
    else:
        node.on = read_object_name(cursor)


def _grant_options(cursor: Cursor, node: AccountStatement) -> None:
    dialect = cursor.dialect
    if dialect.flavor != "mysql" or dialect.version < (8,):
        _requirements(cursor, node)
        if cursor.word == "WITH":
            _limits(cursor, node, of_grant=True)
    elif cursor.accept("WITH", "GRANT", "OPTION"):
        node.options |= {"WITH GRANT OPTION"}
    if dialect.has_mysql(8, 0, 16) and cursor.accept("AS"):
        node.grantor = read_account(cursor)
        if cursor.accept("WITH", "ROLE"):
            word = cursor.accept_any(("NONE", "DEFAULT", "ALL"))
            has_list = not word or (word == "ALL" and cursor.accept("EXCEPT"))
            node.grantor_roles = word, _accounts(cursor) if has_list else ()


def read_password(cursor: Cursor, at: int) -> AccountStatement:
    """Read what stands behind SET PASSWORD."""
    node = AccountStatement(at, at, "SET PASSWORD")
    if cursor.accept("FOR"):
        node.accounts = (read_account(cursor),)
    found = Credential(cursor.start, cursor.start)
    if cursor.dialect.has_mysql(8) and cursor.accept("TO", "RANDOM"):
        found.is_random = True
    else:
        cursor.expect_operator("=")
        # MySQL 8.0 has no such function any more.
        is_gone = cursor.dialect.flavor == "mysql" and cursor.dialect.has_mysql(8)
        function = "" if is_gone else cursor.accept_any(("PASSWORD", "OLD_PASSWORD"))
        found.is_hash = not function
        found.plugin = "mysql_old_password" if function == "OLD_PASSWORD" else ""
        if not found.is_hash:
            cursor.expect_operator("(")
        found.secret = string(cursor)
        if not found.is_hash:
            cursor.expect_operator(")")
    if cursor.dialect.may_be_mysql:
        if cursor.accept("REPLACE"):
            string(cursor)
        if cursor.accept("RETAIN", "CURRENT", "PASSWORD"):
            found.then = "RETAIN CURRENT PASSWORD"
    found.end = cursor.end
    node.credentials = (found,)
    return _ended(cursor, node)


def read_roles(cursor: Cursor, at: int, verb: str) -> AccountStatement:
    """Read what stands behind SET ROLE and SET DEFAULT ROLE."""
    node = AccountStatement(at, at, verb)
    _some_roles(cursor, node, ("NONE", "ALL", "DEFAULT"))
    if verb == "SET DEFAULT ROLE":
        may_be_mariadb = cursor.dialect.may_be_mariadb
        if may_be_mariadb and cursor.accept("FOR"):
            node.accounts = _accounts(cursor)
        elif not may_be_mariadb or (cursor.dialect.may_be_mysql and cursor.word == "TO"):
            cursor.expect("TO")
            node.accounts = _accounts(cursor)
    return _ended(cursor, node)


def _some_roles(cursor: Cursor, node: AccountStatement, words: Collection[str]) -> None:
    """Read one of the words, or roles; ALL EXCEPT roles."""
    word = cursor.accept_any(words)
    if word:
        node.options |= {word}
    if not word or (word == "ALL" and cursor.accept("EXCEPT")):
        node.roles = _accounts(cursor)
