"""Privileges of accounts, and the servers' errors for statements that an account may not run.

The privileges are those of the session's account, or of the definer of a program or view. Column privileges
are looked up by name, not by scope: where two tables of a statement have a column of one name, the name is
taken for that of both.

Source: MariaDB 10.11 and MySQL 9.7: sql/sql_parse.cc `*_precheck`, `check_access`,
`check_table_access`; sql/sql_acl.cc, sql/auth/sql_authorization.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.names import ACCOUNT_DATABASE, TableName, quote
from binlane.statements.policy.refusals import Refusal, invalid_view
from binlane.statements.policy.used_objects import columns_of_view, updated_uses
from binlane.statements.sql.accounts import (
    GRANT_OPTION,
    OWN,
    TABLE_PRIVILEGES,
    AccountName,
    Accounts,
    Grantee,
    Level,
    Situation,
    default_roles,
    named,
    roles_of,
)
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import RowChange, StatementKind, VariableScope
from binlane.statements.sql.schema import Routine, Trigger
from binlane.statements.sql.tree.definitions import AccountStatement, AlterTable, CreateTable
from binlane.statements.sql.tree.expressions import Name, Node, Select, Star, children
from binlane.statements.sql.tree.statements import Assignment, Insert, QueryStatement, Update

if TYPE_CHECKING:
    from binlane.statements.policy.server import Server
    from binlane.statements.sql.facts import StatementFacts, TableUse
    from binlane.statements.sql.schema import Objects, View

_ORDER: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "GRANT OPTION", "REFERENCES"),
    *("INDEX", "ALTER", "CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE VIEW"),
    *("SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT", "TRIGGER", "DELETE HISTORY"),
)
"""Order in which messages name privileges."""
_PUBLIC: Final = AccountName("PUBLIC", "")
_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema"))
_CHANGES: Final[Mapping[RowChange, frozenset[str]]] = MappingProxyType(
    {
        RowChange.INSERT: frozenset(("INSERT",)),
        RowChange.LOAD: frozenset(("INSERT",)),
        RowChange.UPDATE: frozenset(("UPDATE",)),
        RowChange.DELETE: frozenset(("DELETE",)),
        RowChange.REPLACE: frozenset(("INSERT", "DELETE")),
        RowChange.UPSERT: frozenset(("INSERT", "UPDATE")),
        RowChange.SEQUENCE: frozenset(("INSERT",)),
    }
)
_SELECT: Final = frozenset(("SELECT",))
_ANY: Final = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE"))
_NEW_NAME: Final = frozenset(("CREATE", "INSERT"))
_OLD_NAME: Final = frozenset(("ALTER", "DROP"))


@dataclass(frozen=True, slots=True)
class Identity:
    """The account and roles whose privileges hold.

    Attributes:
        account: A user; of MariaDB's programs a role, too.
        roles: The account's roles that are active.
    """

    account: AccountName
    roles: frozenset[AccountName] = frozenset()


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
class Asked:
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
            if not name.database or name.database.lower() in _SYSTEM_DATABASES:
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


def denied_to_definer(program: Routine | Trigger, asked: Asked) -> Refusal | None:
    """Return 1370 if a routine's definer may not call the routine, 1142 if a trigger's may make none."""
    if isinstance(program, Trigger):
        return next(asked.tables(frozenset(("TRIGGER",)), program.table), None)
    kind = "FUNCTION" if program.is_function else "PROCEDURE"
    return next(asked.routines("EXECUTE", kind, program.name), None)


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


# Statements -----------------------------------------------------------------------------------


def denied(asked: Asked) -> Refusal | None:
    """Return the refusal to run a statement at all, before its tables are opened; None if it is allowed."""
    facts = asked.facts
    finder = _FINDERS.get(facts.effects.kind)
    found = None if finder is None else next(finder(asked), None)
    return found or next(_definer(asked), None)


def denied_inside(asked: Asked) -> Refusal | None:
    """Return the error for a privilege that columns or functions lack once tables are open: 1143, 1370."""
    for find in (_views, _functions, _columns):
        found = next(find(asked), None)
        if found is not None:
            return found
    return None


def _rows(asked: Asked) -> Iterator[Refusal]:
    """Give the errors of SELECT, INSERT, UPDATE, DELETE, CALL's arguments and their like."""
    facts = asked.facts
    kind = facts.effects.kind
    is_load = kind is StatementKind.LOAD_DATA
    if is_load and not facts.is_local and _lacks_file(asked):
        yield asked.denied()
    uses = facts.tables
    if kind is StatementKind.UPDATE and facts.is_multi_table:
        yield from _joined(asked)
        uses = tuple(use for use in uses if not use.is_outermost)
    for use in uses:
        wanted = _wanted(use)
        if is_load and use.changes and facts.is_replace:
            wanted |= {"DELETE"}
        if not use.is_sequence or asked.objects.table(use.name) is not None:
            yield from asked.tables(wanted, use.name)
    tree = facts.tree
    if isinstance(tree, QueryStatement) and _writes_file(tree):
        is_login = asked.server.is_mariadb and asked.server.version >= (11,)
        yield from (
            (asked.denied(),) if is_login and _lacks_file(asked) else asked.everywhere("FILE")
        )
    yield from _unknown_functions(asked)


def _joined(asked: Asked) -> Iterator[Refusal]:
    """Give the errors of an UPDATE of several tables: any of two privileges first, then the right one."""
    uses = [use for use in asked.facts.tables if use.is_outermost]
    for use in uses:
        have = asked.rights.on("TABLE", use.name) | asked.rights.on_columns(use.name)
        if "UPDATE" not in have:
            yield from asked.tables(_SELECT, use.name)
    objects = asked.objects
    if not all(objects.table(use.name) or objects.view(use.name) for use in uses):
        return
    if asked.server.is_mariadb:
        for use in updated_uses(uses, asked.facts.set_columns, objects):
            if not use.changes:
                yield from asked.tables(_SELECT, use.name)
            elif "SELECT" not in asked.rights.on("TABLE", use.name):
                yield from asked.tables(frozenset(("UPDATE",)), use.name)


def _unknown_functions(asked: Asked) -> Iterator[Refusal]:
    """Give error 1370 for missing functions where the servers raise no other error."""
    facts = asked.facts
    for use in facts.functions[facts.effects.kind is StatementKind.CALL :]:
        if use.database is None and is_built_in(use.name, facts.dialect):
            continue
        name = TableName(use.database or asked.database, use.name)
        is_there = asked.objects.function(name) or asked.objects.is_loadable_function(use.name)
        if not is_there and name.database not in ("sys", ""):
            yield from asked.routines("EXECUTE", "FUNCTION", name)


def _lacks_file(asked: Asked) -> bool:
    return "FILE" not in asked.rights.at(())


def _writes_file(tree: QueryStatement) -> bool:
    into = tree.query.into
    return into is not None and not into.variables


def _wanted(use: TableUse) -> frozenset[str]:
    if use.lock:
        return frozenset(("SELECT", "LOCK TABLES"))
    return frozenset().union(*(_CHANGES[one] for one in use.changes)) or _SELECT


def _functions(asked: Asked) -> Iterator[Refusal]:
    for use in asked.facts.functions[asked.facts.effects.kind is StatementKind.CALL :]:
        routine = asked.objects.function(TableName(use.database or asked.database, use.name))
        if routine is not None:
            yield from asked.routines("EXECUTE", "FUNCTION", routine.name)


def _called(asked: Asked) -> Iterator[Refusal]:
    use = asked.facts.functions[0]
    name = TableName(use.database or asked.database, use.name)
    yield from asked.routines("EXECUTE", "PROCEDURE", name)
    yield from _rows(asked)


# Views ----------------------------------------------------------------------------------------


def _views(asked: Asked) -> Iterator[Refusal]:
    """Give 1356 where a view's definer lacks a privilege for the statement; 1045 where he does not exist."""
    tree = asked.facts.tree
    for use in asked.facts.tables:
        view = asked.objects.view(use.name)
        if view is None:
            continue
        yield from _behind(asked, view, _wanted(use) - {"LOCK TABLES"})
        columns = {one.lower() for one in _columns_of(use.name, asked.objects)}
        rights = asked.rights_in(view)
        for base in view.facts.tables if columns else ():
            if rights is None or not base.is_outermost or not asked.objects.table(base.name):
                continue
            have = rights.on("TABLE", base.name)
            for privilege, column in _used_columns(tree, use, asked):
                if privilege not in have | rights.on_column(base.name, column):
                    yield invalid_view(view.name)


def _behind(asked: Asked, view: View, wanted: frozenset[str]) -> Iterator[Refusal]:
    """Give the errors for privileges missing on the tables of a view, and of the views below it."""
    accounts, definer = asked.objects.accounts, view.definer
    if not view.is_invoker and definer not in accounts and definer not in OWN and accounts:
        yield asked.denied()
    rights = asked.rights_in(view)
    for use in view.facts.tables:
        needed = wanted if use.is_outermost else _SELECT
        if rights is not None:
            have = rights.on("TABLE", use.name) | rights.on_columns(use.name)
            if not needed <= have:
                yield invalid_view(view.name)
        inner = asked.objects.view(use.name)
        if inner is not None and inner.name != view.name:
            yield from _behind(asked, inner, needed)


# Columns --------------------------------------------------------------------------------------


def _columns(asked: Asked) -> Iterator[Refusal]:
    """Give error 1143 for tables of which only some columns may be used, and those that are only written."""
    tree = asked.facts.tree
    for use in asked.facts.tables:
        if use.name.database.lower() in _SYSTEM_DATABASES or use.lock:
            continue
        have = asked.rights.in_database(use.name.database)
        # MySQL asks no privilege of the table where the whole database gives the wanted ones.
        if asked.server.is_mariadb or not _wanted(use) <= have:
            have = asked.rights.on("TABLE", use.name)
        if {"SELECT", *_wanted(use)} <= have:
            continue
        # The columns of a view that an INSERT does not name are asked of its tables alone.
        is_whole = isinstance(tree, Insert) and not tree.columns
        is_behind = is_whole and asked.objects.view(use.name) is not None
        for privilege, column in _used_columns(tree, use, asked):
            if is_behind and privilege == "INSERT":
                continue
            if privilege not in have | asked.rights.on_column(use.name, column):
                yield asked.denied_column(privilege, column, use.name)


def _used_columns(tree: Node, use: TableUse, asked: Asked) -> Iterator[tuple[str, str]]:
    """Give the privileges that a statement needs on columns of a table, each with its column."""
    columns = _columns_of(use.name, asked.objects)
    own = {column.lower() for column in columns}
    written: Sequence[Assignment] = ()
    if isinstance(tree, Update):
        written = tree.assignments
    elif isinstance(tree, Insert):
        written = tree.on_duplicate or ()
        if use.changes:
            yield from (("INSERT", column) for column in tree.columns or columns)
    for one in written:
        if use.changes and _is_of(one.column, use, own):
            if isinstance(tree, Insert) and asked.server.is_mariadb:
                yield "SELECT", one.column.parts[-1]
            yield "UPDATE", one.column.parts[-1]
    yield from _read_columns(tree, use, asked, {id(one.column) for one in written})


def _read_columns(
    tree: Node, use: TableUse, asked: Asked, written: Collection[int]
) -> Iterator[tuple[str, str]]:
    columns = _columns_of(use.name, asked.objects)
    own = {column.lower() for column in columns}
    for node, select in _in_order(tree, None):
        is_inside = _is_inside(use, select, asked)
        if isinstance(node, Star):
            yield from (("SELECT", one) for one in columns if is_inside and not use.changes)
        elif id(node) in written or not _is_of(node, use, own):
            continue
        elif is_inside or not _has_own(node, select, asked):
            yield "SELECT", node.parts[-1]


def _in_order(node: Node, select: Select | None) -> Iterator[tuple[Name | Star, Select | None]]:
    """Names and stars, each with the SELECT that it stands in."""
    for child in children(node):
        if isinstance(child, Name | Star):
            yield child, select
        yield from _in_order(child, child if isinstance(child, Select) else select)


def _is_inside(use: TableUse, select: Select | None, asked: Asked) -> bool:
    """True if a table is one of a SELECT, or of the statement itself."""
    place = asked.facts.place
    return select is None or place(select.at) <= use.offset < place(select.end)


def _has_own(name: Name, select: Select | None, asked: Asked) -> bool:
    """True if the tables of a SELECT itself have a column of this name."""
    column = name.parts[-1].lower()
    return any(
        column in map(str.lower, _columns_of(use.name, asked.objects))
        for use in asked.facts.tables
        if len(name.parts) == 1 and _is_inside(use, select, asked)
    )


def _is_of(name: Name, use: TableUse, columns: set[str]) -> bool:
    if len(name.parts) > 1:
        return name.parts[-2].lower() == use.alias.lower()
    return name.parts[-1].lower() in columns


def _columns_of(name: TableName, objects: Objects) -> tuple[str, ...]:
    table, view = objects.table(name), objects.view(name)
    if table is not None:
        return tuple(column.name for column in table.definition.columns)
    return () if view is None else view.columns or tuple(columns_of_view(view))


# Definitions ----------------------------------------------------------------------------------


def _created_table(asked: Asked) -> Iterator[Refusal]:
    facts, effects = asked.facts, asked.facts.effects
    name = effects.writes[0]
    if effects.is_temporary:
        yield from asked.in_database("CREATE TEMPORARY TABLES", name.database)
    else:
        wanted = {"CREATE"}
        if effects.kind is StatementKind.CREATE_TABLE_SELECT:
            wanted.add("INSERT")
        if facts.is_or_replace:
            wanted.add("DROP")
        yield from asked.tables(frozenset(wanted), name)
    tree = facts.tree
    if effects.kind is StatementKind.CREATE_TABLE_SELECT:
        read = [use.name for use in facts.tables if not use.changes and use.name != name]
        yield from asked.tables(_SELECT, *read)
    elif effects.kind is StatementKind.CREATE_TABLE_LIKE:
        yield from asked.tables(_SELECT, *effects.reads)
    elif isinstance(tree, CreateTable):
        yield from _parents(asked)


def _altered_table(asked: Asked) -> Iterator[Refusal]:
    facts, effects = asked.facts, asked.facts.effects
    tree = facts.tree
    wanted = {"ALTER"}
    if effects.renames or (isinstance(tree, AlterTable) and _drops_partitions(tree)):
        wanted.add("DROP")
    yield from asked.tables(frozenset(wanted), effects.writes[0])
    yield from asked.tables(_NEW_NAME, *(new for _, new in effects.renames))
    yield from _parents(asked)


def _parents(asked: Asked) -> Iterator[Refusal]:
    """The tables that foreign keys refer to: for MariaDB any privilege on their rows is enough."""
    wanted = frozenset(("REFERENCES",))
    for name in asked.facts.effects.reads:
        if not asked.server.is_mariadb or not asked.rights.on("TABLE", name) & (_ANY | wanted):
            yield from asked.tables(wanted, name)


def _drops_partitions(tree: AlterTable) -> bool:
    return any(
        action.kind == "PARTITION" and action.words[:1] in (("DROP",), ("TRUNCATE",))
        for action in tree.actions
    )


def _renamed_tables(asked: Asked) -> Iterator[Refusal]:
    for old, new in asked.facts.effects.renames:
        yield from asked.tables(_OLD_NAME, old)
        yield from asked.tables(_NEW_NAME, new)


def _dropped_tables(asked: Asked) -> Iterator[Refusal]:
    effects = asked.facts.effects
    for name in effects.drops or effects.writes:
        table = asked.objects.table(name)
        is_temporary = table is not None and table.is_temporary
        if effects.is_temporary or is_temporary:
            if asked.server.is_mariadb and effects.is_temporary:
                yield from asked.in_database("CREATE TEMPORARY TABLES", name.database)
        else:
            yield from asked.tables(frozenset(("DROP",)), name)


def _of_table(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege on its table."""
    return lambda asked: asked.tables(frozenset((privilege,)), *asked.facts.effects.writes[:1])


def _of_database(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege in the databases that it names."""

    def find(asked: Asked) -> Iterator[Refusal]:
        effects = asked.facts.effects
        names = effects.databases or tuple(name.database for name in effects.objects)
        return asked.in_database(privilege, *names)

    return find


def _in_database_of(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege in the databases of its objects."""
    return lambda asked: asked.in_database(
        privilege, *(name.database for name in asked.facts.effects.objects)
    )


def _of_routine(asked: Asked) -> Iterator[Refusal]:
    is_function, names = "FUNCTION" in asked.facts.verb, asked.facts.effects.objects
    kind = "FUNCTION" if is_function else "PROCEDURE"
    yield from asked.routines("ALTER ROUTINE", kind, *names)
    find = asked.objects.function if is_function else asked.objects.procedure
    for routine in filter(None, map(find, names)):
        definer = asked.objects.accounts.get(routine.definer)
        is_system = definer is None or "SYSTEM_USER" in definer.privileges.get((), ())
        if is_system and not asked.server.is_mariadb:
            yield from asked.everywhere("SYSTEM_USER")


def _made_view(asked: Asked) -> Iterator[Refusal]:
    facts, effects = asked.facts, asked.facts.effects
    wanted = {"CREATE VIEW"}
    if facts.is_or_replace or effects.kind is StatementKind.ALTER_VIEW:
        wanted.add("DROP")
    yield from asked.tables(frozenset(wanted), *effects.objects[:1])
    for name in effects.reads:
        have = asked.rights.on("TABLE", name)
        if have & _ANY:
            continue
        if not asked.rights.on_columns(name) & _ANY:
            yield asked.denied_table(_ANY, name)
        tree = facts.tree
        has_star = any(isinstance(node, Star) for node, _ in _in_order(tree, None))
        for use in facts.tables:
            used = _used_columns(tree, use, asked) if use.name == name else ()
            for _, column in used:
                if not asked.rights.on_column(name, column) & _ANY and has_star:
                    yield asked.denied_table(_ANY, name)
                elif not asked.rights.on_column(name, column) & _ANY:
                    yield asked.denied_column("create view", column, name)


def _dropped_views(asked: Asked) -> Iterator[Refusal]:
    return asked.tables(frozenset(("DROP",)), *asked.facts.effects.objects)


def _trigger(asked: Asked) -> Iterator[Refusal]:
    effects = asked.facts.effects
    tables = effects.writes[:1]
    if effects.kind is StatementKind.DROP_TRIGGER:
        found = (asked.objects.trigger(name) for name in effects.objects)
        tables = tuple(trigger.table for trigger in found if trigger is not None)
    return asked.tables(frozenset(("TRIGGER",)), *tables)


def _locked(asked: Asked) -> Iterator[Refusal]:
    facts = asked.facts
    return asked.tables(
        frozenset(("SELECT", "LOCK TABLES")), *(use.name for use in facts.tables if use.lock)
    )


def _maintained(asked: Asked) -> Iterator[Refusal]:
    verb = asked.facts.verb
    if verb.startswith(("ANALYZE", "OPTIMIZE", "REPAIR")):
        names = (*asked.facts.effects.writes, *asked.facts.effects.reads)
        return asked.tables(frozenset(("SELECT", "INSERT")), *names)
    wanted = _SELECT
    if verb.startswith("CHECK ") and asked.server.is_mariadb:
        return _checked(asked)
    if not verb.startswith("CHECK"):
        wanted = frozenset()
    return asked.tables(wanted, *asked.facts.effects.writes, *asked.facts.effects.reads)


def _checked(asked: Asked) -> Iterator[Refusal]:
    """Give the errors of MariaDB's CHECK TABLE, which needs any privilege on the table."""
    for name in (*asked.facts.effects.writes, *asked.facts.effects.reads):
        if not (asked.rights.on("TABLE", name) | asked.rights.on_columns(name)) & TABLE_PRIVILEGES:
            yield asked.denied_table(frozenset(("CHECK TABLE",)), name)


def _handled(asked: Asked) -> Iterator[Refusal]:
    return asked.tables(_SELECT, *asked.facts.effects.reads)


def _used(asked: Asked) -> Iterator[Refusal]:
    """Give the error of USE for a database where the account may use nothing."""
    name = asked.facts.name
    is_open = name.lower() in _SYSTEM_DATABASES
    if asked.facts.verb == "USE" and not is_open and not asked.rights.reaches(name):
        yield asked.denied_database(name)


def _flushed(asked: Asked) -> Iterator[Refusal]:
    return asked.everywhere("RELOAD")


def _tablespace(asked: Asked) -> Iterator[Refusal]:
    return asked.everywhere("CREATE TABLESPACE")


def _definer(asked: Asked) -> Iterator[Refusal]:
    """Give the errors of DEFINER with another account."""
    definer = getattr(asked.facts.tree, "definer", None)
    own, server = asked.rights.identity.account, asked.server
    if definer is None:
        return
    situation = Situation(is_mariadb=server.is_mariadb, current=own)
    if named(definer, asked.objects.accounts, situation) == own:
        return
    if not server.is_mariadb:
        is_new = server.version >= (8, 2)
        any_of = ("SUPER", "SET_ANY_DEFINER" if is_new else "SET_USER_ID")
        yield from asked.everywhere(*any_of, joint=" or ")
    elif server.version >= (11,):
        yield from asked.everywhere("SET USER")
    else:
        yield from asked.everywhere("SUPER", "SET USER")


# Variables ------------------------------------------------------------------------------------


_GLOBAL: Final = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
_SESSION: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "mariadb": {
            "BINLOG ADMIN": (
                *("binlog_annotate_row_events", "binlog_direct_non_transactional_updates"),
                *("binlog_format", "binlog_row_image", "sql_log_bin"),
            ),
            "BINLOG REPLAY": ("gtid_domain_id", "gtid_seq_no", "pseudo_thread_id", "server_id"),
        },
        "mysql": {
            "SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN": (
                *("binlog_direct_non_transactional_updates", "binlog_format", "binlog_row_image"),
                *("binlog_rows_query_log_events", "binlog_row_value_options", "sql_log_bin"),
                *("binlog_transaction_compression", "character_set_database", "pseudo_thread_id"),
                *("sql_generate_invisible_primary_key", "bulk_insert_buffer_size"),
                *("sql_require_primary_key", "xa_detach_on_prepare"),
            ),
            "SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN or REPLICATION_APPLIER": (
                *("gtid_next", "pseudo_replica_mode", "pseudo_slave_mode"),
                *("original_commit_timestamp", "immediate_server_version"),
            ),
        },
    }
)
"""Variables whose session value only some may set, by the privileges that let them, besides SUPER."""
_OF_GLOBALS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "BINLOG ADMIN": (
            *("binlog_annotate_row_events", "binlog_direct_non_transactional_updates"),
            *("binlog_format", "binlog_row_image", "binlog_row_metadata", "sql_log_bin"),
            *("log_bin_trust_function_creators", "sync_binlog", "expire_logs_days"),
            "binlog_expire_logs_seconds",
        ),
        "REPLICATION MASTER ADMIN": (
            *("gtid_domain_id", "server_id", "rpl_semi_sync_master_enabled"),
            "master_verify_checksum",
        ),
        "CONNECTION ADMIN": ("max_connections",),
        "REPLICATION SLAVE ADMIN": ("gtid_slave_pos", "gtid_strict_mode"),
    }
)
"""MariaDB's global variables that need another privilege than SUPER."""


def _set(asked: Asked) -> Iterator[Refusal]:
    yield from _rows(asked)
    for one in (*asked.facts.statement_assignments, *asked.facts.assignments):
        yield from _assigned(asked, one.name, is_global=one.scope in _GLOBAL)


def _assigned(asked: Asked, name: str, *, is_global: bool) -> Iterator[Refusal]:
    server = asked.server
    if is_global and not server.is_mariadb:
        yield from asked.everywhere("SUPER", "SYSTEM_VARIABLES_ADMIN", joint=" or ")
        return
    lists = _OF_GLOBALS if is_global else _SESSION[server.flavor]
    shown = next((each for each, names in lists.items() if name in names), "")
    if name == "read_only" and is_global:
        yield from asked.everywhere("READ_ONLY ADMIN")
    elif shown or is_global:
        wanted = shown.replace(" or ", ", ").split(", ") if shown else ()
        is_split = server.is_mariadb and server.version >= (11,) and wanted
        joint = f", {shown}" if shown else ""
        yield from asked.everywhere(
            *(() if is_split else ("SUPER",)),
            *wanted,
            shown=shown if is_split else f"SUPER{joint}",
        )


# Accounts -------------------------------------------------------------------------------------


_ON_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("CREATE USER", "CREATE ROLE"), "INSERT"),
        **dict.fromkeys(("DROP USER", "DROP ROLE"), "DELETE"),
        **dict.fromkeys(
            ("RENAME USER", "ALTER USER", "SET PASSWORD", "SET DEFAULT ROLE"), "UPDATE"
        ),
    }
)
"""Privileges on the database `mysql` that are as good as CREATE USER."""


def _accounts(asked: Asked) -> Iterator[Refusal]:
    tree = asked.facts.tree
    if not isinstance(tree, AccountStatement):
        return
    if tree.verb in {"GRANT", "REVOKE"}:
        if tree.on is not None:
            yield from _granted(asked, tree)
        elif tree.roles:
            yield from _roles(asked, tree)
        else:
            yield from asked.everywhere("CREATE USER")
        return
    own = asked.rights.identity.account
    situation = Situation(is_mariadb=asked.server.is_mariadb, current=own)
    is_own = tree.verb in {"SET PASSWORD", "ALTER USER", "SET DEFAULT ROLE"} and all(
        named(each, {}, situation) == own for each in tree.accounts
    )
    is_role = tree.verb.endswith(" ROLE") and not asked.server.is_mariadb
    has_tables = _ON_TABLES[tree.verb] in asked.rights.in_database(ACCOUNT_DATABASE)
    if is_own or (has_tables and not is_role):
        return
    if tree.verb == "SET PASSWORD" or (asked.server.is_mariadb and tree.verb.startswith("SET")):
        yield asked.denied_database(ACCOUNT_DATABASE)
    elif is_role and tree.verb != "SET DEFAULT ROLE":
        yield from asked.everywhere("CREATE USER", tree.verb)
    else:
        yield from asked.everywhere("CREATE USER")


def _roles(asked: Asked, tree: AccountStatement) -> Iterator[Refusal]:
    """Give the errors of GRANT and REVOKE of roles, which need WITH ADMIN OPTION."""
    is_mariadb, have = asked.server.is_mariadb, asked.rights.at(())
    if have & {"ROLE_ADMIN", "SUPER"} and not is_mariadb:
        return
    for each in tree.roles:
        role = AccountName(each.user, "" if is_mariadb else each.host or "%")
        if any(one.roles.get(role) for one in asked.rights.grantees):
            continue
        if not is_mariadb:
            yield needs("WITH ADMIN, ROLE_ADMIN, SUPER")
        elif role in asked.objects.accounts:
            yield Refusal(
                1698,
                "28000",
                "ER_ACCESS_DENIED_NO_PASSWORD_ERROR",
                f"Access denied for user {asked.account}",
            )


def _granted(asked: Asked, tree: AccountStatement) -> Iterator[Refusal]:
    """Give the errors of a grantor who lacks GRANT OPTION or a privilege that he grants."""
    on = tree.on
    assert on is not None, "the caller has looked"
    database = on.database or asked.database
    names = {one.name for one in tree.privileges}
    wanted = frozenset(names - {"ALL", "USAGE"}) | {GRANT_OPTION}
    if on.name == "*" and on.database == "*":
        if not wanted <= asked.rights.at(()):
            yield asked.denied()
    elif on.name == "*":
        if not wanted <= asked.rights.in_database(database):
            yield asked.denied_database(database)
    elif tree.object_kind == "TABLE":
        yield from asked.tables(wanted, TableName(database, on.name))
    else:
        name = TableName(database, on.name.lower())
        for one in sorted(wanted - asked.rights.on(tree.object_kind, name)):
            yield denied_routine(one, name, asked.account)


_Finder = Callable[[Asked], Iterator[Refusal]]
_FINDERS: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *(StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE),
                *(StatementKind.DELETE, StatementKind.LOAD_DATA, StatementKind.SELECT),
                StatementKind.DO,
            ),
            _rows,
        ),
        StatementKind.CALL: _called,
        StatementKind.SET: _set,
        StatementKind.CREATE_TABLE: _created_table,
        StatementKind.CREATE_TABLE_LIKE: _created_table,
        StatementKind.CREATE_TABLE_SELECT: _created_table,
        StatementKind.CREATE_SEQUENCE: _created_table,
        StatementKind.ALTER_TABLE: _altered_table,
        StatementKind.ALTER_SEQUENCE: _of_table("ALTER"),
        StatementKind.RENAME_TABLE: _renamed_tables,
        StatementKind.DROP_TABLE: _dropped_tables,
        StatementKind.DROP_SEQUENCE: _dropped_tables,
        StatementKind.TRUNCATE_TABLE: _of_table("DROP"),
        StatementKind.CREATE_INDEX: _of_table("INDEX"),
        StatementKind.DROP_INDEX: _of_table("INDEX"),
        StatementKind.CREATE_VIEW: _made_view,
        StatementKind.ALTER_VIEW: _made_view,
        StatementKind.DROP_VIEW: _dropped_views,
        StatementKind.CREATE_TRIGGER: _trigger,
        StatementKind.DROP_TRIGGER: _trigger,
        StatementKind.CREATE_ROUTINE: _in_database_of("CREATE ROUTINE"),
        StatementKind.ALTER_ROUTINE: _of_routine,
        StatementKind.DROP_ROUTINE: _of_routine,
        StatementKind.CREATE_EVENT: _in_database_of("EVENT"),
        StatementKind.ALTER_EVENT: _in_database_of("EVENT"),
        StatementKind.DROP_EVENT: _in_database_of("EVENT"),
        StatementKind.CREATE_DATABASE: _of_database("CREATE"),
        StatementKind.ALTER_DATABASE: _of_database("ALTER"),
        StatementKind.DROP_DATABASE: _of_database("DROP"),
        StatementKind.ACCOUNT: _accounts,
        StatementKind.TABLESPACE: _tablespace,
        StatementKind.MAINTENANCE: _maintained,
        StatementKind.FLUSH: _flushed,
        StatementKind.LOCK: _locked,
        StatementKind.HANDLER: _handled,
        StatementKind.SESSION: _used,
    }
)
