"""MySQL's binary JSON as mysqlbinlog prints it: documents, and the diffs of partial updates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from types import MappingProxyType
from typing import Final

from binlane.binlogs.cat.text.escapes import MYSQL_ESCAPES
from binlane.log.codec.json_binary import JsonDocument, JsonValue
from binlane.log.codec.json_diff import JsonDiff, JsonOperation

# A double is written without an exponent while its point stands within these digits.
_POINT_MIN: Final = -14
_POINT_MAX: Final = 15
_NEXT_LINE: Final = "\n###      "
_FUNCTIONS: Final[Mapping[JsonOperation, str]] = MappingProxyType(
    {
        JsonOperation.REPLACE: "JSON_REPLACE",
        JsonOperation.INSERT: "JSON_INSERT",
        JsonOperation.REMOVE: "JSON_REMOVE",
    }
)


def json_literal(document: JsonDocument) -> str:
    """A whole document as a quoted literal; a string at its top has no quotes of its own."""
    value = document.value
    return _literal(value if isinstance(value, str) else json_text(value))


def json_text(value: JsonValue) -> str:
    """A value as the server writes it."""
    if isinstance(value, dict):
        members = (f"{json_text(key)}: {json_text(member)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return double_text(value)
    return json.dumps(value, ensure_ascii=False)


def double_text(value: float) -> str:
    """A double with as few digits as read back to it, in the server's form."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return repr(value)  # an infinity, which the server never writes
    minus, text = "-" if sign else "", "".join(map(str, digits))
    if text == "0":
        return f"{minus}0.0"
    point = len(text) + exponent
    if point < _POINT_MIN or (point > _POINT_MAX and len(text) <= point):
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[:point]:0<{point}}.{text[point:] or '0'}"


def diffs_text(diffs: Sequence[JsonDiff], column: str) -> str:
    """A partial update as nested calls, the first change innermost.

    Args:
        diffs: Changes in the order in which they are done.
        column: The changed column, such as `@2`.

    Returns:
        More than one line where there is more than one change.
    """
    text = column
    for number, (function, run) in enumerate(groupby(diffs, _function)):
        inner = f"{_NEXT_LINE}{text}" if number else text
        arguments = f",{_NEXT_LINE}".join(map(_arguments, run))
        text = f"{function}({inner},{_NEXT_LINE if number else ' '}{arguments})"
    return text


def _arguments(diff: JsonDiff) -> str:
    path = _literal(diff.path)
    return path if diff.value is None else f"{path}, {_argument(diff.value)}"


def _function(diff: JsonDiff) -> str:
    is_cell = diff.operation is JsonOperation.INSERT and diff.path.endswith("]")
    return "JSON_ARRAY_INSERT" if is_cell else _FUNCTIONS[diff.operation]


def _argument(document: JsonDocument) -> str:
    """Return a value as an argument: only objects and arrays need a cast."""
    value = document.value
    is_container = isinstance(value, dict | list)
    return f"CAST({_literal(json_text(value))} AS JSON)" if is_container else _scalar(value)


def _scalar(value: JsonValue) -> str:
    return _literal(value) if isinstance(value, str) else json_text(value)


def _literal(text: str) -> str:
    return f"'{text.translate(MYSQL_ESCAPES)}'"
