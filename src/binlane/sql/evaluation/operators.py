"""Operators of SQL on values that may be NULL or unknown."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from types import MappingProxyType
from typing import Final, TypeAlias

from binlane.codec.types import Flavor
from binlane.sql.evaluation.values import (
    BINARY,
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
_UNSIGNED_MAX: Final = (1 << 64) - 1
_PRECISION: Final = 90
_DIVISION_DIGITS: Final = 4
"""div_precision_increment."""


_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_DIGITS: Final = re.compile(r"\s*[+-]?\d+")
Operator: TypeAlias = Callable[[Value, Value, Flavor], Value]


def exact(number: Number) -> Decimal:
    """A number as the decimal that its text says."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def rounded(value: Decimal, scale: int) -> Decimal:
    """A number with so many digits behind the point, halves away from zero."""
    try:
        return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    except InvalidOperation:
        return value


def as_number(value: Value) -> Number | Unknown | None:
    """What a value is where a number is asked for."""
    if isinstance(value, Text):
        if value.is_number:
            return int.from_bytes(value.encoded, "big")
        found = _NUMBER.match(value.content)
        return _finite(float(found[0])) if found else 0.0
    if isinstance(value, Temporal):
        return int(re.sub(r"\D", "", value.text))
    return _finite(value) if isinstance(value, float) else value


def _finite(number: float) -> float | Unknown:
    """A DOUBLE that a server has; others are errors."""
    return number if math.isfinite(number) else UNKNOWN


def as_integer(value: Value) -> int:
    """What a value is where a whole number is asked for.

    Of a string the digits that it begins with; a DOUBLE is rounded to the even neighbour, a DECIMAL
    away from zero.

    Raises:
        TypeError: If it is NULL or not known.
    """
    if isinstance(value, Text) and not value.is_number:
        found = _DIGITS.match(value.content)
        return int(found[0]) if found else 0
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        raise TypeError(value)
    return round(number) if isinstance(number, float) else int(rounded(Decimal(number), 0))


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
    def apply(left: Value, right: Value, _: Flavor) -> Value:
        both = _numbers(left, right)
        if both is None or isinstance(both, Unknown):
            return both
        first, last = both
        if isinstance(first, float) or isinstance(last, float):
            return _finite(of_doubles(float(first), float(last)))
        if isinstance(first, int) and isinstance(last, int):
            return of_integers(first, last)
        return of_exact(exact(first), exact(last)) + 0  # no negative zero

    return apply


def _divided(left: Value, right: Value, flavor: Flavor) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    first, last = both
    if last == 0:
        return None
    if isinstance(first, float) or isinstance(last, float):
        return _finite(float(first) / float(last))
    with localcontext() as context:
        context.prec = _PRECISION
        quotient = exact(first) / exact(last)
        if flavor is Flavor.MYSQL:
            return rounded(quotient, min(scale_of(first) + _DIVISION_DIGITS, _SCALE_MAX))
        unit = Decimal(1).scaleb(-_whole_groups(scale_of(first), scale_of(last)))
        return quotient.quantize(unit, ROUND_DOWN)


def _whole_groups(first: int, last: int) -> int:
    """Digits behind the point of MariaDB's quotient, which come in groups of nine."""
    scales = [-(-scale // _GROUP) * _GROUP for scale in (first, last)]
    more = max(0, _DIVISION_DIGITS - (scales[0] - first) - (scales[1] - last))
    return min(-(-(sum(scales) + more) // _GROUP) * _GROUP, _QUOTIENT_SCALE_MAX)


def _whole_quotient(left: Value, right: Value, _: Flavor) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    if both[1] == 0:
        return None
    return int((exact(both[0]) / exact(both[1])).to_integral_value(ROUND_DOWN))


def _remainder(left: Value, right: Value, _: Flavor) -> Value:
    both = _numbers(left, right)
    if both is None or isinstance(both, Unknown):
        return both
    first, last = both
    if last == 0:
        return None
    if isinstance(first, float) or isinstance(last, float):
        return math.fmod(first, last)
    rest = exact(first) % exact(last) + 0  # no negative zero
    return int(rest) if isinstance(first, int) and isinstance(last, int) else rest


def scale_of(number: Number) -> int:
    """Digits behind the point."""
    exponent = exact(number).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _bits(apply: Callable[[int, int], int], *, is_shift: bool = False) -> Operator:
    def of_integers(left: Value, right: Value, flavor: Flavor) -> Value:
        if left is None or right is None:
            return None
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        first, last = _bit_operand(left, flavor), _bit_operand(right, flavor)
        if is_shift and isinstance(right, Text):
            last = as_integer(right)
        if isinstance(first, Unknown) or isinstance(last, Unknown):
            return UNKNOWN
        return apply(first & _UNSIGNED_MAX, last) & _UNSIGNED_MAX

    return of_integers


def _bit_operand(value: Value, flavor: Flavor) -> int | Unknown:
    """A value as bits; MySQL's operators on byte strings are not known here."""
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        return UNKNOWN
    if flavor is Flavor.MYSQL:
        is_bytes = isinstance(value, Text) and value.collation == BINARY and not value.is_number
        return UNKNOWN if is_bytes else as_integer(value)
    return int(rounded(exact(number), 0))


def _shifted(by: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda value, count: by(value, count) if 0 <= count < 64 else 0


def compared(left: Value, right: Value) -> int | Unknown | None:
    """-1, 0 or 1 as the first is less than, equal to or greater than the second."""
    if left is None or right is None:
        return None
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(left, Text | Temporal) and isinstance(right, Text | Temporal):
        first, last, is_exact = _comparable(left, right)
        if first != last and not (is_exact or (_is_plain(first) and _is_plain(last))):
            return UNKNOWN
        return (first > last) - (first < last)
    if isinstance(left, Temporal) or isinstance(right, Temporal):
        return UNKNOWN
    both = _numbers(left, right)
    if not isinstance(both, tuple):
        return both
    one, other = exact(both[0]), exact(both[1])
    return (one > other) - (one < other)


def equal(left: Value, right: Value) -> int | Unknown | None:
    """`=`: it is known of more strings than their order is."""
    if isinstance(left, Text | Temporal) and isinstance(right, Text | Temporal):
        first, last, is_exact = _comparable(left, right)
        if first == last:
            return 1
        return 0 if is_exact or (first.isascii() and last.isascii()) else UNKNOWN
    order = compared(left, right)
    return order if order is None or isinstance(order, Unknown) else int(order == 0)


def _is_plain(text: str) -> bool:
    """Whether all collations sort such characters alike."""
    return text.isascii() and (text.isalnum() or not text)


def _comparable(left: Text | Temporal, right: Text | Temporal) -> tuple[str, str, bool]:
    """Both as their collation compares them, and whether it does so by their bytes."""
    collations = [side.collation for side in (left, right) if isinstance(side, Text)]
    first, last = plain_text(left), plain_text(right)
    if BINARY in collations:
        return first, last, True
    if not any("_0900_" in name or "_nopad_" in name for name in collations):
        first, last = first.rstrip(" "), last.rstrip(" ")
    if any(name.endswith("_bin") for name in collations):
        return first, last, True
    # Letters beyond ASCII stay apart from those that they would become.
    folded = [text.casefold() if text.isascii() else text for text in (first, last)]
    return folded[0], folded[1], False


def _comparison(holds: Callable[[int], bool]) -> Operator:
    def apply(left: Value, right: Value, _: Flavor) -> Value:
        order = compared(left, right)
        return order if order is None or isinstance(order, Unknown) else int(holds(order))

    return apply


def _equal(left: Value, right: Value, _: Flavor) -> Value:
    return equal(left, right)


def _different(left: Value, right: Value, _: Flavor) -> Value:
    return negation(equal(left, right))


def _same(left: Value, right: Value, _: Flavor) -> Value:
    """`<=>`."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if left is None or right is None:
        return int(left is right)
    return equal(left, right)


def _like(left: Value, right: Value, _: Flavor) -> Value:
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


OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType(
    {
        "+": _arithmetic(operator.add, operator.add, operator.add),
        "-": _arithmetic(operator.sub, operator.sub, operator.sub),
        "*": _arithmetic(operator.mul, operator.mul, operator.mul),
        "/": _divided,
        "DIV": _whole_quotient,
        "%": _remainder,
        "&": _bits(operator.and_),
        "|": _bits(operator.or_),
        "^": _bits(operator.xor),
        "<<": _bits(_shifted(operator.lshift), is_shift=True),
        ">>": _bits(_shifted(operator.rshift), is_shift=True),
        "=": _equal,
        "<>": _different,
        "<": _comparison(lambda order: order < 0),
        ">": _comparison(lambda order: order > 0),
        "<=": _comparison(lambda order: order <= 0),
        ">=": _comparison(lambda order: order >= 0),
        "<=>": _same,
        "LIKE": _like,
    }
)
