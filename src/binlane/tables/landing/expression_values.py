"""The values of an expression over the columns of rows, a column at a time, as the servers have them.

What is here is exact on MariaDB and MySQL alike, whatever a session's settings are; all else is
refused before any value is looked at: division, text compared by a collation, the time of day of a
moment, functions that are not named here. Exact are whole numbers and DECIMAL, DOUBLE by `+`, `-`,
`*`, conditions, and what is cut and joined of text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlane.statements.sql.evaluation.known_names import StatementText
from binlane.statements.sql.evaluation.literal_values import content_of, number_value
from binlane.statements.sql.tree.expressions import (
    Call,
    Case,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Operation,
)
from binlane.tables.landing.column_values import Values
from binlane.tables.landing.expression_functions import (
    ARITHMETIC,
    COMPARING,
    FUNCTIONS,
    INTEGER_TYPE,
    LOGICAL,
    LONG,
    NUMERIC,
    NotComputableError,
    Typed,
    alike,
    compared,
    concat,
    decimal,
    double,
    long,
    negative,
    text,
)


@dataclass(frozen=True, slots=True)
class Computing:
    """Expressions over some rows.

    Attributes:
        text: The statement's text that the tree stands for.
        column: The values of a column by its name in small letters; raises `NotComputableError` as
            `of_column`, also where there is none.
        rows: The number of the rows.
    """

    text: StatementText
    column: Callable[[str], Typed]
    rows: int

    def value(self, node: Expression) -> Typed:
        """The values of an expression.

        Raises:
            NotComputableError: If it has a part that is not exact here; that hangs on no value.
            NotToldError: If a value is one that the servers do not have, or have in their own way.
        """
        if isinstance(node, Name):
            return self.column(node.parts[-1].lower())
        if isinstance(node, Literal):
            return self._literal(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Operation):
            return self._operation(node)
        if isinstance(node, Call) and node.database is None and not node.is_quoted:
            return self._call(node)
        raise NotComputableError(self._shown(node))

    def _shown(self, node: Expression) -> str:
        return self.text.text_of(node)[:40]

    def _literal(self, node: Literal) -> Typed:
        if node.kind is LiteralKind.NULL:
            return self._null()
        if node.kind in {LiteralKind.TRUE, LiteralKind.FALSE}:
            return self._repeated(int(node.kind is LiteralKind.TRUE))
        if node.kind is LiteralKind.NUMBER:
            number = number_value(content_of(node, self.text))
            if isinstance(number, int):
                return self._repeated(number)
            scalar: Any = pa.scalar(number)
            numbers = pa.chunked_array([pa.repeat(scalar, self.rows)])
            return double(numbers) if isinstance(number, float) else decimal(numbers)
        if node.kind is LiteralKind.STRING and node.introducer.lower() in {
            "",
            "utf8mb4",
            "_utf8mb4",
        }:
            content = content_of(node, self.text)
            repeated = pa.repeat(pa.scalar(content, pa.string()), self.rows)
            return text(pa.chunked_array([repeated]), "" if content.isascii() else "utf8mb4")
        raise NotComputableError(self._shown(node))

    def _repeated(self, number: int) -> Typed:
        if number > LONG[True][1]:
            raise NotComputableError("so large a number")
        values = pa.repeat(pa.scalar(number, INTEGER_TYPE), self.rows)
        found = long(pa.chunked_array([values]), is_unsigned=number > LONG[False][1])
        return replace(found, constant=number)

    def _null(self) -> Typed:
        nulls = pa.chunked_array([pa.nulls(self.rows, INTEGER_TYPE)])
        return replace(long(nulls), is_null=True)

    # Operators ------------------------------------------------------------------------------------

    def _operation(self, node: Operation) -> Typed:
        operator, operands = node.operator, node.operands
        if operator in ARITHMETIC:
            return reduce(ARITHMETIC[operator], [self.value(each) for each in operands])
        if operator == "CONCAT":
            return concat(*(self.value(each) for each in operands))
        if operator in {"NEG", "POS"}:
            value = self.value(operands[0])
            if operator == "POS":
                return value
            if value.constant is not None:
                return self._repeated(-value.constant)
            return negative(self._repeated(0), value)
        found = self._condition(node)
        if found is None:
            raise NotComputableError(self._shown(node))
        return long(_as_number(pc.invert(found) if node.is_negated else found))

    def _condition(self, node: Operation) -> Values | None:
        """The values of an operator that holds or does not; None of other operators."""
        operator, operands = node.operator, node.operands
        if operator in LOGICAL:
            return reduce(LOGICAL[operator], [self.holds(each) for each in operands])
        if operator == "NOT":
            return pc.invert(self.holds(operands[0]))
        if operator == "IS NULL":
            return pc.is_null(self.value(operands[0]).values)
        if operator in {"IS TRUE", "IS FALSE"}:
            holds = self.holds(operands[0])
            holds = holds if operator == "IS TRUE" else pc.invert(holds)
            return pc.fill_null(holds, pa.scalar(value=False))
        if operator in COMPARING:
            return compared(operator, *(self.value(each) for each in operands))
        if operator == "<=>":
            first, last = (self.value(each) for each in operands)
            same = pc.fill_null(compared("=", first, last), pa.scalar(value=False))
            return pc.or_(same, pc.and_(pc.is_null(first.values), pc.is_null(last.values)))
        if operator == "BETWEEN":
            value, low, high = (self.value(each) for each in operands)
            return pc.and_kleene(compared(">=", value, low), compared("<=", value, high))
        if operator == "IN":
            value, *members = [self.value(each) for each in operands]
            return reduce(pc.or_kleene, [compared("=", value, each) for each in members])
        return None

    def holds(self, node: Expression) -> Values:
        """Return a condition's values as booleans; NULL where the condition is NULL."""
        value = self.value(node)
        if value.family not in NUMERIC:
            raise NotComputableError(self._shown(node))
        return pc.not_equal(value.values, pa.scalar(0).cast(value.values.type))

    # Functions that choose ------------------------------------------------------------------------

    def _case(self, node: Case) -> Typed:
        if node.operand is None:
            conditions = [self.holds(when) for when, _ in node.branches]
        else:
            operand = self.value(node.operand)
            conditions = [compared("=", operand, self.value(when)) for when, _ in node.branches]
        results = [self.value(then) for _, then in node.branches]
        otherwise = self._null() if node.otherwise is None else self.value(node.otherwise)
        return self._chosen(conditions, [*results, otherwise])

    def _chosen(self, conditions: Sequence[Values], results: Sequence[Typed]) -> Typed:
        """The result of the first condition that holds, or the last one."""
        *others, found = alike(results)
        values = found.values
        for condition, result in reversed(list(zip(conditions, others, strict=True))):
            holds = pc.fill_null(condition, pa.scalar(value=False))
            values = pc.if_else(holds, result.values, values)
        return replace(found, values=values)

    def _call(self, node: Call) -> Typed:
        name, arguments = node.upper_name, [self.value(each) for each in node.arguments]
        if node.words or node.order_by or node.over is not None:
            raise NotComputableError(self._shown(node))
        if name == "IF" and len(arguments) == 3:
            return self._chosen([self.holds(node.arguments[0])], arguments[1:])
        if name in {"COALESCE", "IFNULL"} and arguments:
            *others, last = arguments
            return self._chosen([pc.is_valid(each.values) for each in others], [*others, last])
        if name == "NULLIF" and len(arguments) == 2:
            equal = compared("=", *arguments)
            return self._chosen([equal], [self._null(), arguments[0]])
        function = FUNCTIONS.get((name, len(arguments))) or FUNCTIONS.get((name, -1))
        if function is None or not arguments:
            raise NotComputableError(self._shown(node))
        return function(*arguments)


def _as_number(condition: Values) -> Values:
    return condition.cast(pa.int8()).cast(INTEGER_TYPE)
