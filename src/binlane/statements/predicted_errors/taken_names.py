"""Names of new objects that others have."""

from __future__ import annotations

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, no_such_database, refusal
from binlane.statements.predicted_errors.constraint_names import wrong_renamed_checks
from binlane.statements.predicted_errors.known_objects import has_database, has_view, wrong_kind
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.schema import body_of, small
from binlane.statements.sql.statement_kinds import StatementKind

# What is there already ----------------------------------------------------------------------------


def _table_exists(name: TableName) -> Refusal:
    return Refusal(1050, "42S01", "ER_TABLE_EXISTS_ERROR", f"Table '{name.table}' already exists")


def _is_taken(state: SessionState, name: TableName) -> bool:
    """Return True if a table that is not temporary, or a view, has a name."""
    return state.objects.base_table(name) is not None or has_view(state, name)


def taken_table(
    state: SessionState, statement: SessionStatement, *, is_tolerant: bool = True
) -> Refusal | None:
    """Return the error of CREATE TABLE and CREATE SEQUENCE for a name that is taken."""
    effects, name = statement.facts.effects, statement.facts.effects.writes[0]
    replaces = statement.facts.effects.is_or_replace
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


def taken_view(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of CREATE VIEW for a name that is taken."""
    effects = statement.facts.effects
    for name in effects.objects:
        is_table = state.objects.base_table(name) is not None
        if is_table and statement.facts.effects.is_or_replace:
            return wrong_kind(state, name, "VIEW")
        if effects.if_exists or statement.facts.effects.is_or_replace:
            return None
        if is_table or has_view(state, name):
            return _table_exists(name)
    return None


def taken_program(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Routines, triggers and events."""
    facts, objects = statement.facts, state.objects
    if facts.effects.if_exists or facts.effects.is_or_replace:
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


def taken_package(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of CREATE PACKAGE for a name that is taken."""
    facts, packages = statement.facts, state.objects.store.packages
    if state.logs_source or facts.effects.if_exists or facts.effects.is_or_replace:
        return None
    is_body = facts.verb.endswith("BODY")
    for name in facts.effects.objects:
        if (body_of(name) if is_body else small(name)) in packages:
            kind = "PACKAGE BODY" if is_body else "PACKAGE"
            message = f"{kind} {name.table} already exists"
            return Refusal(1304, "42000", "ER_SP_ALREADY_EXISTS", message)
    return None


def taken_database(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """Return the error of CREATE DATABASE for a name that is taken."""
    effects = statement.facts.effects
    for name in effects.databases:
        is_made_anew = effects.if_exists or statement.facts.effects.is_or_replace
        if not is_made_anew and has_database(state, name):
            message = f"Can't create database '{name}'; database exists"
            return Refusal(1007, "HY000", "ER_DB_CREATE_EXISTS", message)
    return None


def taken_new_name(state: SessionState, statement: SessionStatement) -> Refusal | None:
    """RENAME, and ALTER TABLE … RENAME."""
    gone: set[TableName] = set()
    for old, new in statement.facts.effects.renames:
        table = state.objects.table(old)
        is_temporary = table is not None and table.is_temporary
        if statement.facts.effects.kind is StatementKind.RENAME_TABLE:
            is_temporary = is_temporary and state.server.is_mariadb
        if not is_temporary and not has_database(state, new.database):
            return no_such_database(new.database)
        if old != new and not is_temporary and new not in gone and _is_taken(state, new):
            return _table_exists(new)
        gone.discard(new)
        gone.add(old)
    is_alone = statement.facts.effects.kind is StatementKind.RENAME_TABLE
    return wrong_renamed_checks(
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
