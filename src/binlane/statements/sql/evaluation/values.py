"""Values of SQL as far as they can be known without a server, operators on them, types that store them.

A value is None (NULL), an `int`, a `Decimal`, a `float`, a `Text`, a `Temporal` or `UNKNOWN`: what
only a running server knows, such as a column of a table. Variables, parameters, returned values and
casts have a type, which changes a value when it is stored.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from binlane.log.codec.types import Flavor

BINARY: Final = "binary"
"""The collation of byte strings."""
NOT_AS_LOGGED: Final = "\ufdd0"
"""Stands in an event's text before what is not in it as the server has it: no character of any text."""
IN_UTF8: Final = "\ufdd1"
"""Stands in an event's text before letters whose bytes are those of UTF-8, whatever the text is in."""
UNKNOWN_TEXT: Final = f"{NOT_AS_LOGGED}#"
"""Stands in an event's text for a value that cannot be known."""
_ESCAPES: Final = str.maketrans(
    {
        "\0": "\\0",
        "\n": "\\n",
        "\r": "\\r",
        "\x1a": "\\Z",
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
    }
)
_FIXED_EXPONENT_MAX: Final = 15
"""Exponent of 10: from this power on a DOUBLE is written with an exponent."""
_FIXED_EXPONENT_MIN: Final = -15


class Unknown(Enum):
    """The value that cannot be known."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Text:
    """A string; bytes stand as the characters of the same numbers.

    Attributes:
        content: Characters of the string, each below 256 for bytes.
        collation: Name such as `utf8mb4_general_ci`; `binary` for a byte string.
        is_number: True for a byte string that a number's context takes as a number: 0x41, b'1',
            BIT.
    """

    content: str
    collation: str
    is_number: bool = False

    @property
    def charset(self) -> str:
        """Name of the string's character set."""
        return charset_of(self.collation)

    @property
    def encoded(self) -> bytes:
        """Bytes of the string in its character set."""
        if self.collation == BINARY:
            return self.content.encode("latin-1", "replace")
        if self.charset == "latin1":
            return self.content.encode("cp1252", "replace")
        return self.content.encode("utf-8", "surrogateescape")


class TemporalKind(Enum):
    """Types of points in time, by the word that a literal begins with."""

    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class Temporal:
    """A date, time or date with time; `text` is how the server prints it."""

    kind: TemporalKind
    text: str


Number: TypeAlias = int | Decimal | float
Known: TypeAlias = Number | Text | Temporal
Value: TypeAlias = Known | Unknown | None


def charset_of(collation: str) -> str:
    """The character set that a collation belongs to."""
    return collation.partition("_")[0]


def escaped(text: str, *, has_escapes: bool = True) -> str:
    """Give a string as the servers put it between single quotes.

    Args:
        text: The string without its quotes.
        has_escapes: True if a backslash is an escape; False in sql_mode NO_BACKSLASH_ESCAPES.
    """
    return text.translate(_ESCAPES) if has_escapes else text.replace("'", "''")


def number_text(value: Number) -> str:
    """A number as the servers print it."""
    if isinstance(value, float):
        return _double_text(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _double_text(value: float) -> str:
    """The shortest text that reads back, with an exponent only where that is the shorter form."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "NULL"
    is_negative, digits, scale = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(scale, int)  # the number is finite
    figures = "".join(map(str, digits))
    exponent = scale + len(figures) - 1
    sign = "-" if is_negative else ""
    if exponent >= _FIXED_EXPONENT_MAX or exponent < _FIXED_EXPONENT_MIN:
        mantissa = figures[0] + ("." + figures[1:] if len(figures) > 1 else "")
        return f"{sign}{mantissa}e{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{figures}"
    if len(figures) <= exponent + 1:
        return sign + figures + "0" * (exponent + 1 - len(figures))
    return f"{sign}{figures[: exponent + 1]}.{figures[exponent + 1 :]}"


def plain_text(value: Value) -> str:
    """A known value that is not NULL, as it becomes a string."""
    assert value is not None
    assert value is not UNKNOWN
    if isinstance(value, Text):
        return value.content
    if isinstance(value, Temporal):
        return value.text
    return number_text(value)


def constant(value: Value, *, is_mariadb: bool, has_escapes: bool = True) -> str:
    """Give a value as it stands in NAME_CONST and in the arguments of a logged function call.

    Args:
        value: Value to be written as text.
        is_mariadb: True for MariaDB's notation, False for MySQL's.
        has_escapes: True if a backslash is an escape, as in `escaped`.
    """
    if value is None:
        return "NULL"
    if value is UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, Text):
        shown = _shown(value, has_escapes=has_escapes)
        return f"_{value.charset}'{shown}' COLLATE '{value.collation}'"
    if isinstance(value, Temporal):
        if is_mariadb:
            return f"{value.kind.value}'{value.text}'"
        return f"_latin1'{value.text}' COLLATE 'latin1_swedish_ci'"
    return number_text(value)


def parameter(value: Value, *, is_mariadb: bool, has_escapes: bool = True) -> str:
    """Give a value as it takes the place of `?` in the logged text of a prepared statement.

    Args:
        value: Value to be written as text.
        is_mariadb: True for MariaDB's notation, False for MySQL's.
        has_escapes: True if a backslash is an escape, as in `escaped`.
    """
    if isinstance(value, Text):
        return f"'{escaped(value.content, has_escapes=has_escapes)}'"
    if isinstance(value, Temporal) and not is_mariadb:
        return f"'{value.text}'"
    return constant(value, is_mariadb=is_mariadb, has_escapes=has_escapes)


def _shown(value: Text, *, has_escapes: bool) -> str:
    """The text of a string in an event; letters of other character sets stand there as their bytes."""
    text = escaped(value.content, has_escapes=has_escapes)
    if text.isascii():
        return text
    if value.charset in _UNICODE:
        return IN_UTF8 + text
    if value.charset in {"latin1", "binary"}:
        text = "".join(letter if letter.isascii() else "\\?" for letter in text)
    return NOT_AS_LOGGED + text


_UNICODE: Final = frozenset(("utf8mb3", "utf8mb4"))
_SCALE_MAX: Final = 30
"""Digits behind the point of a DECIMAL of MySQL."""
_GROUP: Final = 9
_QUOTIENT_SCALE_MAX: Final = 72
UNSIGNED_MAX: Final = (1 << 64) - 1
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
    """Give the number that a value is in a context of numbers; NULL and UNKNOWN stay."""
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
    """Give the integer that a value is where a whole number is asked for.

    A string gives the digits that it begins with; a DOUBLE is rounded to the even neighbour, a
    DECIMAL away from zero.

    Raises:
        TypeError: If the value is NULL or not known.
    """
    if isinstance(value, Text) and not value.is_number:
        found = _DIGITS.match(value.content)
        return int(found[0]) if found else 0
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        raise TypeError(value)
    return round(number) if isinstance(number, float) else int(rounded(Decimal(number), 0))


def truth(value: Value) -> int | Unknown | None:
    """Give 1 if a value holds as a condition, 0 if not; NULL and UNKNOWN stay."""
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


def _of_numbers(apply: Callable[[Number, Number, Flavor], Value]) -> Operator:
    """An operator that takes numbers: NULL or unknown if one of its operands is."""

    def of_values(left: Value, right: Value, flavor: Flavor) -> Value:
        first, last = as_number(left), as_number(right)
        if first is None or last is None:
            return None
        if isinstance(first, Unknown) or isinstance(last, Unknown):
            return UNKNOWN
        return apply(first, last, flavor)

    return of_values


def _of_known(apply: Callable[[Known, Known, Flavor], Value]) -> Operator:
    """An operator that takes values of any kind: NULL or unknown if one of its operands is."""

    def of_values(left: Value, right: Value, flavor: Flavor) -> Value:
        if left is None or right is None:
            return None
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return UNKNOWN
        return apply(left, right, flavor)

    return of_values


def _arithmetic(apply: Callable[[Any, Any], Any]) -> Operator:
    def of_numbers(first: Number, last: Number, _: Flavor) -> Value:
        if isinstance(first, float) or isinstance(last, float):
            return _finite(apply(float(first), float(last)))
        if isinstance(first, int) and isinstance(last, int):
            return int(apply(first, last))
        return Decimal(apply(exact(first), exact(last)) + 0)  # no negative zero

    return _of_numbers(of_numbers)


def _divided(first: Number, last: Number, flavor: Flavor) -> Value:
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


def _whole_quotient(first: Number, last: Number, _: Flavor) -> Value:
    if last == 0:
        return None
    return int((exact(first) / exact(last)).to_integral_value(ROUND_DOWN))


def _remainder(first: Number, last: Number, _: Flavor) -> Value:
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
    def of_values(left: Known, right: Known, flavor: Flavor) -> Value:
        first, last = _bit_operand(left, flavor), _bit_operand(right, flavor)
        if is_shift and isinstance(right, Text):
            last = as_integer(right)
        if isinstance(first, Unknown) or isinstance(last, Unknown):
            return UNKNOWN
        return apply(first & UNSIGNED_MAX, last) & UNSIGNED_MAX

    return _of_known(of_values)


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
    if isinstance(left, Text | Temporal) and isinstance(right, Text | Temporal):
        first, last, is_exact = _comparable(left, right)
        if first != last and not (is_exact or (_is_plain(first) and _is_plain(last))):
            return UNKNOWN
        return (first > last) - (first < last)
    if isinstance(left, Temporal) or isinstance(right, Temporal):
        return UNKNOWN
    one, other = as_number(left), as_number(right)
    if isinstance(one, Unknown | None) or isinstance(other, Unknown | None):
        return UNKNOWN
    return (exact(one) > exact(other)) - (exact(one) < exact(other))


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
    """True if all collations sort such characters alike."""
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


def _same(left: Value, right: Value, _: Flavor) -> Value:
    """`<=>`."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if left is None or right is None:
        return int(left is right)
    return equal(left, right)


def _like(left: Known, right: Known, _: Flavor) -> Value:
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
        "+": _arithmetic(operator.add),
        "-": _arithmetic(operator.sub),
        "*": _arithmetic(operator.mul),
        "/": _of_numbers(_divided),
        "DIV": _of_numbers(_whole_quotient),
        "%": _of_numbers(_remainder),
        "&": _bits(operator.and_),
        "|": _bits(operator.or_),
        "^": _bits(operator.xor),
        "<<": _bits(_shifted(operator.lshift), is_shift=True),
        ">>": _bits(_shifted(operator.rshift), is_shift=True),
        "=": lambda left, right, _: equal(left, right),
        "<>": lambda left, right, _: negation(equal(left, right)),
        "<": _comparison(lambda order: order < 0),
        ">": _comparison(lambda order: order > 0),
        "<=": _comparison(lambda order: order <= 0),
        ">=": _comparison(lambda order: order >= 0),
        "<=>": _same,
        "LIKE": _of_known(_like),
    }
)
