"""Errors of statements that name what is not there, or make what is: known before they run.

What reads or changes rows finds that out when its tables are resolved; here is all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, folded
from binlane.statements.policy.lock_list import is_made
from binlane.statements.policy.misconstrained import (
    checks_unknown,
    misconstrained,
    miscopied,
    misrenamed,
)
from binlane.statements.policy.misdeclared import (
    disallowed,
    disallowed_in_key,
    misdeclared,
    named_in_columns,
)
from binlane.statements.policy.misdefined import Parents, misdefined, misreferenced
from binlane.statements.policy.misgenerated import (
    changed_otherwise,
    needed,
    uninitialized,
    unversioned,
)
from binlane.statements.policy.misnamed import column_names, misnamed
from binlane.statements.policy.privileges import denied
from binlane.statements.policy.reasons import added_unsafe_defaults
from binlane.statements.policy.refusals import (
    NO_DATABASE,
    Refusal,
    no_such_database,
    no_such_routine,
    no_such_sequence,
    no_such_table,
    refusal,
    unsafe_default_is_added,
)
from binlane.statements.session.lock_refusals import is_unsafe_default_added
from binlane.statements.session.object_consequences import preview
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transactions import begins_transaction
from binlane.statements.sql.accounts import (
    DATABASE_PRIVILEGES,
    ROUTINE_PRIVILEGES,
    TABLE_PRIVILEGES,
    change,
    is_dynamic,
)
from binlane.statements.sql.facts import (
    DDL_KINDS,
    TABLE_DROPPING_KINDS,
    TABLE_MAKING_KINDS,
    StatementFacts,
    StatementKind,
)
from binlane.statements.sql.schema import Table, body_of, small
from binlane.statements.sql.servers import Fact
from binlane.statements.sql.table_changes import engine_name, named_engine
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.definitions import (
    AccountStatement,
    CreateRoutine,
    CreateTable,
    ObjectStatement,
)
from binlane.statements.sql.tree.expressions import (
    Call,
    DerivedTable,
    Join,
    ObjectName,
    Select,
    TableReference,
    TableUse,
    walk,
)
from binlane.statements.sql.tree.statements import Administration, CallProcedure, Delete, Update

_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_TOLERANT: Final = TABLE_DROPPING_KINDS | {
    *(StatementKind.DROP_VIEW, StatementKind.DROP_ROUTINE, StatementKind.DROP_TRIGGER),
    *(StatementKind.DROP_DATABASE, StatementKind.RENAME_TABLE, StatementKind.ALTER_TABLE),
}
"""What MariaDB's sql_if_exists makes tolerate what is missing."""
OPEN_OR_RUN: Final = frozenset(
    (
        *(StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE),
        *(StatementKind.LOAD_DATA, StatementKind.SELECT, StatementKind.DO, StatementKind.SET),
        *(StatementKind.CALL, StatementKind.CREATE_TABLE_SELECT),
    )
)
"""What comes to nothing where it is denied; others commit first what is open."""
_PROGRAMS: Final = frozenset(
    (
        *(StatementKind.CREATE_ROUTINE, StatementKind.CREATE_TRIGGER),
        *(StatementKind.CREATE_EVENT, StatementKind.COMPOUND),
    )
)
_BY_VIEW_OR_TABLE: Final = frozenset((StatementKind.LOCK, StatementKind.CREATE_VIEW))


def missing(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The server's error for what a statement names and is not there; None if it has none.

    Args:
        state: State of the session that runs it.
        statement: A statement of which the script states no error, or another one.
    """
    kind = statement.facts.effects.kind
    asked = None if kind in OPEN_OR_RUN else state.asked(statement.facts, statement.database)
    if asked is not None and (refusal := denied(asked)) is not None:
        return refusal
    if kind in _TOLERANT and state.variables.is_on("sql_if_exists", default=False):
        return None
    if (refusal := _added_default(state, statement)) is not None:
        return refusal
    finders = [_FINDERS.get(kind), _EXISTING.get(kind)]
    if state.server.is_mariadb and kind is StatementKind.CREATE_TABLE_LIKE:
        finders.reverse()
    # The query of a view is prepared before it is asked whether there is one.
    finders.insert(1 if kind is StatementKind.CREATE_VIEW else 2, _DEFINING.get(kind))
    found = (find(state, statement) for find in finders if find is not None)
    return next((one for one in found if one is not None), None)


def _added_default(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """1674: MySQL logs no ALTER TABLE as rows, and looks at no table before it says so."""
    if not is_unsafe_default_added(state, statement.facts):
        return None
    found = next(added_unsafe_defaults(statement.facts, state.server))
    return unsafe_default_is_added(found, state.server)


_OF_THE_PARSER: Final = frozenset(
    {
        *(1064, 1115, 1253, 1273, 1303, 1314, 1319, 1320, 1324, 1327, 1330, 1331, 1332, 1333),
        *(1337, 1338, 1351, 1363, 1413, 1415, 1422, 1479, 1480, 1492, 1901),
        *range(1308, 1311),
    }
)
"""Errors of definitions before which a server has done nothing, and has committed nothing."""
_OF_MARIADBS_PARSER: Final = frozenset((1294, 4128))
"""Likewise, of MariaDB: ON UPDATE of what is no time, and what no partition may be made of."""


_NAMED_TWICE: Final = 1066
_STORED_OTHERWISE: Final = 3106
_LISTING: Final = TABLE_DROPPING_KINDS | {
    *(StatementKind.DROP_VIEW, StatementKind.MAINTENANCE, StatementKind.FLUSH),
}
"""Statements of which the parser takes no table twice."""
_ADMINISTERED: Final = ("CHECKSUM TABLE", "CHECK TABLE")
"""Likewise, which are about no table that is written."""


def is_stated_of_parser(statement: SessionStatement) -> bool:
    """Return True if the script states that the server's parser refuses a definition."""
    kind = statement.facts.effects.kind
    is_definition = kind in DDL_KINDS or kind in TABLE_MAKING_KINDS
    of_mariadb = () if statement.facts.dialect.flavor == "mysql" else _OF_MARIADBS_PARSER
    errno = statement.outcome.error
    return is_definition and (errno in _OF_THE_PARSER or errno in of_mariadb)


def unparsed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The error that the server's parser finds beyond its grammar; None if it has none."""
    facts = statement.facts
    if isinstance(facts.tree, CallProcedure) and facts.tree.at == facts.tree.name.at:
        return None if statement.is_inner else _NO_STATEMENT
    if facts.is_or_replace and state.server.is_mariadb and _is_left_too(facts):
        return _REPLACED_OR_LEFT
    if (name := _named_twice(facts, statement.database)) is not None:
        return refusal(_NAMED_TWICE, name)
    if not statement.succeeds:
        return None
    if isinstance(facts.tree, CreateTable) and facts.tree.is_external:
        return _wrong_external(facts.tree)
    is_program = facts.effects.kind in _PROGRAMS
    if is_program or isinstance(facts.tree, Delete):
        deletes = (node for node in walk(facts.tree) if isinstance(node, Delete))
        wrong = (_wrong_target(node, statement) for node in deletes)
        if (error := next(filter(None, wrong), None)) is not None:
            return error
    if not is_program:
        return None
    return misdeclared(facts, state.objects, server=state.server, database=statement.database)


def _named_twice(facts: StatementFacts, database: str) -> str | None:
    """The first name that two tables of one list or one FROM have; None if there is none."""
    uses = facts.tables
    if isinstance(facts.tree, Administration) and facts.tree.verb in _ADMINISTERED:
        return _first_twice(
            TableName(one.database or database, one.name) for one in facts.tree.tables
        )
    if facts.effects.kind is StatementKind.CREATE_VIEW:
        return None  # which is an error where the view is read
    if len(uses) <= 1 or len({(use.name.database, use.alias) for use in uses}) == len(uses):
        return None
    if facts.effects.kind in _LISTING:
        return _first_twice(use.name for use in uses)
    for node in walk(facts.tree):
        if isinstance(node, Select | Update | Delete):
            named = [
                TableName(use.name.database or database, use.alias or use.name.name)
                for table in node.tables
                for use in _of_list(table)
            ]
            if (name := _first_twice(named)) is not None:
                return name
    return None


def _first_twice(names: Iterable[TableName]) -> str | None:
    seen: set[TableName] = set()
    for name in names:
        if name in seen:
            return name.table
        seen.add(name)
    return None


def _of_list(table: TableReference) -> Iterator[TableUse]:
    """The tables of one entry of FROM, without those of subqueries."""
    left = [table]
    while left:
        table = left.pop()
        if isinstance(table, Join):
            left += (table.right, table.left)
        elif isinstance(table, TableUse):
            yield table


def _is_left_too(facts: StatementFacts) -> bool:
    """Return True if IF NOT EXISTS stands in a CREATE OR REPLACE."""
    if isinstance(facts.tree, AccountStatement):
        return "IF NOT EXISTS" in facts.tree.options
    return facts.effects.if_exists


_REPLACED_OR_LEFT: Final = Refusal(
    1221, "HY000", "ER_WRONG_USAGE", "Incorrect usage of OR REPLACE and IF NOT EXISTS"
)
_NO_STATEMENT: Final = Refusal(
    *(1064, "42000", "ER_PARSE_ERROR"),
    "You have an error in your SQL syntax: a procedure is called by its name alone in bodies only",
)
_WITHOUT_EXTERNAL_TABLES: Final = frozenset(
    ("INNODB", "MYISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM")
)


def _wrong_external(tree: CreateTable) -> Refusal | None:
    """6512, 6513: an external table is of an engine that has such."""
    engine = named_engine(tree.options)
    if engine is None:
        return refusal(6513)
    return refusal(6512, engine) if engine in _WITHOUT_EXTERNAL_TABLES else None


def _wrong_target(delete: Delete, statement: SessionStatement) -> Refusal | None:
    """1066, 1109: what a DELETE of several tables deletes from is there twice, or not at all."""
    uses = [
        node
        for table in delete.tables
        for node in walk(table)
        if isinstance(node, TableUse | DerivedTable)
    ]
    is_folded = statement.facts.dialect.lower_case_names
    seen: set[tuple[str | None, str]] = set()
    for target in delete.targets or ():
        if is_folded:
            target = replace(target, name=folded(target.name))  # noqa: PLW2901
        key = (target.database or statement.database, target.name)
        if key in seen:
            return refusal(_NAMED_TWICE, target.name)
        seen.add(key)
        if not any(_means(target, use, statement) for use in uses):
            return refusal(1109, target.name)
    return None


def _means(target: ObjectName, use: TableUse | DerivedTable, statement: SessionStatement) -> bool:
    """Return True if a target may be a table of FROM: by its alias, which has no database, or its name."""
    fold = folded if statement.facts.dialect.lower_case_names else str
    if isinstance(use, DerivedTable) or use.alias is not None:
        return target.database is None and fold(use.alias or "") == target.name
    own = use.name.database or statement.database
    return (target.database or statement.database) == own and fold(use.name.name) == target.name


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
    has_table = (
        state.assume_engine is not None
        or name.database.lower() in _SYSTEM_DATABASES
        or state.objects.table(name) is not None
        or state.objects.is_unknown(name)
    )
    if not has_table:
        state.objects.missed.add(name)
    return has_table


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


def _altered_sequence(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """ALTER SEQUENCE, which does not look for temporary ones; measured on MariaDB 10.11 and 11.8."""
    effects = statement.facts.effects
    name = effects.writes[0]
    if effects.if_exists:
        return None
    table = state.objects.table(name)
    is_temporary = table is not None and table.is_temporary
    is_there = (
        state.objects.base_table(name) is not None if is_temporary else _has_table(state, name)
    )
    return None if is_there else no_such_sequence(name)


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


def _made_routine(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The libraries that its code uses come first, also where IF NOT EXISTS finds it."""
    return _used_libraries(state, statement) or _database_of_objects(state, statement)


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
    absent = [name for name in effects.objects if state.objects.base_view(name) is None]
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
    return _used_libraries(state, statement)


def _libraries(state: SessionState, statement: SessionStatement) -> Refusal | None:
    effects = statement.facts.effects
    if effects.if_exists or state.logs_source:  # nobody asks a source for its libraries
        return None
    absent = (name for name in effects.objects if not state.objects.library(name))
    return next((no_such_routine("LIBRARY", name) for name in absent), None)


def _used_libraries(state: SessionState, statement: SessionStatement) -> Refusal | None:
    tree = statement.facts.tree
    if not isinstance(tree, CreateRoutine | ObjectStatement) or state.logs_source:
        return None
    database = statement.database
    if isinstance(tree, CreateRoutine):  # ALTER looks in the default database
        database = tree.name.database or database
    for used in tree.libraries:
        name = TableName(used.name.database or database, used.name.name)
        if not state.objects.library(name):
            message = f"LIBRARY {name.table} does not exist"
            return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", message)
    return None


def _packages(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE PACKAGE BODY and DROP PACKAGE; a source is not asked for its packages."""
    facts, packages = statement.facts, state.objects.store.packages
    is_drop = facts.effects.kind is StatementKind.DROP_PACKAGE
    is_body = facts.verb.endswith("BODY")
    if state.logs_source or (is_drop and facts.effects.if_exists):
        return None
    for name in facts.effects.objects:
        looked_for = body_of(name) if is_drop and is_body else small(name)
        if (is_drop or is_body) and looked_for not in packages:
            return no_such_routine("PACKAGE BODY" if is_drop and is_body else "PACKAGE", name)
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


_BUILT_IN: Final = frozenset(
    (
        *("binlog", "sha256_password", "caching_sha2_password", "daemon_keyring_proxy_plugin"),
        *("csv", "memory", "innodb", "myisam", "mrg_myisam", "performance_schema", "temptable"),
        *("archive", "blackhole", "federated", "ndbcluster", "ndbinfo", "ngram", "mysqlx"),
        *("ndb_transid_mysql_connection_map", "mysqlx_cache_cleaner"),
    )
)
"""Plugins that are part of MySQL 9.7, those of names in `innodb_…` left out."""


def _uninstalled(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return MySQL's error for a plugin or component that is not there to uninstall.

    None where a source runs the statement: nobody asks it for what it has.
    """
    tree = statement.facts.tree
    assert isinstance(tree, Administration)
    if state.server.is_mariadb or state.logs_source:
        return None
    for name in tree.names:
        if "COMPONENT" in statement.facts.verb:
            if not state.objects.is_installed(name):
                return refusal(3537, name)
        elif name.lower() in _BUILT_IN or name.lower().startswith("innodb_"):
            return refusal(1619)
        elif not state.objects.is_installed(name):
            message = f"PLUGIN {name} does not exist"
            return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", message)
    return None


def _used(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """USE, and UNINSTALL."""
    facts = statement.facts
    if facts.verb.startswith("UNINSTALL"):
        return _uninstalled(state, statement)
    if facts.verb != "USE" or _has_database(state, facts.name):
        return None
    return no_such_database(facts.name)


def _opened(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """HANDLER … OPEN."""
    for name in statement.facts.effects.reads:
        if _has_view(state, name):
            return Refusal(
                *(1347, "HY000", "ER_WRONG_OBJECT"), f"'{name.plain}' is not of type 'BASE TABLE'"
            )
    names: Iterator[TableName] = iter(statement.facts.effects.reads)
    return next((no_such_table(name) for name in names if not _has_table(state, name)), None)


# What is there already ----------------------------------------------------------------------------


def _table_exists(name: TableName) -> Refusal:
    return Refusal(1050, "42S01", "ER_TABLE_EXISTS_ERROR", f"Table '{name.table}' already exists")


def _is_taken(state: SessionState, name: TableName) -> bool:
    """Return True if a table that is not temporary, or a view, has a name."""
    return state.objects.base_table(name) is not None or _has_view(state, name)


def _made_table(
    state: SessionState, statement: SessionStatement, *, is_tolerant: bool = True
) -> Refusal | None:
    effects, name = statement.facts.effects, statement.facts.effects.writes[0]
    replaces = statement.facts.is_or_replace
    if replaces and state.variables.is_on("sql_if_exists", default=False):
        replaces = False
    if is_tolerant and (effects.if_exists or replaces):
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
        elif facts.effects.kind is StatementKind.CREATE_LIBRARY:
            if objects.library(name):
                return refusal(1304, "LIBRARY", name.table)
        elif facts.effects.kind is StatementKind.CREATE_EVENT:
            if objects.event(name):
                message = f"Event '{name.table}' already exists"
                return Refusal(1537, "HY000", "ER_EVENT_ALREADY_EXISTS", message)
        else:
            kind = "FUNCTION" if "FUNCTION" in facts.verb else "PROCEDURE"
            known = objects.function(name) if kind == "FUNCTION" else objects.procedure(name)
            if known is not None:
                return refusal(1304, kind, name.table)
    return None


def _made_package(state: SessionState, statement: SessionStatement) -> Refusal | None:
    facts, packages = statement.facts, state.objects.store.packages
    if state.logs_source or facts.effects.if_exists or facts.is_or_replace:
        return None
    is_body = facts.verb.endswith("BODY")
    for name in facts.effects.objects:
        if (body_of(name) if is_body else small(name)) in packages:
            kind = "PACKAGE BODY" if is_body else "PACKAGE"
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
    """Account statements: what they are about, then the accounts, as far as they are known."""
    tree = statement.facts.tree
    if not isinstance(tree, AccountStatement):
        return None
    about = _granted_on(state, tree, statement.database)
    situation = state.account_situation(statement.database)
    error = change(state.objects.accounts, tree, situation).error
    is_absent = error is not None and error.errno in _NOBODY
    if about is not None and not (is_absent and about.errno == _WRONG_LEVEL):
        return about
    if error is None:
        return None
    sqlstate, symbol = _ACCOUNT_ERRORS[error.errno]
    return Refusal(error.errno, sqlstate, symbol, error.message)


_NOBODY: Final = frozenset((1133, 1410))
"""That who is to get privileges is not there."""
_WRONG_LEVEL: Final = 1221
"""What is looked for behind that."""


def _granted_on(state: SessionState, tree: AccountStatement, database: str) -> Refusal | None:
    """Return the error of the object of GRANT or REVOKE: of another level, or not there."""
    on, named = tree.on, {one.name for one in tree.privileges}
    names = named - {"ALL", "USAGE", "GRANT OPTION"}
    if on is None:
        return None
    dynamic = "" if state.server.is_mariadb else next(filter(is_dynamic, sorted(names)), "")
    if dynamic and on.database != "*":
        message = f"Illegal privilege level specified for {dynamic}"
        return Refusal(3619, "HY000", "ER_ILLEGAL_PRIVILEGE_LEVEL", message)
    columns = [column for one in tree.privileges for column in one.columns]
    is_table, is_wide = tree.object_kind == "TABLE", on.name == "*"
    allowed = TABLE_PRIVILEGES if is_table else ROUTINE_PRIVILEGES
    if columns if is_wide else not names <= allowed:
        message = (
            "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can "
            "be used"
        )
        return Refusal(1144, "42000", "ER_ILLEGAL_GRANT_FOR_TABLE", message)
    if is_wide:
        if on.database == "*" or names <= DATABASE_PRIVILEGES:
            return None
        message = "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES"
        return Refusal(_WRONG_LEVEL, "HY000", "ER_WRONG_USAGE", message)
    if tree.verb == "REVOKE":
        return None
    name = TableName(on.database or database, on.name)
    if is_table:
        return _granted_table(state, name, columns, is_made=not named.isdisjoint(("ALL", "CREATE")))
    if _has_program(state, tree.object_kind, name):
        return None
    is_old = state.server.is_mariadb and state.server.version < (11,)
    kind = "FUNCTION or PROCEDURE" if is_old else tree.object_kind
    message = f"{kind} {name.table} does not exist"
    return Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", message)


def _has_program(state: SessionState, kind: str, name: TableName) -> bool:
    """Return True if a routine or package is there, as far as that is known of its kind."""
    objects = state.objects
    if kind.startswith("PACKAGE") and not state.logs_source:
        package = body_of(name) if kind.endswith("BODY") else small(name)
        return package in objects.store.packages
    if kind not in ("FUNCTION", "PROCEDURE"):
        return True
    return (objects.function if kind == "FUNCTION" else objects.procedure)(name) is not None


def _granted_table(
    state: SessionState, name: TableName, columns: Sequence[str], *, is_made: bool
) -> Refusal | None:
    table = state.objects.table(name)
    known = table.definition.columns if table is not None and table.is_complete else ()
    for column in columns if known else ():
        if not any(one.name.lower() == column.lower() for one in known):
            message = f"Unknown column '{column}' in '{name.table}'"
            return Refusal(1054, "42S22", "ER_BAD_FIELD_ERROR", message)
    is_there = is_made or _has_table(state, name) or _has_view(state, name)
    return None if is_there else no_such_table(name)


_ACCOUNT_ERRORS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        1133: ("28000", "ER_PASSWORD_NO_MATCH"),
        1141: ("42000", "ER_NONEXISTING_GRANT"),
        1147: ("42000", "ER_NONEXISTING_TABLE_GRANT"),
        1269: ("HY000", "ER_REVOKE_GRANTS"),
        1396: ("HY000", "ER_CANNOT_USER"),
        1403: ("42000", "ER_NONEXISTING_PROC_GRANT"),
        1410: ("42000", "ER_CANT_CREATE_USER_WITH_GRANT"),
        1959: ("OP000", "ER_INVALID_ROLE"),
        1960: ("0L000", "ER_INVALID_CURRENT_USER"),
        1961: ("HY000", "ER_CANNOT_GRANT_ROLE"),
        1962: ("HY000", "ER_CANNOT_REVOKE_ROLE"),
        3523: ("HY000", "ER_UNKNOWN_AUTHID"),
        3530: ("HY000", "ER_ROLE_NOT_GRANTED"),
        3532: ("HY000", "ER_RENAME_ROLE"),
        4027: ("HY000", "ER_ROLE_GRANTED_TO_ITSELF"),
    }
)
"""SQLSTATE and symbol of the errors of account statements."""


def _new_names(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """RENAME, and ALTER TABLE … RENAME."""
    gone: set[TableName] = set()
    for old, new in statement.facts.effects.renames:
        table = state.objects.table(old)
        is_temporary = table is not None and table.is_temporary
        if statement.facts.effects.kind is StatementKind.RENAME_TABLE:
            is_temporary = is_temporary and state.server.is_mariadb
        if not is_temporary and not _has_database(state, new.database):
            return no_such_database(new.database)
        if old != new and not is_temporary and new not in gone and _is_taken(state, new):
            return _table_exists(new)
        gone.discard(new)
        gone.add(old)
    is_alone = statement.facts.effects.kind is StatementKind.RENAME_TABLE
    return misrenamed(
        (
            (old, new)
            for old, new in statement.facts.effects.renames
            if old not in state.objects.store.temporary
            or not (state.server.is_mariadb or not is_alone)
        ),
        state.objects.store.tables,
        server=state.server,
        has_checks=is_alone and not state.server.is_mariadb,
    )


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
    if state.server.is_mariadb and (error := unversioned(facts, table)) is not None:
        return error
    error = disallowed(facts, state.objects, server=state.server, database=statement.database)
    if error is None and state.server.is_mariadb:
        error = changed_otherwise(facts, table)
    wrong = misdefined(
        facts,
        table,
        server=state.server,
        engine=engine_name(engine),
        selected=selected,
        disallowed=partial(
            disallowed_in_key,
            objects=state.objects,
            database=statement.database,
            dialect=facts.dialect,
        ),
    )
    taken = _misconstrained(state, statement, table)
    if state.server.is_mariadb:
        error = taken if wrong is None and taken is not None else error or wrong
    elif table is not None:
        is_stored_otherwise = wrong is not None and wrong.errno == _STORED_OTHERWISE
        left = None if is_stored_otherwise else needed(facts, table)
        error = error or taken or left or wrong
    else:
        error = error or wrong
    error = (
        error or _misreferenced(state, statement, table) or _misexpressed(state, statement, table)
    )
    return error or taken


def _misconstrained(
    state: SessionState, statement: SessionStatement, table: Table | None
) -> Refusal | None:
    """Names of checks."""
    facts, tree = statement.facts, statement.facts.tree
    if table is None and not isinstance(tree, CreateTable):
        return None
    text = facts.text.upper()
    has_checks = table is not None and bool(table.check_names)
    if not has_checks and "CHECK" not in text and "CONSTRAINT" not in text:
        return None
    after: Table | None = None
    if table is None or state.server.is_mariadb:
        try:
            after = preview(state, statement, _last_name(facts))
        except SqlSyntaxError:  # a column that is not there, which is told otherwise
            after = None
    tables = state.objects.store.tables
    return misconstrained(facts, table, after, tables=tables, server=state.server)


def _last_name(facts: StatementFacts) -> TableName:
    """The name of a table behind a statement that defines it."""
    name = facts.effects.writes[0]
    return next((new for old, new in facts.effects.renames if old == name), name)


def _miscopied(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE TABLE … LIKE: MySQL's names of its checks."""
    effects = statement.facts.effects
    source = next(map(state.objects.table, effects.reads), None)
    if source is None or state.server.is_mariadb:
        return None
    if effects.if_exists and _made_table(state, statement, is_tolerant=False) is not None:
        return None
    tables = state.objects.store.tables
    return miscopied(source, effects.writes[0], tables, is_temporary=effects.is_temporary)


def _misexpressed(
    state: SessionState, statement: SessionStatement, before: Table | None
) -> Refusal | None:
    """Columns that expressions of columns name."""
    named = named_in_columns(statement.facts, state.server)
    is_checked = not state.server.is_mariadb and "CHECK" in statement.facts.text.upper()
    is_known = before is None or before.is_complete
    is_looked_at = bool(named) or (is_checked and is_known)
    child = preview(state, statement, _last_name(statement.facts)) if is_looked_at else None
    if child is None or not child.is_complete:
        return None
    columns = {column.name.lower() for column in child.definition.columns}
    unknown = (refusal(1054, *one) for one in named if one[0].lower() not in columns)
    error = next(unknown, None)
    if error is None and state.server.is_mariadb:
        error = uninitialized(statement.facts, child)
    if error is None and is_checked and state.server.has(Fact.CHECK_CONSTRAINTS):
        error = checks_unknown(before, child)
    return error


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
    if begins_transaction(facts) and child.foreign_keys:
        return refusal(3978)

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
        server=state.server,
        find=parent,
        checks=checks,
        must_be_unique=must_be_unique,
        named=lambda: _reference_names(state, child.name, is_made=before is None),
    )
    return misreferenced(facts, before, child, parents)


def _reference_names(state: SessionState, child: TableName, *, is_made: bool) -> Iterator[str]:
    """Names of a database's foreign keys, those of a table that is made anew left out."""
    for table in state.objects.store.tables.values():
        if table.name.database != child.database or (is_made and table.name == child):
            continue
        for key in table.foreign_keys if table.engine == "INNODB" else ():
            yield key.own_name.lower()


def _misnamed_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The query of a view: its columns, and the functions that it calls."""
    facts, objects = statement.facts, state.objects
    if state.assume_engine is None:
        found = misnamed(facts, objects, server=state.server, database=statement.database)
        if found is not None:
            return found
    calls = (node for node in walk(facts.tree) if isinstance(node, Call))
    for use in calls:
        name = TableName(use.database or statement.database, use.name)
        is_loadable = use.database is None and objects.is_loadable_function(use.name)
        if is_made(use, facts.dialect) and not is_loadable and objects.function(name) is None:
            return no_such_routine("FUNCTION", name)
    return None


_Finder = Callable[[SessionState, SessionStatement], Refusal | None]
_FINDERS: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        StatementKind.ALTER_TABLE: _tables,
        StatementKind.TRUNCATE_TABLE: _tables,
        StatementKind.CREATE_INDEX: _tables,
        StatementKind.DROP_INDEX: _tables,
        StatementKind.ALTER_SEQUENCE: _altered_sequence,
        StatementKind.RENAME_TABLE: _renamed,
        StatementKind.CREATE_TABLE: _database_of_objects,
        StatementKind.CREATE_SEQUENCE: _database_of_objects,
        StatementKind.CREATE_ROUTINE: _made_routine,
        StatementKind.CREATE_LIBRARY: _database_of_objects,
        StatementKind.ALTER_LIBRARY: _libraries,
        StatementKind.DROP_LIBRARY: _libraries,
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
        StatementKind.CREATE_PACKAGE: _packages,
        StatementKind.DROP_PACKAGE: _packages,
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
        StatementKind.CREATE_LIBRARY: _made_program,
        StatementKind.CREATE_TRIGGER: _made_program,
        StatementKind.CREATE_EVENT: _made_program,
        StatementKind.CREATE_PACKAGE: _made_package,
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
        StatementKind.CREATE_TABLE_LIKE: _miscopied,
        **dict.fromkeys((StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW), _misnamed_view),
    }
)
