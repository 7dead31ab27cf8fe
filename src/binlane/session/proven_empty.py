"""UPDATE and DELETE of one table that the servers know to change nothing before they look at rows.

Neither server logs them, in any format (`-- @rows none` of a script says it of all others).
"""

from __future__ import annotations

import re
from typing import Final

from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts

_LITERAL: Final = r"(?:\d+|'[^'\\]*'|TRUE|FALSE|NULL)"
_CONDITION: Final = re.compile(
    rf"\bWHERE\s+({_LITERAL})(?:\s*(=|<>|!=|<=|>=|<|>)\s*({_LITERAL}))?\s*"
    r"(?:$|\bORDER\s+BY\b|\bLIMIT\b|\bRETURNING\b)",
    re.IGNORECASE,
)
_KINDS: Final = (StatementKind.UPDATE, StatementKind.DELETE)


def is_proven_empty(facts: StatementFacts, statement: str) -> bool:
    """Whether a statement has LIMIT 0, or a condition of literals that does not hold."""
    if facts.effects.kind not in _KINDS or facts.is_multi_table:
        return False
    return any(limit.is_zero for limit in facts.limits) or condition(facts, statement) is False


def condition(facts: StatementFacts, statement: str) -> bool | None:
    """Whether the WHERE clause holds whatever the row: None if that is not plain to see."""
    if not facts.has_where:
        return True
    found = _CONDITION.search(statement)
    if found is None:
        return None
    left, operator, right = found.groups()
    if operator is None:
        return _value(left) not in (0, None, "")
    return _compared(_value(left), operator, _value(right))


def _value(literal: str) -> int | str | None:
    if literal.isdigit():
        return int(literal)
    if literal.startswith("'"):
        return literal[1:-1]
    return {"TRUE": 1, "FALSE": 0, "NULL": None}[literal.upper()]


def _compared(left: float | str | None, operator: str, right: float | str | None) -> bool | None:
    if left is None or right is None:
        return False
    if isinstance(left, int) and isinstance(right, int):
        order = (left > right) - (left < right)
    elif isinstance(left, str) and isinstance(right, str) and left.isalnum() and right.isalnum():
        one, other = left.lower(), right.lower()
        order = (one > other) - (one < other)
    else:
        return None
    return {
        "=": order == 0,
        "<>": order != 0,
        "!=": order != 0,
        "<": order < 0,
        ">": order > 0,
        "<=": order <= 0,
        ">=": order >= 0,
    }[operator]
