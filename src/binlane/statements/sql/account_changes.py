"""Effects of account statements on the accounts that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.statements.sql.accounts import (
    ALIASES,
    GRANT_OPTION,
    OWN,
    AccountError,
    AccountName,
    Accounts,
    Grantee,
    Level,
    Situation,
    all_privileges,
    named,
    roles_of,
)
from binlane.statements.sql.tree.account_statements import AccountStatement, NamedAccount, Privilege


class Changed(NamedTuple):
    """Result of a statement on the accounts.

    Attributes:
        accounts: The accounts after the statement.
        error: Error of the statement; None if it has none.
        is_done: True if a part of the statement is done, or needs not be.
    """

    accounts: Accounts
    error: AccountError | None
    is_done: bool


def change(accounts: Accounts, node: AccountStatement, situation: Situation) -> Changed:
    """Apply a statement to the accounts; of one that fails, MySQL does nothing, MariaDB all it can."""
    changing = _Changing(dict(accounts), node, situation)
    makers = _CHANGES.get(node.verb)
    results = [] if makers is None else list(makers(changing))
    errors = [one for one in results if one is not None]
    # The error that lists names of all accounts together comes at the end.
    error = min(errors, key=lambda one: bool(one.name), default=None)
    if error is not None:
        names = [one.name for one in errors if one.errno == error.errno and one.name]
        error = error._replace(message=error.message + ",".join(names))
    is_kept = error is None or situation.is_mariadb
    return Changed(changing.accounts if is_kept else accounts, error, None in results)


def give_routine(accounts: Accounts, name: AccountName, level: Level) -> None:
    """Give who makes a routine EXECUTE and ALTER ROUTINE on it, where he has less."""
    grantee = accounts.get(name)
    if grantee is not None and not {"EXECUTE", "ALTER ROUTINE"} <= grantee.privileges.get(
        (), frozenset()
    ):
        given = grantee.privileges.get(level, frozenset()) | {"EXECUTE", "ALTER ROUTINE"}
        accounts[name] = replace(grantee, privileges={**grantee.privileges, level: given})


def take_routine(accounts: Accounts, level: Level) -> None:
    """Take what was granted on a routine that is dropped."""
    for name, grantee in accounts.items():
        if level in grantee.privileges:
            left = {one: given for one, given in grantee.privileges.items() if one != level}
            accounts[name] = replace(grantee, privileges=left)


_Results = Iterator[AccountError | None]
"""Result for each account: its error, or None where it is as it should be."""


@dataclass(slots=True)
class _Changing:
    accounts: Accounts
    node: AccountStatement
    situation: Situation
    granted: dict[AccountName, dict[AccountName, bool]] = field(default_factory=dict)
    """Roles of accounts that this statement has given some, which are nobody else's yet."""

    @property
    def is_mariadb(self) -> bool:
        return self.situation.is_mariadb

    def name(self, account: NamedAccount) -> AccountName:
        return named(account, self.accounts, self.situation)

    def role(self, account: NamedAccount) -> AccountName:
        """A name that stands where only a role can."""
        if self.is_mariadb and account.host is None and not account.is_current:
            return AccountName(account.user, "")
        return self.name(account)

    def has(self, name: AccountName) -> bool:
        """True if there is such an account, or there may be."""
        return name in self.accounts or name in OWN or not self.situation.is_complete

    def grantee(self, name: AccountName) -> Grantee:
        known = self.accounts.get(name)
        if known is None and name in OWN:
            everything = all_privileges((), is_mariadb=self.is_mariadb) | {GRANT_OPTION}
            return Grantee(privileges={(): everything})
        return Grantee() if known is None else known

    def failed(self, name: AccountName, *, is_bare: bool = False) -> AccountError:
        shown = f"'{name.user}'" if is_bare else name.shown
        return AccountError(1396, f"Operation {self.node.verb} failed for ", shown)

    # Making and unmaking ----------------------------------------------------------------------

    def create(self) -> _Results:
        node = self.node
        names = [
            (self.role if node.verb == "CREATE ROLE" else self.plain)(each)
            for each in node.accounts
        ]
        roles = [self.role(each) for each in node.roles]
        for name in names:
            if name in self.accounts:
                if "OR REPLACE" in node.options:
                    self.drop_one(name)
                else:
                    yield None if "IF NOT EXISTS" in node.options else self.failed(name)
                    continue
            yield None
            self.accounts[name] = Grantee()
            if name.is_role:
                self.grant_role(name, roles[0] if roles else self.situation.current, admin=True)
            elif roles:
                given = dict.fromkeys(roles, False)
                self.accounts[name] = Grantee(roles=given, default_roles=frozenset(roles))

    def plain(self, account: NamedAccount) -> AccountName:
        """A name that stands where only a user can."""
        if account.is_current:
            return self.situation.current
        return AccountName(account.user, "%" if account.host is None else account.host)

    def drop(self) -> _Results:
        is_role = self.node.verb == "DROP ROLE"
        for account in self.node.accounts:
            name = self.role(account) if is_role else self.plain(account)
            if name in self.accounts:
                self.drop_one(name)
                yield None
            elif "IF EXISTS" not in self.node.options and not self.has(name):
                yield self.failed(name)

    def drop_one(self, name: AccountName) -> None:
        del self.accounts[name]
        for other, grantee in self.accounts.items():
            if name in grantee.roles:
                roles = {role: admin for role, admin in grantee.roles.items() if role != name}
                default = grantee.default_roles - {name}
                self.accounts[other] = replace(grantee, roles=roles, default_roles=default)

    def rename(self) -> _Results:
        names = [self.plain(each) for each in self.node.accounts]
        roles = {role for one in self.accounts.values() for role in one.roles}
        if not self.is_mariadb and not roles.isdisjoint(names):
            yield AccountError(3532, "Renaming of a role identifier is forbidden")
        for old, new in zip(names[::2], names[1::2], strict=True):
            if new in self.accounts or not self.has(old):
                yield self.failed(old)
            else:
                yield None
                if old in self.accounts:
                    self.accounts[new] = self.accounts.pop(old)

    def alter(self) -> _Results:
        node = self.node
        if "DEFAULT ROLE" in node.options:
            yield from self.set_default()
            return
        for account in node.accounts:
            name = self.name(account)
            if self.has(name):
                yield None
            elif "IF EXISTS" not in node.options:
                yield self.failed(name, is_bare=self.is_mariadb and account.host is None)

    def set_password(self) -> _Results:
        if any(not self.has(self.plain(each)) for each in self.node.accounts):
            yield AccountError(1133, "Can't find any matching row in the user table")

    # Roles ------------------------------------------------------------------------------------

    def grant(self) -> _Results:
        node = self.node
        if node.privileges:
            yield from self.grant_privileges()
            return
        admin = "WITH ADMIN OPTION" in node.options
        roles = [self.role(each) for each in node.roles]
        for role in roles:
            if self.is_mariadb and not self.has(role):
                yield AccountError(1959, f"Invalid role specification `{role.user}`")
                return
        for account in node.accounts:
            name = self.name(account)
            yield from self.unknown([account])
            for each, role in zip(node.roles, roles, strict=True):
                yield from self.unknown([each])
                if not self.has(name):
                    yield self.absent()
                elif name in roles_of(self.accounts, (role,)) and name in roles_of(
                    self.accounts, (name,)
                ):
                    yield self.loop(role, name)
                else:
                    self.grant_role(role, name, admin=admin)

    def unknown(self, accounts: Iterable[NamedAccount]) -> _Results:
        """MySQL's error of what is neither user nor role."""
        for account in () if self.is_mariadb else accounts:
            name = self.name(account)
            if not self.has(name):
                yield AccountError(3523, f"Unknown authorization ID {name.quoted}")

    def absent(self) -> AccountError:
        """Give the error that the account to be granted something does not exist."""
        if self.is_mariadb:
            return AccountError(1133, "Can't find any matching row in the user table")
        return AccountError(1410, "You are not allowed to create a user with GRANT")

    def loop(self, role: AccountName, name: AccountName) -> AccountError:
        if self.is_mariadb:
            return AccountError(1961, f"Cannot grant role {role.shown} to: ", name.shown)
        return AccountError(
            4027,
            f"User account {name.quoted} is directly or indirectly granted to the role "
            f"{role.quoted}. The GRANT would create a loop",
        )

    def grant_role(self, role: AccountName, name: AccountName, *, admin: bool) -> None:
        if name in self.accounts or name in OWN:
            grantee = self.grantee(name)
            given = grantee.roles
            if given is not self.granted.get(name):
                given = self.granted[name] = dict(given)
                self.accounts[name] = replace(grantee, roles=given)
            self.granted[name][role] = admin or given.get(role, False)

    def revoke(self) -> _Results:
        node = self.node
        if node.on is not None or (node.privileges and node.privileges[0].name == "PROXY"):
            yield from self.revoke_privileges()
            return
        if node.privileges:
            yield from self.revoke_all()
            return
        ignores = "IGNORE UNKNOWN USER" in node.options
        if not ignores:
            yield from self.unknown([*node.accounts, *node.roles])
        for each in node.roles:
            role = self.role(each)
            if self.is_mariadb and not self.has(role):
                yield AccountError(1959, f"Invalid role specification `{role.user}`")
                return
            for account in node.accounts:
                name = self.name(account)
                grantee = self.grantee(name)
                if role in grantee.roles:
                    self.revoke_role(role, name, grantee)
                elif self.is_mariadb and (name in self.accounts or not self.has(name)):
                    message = f"Cannot revoke role {role.shown} from: "
                    yield AccountError(1962, message, name.shown)

    def revoke_role(self, role: AccountName, name: AccountName, grantee: Grantee) -> None:
        if "ADMIN OPTION FOR" in self.node.options:
            roles, default = {**grantee.roles, role: False}, grantee.default_roles
        else:
            roles = {one: admin for one, admin in grantee.roles.items() if one != role}
            default = grantee.default_roles - {role}
        self.accounts[name] = replace(grantee, roles=roles, default_roles=default)

    def set_default(self) -> _Results:
        """SET DEFAULT ROLE, ALTER USER … DEFAULT ROLE."""
        node = self.node
        names = [self.plain(each) for each in node.accounts] or [self.situation.current]
        for name in names:
            grantee = self.grantee(name)
            roles = frozenset(map(self.role, node.roles))
            for role in sorted(roles):
                if role in grantee.roles or not self.has_grants_of(name):
                    continue
                if not self.is_mariadb:
                    yield AccountError(3530, f"{role.quoted} is not granted to {name.quoted}")
                elif self.has(role) and role in self.accounts:
                    yield AccountError(
                        1959, f"User {name.quoted} has not been granted role `{role.user}`"
                    )
                elif not self.has(role):
                    yield AccountError(1959, f"Invalid role specification `{role.user}`")
            if not roles and not self.has(name) and (self.is_mariadb or "ALL" in node.options):
                yield self.no_user(name)
            if "ALL" in node.options:
                roles = frozenset(grantee.roles)
            if name in self.accounts or name in OWN:
                self.accounts[name] = replace(grantee, default_roles=roles)

    def no_user(self, name: AccountName) -> AccountError:
        """Give the error that the account whose default roles are to be none or all does not exist."""
        if not self.is_mariadb:
            return AccountError(3523, f"Unknown authorization ID {name.quoted}")
        if AccountName(name.user) in self.accounts:
            return self.absent()
        return AccountError(1960, "The current user is invalid")

    def has_grants_of(self, name: AccountName) -> bool:
        """True if all grants of an account are known."""
        return name in self.accounts or self.situation.is_complete

    # Privileges -------------------------------------------------------------------------------

    def grant_privileges(self) -> _Results:
        node = self.node
        gives_on = "WITH GRANT OPTION" in node.options
        for account, credential in zip_longest(node.accounts, node.credentials):
            name = self.plain(account) if self.is_proxy else self.name(account)
            if credential is not None and credential.is_identified and not self.has(name):
                self.accounts[name] = Grantee()  # made by it, as servers with such a clause do
            if not self.has(name):
                yield self.absent()
            elif name in self.accounts:
                grantee = self.accounts[name]
                privileges = dict(grantee.privileges)
                for level, given in self.levels(gives_on=gives_on):
                    privileges[level] = privileges.get(level, frozenset()) | given
                proxied = grantee.proxied | self.proxied()
                self.accounts[name] = replace(grantee, privileges=privileges, proxied=proxied)

    @property
    def is_proxy(self) -> bool:
        return self.node.on is None

    def proxied(self) -> frozenset[AccountName]:
        return frozenset(map(self.plain, self.node.roles)) if self.is_proxy else frozenset()

    def level(self) -> Level:
        """Give the level that ON names."""
        on = self.node.on
        assert on is not None, "privileges are granted on something"
        if on.name == "*":
            return () if on.database == "*" else (on.database or self.situation.database,)
        database, kind = on.database or self.situation.database, self.node.object_kind
        return (kind, database, on.name if kind == "TABLE" else on.name.lower())

    def levels(self, *, gives_on: bool) -> Iterator[tuple[Level, frozenset[str]]]:
        """Each level that the statement is about, with its privileges."""
        node = self.node
        if node.on is None:
            return
        level = self.level()
        names = frozenset((GRANT_OPTION,)) if gives_on else frozenset()
        for privilege in node.privileges:
            if privilege.columns:
                for column in privilege.columns:
                    yield (*level, column.lower()), frozenset((privilege.name,))
            else:
                names |= self.meant(privilege, level)
        if names:
            yield level, names

    def meant(self, privilege: Privilege, level: Level) -> frozenset[str]:
        if privilege.name == "ALL":
            return all_privileges(level, is_mariadb=self.is_mariadb)
        if privilege.name == "USAGE":
            return frozenset()
        name = ALIASES.get(privilege.name, privilege.name) if self.is_mariadb else privilege.name
        return frozenset((name,))

    def revoke_privileges(self) -> _Results:
        for account in self.node.accounts:
            name = self.plain(account) if self.is_proxy else self.name(account)
            grantee = self.accounts.get(name)
            if grantee is None:
                if not self.has(name) and "IGNORE UNKNOWN USER" not in self.node.options:
                    yield self.no_grant(name)
                continue
            if self.node.on is None:
                proxied = self.proxied()
                if not proxied <= grantee.proxied:
                    yield self.no_grant(name)
                self.accounts[name] = replace(grantee, proxied=grantee.proxied - proxied)
                continue
            if self.lacks(grantee) and "IF EXISTS" not in self.node.options:
                yield self.no_grant(name)
                continue
            self.accounts[name] = replace(grantee, privileges=dict(self.left(grantee)))

    def lacks(self, grantee: Grantee) -> bool:
        """True if nothing was granted at the statement's level or below; MySQL: no revoked privilege was."""
        level = self.level()
        if level and not self.is_mariadb:
            return dict(self.left(grantee)) == dict(grantee.privileges)
        return bool(level) and not any(
            one[: len(level)] == level and given for one, given in grantee.privileges.items()
        )

    def left(self, grantee: Grantee) -> Iterator[tuple[Level, frozenset[str]]]:
        """The privileges that stay; of a table those of its columns go with them."""
        revoked = dict(self.levels(gives_on=False))
        whole = self.level()
        of_table = revoked.get(whole, frozenset())
        for privilege in self.node.privileges:
            if privilege.name == "ALL":
                of_table |= {GRANT_OPTION} if self.is_mariadb and whole else frozenset()
        for level, given in grantee.privileges.items():
            taken = revoked.get(level, frozenset())
            if level == whole or (len(whole) > 1 and level[: len(whole)] == whole):
                taken |= of_table
            if stays := given - taken:
                yield level, stays

    def no_grant(self, name: AccountName) -> AccountError:
        """1141; of a table or routine 1147 and 1403, by MariaDB of accounts that are there only."""
        message = f"There is no such grant defined for user '{name.user}' on host '{name.host}'"
        on = self.node.on
        if on is None or on.name == "*" or (self.is_mariadb and name not in self.accounts):
            return AccountError(1141, message)
        if self.node.object_kind != "TABLE":
            return AccountError(1403, f"{message} on routine '{on.name}'")
        return AccountError(1147, f"{message} on table '{on.name}'")

    def revoke_all(self) -> _Results:
        """REVOKE ALL PRIVILEGES, GRANT OPTION: MariaDB takes roles, too; it is logged in any case.

        MySQL says what became of the last one.
        """
        error = None
        for account in self.node.accounts:
            name = self.name(account)
            grantee = self.accounts.get(name)
            if grantee is not None:
                roles = {} if self.is_mariadb else grantee.roles
                default = frozenset() if self.is_mariadb else grantee.default_roles
                self.accounts[name] = Grantee(roles=roles, default_roles=default)
            is_absent = not self.has(name) and "IGNORE UNKNOWN USER" not in self.node.options
            if is_absent or not self.is_mariadb:
                error = is_absent
        yield None
        if error:
            message = "Can't revoke all privileges for one or more of the requested users"
            yield AccountError(1269, message)


_CHANGES: Final[Mapping[str, Callable[[_Changing], _Results]]] = MappingProxyType(
    {
        "CREATE USER": _Changing.create,
        "CREATE ROLE": _Changing.create,
        "DROP USER": _Changing.drop,
        "DROP ROLE": _Changing.drop,
        "RENAME USER": _Changing.rename,
        "ALTER USER": _Changing.alter,
        "SET PASSWORD": _Changing.set_password,
        "GRANT": _Changing.grant,
        "REVOKE": _Changing.revoke,
        "SET DEFAULT ROLE": _Changing.set_default,
    }
)
