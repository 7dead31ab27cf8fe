"""Rows of INSERT and REPLACE that lack a value (1048, 1364), whatever the tables hold.

The rows stand in the text, and their table has no BEFORE trigger. Source: sql_insert.cc
`check_that_all_fields_are_given_values` and sql_base.cc `fill_record` of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Table
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.expressions import Default, Literal, LiteralKind, Row
from binlane.statements.sql.tree.statements import Insert

_FILLED: Final = frozenset(("TIMESTAMP", "ENUM"))
"""Types of which a column without a default may have a value all the same."""


def lacking_value(
    facts: StatementFacts, table: Table, *, server: Server, is_strict: bool, is_kept: bool
) -> Refusal | None:
    """The error of an INSERT whose rows surely lack a value; None if it has none.

    Args:
        facts: Facts of the INSERT or REPLACE.
        table: Where to; without triggers that run before its rows.
        server: Server whose rules apply here.
        is_strict: sql_mode is strict for the table.
        is_kept: The table keeps rows that come before a wrong one.
    """
    tree = facts.tree
    if not isinstance(tree, Insert) or "IGNORE" in tree.modifiers or not table.is_complete:
        return None
    columns = table.definition.columns
    names = _names(tree, table)
    if names is None or (tree.query is not None and not (server.is_mariadb and is_strict)):
        return None
    given = {name.lower() for name in names}
    known = {column.name.lower(): column for column in columns}
    rows = tree.rows if isinstance(tree.rows, tuple) and (is_strict or len(tree.rows) == 1) else ()
    targets = [known.get(name.lower()) for name in names]
    first, *others = [_row_error(row, targets, server, is_strict) for row in rows] or [None]
    lacks = [one for one in columns if one.name.lower() not in given and _needs_value(one)]
    lack = refusal(1364, lacks[0].name) if lacks and is_strict else None
    found = [lack, first] if server.is_mariadb else [first, lack]
    return next(filter(None, [*found, *([] if is_kept else others)]), None)


def _names(tree: Insert, table: Table) -> list[str] | None:
    """The columns that get values; None where rows say nothing."""
    if tree.columns is not None:
        return list(tree.columns)
    if tree.rows and not len(tree.rows[0].items):
        return []
    return [column.name for column in table.definition.columns if column.is_visible]


def _needs_value(column: TableColumn) -> bool:
    return (
        (not column.is_nullable or column.has_no_default)
        and column.default is None
        and not column.is_auto_increment
        and not column.is_generated
        and column.type_name not in _FILLED
    )


def _row_error(
    row: Row,
    columns: Sequence[TableColumn | None],
    server: Server,
    is_strict: bool,  # noqa: FBT001 - as above
) -> Refusal | None:
    for item, column in zip(row.items, columns, strict=False):
        if column is None:
            continue
        if isinstance(item, Default) and item.column is None:
            if is_strict and _needs_value(column):
                return refusal(1364, column.name)
        elif isinstance(item, Literal) and item.kind is LiteralKind.NULL:
            is_filled = server.is_mariadb and column.type_name == "TIMESTAMP"
            if not (column.is_nullable or column.is_auto_increment or is_filled):
                return refusal(1048, column.name)
    return None
