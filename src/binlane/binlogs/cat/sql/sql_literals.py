"""Column values → SQL literals that a server stores as the very same value.

A literal means what it says in a session of utf8mb4, UTC and `ROW_SQL_MODE`; whoever prints one
sets these first.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Final

from binlane.log.codec.charsets import BINARY_COLLATION, charset_of, text_decoder
from binlane.log.codec.columns import Column
from binlane.log.codec.json_binary import JsonDocument
from binlane.log.codec.json_diff import JsonDiffs, JsonOperation
from binlane.log.codec.json_values import shortest_float
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import quote

# Not strict: it would refuse member 0 of an ENUM, and values of MariaDB's generated columns.
ROW_SQL_MODE: Final = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
_SRID_LENGTH: Final = 4
_TEXT_TYPES: Final = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.VARCHAR_COMPRESSED,
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
    }
)
_UNICODE: Final = frozenset({"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"})
_UTF8: Final = frozenset({"utf8mb3", "utf8mb4"})
_ESCAPES: Final = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\0": "\\0",
        "\n": "\\n",
        "\r": "\\r",
        "\x1a": "\\Z",
    }
)


def exact_column(column: Column) -> Column:
    """The column to decode values of, so that a literal can be exact.

    In an East Asian character set two byte sequences may mean one character: there the values are
    decoded as bytes.
    """
    charset = _charset(column)
    if column.type not in _TEXT_TYPES or charset is None or _is_one_to_one(charset):
        return column
    if column.type is not ColumnType.STRING:
        return replace(column, collation_id=BINARY_COLLATION)
    # A CHAR must not be padded with zero bytes as a BINARY is.
    return replace(
        column,
        type=ColumnType.VARCHAR,
        metadata=column.length_max,
        collation_id=BINARY_COLLATION,
    )


def literal(value: object, column: Column, *, flavor: Flavor) -> str:
    """A value as an expression to store.

    Args:
        value: Value as decoded with `exact_column(column)`; None is NULL.
        column: Column of the table, for its type.
        flavor: Flavor of the server that is to run the expression.
    """
    if value is None:
        return "NULL"
    if isinstance(value, JsonDocument):
        return f"CAST({quoted(str(value))} AS JSON)"
    if isinstance(value, JsonDiffs):
        return _changed_json(value, column)
    if isinstance(value, bytes):
        return _bytes_literal(value, column, flavor)
    if isinstance(value, float):
        return double_literal(shortest_float(value) if column.type is ColumnType.FLOAT else value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, tuple):
        return quoted(",".join(map(str, value)))
    if column.type is ColumnType.BIT:
        return f"b'{value:b}'"
    if column.type is ColumnType.ENUM and value == "":
        # Member 0 is the empty text that stands for an invalid one; only its number reaches it.
        return "0"
    return quoted(value) if isinstance(value, str) else str(value)


def condition(value: object, column: Column, *, flavor: Flavor) -> str:
    """Return a condition for exactly this value of a column, in any collation."""
    name = quote(column.name or "")
    if value is None:
        return f"{name} IS NULL"
    if isinstance(value, float):
        return f"{name} <=> {double_literal(value)}"
    if isinstance(value, bytes) and column.type in {ColumnType.GEOMETRY, *_TEXT_TYPES}:
        return f"CAST({name} AS BINARY) <=> {_hex(value)}"
    charset = _charset(column)
    if isinstance(value, str) and column.type in _TEXT_TYPES and charset not in {None, "binary"}:
        text = quoted(value)
        if charset not in _UTF8:
            text = f"CAST(CONVERT({text} USING {charset}) AS BINARY)"
        return f"CAST({name} AS BINARY) <=> {text}"
    return f"{name} <=> {literal(value, column, flavor=flavor)}"


def key_condition(value: object, column: Column, *, flavor: Flavor) -> str:
    """The condition on a column of the primary key, which an index can answer."""
    if isinstance(value, float):
        return f"{quote(column.name or '')} = {double_literal(value)}"
    return f"{quote(column.name or '')} = {literal(value, column, flavor=flavor)}"


def _changed_json(value: JsonDiffs, column: Column) -> str:
    """The document that a column has, changed step by step."""
    text = quote(column.name or "")
    for diff in value.diffs:
        path = quoted(diff.path)
        if diff.value is None:
            text = f"JSON_REMOVE({text}, {path})"
            continue
        document = f"CAST({quoted(str(diff.value))} AS JSON)"
        is_cell = diff.path.endswith("]")
        if diff.operation is JsonOperation.REPLACE:
            function = "JSON_REPLACE"
        else:
            function = "JSON_ARRAY_INSERT" if is_cell else "JSON_INSERT"
        text = f"{function}({text}, {path}, {document})"
    return text


def quoted(text: str) -> str:
    """A text as a string literal on one line."""
    return f"'{text.translate(_ESCAPES)}'"


def double_literal(value: float) -> str:
    """A DOUBLE literal: without an exponent it would be a DECIMAL."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _charset(column: Column) -> str | None:
    return None if column.collation_id is None else charset_of(column.collation_id)


@cache
def _is_one_to_one(charset: str) -> bool:
    """True if no two byte sequences of a character set mean the same text."""
    decode = text_decoder(charset)
    if decode is None or charset in _UNICODE:
        return True
    seen: set[str] = set()
    for byte in range(256):
        try:
            text = decode(bytes((byte,)))
        except UnicodeDecodeError:
            # Undefined in a set of single bytes, or the first byte of several.
            continue
        if text in seen:
            return False
        seen.add(text)
    return not _has_longer_characters(charset)


def _has_longer_characters(charset: str) -> bool:
    decode = text_decoder(charset)
    assert decode is not None, "the caller has asked"
    for first in range(0x80, 0x100):
        for second in (0x40, 0xA1):
            try:
                if len(decode(bytes((first, second)))) == 1:
                    return True
            except UnicodeDecodeError:
                continue
    return False


def _bytes_literal(value: bytes, column: Column, flavor: Flavor) -> str:
    if column.type is ColumnType.GEOMETRY and len(value) > _SRID_LENGTH:
        srid = int.from_bytes(value[:_SRID_LENGTH], "little")
        # Storage has longitude first; MySQL reads the latitude first where the SRID says so.
        order = ", 'axis-order=long-lat'" if flavor is Flavor.MYSQL and srid else ""
        return f"ST_GeomFromWKB({_hex(value[_SRID_LENGTH:])}, {srid}{order})"
    charset = _charset(column)
    if column.type not in _TEXT_TYPES or charset in {None, "binary"}:
        return _hex(value)
    assert charset is not None, "told apart above"
    if value.isascii() and charset not in _UNICODE:
        return quoted(value.decode("ascii"))
    # Bytes that mean nothing in their character set: the server must take them as they are.
    return _hex(value) if _is_one_to_one(charset) else f"_{charset} {_hex(value)}"


def _hex(value: bytes) -> str:
    return f"x'{value.hex()}'"
