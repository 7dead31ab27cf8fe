"""Nodes of statements on accounts and privileges."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.statements.sql.tree.expressions import (
    Literal,
    Node,
    ObjectName,
)


@dataclass(slots=True, eq=False)
class NamedAccount(Node):
    """`user@host`, CURRENT_USER, a role; `host` is None where the text gives none."""

    user: str
    host: str | None = None
    is_current: bool = False


@dataclass(slots=True, eq=False)
class Credential(Node):
    """Login method of an account: the first factor of IDENTIFIED …, and the fate of its old password.

    Attributes:
        plugin: Name behind WITH or VIA; empty without.
        secret: Password or hash; None without one, and where it is random or a number in hex.
        is_hash: True if `secret` is the hash that the server keeps, not a password.
        then: Words on old passwords: `RETAIN CURRENT PASSWORD`, `DISCARD OLD PASSWORD` or empty.
        is_identified: True with IDENTIFIED, False if the text is about the old password alone.
    """

    plugin: str = ""
    secret: Literal | None = None
    is_hash: bool = False
    is_random: bool = False
    then: str = ""
    is_identified: bool = True


@dataclass(slots=True, eq=False)
class AccountClause(Node):
    """Clause for all accounts of a statement: `REQUIRE`, `WITH`, `PASSWORD EXPIRE` and others.

    Attributes:
        name: First words of the clause, in capitals.
        parts: Rest of the clause: words in capitals and numbers, strings.
    """

    name: str
    parts: tuple[str | Literal, ...] = ()


@dataclass(slots=True, eq=False)
class Privilege(Node):
    """A privilege in capitals (`ALL` for all), and the columns that it is for."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class AccountStatement(Node):
    """CREATE, ALTER, DROP, RENAME USER or ROLE, GRANT, REVOKE, SET PASSWORD, SET ROLE.

    Attributes:
        accounts: Accounts of the statement, in the order of the text; pairs of RENAME side by side.
        credentials: Credential of each account; empty for statements without.
        privileges: Privileges of GRANT and REVOKE, else empty.
        object_kind: Kind of the object of ON: `TABLE`, `PROCEDURE`, `FUNCTION`, …; empty without
            ON.
        on: Object of ON: a table, `db.*` (name `*`), `*.*`; None without.
        options: `WITH GRANT OPTION`, `IF EXISTS`, `IF NOT EXISTS`, `OR REPLACE`, …; for roles
            `NONE`, `ALL`, `DEFAULT`.
        clauses: Clauses in the order of the text.
        roles: Roles that are granted, set, or made default; the account of PROXY; those of WITH
            ADMIN.
        grantor: Account of GRANT … AS; None without.
        grantor_roles: WITH ROLE of the grantor: `NONE`, `ALL`, `DEFAULT` or empty, and the
            accounts.
    """

    verb: str
    accounts: tuple[NamedAccount, ...] = ()
    credentials: tuple[Credential | None, ...] = ()
    privileges: tuple[Privilege, ...] = ()
    object_kind: str = ""
    on: ObjectName | None = None
    options: frozenset[str] = frozenset()
    clauses: tuple[AccountClause, ...] = ()
    roles: tuple[NamedAccount, ...] = ()
    grantor: NamedAccount | None = None
    grantor_roles: tuple[str, tuple[NamedAccount, ...]] = ("", ())
