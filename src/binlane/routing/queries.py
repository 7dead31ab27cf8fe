"""A Query event within a scope: its context without what lies outside."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.codec.query import QueryEvent
from binlane.codec.status_vars import (
    StatusVar,
    decode_status_vars,
    encode_status_vars,
)
from binlane.scope.scope import Scope

if TYPE_CHECKING:
    from binlane.sql.effects import StatementEffects

# What a comment before it says stays before it.
_DROP: Final = re.compile(
    rb"(?P<head>(?:\s|/\*(?!!|M!).*?\*/)*DROP\s+(?:TRIGGER|PROCEDURE|FUNCTION|EVENT|VIEW|PACKAGE(?:\s+BODY)?)\s+)"
    rb"(?!IF\s)",
    re.IGNORECASE | re.DOTALL,
)

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


def dropped_if_there(body: QueryEvent) -> QueryEvent:
    """A DROP of an object other than a table as one that may be missing: its CREATE may be left out."""
    query = _DROP.sub(rb"\g<head>IF EXISTS ", body.query, count=1) if body.query else body.query
    return body if query == body.query else replace(body, query=query)


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
