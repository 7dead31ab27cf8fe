"""Privileges that statements need, and the servers' errors for an account that lacks them.

Source: MariaDB 10.11 and MySQL 9.7: sql/sql_parse.cc `*_precheck`, `check_access`, `check_table_access`;
sql/sql_acl.cc, sql/auth/sql_authorization.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import ACCOUNT_DATABASE, TableName
from binlane.statements.policy.refusals import Refusal
from binlane.statements.predicted_errors.account_rights import (
    SYSTEM_DATABASES,
    PrivilegeCheck,
    denied_routine,
    needs,
)
from binlane.statements.predicted_errors.row_privileges import (
    ANY_OF_ROWS,
    SELECT,
    called,
    in_order,
    row_privileges,
    used_columns,
)
from binlane.statements.sql.accounts import (
    GRANT_OPTION,
    TABLE_PRIVILEGES,
    AccountName,
    Situation,
    named,
)
from binlane.statements.sql.facts import VariableScope
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import AlterTable, CreateTable
from binlane.statements.sql.tree.expressions import Star

_NEW_NAME: Final = frozenset(("CREATE", "INSERT"))
_OLD_NAME: Final = frozenset(("ALTER", "DROP"))


# Statements -----------------------------------------------------------------------------------


def denied(check: PrivilegeCheck) -> Refusal | None:
    """Return the refusal to run a statement at all, before its tables are opened; None if it is allowed."""
    facts = check.facts
    finder = _FINDERS.get(facts.effects.kind)
    found = None if finder is None else next(finder(check), None)
    return found or next(_definer(check), None)


# Definitions ----------------------------------------------------------------------------------


def _created_table(check: PrivilegeCheck) -> Iterator[Refusal]:
    facts, effects = check.facts, check.facts.effects
    name = effects.writes[0]
    if effects.is_temporary:
        yield from check.in_database("CREATE TEMPORARY TABLES", name.database)
    else:
        wanted = {"CREATE"}
        if effects.kind is StatementKind.CREATE_TABLE_SELECT:
            wanted.add("INSERT")
        if facts.effects.is_or_replace:
            wanted.add("DROP")
        yield from check.tables(frozenset(wanted), name)
    tree = facts.tree
    if effects.kind is StatementKind.CREATE_TABLE_SELECT:
        read = [use.name for use in facts.tables if not use.changes and use.name != name]
        yield from check.tables(SELECT, *read)
    elif effects.kind is StatementKind.CREATE_TABLE_LIKE:
        yield from check.tables(SELECT, *effects.reads)
    elif isinstance(tree, CreateTable):
        yield from _parents(check)


def _altered_table(check: PrivilegeCheck) -> Iterator[Refusal]:
    facts, effects = check.facts, check.facts.effects
    tree = facts.tree
    wanted = {"ALTER"}
    if effects.renames or (isinstance(tree, AlterTable) and _drops_partitions(tree)):
        wanted.add("DROP")
    yield from check.tables(frozenset(wanted), effects.writes[0])
    yield from check.tables(_NEW_NAME, *(new for _, new in effects.renames))
    yield from _parents(check)


def _parents(check: PrivilegeCheck) -> Iterator[Refusal]:
    """The tables that foreign keys refer to: for MariaDB any privilege on their rows is enough."""
    wanted = frozenset(("REFERENCES",))
    for name in check.facts.effects.reads:
        if not check.server.is_mariadb or not check.rights.on("TABLE", name) & (
            ANY_OF_ROWS | wanted
        ):
            yield from check.tables(wanted, name)


def _drops_partitions(tree: AlterTable) -> bool:
    return any(
        action.kind == "PARTITION" and action.words[:1] in (("DROP",), ("TRUNCATE",))
        for action in tree.actions
    )


def _renamed_tables(check: PrivilegeCheck) -> Iterator[Refusal]:
    for old, new in check.facts.effects.renames:
        yield from check.tables(_OLD_NAME, old)
        yield from check.tables(_NEW_NAME, new)


def _dropped_tables(check: PrivilegeCheck) -> Iterator[Refusal]:
    effects = check.facts.effects
    for name in effects.drops or effects.writes:
        table = check.objects.table(name)
        is_temporary = table is not None and table.is_temporary
        if effects.is_temporary or is_temporary:
            if check.server.is_mariadb and effects.is_temporary:
                yield from check.in_database("CREATE TEMPORARY TABLES", name.database)
        else:
            yield from check.tables(frozenset(("DROP",)), name)


def _of_table(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege on its table."""
    return lambda check: check.tables(frozenset((privilege,)), *check.facts.effects.writes[:1])


def _of_database(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege in the databases that it names."""

    def find(check: PrivilegeCheck) -> Iterator[Refusal]:
        effects = check.facts.effects
        names = effects.databases or tuple(name.database for name in effects.objects)
        return check.in_database(privilege, *names)

    return find


def _in_database_of(privilege: str) -> _Finder:
    """Return the check of a statement that needs one privilege in the databases of its objects."""
    return lambda check: check.in_database(
        privilege, *(name.database for name in check.facts.effects.objects)
    )


def _of_routine(check: PrivilegeCheck) -> Iterator[Refusal]:
    is_function, names = "FUNCTION" in check.facts.verb, check.facts.effects.objects
    kind = "FUNCTION" if is_function else "PROCEDURE"
    yield from check.routines("ALTER ROUTINE", kind, *names)
    find = check.objects.function if is_function else check.objects.procedure
    for routine in filter(None, map(find, names)):
        definer = check.objects.accounts.get(routine.definer)
        is_system = definer is None or "SYSTEM_USER" in definer.privileges.get((), ())
        if is_system and not check.server.is_mariadb:
            yield from check.everywhere("SYSTEM_USER")


def _made_view(check: PrivilegeCheck) -> Iterator[Refusal]:
    facts, effects = check.facts, check.facts.effects
    wanted = {"CREATE VIEW"}
    if facts.effects.is_or_replace or effects.kind is StatementKind.ALTER_VIEW:
        wanted.add("DROP")
    yield from check.tables(frozenset(wanted), *effects.objects[:1])
    for name in effects.reads:
        have = check.rights.on("TABLE", name)
        if have & ANY_OF_ROWS:
            continue
        if not check.rights.on_columns(name) & ANY_OF_ROWS:
            yield check.denied_table(ANY_OF_ROWS, name)
        tree = facts.tree
        has_star = any(isinstance(node, Star) for node, _ in in_order(tree, None))
        for use in facts.tables:
            used = used_columns(tree, use, check) if use.name == name else ()
            for _, column in used:
                if not check.rights.on_column(name, column) & ANY_OF_ROWS and has_star:
                    yield check.denied_table(ANY_OF_ROWS, name)
                elif not check.rights.on_column(name, column) & ANY_OF_ROWS:
                    yield check.denied_column("create view", column, name)


def _dropped_views(check: PrivilegeCheck) -> Iterator[Refusal]:
    return check.tables(frozenset(("DROP",)), *check.facts.effects.objects)


def _trigger(check: PrivilegeCheck) -> Iterator[Refusal]:
    effects = check.facts.effects
    tables = effects.writes[:1]
    if effects.kind is StatementKind.DROP_TRIGGER:
        found = (check.objects.trigger(name) for name in effects.objects)
        tables = tuple(trigger.table for trigger in found if trigger is not None)
    return check.tables(frozenset(("TRIGGER",)), *tables)


def _locked(check: PrivilegeCheck) -> Iterator[Refusal]:
    facts = check.facts
    return check.tables(
        frozenset(("SELECT", "LOCK TABLES")), *(use.name for use in facts.tables if use.lock)
    )


def _maintained(check: PrivilegeCheck) -> Iterator[Refusal]:
    verb = check.facts.verb
    if verb.startswith(("ANALYZE", "OPTIMIZE", "REPAIR")):
        names = (*check.facts.effects.writes, *check.facts.effects.reads)
        return check.tables(frozenset(("SELECT", "INSERT")), *names)
    wanted = SELECT
    if verb.startswith("CHECK ") and check.server.is_mariadb:
        return _checked(check)
    if not verb.startswith("CHECK"):
        wanted = frozenset()
    return check.tables(wanted, *check.facts.effects.writes, *check.facts.effects.reads)


def _checked(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the errors of MariaDB's CHECK TABLE, which needs any privilege on the table."""
    for name in (*check.facts.effects.writes, *check.facts.effects.reads):
        if not (check.rights.on("TABLE", name) | check.rights.on_columns(name)) & TABLE_PRIVILEGES:
            yield check.denied_table(frozenset(("CHECK TABLE",)), name)


def _handled(check: PrivilegeCheck) -> Iterator[Refusal]:
    return check.tables(SELECT, *check.facts.effects.reads)


def _used(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the error of USE for a database where the account may use nothing."""
    name = check.facts.name
    is_open = name.lower() in SYSTEM_DATABASES
    if check.facts.verb == "USE" and not is_open and not check.rights.reaches(name):
        yield check.denied_database(name)


def _flushed(check: PrivilegeCheck) -> Iterator[Refusal]:
    return check.everywhere("RELOAD")


def _tablespace(check: PrivilegeCheck) -> Iterator[Refusal]:
    return check.everywhere("CREATE TABLESPACE")


def _definer(check: PrivilegeCheck) -> Iterator[Refusal]:
    """Give the errors of DEFINER with another account."""
    definer = getattr(check.facts.tree, "definer", None)
    own, server = check.rights.identity.account, check.server
    if definer is None:
        return
    situation = Situation(is_mariadb=server.is_mariadb, current=own)
    if named(definer, check.objects.accounts, situation) == own:
        return
    if not server.is_mariadb:
        is_new = server.version >= (8, 2)
        any_of = ("SUPER", "SET_ANY_DEFINER" if is_new else "SET_USER_ID")
        yield from check.everywhere(*any_of, joint=" or ")
    elif server.version >= (11,):
        yield from check.everywhere("SET USER")
    else:
        yield from check.everywhere("SUPER", "SET USER")


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


def _set(check: PrivilegeCheck) -> Iterator[Refusal]:
    yield from row_privileges(check)
    for one in (*check.facts.statement_assignments, *check.facts.assignments):
        yield from _assigned(check, one.name, is_global=one.scope in _GLOBAL)


def _assigned(check: PrivilegeCheck, name: str, *, is_global: bool) -> Iterator[Refusal]:
    server = check.server
    if is_global and not server.is_mariadb:
        yield from check.everywhere("SUPER", "SYSTEM_VARIABLES_ADMIN", joint=" or ")
        return
    lists = _OF_GLOBALS if is_global else _SESSION[server.flavor]
    shown = next((each for each, names in lists.items() if name in names), "")
    if name == "read_only" and is_global:
        yield from check.everywhere("READ_ONLY ADMIN")
    elif shown or is_global:
        wanted = shown.replace(" or ", ", ").split(", ") if shown else ()
        is_split = server.is_mariadb and server.version >= (11,) and wanted
        joint = f", {shown}" if shown else ""
        yield from check.everywhere(
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


def _accounts(check: PrivilegeCheck) -> Iterator[Refusal]:
    tree = check.facts.tree
    if not isinstance(tree, AccountStatement):
        return
    if tree.verb in {"GRANT", "REVOKE"}:
        if tree.on is not None:
            yield from _granted(check, tree)
        elif tree.roles:
            yield from _roles(check, tree)
        else:
            yield from check.everywhere("CREATE USER")
        return
    own = check.rights.identity.account
    situation = Situation(is_mariadb=check.server.is_mariadb, current=own)
    is_own = tree.verb in {"SET PASSWORD", "ALTER USER", "SET DEFAULT ROLE"} and all(
        named(each, {}, situation) == own for each in tree.accounts
    )
    is_role = tree.verb.endswith(" ROLE") and not check.server.is_mariadb
    has_tables = _ON_TABLES[tree.verb] in check.rights.in_database(ACCOUNT_DATABASE)
    if is_own or (has_tables and not is_role):
        return
    if tree.verb == "SET PASSWORD" or (check.server.is_mariadb and tree.verb.startswith("SET")):
        yield check.denied_database(ACCOUNT_DATABASE)
    elif is_role and tree.verb != "SET DEFAULT ROLE":
        yield from check.everywhere("CREATE USER", tree.verb)
    else:
        yield from check.everywhere("CREATE USER")


def _roles(check: PrivilegeCheck, tree: AccountStatement) -> Iterator[Refusal]:
    """Give the errors of GRANT and REVOKE of roles, which need WITH ADMIN OPTION."""
    is_mariadb, have = check.server.is_mariadb, check.rights.at(())
    if have & {"ROLE_ADMIN", "SUPER"} and not is_mariadb:
        return
    for each in tree.roles:
        role = AccountName(each.user, "" if is_mariadb else each.host or "%")
        if any(one.roles.get(role) for one in check.rights.grantees):
            continue
        if not is_mariadb:
            yield needs("WITH ADMIN, ROLE_ADMIN, SUPER")
        elif role in check.objects.accounts:
            yield Refusal(
                1698,
                "28000",
                "ER_ACCESS_DENIED_NO_PASSWORD_ERROR",
                f"Access denied for user {check.account}",
            )


def _granted(check: PrivilegeCheck, tree: AccountStatement) -> Iterator[Refusal]:
    """Give the errors of a grantor who lacks GRANT OPTION or a privilege that he grants."""
    on = tree.on
    assert on is not None, "the caller has looked"
    database = on.database or check.database
    names = {one.name for one in tree.privileges}
    wanted = frozenset(names - {"ALL", "USAGE"}) | {GRANT_OPTION}
    if on.name == "*" and on.database == "*":
        if not wanted <= check.rights.at(()):
            yield check.denied()
    elif on.name == "*":
        if not wanted <= check.rights.in_database(database):
            yield check.denied_database(database)
    elif tree.object_kind == "TABLE":
        yield from check.tables(wanted, TableName(database, on.name))
    else:
        name = TableName(database, on.name.lower())
        for one in sorted(wanted - check.rights.on(tree.object_kind, name)):
            yield denied_routine(one, name, check.account)


_Finder = Callable[[PrivilegeCheck], Iterator[Refusal]]
_FINDERS: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *(StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE),
                *(StatementKind.DELETE, StatementKind.LOAD_DATA, StatementKind.SELECT),
                StatementKind.DO,
            ),
            row_privileges,
        ),
        StatementKind.CALL: called,
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
