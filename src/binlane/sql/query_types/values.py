"""Types of values in a query, and the columns that CREATE TABLE … SELECT makes of them.

Lengths are those that the servers keep for an expression: they decide the column's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.sql.collations import bytes_per_character, default_collation
from binlane.sql.show_create import column_type, without_json_checks
from binlane.sql.table_definitions import TableColumn

_VARCHAR_MAX: Final = 512
"""Longer text becomes TEXT."""
_LARGE_TYPES: Final = (("", 65_535), ("MEDIUM", 16_777_215), ("LONG", 1 << 40))
_BIGINT_DIGITS: Final = 10
_DECIMAL_MAX: Final = 65
_DECIMAL_SCALE_MAX: Final = 38
DATE_LENGTHS: Final = MappingProxyType({"DATE": 10, "TIME": 10, "DATETIME": 19})
NO_DECIMALS: Final = 31
"""Of a DOUBLE: as many digits as there are."""


class ValueKind(Enum):
    """What a value is, as far as functions ask."""

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
    """Of a column only: ENUM, BIT, YEAR, UUID, geometry."""


NUMBERS: Final = frozenset({ValueKind.INTEGER, ValueKind.DECIMAL, ValueKind.REAL})
TEMPORALS: Final = frozenset({ValueKind.DATE, ValueKind.TIME, ValueKind.DATETIME})


class Coercibility(Enum):
    """How strongly a text's collation counts beside another one's, strongest first."""

    EXPLICIT = 0
    IMPLICIT = 2
    SYSTEM = 3
    LITERAL = 4
    NUMERIC = 5
    NULL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The type of one expression.

    Attributes:
        kind: What it is.
        length: Characters that it has at most, with sign and point; of INTEGER as printed.
        decimals: Digits behind the point, or of a second.
        is_unsigned: Of numbers.
        is_nullable: It may be NULL.
        charset: Of text.
        collation: Of text.
        coercibility: Of text.
        column: The column that it is, or whose type it has; None of other expressions.
        integer_type: BIGINT or INT where the length does not decide; else empty.
        is_literal: A constant in the text.
        is_stored: It comes from a table that the server makes for the query: then it has a default.
    """

    kind: ValueKind
    length: int = 0
    decimals: int = 0
    is_unsigned: bool = False
    is_nullable: bool = False
    charset: str = ""
    collation: str = ""
    coercibility: Coercibility = Coercibility.NUMERIC
    column: TableColumn | None = None
    integer_type: str = ""
    is_literal: bool = False
    is_stored: bool = False

    @property
    def precision(self) -> int:
        """Digits of a number."""
        if self.kind is ValueKind.DECIMAL:
            return self.length
        if self.is_literal or self.is_unsigned:
            return self.length
        return max(self.length - 1, 1)

    @property
    def integer_digits(self) -> int:
        """Digits before the point."""
        return self.precision - (self.decimals if self.kind is ValueKind.DECIMAL else 0)

    def as_nullable(self, is_nullable: bool = True) -> Value:  # noqa: FBT001, FBT002 - reads well
        """The same that may be NULL or not."""
        return replace(self, is_nullable=is_nullable)


_WIDTHS: Final = {"TINYINT": 4, "SMALLINT": 6, "MEDIUMINT": 9, "INT": 11, "BIGINT": 20}
_UNSIGNED_WIDTHS: Final = {"TINYINT": 3, "SMALLINT": 5, "MEDIUMINT": 8, "INT": 10, "BIGINT": 20}
_TEXT_LENGTHS: Final = {
    "TINYTEXT": 255,
    "TEXT": 65_535,
    "MEDIUMTEXT": 16_777_215,
    "LONGTEXT": 4_294_967_295,
    "TINYBLOB": 255,
    "BLOB": 65_535,
    "MEDIUMBLOB": 16_777_215,
    "LONGBLOB": 4_294_967_295,
}
_INTEGER_TYPES: Final = {
    "INTEGER": "INT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "SERIAL": "BIGINT",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT3": "MEDIUMINT",
    "MIDDLEINT": "MEDIUMINT",
    "BOOL": "TINYINT",
    "BOOLEAN": "TINYINT",
}
_TEMPORAL: Final = {
    "DATE": (ValueKind.DATE, 10),
    "TIME": (ValueKind.TIME, 10),
    "DATETIME": (ValueKind.DATETIME, 19),
    "TIMESTAMP": (ValueKind.DATETIME, 19),
}


def value_of_column(column: TableColumn, *, charset: str, flavor: Flavor) -> Value:
    """The value that a column has in a query.

    Args:
        column: Of a table.
        charset: Of its table, where the column does not say it.
        flavor: Of the server.
    """
    name = _INTEGER_TYPES.get(column.type_name, column.type_name)
    if name in _WIDTHS:
        made = Value(kind=ValueKind.INTEGER, length=_width(column, name, flavor))
    elif name in {"DECIMAL", "DEC", "NUMERIC", "FIXED"}:
        digits = [int(each) for each in column.arguments]
        precision, scale = (*digits, *(10, 0)[len(digits) :])
        made = Value(kind=ValueKind.DECIMAL, length=precision, decimals=scale)
    elif name in {"FLOAT", "DOUBLE", "REAL", "FLOAT4", "FLOAT8"}:
        length = 12 if name in {"FLOAT", "FLOAT4"} else 22
        made = Value(kind=ValueKind.REAL, length=length, decimals=NO_DECIMALS)
    elif name in _TEMPORAL:
        kind, length = _TEMPORAL[name]
        fraction = int(column.arguments[0]) if column.arguments else 0
        made = Value(kind=kind, length=length + fraction + (fraction > 0), decimals=fraction)
    elif name == "JSON" or column.charset is not None or name in {"CHAR", "VARCHAR"}:
        made = _text_value(column, name, charset, flavor)
    else:
        made = Value(kind=ValueKind.OTHER)
    return replace(
        made, is_unsigned=column.is_unsigned, is_nullable=column.is_nullable, column=column
    )


def _width(column: TableColumn, name: str, flavor: Flavor) -> int:
    """Characters of an integer."""
    if column.type_name in {"BOOL", "BOOLEAN"}:
        return 1
    if column.arguments and flavor is Flavor.MARIADB:
        return int(column.arguments[0])
    return (_UNSIGNED_WIDTHS if column.is_unsigned else _WIDTHS)[name]


def _text_value(column: TableColumn, name: str, charset: str, flavor: Flavor) -> Value:
    if name == "JSON":
        return Value(
            kind=ValueKind.TEXT if flavor is Flavor.MARIADB else ValueKind.JSON,
            length=_TEXT_LENGTHS["LONGTEXT"],
            charset="utf8mb4",
            collation="utf8mb4_bin",
            coercibility=Coercibility.IMPLICIT,
        )
    own = column.charset or charset
    if name in _TEXT_LENGTHS:
        length = _TEXT_LENGTHS[name] // bytes_per_character(own)
    elif name in {"ENUM", "SET"}:
        length = max((len(each) for each in column.arguments), default=0)
    else:
        length = int(column.arguments[0]) if column.arguments else 1
    return Value(
        kind=ValueKind.TEXT,
        length=length,
        charset=own,
        collation=column.collation or default_collation(own, flavor),
        coercibility=Coercibility.IMPLICIT,
    )


def column_of_value(name: str, value: Value, *, flavor: Flavor) -> TableColumn:
    """The column that CREATE TABLE … SELECT makes of a value."""
    if value.column is not None:
        return _copied(name, value, flavor)
    made = _typed(value, flavor)
    default = None
    if not value.is_nullable and (flavor is Flavor.MYSQL or value.is_stored):
        default = zero_default(value)
    return replace(made, name=name, is_nullable=value.is_nullable, default=default)


def _copied(name: str, value: Value, flavor: Flavor) -> TableColumn:
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


def _typed(value: Value, flavor: Flavor) -> TableColumn:
    kind = value.kind
    if kind is ValueKind.NULL:
        name = "BINARY" if flavor is Flavor.MARIADB else "VARBINARY"
        return TableColumn(name="", type_name=name, arguments=("0",), charset="binary")
    if kind is ValueKind.INTEGER:
        name = value.integer_type or ("BIGINT" if value.length >= _BIGINT_DIGITS else "INT")
        width = (str(value.length),) if flavor is Flavor.MARIADB else ()
        return TableColumn(name="", type_name=name, arguments=width, is_unsigned=value.is_unsigned)
    if kind is ValueKind.DECIMAL:
        precision = min(value.length, _DECIMAL_MAX)
        return TableColumn(
            name="",
            type_name="DECIMAL",
            arguments=(str(precision), str(min(value.decimals, _DECIMAL_SCALE_MAX))),
            is_unsigned=value.is_unsigned,
        )
    if kind is ValueKind.REAL:
        digits = value.decimals
        sizes = () if digits >= NO_DECIMALS else (str(value.length), str(digits))
        return TableColumn(name="", type_name="DOUBLE", arguments=sizes)
    if kind in TEMPORALS:
        has_fraction = value.decimals > 0 and kind is not ValueKind.DATE
        fraction = (str(value.decimals),) if has_fraction else ()
        return TableColumn(name="", type_name=kind.value.upper(), arguments=fraction)
    if kind is ValueKind.JSON:
        return TableColumn(name="", type_name="JSON", charset="utf8mb4")
    return _text(value, flavor)


def _text(value: Value, flavor: Flavor) -> TableColumn:
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


def zero_default(value: Value) -> str | None:
    """What MySQL gives a column that is not NULL as its default."""
    if value.kind in {ValueKind.INTEGER, ValueKind.DECIMAL}:
        return "0." + "0" * value.decimals if value.decimals else "0"
    if value.kind is ValueKind.REAL:
        is_free = value.decimals >= NO_DECIMALS
        return "0" if is_free or not value.decimals else "0." + "0" * value.decimals
    if value.kind is ValueKind.TIME:
        return "'00:00:00" + ("." + "0" * value.decimals if value.decimals else "") + "'"
    if value.kind is ValueKind.TEXT and value.length <= _VARCHAR_MAX:
        return "''"
    return None


def collation_of(values: Sequence[Value], connection: tuple[str, str]) -> tuple[str, str]:
    """Character set and collation of what several values make together."""
    texts = [value for value in values if value.kind is ValueKind.TEXT]
    if not texts:
        return connection
    if any(value.charset == "binary" for value in texts):
        return "binary", "binary"
    strongest = min(value.coercibility.value for value in texts)
    leading = [value for value in texts if value.coercibility.value == strongest]
    best = max(leading, key=lambda value: bytes_per_character(value.charset))
    return best.charset, best.collation


def aggregated(
    values: Iterable[Value], *, connection: tuple[str, str], flavor: Flavor
) -> Value | None:
    """The type that holds all of some values, as UNION, CASE and COALESCE need it.

    Returns:
        None where it is not known here.
    """
    every = list(values)
    known = [value for value in every if value.kind is not ValueKind.NULL]
    is_nullable = any(value.is_nullable for value in every)
    if not known:
        return every[0]
    first = known[0]
    if all(value.column is not None for value in known):
        types = {column_type(value.column, flavor) for value in known if value.column}
        if len(types) == 1 and len({value.collation for value in known}) == 1:
            return replace(
                first, is_nullable=is_nullable, column=_bare(first.column, is_nullable=is_nullable)
            )
    kinds = {value.kind for value in known}
    if ValueKind.OTHER in kinds or ValueKind.JSON in kinds:
        return None
    if kinds <= NUMBERS:
        return _aggregated_number(known, kinds, is_nullable=is_nullable)
    if len(kinds) == 1 and first.kind in TEMPORALS:
        decimals = max(value.decimals for value in known)
        return replace(first, decimals=decimals, is_nullable=is_nullable, column=None)
    if kinds <= TEMPORALS:
        return None
    charset, collation = collation_of(known, connection)
    return Value(
        kind=ValueKind.TEXT,
        length=max(text_length(value) for value in known),
        is_nullable=is_nullable,
        charset=charset,
        collation=collation,
        coercibility=min((value.coercibility for value in known), key=lambda each: each.value),
    )


def _bare(column: TableColumn | None, *, is_nullable: bool) -> TableColumn | None:
    if column is None:
        return None
    return replace(column, is_nullable=is_nullable, default=None, comment=None)


def _aggregated_number(
    known: Sequence[Value], kinds: set[ValueKind], *, is_nullable: bool
) -> Value:
    if ValueKind.REAL in kinds:
        return Value(kind=ValueKind.REAL, length=22, decimals=NO_DECIMALS, is_nullable=is_nullable)
    digits = max(value.integer_digits for value in known)
    is_unsigned = all(value.is_unsigned for value in known)
    if ValueKind.DECIMAL in kinds:
        scale = max(value.decimals for value in known)
        return Value(
            kind=ValueKind.DECIMAL,
            length=digits + scale,
            decimals=scale,
            is_unsigned=is_unsigned,
            is_nullable=is_nullable,
        )
    return Value(
        kind=ValueKind.INTEGER,
        length=digits + (not is_unsigned),
        is_unsigned=is_unsigned,
        is_nullable=is_nullable,
        integer_type="BIGINT" if digits > _BIGINT_DIGITS else "INT",
    )


def text_length(value: Value) -> int:
    """Characters of a value as text."""
    if value.kind is ValueKind.DECIMAL:
        return value.length + (value.decimals > 0) + (not value.is_unsigned)
    return value.length
