"""Errors of statements that name what is not there: known before they run, whatever they do.

What reads or changes rows finds that out when its tables are resolved; here is all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.session.report import Refusal
from binlane.session.state import Command, SessionState
from binlane.sql.effects import StatementKind

_SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))
_TOLERANT: Final = frozenset(
    (
        StatementKind.DROP_TABLE,
        StatementKind.DROP_SEQUENCE,
        StatementKind.DROP_VIEW,
        StatementKind.DROP_ROUTINE,
        StatementKind.DROP_TRIGGER,
        StatementKind.DROP_DATABASE,
        StatementKind.RENAME_TABLE,
    )
)
"""What MariaDB's sql_if_exists makes tolerate what is missing."""
_BY_VIEW_OR_TABLE: Final = frozenset((StatementKind.LOCK, StatementKind.CREATE_VIEW))


def missing(state: SessionState, command: Command) -> Refusal | None:
    """The server's error for what a statement names and is not there; None if it has none.

    Args:
        state: The session.
        command: A statement of which the script states no error.
    """
    kind = command.facts.effects.kind
    if kind in _TOLERANT and state.variables.is_on("sql_if_exists", default=False):
        return None
    find = _FINDERS.get(kind)
    return None if find is None else find(state, command)


def no_such_table(name: TableName) -> Refusal:
    """1146."""
    return _refusal(1146, "42S02", "ER_NO_SUCH_TABLE", f"Table '{name.plain}' doesn't exist")


def no_such_routine(kind: str, name: TableName) -> Refusal:
    """1305: of a PROCEDURE or FUNCTION."""
    return _refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", f"{kind} {name.plain} does not exist")


def no_such_database(database: str) -> Refusal:
    """1049."""
    return _refusal(1049, "42000", "ER_BAD_DB_ERROR", f"Unknown database '{database}'")


def _refusal(errno: int, sqlstate: str, symbol: str, message: str) -> Refusal:
    return Refusal(errno=errno, sqlstate=sqlstate, symbol=symbol, message=message)


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


def _tables(state: SessionState, command: Command) -> Refusal | None:
    """ALTER TABLE, TRUNCATE, indexes: the table that they are about."""
    effects = command.facts.effects
    if effects.if_exists or not effects.writes:
        return None
    name = effects.writes[0]
    is_view = effects.kind is not StatementKind.TRUNCATE_TABLE and _has_view(state, name)
    return None if is_view or _has_table(state, name) else no_such_table(name)


def _renamed(state: SessionState, command: Command) -> Refusal | None:
    """RENAME TABLE a TO b, c TO a: one after the other."""
    if command.facts.effects.if_exists:
        return None
    made: set[TableName] = set()
    gone: set[TableName] = set()
    for old, new in command.facts.effects.renames:
        exists = _has_table(state, old) or _has_view(state, old)
        if old not in made and (old in gone or not exists):
            return no_such_table(old)
        made.discard(old)
        gone.add(old)
        made.add(new)
    return None


def _read(state: SessionState, command: Command) -> Refusal | None:
    """CREATE … LIKE, CREATE VIEW and LOCK TABLES: what they look at."""
    effects = command.facts.effects
    refusal = _database_of_objects(state, command)
    if refusal is not None:
        return refusal
    names = effects.reads
    if effects.kind is StatementKind.LOCK:
        names = tuple(use.name for use in command.facts.tables)
    for name in names:
        is_view = effects.kind in _BY_VIEW_OR_TABLE and _has_view(state, name)
        if not is_view and not _has_table(state, name):
            return no_such_table(name)
    return None


def _trigger_table(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    if effects.writes and not _has_table(state, effects.writes[0]):
        if _has_view(state, effects.writes[0]):
            return None
        return no_such_table(effects.writes[0])
    return None


def _database_of_objects(state: SessionState, command: Command) -> Refusal | None:
    """CREATE: the database that gets the object."""
    effects = command.facts.effects
    for name in (*effects.writes, *effects.objects):
        if name.database and not _has_database(state, name.database):
            return no_such_database(name.database)
    return None


def _dropped_tables(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    if effects.if_exists:
        return None
    absent = [name for name in effects.drops or effects.writes if _is_absent(state, command, name)]
    if not absent:
        return None
    listed = ",".join(name.plain for name in absent)
    if effects.kind is StatementKind.DROP_SEQUENCE:
        return _refusal(4091, "42S02", "ER_UNKNOWN_SEQUENCES", f"Unknown SEQUENCE: '{listed}'")
    return _refusal(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{listed}'")


def _is_absent(state: SessionState, command: Command, name: TableName) -> bool:
    table = state.objects.table(name)
    if command.facts.effects.is_temporary:
        return table is None or not table.is_temporary
    return not _has_table(state, name) and not _has_view(state, name)


def _dropped_views(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    absent = [name for name in effects.objects if not _has_view(state, name)]
    # What is no view at all is another error.
    absent = [name for name in absent if state.objects.table(name) is None]
    if effects.if_exists or not absent:
        return None
    listed = ",".join(name.plain for name in absent)
    if state.server.is_mariadb:
        return _refusal(4092, "42S02", "ER_UNKNOWN_VIEW", f"Unknown VIEW: '{listed}'")
    return _refusal(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{listed}'")


def _altered_view(state: SessionState, command: Command) -> Refusal | None:
    for name in command.facts.effects.objects:
        if not _has_view(state, name) and not _has_table(state, name):
            return no_such_table(name)
    return None


def _routines(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    if effects.if_exists:
        return None
    is_function = "FUNCTION" in command.facts.verb
    for name in effects.objects:
        found = state.objects.function(name) if is_function else state.objects.procedure(name)
        is_loadable = is_function and state.objects.is_loadable_function(name.table)
        if found is None and not is_loadable and name.database.lower() not in _SYSTEM_DATABASES:
            return no_such_routine("FUNCTION" if is_function else "PROCEDURE", name)
    return None


def _triggers(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    if effects.if_exists or all(state.objects.trigger(name) for name in effects.objects):
        return None
    return _refusal(1360, "HY000", "ER_TRG_DOES_NOT_EXIST", "Trigger does not exist")


def _events(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    # Behind the first one stands its new name.
    for name in effects.objects[:1]:
        if not effects.if_exists and not state.objects.event(name):
            message = f"Unknown event '{name.table}'"
            return _refusal(1539, "HY000", "ER_EVENT_DOES_NOT_EXIST", message)
    return None


def _databases(state: SessionState, command: Command) -> Refusal | None:
    effects = command.facts.effects
    for name in effects.databases:
        if not effects.if_exists and not _has_database(state, name):
            message = f"Can't drop database '{name}'; database doesn't exist"
            return _refusal(1008, "HY000", "ER_DB_DROP_EXISTS", message)
    return None


def _altered_databases(state: SessionState, command: Command) -> Refusal | None:
    for name in command.facts.effects.databases:
        if name and not _has_database(state, name):
            if state.server.is_mariadb:
                return no_such_database(name)
            message = f"Database '{name}' doesn't exist"
            return _refusal(3503, "HY000", "ER_DATABASE_NOT_FOUND", message)
    return None


def _used(state: SessionState, command: Command) -> Refusal | None:
    """USE."""
    facts = command.facts
    if facts.verb != "USE" or _has_database(state, facts.name):
        return None
    return no_such_database(facts.name)


def _opened(state: SessionState, command: Command) -> Refusal | None:
    """HANDLER … OPEN."""
    names: Iterator[TableName] = iter(command.facts.effects.reads)
    return next((no_such_table(name) for name in names if not _has_table(state, name)), None)


_Finder = Callable[[SessionState, Command], Refusal | None]
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
