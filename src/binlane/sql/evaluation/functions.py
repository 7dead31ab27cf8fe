"""Built-in functions whose value follows from their arguments alone, by name."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from binlane.codec.types import Flavor
from binlane.sql.evaluation.operators import (
    OPERATORS,
    as_integer,
    as_number,
    compared,
    equal,
    exact,
    rounded,
    scale_of,
)
from binlane.sql.evaluation.values import BINARY, UNKNOWN, Text, Unknown, Value, escaped, plain_text

_REPEAT_MAX: Final = 1_000_000
"""Longer strings are not made."""
_SCALE_MAX: Final = 38
_UNSIGNED: Final = 0xFFFF_FFFF_FFFF_FFFF


class Context(NamedTuple):
    """What functions ask of a session.

    Attributes:
        collation: Of strings made of what is no string.
        flavor: Whose rules are followed.
    """

    collation: str
    flavor: Flavor


Arguments: TypeAlias = Sequence[Value]
Function: TypeAlias = Callable[[Arguments, Context], Value]


def call_built_in(name: str, arguments: Arguments, context: Context) -> Value:
    """The value of a built-in function.

    Args:
        name: In capitals.
        arguments: Their values.
        context: Of the session.
    """
    function = FUNCTIONS.get(name)
    if function is None or any(value is UNKNOWN for value in arguments):
        return UNKNOWN
    if name not in _TAKE_NULL and any(value is None for value in arguments):
        return None
    if name not in _CHOOSE and any(_is_bytes(value) for value in arguments):
        arguments = [_as_bytes(value) for value in arguments]
    try:
        return function(arguments, context)
    except (IndexError, TypeError, ValueError, OverflowError, ArithmeticError):
        return UNKNOWN  # the server refuses such arguments, or gives them a meaning of its own


def _is_bytes(value: Value) -> bool:
    return isinstance(value, Text) and value.collation == BINARY


def _result(content: str, arguments: Arguments, context: Context) -> Text:
    """A string that is made of others: in the collation of the first that is one."""
    texts = [value for value in arguments if isinstance(value, Text)]
    return Text(content, texts[0].collation if texts else context.collation)


def _as_bytes(value: Value) -> Value:
    """A string as its bytes: beside one that is bytes."""
    if isinstance(value, Text) and value.collation != BINARY:
        return Text(value.encoded.decode("latin-1"), BINARY)
    return value


# Text ---------------------------------------------------------------------------------------------


def _of_text(make: Callable[[str], str]) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        (value,) = arguments
        text = plain_text(value)
        if _is_bytes(value) and make in {str.upper, str.lower}:
            return _result(text, arguments, context)
        made = make(text)
        if len(made) > len(text):  # letters that Python writes as several, as the servers do not
            return UNKNOWN
        return _result(made, arguments, context)

    return apply


def _concat(arguments: Arguments, context: Context) -> Value:
    return _result("".join(map(plain_text, arguments)), arguments, context)


def _concat_ws(arguments: Arguments, context: Context) -> Value:
    separator, *parts = arguments
    if separator is None:
        return None
    texts = [plain_text(part) for part in parts if part is not None]
    return _result(plain_text(separator).join(texts), arguments, context)


def _repeat(arguments: Arguments, context: Context) -> Value:
    text, count = plain_text(arguments[0]), as_integer(arguments[1])
    if len(text) * count > _REPEAT_MAX:
        return UNKNOWN
    return _result(text * max(count, 0), arguments[:1], context)


def _space(arguments: Arguments, context: Context) -> Value:
    return _repeat((Text(" ", context.collation), *arguments), context)


def _left(arguments: Arguments, context: Context) -> Value:
    count = max(as_integer(arguments[1]), 0)
    return _result(plain_text(arguments[0])[:count], arguments[:1], context)


def _right(arguments: Arguments, context: Context) -> Value:
    text, count = plain_text(arguments[0]), max(as_integer(arguments[1]), 0)
    return _result(text[max(len(text) - count, 0) :], arguments[:1], context)


def _substring(arguments: Arguments, context: Context) -> Value:
    text, first = plain_text(arguments[0]), as_integer(arguments[1])
    length = as_integer(arguments[2]) if len(arguments) > 2 else len(text)
    start = first - 1 if first > 0 else len(text) + first
    is_outside = length <= 0 or start < 0 or first == 0
    return _result("" if is_outside else text[start : start + length], arguments[:1], context)


def _substring_index(arguments: Arguments, context: Context) -> Value:
    text, separator, count = (*map(plain_text, arguments[:2]), as_integer(arguments[2]))
    if not separator or not count:
        return _result("", arguments[:1], context)
    parts = text.split(separator)
    kept = parts[:count] if count > 0 else parts[count:]
    return _result(separator.join(kept), arguments[:2], context)


def _replace(arguments: Arguments, context: Context) -> Value:
    text, old, new = map(plain_text, arguments)
    return _result(text.replace(old, new) if old else text, arguments, context)


def _insert(arguments: Arguments, context: Context) -> Value:
    text, start, length = plain_text(arguments[0]), *map(as_integer, arguments[1:3])
    if not 0 < start <= len(text):
        return _result(text, arguments[:1], context)
    end = start - 1 + length if 0 <= length <= len(text) - start + 1 else len(text)
    new = plain_text(arguments[3])
    return _result(text[: start - 1] + new + text[end:], (arguments[0], arguments[3]), context)


def _padded(*, is_left: bool) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        text, length = plain_text(arguments[0]), as_integer(arguments[1])
        filler = plain_text(arguments[2]) if len(arguments) > 2 else " "
        if length > _REPEAT_MAX or length < 0 or not filler:
            return UNKNOWN
        padding = (filler * length)[: max(length - len(text), 0)]
        made = padding + text if is_left else text + padding
        return _result(made[:length], (arguments[0], *arguments[2:]), context)

    return apply


def _quote(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    if value is None:
        return Text("NULL", context.collation)
    text = escaped(plain_text(value)).replace('\\"', '"').replace("\\n", "\n").replace("\\r", "\r")
    return _result(f"'{text}'", arguments, context)


def _hex(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    if isinstance(value, Text):
        return Text(value.encoded.hex().upper(), context.collation)
    number = as_integer(value)
    if isinstance(value, float) and context.flavor is Flavor.MARIADB:
        number = int(rounded(exact(value), 0))
    return Text(f"{number & _UNSIGNED:X}", context.collation)


def _unhex(arguments: Arguments, _: Context) -> Value:
    text = plain_text(arguments[0])
    return Text(bytes.fromhex(text.zfill(len(text) + len(text) % 2)).decode("latin-1"), BINARY)


def _digest(make: Callable[[bytes], hashlib._Hash]) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        (value,) = arguments
        text = value if isinstance(value, Text) else Text(plain_text(value), context.collation)
        return Text(make(text.encoded).hexdigest(), context.collation)

    return apply


def _character(arguments: Arguments, _: Context) -> Value:
    codes = [as_integer(code) & 0xFFFF_FFFF for code in arguments if code is not None]
    made = b"".join(code.to_bytes(max((code.bit_length() + 7) // 8, 1), "big") for code in codes)
    return Text(made.decode("latin-1"), BINARY)


def _element(arguments: Arguments, context: Context) -> Value:
    index = as_integer(arguments[0]) if arguments[0] is not None else 0
    value = arguments[index] if 0 < index < len(arguments) else None
    return value if value is None else _result(plain_text(value), [value], context)


# Text and numbers ---------------------------------------------------------------------------------


def _length(arguments: Arguments, _: Context) -> Value:
    (value,) = arguments
    return len(value.encoded) if isinstance(value, Text) else len(plain_text(value))


def _characters(arguments: Arguments, _: Context) -> Value:
    (value,) = arguments
    return len(plain_text(value))


def _first_byte(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    text = value if isinstance(value, Text) else Text(plain_text(value), context.collation)
    return text.encoded[0] if text.content else 0


def _locate(arguments: Arguments, _: Context) -> Value:
    needle, text = (plain_text(value).casefold() for value in arguments[:2])
    start = as_integer(arguments[2]) if len(arguments) > 2 else 1
    found = text.find(needle, start - 1) + 1 if start > 0 else 0
    return found if needle.isascii() and text.isascii() else UNKNOWN


def _in_string(arguments: Arguments, context: Context) -> Value:
    text, needle = arguments
    return _locate((needle, text), context)


def _field(arguments: Arguments, _: Context) -> Value:
    if arguments[0] is None:
        return 0
    values = list(arguments)
    if not all(isinstance(each, Text) for each in values):
        values = [as_number(each) for each in values]
    results = [0 if each is None else equal(values[0], each) for each in values[1:]]
    if UNKNOWN in results:
        return UNKNOWN
    return results.index(1) + 1 if 1 in results else 0


def _compare(arguments: Arguments, context: Context) -> Value:
    left, right = (_result(plain_text(each), [each], context) for each in arguments)
    return compared(left, right)


# Numbers ------------------------------------------------------------------------------------------


def _absolute(arguments: Arguments, _: Context) -> Value:
    number = as_number(arguments[0])
    if number is None or isinstance(number, Unknown):
        return number
    return number if number >= 0 else -number


def _sign(arguments: Arguments, _: Context) -> Value:
    number = as_number(arguments[0])
    if number is None or isinstance(number, Unknown):
        return number
    return (number > 0) - (number < 0)


def _whole(direction: str) -> Function:
    def apply(arguments: Arguments, _: Context) -> Value:
        number = as_number(arguments[0])
        if number is None or isinstance(number, Unknown):
            return number
        whole = exact(number).to_integral_value(direction)
        return float(whole) if isinstance(number, float) else int(whole)

    return apply


def _round(arguments: Arguments, context: Context) -> Value:
    number = as_number(arguments[0])
    digits = as_integer(arguments[1]) if len(arguments) > 1 else 0
    if digits < 0 or isinstance(number, Unknown | int | None):
        return number if digits >= 0 else UNKNOWN
    if isinstance(number, Decimal):
        scale = digits if context.flavor is Flavor.MARIADB else min(digits, scale_of(number))
        return rounded(number, min(scale, _SCALE_MAX))
    if digits and context.flavor is Flavor.MARIADB:
        return UNKNOWN  # it is shown with all these digits
    return float(round(number, digits))


def _power(arguments: Arguments, _: Context) -> Value:
    base, exponent = map(as_number, arguments)
    if isinstance(base, Unknown | None) or isinstance(exponent, Unknown | None):
        return UNKNOWN
    return math.pow(float(base), float(exponent))


def _modulo(arguments: Arguments, context: Context) -> Value:
    left, right = arguments
    return OPERATORS["%"](left, right, context.flavor)


def _extreme(wanted: int) -> Function:
    def apply(arguments: Arguments, _: Context) -> Value:
        if len({type(value) for value in arguments}) > 1:
            return UNKNOWN  # the result has a type of all of them
        best = arguments[0]
        for value in arguments[1:]:
            order = compared(value, best)
            if isinstance(order, Unknown):
                return UNKNOWN
            best = value if order == wanted else best
        return best

    return apply


# NULL ---------------------------------------------------------------------------------------------


def _null_if(arguments: Arguments, _: Context) -> Value:
    first, last = arguments
    holds = equal(first, last)
    if isinstance(holds, Unknown):
        return UNKNOWN
    return None if holds else first


def _is_null(arguments: Arguments, _: Context) -> Value:
    return int(arguments[0] is None)


def _second(arguments: Arguments, _: Context) -> Value:
    return arguments[1]


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "ABS": _absolute,
        "ASCII": _first_byte,
        **dict.fromkeys(("CEIL", "CEILING"), _whole(ROUND_CEILING)),
        "CHAR": _character,
        **dict.fromkeys(("CHAR_LENGTH", "CHARACTER_LENGTH"), _characters),
        "CONCAT": _concat,
        "CONCAT_WS": _concat_ws,
        "ELT": _element,
        "FIELD": _field,
        "FLOOR": _whole(ROUND_FLOOR),
        "GREATEST": _extreme(1),
        "HEX": _hex,
        "INSERT": _insert,
        "INSTR": _in_string,
        "ISNULL": _is_null,
        "LEAST": _extreme(-1),
        "LEFT": _left,
        **dict.fromkeys(("LENGTH", "OCTET_LENGTH"), _length),
        **dict.fromkeys(("LOCATE", "POSITION"), _locate),
        **dict.fromkeys(("LOWER", "LCASE"), _of_text(str.lower)),
        "LPAD": _padded(is_left=True),
        "LTRIM": _of_text(lambda text: text.lstrip(" ")),
        "MD5": _digest(hashlib.md5),
        "MOD": _modulo,
        "NAME_CONST": _second,
        "NULLIF": _null_if,
        **dict.fromkeys(("POW", "POWER"), _power),
        "QUOTE": _quote,
        "REPEAT": _repeat,
        "REPLACE": _replace,
        "REVERSE": _of_text(lambda text: text[::-1]),
        "RIGHT": _right,
        "ROUND": _round,
        "RPAD": _padded(is_left=False),
        "RTRIM": _of_text(lambda text: text.rstrip(" ")),
        **dict.fromkeys(("SHA", "SHA1"), _digest(hashlib.sha1)),
        "SIGN": _sign,
        "SPACE": _space,
        "STRCMP": _compare,
        **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), _substring),
        "SUBSTRING_INDEX": _substring_index,
        "TRIM": _of_text(lambda text: text.strip(" ")),
        "UNHEX": _unhex,
        **dict.fromkeys(("UPPER", "UCASE"), _of_text(str.upper)),
    }
)
"""By name in capitals."""
_TAKE_NULL: Final = frozenset(
    ("CHAR", "CONCAT_WS", "ELT", "FIELD", "ISNULL", "NAME_CONST", "NULLIF", "QUOTE")
)
"""NULL is an argument like others."""
_CHOOSE: Final = frozenset(("ELT", "NAME_CONST", "NULLIF"))
"""They give one of their arguments as it is."""
