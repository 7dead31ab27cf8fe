"""Statements that are logged as their text in every mode, and commit what is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.names import TableName
from binlane.policy.engines import traits
from binlane.session import log_events
from binlane.session.account_texts import account_text
from binlane.session.catalog_changes import apply, preview
from binlane.session.definition_texts import definition_text
from binlane.session.failures import fail_as_stated
from binlane.session.recorders import recorders_of
from binlane.session.state import Command, SessionState
from binlane.session.transaction import Work
from binlane.sql.effects import DDL_KINDS, StatementKind
from binlane.sql.logging_mode import LoggingFormat
from binlane.sql.schema import Table

KINDS: Final = DDL_KINDS

_DATABASE_KINDS: Final = frozenset(
    (StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE)
)
_TABLE_KINDS: Final = frozenset(
    (
        StatementKind.ALTER_TABLE,
        StatementKind.RENAME_TABLE,
        StatementKind.TRUNCATE_TABLE,
        StatementKind.CREATE_INDEX,
        StatementKind.DROP_INDEX,
        StatementKind.ALTER_SEQUENCE,
    )
)
_ROUTINE_KINDS: Final = frozenset(
    (StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE)
)
_MAINTENANCE: Final = ("ANALYZE", "OPTIMIZE", "REPAIR")
_UNLOGGED_FLUSH: Final = frozenset(
    (
        *("LOGS", "BINARY", "ERROR", "GENERAL", "SLOW", "ENGINE", "RELAY", "MASTER", "SLAVE"),
        *("BINLOG", "HOT"),
    )
)
_WITHOUT_COMMIT: Final = ("CHECKSUM", "HELP")
_KEY_CACHE: Final = ("CACHE INDEX", "LOAD INDEX")


def execute_ddl(state: SessionState, command: Command) -> None:
    """Carry out a statement of data definition, account management or maintenance."""
    recorders = recorders_of(state, command, commits=True)
    if recorders is None:
        return
    if _commits(state, command):
        state.implicit_commit()
    if not command.succeeds:
        fail_as_stated(state, command)
        return
    text = _text(state, command)
    temporary = _temporary_table(state, command)
    logging = {
        name
        for name in state.each_logging()
        if (name in recorders if temporary is None else _logs_temporary(state, name, temporary))
    }
    apply(state, command)
    if command.facts.effects.kind in _ROUTINE_KINDS:
        state.programs.forget_routines()
    if temporary is not None:
        _follow_rename(state, command, temporary)
    if text is None:
        return
    database = "" if command.facts.effects.kind in _DATABASE_KINDS else command.database
    event = log_events.query(text, database)
    for name, binlog in state.each_logging().items():
        if name in logging:
            binlog.write_directly([event])
            state.run.log(name, LoggingFormat.STATEMENT)
    state.end_statement(Work(), succeeds=True)


def _commits(state: SessionState, command: Command) -> bool:
    verb = command.facts.verb
    if verb.startswith(_WITHOUT_COMMIT):
        return False
    return not (state.server.is_mariadb and verb.startswith(_KEY_CACHE))


def _text(state: SessionState, command: Command) -> str | None:
    """What is logged; None if nothing is."""
    facts = command.facts
    kind = facts.effects.kind
    if facts.is_local or kind is StatementKind.SERVER:
        return None
    if kind is StatementKind.MAINTENANCE and not facts.verb.startswith(_MAINTENANCE):
        return None
    if kind is StatementKind.FLUSH and _is_unlogged_flush(command):
        return None
    if kind is StatementKind.ACCOUNT:
        text = account_text(state, command)
    else:
        text = definition_text(state, command)
    if state.server.is_mariadb or not _is_atomic(state, command):
        return text
    return text + log_events.XID_SUFFIX


def _is_unlogged_flush(command: Command) -> bool:
    words = command.text.upper().replace(",", " ").split()[1:]
    if not words:
        return False
    return words[0] in _UNLOGGED_FLUSH or "LOCK" in words or "EXPORT" in words


def _temporary_table(state: SessionState, command: Command) -> Table | None:
    """The temporary table that ALTER, RENAME, TRUNCATE or an index statement is about."""
    effects = command.facts.effects
    if effects.kind not in _TABLE_KINDS:
        return None
    names = (*(old for old, _ in effects.renames), *effects.writes)
    tables = (state.objects.table(name) for name in names)
    return next((table for table in tables if table is not None and table.is_temporary), None)


def _logs_temporary(state: SessionState, name: str, table: Table) -> bool:
    """Whether a change of a temporary table's definition is logged."""
    if state.server.is_mariadb:
        return table.name in state.binlogs[name].held_temporary and not state.is_row_now(name)
    return state.mode(name).value == "STATEMENT"


def _follow_rename(state: SessionState, command: Command, table: Table) -> None:
    """A renamed temporary table is the same in the binlogs; one that is altered is made anew."""
    effects = command.facts.effects
    name = dict(effects.renames).get(table.name, table.name)
    if effects.kind is not StatementKind.TRUNCATE_TABLE:
        state.made_temporary(name, instead_of=table.name)
    for binlog in state.binlogs.values():
        if table.name in binlog.held_temporary:
            binlog.held_temporary.remove(table.name)
            binlog.held_temporary.add(name)


def _is_atomic(state: SessionState, command: Command) -> bool:
    """Whether MySQL commits the statement together with its log, and says so in its text."""
    check = _ATOMIC.get(command.facts.effects.kind)
    return check is not None and check(state, command)


def _has_atomic_tables(state: SessionState, command: Command) -> bool:
    """All of its tables are in an engine with atomic DDL, before and after."""
    effects = command.facts.effects
    names = {*effects.writes, *(old for old, _ in effects.renames)}
    before = [state.objects.table(name) for name in names]
    after = [preview(state, command, name) for name in effects.writes]
    tables = [table for table in (*before, *after) if table is not None]
    if any(table.is_temporary for table in tables):
        return effects.kind is StatementKind.TRUNCATE_TABLE
    return bool(tables) and all(traits(table, state.server).has_two_phases for table in tables)


def _changes_database(state: SessionState, command: Command) -> bool:
    effects = command.facts.effects
    if not effects.if_exists or effects.kind is StatementKind.ALTER_DATABASE:
        return True
    exists = any(state.objects.has_database(name) for name in effects.databases)
    return exists is (effects.kind is StatementKind.DROP_DATABASE)


def _exists(state: SessionState, kind: StatementKind, name: TableName) -> bool:
    objects = state.objects
    if kind in (StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW):
        return objects.view(name) is not None
    if kind in (StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER):
        return objects.trigger(name) is not None
    if kind in (StatementKind.CREATE_EVENT, StatementKind.DROP_EVENT):
        return objects.event(name)
    return objects.procedure(name) is not None or objects.function(name) is not None


def _creates(state: SessionState, command: Command) -> bool:
    effects = command.facts.effects
    return not effects.if_exists or not any(
        _exists(state, effects.kind, name) for name in effects.objects
    )


def _drops(state: SessionState, command: Command) -> bool:
    effects = command.facts.effects
    return not effects.if_exists or any(
        _exists(state, effects.kind, name) for name in effects.objects
    )


def _always(_: SessionState, __: Command) -> bool:
    return True


_ATOMIC: Final[Mapping[StatementKind, Callable[[SessionState, Command], bool]]] = MappingProxyType(
    {
        **dict.fromkeys(_TABLE_KINDS, _has_atomic_tables),
        **dict.fromkeys(_DATABASE_KINDS, _changes_database),
        StatementKind.CREATE_VIEW: _creates,
        StatementKind.ALTER_VIEW: _always,
        StatementKind.DROP_VIEW: _drops,
        StatementKind.CREATE_ROUTINE: _creates,
        StatementKind.ALTER_ROUTINE: _always,
        StatementKind.DROP_ROUTINE: _drops,
        StatementKind.CREATE_TRIGGER: _creates,
        StatementKind.DROP_TRIGGER: _drops,
        StatementKind.CREATE_EVENT: _creates,
        StatementKind.ALTER_EVENT: _always,
        StatementKind.DROP_EVENT: _drops,
        StatementKind.ACCOUNT: _always,
    }
)
