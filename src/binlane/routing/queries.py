"""A Query event within a scope: its context without what lies outside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.codec.compression import rewritten_record
from binlane.codec.query import QueryEvent
from binlane.codec.statement_text import statement_bytes, statement_text
from binlane.codec.status_vars import (
    StatusVar,
    decode_status_vars,
    encode_status_vars,
)
from binlane.scope.scope import Scope

if TYPE_CHECKING:
    from binlane.sql.facts import StatementEffects

UPDATED_DATABASES: Final = 12
"""Code of MySQL's status variable that names the databases a statement or transaction changes."""


def confined(body: QueryEvent, scope: Scope, effects: StatementEffects | None) -> QueryEvent:
    """The event with a default database that is in scope, or none, and no outside names beside it.

    Args:
        body: Of a statement whose text may stand in the binlog.
        scope: Of the binlog.
        effects: Of the statement; None where it names no object.
    """
    database = body.database.decode("utf-8", "surrogateescape")
    writes = () if effects is None else effects.writes
    inside = [table.database for table in writes if scope.includes(table)]
    if database and not scope.touches_database(database) and database not in inside:
        database = inside[0] if inside else ""
    return replace(
        body,
        database=database.encode("utf-8", "surrogateescape"),
        status_vars=_confined_variables(body.status_vars, scope),
    )


def with_text(body: QueryEvent, text: str) -> QueryEvent:
    """The event with another text, in the same character set.

    Raises:
        UnsupportedError: If the character set has not all of its characters.
    """
    if text == statement_text(body):
        return body
    query = statement_bytes(body, text)
    record = rewritten_record(query, body.record) if body.is_compressed else None
    tables_info = None if body.tables_info is None else b""
    return replace(body, query=query, record=record, tables_info=tables_info)


def _confined_variables(data: bytes, scope: Scope) -> bytes:
    """The status variables with those names of changed databases that are in scope."""
    if UPDATED_DATABASES not in data:
        return data
    variables = decode_status_vars(data)
    kept = [variable for each in variables if (variable := _confined_variable(each, scope))]
    return data if kept == list(variables) else encode_status_vars(kept)


def _confined_variable(variable: StatusVar, scope: Scope) -> StatusVar | None:
    if variable.code != UPDATED_DATABASES or not isinstance(variable.value, tuple):
        return variable
    names = tuple(name for name in variable.value if scope.touches_database(name))
    return replace(variable, value=names) if names else None
