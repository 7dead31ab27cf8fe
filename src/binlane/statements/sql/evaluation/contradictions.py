"""Conditions that no row of a table can meet, as MySQL finds without its keys.

They contradict columns that are never NULL, or ask that one integer column equals several numbers.
`key_ranges` has the contradictions that both servers find by keys.

Source: MySQL 9.7 sql/sql_optimizer.cc `remove_eq_conds` and `propagate_cond_constants`; measured on
MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from binlane.statements.sql.evaluation.values import Value
from binlane.statements.sql.tree.expressions import Expression, Name, Operation


class KnownColumns(NamedTuple):
    """Facts on the columns of the one table that a statement changes; names are in small letters.

    Attributes:
        never_null: Columns that are NULL in no row.
        equated: Integer columns, whose equalities the server compares with each other.
    """

    never_null: frozenset[str] = frozenset()
    equated: frozenset[str] = frozenset()


NO_COLUMNS: Final = KnownColumns()


def null_is_known(node: Operation, columns: KnownColumns) -> bool | None:
    """True if IS [NOT] NULL of a column holds in every row, False if in none; None where rows decide."""
    if node.operator != "IS NULL" or not isinstance(node.operands[0], Name):
        return None
    if node.operands[0].parts[-1].lower() not in columns.never_null:
        return None
    return node.is_negated


def contradict(
    conditions: Iterable[Expression],
    columns: KnownColumns,
    value_of: Callable[[Expression], Value | None],
) -> bool:
    """True if no row can meet all of some conditions.

    Args:
        conditions: Parts that one AND joins.
        columns: Facts on the table's columns.
        value_of: Gives the value of an expression that no row changes; None for others.
    """
    numbers: dict[str, set[int]] = {}
    for condition in conditions:
        for column, number in _equalities(condition, value_of):
            numbers.setdefault(column, set()).add(number)
    return any(len(found) > 1 and one in columns.equated for one, found in numbers.items())


def _equalities(
    condition: Expression, value_of: Callable[[Expression], Value | None]
) -> Iterator[tuple[str, int]]:
    if not isinstance(condition, Operation) or condition.operator != "=":
        return
    left, right = condition.operands
    for column, other in ((left, right), (right, left)):
        if isinstance(column, Name) and value_of(column) is None:
            number = value_of(other)
            if isinstance(number, int) and not isinstance(number, bool):
                yield column.parts[-1].lower(), number
