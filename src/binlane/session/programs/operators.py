"""Operators of SQL on values that may be NULL or unknown."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal, localcontext
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from binlane.session.programs.types import as_number, exact, rounded
from binlane.session.programs.values import (
    UNKNOWN,
    Number,
    Temporal,
    Text,
    Unknown,
    Value,
    plain_text,
)

_SCALE_MAX: Final = 30
"""Digits behind the point of a DECIMAL of MySQL."""
_GROUP: Final = 9
_QUOTIENT_SCALE_MAX: Final = 72
_PRECISION: Final = 90
_DIVISION_DIGITS: Final = 4
"""div_precision_increment."""


class Rules(Protocol):
    """Whose rules an operator follows."""

    @property
    def is_mariadb(self) -> bool:
        """MariaDB, not MySQL."""


Operator: TypeAlias = Callable[[Value, Value, Rules], Value]


def truth(value: Value) -> int | Unknown | None:
    """Whether a value holds as a condition."""
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        return number
    return int(number != 0)


def negation(value: Value) -> int | Unknown | None:
    """NOT."""
    holds = truth(value)
    return holds if holds is None or isinstance(holds, Unknown) else 1 - holds


def negative(value: Value) -> Value:
    """The unary minus."""
    number = as_number(value)
    return number if number is None or isinstance(number, Unknown) else -number


def _numbers(left: Value, right: Value) -> tuple[Number, Number] | Unknown | None:
    """Both as numbers; NULL or unknown if one of them is."""
    first, last = as_number(left), as_number(right)
    if first is None or last is None:
        return None
    if isinstance(first, Unknown) or isinstance(last, Unknown):
        return UNKNOWN
    return first, last


def _arithmetic(
    of_exact: Callable[[Decimal, Decimal], Decimal],
    of_integers: Callable[[int, int], int],
    of_doubles: Callable[[float, float], float],
) -> Operator:
    def apply(left: Value, right: Value, _: Rules) -> Value:
        both = _numbers(left, right)
        if both is None or isinstance(both, Unknown):
            return both
        first, last = both
        if isinstance(first, float) or isinstance(last, float):
            return of_doubles(float(first), float(last))
        if isinstance(first, int) and isinstance(last, int):
            return of_integers(first, last)
        return of_exact(exact(first), exact(last))

    return apply


def _divided(left: Value, right: Value, rules: Rules) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    first, last = both
    if last == 0:
        return None
    if isinstance(first, float) or isinstance(last, float):
        return float(first) / float(last)
    with localcontext() as context:
        context.prec = _PRECISION
        quotient = exact(first) / exact(last)
        if not rules.is_mariadb:
            return rounded(quotient, min(scale_of(first) + _DIVISION_DIGITS, _SCALE_MAX))
        unit = Decimal(1).scaleb(-_whole_groups(scale_of(first), scale_of(last)))
        return quotient.quantize(unit, ROUND_DOWN)


def _whole_groups(first: int, last: int) -> int:
    """Digits behind the point of MariaDB's quotient, which come in groups of nine."""
    scales = [-(-scale // _GROUP) * _GROUP for scale in (first, last)]
    more = max(0, _DIVISION_DIGITS - (scales[0] - first) - (scales[1] - last))
    return min(-(-(sum(scales) + more) // _GROUP) * _GROUP, _QUOTIENT_SCALE_MAX)


def _whole_quotient(left: Value, right: Value, _: Rules) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    if both[1] == 0:
        return None
    return int((exact(both[0]) / exact(both[1])).to_integral_value(ROUND_DOWN))


def _remainder(left: Value, right: Value, _: Rules) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    first, last = both
    if last == 0:
        return None
    rest = exact(first) % exact(last)
    if isinstance(first, float) or isinstance(last, float):
        return float(rest)
    return int(rest) if isinstance(first, int) and isinstance(last, int) else rest


def scale_of(number: Number) -> int:
    """Digits behind the point."""
    exponent = exact(number).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _bits(apply: Callable[[int, int], int]) -> Operator:
    def of_integers(left: Value, right: Value, _: Rules) -> Value:
        both = _numbers(left, right)
        if both is None or isinstance(both, Unknown):
            return both
        return apply(round(both[0]), round(both[1])) & 0xFFFF_FFFF_FFFF_FFFF

    return of_integers


def _shifted(by: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda value, count: by(value, count) if 0 <= count < 64 else 0


def compared(left: Value, right: Value) -> int | Unknown | None:
    """-1, 0 or 1 as the first is less than, equal to or greater than the second."""
    if left is None or right is None:
        return None
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(left, Text | Temporal) and isinstance(right, Text | Temporal):
        return _compared_texts(left, right)
    if isinstance(left, Temporal) or isinstance(right, Temporal):
        return UNKNOWN
    both = _numbers(left, right)
    assert isinstance(both, tuple)  # neither is NULL or unknown
    first, last = exact(both[0]), exact(both[1])
    return (first > last) - (first < last)


def _compared_texts(left: Text | Temporal, right: Text | Temporal) -> int:
    """Compare as the default collations do: without case and trailing blanks."""
    collations = {side.collation for side in (left, right) if isinstance(side, Text)}
    first, last = plain_text(left), plain_text(right)
    if not any(name == "binary" or name.endswith("_bin") for name in collations):
        first, last = first.casefold().rstrip(" "), last.casefold().rstrip(" ")
    return (first > last) - (first < last)


def _comparison(holds: Callable[[int], bool]) -> Operator:
    def apply(left: Value, right: Value, _: Rules) -> Value:
        order = compared(left, right)
        return order if order is None or isinstance(order, Unknown) else int(holds(order))

    return apply


def _same(left: Value, right: Value, _: Rules) -> Value:
    """`<=>`."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if left is None or right is None:
        return int(left is right)
    order = compared(left, right)
    return order if isinstance(order, Unknown) else int(order == 0)


def _like(left: Value, right: Value, _: Rules) -> Value:
    if left is None or right is None:
        return None
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    pattern = re.sub(
        r"\\(.)|(%)|(_)|(.)",
        lambda found: ".*" if found[2] else "." if found[3] else re.escape(found[1] or found[4]),
        plain_text(right),
        flags=re.DOTALL,
    )
    matched = re.fullmatch(pattern, plain_text(left), re.IGNORECASE | re.DOTALL)
    return int(matched is not None)


BINARY_OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType(
    {
        "+": _arithmetic(operator.add, operator.add, operator.add),
        "-": _arithmetic(operator.sub, operator.sub, operator.sub),
        "*": _arithmetic(operator.mul, operator.mul, operator.mul),
        "/": _divided,
        "DIV": _whole_quotient,
        "MOD": _remainder,
        "%": _remainder,
        "&": _bits(operator.and_),
        "|": _bits(operator.or_),
        "^": _bits(operator.xor),
        "<<": _bits(_shifted(operator.lshift)),
        ">>": _bits(_shifted(operator.rshift)),
        "=": _comparison(lambda order: order == 0),
        "<>": _comparison(lambda order: order != 0),
        "!=": _comparison(lambda order: order != 0),
        "<": _comparison(lambda order: order < 0),
        ">": _comparison(lambda order: order > 0),
        "<=": _comparison(lambda order: order <= 0),
        ">=": _comparison(lambda order: order >= 0),
        "<=>": _same,
        "LIKE": _like,
    }
)
