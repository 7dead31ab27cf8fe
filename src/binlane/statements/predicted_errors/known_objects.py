"""The objects of a session, as far as an error is sure that one is missing."""

from __future__ import annotations

from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal
from binlane.statements.session.state import SessionState

SYSTEM_DATABASES: Final = frozenset(("information_schema", "performance_schema", "mysql", "sys"))


def wrong_kind(state: SessionState, name: TableName, kind: str) -> Refusal:
    """Return error 1347 for an object that is not of the wanted kind."""
    is_what = "is not of type" if state.server.is_mariadb else "is not"
    shown = f"'{kind}'" if state.server.is_mariadb else kind
    return Refusal(1347, "HY000", "ER_WRONG_OBJECT", f"'{name.plain}' {is_what} {shown}")


def has_table(state: SessionState, name: TableName) -> bool:
    """Return True if a table may be there; note one that is missed."""
    has_table = (
        state.assume_engine is not None
        or name.database.lower() in SYSTEM_DATABASES
        or state.objects.table(name) is not None
        or state.objects.is_unknown(name)
    )
    if not has_table:
        state.objects.missed.add(name)
    return has_table


def has_view(state: SessionState, name: TableName) -> bool:
    """Return True if a view has a name."""
    return state.objects.view(name) is not None


def has_database(state: SessionState, database: str) -> bool:
    """Return True if a database is there."""
    return database.lower() in SYSTEM_DATABASES or state.objects.has_database(database)
