"""Which values an expression can have where one alone is not known: for texts of dynamic SQL.

`SET @s = IF((SELECT COUNT(*) FROM …) > 0, 'ALTER …', 'SELECT 1')` leaves one of two texts in @s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from binlane.sql.evaluation.evaluator import (
    Environment,
    Given,
    StatementText,
    evaluate,
    holds,
    selected_alone,
)
from binlane.sql.evaluation.functions import FUNCTIONS
from binlane.sql.evaluation.values import UNKNOWN, Value
from binlane.sql.tree.expressions import (
    Assign,
    Call,
    Case,
    Cast,
    Expression,
    Operation,
    Query,
    Select,
    Star,
    Subquery,
    UserVariable,
)
from binlane.sql.tree.node import Node, children

_VALUES_MAX: Final = 64
"""More than so many are as good as not known."""
_COALESCING: Final = frozenset(("IFNULL", "COALESCE", "NVL"))
_AGGREGATES: Final = frozenset(
    (
        *("COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "BIT_AND", "BIT_OR", "BIT_XOR"),
        *("STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"),
        *("JSON_ARRAYAGG", "JSON_OBJECTAGG", "ANY_VALUE"),
    )
)

Values = tuple[Value, ...]
"""Each once, in the order of the text."""


def possible_values(
    node: Expression, text: StatementText, environment: Environment
) -> Values | None:
    """All values that an expression can have; None where they cannot be told.

    Parts are evaluated more than once: the environment is to be one in which that does no harm.
    """
    found = _possible(node, text, environment)
    return None if found is None or len(found) > _VALUES_MAX else found


def _possible(node: Expression, text: StatementText, environment: Environment) -> Values | None:
    if isinstance(node, UserVariable):
        return environment.user_variable_values(node.name)
    if isinstance(node, Assign):
        return possible_values(node.value, text, environment)
    if isinstance(node, Subquery):
        return _of_query(node.query, text, environment)
    if isinstance(node, Case):
        return _of_case(node, text, environment)
    if isinstance(node, Call):
        return _of_call(node, text, environment)
    if isinstance(node, Operation):
        operands = node.operands[:1] if node.operator == "COLLATE" else node.operands
        rest = node.operands[len(operands) :]
        return _of_parts(
            operands, lambda given: replace(node, operands=(*given, *rest)), text, environment
        )
    if isinstance(node, Cast):
        return _of_parts(
            (node.value,), lambda given: replace(node, value=given[0]), text, environment
        )
    return _known(node, text, environment)


def _known(node: Expression, text: StatementText, environment: Environment) -> Values | None:
    value = evaluate(node, text, environment)
    return None if value is UNKNOWN else (value,)


def _of_call(node: Call, text: StatementText, environment: Environment) -> Values | None:
    name = node.upper_name if node.database is None and not node.is_quoted else ""
    if name == "IF" and len(node.arguments) == 3:
        condition, first, last = node.arguments
        return _of_branches(((condition, first),), last, text, environment)
    if name in _COALESCING:
        return _of_coalesce(node.arguments, text, environment)
    if name == "NULLIF" and len(node.arguments) == 2:
        found = possible_values(node.arguments[0], text, environment)
        return None if found is None else _joined(found, (None,))
    if name in FUNCTIONS:
        return _of_parts(
            node.arguments, lambda given: replace(node, arguments=given), text, environment
        )
    return _known(node, text, environment)


def _joined(first: Sequence[Value], more: Sequence[Value]) -> Values:
    return tuple(dict.fromkeys((*first, *more)))


def _of_case(node: Case, text: StatementText, environment: Environment) -> Values | None:
    operand = node.operand
    branches = node.branches
    if operand is not None:
        branches = tuple(
            (Operation(each.at, each.end, "=", (operand, each)), result)
            for each, result in branches
        )
    return _of_branches(branches, node.otherwise, text, environment)


def _of_branches(
    branches: Sequence[tuple[Expression, Expression]],
    otherwise: Expression | None,
    text: StatementText,
    environment: Environment,
) -> Values | None:
    made: Values = ()
    for condition, result in branches:
        taken = holds(condition, text, environment)
        if taken is False:
            continue
        values = possible_values(result, text, environment)
        if values is None:
            return None
        made = _joined(made, values)
        if taken:
            return made
    values = (None,)
    if otherwise is not None and (values := possible_values(otherwise, text, environment)) is None:
        return None
    return _joined(made, values)


def _of_coalesce(
    nodes: Sequence[Expression], text: StatementText, environment: Environment
) -> Values | None:
    made: Values = (None,)
    for node in nodes:
        values = possible_values(node, text, environment)
        if values is None:
            return None
        made = _joined([each for each in made if each is not None], values)
        if None not in values:
            return made
    return made


def _of_query(query: Query, text: StatementText, environment: Environment) -> Values | None:
    """Of a query as a value: NULL too, where it may have no row."""
    select = query.body
    if not isinstance(select, Select) or len(select.items) != 1:
        return None
    value = select.items[0].value
    if isinstance(value, Star):
        return None
    found = possible_values(value, text, environment)
    if found is None or selected_alone(query) is not None:
        return found
    is_one_row = not (select.group_by or select.having or query.limit) and has_aggregate(value)
    return found if is_one_row else _joined(found, (None,))


def has_aggregate(node: Node) -> bool:
    """Whether a node calls an aggregate, not in a query inside of it."""
    if isinstance(node, Call) and node.upper_name in _AGGREGATES and node.over is None:
        return True
    return any(has_aggregate(each) for each in children(node) if not isinstance(each, Query))


def _of_parts(
    parts: Sequence[Expression],
    whole: Callable[[tuple[Expression, ...]], Expression],
    text: StatementText,
    environment: Environment,
) -> Values | None:
    """Of each choice of values for the parts that a whole is made of."""
    choices: list[Values] = []
    for part in parts:
        values = possible_values(part, text, environment)
        if values is None:
            return None
        choices.append(values)
    if prod(map(len, choices)) > _VALUES_MAX:
        return None
    made: dict[Value, None] = {}
    for chosen in product(*choices):
        given = tuple(Given(0, 0, (), value=value) for value in chosen)
        value = evaluate(whole(given), text, environment)
        if value is UNKNOWN:
            return None
        made[value] = None
    return tuple(made)
