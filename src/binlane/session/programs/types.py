"""Types of variables, parameters and returned values: what a value becomes when it is stored."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final

from binlane.codec.json_values import shortest_float
from binlane.session.programs.values import (
    BINARY,
    UNKNOWN,
    Number,
    Temporal,
    TemporalKind,
    Text,
    Unknown,
    Value,
    plain_text,
)

_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_TYPE: Final = re.compile(
    r"\s*([A-Za-z]\w*)(?:\s+(?:VARYING|PRECISION))?\s*(?:\(([^)]*)\))?", re.IGNORECASE
)
_CHARSET: Final = re.compile(r"\b(?:CHARACTER\s+SET|CHARSET)\s*=?\s*'?(\w+)'?", re.IGNORECASE)
_COLLATE: Final = re.compile(r"\bCOLLATE\s+'?(\w+)'?", re.IGNORECASE)

_INTEGERS: Final = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "MEDIUMINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "BOOL",
        "BOOLEAN",
        "INT1",
        "INT2",
        "INT3",
        "INT4",
        "INT8",
        "MIDDLEINT",
        "YEAR",
        "SIGNED",
        "UNSIGNED",
        "SERIAL",
    ]
)
_DECIMALS: Final = frozenset(["DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"])
_DOUBLES: Final = frozenset(["DOUBLE", "REAL", "FLOAT8"])
_FLOATS: Final = frozenset(["FLOAT", "FLOAT4"])
_BYTES: Final = frozenset(
    ["BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "RAW"]
)
_TEXTS: Final = frozenset(
    [
        "CHAR",
        "VARCHAR",
        "VARCHAR2",
        "TEXT",
        "TINYTEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "ENUM",
        "SET",
        "NCHAR",
        "NVARCHAR",
        "CHARACTER",
        "NATIONAL",
        "CLOB",
        "LONG",
        "JSON",
    ]
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
_DEFAULT_COLLATIONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "utf8mb4": ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci"),
        "utf8": ("utf8mb3_general_ci", "utf8mb3_general_ci"),
        "latin1": ("latin1_swedish_ci", "latin1_swedish_ci"),
        "binary": (BINARY, BINARY),
        "sjis": ("sjis_japanese_ci", "sjis_japanese_ci"),
        "cp932": ("cp932_japanese_ci", "cp932_japanese_ci"),
        "ujis": ("ujis_japanese_ci", "ujis_japanese_ci"),
        "eucjpms": ("eucjpms_japanese_ci", "eucjpms_japanese_ci"),
        "euckr": ("euckr_korean_ci", "euckr_korean_ci"),
        "gbk": ("gbk_chinese_ci", "gbk_chinese_ci"),
        "gb2312": ("gb2312_chinese_ci", "gb2312_chinese_ci"),
        "gb18030": ("gb18030_chinese_ci", "gb18030_chinese_ci"),
        "big5": ("big5_chinese_ci", "big5_chinese_ci"),
        "latin7": ("latin7_general_ci", "latin7_general_ci"),
        "swe7": ("swe7_swedish_ci", "swe7_swedish_ci"),
        "dec8": ("dec8_swedish_ci", "dec8_swedish_ci"),
        "hp8": ("hp8_english_ci", "hp8_english_ci"),
        "tis620": ("tis620_thai_ci", "tis620_thai_ci"),
    }
)


def default_collation(charset: str, *, is_mariadb: bool) -> str:
    """The collation of a character set where none is named."""
    found = _DEFAULT_COLLATIONS.get(charset.lower())
    if found is None:
        return f"{charset.lower()}_general_ci"
    return found[0] if is_mariadb else found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableType:
    """The type of a variable.

    Attributes:
        word: Its first word in capitals.
        length: The first number in parentheses; None without.
        scale: The second one.
        is_unsigned: UNSIGNED or ZEROFILL.
        collation: Of its strings.
    """

    word: str
    length: int | None
    scale: int | None
    is_unsigned: bool
    collation: str

    @classmethod
    def parse(cls, text: str, *, collation: str, is_mariadb: bool) -> VariableType:
        """Read a type.

        Args:
            text: Such as `VARCHAR(20) CHARACTER SET latin1`.
            collation: Of strings whose type names none: that of the database.
            is_mariadb: Whose names and defaults are meant.
        """
        found = _TYPE.match(text)
        word = found[1].upper() if found else ""
        sizes = [size.strip() for size in (found[2] or "").split(",")] if found else []
        numbers = [int(size) for size in sizes if size.isdigit()]
        rest = text.upper()
        if collate := _COLLATE.search(text):
            collation = collate[1].lower()
        elif charset := _CHARSET.search(text):
            collation = default_collation(charset[1], is_mariadb=is_mariadb)
        elif word == "JSON":
            collation = "utf8mb4_bin"
        return cls(
            word=word,
            length=numbers[0] if numbers else None,
            scale=numbers[1] if len(numbers) > 1 else None,
            is_unsigned="UNSIGNED" in rest or "ZEROFILL" in rest,
            collation=collation,
        )

    def store(self, value: Value) -> Value:
        """What a variable of this type holds once it is given a value."""
        if value is None or value is UNKNOWN:
            return value
        convert = _CONVERSIONS.get(self.word)
        if convert is None:
            return UNKNOWN if self.word else value
        return convert(self, value)


def _integer(_: VariableType, value: Value) -> Value:
    number = as_number(value)
    if number is None or isinstance(number, int | Unknown):
        return number
    return int(exact(number).to_integral_value(ROUND_HALF_UP))


def _decimal(kind: VariableType, value: Value) -> Value:
    number = as_number(value)
    if number is None or isinstance(number, Unknown):
        return number
    return rounded(exact(number), kind.scale or 0)


def _double(_: VariableType, value: Value) -> Value:
    number = as_number(value)
    return number if number is None or isinstance(number, Unknown) else float(number)


def _float(kind: VariableType, value: Value) -> Value:
    number = _double(kind, value)
    if not isinstance(number, float):
        return number
    try:
        return shortest_float(number)
    except (OverflowError, struct.error):
        return UNKNOWN


def _bytes(kind: VariableType, value: Value) -> Value:
    text = value if isinstance(value, Text) else Text(plain_text(value), "latin1_swedish_ci")
    content = text.encoded.decode("latin-1")
    if kind.word == "BINARY":
        content = content.ljust(kind.length or 1, "\0")
    return Text(content, BINARY)


def _text(kind: VariableType, value: Value) -> Value:
    content = plain_text(value)
    return Text(content.rstrip(" ") if kind.word in _PADDED else content, kind.collation)


def _bits(kind: VariableType, value: Value) -> Value:
    number = as_number(value)
    if not isinstance(number, int) or number < 0:
        return UNKNOWN
    size = max((kind.length or 1) + 7, number.bit_length() + 7) // 8
    return Text(number.to_bytes(size, "big").decode("latin-1"), BINARY, is_number=True)


def _temporal(kind: VariableType, value: Value) -> Value:
    wanted = _TEMPORALS[kind.word]
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
_CONVERSIONS: Final[Mapping[str, Callable[[VariableType, Value], Value]]] = MappingProxyType(
    dict.fromkeys(_INTEGERS, _integer)
    | dict.fromkeys(_TEXTS, _text)
    | dict.fromkeys(_DECIMALS, _decimal)
    | dict.fromkeys(_DOUBLES, _double)
    | dict.fromkeys(_FLOATS, _float)
    | dict.fromkeys(_BYTES, _bytes)
    | dict.fromkeys(_TEMPORALS, _temporal)
    | {"BIT": _bits}
)


def exact(number: Number) -> Decimal:
    """A number as the decimal that its text says."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def rounded(value: Decimal, scale: int) -> Decimal:
    """A number with so many digits behind the point, halves away from zero."""
    try:
        return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    except InvalidOperation:
        return value


def as_number(value: Value) -> Number | Unknown | None:
    """What a value is where a number is asked for."""
    if isinstance(value, Text):
        if value.is_number:
            return int.from_bytes(value.encoded, "big")
        found = _NUMBER.match(value.content)
        return float(found[0]) if found else 0.0
    if isinstance(value, Temporal):
        return int(re.sub(r"\D", "", value.text))
    return value
