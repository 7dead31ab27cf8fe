"""Which tables an UPDATE changes, where its columns do not say it themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.sql.facts import RowChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from binlane.names import TableName
    from binlane.sql.facts import SetColumn, TableUse
    from binlane.sql.schema import Objects


def updated_uses(
    uses: Sequence[TableUse], columns: Iterable[SetColumn], objects: Objects
) -> tuple[TableUse, ...]:
    """The tables of an UPDATE that may change several, each with what happens to it.

    A column without a table belongs to the one that has it; if none is known to have it, to all.

    Args:
        uses: What the statement, or the view that it changes, names.
        columns: What it sets.
        objects: Where the tables' columns are looked up.
    """
    candidates = [use for use in uses if use.is_outermost and not use.is_sequence]
    changed = {id(use) for column in columns for use in _owners(column, candidates, objects)}
    return tuple(
        replace(use, changes=frozenset({RowChange.UPDATE}) if id(use) in changed else frozenset())
        if use.is_outermost and not use.is_sequence
        else use
        for use in uses
    )


def columns_of(name: TableName, objects: Objects) -> frozenset[str] | None:
    """Names of a table's or view's columns in small letters; None if they are not all known."""
    table = objects.table(name)
    if table is not None:
        if not table.is_complete:
            return None
        return frozenset(column.name.lower() for column in table.definition.columns)
    view = objects.view(name)
    if view is not None and view.columns:
        return frozenset(column.lower() for column in view.columns)
    if view is None:
        return None
    return _columns_behind(view.facts.tables, objects)


def _columns_behind(uses: Sequence[TableUse], objects: Objects) -> frozenset[str] | None:
    """Names that a view may have: those of the tables that it is made of."""
    found: frozenset[str] = frozenset()
    for use in uses:
        if use.is_outermost and objects.view(use.name) is None:
            columns = columns_of(use.name, objects)
            if columns is None:
                return None
            found |= columns
    return found or None


def _owners(
    column: SetColumn, candidates: Sequence[TableUse], objects: Objects
) -> Iterator[TableUse]:
    if column.qualifier is not None:
        qualifier = column.qualifier.lower()
        named = [use for use in candidates if use.alias.lower() == qualifier]
        exact = [use for use in named if use.alias == column.qualifier]
        yield from exact or named or candidates
        return
    known = [(use, columns_of(use.name, objects)) for use in candidates]
    owners = [use for use, columns in known if columns and column.name.lower() in columns]
    yield from owners or [use for use, columns in known if columns is None] or candidates
