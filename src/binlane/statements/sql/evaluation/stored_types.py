"""Values as columns and variables of a type store them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP
from types import MappingProxyType
from typing import Final

from binlane.log.codec.json_values import shortest_float
from binlane.statements.sql.evaluation.values import (
    BINARY,
    UNKNOWN,
    UNSIGNED_MAX,
    Temporal,
    TemporalKind,
    Text,
    Unknown,
    Value,
    as_integer,
    as_number,
    exact,
    plain_text,
    rounded,
)
from binlane.statements.sql.tree.expressions import DataType

_SIGNED_MAX: Final = (1 << 63) - 1
_INTEGERS: Final = frozenset(
    (
        *("TINYINT", "SMALLINT", "MEDIUMINT", "MIDDLEINT", "INT", "INTEGER", "BIGINT", "YEAR"),
        *("INT1", "INT2", "INT3", "INT4", "INT8", "BOOL", "BOOLEAN", "SERIAL"),
        *("SIGNED", "UNSIGNED"),
    )
)
_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER")
_DOUBLES: Final = ("DOUBLE", "REAL", "FLOAT8")
_FLOATS: Final = ("FLOAT", "FLOAT4")
_BYTES: Final = ("BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "RAW")
_TEXTS: Final = (
    *("CHAR", "VARCHAR", "VARCHAR2", "NCHAR", "NVARCHAR", "CHARACTER", "NATIONAL", "LONG"),
    *("TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB", "ENUM", "SET", "JSON"),
)
_PADDED: Final = ("CHAR", "NCHAR")
_TEMPORALS: Final = MappingProxyType(
    {
        "DATE": TemporalKind.DATE,
        "TIME": TemporalKind.TIME,
        "DATETIME": TemporalKind.TIMESTAMP,
        "TIMESTAMP": TemporalKind.TIMESTAMP,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredType:
    """Type that converts a value when it is stored.

    Attributes:
        name: Name of the type as in `DataType`.
        length: First number in parentheses; None without.
        scale: Second number in parentheses; None without.
        is_unsigned: True with UNSIGNED or ZEROFILL.
        collation: Collation of the type's strings.
    """

    name: str
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    collation: str = BINARY

    @classmethod
    def of(
        cls, node: DataType, *, collation: str, default_collation: Callable[[str], str]
    ) -> StoredType:
        """The type that a text names.

        Args:
            node: Type of the text, such as `VARCHAR(20) CHARACTER SET latin1`.
            collation: Collation for strings whose type names none: that of the database or
                connection.
            default_collation: Gives the default collation of a character set.
        """
        if node.collation:
            collation = node.collation.lower()
        elif node.charset:
            collation = default_collation(node.charset.lower())
        elif node.name == "JSON":
            collation = "utf8mb4_bin"
        sizes = [int(size) for size in node.arguments if size.isdecimal()]
        return cls(
            name=node.name,
            length=sizes[0] if sizes else None,
            scale=sizes[1] if len(sizes) > 1 else None,
            is_unsigned=not node.words.isdisjoint({"UNSIGNED", "ZEROFILL"}),
            collation=collation,
        )

    def store(self, value: Value) -> Value:
        """Give the value that a variable of this type holds once it is given another one."""
        if value is None or value is UNKNOWN:
            return value
        convert = _CONVERSIONS.get(self.name)
        return UNKNOWN if convert is None else convert(self, value)

    def cast(self, value: Value) -> Value:
        """Give the result of CAST: strings are cut, numbers wrap around."""
        if self.name in _INTEGERS and value is not None and value is not UNKNOWN:
            number = as_integer(value)
            if self.name == "UNSIGNED" or self.is_unsigned:
                if number < 0 and not isinstance(value, int):
                    return UNKNOWN  # the servers differ
                return number & UNSIGNED_MAX
            return number - UNSIGNED_MAX - 1 if number > _SIGNED_MAX else number
        if self.name in {"CHAR", "NCHAR"} and isinstance(value, Text):
            return Text(value.content[: self.length], self.collation)
        if self.name == "BINARY" and self.length is None:
            return replace(self, name="VARBINARY").store(value)
        stored = self.store(value)
        if isinstance(stored, Text) and self.length is not None:
            return Text(stored.content[: self.length], stored.collation)
        return stored


def _integer(_: StoredType, value: Value) -> Value:
    number = as_number(value)
    if number is None or isinstance(number, int | Unknown):
        return number
    if isinstance(value, float):
        return round(value)
    return int(exact(number).to_integral_value(ROUND_HALF_UP))


def _decimal(kind: StoredType, value: Value) -> Value:
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        return number
    return rounded(exact(number), kind.scale or 0)


def _double(_: StoredType, value: Value) -> Value:
    number = as_number(value)
    return number if number is None or isinstance(number, Unknown) else float(number)


def _float(kind: StoredType, value: Value) -> Value:
    number = _double(kind, value)
    if not isinstance(number, float):
        return number
    try:
        return shortest_float(number)
    except (OverflowError, struct.error):
        return UNKNOWN


def _bytes(kind: StoredType, value: Value) -> Value:
    text = value if isinstance(value, Text) else Text(plain_text(value), "latin1_swedish_ci")
    content = text.encoded.decode("latin-1")
    if kind.name == "BINARY":
        content = content.ljust(kind.length or 1, "\0")
    return Text(content, BINARY)


def _text(kind: StoredType, value: Value) -> Value:
    content = plain_text(value)
    return Text(content.rstrip(" ") if kind.name in _PADDED else content, kind.collation)


def _bit(kind: StoredType, value: Value) -> Value:
    number = as_number(value)
    if not isinstance(number, int) or number < 0:
        return UNKNOWN
    size = max((kind.length or 1) + 7, number.bit_length() + 7) // 8
    return Text(number.to_bytes(size, "big").decode("latin-1"), BINARY, is_number=True)


def _temporal(kind: StoredType, value: Value) -> Value:
    wanted = _TEMPORALS[kind.name]
    if isinstance(value, Temporal) and value.kind is wanted:
        return value
    if not isinstance(value, Text | Temporal):
        return UNKNOWN
    return _read_temporal(plain_text(value).strip(), wanted)


def _read_temporal(text: str, kind: TemporalKind) -> Value:
    """Read a date or time in its usual notation; other notations are not known."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return UNKNOWN
    date, time, fraction = found["date"], found["time"], found["fraction"] or ""
    if date is not None:
        year, month, day = (int(part) for part in date.split("-"))
        date = f"{year:04}-{month:02}-{day:02}"
    if kind is TemporalKind.DATE and date is not None:
        return Temporal(kind, date)
    if kind is TemporalKind.TIME and time is not None and not fraction:
        return Temporal(kind, time)
    if kind is TemporalKind.TIMESTAMP and date is not None and not fraction:
        return Temporal(kind, f"{date} {time or '00:00:00'}")
    return UNKNOWN


_MOMENT: Final = re.compile(
    r"(?P<date>\d{4}-\d{1,2}-\d{1,2})?[ T]*(?P<time>\d{2}:\d{2}:\d{2})?(?P<fraction>\.\d+)?"
)
_CONVERSIONS: Final[Mapping[str, Callable[[StoredType, Value], Value]]] = MappingProxyType(
    dict.fromkeys(_INTEGERS, _integer)
    | dict.fromkeys(_TEXTS, _text)
    | dict.fromkeys(_DECIMALS, _decimal)
    | dict.fromkeys(_DOUBLES, _double)
    | dict.fromkeys(_FLOATS, _float)
    | dict.fromkeys(_BYTES, _bytes)
    | dict.fromkeys(_TEMPORALS, _temporal)
    | {"BIT": _bit}
)
