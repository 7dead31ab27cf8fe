"""Whether a statement makes the server choose AUTO_INCREMENT values.

It does where a new row gives the column no value, NULL or DEFAULT, and mostly also for 0.

Source: MariaDB 10.11 and MySQL 9.7 sql/handler.cc, `handler::update_auto_increment`.
"""

from __future__ import annotations

from typing import Final

from binlane.policy.resolution import ResolvedStatement, TableAccess
from binlane.policy.used_objects import columns_behind, columns_of_view
from binlane.programs.environment import SessionEnvironment
from binlane.programs.routines import silent
from binlane.sql.evaluation.statements import expressions_at, leaves_to_server
from binlane.sql.facts import RowChange, SetColumn, StatementFacts
from binlane.sql.schema import Table
from binlane.sql.tree.definitions import CreateTable
from binlane.sql.tree.expressions import Name, Query, Select, SelectItem, SetOperation, Star
from binlane.sql.tree.statements import Insert

_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)


def generates_insert_id(
    facts: StatementFacts, resolved: ResolvedStatement, environment: SessionEnvironment
) -> bool:
    """Whether the server chooses an AUTO_INCREMENT value for a row, if there is one.

    Args:
        facts: What the statement says.
        resolved: Its tables.
        environment: What its expressions can refer to.
    """
    for access in resolved.accesses:
        column = access.table.auto_increment
        if (
            access.is_prelocked
            or not access.changes & _INSERTING
            or column is None
            or not access.table.is_auto_increment_first
        ):
            continue
        columns = _columns(facts, access, environment)
        if column.lower() not in columns:
            return True
        tree = facts.tree
        if isinstance(tree, Insert) and _leaves(
            tree, columns.index(column.lower()), facts, environment
        ):
            return True
    return False


def generates_for_created(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    created: Table,
    environment: SessionEnvironment,
) -> bool:
    """Whether the query of CREATE … SELECT leaves a value of the new table to the server."""
    column, tree = created.auto_increment, facts.tree
    if column is None or not created.is_auto_increment_first:
        return False
    if not isinstance(tree, CreateTable) or tree.query is None:
        return False
    names = _names(tree.query)
    if "*" in names and any(_has_column(access, column) for access in resolved.accesses):
        return False
    if column.lower() not in names:
        return True
    return _leaves(tree.query, names.index(column.lower()), facts, environment)


def _leaves(
    source: Insert | Query,
    position: int,
    facts: StatementFacts,
    environment: SessionEnvironment,
) -> bool:
    """Whether some value of a column makes the server choose one."""
    zero_is_chosen = not environment.host.has_sql_mode("NO_AUTO_VALUE_ON_ZERO")
    with silent(environment):
        return any(
            leaves_to_server(value, facts, environment, zero_is_chosen=zero_is_chosen)
            for value in expressions_at(source, position)
        )


def _names(query: Query) -> list[str]:
    """The names of the columns that a query gives; `*` for all columns of its tables."""
    body = query.body
    if isinstance(body, Query):
        return _names(body)
    if isinstance(body, SetOperation):
        return _names(body.operands[0])
    if not isinstance(body, Select):
        return []
    return [_name(item) for item in body.items]


def _name(item: SelectItem) -> str:
    if isinstance(item.value, Star):
        return "*"
    if item.alias is not None:
        return item.alias.lower()
    return item.value.parts[-1].lower() if isinstance(item.value, Name) else ""


def _columns(
    facts: StatementFacts, access: TableAccess, environment: SessionEnvironment
) -> list[str]:
    """The table's columns that get values, in the order of the values."""
    view = None
    if access.via and access.via[0].kind == "view":
        view = environment.host.objects.view(access.via[0].name)
    if facts.columns is not None:
        names = list(facts.columns)
        if view is not None:
            given = [SetColumn(qualifier=None, name=name) for name in names]
            names = [column.name for column in columns_behind(view, given)]
        return [name.lower() for name in names]
    names = columns_of_view(view) if view is not None else []
    if not names:
        names = [column.name for column in access.table.definition.columns]
    return [name.lower() for name in names]


def _has_column(access: TableAccess, column: str) -> bool:
    return any(
        one.name.lower() == column.lower() for one in access.table.definition.columns
    ) and not (access.is_prelocked or access.changes)
