"""Changes of the session's objects, and looks at what they will be."""

from __future__ import annotations

from binlane.names import TableName
from binlane.session.state import Command, SessionState
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.effects import StatementKind
from binlane.sql.schema import Table

_CREATING = frozenset(
    (
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.CREATE_TABLE_SELECT,
        StatementKind.CREATE_SEQUENCE,
    )
)
_ANSI_QUOTES = 0x4
_NO_BACKSLASH_ESCAPES = 0x100000


def apply(state: SessionState, command: Command) -> None:
    """Do to the objects what a statement does."""
    known = len(state.objects.problems)
    _apply(state.objects, state, command)
    if len(state.objects.problems) > known:
        problem = state.objects.problems[-1]
        state.programs.effort.unfollowed = f"what it makes is not known: {problem.message}"


def preview(state: SessionState, command: Command, name: TableName) -> Table | None:
    """The table that a statement is about to make."""
    objects = state.objects.copy()
    _apply(objects, state, command)
    effects = command.facts.effects
    if effects.kind in _CREATING and not effects.is_temporary:
        # A temporary table of that name does not hide it from the statement that makes it.
        return objects.base_table(name)
    return objects.table(name)


def _apply(objects: SchemaCatalog, state: SessionState, command: Command) -> None:
    variables = state.variables
    bits = _ANSI_QUOTES if variables.ansi_quotes else 0
    bits |= _NO_BACKSLASH_ESCAPES if variables.no_backslash_escapes else 0
    objects.apply(
        command.sql,
        database=command.database,
        sql_mode=bits,
        engine=variables.text("default_storage_engine") or variables.text("storage_engine") or None,
        temporary_engine=variables.text("default_tmp_storage_engine") or None,
        connection=variables.connection,
    )
