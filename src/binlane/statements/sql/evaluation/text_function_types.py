"""Types of functions that give texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from binlane.statements.sql.evaluation.literal_values import string_content
from binlane.statements.sql.evaluation.operator_types import (
    Untyped,
)
from binlane.statements.sql.evaluation.typed_call import Typed, TypedCall
from binlane.statements.sql.evaluation.types import (
    LONGEST,
    Type,
    TypeKind,
    length_in,
    text_length,
)
from binlane.statements.sql.servers import bytes_per_character
from binlane.statements.sql.tree.expressions import (
    Literal,
    LiteralKind,
)

# Text ---------------------------------------------------------------------------------------------


def joined(
    chosen: Callable[[TypedCall], Sequence[Type]], lengths: Callable[[list[int]], int] = sum
) -> Typed:
    """Text made of some arguments, whose lengths decide its own."""
    return lambda call: call.joined(chosen(call), lengths)


def separated(lengths: list[int]) -> int:
    """CONCAT_WS: the first stands between the others."""
    return sum(lengths[1:]) + lengths[0] * (len(lengths) - 2)


def encrypted(call: TypedCall) -> Type:
    """Return the type of AES_ENCRYPT and its like."""
    return _bytes(call, 16 * (length_in(call.first, "binary", call.scope.flavor) // 16 + 1))


_FORMAT_LENGTHS: Final = {
    **dict.fromkeys("MW", 64),
    **dict.fromkeys("ab", 32),
    **dict.fromkeys("DYxX", 4),
    "j": 3,
    **dict.fromkeys("uUvVymdhiIlpSsce", 2),
    **dict.fromkeys("kH", 7),
    "r": 11,
    "T": 8,
    "f": 6,
}


def formatted(call: TypedCall) -> Type:
    """DATE_FORMAT and TIME_FORMAT; FROM_UNIXTIME with a format."""
    node = call.argument(1)
    if not isinstance(node, Literal) or node.kind is not LiteralKind.STRING:
        raise Untyped("a format that is no constant")
    letters = iter(string_content(call.scope.text.text_of(node), call.scope.text.dialect))
    length = 0
    for letter in letters:
        length += _FORMAT_LENGTHS.get(next(letters, "%"), 1) if letter == "%" else 1
    return call.text(length)


def substring(call: TypedCall) -> Type:
    """Return the type of SUBSTRING."""
    value = call.first
    length = text_length(value)
    if len(call.node.arguments) > 2:
        length = min(length, call.number(2, length))
    else:
        length -= max(call.number(1, 1) - 1, 0)
    return call.text(max(length, 0), [value])


def end_of_text(call: TypedCall) -> Type:
    """Return the type of RIGHT and LEFT."""
    length = text_length(call.first)
    return call.text(min(length, call.number(1, length)), [call.first])


def repeat(call: TypedCall) -> Type:
    """Return the type of REPEAT."""
    count = call.number(1, LONGEST)
    return call.text(min(text_length(call.first) * count, LONGEST), [call.first])


def replaced(call: TypedCall) -> Type:
    """Return the type of REPLACE."""
    whole, old, new = call.types
    length = text_length(whole)
    if call.scope.is_mariadb and new.length > old.length > 0:
        length += (length // old.length) * (new.length - old.length)
    elif new.length > old.length:
        length *= new.length
    return call.text(length, [whole, new])


def hexadecimal(call: TypedCall) -> Type:
    """Return the type of HEX."""
    value = call.first
    if value.kind is not TypeKind.TEXT:
        return call.text(16)
    width = 1 if value.charset == "binary" else bytes_per_character(value.charset)
    return call.text(2 * value.length * width)


def unhex(call: TypedCall) -> Type:
    """Return the type of UNHEX."""
    value = call.first
    width = bytes_per_character(value.charset) if value.kind is TypeKind.TEXT else 1
    return _bytes(call, (text_length(value) * width + 1) // 2)


def char(call: TypedCall) -> Type:
    """Return the type of CHAR."""
    if call.node.words:
        raise Untyped("char(… using …)")
    return _bytes(call, 4 * len(call.node.arguments))


def _bytes(call: TypedCall, length: int) -> Type:
    return replace(call.text(length), charset="binary", collation="binary")
