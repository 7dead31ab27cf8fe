"""Types of values in a query, and the columns that CREATE TABLE … SELECT makes of them.

Lengths are those that the servers keep for an expression: they decide the column's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.sql.servers import bytes_per_character, default_collation
from binlane.statements.sql.show_create import BOOLEANS, INTEGERS, column_type, without_json_checks
from binlane.statements.sql.table_definitions import TableColumn

LONGEST: Final = 4_294_967_295
_MYSQL_DOUBLE: Final = 22
_LARGE: Final = 1 << 24
_VARCHAR_MAX: Final = 512
"""Longer text becomes TEXT."""
_LARGE_TYPES: Final = (("", 65_535), ("MEDIUM", 16_777_215), ("LONG", 1 << 40))
_BIGINT_DIGITS: Final = 10
_DECIMAL_MAX: Final = 65
_DECIMAL_SCALE_MAX: Final = 38
DATE_LENGTHS: Final = MappingProxyType({"DATE": 10, "TIME": 10, "DATETIME": 19})
NO_DECIMALS: Final = 31
"""Decimals of a DOUBLE that shows as many digits as there are."""


class TypeKind(Enum):
    """Kind of a value, as far as functions ask."""

    NULL = "null"
    INTEGER = "integer"
    DECIMAL = "decimal"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"
    JSON = "json"
    OTHER = "other"
    """Type of a column only: ENUM, BIT, YEAR, UUID, geometry."""


NUMBERS: Final = frozenset({TypeKind.INTEGER, TypeKind.DECIMAL, TypeKind.REAL})
TEMPORALS: Final = frozenset({TypeKind.DATE, TypeKind.TIME, TypeKind.DATETIME})


class Coercibility(Enum):
    """Strength of a text's collation beside another one's, strongest first."""

    EXPLICIT = 0
    IMPLICIT = 2
    SYSTEM = 3
    LITERAL = 4
    NUMERIC = 5
    NULL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """The type of one expression.

    Attributes:
        length: Largest number of characters, with sign and point; of INTEGER as printed.
        decimals: Digits behind the point, or behind that of a second.
        is_unsigned: True for numbers without a sign.
        charset: Character set of text; else empty.
        collation: Collation of text; else empty.
        coercibility: Strength of the text's collation beside others.
        column: Column that the expression is, or whose type it has; None for other expressions.
        field_type: Type of a number or TIMESTAMP where the length does not decide it; else empty.
        is_literal: True for a constant in the text.
        is_negative: True for a negative number in the text, whose length counts the sign.
        is_stored: True if the value comes from a table that the server makes for the query: then it
            has a default.
    """

    kind: TypeKind
    length: int = 0
    decimals: int = 0
    is_unsigned: bool = False
    is_nullable: bool = False
    charset: str = ""
    collation: str = ""
    coercibility: Coercibility = Coercibility.NUMERIC
    column: TableColumn | None = None
    field_type: str = ""
    is_literal: bool = False
    is_negative: bool = False
    is_stored: bool = False

    @property
    def precision(self) -> int:
        """Number of digits of a number."""
        if self.kind is TypeKind.DECIMAL:
            return self.length
        if self.is_literal or self.is_unsigned:
            return self.length - self.is_negative
        return max(self.length - 1, 1)

    @property
    def integer_digits(self) -> int:
        """Digits before the point."""
        return self.precision - (self.decimals if self.kind is TypeKind.DECIMAL else 0)

    def as_nullable(self, is_nullable: bool = True) -> Type:  # noqa: FBT001, FBT002 - reads well
        """Give the same type that may be NULL or not."""
        return replace(self, is_nullable=is_nullable)


BYTES: Final = ("binary", "binary")
"""Character set and collation of what is no text."""


def text(
    length: int,
    of: tuple[str, str],
    *,
    coercibility: Coercibility = Coercibility.IMPLICIT,
    is_nullable: bool = False,
) -> Type:
    """Text of so many characters, of a character set and collation."""
    charset, collation = of
    return Type(
        kind=TypeKind.TEXT,
        length=length,
        is_nullable=is_nullable,
        charset=charset,
        collation=collation,
        coercibility=coercibility,
    )


def moment(name: str, decimals: int = 0) -> Type:
    """A DATE, TIME or DATETIME that may be NULL, with so many digits of a second."""
    length = DATE_LENGTHS[name]
    return Type(kind=TypeKind[name], length=length, decimals=decimals, is_nullable=True)


_TEXT_LENGTHS: Final = {
    "TINYTEXT": 255,
    "TEXT": 65_535,
    "MEDIUMTEXT": 16_777_215,
    "LONGTEXT": LONGEST,
    "TINYBLOB": 255,
    "BLOB": 65_535,
    "MEDIUMBLOB": 16_777_215,
    "LONGBLOB": LONGEST,
}
_TEMPORAL: Final = {
    "DATE": (TypeKind.DATE, 10),
    "TIME": (TypeKind.TIME, 10),
    "DATETIME": (TypeKind.DATETIME, 19),
    "TIMESTAMP": (TypeKind.DATETIME, 19),
}


def type_of_column(column: TableColumn, *, charset: str, flavor: Flavor) -> Type:
    """Give the type of the value that a column has in a query.

    Args:
        column: Column of a base table.
        charset: Character set of the table, for a column that names none.
        flavor: Flavor of the server that has the table.
    """
    name = column.type_name
    if name in BOOLEANS:
        made = Type(kind=TypeKind.INTEGER, length=1, field_type="TINYINT")
    elif name in INTEGERS:
        printed, signed, unsigned = INTEGERS[name]
        length = unsigned if column.is_unsigned else signed
        if column.arguments and flavor is Flavor.MARIADB:
            length = int(column.arguments[0])
        made = Type(kind=TypeKind.INTEGER, length=length, field_type=printed.upper())
    elif name in {"YEAR", "BIT"}:
        length = 4 if name == "YEAR" else int((*column.arguments, "1")[0])
        made = Type(kind=TypeKind.INTEGER, length=length, field_type=name, is_unsigned=True)
        if name == "BIT":
            made = replace(
                made, charset="binary", collation="binary", coercibility=Coercibility.IMPLICIT
            )
    elif name in {"DECIMAL", "DEC", "NUMERIC", "FIXED"}:
        digits = [int(each) for each in column.arguments]
        precision, scale = (*digits, *(10, 0)[len(digits) :])
        made = Type(kind=TypeKind.DECIMAL, length=precision, decimals=scale)
    elif name in {"FLOAT", "DOUBLE", "REAL", "FLOAT4", "FLOAT8"}:
        is_single = name in {"FLOAT", "FLOAT4"}
        length = 12 if is_single else 22
        made = Type(
            kind=TypeKind.REAL,
            length=length,
            decimals=NO_DECIMALS,
            field_type="FLOAT" if is_single else "DOUBLE",
        )
    elif name in _TEMPORAL:
        kind, length = _TEMPORAL[name]
        fraction = int(column.arguments[0]) if column.arguments else 0
        made = Type(
            kind=kind,
            length=length + fraction + (fraction > 0),
            decimals=fraction,
            field_type="TIMESTAMP" if name == "TIMESTAMP" else "",
        )
    elif (
        name in {"BINARY", "VARBINARY", "ENUM", "SET", "JSON"}
        or column.charset is not None
        or name in {"CHAR", "VARCHAR"}
    ):
        made = _text_value(column, name, charset, flavor)
    else:
        made = Type(kind=TypeKind.OTHER)
    is_unsigned = column.is_unsigned or made.is_unsigned
    return replace(made, is_unsigned=is_unsigned, is_nullable=column.is_nullable, column=column)


def _text_value(column: TableColumn, name: str, charset: str, flavor: Flavor) -> Type:
    if name == "JSON":
        made = text(_TEXT_LENGTHS["LONGTEXT"], ("utf8mb4", "utf8mb4_bin"))
        return made if flavor is Flavor.MARIADB else replace(made, kind=TypeKind.JSON)
    own = column.charset or charset
    if name in _TEXT_LENGTHS:
        length = _TEXT_LENGTHS[name] // bytes_per_character(own)
    elif name == "ENUM":
        length = max((len(each) for each in column.arguments), default=0)
    elif name == "SET":
        length = len(",".join(column.arguments))
    else:
        length = int(column.arguments[0]) if column.arguments else 1
    return text(length, (own, column.collation or default_collation(own, flavor)))


def column_of_type(name: str, value: Type, *, flavor: Flavor) -> TableColumn:
    """The column that CREATE TABLE … SELECT makes of a value."""
    if value.column is not None:
        return _copied(name, value, flavor)
    made = _typed(value, flavor)
    default = None
    if not value.is_nullable and (flavor is Flavor.MYSQL or value.is_stored):
        default = zero_default(value)
    return replace(made, name=name, is_nullable=value.is_nullable, default=default)


def _copied(name: str, value: Type, flavor: Flavor) -> TableColumn:
    """A column like another one: with its default and comment, but no key or computation."""
    assert value.column is not None
    source = value.column
    made = without_json_checks(source) if flavor is Flavor.MARIADB else source
    made = replace(
        made,
        name=name,
        is_nullable=value.is_nullable,
        is_auto_increment=False,
        is_generated=False,
        generated=None,
        generated_modes=(),
        is_stored=False,
        is_visible=True,
        check=None,
        type_name="BIGINT" if made.type_name == "SERIAL" else made.type_name,
    )
    if source.is_auto_increment:
        return replace(made, default="0")
    if source.generated is not None:
        return replace(made, default=None)
    if not source.is_nullable and source.default is None and value.is_nullable:
        return replace(made, has_no_default=True)
    return made


def _typed(value: Type, flavor: Flavor) -> TableColumn:
    kind = value.kind
    if kind is TypeKind.NULL:
        name = "BINARY" if flavor is Flavor.MARIADB else "VARBINARY"
        return TableColumn(name="", type_name=name, arguments=("0",), charset="binary")
    if kind is TypeKind.INTEGER:
        return _integer_column(value, flavor)
    if kind is TypeKind.DECIMAL:
        precision = min(value.length, _DECIMAL_MAX)
        return TableColumn(
            name="",
            type_name="DECIMAL",
            arguments=(str(precision), str(min(value.decimals, _DECIMAL_SCALE_MAX))),
            is_unsigned=value.is_unsigned,
        )
    if kind is TypeKind.REAL:
        digits = value.decimals
        sizes = () if digits >= NO_DECIMALS else (str(value.length), str(digits))
        name = value.field_type or "DOUBLE"
        return TableColumn(name="", type_name=name, arguments=sizes, is_unsigned=value.is_unsigned)
    if kind in TEMPORALS:
        has_fraction = value.decimals > 0 and kind is not TypeKind.DATE
        fraction = (str(value.decimals),) if has_fraction else ()
        name = value.field_type or kind.value.upper()
        return TableColumn(name="", type_name=name, arguments=fraction)
    if kind is TypeKind.JSON:
        return TableColumn(name="", type_name="JSON", charset="utf8mb4")
    return _text(value, flavor)


def _integer_column(value: Type, flavor: Flavor) -> TableColumn:
    name = value.field_type or ("BIGINT" if value.length >= _BIGINT_DIGITS else "INT")
    has_width = name == "BIT" or flavor is Flavor.MARIADB
    return TableColumn(
        name="",
        type_name=name,
        arguments=(str(value.length),) if has_width and name != "YEAR" else (),
        is_unsigned=value.is_unsigned and name not in {"YEAR", "BIT"},
    )


def _text(value: Type, flavor: Flavor) -> TableColumn:
    is_binary = value.charset == "binary"
    arguments: tuple[str, ...] = ()
    if value.length <= _VARCHAR_MAX:
        name = "VARBINARY" if is_binary else "VARCHAR"
        if value.length == 0 and flavor is Flavor.MARIADB:
            name = "BINARY" if is_binary else "CHAR"
        arguments = (str(value.length),)
    else:
        size = value.length * bytes_per_character(value.charset)
        prefix = next(prefix for prefix, limit in _LARGE_TYPES if size <= limit)
        name = prefix + ("BLOB" if is_binary else "TEXT")
    return TableColumn(
        name="",
        type_name=name,
        arguments=arguments,
        charset=value.charset,
        collation=value.collation or None,
    )


def zero_default(value: Type) -> str | None:
    """Give the default that MySQL gives a column that is not NULL; None where it gives none."""
    if value.kind in {TypeKind.INTEGER, TypeKind.DECIMAL}:
        return "0." + "0" * value.decimals if value.decimals else "0"
    if value.kind is TypeKind.REAL:
        is_free = value.decimals >= NO_DECIMALS
        return "0" if is_free or not value.decimals else "0." + "0" * value.decimals
    if value.kind is TypeKind.TIME:
        return "'00:00:00" + ("." + "0" * value.decimals if value.decimals else "") + "'"
    if value.kind is TypeKind.TEXT and value.length <= _VARCHAR_MAX:
        return "''"
    return None


def collation_of(types: Sequence[Type], connection: tuple[str, str]) -> tuple[str, str]:
    """Character set and collation of what several values make together.

    The strongest decides; of equally strong ones bytes, then the widest.
    """
    texts = [each for each in types if each.charset]
    if not texts:
        return connection
    strongest = min(each.coercibility.value for each in texts)
    leading = [each for each in texts if each.coercibility.value == strongest]
    if any(each.charset == "binary" for each in leading):
        return "binary", "binary"
    best = max(leading, key=lambda each: bytes_per_character(each.charset))
    return best.charset, best.collation


# Several values in one ----------------------------------------------------------------------------

_RANKS: Final = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
_SINGLE: Final = frozenset(("FLOAT", "TINYINT", "SMALLINT", "MEDIUMINT", "YEAR"))
"""Types whose values a FLOAT still holds."""


def aggregated(
    types: Iterable[Type],
    *,
    connection: tuple[str, str],
    flavor: Flavor,
    is_kept: bool = True,
    has_signs: bool = True,
) -> Type | None:
    """Give the type that holds all of some values, as UNION, CASE and COALESCE need it.

    Args:
        types: Types of the values in order.
        connection: Character set and collation of text made from values that are no text.
        flavor: Flavor of the server whose rules hold.
        is_kept: True to keep the narrowest integer, as UNION and IFNULL of MySQL do; others have
            INT.
        has_signs: True if literals have room for a sign.

    Returns:
        The type; None where it is not known here.
    """
    every = list(types)
    known = [each for each in every if each.kind is not TypeKind.NULL]
    if not known:
        return every[0]
    made = _of_several(known, every, connection, flavor, is_kept=is_kept)
    if made is not None and made.kind is TypeKind.INTEGER and not has_signs:
        made = replace(made, length=max(each.length for each in known))
    if made is None:
        return None
    return replace(made, is_nullable=any(each.is_nullable for each in every), is_literal=False)


def _of_several(
    known: Sequence[Type],
    every: Sequence[Type],
    connection: tuple[str, str],
    flavor: Flavor,
    *,
    is_kept: bool,
) -> Type | None:
    kinds = {each.kind for each in known}
    if kinds == {TypeKind.JSON}:
        return replace(known[0], column=None)
    if TypeKind.OTHER in kinds:
        return _of_one_column(known, flavor)
    if kinds <= NUMBERS:
        return _number(known, every, flavor, is_kept=is_kept)
    if kinds <= TEMPORALS:
        return _moments(known)
    if TypeKind.JSON in kinds:
        known = [replace(each, kind=TypeKind.TEXT) for each in known]
    of = collation_of(known, connection)
    length = max(length_in(each, of[0], flavor) for each in known)
    if flavor is Flavor.MYSQL and any(_is_large(each) for each in known):
        length = LONGEST
    strongest = min(each.coercibility.value for each in known)
    return text(length, of, coercibility=Coercibility(strongest))


def _of_one_column(known: Sequence[Type], flavor: Flavor) -> Type | None:
    """A type that no other one combines with."""
    first = known[0].column
    types = {column_type(each.column, flavor) if each.column else "" for each in known}
    if first is None or len(types) > 1:
        return None
    return replace(known[0], column=replace(first, default=None, comment=None, is_nullable=True))


def _is_large(value: Type) -> bool:
    return value.length > _LARGE or (
        value.column is not None and value.column.type_name.endswith(("TEXT", "BLOB"))
    )


def _moments(known: Sequence[Type]) -> Type:
    kinds = {each.kind for each in known}
    kind = kinds.pop() if len(kinds) == 1 else TypeKind.DATETIME
    decimals = max(each.decimals for each in known)
    length = max(DATE_LENGTHS[kind.name] + decimals + (decimals > 0), known[0].length)
    is_timestamp = all(each.field_type == "TIMESTAMP" for each in known)
    field_type = "TIMESTAMP" if is_timestamp else ""
    return Type(kind=kind, length=length, decimals=decimals, field_type=field_type)


def _number(known: Sequence[Type], every: Sequence[Type], flavor: Flavor, *, is_kept: bool) -> Type:
    kinds = {each.kind for each in known}
    digits = max(each.integer_digits for each in known)
    if TypeKind.REAL in kinds:
        is_single = all(each.field_type in _SINGLE for each in known)
        field_type = "FLOAT" if is_single else "DOUBLE"
        return Type(kind=TypeKind.REAL, length=22, decimals=NO_DECIMALS, field_type=field_type)
    scale = max(each.decimals for each in known)
    exact = Type(kind=TypeKind.DECIMAL, length=digits + scale, decimals=scale)
    if TypeKind.DECIMAL in kinds:
        return exact
    fields = {each.field_type for each in known}
    whole = Type(kind=TypeKind.INTEGER, length=digits, is_unsigned=True)
    is_bit = fields == {"BIT"} and (is_kept or flavor is Flavor.MARIADB)
    if is_bit or fields == {"YEAR"}:
        return replace(whole, field_type=fields.pop())
    if flavor is Flavor.MYSQL:
        field_type = _mysql_integer(known)
        if not is_kept and field_type:
            field_type = "BIGINT" if digits > _BIGINT_DIGITS else "INT"
        is_unsigned = all(each.is_unsigned for each in known)
    else:
        is_unsigned = all(each.is_unsigned for each in every)
        is_signed = not any(each.is_unsigned for each in known)
        field_type = _RANKS[max(map(_mariadb_rank, known))] if is_unsigned or is_signed else ""
    if not field_type:
        return exact
    return replace(
        whole,
        length=digits + (not is_unsigned),
        is_unsigned=is_unsigned,
        field_type=field_type,
    )


def _mariadb_rank(value: Type) -> int:
    if value.field_type in _RANKS:
        return _RANKS.index(value.field_type)
    if value.field_type in {"YEAR", "BIT"}:
        return 0 if value.field_type == "YEAR" else 3
    return 4 if value.length >= _BIGINT_DIGITS else 3


def _mysql_integer(known: Sequence[Type]) -> str:
    """The integer type of MySQL for several; empty if it is DECIMAL."""
    signed = [_mysql_rank(each) for each in known if not each.is_unsigned]
    unsigned = [_mysql_rank(each) for each in known if each.is_unsigned]
    if not signed or not unsigned:
        return _RANKS[max(signed or unsigned)]
    if any(each.field_type == "BIT" for each in known):
        return ""
    rank = max(*signed, max(unsigned) + 1)
    return _RANKS[rank] if rank < len(_RANKS) else ""


def _mysql_rank(value: Type) -> int:
    if value.field_type == "YEAR":
        return 1
    is_column = value.column is not None and value.field_type in _RANKS
    return _RANKS.index(value.field_type) if is_column else 4


def length_in(value: Type, charset: str, flavor: Flavor) -> int:
    """Characters of a value as text of a character set; bytes of one that is binary."""
    length = text_length(value)
    if flavor is Flavor.MYSQL and value.is_literal:
        is_positive = value.kind is TypeKind.INTEGER and not value.is_negative
        length = _MYSQL_DOUBLE if value.kind is TypeKind.REAL else length + is_positive
    if charset == "binary" and value.kind is TypeKind.TEXT and value.charset != "binary":
        return length * bytes_per_character(value.charset)
    return length


def without_default(column: TableColumn | None) -> TableColumn | None:
    """A column as functions keep it: its default and comment are not theirs."""
    return None if column is None else replace(column, default=None, comment=None)


def text_length(value: Type) -> int:
    """Characters of a value as text."""
    if value.kind is TypeKind.DECIMAL:
        return value.length + (value.decimals > 0) + (not value.is_unsigned)
    return value.length
