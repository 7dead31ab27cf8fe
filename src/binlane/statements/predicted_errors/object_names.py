"""Objects that DDL and other statements name and that are not there.

Tables of statements on rows are found when the statement is resolved (`policy.resolution`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import (
    Refusal,
    no_such_database,
    no_such_routine,
    no_such_sequence,
    no_such_table,
    refusal,
)
from binlane.statements.predicted_errors.known_objects import (
    SYSTEM_DATABASES,
    has_database,
    has_table,
    has_view,
    wrong_kind,
)
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.schema import body_of, small
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.definitions import CreateRoutine, ObjectStatement
from binlane.statements.sql.tree.statements import Administration

_BY_VIEW_OR_TABLE: Final = frozenset((StatementKind.LOCK, StatementKind.CREATE_VIEW))


def missing_tables(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """ALTER TABLE, TRUNCATE, indexes: the table that they are about."""
    effects = statement.facts.effects
    if effects.if_exists or not effects.writes:
        return None
    name = effects.writes[0]
    if has_table(state, name):
        return None
    is_altered = effects.kind is StatementKind.ALTER_TABLE and not effects.renames
    if is_altered and has_view(state, name):
        return wrong_kind(state, name, "BASE TABLE")
    is_view = effects.kind is not StatementKind.TRUNCATE_TABLE and has_view(state, name)
    return None if is_view else no_such_table(name)


def missing_sequence(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """ALTER SEQUENCE, which does not look for temporary ones; measured on MariaDB 10.11 and 11.8."""
    effects = statement.facts.effects
    name = effects.writes[0]
    if effects.if_exists:
        return None
    table = state.objects.table(name)
    is_temporary = table is not None and table.is_temporary
    is_there = (
        state.objects.base_table(name) is not None if is_temporary else has_table(state, name)
    )
    return None if is_there else no_such_sequence(name)


def missing_renamed(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """RENAME TABLE a TO b, c TO a: one after the other."""
    if statement.facts.effects.if_exists:
        return None
    made: set[TableName] = set()
    gone: set[TableName] = set()
    for old, new in statement.facts.effects.renames:
        exists = has_table(state, old) or has_view(state, old)
        if old not in made and (old in gone or not exists):
            return no_such_table(old)
        made.discard(old)
        gone.add(old)
        made.add(new)
    return None


def missing_read(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE … LIKE, CREATE VIEW and LOCK TABLES: what they look at."""
    effects = statement.facts.effects
    refusal = missing_database(state, statement)
    if refusal is not None:
        return refusal
    names = effects.reads
    if effects.kind is StatementKind.LOCK:
        names = tuple(use.name for use in statement.facts.tables)
    for name in names:
        is_view = has_view(state, name)
        if is_view and effects.kind is StatementKind.CREATE_TABLE_LIKE:
            return wrong_kind(state, name, "BASE TABLE")
        is_view = is_view and effects.kind in _BY_VIEW_OR_TABLE
        if not is_view and not has_table(state, name):
            return no_such_table(name)
    return None


def missing_trigger_table(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of CREATE TRIGGER for its table."""
    effects = statement.facts.effects
    if effects.writes and not has_table(state, effects.writes[0]):
        if has_view(state, effects.writes[0]):
            return None
        return no_such_table(effects.writes[0])
    return None


def missing_database(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """CREATE: the database that gets the object."""
    effects = statement.facts.effects
    for name in (*effects.writes, *effects.objects):
        if name.database and not has_database(state, name.database):
            return no_such_database(name.database)
    return None


def missing_for_routine(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """The libraries that its code uses come first, also where IF NOT EXISTS finds it."""
    return _used_libraries(state, statement) or missing_database(state, statement)


def missing_dropped_tables(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of DROP TABLE and DROP SEQUENCE, which names all that are missing."""
    effects = statement.facts.effects
    if effects.if_exists:
        return None
    names = effects.drops or effects.writes
    absent = [name for name in names if _is_absent(state, statement, name)]
    is_view = not effects.is_temporary and has_view(state, names[0])
    if is_view and len(names) == 1 and state.server.is_mariadb and not has_table(state, names[0]):
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
    is_view = state.server.is_mariadb and has_view(state, name)
    return not is_view and not has_table(state, name)


def missing_dropped_views(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of DROP VIEW, which names all that are missing."""
    effects = statement.facts.effects
    absent = [name for name in effects.objects if state.objects.base_view(name) is None]
    tables = [name for name in absent if state.objects.base_table(name) is not None]
    if tables and not state.server.is_mariadb:
        return wrong_kind(state, tables[0], "VIEW")
    if effects.if_exists or not absent:
        return None
    listed = ",".join(name.plain for name in absent)
    if state.server.is_mariadb:
        return Refusal(4092, "42S02", "ER_UNKNOWN_VIEW", f"Unknown VIEW: '{listed}'")
    return Refusal(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{listed}'")


def missing_altered_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of ALTER VIEW for a view that is missing."""
    for name in statement.facts.effects.objects:
        if not has_view(state, name) and not has_table(state, name):
            return no_such_table(name)
    return None


def missing_routines(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of ALTER and DROP of a routine."""
    effects = statement.facts.effects
    if effects.if_exists:
        return None
    is_function = "FUNCTION" in statement.facts.verb
    for name in effects.objects:
        found = state.objects.function(name) if is_function else state.objects.procedure(name)
        is_loadable = is_function and state.objects.is_loadable_function(name.table)
        if found is None and not is_loadable and name.database.lower() not in SYSTEM_DATABASES:
            kind = "FUNCTION" if is_function else "PROCEDURE"
            return no_such_routine(kind if name.database else f"{kind} (UDF)", name)
    return _used_libraries(state, statement)


def missing_libraries(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of ALTER and DROP LIBRARY."""
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


def missing_packages(state: SessionState, statement: SessionStatement) -> Refusal | None:
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


def missing_triggers(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of DROP TRIGGER."""
    effects = statement.facts.effects
    if effects.if_exists or all(state.objects.trigger(name) for name in effects.objects):
        return None
    return Refusal(1360, "HY000", "ER_TRG_DOES_NOT_EXIST", "Trigger does not exist")


def missing_events(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of ALTER and DROP EVENT."""
    effects = statement.facts.effects
    # Behind the first one stands its new name.
    for name in effects.objects[:1]:
        if not effects.if_exists and not state.objects.event(name):
            message = f"Unknown event '{name.table}'"
            return Refusal(1539, "HY000", "ER_EVENT_DOES_NOT_EXIST", message)
    return None


def missing_databases(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of DROP DATABASE."""
    effects = statement.facts.effects
    for name in effects.databases:
        if not effects.if_exists and not has_database(state, name):
            message = f"Can't drop database '{name}'; database doesn't exist"
            return Refusal(1008, "HY000", "ER_DB_DROP_EXISTS", message)
    return None


def missing_altered_databases(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of ALTER DATABASE."""
    for name in statement.facts.effects.databases:
        if name and not has_database(state, name):
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


def missing_used(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """USE, and UNINSTALL."""
    facts = statement.facts
    if facts.verb.startswith("UNINSTALL"):
        return _uninstalled(state, statement)
    if facts.verb != "USE" or has_database(state, facts.name):
        return None
    return no_such_database(facts.name)


def missing_opened(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """HANDLER … OPEN."""
    for name in statement.facts.effects.reads:
        if has_view(state, name):
            return Refusal(
                *(1347, "HY000", "ER_WRONG_OBJECT"), f"'{name.plain}' is not of type 'BASE TABLE'"
            )
    names: Iterator[TableName] = iter(statement.facts.effects.reads)
    return next((no_such_table(name) for name in names if not has_table(state, name)), None)
