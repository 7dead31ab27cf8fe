"""Conditions that no row of a table can meet, as the servers find before they look at one.

Of columns that are never NULL, and of what is asked of one column of integers several times. MySQL
sees equalities of all columns together; ranges both servers see of columns with an index.

Source: `remove_eq_conds`, `Item_func_isnull` and opt_range.cc `tree_and` of MariaDB 10.11 and MySQL
9.7; measured on MariaDB 10.11.19 and MySQL 9.7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from binlane.sql.evaluation.values import Value
from binlane.sql.tree.expressions import Expression, Name, Operation


class KnownColumns(NamedTuple):
    """What is known of the columns of the one table that a statement changes, in small letters.

    Attributes:
        never_null: The server knows of these that IS NULL holds for no row.
        are_seen_as_filled: It also knows that IS NOT NULL holds for each.
        equated: Of integers, of which it sees equalities together.
        ranged: Of integers, of which it sees all comparisons together.
    """

    never_null: frozenset[str] = frozenset()
    are_seen_as_filled: bool = False
    equated: frozenset[str] = frozenset()
    ranged: frozenset[str] = frozenset()


NO_COLUMNS: Final = KnownColumns()

_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Bound(NamedTuple):
    """What a column must be: in `operator`'s relation to a number."""

    column: str
    operator: str
    number: int


def null_is_known(node: Operation, columns: KnownColumns) -> bool | None:
    """Whether IS [NOT] NULL of a column holds, whatever the row; None where that hangs on rows."""
    if node.operator != "IS NULL" or not isinstance(node.operands[0], Name):
        return None
    if node.operands[0].parts[-1].lower() not in columns.never_null:
        return None
    if node.is_negated:
        return True if columns.are_seen_as_filled else None
    return False


def contradict(
    conditions: Iterable[Expression],
    columns: KnownColumns,
    value_of: Callable[[Expression], Value | None],
) -> bool:
    """Whether no row can meet all of some conditions.

    Args:
        conditions: Parts of one AND.
        columns: What is known of the table.
        value_of: The value of an expression that no row changes; None of others.
    """
    bounds: dict[str, list[_Bound]] = {}
    for condition in conditions:
        for bound in _bounds(condition, value_of):
            bounds.setdefault(bound.column, []).append(bound)
    return any(
        (column in columns.equated and _differ(found))
        or (column in columns.ranged and _leave_nothing(found))
        for column, found in bounds.items()
    )


def _differ(bounds: Iterable[_Bound]) -> bool:
    return len({bound.number for bound in bounds if bound.operator == "="}) > 1


def _leave_nothing(bounds: Iterable[_Bound]) -> bool:
    """Whether a range is empty; the servers do not ask whether an integer lies within."""
    lows: list[tuple[int, bool]] = []
    highs: list[tuple[int, bool]] = []
    for _, operator, number in bounds:
        if operator in {"=", ">", ">="}:
            lows.append((number, operator == ">"))
        if operator in {"=", "<", "<="}:
            highs.append((number, operator == "<"))
    if not lows or not highs:
        return False
    (low, is_above), (high, is_below) = max(lows), min(highs, key=lambda end: (end[0], not end[1]))
    return low > high or (low == high and (is_above or is_below))


def _bounds(
    condition: Expression, value_of: Callable[[Expression], Value | None]
) -> Iterator[_Bound]:
    if not isinstance(condition, Operation) or condition.is_negated:
        return
    operands = condition.operands
    if condition.operator == "BETWEEN":
        parts = ((">=", operands[0], operands[1]), ("<=", operands[0], operands[2]))
    elif condition.operator in _TURNED:
        parts = (
            (condition.operator, operands[0], operands[1]),
            (_TURNED[condition.operator], operands[1], operands[0]),
        )
    else:
        return
    for operator, column, other in parts:
        if isinstance(column, Name) and value_of(column) is None:
            number = value_of(other)
            if isinstance(number, int) and not isinstance(number, bool):
                yield _Bound(column.parts[-1].lower(), operator, number)
