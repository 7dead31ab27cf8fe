"""Conditions that no row can meet, as the servers find them out from the ranges of a table's keys.

UPDATE and DELETE of one table ask for the ranges of its keys before they look at rows. Where those
of a key's column are empty, the statement ends there and is logged in no format. Compared are NULL
and, of columns of whole numbers, those; of all else any row may do.

Source: MariaDB 10.11 sql/opt_range.cc, `SQL_SELECT::test_quick_select`; measured on 10.11.19 and
11.8.9 by 100 conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.known_names import Environment, StatementText
from binlane.statements.sql.evaluation.statements import is_constant
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.expressions import (
    Call,
    Expression,
    Name,
    Node,
    Operation,
    UserVariable,
    children,
)

_Bound = tuple[float, int]
"""A number, and whether a range ends before it (-1), with it (0) or behind it (1)."""
_FROM: Final[_Bound] = (float("-inf"), 0)
_TO: Final[_Bound] = (float("inf"), 0)


class _Values(NamedTuple):
    """Values that a column has in rows that may meet a condition.

    Attributes:
        has_null: True if NULL is among the values.
        ranges: Ranges of the other values, in order, none of which meets another.
    """

    has_null: bool
    ranges: tuple[tuple[_Bound, _Bound], ...]

    def both(self, other: _Values) -> _Values:
        """Give the values that both have."""
        met: list[tuple[_Bound, _Bound]] = []
        left, right = 0, 0
        while left < len(self.ranges) and right < len(other.ranges):
            (one_first, one_last), (first, last) = self.ranges[left], other.ranges[right]
            if max(one_first, first) <= min(one_last, last):
                met.append((max(one_first, first), min(one_last, last)))
            if one_last < last:
                left += 1
            else:
                right += 1
        return _Values(has_null=self.has_null and other.has_null, ranges=tuple(met))

    def either(self, other: _Values) -> _Values:
        """Give the values that at least one of both has."""
        joined: list[tuple[_Bound, _Bound]] = []
        for first, last in sorted((*self.ranges, *other.ranges)):
            if joined and first <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], last)
            else:
                joined.append((first, last))
        return _Values(has_null=self.has_null or other.has_null, ranges=tuple(joined))


_NONE: Final = _Values(has_null=False, ranges=())
_NULL: Final = _Values(has_null=True, ranges=())
_VALUE: Final = _Values(has_null=False, ranges=((_FROM, _TO),))
_NEGATED: Final = MappingProxyType(
    {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
)
_TURNED: Final = MappingProxyType({"<": ">", ">": "<", "<=": ">=", ">=": "<="})
_TIMES: Final = frozenset(("DATE", "DATETIME"))
"""Types of which IS NULL also finds the zero date."""
_BITS: Final = MappingProxyType(
    {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "BIGINT": 64}
)
_UNLIKE: Final = frozenset(("<>", "<", ">"))


def cannot_be_met(
    condition: Expression,
    columns: Mapping[str, TableColumn],
    text: StatementText,
    environment: Environment,
) -> bool:
    """True if no row can meet a condition, as the ranges of some columns show.

    Args:
        condition: Condition on the rows of one table.
        columns: Columns of keys, by their names in small letters, each nullable or not as a primary
            key makes it.
        text: Text that the condition stands in.
        environment: Environment in which evaluation has no effects.
    """
    search = _Search(columns, text, environment)
    return search.is_impossible(condition)


@dataclass(frozen=True, slots=True)
class _Search:
    columns: Mapping[str, TableColumn]
    text: StatementText
    environment: Environment
    # Each part of a condition is asked for from all that stand around it.
    _impossible: dict[Expression, bool] = field(default_factory=dict)
    _known: dict[tuple[Expression, str, bool], _Values | None] = field(default_factory=dict)

    def is_impossible(self, node: Expression) -> bool:
        """True if no row meets a condition."""
        found = self._impossible.get(node)
        if found is None:
            found = self._impossible[node] = self._find_impossible(node)
        return found

    def _find_impossible(self, node: Expression) -> bool:
        if not isinstance(node, Operation):
            return self._values_of_call(node) == _NONE
        if node.operator in _UNLIKE and not node.is_negated and _are_same(node.operands):
            return True
        if node.operator == "OR":
            return all(map(self.is_impossible, node.operands))
        if node.operator == "AND" and any(map(self.is_impossible, node.operands)):
            return True
        return any(self._values(node, name) == _NONE for name in self.columns)

    def _values(self, node: Expression, name: str, *, is_negated: bool = False) -> _Values | None:
        """The values of a column in rows that meet a condition, or do not; None: it may be any."""
        key = node, name, is_negated
        if key not in self._known:
            self._known[key] = self._find_values(node, name, is_negated=is_negated)
        return self._known[key]

    def _find_values(self, node: Expression, name: str, *, is_negated: bool) -> _Values | None:
        if not isinstance(node, Operation):
            return None if is_negated else self._values_of_call(node, name)
        is_negated ^= node.is_negated
        operands = node.operands
        if node.operator == "NOT":
            return self._values(operands[0], name, is_negated=not is_negated)
        if node.operator in ("AND", "OR"):
            is_all = (node.operator == "AND") is not is_negated
            return self._joined(operands, name, is_all=is_all, is_negated=is_negated)
        if node.operator == "IS NULL" and _is(operands[0], name):
            return self._null(name) if not is_negated else _VALUE
        if node.operator == "BETWEEN" and _is(operands[0], name) and not is_negated:
            first, last = (
                self._compared(name, operator, operand)
                for operator, operand in zip((">=", "<="), operands[1:], strict=True)
            )
            return first if last is None else last if first is None else first.both(last)
        if node.operator == "IN" and _is(operands[0], name):
            return self._listed(name, operands[1:], is_negated=is_negated)
        if node.operator == "<=>" and not is_negated:
            return self._same(name, operands)
        operator = _NEGATED.get(node.operator) if is_negated else node.operator
        if operator not in _NEGATED or operator is None:
            return None
        left, right = operands
        if _is(left, name):
            return self._compared(name, operator, right)
        return (
            self._compared(name, _TURNED.get(operator, operator), left)
            if _is(right, name)
            else None
        )

    def _is_constant(self, node: Expression) -> bool:
        """True if a value is known for good; the value of a variable is not."""
        return is_constant(node, self.environment) and not _has_variables(node)

    def _values_of_call(self, node: Expression, name: str | None = None) -> _Values | None:
        """ISNULL(column)."""
        if not isinstance(node, Call) or node.upper_name != "ISNULL" or node.database is not None:
            return None
        (operand,) = node.arguments
        if name is None:
            name = next((one for one in self.columns if _is(operand, one)), None)
        return self._null(name) if name is not None and _is(operand, name) else None

    def _joined(
        self, operands: Sequence[Expression], name: str, *, is_all: bool, is_negated: bool
    ) -> _Values | None:
        found: list[_Values] = []
        for operand in operands:
            values = self._values(operand, name, is_negated=is_negated)
            if values is None and not is_negated and self.is_impossible(operand):
                values = _NONE
            if values is not None:
                found.append(values)
            elif not is_all:
                return None
        join = _Values.both if is_all else _Values.either
        return _folded(join, found)

    def _null(self, name: str) -> _Values | None:
        column = self.columns[name]
        if column.is_nullable:
            return _NULL
        return None if column.type_name in _TIMES else _NONE

    def _same(self, name: str, operands: Sequence[Expression]) -> _Values | None:
        for one, other in (operands, operands[::-1]):
            if _is(one, name) and self._is_constant(other):
                if evaluate(other, self.text, self.environment) is None:
                    return self._null(name)
                return self._compared(name, "=", other)
        return None

    def _listed(
        self, name: str, listed: Sequence[Expression], *, is_negated: bool
    ) -> _Values | None:
        operator = "<>" if is_negated else "="
        found = [self._compared(name, operator, one) for one in listed]
        known = [one for one in found if one is not None]
        if len(known) < len(found) and not is_negated:
            return None
        join = _Values.both if is_negated else _Values.either
        return _folded(join, known)

    def _compared(self, name: str, operator: str, other: Expression) -> _Values | None:
        """The values of a column that compare so with a constant; none does with NULL."""
        if not self._is_constant(other):
            return None
        value = evaluate(other, self.text, self.environment)
        if value is None:
            return _NONE
        column = self.columns[name]
        bits = _BITS.get(column.type_name)
        if bits is None or not isinstance(value, int) or isinstance(value, bool):
            return None
        if not _fits(value, bits, is_unsigned=column.is_unsigned):
            return _NONE if operator == "=" else None
        ranges: tuple[tuple[_Bound, _Bound], ...]
        match operator:
            case "=":
                ranges = (((value, 0), (value, 0)),)
            case "<>":
                return _Values(has_null=False, ranges=((_FROM, (value, -1)), ((value, 1), _TO)))
            case "<" | "<=":
                ranges = ((_FROM, (value, -1 if operator == "<" else 0)),)
            case _:
                ranges = (((value, 1 if operator == ">" else 0), _TO),)
        return _Values(has_null=False, ranges=ranges)


def _folded(
    join: Callable[[_Values, _Values], _Values], found: Sequence[_Values]
) -> _Values | None:
    """Many joined by pairs, so that long lists of conditions take no more than their sorting."""
    while len(found) > 1:
        pairs = [found[at : at + 2] for at in range(0, len(found), 2)]
        found = [join(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return found[0] if found else None


def _fits(value: int, bits: int, *, is_unsigned: bool) -> bool:
    lowest = 0 if is_unsigned else -(1 << (bits - 1))
    return lowest <= value < lowest + (1 << bits)


def _has_variables(node: Node) -> bool:
    return isinstance(node, Name | UserVariable) or any(map(_has_variables, children(node)))


def _are_same(operands: Sequence[Expression]) -> bool:
    names = [one.parts[-1].lower() for one in operands if isinstance(one, Name)]
    return len(names) == len(operands) and len(set(names)) == 1


def _is(node: Expression, name: str) -> bool:
    return isinstance(node, Name) and node.parts[-1].lower() == name
