"""Types of the functions whose type depends on their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Final

from binlane.sql.collations import bytes_per_character, default_collation
from binlane.sql.cursor import Cursor, split
from binlane.sql.query_types.arithmetic import (
    as_bytes,
    combined,
    decimal,
    integer,
    moved,
    real,
)
from binlane.sql.query_types.scope import Scope, Untyped
from binlane.sql.query_types.values import (
    NO_DECIMALS,
    Coercibility,
    Value,
    ValueKind,
    aggregated,
    collation_of,
    text_length,
    zero_default,
)
from binlane.sql.table_definitions import TableColumn
from binlane.sql.tokens import Token

_SUM_DIGITS: Final = 22
_AVERAGE_SCALE: Final = 4
_EXACT: Final = frozenset({ValueKind.INTEGER, ValueKind.DECIMAL})
_DATE_LENGTHS: Final = MappingProxyType({"DATE": 10, "TIME": 10, "DATETIME": 19})
_WRITTEN: Final = re.compile(
    r"(?P<type>\w+)(?:\((?P<length>\d+)(?:,(?P<scale>\d+))?\))?"
    r"(?P<words>(?: [a-z]\w*)*)(?P<connection> @)? (?P<mode>[!?*])\Z"
)
_LONGEST: Final = 4_294_967_295


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function.

    Attributes:
        tokens: Between its parentheses.
        scope: Where it stands.
        typed: Types one expression.
    """

    tokens: Sequence[Token]
    scope: Scope
    typed: Callable[[Sequence[Token], Scope], Value]

    @cached_property
    def parts(self) -> list[list[Token]]:
        """The tokens of each argument, without DISTINCT."""
        tokens = self.tokens
        if tokens and tokens[0].word in {"DISTINCT", "ALL"}:
            tokens = tokens[1:]
        return [part for part in split(tokens) if part]

    @cached_property
    def values(self) -> list[Value]:
        """The arguments; at least one.

        Raises:
            Untyped: If one is not known, or there is none.
        """
        if not self.parts:
            raise Untyped("a call without arguments")
        return [self.typed(part, self.scope) for part in self.parts]

    def number(self, index: int) -> int:
        """A constant number among the arguments.

        Raises:
            Untyped: If it is none.
        """
        part = self.parts[index] if index < len(self.parts) else []
        if len(part) == 1 and part[0].text.isdigit():
            return int(part[0].text)
        raise Untyped("a length that is no constant")

    def first(self) -> Value:
        """The first argument."""
        return self.typed(self.parts[0], self.scope) if self.parts else self.values[0]

    def text(self, length: int, values: Sequence[Value] = ()) -> Value:
        """Text made of some values; functions on text may always give NULL."""
        charset, collation = collation_of(values, self.scope.connection)
        coercibility = min(
            (value.coercibility for value in values),
            key=lambda each: each.value,
            default=Coercibility.LITERAL,
        )
        return Value(
            kind=ValueKind.TEXT,
            length=length,
            is_nullable=True,
            charset=charset,
            collation=collation,
            coercibility=coercibility,
        )


def together(values: Sequence[Value], scope: Scope) -> Value:
    """The type that holds all of some values.

    Raises:
        Untyped: If it is not known.
    """
    made = aggregated(values, connection=scope.connection, flavor=scope.flavor)
    if made is None:
        raise Untyped("values of several types")
    return _with_default(made, scope)


def _with_default(value: Value, scope: Scope) -> Value:
    """MySQL gives what functions make of a column a default, if it is not NULL."""
    if value.column is None or scope.is_mariadb or value.is_nullable:
        return value
    return replace(value, column=replace(value.column, default=zero_default(value)))


def fixed(written: str, arguments: Sequence[Value], scope: Scope) -> Value:
    """A type as `fixed_functions` writes it."""
    found = _WRITTEN.match(written)
    assert found is not None, written
    mode = found["mode"]
    is_nullable = mode == "?" or (mode == "*" and any(each.is_nullable for each in arguments))
    name, length = found["type"].upper(), int(found["length"] or 0)
    words = found["words"].split()
    if name in {"INT", "BIGINT"}:
        return Value(
            kind=ValueKind.INTEGER,
            length=length or 21,
            is_unsigned="unsigned" in words,
            is_nullable=is_nullable,
            integer_type=name,
        )
    if name == "DOUBLE":
        scale = int(found["scale"] or NO_DECIMALS)
        return replace(real(), length=length or 22, decimals=scale, is_nullable=is_nullable)
    if name in _DATE_LENGTHS:
        return Value(kind=ValueKind[name], length=_DATE_LENGTHS[name], is_nullable=is_nullable)
    if name in {"UUID", "YEAR", "JSON"}:
        column = TableColumn(name="", type_name=name, is_nullable=is_nullable)
        kind = ValueKind.JSON if name == "JSON" else ValueKind.OTHER
        return Value(kind=kind, is_nullable=is_nullable, column=column)
    charset, collation = scope.connection
    if not found["connection"]:
        charset, _, rest = words[0].partition("_")
        collation = words[0] if rest else default_collation(charset, scope.flavor)
    return Value(
        kind=ValueKind.TEXT,
        length=length or _LONGEST,
        is_nullable=is_nullable,
        charset=charset,
        collation=collation,
        coercibility=Coercibility.SYSTEM,
    )


# Text ---------------------------------------------------------------------------------------------


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
    return _with_default(made.as_nullable(is_nullable), call.scope)


def _null_if(call: Call) -> Value:
    value = call.first()
    return replace(value, is_nullable=True, column=_without_default(value.column))


def _extreme(call: Call) -> Value:
    return together(call.values, call.scope)


# Rows ---------------------------------------------------------------------------------------------


def _extreme_of_rows(call: Call) -> Value:
    value = call.first()
    return replace(value, is_nullable=True, column=_without_default(value.column))


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
            return replace(value, column=_without_default(value.column))
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
    if name in _DATE_LENGTHS:
        decimals = sizes[0] if sizes else 0
        return Value(
            kind=ValueKind[name], length=_DATE_LENGTHS[name], decimals=decimals, is_nullable=True
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


def _without_default(column: TableColumn | None) -> TableColumn | None:
    return None if column is None else replace(column, default=None, comment=None)


FUNCTIONS: Final[Mapping[str, Callable[[Call], Value]]] = MappingProxyType(
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
