"""Operators and functions that do not simply take the values of all their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from binlane.session.programs.expression_environment import Compiled, Environment
from binlane.session.programs.operators import negation, truth
from binlane.session.programs.types import VariableType, default_collation
from binlane.session.programs.values import UNKNOWN, Text, Value


def combined(first: Value, last: Value) -> Value:
    """AND of two truths."""
    if first == 0 or last == 0:
        return 0
    if first is UNKNOWN or last is UNKNOWN:
        return UNKNOWN
    return None if first is None or last is None else 1


def both(left: Compiled, right: Compiled, environment: Environment) -> Value:
    """AND; its right side is left alone where the left one tells the result."""
    first = truth(left(environment))
    return 0 if first == 0 else combined(first, truth(right(environment)))


def either(left: Compiled, right: Compiled, environment: Environment) -> Value:
    """OR; its right side is left alone where the left one tells the result."""
    first = truth(left(environment))
    if first == 1:
        return 1
    return negation(combined(negation(first), negation(truth(right(environment)))))


def exclusive(left: Compiled, right: Compiled, environment: Environment) -> Value:
    """XOR."""
    first, last = truth(left(environment)), truth(right(environment))
    if first is UNKNOWN or last is UNKNOWN:
        return UNKNOWN
    return None if first is None or last is None else int(first != last)


def cast(value: Value, type_text: str, environment: Environment) -> Value:
    """CAST(… AS type)."""
    kind = VariableType.parse(
        type_text, collation=environment.collation, is_mariadb=environment.is_mariadb
    )
    stored = kind.store(value)
    if isinstance(stored, Text) and kind.length is not None:
        return Text(stored.content[: kind.length], stored.collation)
    return stored


def recoded(value: Value, charset: str, environment: Environment) -> Value:
    """CONVERT(… USING charset)."""
    if value is None or value is UNKNOWN:
        return value
    return cast(value, f"CHAR CHARACTER SET {charset}", environment)


def _if(arguments: Sequence[Compiled], environment: Environment) -> Value:
    if len(arguments) != 3:
        return UNKNOWN
    holds = truth(arguments[0](environment))
    if holds is UNKNOWN:
        return UNKNOWN
    return arguments[1 if holds else 2](environment)


def _coalesce(arguments: Sequence[Compiled], environment: Environment) -> Value:
    for argument in arguments:
        value = argument(environment)
        if value is not None:
            return value
    return None


def _database(arguments: Sequence[Compiled], environment: Environment) -> Value:
    if arguments:
        return UNKNOWN
    collation = default_collation("utf8", is_mariadb=environment.is_mariadb)
    return Text(environment.database, collation) if environment.database else None


LAZY_FUNCTIONS: Final[dict[str, Callable[[Sequence[Compiled], Environment], Value]]] = {
    "IF": _if,
    "IFNULL": _coalesce,
    "COALESCE": _coalesce,
    "NVL": _coalesce,
    "DATABASE": _database,
    "SCHEMA": _database,
}
"""Functions that do not evaluate all their arguments, or need none but the session."""
