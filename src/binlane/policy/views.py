"""What a view gives to the statement that names it: tables, columns, locks.

Source: sql_view.cc `mysql_make_view` of MariaDB 10.11, `parse_view_definition` of MySQL 9.7.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.sql.facts import RowChange, SetColumn
from binlane.sql.tree.expressions import Call, Name, Query, Select, Subquery, children
from binlane.sql.tree.statements import QueryStatement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from binlane.names import TableName
    from binlane.policy.server import Server
    from binlane.sql.facts import TableUse
    from binlane.sql.schema import Objects, View
    from binlane.sql.tree.expressions import Node

_AGGREGATES: Final = frozenset(
    (
        *("AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "COUNT", "GROUP_CONCAT", "JSON_ARRAYAGG"),
        *("JSON_OBJECTAGG", "MAX", "MIN", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "SUM"),
        *("VARIANCE", "VAR_POP", "VAR_SAMP"),
    )
)
# Functions that give another value for each row.
_VOLATILE: Final = frozenset(("RAND", "UUID", "UUID_SHORT", "SYS_GUID"))


def is_merged(view: View, server: Server) -> bool:
    """Whether the tables of a view are locked as the view is, not read into a table first.

    MySQL asks before it knows of aggregates, and merges functions of every kind.
    """
    select = _select(view)
    if select is None or select.group_by or select.having is not None:
        return False
    calls = list(_calls(select))
    if "DISTINCT" in select.options or any(call.over is not None for call in calls):
        return False
    if not server.is_mariadb:
        return True
    volatile = {use.name.upper() for use in view.facts.functions} & _VOLATILE
    return not volatile and _AGGREGATES.isdisjoint(call.upper_name for call in calls)


def columns_behind(view: View, columns: Iterable[SetColumn]) -> list[SetColumn]:
    """What the columns of a view stand for in its SELECT; itself what is not told."""
    known = _selected(view)
    return [
        known.get(each.name.lower(), SetColumn(qualifier=None, name=each.name)) for each in columns
    ]


def columns_of_view(view: View) -> list[str]:
    """The columns that the view's columns stand for, in their order, as far as they are told."""
    return [column.name for column in _selected(view).values()]


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


def _select(view: View) -> Select | None:
    """The one SELECT of a view, with no LIMIT behind it; None if it is a query of another kind."""
    tree = view.facts.tree
    node: Node = tree.query if isinstance(tree, QueryStatement) else tree
    while isinstance(node, Query) and node.limit is None:
        node = node.body
    return node if isinstance(node, Select) else None


def _calls(node: Node) -> Iterator[Call]:
    """The calls of a query's own level."""
    for child in children(node):
        if isinstance(child, (Query, Subquery)):
            continue
        if isinstance(child, Call):
            yield child
        yield from _calls(child)


def _selected(view: View) -> dict[str, SetColumn]:
    """By the view's name of a column, in small letters, the column that the SELECT names."""
    tree = view.facts.tree
    node: Node = tree.query if isinstance(tree, QueryStatement) else tree
    while isinstance(node, Query):
        node = node.body
    found: dict[str, SetColumn] = {}
    for index, item in enumerate(node.items if isinstance(node, Select) else ()):
        if isinstance(item.value, Name):
            parts = item.value.parts
            alias = item.alias or parts[-1]
            name = view.columns[index] if index < len(view.columns) else alias
            qualifier = parts[-2] if len(parts) > 1 else None
            found[name.lower()] = SetColumn(qualifier=qualifier, name=parts[-1])
    return found


def _owners(
    column: SetColumn, candidates: Sequence[TableUse], objects: Objects
) -> Iterator[TableUse]:
    if column.qualifier is not None:
        qualifier = column.qualifier.lower()
        named = [use for use in candidates if use.alias.lower() == qualifier]
        exact = [use for use in named if use.alias == column.qualifier]
        yield from exact or named or candidates
        return
    known = [(use, _columns_of(use.name, objects)) for use in candidates]
    owners = [use for use, columns in known if columns and column.name.lower() in columns]
    yield from owners or [use for use, columns in known if columns is None] or candidates


def _columns_of(name: TableName, objects: Objects) -> frozenset[str] | None:
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
            columns = _columns_of(use.name, objects)
            if columns is None:
                return None
            found |= columns
    return found or None
