"""The functions that a statement or expression uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.session.programs.environment import SessionEnvironment
from binlane.session.programs.host import SessionValues
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.facts import FunctionUse, StatementFacts

_LAST_INSERT_ID: Final = re.compile(r"\blast_insert_id\s*\(\s*\)", re.IGNORECASE)
_RANDOM: Final = re.compile(r"\brand\s*\(\s*\)", re.IGNORECASE)


def stored_functions(facts: StatementFacts, environment: SessionEnvironment) -> list[FunctionUse]:
    """The stored functions that a statement calls: those in arguments first."""
    objects = environment.host.objects
    uses = [
        use
        for use in facts.functions
        if objects.function(function_name(use, environment)) is not None
    ]
    uses.sort(key=lambda use: use.offset + use.length)
    return [*uses, *_in_views(facts, (), objects)]


def _in_views(
    facts: StatementFacts, through: tuple[TableName, ...], objects: SchemaCatalog
) -> Iterator[FunctionUse]:
    """The stored functions that a statement's views call."""
    for table in facts.tables:
        view = objects.view(table.name)
        if view is None or table.name in through:
            continue
        for use in view.facts.functions:
            database = use.database or view.database or view.name.database
            if objects.function(TableName(database, use.name)) is not None:
                yield replace(use, database=database, offset=table.offset)
        yield from _in_views(view.facts, (*through, table.name), objects)


def values_of(expression: str) -> SessionValues:
    """What an expression depends on."""
    return SessionValues(
        last_insert_id=_LAST_INSERT_ID.search(expression) is not None,
        random=_RANDOM.search(expression) is not None,
    )


def function_name(use: FunctionUse, environment: SessionEnvironment) -> TableName:
    """The whole name of a stored function."""
    return TableName(use.database or environment.database, use.name)
