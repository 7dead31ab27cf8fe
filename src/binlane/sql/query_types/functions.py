"""Types of the functions whose type depends on their arguments, by name.

Those that make text are in `text_functions`, those of a fixed type in `fixed_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from binlane.sql.collations import default_collation
from binlane.sql.cursor import Cursor, split
from binlane.sql.query_types.arithmetic import (
    as_bytes,
    combined,
    decimal,
    integer,
    moved,
    real,
)
from binlane.sql.query_types.calls import Call, together, with_default, without_default
from binlane.sql.query_types.scope import Untyped
from binlane.sql.query_types.text_functions import TEXT_FUNCTIONS
from binlane.sql.query_types.values import (
    DATE_LENGTHS,
    Coercibility,
    Value,
    ValueKind,
    text_length,
)
from binlane.sql.tokens import Token

_SUM_DIGITS: Final = 22
_AVERAGE_SCALE: Final = 4
_EXACT: Final = frozenset({ValueKind.INTEGER, ValueKind.DECIMAL})


# Choices ------------------------------------------------------------------------------------------


def _if(call: Call) -> Value:
    condition, *values = call.values
    made = together(values, call.scope)
    if call.scope.is_mariadb and condition.is_nullable:
        return made.as_nullable()
    return made


def _coalesce(call: Call) -> Value:
    made = together(call.values, call.scope)
    is_nullable = all(value.is_nullable for value in call.values)
    return with_default(made.as_nullable(is_nullable), call.scope)


def _null_if(call: Call) -> Value:
    value = call.first()
    return replace(value, is_nullable=True, column=without_default(value.column))


def _extreme(call: Call) -> Value:
    return together(call.values, call.scope)


# Rows ---------------------------------------------------------------------------------------------


def _extreme_of_rows(call: Call) -> Value:
    value = call.first()
    return replace(value, is_nullable=True, column=without_default(value.column))


def _sum(call: Call) -> Value:
    value = call.first()
    if value.kind in _EXACT:
        return decimal(value.precision + _SUM_DIGITS, value.decimals).as_nullable()
    return real().as_nullable()


def _average(call: Call) -> Value:
    value = call.first()
    if value.kind in _EXACT:
        scale = value.decimals + _AVERAGE_SCALE
        return decimal(value.precision + _AVERAGE_SCALE, scale).as_nullable()
    return real().as_nullable()


def _deviation(call: Call) -> Value:
    value = call.first()
    if call.scope.is_mariadb and value.kind in _EXACT:
        scale = value.decimals + _AVERAGE_SCALE
        return replace(real(), length=22 + scale, decimals=scale, is_nullable=True)
    return real().as_nullable()


def _group_concat(call: Call) -> Value:
    cursor = Cursor([token for part in [call.tokens] for token in part])
    cursor.accept("DISTINCT")
    parts = split(cursor.until(("ORDER", "SEPARATOR")))
    values = [call.typed(part, call.scope) for part in parts if part]
    length = 1_048_576 if call.scope.is_mariadb else 1024
    return call.text(length, values)


# Numbers ------------------------------------------------------------------------------------------


def _absolute(call: Call) -> Value:
    value = call.first()
    if value.kind is ValueKind.TEXT:
        return real(value)
    if value.kind is ValueKind.INTEGER:
        made = integer(value.length, call.scope, is_unsigned=value.is_unsigned)
        return made.as_nullable(value.is_nullable)
    return replace(value, column=None)


def _whole(call: Call) -> Value:
    """CEIL and FLOOR."""
    value = call.first()
    if value.kind is ValueKind.INTEGER:
        made = integer(value.length, call.scope, is_unsigned=value.is_unsigned)
    elif value.kind is ValueKind.DECIMAL:
        made = integer(value.integer_digits + 2, call.scope)
        made = replace(made, integer_type="BIGINT" if made.length > 10 else "INT")
    else:
        return real(value)
    if not call.scope.is_mariadb:
        made = replace(made, integer_type="BIGINT")
    return made.as_nullable(value.is_nullable)


def _round(call: Call, *, is_truncated: bool) -> Value:
    value = call.first()
    scale = call.number(1) if len(call.parts) > 1 else 0
    if value.kind is ValueKind.DECIMAL:
        scale = min(scale, value.decimals)
        extra = int(scale < value.decimals and not is_truncated)
        made = decimal(value.integer_digits + scale + extra, scale)
        return made.as_nullable(value.is_nullable)
    if value.kind is ValueKind.INTEGER and len(call.parts) == 1:
        if call.scope.is_mariadb:
            return replace(value, column=without_default(value.column))
        made = replace(value, column=None, integer_type="BIGINT")
        return made.as_nullable(value.is_nullable)
    if value.kind in {ValueKind.REAL, ValueKind.TEXT} and len(call.parts) == 1:
        raise Untyped("round() of a double")
    raise Untyped("round()")


def _modulo(call: Call) -> Value:
    left, right = call.values
    return combined(left, right, "MOD", call.scope)


# Types and dates ----------------------------------------------------------------------------------


def _cast(call: Call) -> Value:
    place = _last_word(call.tokens, "AS")
    if place is None:
        raise Untyped("CAST")
    value = call.typed(call.tokens[:place], call.scope)
    return _converted(call, value, call.tokens[place + 1 :])


def _convert(call: Call) -> Value:
    if len(call.parts) == 2:
        return _converted(call, call.first(), call.parts[1])
    place = _last_word(call.tokens, "USING")
    if place is None:
        raise Untyped("CONVERT")
    value = call.typed(call.tokens[:place], call.scope)
    charset = call.tokens[place + 1].value.lower()
    charset = {"utf8": "utf8mb3"}.get(charset, charset)
    return replace(
        call.text(text_length(value)),
        charset=charset,
        collation=default_collation(charset, call.scope.flavor),
        coercibility=Coercibility.IMPLICIT,
    )


def _converted(call: Call, value: Value, tokens: Sequence[Token]) -> Value:
    cursor = Cursor(tokens)
    name = cursor.advance().word
    sizes: list[int] = []
    if cursor.token.text == "(":
        sizes = [int(part[0].text) for part in split(cursor.group())]
    if name in {"SIGNED", "UNSIGNED", "INTEGER", "INT"}:
        made = integer(20, call.scope, is_unsigned=name == "UNSIGNED")
        return made.as_nullable(value.is_nullable)
    if name in {"DECIMAL", "DEC", "NUMERIC"}:
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return decimal(precision, scale).as_nullable(value.is_nullable)
    if name in {"DOUBLE", "REAL", "FLOAT"}:
        return real(value)
    if name in DATE_LENGTHS:
        decimals = sizes[0] if sizes else 0
        return Value(
            kind=ValueKind[name], length=DATE_LENGTHS[name], decimals=decimals, is_nullable=True
        )
    if name == "BINARY":
        made = as_bytes(value, call.scope)
        return replace(made, length=sizes[0]) if sizes else made
    if name in {"CHAR", "CHARACTER", "VARCHAR"}:
        return call.text(sizes[0] if sizes else text_length(value))
    raise Untyped(f"CAST AS {name}")


def _last_word(tokens: Sequence[Token], word: str) -> int | None:
    found, depth = None, 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word == word:
            found = index
    return found


def _moved(call: Call) -> Value:
    if len(call.parts) < 2:
        raise Untyped("a moved date")
    interval = call.parts[1]
    unit = interval[-1].word if interval[0].word == "INTERVAL" else "DAY"
    return moved(call.first(), unit, call.scope)


FUNCTIONS: Final[Mapping[str, Callable[[Call], Value]]] = MappingProxyType(
    {
        **TEXT_FUNCTIONS,
        "IF": _if,
        **dict.fromkeys(("IFNULL", "NVL", "COALESCE"), _coalesce),
        "NULLIF": _null_if,
        **dict.fromkeys(("GREATEST", "LEAST"), _extreme),
        **dict.fromkeys(("MAX", "MIN", "ANY_VALUE"), _extreme_of_rows),
        "SUM": _sum,
        "AVG": _average,
        **dict.fromkeys(("STD", "STDDEV", "STDDEV_POP"), _deviation),
        "GROUP_CONCAT": _group_concat,
        "ABS": _absolute,
        **dict.fromkeys(("CEIL", "CEILING", "FLOOR"), _whole),
        "ROUND": partial(_round, is_truncated=False),
        "TRUNCATE": partial(_round, is_truncated=True),
        "MOD": _modulo,
        "CAST": _cast,
        "CONVERT": _convert,
        **dict.fromkeys(("DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"), _moved),
    }
)
"""By name in capitals."""
