"""Types of the results of operators.

Source: MariaDB 10.11 sql/item_func.cc and MySQL 9.7 sql/item_func.cc, `fix_length_and_dec` and
`result_precision`; lengths measured on both.
"""

from __future__ import annotations

from dataclasses import replace

from binlane.sql.query_types.scope import Scope, Untyped
from binlane.sql.query_types.values import (
    NO_DECIMALS,
    TEMPORALS,
    Value,
    ValueKind,
    text_length,
)

_DIGITS_MAX = 65
_SCALE_MAX = 38
_DIVISION_SCALE = 4  # div_precision_increment
_TIME_UNITS = ("HOUR", "MINUTE", "SECOND", "MICROSECOND")
_MARIADB_BIGINT_LENGTH = 10
_MYSQL_BIGINT_LENGTH = 12
_INT_LENGTH = 11


def truth(*values: Value) -> Value:
    """TRUE, FALSE, or NULL if a value may be."""
    return Value(
        kind=ValueKind.INTEGER,
        length=1,
        is_nullable=any(value.is_nullable for value in values),
        integer_type="INT",
    )


def bits(*values: Value) -> Value:
    """The result of an operator on bits."""
    return replace(truth(*values), length=21, is_unsigned=True, integer_type="BIGINT")


def real(*values: Value) -> Value:
    """A DOUBLE made of some values."""
    return Value(
        kind=ValueKind.REAL,
        length=22,
        decimals=NO_DECIMALS,
        is_nullable=any(value.is_nullable for value in values),
    )


def integer(length: int, scope: Scope, *, is_unsigned: bool = False) -> Value:
    """A whole number whose length decides its type."""
    wide = _MARIADB_BIGINT_LENGTH if scope.is_mariadb else _MYSQL_BIGINT_LENGTH
    return Value(
        kind=ValueKind.INTEGER,
        length=length,
        is_unsigned=is_unsigned,
        integer_type="BIGINT" if length >= wide else "INT",
    )


def decimal(length: int, scale: int, *, is_unsigned: bool = False) -> Value:
    """A DECIMAL within the servers' bounds."""
    return Value(
        kind=ValueKind.DECIMAL,
        length=max(min(length, _DIGITS_MAX), 1),
        decimals=min(scale, _SCALE_MAX),
        is_unsigned=is_unsigned,
    )


def combined(left: Value, right: Value, operator: str, scope: Scope) -> Value:
    """The result of `+` (and `-`), `*`, `/`, `DIV` or `MOD`.

    Raises:
        Untyped: If it is not known.
    """
    kinds = {left.kind, right.kind}
    if kinds & TEMPORALS or not kinds.isdisjoint({ValueKind.OTHER, ValueKind.JSON, ValueKind.NULL}):
        raise Untyped("such arithmetic")
    is_nullable = left.is_nullable or right.is_nullable or operator in {"/", "DIV", "MOD"}
    return _result(left, right, operator, scope).as_nullable(is_nullable)


def _result(left: Value, right: Value, operator: str, scope: Scope) -> Value:
    kinds = {left.kind, right.kind}
    if operator == "DIV":
        return _divided_whole(left, right, scope)
    if ValueKind.REAL in kinds or ValueKind.TEXT in kinds:
        return real(left, right)
    if operator == "/":
        return quotient(left, right)
    if ValueKind.DECIMAL in kinds:
        return _decimal(left, right, operator)
    is_unsigned = left.is_unsigned or right.is_unsigned
    if operator == "MOD":
        length = max(left.length, right.length)
        return integer(length, scope, is_unsigned=left.is_unsigned)
    digits = max(left.precision, right.precision) + 1
    if operator == "*":
        digits = left.precision + right.precision
    return integer(digits + (not is_unsigned), scope, is_unsigned=is_unsigned)


def quotient(left: Value, right: Value) -> Value:
    """The result of `/` on exact numbers."""
    length = left.precision + _DIVISION_SCALE + right.decimals
    is_unsigned = left.is_unsigned and right.is_unsigned
    return decimal(length, left.decimals + _DIVISION_SCALE, is_unsigned=is_unsigned)


def _divided_whole(left: Value, right: Value, scope: Scope) -> Value:
    if left.kind is not ValueKind.INTEGER or right.kind is not ValueKind.INTEGER:
        raise Untyped("DIV of numbers that are not whole")
    is_wide = scope.is_mariadb or left.length > _INT_LENGTH
    made = integer(left.precision, scope, is_unsigned=left.is_unsigned or right.is_unsigned)
    return replace(made, integer_type="BIGINT" if is_wide else "INT")


def _decimal(left: Value, right: Value, operator: str) -> Value:
    scale = max(left.decimals, right.decimals)
    length = max(left.integer_digits, right.integer_digits) + scale + 1
    if operator == "*":
        scale = left.decimals + right.decimals
        length = left.precision + right.precision
    elif operator == "MOD":
        length = max(left.precision, right.precision)
    return decimal(length, scale, is_unsigned=left.is_unsigned and right.is_unsigned)


def negative(value: Value, scope: Scope) -> Value:
    """The result of the sign `-`."""
    if value.kind is ValueKind.TEXT or value.kind in TEMPORALS:
        return real(value)
    if value.kind is not ValueKind.INTEGER:
        return replace(value, column=None)
    if value.is_literal:
        return replace(value, length=value.length + 1)
    integer_type = value.integer_type
    if not scope.is_mariadb and value.column is not None:
        integer_type = "BIGINT" if value.length > _INT_LENGTH else "INT"
    return replace(
        value,
        length=value.length + 1,
        is_unsigned=False,
        column=None,
        integer_type=integer_type,
    )


def moved(value: Value, unit: str, scope: Scope) -> Value:
    """A date or time plus or minus an interval."""
    if value.kind is ValueKind.DATE:
        has_time = any(part in unit for part in _TIME_UNITS)
        kind = ValueKind.DATETIME if has_time else ValueKind.DATE
        return Value(kind=kind, length=19 if has_time else 10, is_nullable=True)
    if value.kind in TEMPORALS:
        return replace(value, is_nullable=True, column=None)
    charset, collation = scope.connection
    return Value(
        kind=ValueKind.TEXT, length=19, is_nullable=True, charset=charset, collation=collation
    )


def as_bytes(value: Value, scope: Scope) -> Value:
    """A value as BINARY."""
    width = 1 if scope.is_mariadb or value.kind is not ValueKind.TEXT else 4
    return Value(
        kind=ValueKind.TEXT,
        length=text_length(value) * width,
        is_nullable=True,
        charset="binary",
        collation="binary",
    )
