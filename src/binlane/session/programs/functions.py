"""Built-in functions whose value follows from their arguments alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from types import MappingProxyType
from typing import Final

from binlane.session.programs.operators import BINARY_OPERATORS, Rules, compared
from binlane.session.programs.types import as_number, exact, rounded
from binlane.session.programs.values import BINARY, UNKNOWN, Text, Unknown, Value, plain_text

_REPEAT_MAX: Final = 1_000_000
"""Longer strings are not made."""


class Session(Rules):
    """What functions ask of a session."""

    collation: str


def call_built_in(name: str, arguments: Sequence[Value], collation: str, rules: Rules) -> Value:
    """The value of a built-in function.

    Args:
        name: In any case.
        arguments: Their values.
        collation: Of strings made of what is no string.
        rules: Whose rules are followed.
    """
    found = _FUNCTIONS.get(name.upper())
    if found is None:
        return UNKNOWN
    takes_null, function = found
    if any(value is UNKNOWN for value in arguments):
        return UNKNOWN
    if not takes_null and any(value is None for value in arguments):
        return None
    try:
        return function(arguments, collation, rules)
    except (IndexError, TypeError, ValueError, OverflowError, ArithmeticError):
        return UNKNOWN


def _result(content: str, arguments: Sequence[Value], collation: str) -> Text:
    """A string that is made of others: in the collation of the first that is one."""
    texts = [value for value in arguments if isinstance(value, Text)]
    if any(text.collation == BINARY for text in texts):
        return Text(content, BINARY)
    return Text(content, texts[0].collation if texts else collation)


_Function = Callable[[Sequence[Value], str, Rules], Value]


def _of_text(make: Callable[[str], str]) -> _Function:
    def apply(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
        (value,) = arguments
        return _result(make(plain_text(value)), arguments, collation)

    return apply


def _concat(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    return _result("".join(map(plain_text, arguments)), arguments, collation)


def _concat_ws(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    separator, *parts = arguments
    if separator is None:
        return None
    texts = [plain_text(part) for part in parts if part is not None]
    return _result(plain_text(separator).join(texts), arguments, collation)


def _repeat(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    text, count = plain_text(arguments[0]), _integer(arguments[1])
    if len(text) * count > _REPEAT_MAX:
        return UNKNOWN
    return _result(text * max(count, 0), arguments[:1], collation)


def _left(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    count = max(_integer(arguments[1]), 0)
    return _result(plain_text(arguments[0])[:count], arguments[:1], collation)


def _right(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    text, count = plain_text(arguments[0]), max(_integer(arguments[1]), 0)
    return _result(text[max(len(text) - count, 0) :], arguments[:1], collation)


def _substring(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    text, start = plain_text(arguments[0]), _integer(arguments[1])
    length = _integer(arguments[2]) if len(arguments) > 2 else len(text)
    start = start - 1 if start > 0 else len(text) + start
    is_outside = length <= 0 or start < 0 or _integer(arguments[1]) == 0
    return _result("" if is_outside else text[start : start + length], arguments[:1], collation)


def _replace(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    text, old, new = map(plain_text, arguments)
    return _result(text.replace(old, new) if old else text, arguments, collation)


def _padded(*, is_left: bool) -> _Function:
    def apply(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
        text, length = plain_text(arguments[0]), _integer(arguments[1])
        filler = plain_text(arguments[2]) if len(arguments) > 2 else " "
        if length > _REPEAT_MAX or not filler:
            return UNKNOWN
        padding = (filler * length)[: max(length - len(text), 0)]
        made = padding + text if is_left else text + padding
        return _result(made[:length], arguments, collation)

    return apply


def _hex(arguments: Sequence[Value], collation: str, _: Rules) -> Value:
    (value,) = arguments
    if isinstance(value, Text):
        return Text(value.encoded.hex().upper(), collation)
    return Text(f"{_integer(value):X}", collation)


def _length(arguments: Sequence[Value], *_: object) -> Value:
    (value,) = arguments
    return len(value.encoded) if isinstance(value, Text) else len(plain_text(value))


def _characters(arguments: Sequence[Value], *_: object) -> Value:
    (value,) = arguments
    return len(plain_text(value))


def _integer(value: Value) -> int:
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        raise TypeError(value)
    return int(rounded(exact(number), 0))


def _absolute(arguments: Sequence[Value], *_: object) -> Value:
    number = as_number(arguments[0])
    if number is None or isinstance(number, Unknown):
        return number
    return number if number >= 0 else -number


def _sign(arguments: Sequence[Value], *_: object) -> Value:
    number = as_number(arguments[0])
    if number is None or isinstance(number, Unknown):
        return number
    return (number > 0) - (number < 0)


def _whole(direction: str) -> _Function:
    def apply(arguments: Sequence[Value], *_: object) -> Value:
        number = as_number(arguments[0])
        if number is None or isinstance(number, Unknown):
            return number
        whole = exact(number).to_integral_value(direction)
        return float(whole) if isinstance(number, float) else int(whole)

    return apply


def _round(arguments: Sequence[Value], *_: object) -> Value:
    number = as_number(arguments[0])
    digits = _integer(arguments[1]) if len(arguments) > 1 else 0
    if number is None or isinstance(number, Unknown | int) or digits < 0:
        return number if digits >= 0 else UNKNOWN
    result = rounded(exact(number), digits)
    return float(result) if isinstance(number, float) else result


def _power(arguments: Sequence[Value], *_: object) -> Value:
    base, exponent = map(as_number, arguments)
    assert isinstance(base, int | float) or base is not None
    if isinstance(base, Unknown) or isinstance(exponent, Unknown) or exponent is None:
        return UNKNOWN
    return math.pow(float(base), float(exponent))


def _extreme(wanted: int) -> _Function:
    def apply(arguments: Sequence[Value], *_: object) -> Value:
        best: Value = arguments[0]
        for value in arguments[1:]:
            order = compared(value, best)
            if isinstance(order, Unknown):
                return UNKNOWN
            best = value if order == wanted else best
        return best

    return apply


def _null_if(arguments: Sequence[Value], *_: object) -> Value:
    first, last = arguments
    order = compared(first, last)
    if isinstance(order, Unknown):
        return UNKNOWN
    return None if order == 0 else first


def _is_null(arguments: Sequence[Value], *_: object) -> Value:
    return int(arguments[0] is None)


def _mod(arguments: Sequence[Value], _: str, rules: Rules) -> Value:
    first, last = arguments
    return BINARY_OPERATORS["MOD"](first, last, rules)


def _name_const(arguments: Sequence[Value], *_: object) -> Value:
    return arguments[1]


def _locate(arguments: Sequence[Value], *_: object) -> Value:
    needle, text = (plain_text(value).casefold() for value in arguments)
    return text.find(needle) + 1


def _elt(arguments: Sequence[Value], *_: object) -> Value:
    index = _integer(arguments[0])
    return arguments[index] if 0 < index < len(arguments) else None


def _character(arguments: Sequence[Value], *_: object) -> Value:
    (code,) = arguments
    return Text(bytes([_integer(code)]).decode("latin-1"), BINARY)


_FUNCTIONS: Final[Mapping[str, tuple[bool, _Function]]] = MappingProxyType(
    {
        **{
            name: (False, function)
            for name, function in {
                "CONCAT": _concat,
                "UPPER": _of_text(str.upper),
                "UCASE": _of_text(str.upper),
                "LOWER": _of_text(str.lower),
                "LCASE": _of_text(str.lower),
                "REVERSE": _of_text(lambda text: text[::-1]),
                "TRIM": _of_text(lambda text: text.strip(" ")),
                "LTRIM": _of_text(lambda text: text.lstrip(" ")),
                "RTRIM": _of_text(lambda text: text.rstrip(" ")),
                "REPEAT": _repeat,
                "LEFT": _left,
                "RIGHT": _right,
                "SUBSTRING": _substring,
                "SUBSTR": _substring,
                "MID": _substring,
                "REPLACE": _replace,
                "LPAD": _padded(is_left=True),
                "RPAD": _padded(is_left=False),
                "HEX": _hex,
                "CHAR": _character,
                "LENGTH": _length,
                "OCTET_LENGTH": _length,
                "CHAR_LENGTH": _characters,
                "CHARACTER_LENGTH": _characters,
                "LOCATE": _locate,
                "ABS": _absolute,
                "SIGN": _sign,
                "FLOOR": _whole(ROUND_FLOOR),
                "CEIL": _whole(ROUND_CEILING),
                "CEILING": _whole(ROUND_CEILING),
                "ROUND": _round,
                "POW": _power,
                "POWER": _power,
                "MOD": _mod,
                "GREATEST": _extreme(1),
                "LEAST": _extreme(-1),
            }.items()
        },
        "CONCAT_WS": (True, _concat_ws),
        "NULLIF": (True, _null_if),
        "ISNULL": (True, _is_null),
        "NAME_CONST": (True, _name_const),
        "ELT": (True, _elt),
    }
)
"""By name: whether NULL is an argument like others, and the function."""
