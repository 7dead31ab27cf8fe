"""Meaning of the names in a query, and the types of the results of operators.

An unknown type raises `Untyped`: then no column is made up.

Source: MariaDB 10.11 sql/item_func.cc and MySQL 9.7 sql/item_func.cc, `fix_length_and_dec` and
`result_precision`; lengths measured on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.evaluation.known_names import Environment, StatementText
from binlane.statements.sql.evaluation.types import (
    BYTES,
    NO_DECIMALS,
    TEMPORALS,
    Coercibility,
    Type,
    TypeKind,
    aggregated,
    length_in,
    moment,
    text,
    zero_default,
)
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.servers import ASSUMED, Fact, has

_DIGITS_MAX: Final = 65
_SCALE_MAX: Final = 38
_DIVISION_SCALE: Final = 4  # div_precision_increment
_TIME_UNITS: Final = ("HOUR", "MINUTE", "SECOND", "MICROSECOND")
_MARIADB_BIGINT_LENGTH: Final = 10
_MYSQL_BIGINT_LENGTH: Final = 12
_INT_LENGTH: Final = 11
_BIGINT_MAX: Final = (1 << 63) - 1
_UNSIGNED_MAX: Final = (1 << 64) - 1


class Untyped(Exception):  # noqa: N818 - not an error: the type is beyond what is known here
    """The type of an expression is not known.

    Attributes:
        what: The part of the text that it is about.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"the type of {what} is not known")
        self.what = what


Columns = tuple[tuple[str, Type], ...]
"""Names and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSource:
    """A table of a FROM clause.

    Attributes:
        alias: Name by which the query calls the table.
        columns: All columns of the table.
        starred: Columns that `*` gives; None for all of them.
    """

    alias: str
    columns: Columns
    starred: Columns | None = None

    @property
    def in_star(self) -> Columns:
        """The columns that `*` gives."""
        return self.columns if self.starred is None else self.starred

    def as_nullable(self) -> TypeSource:
        """Give the table as it is on the side of an outer join that may have no row."""
        return TypeSource(
            alias=self.alias,
            columns=_nullable(self.columns),
            starred=None if self.starred is None else _nullable(self.starred),
        )


def _nullable(columns: Columns) -> Columns:
    return tuple((name, each.as_nullable()) for name, each in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeScope:
    """Surroundings of an expression: its text, server, session and tables.

    Attributes:
        text: Text of the statement, or of the view that the expression belongs to.
        objects: Objects that the server has.
        flavor: Flavor of the server that types the expression.
        database: Name of the default database.
        connection: Character set and collation of literals.
        environment: Environment with the variables; None where nobody knows them.
        sources: Tables of the query, then those of the queries around it.
        common: The columns of common table expressions, by their names in lower case.
        views: Views that the expression is inside of.
    """

    text: StatementText
    objects: Objects
    flavor: Flavor
    database: str
    connection: tuple[str, str]
    environment: Environment | None = None
    sources: tuple[TypeSource, ...] = ()
    common: Mapping[str, Columns] = field(default_factory=dict)
    views: tuple[TableName, ...] = ()

    def has(self, fact: Fact) -> bool:
        """True if the server's version does as a fact says of some versions."""
        flavor = self.flavor.value
        return has(fact, flavor, self.objects.server_version or ASSUMED[flavor])

    @property
    def is_mariadb(self) -> bool:
        """True if MariaDB's rules hold, not MySQL's."""
        return self.flavor is Flavor.MARIADB

    def column(self, names: Sequence[str]) -> Type:
        """The type of a column, by its name with or without its table.

        Raises:
            Untyped: If there is none.
        """
        *qualifiers, name = names
        for source in self.sources:
            if qualifiers and source.alias.lower() != qualifiers[-1].lower():
                continue
            for column, found in source.columns:
                if column.lower() == name.lower():
                    return found
        raise Untyped(f"column {name}")


# Types of results ---------------------------------------------------------------------------------


def truth(*types: Type) -> Type:
    """TRUE, FALSE, or NULL if an operand may be."""
    return Type(
        kind=TypeKind.INTEGER,
        length=1,
        is_nullable=any(each.is_nullable for each in types),
        field_type="INT",
    )


def bits(*types: Type) -> Type:
    """The result of an operator on bits."""
    return replace(truth(*types), length=21, is_unsigned=True, field_type="BIGINT")


def real(*types: Type) -> Type:
    """A DOUBLE made of some values."""
    return Type(
        kind=TypeKind.REAL,
        length=22,
        decimals=NO_DECIMALS,
        is_nullable=any(each.is_nullable for each in types),
    )


def integer(length: int, scope: TypeScope, *, is_unsigned: bool = False) -> Type:
    """A whole number whose length decides its type."""
    wide = _MARIADB_BIGINT_LENGTH if scope.is_mariadb else _MYSQL_BIGINT_LENGTH
    return Type(
        kind=TypeKind.INTEGER,
        length=length,
        is_unsigned=is_unsigned,
        field_type="BIGINT" if length >= wide else "INT",
    )


def decimal(length: int, scale: int, *, is_unsigned: bool = False) -> Type:
    """A DECIMAL within the servers' bounds."""
    return Type(
        kind=TypeKind.DECIMAL,
        length=max(min(length, _DIGITS_MAX), 1),
        decimals=min(scale, _SCALE_MAX),
        is_unsigned=is_unsigned,
    )


def together(types: Sequence[Type], scope: TypeScope, *, is_kept: bool = False) -> Type:
    """The type that holds all of some others; `is_kept` as of `aggregated`.

    Raises:
        Untyped: If the type is not known.
    """
    made = aggregated(
        types,
        connection=scope.connection,
        flavor=scope.flavor,
        is_kept=is_kept,
        has_signs=scope.has(Fact.LITERALS_HAVE_SIGNS),
    )
    if made is None:
        raise Untyped("values of several types")
    return with_default(made, scope)


def with_default(made: Type, scope: TypeScope) -> Type:
    """Give a type with the default that MySQL gives to results of functions on a column that is not NULL."""
    if made.column is None or scope.is_mariadb or made.is_nullable:
        return made
    return replace(made, column=replace(made.column, default=zero_default(made)))


# Operators ----------------------------------------------------------------------------------------


_MOMENT_DIGITS: Final = {TypeKind.DATE: 8, TypeKind.TIME: 7, TypeKind.DATETIME: 14}


def as_number(operand: Type) -> Type:
    """A value where a number is asked for.

    Raises:
        Untyped: If the type is not known.
    """
    digits = _MOMENT_DIGITS.get(operand.kind)
    if digits is not None:
        number = replace(operand, kind=TypeKind.INTEGER, length=digits + 1, column=None)
        if operand.decimals:
            number = replace(number, kind=TypeKind.DECIMAL, length=digits + operand.decimals)
        return replace(number, field_type="", is_unsigned=False)
    if operand.kind is TypeKind.TEXT and operand.is_literal and operand.charset == "binary":
        return Type(
            kind=TypeKind.INTEGER, length=len(str(256**operand.length - 1)), is_unsigned=True
        )
    if operand.kind in {TypeKind.TEXT, TypeKind.JSON}:
        return real(operand)
    if operand.kind is TypeKind.OTHER:
        raise Untyped("a number of this")
    return operand


def combined(left: Type, right: Type, operator: str, scope: TypeScope) -> Type:
    """The result of `+` (and `-`), `*`, `/`, `DIV` or `%`.

    Raises:
        Untyped: If the type is not known.
    """
    is_nullable = left.is_nullable or right.is_nullable or operator in {"/", "DIV", "%"}
    if operator == "DIV":
        return _divided_whole(left, right, scope).as_nullable(is_nullable)
    made = _result(as_number(left), as_number(right), operator, scope)
    has_moment = not {left.kind, right.kind}.isdisjoint(TEMPORALS)
    if scope.is_mariadb and has_moment and made.kind is TypeKind.INTEGER and operator != "%":
        made = replace(made, length=made.length + made.is_unsigned, is_unsigned=False)
    return made.as_nullable(is_nullable)


def _result(left: Type, right: Type, operator: str, scope: TypeScope) -> Type:
    kinds = {left.kind, right.kind}
    is_unsigned = left.is_unsigned if operator == "%" else False
    if TypeKind.REAL in kinds:
        return replace(real(), is_unsigned=is_unsigned)
    if TypeKind.NULL in kinds:
        return _beside_null(left, right, operator, scope)
    if operator == "/":
        return _quotient(left, right)
    if TypeKind.DECIMAL in kinds:
        return _decimal(left, right, operator, scope)
    if operator == "%":
        length = max(left.precision, right.precision) + (not is_unsigned)
        return integer(length, scope, is_unsigned=is_unsigned)
    is_unsigned = left.is_unsigned or right.is_unsigned
    digits = max(left.precision, right.precision) + 1
    if operator == "*":
        digits = left.precision + right.precision
    return integer(digits + (not is_unsigned), scope, is_unsigned=is_unsigned)


def _beside_null(left: Type, right: Type, operator: str, scope: TypeScope) -> Type:
    if operator == "/" and scope.is_mariadb:
        raise Untyped("NULL divided")
    scale = max(left.decimals, right.decimals) + (_DIVISION_SCALE if operator == "/" else 0)
    length = 17 + scale if scope.is_mariadb else 22
    return replace(real(), length=length, decimals=scale)


def _quotient(left: Type, right: Type) -> Type:
    length = left.precision + _DIVISION_SCALE + right.decimals
    is_unsigned = left.is_unsigned and right.is_unsigned
    return decimal(length, left.decimals + _DIVISION_SCALE, is_unsigned=is_unsigned)


def _divided_whole(left: Type, right: Type, scope: TypeScope) -> Type:
    number = left if left.kind is TypeKind.TEXT else as_number(left)
    is_unsigned = left.is_unsigned or right.is_unsigned
    length = number.length if number.kind in {TypeKind.TEXT, TypeKind.REAL} else 0
    if number.kind is TypeKind.REAL:
        length = 21
    made = integer(length or number.integer_digits, scope, is_unsigned=is_unsigned)
    is_inexact = right.kind in {TypeKind.REAL, TypeKind.TEXT} and not right.is_literal
    if not scope.is_mariadb and (is_inexact or made.length > _INT_LENGTH):
        return replace(made, field_type="BIGINT")
    return made


def _decimal(left: Type, right: Type, operator: str, scope: TypeScope) -> Type:
    scale = max(left.decimals, right.decimals)
    length = max(left.integer_digits, right.integer_digits) + scale + 1
    if operator == "*":
        scale = left.decimals + right.decimals
        length = left.precision + right.precision
    elif operator == "%":
        length = max(left.precision, right.precision)
        length += left.is_unsigned and not scope.is_mariadb
        return decimal(length, scale, is_unsigned=left.is_unsigned)
    return decimal(length, scale, is_unsigned=left.is_unsigned and right.is_unsigned)


def _negative(operand: Type, scope: TypeScope) -> Type:
    if operand.kind in TEMPORALS:
        scale, length = operand.decimals, operand.length
        if scope.is_mariadb:
            return decimal(length - (scale > 0), scale).as_nullable(operand.is_nullable)
        return replace(real(operand), decimals=scale)
    if operand.kind in {TypeKind.TEXT, TypeKind.JSON, TypeKind.REAL}:
        return real(operand)
    if operand.kind is not TypeKind.INTEGER:
        return replace(operand, column=None)
    if operand.is_literal:
        return replace(operand, length=operand.length + 1, is_negative=True)
    if scope.is_mariadb:
        return integer(operand.length + 1, scope).as_nullable(operand.is_nullable)
    field_type = operand.field_type
    if operand.column is not None:
        field_type = "BIGINT" if operand.length > _INT_LENGTH else "INT"
    return replace(
        operand,
        length=operand.length + 1,
        is_unsigned=False,
        column=None,
        field_type=field_type,
    )


_MARIADB_MOMENT: Final = 19
_MYSQL_MOMENT: Final = 29


def moved(operand: Type, unit: str, scope: TypeScope) -> Type:
    """A date or time plus or minus an interval."""
    decimals = max(operand.decimals, 6 if "MICROSECOND" in unit else 0)
    if operand.kind is TypeKind.DATE:
        has_time = any(part in unit for part in _TIME_UNITS)
        return moment("DATETIME" if has_time else "DATE", decimals)
    if operand.kind is TypeKind.TIME and not scope.is_mariadb and "DAY" in unit:
        return moment("DATETIME", decimals)
    if operand.kind in TEMPORALS:
        return replace(operand, is_nullable=True, column=None, decimals=decimals, field_type="")
    length = _MARIADB_MOMENT if scope.is_mariadb else _MYSQL_MOMENT
    if scope.is_mariadb:
        scale = 6 if operand.decimals >= NO_DECIMALS or _is_long_text(operand) else decimals
        length += scale + (scale > 0)
    return text(length, scope.connection, coercibility=Coercibility.NUMERIC, is_nullable=True)


def _is_long_text(operand: Type) -> bool:
    """True if a text may have a fraction of a second."""
    is_set = operand.column is not None and operand.column.type_name in {"ENUM", "SET"}
    is_number = operand.is_literal and operand.charset == "binary"
    return operand.kind is TypeKind.TEXT and not is_set and not is_number


def as_bytes(operand: Type, scope: TypeScope) -> Type:
    """A value as BINARY."""
    length = length_in(operand, "binary", scope.flavor)
    return text(length, BYTES, coercibility=Coercibility.NUMERIC, is_nullable=True)


ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "DIV", "%"))
OPERATORS: Final[Mapping[str, Callable[[Sequence[Type], TypeScope], Type]]] = MappingProxyType(
    {
        **dict.fromkeys(("|", "&", "^", "<<", ">>", "~"), lambda types, _: bits(*types)),
        "NEG": lambda types, scope: _negative(types[0], scope),
        "POS": lambda types, _: types[0],
        "BINARY": lambda types, scope: as_bytes(types[0], scope),
    }
)
"""Operators by name; all others are conditions."""
