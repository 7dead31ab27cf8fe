"""Types of the functions that make text, where they depend on the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.sql.collations import bytes_per_character
from binlane.sql.query_types.calls import Call
from binlane.sql.query_types.scope import Untyped
from binlane.sql.query_types.values import (
    Value,
    ValueKind,
    text_length,
)


def _concat(call: Call) -> Value:
    return call.text(sum(text_length(value) for value in call.values), call.values)


def _concat_separated(call: Call) -> Value:
    separator, *values = call.values
    length = sum(text_length(value) for value in values)
    return call.text(length + separator.length * (len(values) - 1), call.values)


def _same_text(call: Call) -> Value:
    value = call.first()
    return call.text(text_length(value), [value])


def _substring(call: Call) -> Value:
    value = call.first()
    length = text_length(value)
    if len(call.parts) > 2:
        length = min(length, call.number(2))
    else:
        length -= max(call.number(1) - 1, 0)
    return call.text(max(length, 0), [value])


def _end_of_text(call: Call) -> Value:
    value = call.first()
    return call.text(min(text_length(value), call.number(1)), [value])


def _repeat(call: Call) -> Value:
    value = call.first()
    return call.text(text_length(value) * call.number(1), [value])


def _pad(call: Call) -> Value:
    return call.text(call.number(1), [call.first()])


def _space(call: Call) -> Value:
    return call.text(call.number(0))


def _replace(call: Call) -> Value:
    text, old, new = call.values
    length = text_length(text)
    if call.scope.is_mariadb and new.length > old.length > 0:
        length += (length // old.length) * (new.length - old.length)
    elif new.length > old.length:
        raise Untyped("replace()")
    return call.text(length, [text, new])


def _hex(call: Call) -> Value:
    value = call.first()
    if value.kind is not ValueKind.TEXT:
        return call.text(16)
    width = 1 if value.charset == "binary" else bytes_per_character(value.charset)
    return call.text(2 * value.length * width)


def _unhex(call: Call) -> Value:
    value = call.first()
    width = bytes_per_character(value.charset) if value.kind is ValueKind.TEXT else 1
    return _bytes(call, (text_length(value) * width + 1) // 2)


def _char(call: Call) -> Value:
    if any(token.word == "USING" for token in call.tokens):
        raise Untyped("char(… using …)")
    return _bytes(call, 4 * len(call.parts))


def _bytes(call: Call, length: int) -> Value:
    return replace(call.text(length), charset="binary", collation="binary")


def _quote(call: Call) -> Value:
    value = call.first()
    return call.text(2 * text_length(value) + 2, [value])


def _element(call: Call) -> Value:
    values = call.values[1:]
    return call.text(max(text_length(value) for value in values), values)


TEXT_FUNCTIONS: Final[Mapping[str, Callable[[Call], Value]]] = MappingProxyType(
    {
        "CONCAT": _concat,
        "CONCAT_WS": _concat_separated,
        **dict.fromkeys(
            ("UPPER", "UCASE", "LOWER", "LCASE", "REVERSE", "LTRIM", "RTRIM", "TRIM"), _same_text
        ),
        **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), _substring),
        **dict.fromkeys(("LEFT", "RIGHT"), _end_of_text),
        "REPEAT": _repeat,
        **dict.fromkeys(("LPAD", "RPAD"), _pad),
        "SPACE": _space,
        "REPLACE": _replace,
        "HEX": _hex,
        "UNHEX": _unhex,
        "CHAR": _char,
        "QUOTE": _quote,
        "ELT": _element,
    }
)
"""By name in capitals."""
