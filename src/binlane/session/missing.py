"""Errors of statements that name what is not there, or make what is: known before they run.

What reads or changes rows finds that out when its tables are resolved; here is all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.disallowed import disallowed, named_in_columns
from binlane.policy.misdeclared import misdeclared
from binlane.policy.misdefined import Parents, misdefined, misreferenced
from binlane.policy.misnamed import column_names, misnamed
from binlane.policy.refusals import (
    NO_DATABASE,
    Refusal,
    no_such_database,
    no_such_routine,
    no_such_table,
    refusal,
)
from binlane.session.ddl import preview
from binlane.session.state import SessionState, SessionStatement
from binlane.sql.facts import TABLE_DROPPING_KINDS, StatementFacts, StatementKind
from binlane.sql.schema import Table
from binlane.sql.table_changes import engine_name
from binlane.sql.tree.definitions import Account, AccountStatement, CreateTable
from binlane.sql.tree.expressions import (
    DerivedTable,
    ObjectName,
    TableReference,
    TableUse,
    walk,
)
from binlane.sql.tree.statements import Delete

_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_TOLERANT: Final = TABLE_DROPPING_KINDS | {
    *(StatementKind.DROP_VIEW, StatementKind.DROP_ROUTINE, StatementKind.DROP_TRIGGER),
    *(StatementKind.DROP_DATABASE, StatementKind.RENAME_TABLE, StatementKind.ALTER_TABLE),
}
"""What MariaDB's sql_if_exists makes tolerate what is missing."""
_PROGRAMS: Final = frozenset(
    (
        *(StatementKind.CREATE_ROUTINE, StatementKind.CREATE_TRIGGER),
        *(StatementKind.CREATE_EVENT, StatementKind.COMPOUND),
    )
)
_MAKES_ANEW: Final = frozenset(("IF NOT EXISTS", "OR REPLACE"))
_BY_VIEW_OR_TABLE: Final = frozenset((StatementKind.LOCK, StatementKind.CREATE_VIEW))


def missing(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The server's error for what a statement names and is not there; None if it has none.

    Args:
        state: The session.
        statement: A statement of which the script states no error.
    """
    kind = statement.facts.effects.kind
    if kind in _TOLERANT and state.variables.is_on("sql_if_exists", default=False):
        return None
    finders = [_FINDERS.get(kind), _EXISTING.get(kind)]
    if state.server.is_mariadb and kind is StatementKind.CREATE_TABLE_LIKE:
        finders.reverse()
    finders.append(_DEFINING.get(kind))
    found = (find(state, statement) for find in finders if find is not None)
    return next((one for one in found if one is not None), None)


def unparsed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The error that the server's parser finds beyond its grammar; None if it has none."""
    facts = statement.facts
    if not statement.succeeds:
        return None
    if isinstance(facts.tree, Delete) and facts.tree.targets is not None:
        return _wrong_target(facts.tree.targets, facts.tree.tables)
    if facts.effects.kind not in _PROGRAMS:
        return None
    return misdeclared(facts, state.objects, server=state.server, database=statement.database)


def _wrong_target(
    targets: Iterable[ObjectName], tables: Iterable[TableReference]
) -> Refusal | None:
    """1066, 1109: what a DELETE of several tables deletes from is there twice, or not at all."""
    uses = [
        node
        for table in tables
        for node in walk(table)
        if isinstance(node, TableUse | DerivedTable)
    ]
    seen: set[tuple[str | None, str]] = set()
    for target in targets:
        key = (target.database, target.name.lower())
        if key in seen:
            return refusal(1066, target.name)
        seen.add(key)
        if not any(_means(target, use) for use in uses):
            return refusal(1109, target.name)
    return None


def _means(target: ObjectName, use: TableUse | DerivedTable) -> bool:
    """Whether a target may be a table of FROM: by its alias, which has no database, or its name."""
    if isinstance(use, DerivedTable) or use.alias is not None:
        return target.database is None and (use.alias or "").lower() == target.name.lower()
    is_same = use.name.database in (None, target.database) or target.database is None
    return is_same and use.name.name.lower() == target.name.lower()


def no_database(statement: SessionStatement) -> Refusal | None:
    """1046: a name without a database where there is no default one, which the parser finds."""
    is_loadable = statement.facts.verb.startswith("DROP FUNCTION")
    if statement.database or is_loadable or all(_databases_meant(statement.facts)):
        return None
    return NO_DATABASE


def _databases_meant(facts: StatementFacts) -> Iterator[str | None]:
    """The databases that a statement names or means; empty or None for the default one."""
    effects, tree = facts.effects, facts.tree
    for name in (*effects.writes, *effects.reads, *effects.objects, *effects.drops):
        yield name.database
    if effects.kind is StatementKind.CALL:
        yield facts.functions[0].database
    elif effects.kind is StatementKind.LOCK:
        yield from (use.name.database for use in facts.tables)
    elif effects.kind is StatementKind.ALTER_DATABASE:
        yield from effects.databases
    elif isinstance(tree, AccountStatement) and tree.on is not None and tree.on.name != "*":
        yield tree.on.database


def _wrong_kind(state: SessionState, name: TableName, kind: str) -> Refusal:
    is_what = "is not of type" if state.server.is_mariadb else "is not"
    shown = f"'{kind}'" if state.server.is_mariadb else kind
    return Refusal(1347, "HY000", "ER_WRONG_OBJECT", f"'{name.plain}' {is_what} {shown}")


def _has_table(state: SessionState, name: TableName) -> bool:
    return (
        state.assume_engine is not None
        or name.database.lower() in _SYSTEM_DATABASES
        or state.objects.table(name) is not None
        or state.objects.is_unknown(name)
    )


def _has_view(state: SessionState, name: TableName) -> bool:
    return state.objects.view(name) is not None


def _has_database(state: SessionState, database: str) -> bool:
    return database.lower() in _SYSTEM_DATABASES or state.objects.has_database(database)


def _tables(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """ALTER TABLE, TRUNCATE, indexes: the table that they are about."""
    effects = statement.facts.effects
    if effects.if_exists or not effects.writes:
        return None
    name = effects.writes[0]
    if _has_table(state, name):
        return None
    is_altered = effects.kind is StatementKind.ALTER_TABLE and not effects.renames
    if is_altered and _has_view(state, name):
        return _wrong_kind(state, name, "BASE TABLE")
    is_view = effects.kind is not StatementKind.TRUNCATE_TABLE and _has_view(state, name)
    return None if is_view else no_such_table(name)


def _renamed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """RENAME TABLE a TO b, c TO a: one after the other."""
    if statement.facts.effects.if_exists:
        return None
    made: set[TableName] = set()
    gone: set[TableName] = set()
    for old, new in statement.facts.effects.renames:
        exists = _has_table(state, old) or _has_view(state, old)
        if old not in made and (old in gone or not exists):
            return no_such_table(old)
        made.discard(old)
        gone.add(old)
        made.add(new)
    return None


def _read(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE … LIKE, CREATE VIEW and LOCK TABLES: what they look at."""
    effects = statement.facts.effects
    refusal = _database_of_objects(state, statement)
    if refusal is not None:
        return refusal
    names = effects.reads
    if effects.kind is StatementKind.LOCK:
        names = tuple(use.name for use in statement.facts.tables)
    for name in names:
        is_view = _has_view(state, name)
        if is_view and effects.kind is StatementKind.CREATE_TABLE_LIKE:
            return _wrong_kind(state, name, "BASE TABLE")
        is_view = is_view and effects.kind in _BY_VIEW_OR_TABLE
        if not is_view and not _has_table(state, name):
            return no_such_table(name)
    return None


def _trigger_table(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    if effects.writes and not _has_table(state, effects.writes[0]):
        if _has_view(state, effects.writes[0]):
            return None
        return no_such_table(effects.writes[0])
    return None


def _database_of_objects(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE: the database that gets the object."""
    effects = statement.facts.effects
    for name in (*effects.writes, *effects.objects):
        if name.database and not _has_database(state, name.database):
            return no_such_database(name.database)
    return None


def _dropped_tables(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    if effects.if_exists:
        return None
    names = effects.drops or effects.writes
    absent = [name for name in names if _is_absent(state, statement, name)]
    is_view = not effects.is_temporary and _has_view(state, names[0])
    if is_view and len(names) == 1 and state.server.is_mariadb and not _has_table(state, names[0]):
        return Refusal(1965, "42S02", "ER_IT_IS_A_VIEW", f"'{names[0].plain}' is a view")
    if not absent:
        return None
    listed = ",".join(name.plain for name in absent)
    if effects.kind is StatementKind.DROP_SEQUENCE:
        return Refusal(4091, "42S02", "ER_UNKNOWN_SEQUENCES", f"Unknown SEQUENCE: '{listed}'")
    return Refusal(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{listed}'")


def _is_absent(state: SessionState, statement: SessionStatement, name: TableName) -> bool:
    table = state.objects.table(name)
    if statement.facts.effects.is_temporary:
        return table is None or not table.is_temporary
    is_view = state.server.is_mariadb and _has_view(state, name)
    return not is_view and not _has_table(state, name)


def _dropped_views(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    absent = [name for name in effects.objects if not _has_view(state, name)]
    tables = [name for name in absent if state.objects.base_table(name) is not None]
    if tables and not state.server.is_mariadb:
        return _wrong_kind(state, tables[0], "VIEW")
    if effects.if_exists or not absent:
        return None
    listed = ",".join(name.plain for name in absent)
    if state.server.is_mariadb:
        return Refusal(4092, "42S02", "ER_UNKNOWN_VIEW", f"Unknown VIEW: '{listed}'")
    return Refusal(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{listed}'")


def _altered_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    for name in statement.facts.effects.objects:
        if not _has_view(state, name) and not _has_table(state, name):
            return no_such_table(name)
    return None


def _routines(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    if effects.if_exists:
        return None
    is_function = "FUNCTION" in statement.facts.verb
    for name in effects.objects:
        found = state.objects.function(name) if is_function else state.objects.procedure(name)
        is_loadable = is_function and state.objects.is_loadable_function(name.table)
        if found is None and not is_loadable and name.database.lower() not in _SYSTEM_DATABASES:
            kind = "FUNCTION" if is_function else "PROCEDURE"
            return no_such_routine(kind if name.database else f"{kind} (UDF)", name)
    return None


def _triggers(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    if effects.if_exists or all(state.objects.trigger(name) for name in effects.objects):
        return None
    return Refusal(1360, "HY000", "ER_TRG_DOES_NOT_EXIST", "Trigger does not exist")


def _events(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    # Behind the first one stands its new name.
    for name in effects.objects[:1]:
        if not effects.if_exists and not state.objects.event(name):
            message = f"Unknown event '{name.table}'"
            return Refusal(1539, "HY000", "ER_EVENT_DOES_NOT_EXIST", message)
    return None


def _databases(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    for name in effects.databases:
        if not effects.if_exists and not _has_database(state, name):
            message = f"Can't drop database '{name}'; database doesn't exist"
            return Refusal(1008, "HY000", "ER_DB_DROP_EXISTS", message)
    return None


def _altered_databases(state: SessionState, statement: SessionStatement) -> Refusal | None:
    for name in statement.facts.effects.databases:
        if name and not _has_database(state, name):
            if state.server.is_mariadb:
                return no_such_database(name)
            message = f"Database '{name}' doesn't exist"
            return Refusal(3503, "HY000", "ER_DATABASE_NOT_FOUND", message)
    return None


def _used(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """USE."""
    facts = statement.facts
    if facts.verb != "USE" or _has_database(state, facts.name):
        return None
    return no_such_database(facts.name)


def _opened(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """HANDLER … OPEN."""
    names: Iterator[TableName] = iter(statement.facts.effects.reads)
    return next((no_such_table(name) for name in names if not _has_table(state, name)), None)


# What is there already ----------------------------------------------------------------------------


def _table_exists(name: TableName) -> Refusal:
    return Refusal(1050, "42S01", "ER_TABLE_EXISTS_ERROR", f"Table '{name.table}' already exists")


def _is_taken(state: SessionState, name: TableName) -> bool:
    """Whether a table that is not temporary, or a view, has a name."""
    return state.objects.base_table(name) is not None or _has_view(state, name)


def _made_table(
    state: SessionState, statement: SessionStatement, *, is_tolerant: bool = True
) -> Refusal | None:
    effects, name = statement.facts.effects, statement.facts.effects.writes[0]
    if is_tolerant and (effects.if_exists or statement.facts.is_or_replace):
        return None
    if effects.is_temporary:
        table = state.objects.table(name)
        is_taken = table is not None and table.is_temporary
    else:
        is_taken = _is_taken(state, name)
    return _table_exists(name) if is_taken else None


def _made_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    for name in effects.objects:
        is_table = state.objects.base_table(name) is not None
        if is_table and statement.facts.is_or_replace:
            return _wrong_kind(state, name, "VIEW")
        if effects.if_exists or statement.facts.is_or_replace:
            return None
        if is_table or _has_view(state, name):
            return _table_exists(name)
    return None


def _made_program(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Routines, triggers and events."""
    facts, objects = statement.facts, state.objects
    if facts.effects.if_exists or facts.is_or_replace:
        return None
    for name in facts.effects.objects:
        if facts.effects.kind is StatementKind.CREATE_TRIGGER:
            if objects.trigger(name) is not None:
                return Refusal(1359, "HY000", "ER_TRG_ALREADY_EXISTS", "Trigger already exists")
        elif facts.effects.kind is StatementKind.CREATE_EVENT:
            if objects.event(name):
                message = f"Event '{name.table}' already exists"
                return Refusal(1537, "HY000", "ER_EVENT_ALREADY_EXISTS", message)
        else:
            kind = "FUNCTION" if "FUNCTION" in facts.verb else "PROCEDURE"
            known = objects.function(name) if kind == "FUNCTION" else objects.procedure(name)
            if known is not None:
                message = f"{kind} {name.table} already exists"
                return Refusal(1304, "42000", "ER_SP_ALREADY_EXISTS", message)
    return None


def _made_database(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    for name in effects.databases:
        is_made_anew = effects.if_exists or statement.facts.is_or_replace
        if not is_made_anew and _has_database(state, name):
            message = f"Can't create database '{name}'; database exists"
            return Refusal(1007, "HY000", "ER_DB_CREATE_EXISTS", message)
    return None


def _accounts(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Accounts that are there already; what is not there is known where the schema has accounts."""
    tree = statement.facts.tree
    if not isinstance(tree, AccountStatement):
        return None
    named = [_account(account) for account in tree.accounts if not account.is_current]
    is_there = [state.objects.has_account(name) for name in named]
    operation = f"Operation {tree.verb} failed"
    failed = Refusal(1396, "HY000", "ER_CANNOT_USER", operation)
    if tree.verb in ("CREATE USER", "CREATE ROLE"):
        return failed if any(is_there) and not tree.options & _MAKES_ANEW else None
    if tree.verb == "RENAME USER" and any(is_there[1::2]):
        return failed
    if not state.knows_accounts or "IF EXISTS" in tree.options or all(is_there):
        return None
    if tree.verb == "RENAME USER":
        return None if all(is_there[::2]) else failed
    if tree.verb in ("DROP USER", "DROP ROLE", "ALTER USER"):
        return failed
    if tree.verb == "SET PASSWORD" or (tree.verb == "GRANT" and state.server.is_mariadb):
        message = "Can't find any matching row in the user table"
        return Refusal(1133, "28000", "ER_PASSWORD_NO_MATCH", message)
    if tree.verb == "GRANT" and not tree.roles:
        message = "You are not allowed to create a user with GRANT"
        return Refusal(1410, "42000", "ER_CANT_CREATE_USER_WITH_GRANT", message)
    if tree.verb == "REVOKE" and tree.on is not None and not any(is_there):
        return _no_grant(state, tree)
    return None


def _no_grant(state: SessionState, tree: AccountStatement) -> Refusal | None:
    """1141, or 1147 and 1403 as MySQL has them: a REVOKE from an account that is not there."""
    if "IGNORE UNKNOWN USER" in tree.options or tree.on is None:
        return None
    account = tree.accounts[0]
    host = "%" if account.host is None else account.host
    message = f"There is no such grant defined for user '{account.user}' on host '{host}'"
    if state.server.is_mariadb or tree.on.name == "*":
        return Refusal(1141, "42000", "ER_NONEXISTING_GRANT", message)
    if tree.object_kind in ("PROCEDURE", "FUNCTION"):
        message += f" on routine '{tree.on.name}'"
        return Refusal(1403, "42000", "ER_NONEXISTING_PROC_GRANT", message)
    message += f" on table '{tree.on.name}'"
    return Refusal(1147, "42000", "ER_NONEXISTING_TABLE_GRANT", message)


def _account(account: Account) -> str:
    return f"{account.user}@{'%' if account.host is None else account.host}"


def _new_names(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """RENAME, and ALTER TABLE … RENAME."""
    gone: set[TableName] = set()
    for old, new in statement.facts.effects.renames:
        table = state.objects.table(old)
        is_temporary = table is not None and table.is_temporary
        if statement.facts.effects.kind is StatementKind.RENAME_TABLE:
            is_temporary = is_temporary and state.server.is_mariadb
        if old != new and not is_temporary and new not in gone and _is_taken(state, new):
            return _table_exists(new)
        gone.discard(new)
        gone.add(old)
    return None


# What is wrong with a definition -------------------------------------------------------------------


def _misdefined(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Tables and their keys."""
    facts, tree = statement.facts, statement.facts.tree
    table: Table | None = None
    selected: list[str] | None = []
    if not isinstance(tree, CreateTable):
        table = state.objects.table(facts.effects.writes[0])
    elif facts.effects.if_exists and _made_table(state, statement, is_tolerant=False) is not None:
        return None
    elif tree.query is not None:
        selected = column_names(
            tree.query, facts, state.objects, server=state.server, database=statement.database
        )
    engine = state.variables.text("default_storage_engine") or "InnoDB"
    error = disallowed(facts, state.objects, server=state.server, database=statement.database)
    error = error or misdefined(
        facts, table, server=state.server, engine=engine_name(engine), selected=selected
    )
    return error or _misreferenced(state, statement, table) or _misexpressed(state, statement)


def _misexpressed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Columns that expressions of columns name."""
    named = named_in_columns(statement.facts, state.server)
    child = preview(state, statement, statement.facts.effects.writes[0]) if named else None
    if child is None or not child.is_complete:
        return None
    columns = {column.name.lower() for column in child.definition.columns}
    unknown = (refusal(1054, *one) for one in named if one[0].lower() not in columns)
    return next(unknown, None)


def _misreferenced(
    state: SessionState, statement: SessionStatement, before: Table | None
) -> Refusal | None:
    """Foreign keys."""
    facts = statement.facts
    is_new = isinstance(facts.tree, CreateTable)
    is_select = facts.effects.kind is StatementKind.CREATE_TABLE_SELECT
    if "REFERENCES" not in facts.text.upper() or (before is None and not is_new):
        return None
    if is_select and not state.server.is_mariadb:
        return None  # which MySQL refuses for another reason
    child = preview(state, statement, facts.effects.writes[0])
    if child is None:
        return None

    def parent(name: TableName) -> Table | None:
        found, visible = state.objects.base_table(name), state.objects.table(name)
        is_hidden = visible is not None and visible.is_temporary
        if found is None and not is_hidden and (_has_table(state, name) or not name.database):
            raise LookupError(name)
        if found is not None and not found.is_complete:
            raise LookupError(name)
        return found

    variables = state.variables
    must_be_unique = variables.is_on("restrict_fk_on_non_standard_key", default=True)
    checks = variables.settings.checks_foreign_keys
    parents = Parents(
        server=state.server, find=parent, checks=checks, must_be_unique=must_be_unique
    )
    return misreferenced(facts, before, child, parents)


def _misnamed_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The query of a view."""
    if state.assume_engine is not None:
        return None
    return misnamed(
        statement.facts, state.objects, server=state.server, database=statement.database
    )


_Finder = Callable[[SessionState, SessionStatement], Refusal | None]
_FINDERS: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        StatementKind.ALTER_TABLE: _tables,
        StatementKind.TRUNCATE_TABLE: _tables,
        StatementKind.CREATE_INDEX: _tables,
        StatementKind.DROP_INDEX: _tables,
        StatementKind.ALTER_SEQUENCE: _tables,
        StatementKind.RENAME_TABLE: _renamed,
        StatementKind.CREATE_TABLE: _database_of_objects,
        StatementKind.CREATE_SEQUENCE: _database_of_objects,
        StatementKind.CREATE_ROUTINE: _database_of_objects,
        StatementKind.CREATE_EVENT: _database_of_objects,
        StatementKind.CREATE_TABLE_LIKE: _read,
        StatementKind.CREATE_VIEW: _read,
        StatementKind.LOCK: _read,
        StatementKind.CREATE_TRIGGER: _trigger_table,
        StatementKind.DROP_TABLE: _dropped_tables,
        StatementKind.DROP_SEQUENCE: _dropped_tables,
        StatementKind.DROP_VIEW: _dropped_views,
        StatementKind.ALTER_VIEW: _altered_view,
        StatementKind.DROP_ROUTINE: _routines,
        StatementKind.ALTER_ROUTINE: _routines,
        StatementKind.DROP_TRIGGER: _triggers,
        StatementKind.DROP_EVENT: _events,
        StatementKind.ALTER_EVENT: _events,
        StatementKind.DROP_DATABASE: _databases,
        StatementKind.ALTER_DATABASE: _altered_databases,
        StatementKind.SESSION: _used,
        StatementKind.HANDLER: _opened,
    }
)
_EXISTING: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        StatementKind.CREATE_TABLE: _made_table,
        StatementKind.CREATE_TABLE_LIKE: _made_table,
        StatementKind.CREATE_TABLE_SELECT: _made_table,
        StatementKind.CREATE_SEQUENCE: _made_table,
        StatementKind.CREATE_VIEW: _made_view,
        StatementKind.CREATE_ROUTINE: _made_program,
        StatementKind.CREATE_TRIGGER: _made_program,
        StatementKind.CREATE_EVENT: _made_program,
        StatementKind.CREATE_DATABASE: _made_database,
        StatementKind.RENAME_TABLE: _new_names,
        StatementKind.ALTER_TABLE: _new_names,
        StatementKind.ACCOUNT: _accounts,
    }
)
_DEFINING: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT),
                *(StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX),
            ),
            _misdefined,
        ),
        **dict.fromkeys((StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW), _misnamed_view),
    }
)
