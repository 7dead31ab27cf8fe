"""Privileges of an account, and checks of a statement against them.

The account is the session's, or the definer of a program or view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.resolution import Opening
from binlane.statements.policy.server import Server
from binlane.statements.policy.server_errors import Identity
from binlane.statements.sql.accounts import (
    GRANT_OPTION,
    TABLE_PRIVILEGES,
    AccountName,
    Accounts,
    Grantee,
    Level,
    default_roles,
    roles_of,
)
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Routine, Trigger, View

_ORDER: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "GRANT OPTION", "REFERENCES"),
    *("INDEX", "ALTER", "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE VIEW"),
    *("SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT", "TRIGGER", "DELETE HISTORY"),
)
"""Order in which messages name privileges."""
_PUBLIC: Final = AccountName("PUBLIC", "")
SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema"))


@dataclass(frozen=True, slots=True)
class Rights:
    """The privileges of an identity.

    Attributes:
        grantees: The identity's account and all of its roles, those that were granted to roles included.
    """

    identity: Identity
    grantees: tuple[Grantee, ...]

    @classmethod
    def of(cls, identity: Identity, accounts: Accounts) -> Rights:
        """Collect the privileges of an identity from the known accounts."""
        names = {_PUBLIC, identity.account, *roles_of(accounts, identity.roles)}
        if identity.account.is_role:
            names |= roles_of(accounts, (identity.account,))
        return cls(identity, tuple(accounts[name] for name in names if name in accounts))

    def at(self, level: Level) -> frozenset[str]:
        """Return the privileges that were granted at a level itself."""
        return frozenset().union(*(one.privileges.get(level, ()) for one in self.grantees))

    def in_database(self, database: str) -> frozenset[str]:
        """Return the privileges on a whole database: of each grantee its best pattern counts."""
        found = self.at(())
        for grantee in self.grantees:
            patterns = [
                (_specificity(level[0]), given)
                for level, given in grantee.privileges.items()
                if len(level) == 1 and is_like(database, level[0])
            ]
            if patterns:
                found |= max(patterns, key=lambda one: one[0])[1]
        return found

    def on(self, kind: str, name: TableName) -> frozenset[str]:
        """Return the privileges on a table or routine, with those on its database."""
        return self.in_database(name.database) | self.at((kind, name.database, name.table))

    def on_column(self, table: TableName, column: str) -> frozenset[str]:
        """Return the privileges that were granted on one column."""
        return self.at(("TABLE", table.database, table.table, column.lower()))

    def on_columns(self, table: TableName) -> frozenset[str]:
        """Return the privileges that were granted on any column of a table."""
        return frozenset().union(*self._below(("TABLE", table.database, table.table)))

    def reaches(self, database: str) -> bool:
        """True if the identity may use anything in a database."""
        kinds = ("TABLE", "FUNCTION", "PROCEDURE")
        inside = (given for kind in kinds for given in self._below((kind, database)))
        return any((self.in_database(database) - {"USAGE"}, *inside))

    def _below(self, level: Level) -> Iterator[frozenset[str]]:
        for grantee in self.grantees:
            for one, given in grantee.privileges.items():
                if len(one) > len(level) and one[: len(level)] == level:
                    yield given


def is_like(database: str, pattern: str) -> bool:
    """True if a pattern of GRANT matches the name of a database."""
    if not pattern:
        return not database
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(is_like(database[at:], rest) for at in range(len(database) + 1))
    if first == "\\" and rest:
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(database) and is_like(database[1:], rest)
    return database[:1] == first and is_like(database[1:], rest)


def _specificity(pattern: str) -> int:
    """Return the sort key of a pattern: more characters before the first wildcard come first."""
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
        elif pattern[at] in "%_":
            return min(at + 1, 127)
        at += 1
    return 128


@dataclass(frozen=True, slots=True)
class PrivilegeCheck:
    """A statement that an account wants to run.

    Attributes:
        facts: Facts read from the statement's text.
        rights: Privileges of the account that asks.
        objects: The server's tables, views, routines and accounts.
        server: Server whose rules are followed.
        database: Default database of names without one.
    """

    facts: StatementFacts
    rights: Rights
    objects: Objects
    server: Server
    database: str

    # Checks of privileges ---------------------------------------------------------------------

    def tables(self, wanted: frozenset[str], *names: TableName) -> Iterator[Refusal]:
        """Give error 1142 for privileges missing on tables; privileges on columns may stand for them."""
        for name in names:
            if not name.database or name.database.lower() in SYSTEM_DATABASES:
                continue
            have = self.rights.on("TABLE", name)
            if lacks := wanted - have:
                if not lacks <= TABLE_PRIVILEGES | {GRANT_OPTION}:
                    yield self.denied_database(name.database)
                elif not lacks <= self.rights.on_columns(name):
                    yield self.denied_table(lacks - self.rights.on_columns(name), name)

    def in_database(self, wanted: str, *databases: str) -> Iterator[Refusal]:
        """Give error 1044 for privileges missing on databases."""
        for database in databases:
            if wanted not in self.rights.in_database(database or self.database):
                yield self.denied_database(database or self.database)

    def everywhere(self, *any_of: str, shown: str = "", joint: str = ", ") -> Iterator[Refusal]:
        """Give error 1227 where the account has none of some global privileges."""
        if not self.rights.at(()) & set(any_of):
            yield needs(shown or joint.join(any_of))

    def routines(self, wanted: str, kind: str, *names: TableName) -> Iterator[Refusal]:
        """Give error 1370 for privileges missing on routines."""
        for name in names:
            if wanted not in self.rights.on(kind, TableName(name.database, name.table.lower())):
                yield denied_routine(wanted, name, self.account)

    def denied_table(self, lacks: frozenset[str], name: TableName) -> Refusal:
        """Return error 1142 for privileges missing on a table."""
        shown = ", ".join("GRANT" if one == GRANT_OPTION else one for one in _ORDER if one in lacks)
        where = f"{quote(name.database)}.{quote(name.table)}"
        return Refusal(
            1142,
            "42000",
            "ER_TABLEACCESS_DENIED_ERROR",
            f"{shown} command denied to user {self.account} for table "
            + (where if self.server.is_mariadb else f"'{name.table}'"),
        )

    def denied_column(self, wanted: str, column: str, name: TableName) -> Refusal:
        """Return error 1143 for a privilege missing on a column."""
        return Refusal(
            1143,
            "42000",
            "ER_COLUMNACCESS_DENIED_ERROR",
            f"{wanted} command denied to user {self.account} for column '{column}' in "
            f"table '{name.table}'",
        )

    def denied_database(self, database: str) -> Refusal:
        """Return error 1044 for a database that the account may not use."""
        return Refusal(
            1044,
            "42000",
            "ER_DBACCESS_DENIED_ERROR",
            f"Access denied for user {self.account} to database '{database}'",
        )

    def denied(self) -> Refusal:
        """Return error 1045: a global privilege is missing."""
        return Refusal(
            1045,
            "28000",
            "ER_ACCESS_DENIED_ERROR",
            f"Access denied for user {self.account} (using password: NO)",
        )

    def rights_in(self, view: View) -> Rights | None:
        """Return the rights that hold behind a view; None: all of them."""
        if view.is_invoker:
            return self.rights
        accounts = self.objects.accounts
        if view.definer not in accounts:
            return None
        roles = default_roles(accounts, view.definer)
        identity = Identity(view.definer, frozenset() if self.server.is_mariadb else roles)
        return Rights.of(identity, accounts)

    @property
    def account(self) -> str:
        """Return the account as messages have it."""
        return _shown(self.rights.identity.account)


def check_of(facts: StatementFacts, opening: Opening, identity: Identity) -> PrivilegeCheck | None:
    """Return a statement for a check of privileges; None for an account that may do everything."""
    grantee = opening.objects.accounts.get(identity.account)
    if grantee is None or grantee.may_all:
        return None
    rights = Rights.of(identity, opening.objects.accounts)
    return PrivilegeCheck(facts, rights, opening.objects, opening.server, opening.database)


def _shown(account: AccountName) -> str:
    return f"'{account.user}'@'{account.host}'"


def denied_routine(wanted: str, name: TableName, account: str) -> Refusal:
    """Return error 1370 for a privilege missing on a routine."""
    return Refusal(
        1370,
        "42000",
        "ER_PROCACCESS_DENIED_ERROR",
        f"{wanted.lower()} command denied to user {account} for routine '{name.plain}'",
    )


def denied_to_definer(program: Routine | Trigger, check: PrivilegeCheck) -> Refusal | None:
    """Return 1370 if a routine's definer may not call the routine, 1142 if a trigger's may make none."""
    if isinstance(program, Trigger):
        return next(check.tables(frozenset(("TRIGGER",)), program.table), None)
    kind = "FUNCTION" if program.is_function else "PROCEDURE"
    return next(check.routines("EXECUTE", kind, program.name), None)


def needs(privileges: str) -> Refusal:
    """Return error 1227, which names the privileges that are needed."""
    return Refusal(
        1227,
        "42000",
        "ER_SPECIFIC_ACCESS_DENIED_ERROR",
        f"Access denied; you need (at least one of) the {privileges} privilege(s) for "
        "this operation",
    )


def no_definer(account: AccountName) -> Refusal:
    """Return error 1449 for a definer that does not exist."""
    return Refusal(
        1449,
        "HY000",
        "ER_NO_SUCH_USER",
        f"The user specified as a definer ({_shown(account)}) does not exist",
    )


def not_granted(role: AccountName, account: AccountName, *, is_mariadb: bool) -> Refusal:
    """Return the error of SET ROLE for a role that was not granted: 1959 of MariaDB, 3530 of MySQL."""
    if is_mariadb:
        return Refusal(
            1959, "OP000", "ER_INVALID_ROLE", f"Invalid role specification `{role.user}`"
        )
    return Refusal(
        3530, "HY000", "ER_ROLE_NOT_GRANTED", f"{role.quoted} is not granted to {account.quoted}"
    )
