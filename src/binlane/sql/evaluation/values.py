"""Values of SQL as far as they can be known without a server, and how the servers write them.

A value is None (NULL), an `int`, a `Decimal`, a `float`, a `Text`, a `Temporal` or `UNKNOWN`: what
only a running server knows, such as a column of a table. Nothing here is evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias

BINARY: Final = "binary"
"""The collation of byte strings."""
UNKNOWN_TEXT: Final = "#"
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
"""From 10 to this power on a DOUBLE is written with an exponent."""
_FIXED_EXPONENT_MIN: Final = -15


class Unknown(Enum):
    """The value that cannot be known."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Text:
    """A string; bytes stand as the characters of the same numbers.

    Attributes:
        content: Its characters.
        collation: Such as `utf8mb4_general_ci`; `binary` of a byte string.
        is_number: A byte string that a number's context takes as a number: 0x41, b'1', BIT.
    """

    content: str
    collation: str
    is_number: bool = False

    @property
    def charset(self) -> str:
        """The name of its character set."""
        return charset_of(self.collation)

    @property
    def encoded(self) -> bytes:
        """Its bytes in its character set."""
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
Value: TypeAlias = Number | Text | Temporal | Unknown | None


def charset_of(collation: str) -> str:
    """The character set that a collation belongs to."""
    return collation.partition("_")[0]


def escaped(text: str) -> str:
    """A string as the servers put it between single quotes."""
    return text.translate(_ESCAPES)


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


def constant(value: Value, *, is_mariadb: bool) -> str:
    """A value as it stands in NAME_CONST and in the arguments of a logged function call."""
    if value is None:
        return "NULL"
    if value is UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, Text):
        return f"_{value.charset}'{_shown(value)}' COLLATE '{value.collation}'"
    if isinstance(value, Temporal):
        if is_mariadb:
            return f"{value.kind.value}'{value.text}'"
        return f"_latin1'{value.text}' COLLATE 'latin1_swedish_ci'"
    return number_text(value)


def parameter(value: Value, *, is_mariadb: bool) -> str:
    """A value as it takes the place of `?` in the logged text of a prepared statement."""
    if isinstance(value, Text):
        return f"'{escaped(value.content)}'"
    if isinstance(value, Temporal) and not is_mariadb:
        return f"'{value.text}'"
    return constant(value, is_mariadb=is_mariadb)


def _shown(value: Text) -> str:
    """The text of a string as it reads in an event that is shown in utf8mb4.

    Letters of other character sets stand in the event as their bytes, which are shown so.
    """
    text = escaped(value.content)
    if value.charset in {"latin1", "binary"}:
        return "".join(letter if letter.isascii() else "\\?" for letter in text)
    return text
