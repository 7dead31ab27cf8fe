"""Users and roles: what they were granted, and what account statements do to that.

Values only: a change gives new accounts. Whether somebody may make it is asked in
`predicted_errors.statement_privileges`.

Source: MariaDB 10.11 sql/sql_acl.cc; MySQL 9.7 sql/auth/sql_authorization.cc and
sql/auth/sql_user.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.statements.sql.tree.account_statements import NamedAccount

Level = tuple[str, ...]
"""Level of privileges: nothing for all databases, a pattern of databases, `TABLE`, `FUNCTION` or
`PROCEDURE` with a database and name, and of a table a column in small letters."""
TABLE_PRIVILEGES: Final = frozenset(
    (
        *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX"),
        *("ALTER", "CREATE VIEW", "SHOW VIEW", "TRIGGER", "DELETE HISTORY"),
    )
)
ROUTINE_PRIVILEGES: Final = frozenset(("EXECUTE", "ALTER ROUTINE", "SHOW CREATE ROUTINE"))
DATABASE_PRIVILEGES: Final = (
    TABLE_PRIVILEGES
    | ROUTINE_PRIVILEGES
    | {"CREATE TEMPORARY TABLES", "LOCK TABLES", "CREATE ROUTINE", "EVENT"}
)
_GLOBAL_PRIVILEGES: Final = frozenset(
    (
        *("RELOAD", "SHUTDOWN", "PROCESS", "FILE", "SHOW DATABASES", "SUPER"),
        *("REPLICATION SLAVE", "REPLICATION CLIENT", "CREATE USER", "CREATE TABLESPACE"),
    )
)
_MARIADB_PRIVILEGES: Final = frozenset(
    (
        *("BINLOG ADMIN", "BINLOG MONITOR", "BINLOG REPLAY", "CONNECTION ADMIN"),
        *("FEDERATED ADMIN", "READ_ONLY ADMIN", "REPLICATION MASTER ADMIN"),
        *("REPLICATION SLAVE ADMIN", "SET USER", "SLAVE MONITOR"),
    )
)
_MYSQL_PRIVILEGES: Final = frozenset(
    (
        *("CREATE ROLE", "DROP ROLE", "ALLOW_NONEXISTENT_DEFINER", "APPLICATION_PASSWORD_ADMIN"),
        *("AUDIT_ABORT_EXEMPT", "AUDIT_ADMIN", "AUTHENTICATION_POLICY_ADMIN", "BACKUP_ADMIN"),
        *("BINLOG_ADMIN", "BINLOG_ENCRYPTION_ADMIN", "CLONE_ADMIN", "CONNECTION_ADMIN"),
        *("CREATE_SPATIAL_REFERENCE_SYSTEM", "ENCRYPTION_KEY_ADMIN", "FIREWALL_EXEMPT"),
        *("FLUSH_OPTIMIZER_COSTS", "FLUSH_PRIVILEGES", "FLUSH_STATUS", "FLUSH_TABLES"),
        *("FLUSH_USER_RESOURCES", "GROUP_REPLICATION_ADMIN", "GROUP_REPLICATION_STREAM"),
        *("INNODB_REDO_LOG_ARCHIVE", "INNODB_REDO_LOG_ENABLE", "MANAGE_DATA_MASKING_POLICY"),
        *("OPTIMIZE_LOCAL_TABLE", "PASSWORDLESS_USER_ADMIN", "PERSIST_RO_VARIABLES_ADMIN"),
        *("REPLICATION_APPLIER", "REPLICATION_SLAVE_ADMIN", "RESOURCE_GROUP_ADMIN"),
        *("RESOURCE_GROUP_USER", "ROLE_ADMIN", "SENSITIVE_VARIABLES_OBSERVER"),
        *("SERVICE_CONNECTION_ADMIN", "SESSION_VARIABLES_ADMIN", "SET_ANY_DEFINER", "SET_USER_ID"),
        *("SHOW_ROUTINE", "SYSTEM_USER", "SYSTEM_VARIABLES_ADMIN", "TABLE_ENCRYPTION_ADMIN"),
        *("TELEMETRY_LOG_ADMIN", "TRANSACTION_GTID_TAG", "XA_RECOVER_ADMIN"),
    )
)
_EVERYTHING: Final = (DATABASE_PRIVILEGES - {"DELETE HISTORY", "SHOW CREATE ROUTINE"}) | {
    *("RELOAD", "SHUTDOWN", "PROCESS", "FILE", "SUPER", "CREATE USER", "GRANT OPTION")
}
"""Privileges of accounts that may do everything, of every version."""
_STATIC: Final = frozenset(("CREATE ROLE", "DROP ROLE"))
"""Privileges in `_MYSQL_PRIVILEGES` that are no dynamic ones."""
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "REPLICATION CLIENT": "BINLOG MONITOR",
        "DELETE VERSIONING ROWS": "DELETE HISTORY",
        "READ ONLY ADMIN": "READ_ONLY ADMIN",
        "REPLICA MONITOR": "SLAVE MONITOR",
        "REPLICATION REPLICA": "REPLICATION SLAVE",
        "REPLICATION REPLICA ADMIN": "REPLICATION SLAVE ADMIN",
    }
)
"""MariaDB's other names of privileges."""
GRANT_OPTION: Final = "GRANT OPTION"


class AccountName(NamedTuple):
    """A user or role by name; `host` is empty for MariaDB's roles."""

    user: str
    host: str = "%"

    @property
    def is_role(self) -> bool:
        """True if the name is that of a role of MariaDB: MySQL's roles are accounts as all others."""
        return not self.host

    @property
    def shown(self) -> str:
        """Give the name as messages have it."""
        return f"'{self.user}'" if self.is_role else f"'{self.user}'@'{self.host}'"

    @property
    def quoted(self) -> str:
        """Give the name as MySQL's messages have roles."""
        return f"`{self.user}`@`{self.host}`"


ROOT: Final = AccountName("root", "localhost")
OWN: Final = frozenset(
    (ROOT, *(AccountName(f"{one}.sys", "localhost") for one in ("mariadb", "mysql")))
)
"""Accounts that every server has, with all privileges."""


class AccountError(NamedTuple):
    """Answer of the server to an account statement that fails.

    Attributes:
        errno: Error number as the client gets it.
        message: Text of the error, to whose end the names come.
        name: Name to append to a message that lists all wrong names; else empty.
    """

    errno: int
    message: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """A user or role.

    Attributes:
        privileges: Privileges granted to it, by level.
        roles: Roles granted to it; True for those with ADMIN OPTION.
        default_roles: Roles that its sessions begin with.
        proxied: Accounts that it may stand for.
    """

    privileges: Mapping[Level, frozenset[str]] = field(default_factory=dict)
    roles: Mapping[AccountName, bool] = field(default_factory=dict)
    default_roles: frozenset[AccountName] = frozenset()
    proxied: frozenset[AccountName] = frozenset()

    @property
    def may_all(self) -> bool:
        """True if it globally has every privilege that is checked here."""
        given = self.privileges.get((), frozenset())
        return given >= _EVERYTHING


Accounts = dict[AccountName, Grantee]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Server, session and accounts that an account statement meets.

    Attributes:
        is_mariadb: True if the server is MariaDB, False for MySQL.
        database: Name of the default database.
        current: Account whose privileges hold in the session.
        is_complete: True if there are no accounts beside those that are known.
    """

    is_mariadb: bool
    database: str = ""
    current: AccountName = ROOT
    is_complete: bool = False


def all_privileges(level: Level, *, is_mariadb: bool) -> frozenset[str]:
    """Give the privileges that ALL stands for at a level, without GRANT OPTION."""
    if level:
        if len(level) == 1:
            return DATABASE_PRIVILEGES
        return TABLE_PRIVILEGES if level[0] == "TABLE" else ROUTINE_PRIVILEGES
    own = _MARIADB_PRIVILEGES if is_mariadb else _MYSQL_PRIVILEGES
    return DATABASE_PRIVILEGES | _GLOBAL_PRIVILEGES | own


def is_dynamic(privilege: str) -> bool:
    """True if a privilege is one of MySQL's dynamic ones."""
    return privilege in _MYSQL_PRIVILEGES - _STATIC


def named(account: NamedAccount, accounts: Accounts, situation: Situation) -> AccountName:
    """The account or role that a statement means."""
    if account.is_current:
        return situation.current
    if account.host is not None:
        return AccountName(account.user, account.host)
    role = AccountName(account.user, "")
    is_role = situation.is_mariadb and role in accounts
    return role if is_role else AccountName(account.user)


def roles_of(accounts: Accounts, names: Iterable[AccountName]) -> frozenset[AccountName]:
    """Roles with all that were granted to them."""
    found: set[AccountName] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += accounts.get(name, Grantee()).roles
    return frozenset(found)


def default_roles(accounts: Accounts, name: AccountName) -> frozenset[AccountName]:
    """Give the roles that sessions of an account begin with."""
    grantee = accounts.get(name)
    return frozenset() if grantee is None else grantee.default_roles
