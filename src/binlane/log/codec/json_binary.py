"""MySQL's binary JSON → Python values with all their digits. MariaDB's JSON is text and not here.

A document is a type byte and a value. Objects and arrays begin with a count and a size, then tables
of offsets from that count; small ones have 2-byte numbers, large ones 4-byte numbers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.numbers import decimal_from_bytes, decode_double, integer_decoder
from binlane.log.codec.temporal import datetime_text
from binlane.log.codec.types import ColumnType

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | Decimal | bool | None

DEPTH_MAX: Final = 100
_VARIABLE_LENGTH_BYTES_MAX: Final = 5
_MICROSECOND_BITS: Final = 24


class _Kind(IntEnum):
    SMALL_OBJECT = 0
    LARGE_OBJECT = 1
    SMALL_ARRAY = 2
    LARGE_ARRAY = 3
    LITERAL = 4
    INT16 = 5
    UINT16 = 6
    INT32 = 7
    UINT32 = 8
    INT64 = 9
    UINT64 = 10
    DOUBLE = 11
    STRING = 12
    OPAQUE = 15


_INLINE_SMALL: Final = frozenset({_Kind.LITERAL, _Kind.INT16, _Kind.UINT16})
_INLINE_LARGE: Final = _INLINE_SMALL | {_Kind.INT32, _Kind.UINT32}
_LARGE: Final = frozenset({_Kind.LARGE_OBJECT, _Kind.LARGE_ARRAY})
_OBJECTS: Final = frozenset({_Kind.SMALL_OBJECT, _Kind.LARGE_OBJECT})
_ARRAYS: Final = frozenset({_Kind.SMALL_ARRAY, _Kind.LARGE_ARRAY})
_LITERALS: Final[Mapping[int, bool | None]] = MappingProxyType({0: None, 1: True, 2: False})


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A value of a JSON column; the JSON value `null` is `JsonDocument(None)`, SQL's NULL is not.

    Attributes:
        value: Integers and DECIMAL are exact; a date or time is text with 6 fraction digits, any
            other opaque value is `base64:typeN:…`, as the server prints it.
    """

    value: JsonValue

    def __str__(self) -> str:
        """The document as JSON text, every number with all its digits."""
        return _text(self.value)


def decode_json(data: bytes) -> JsonDocument:
    """Decode a document; no bytes at all are `null`, as old servers wrote it.

    Raises:
        CodecError: If the bytes are no document.

    Source: MySQL 9.7 sql-common/json_binary.cc.
    """
    if not data:
        return JsonDocument(None)
    return JsonDocument(_Decoder(data).value(data[0], 1, DEPTH_MAX))


class _Decoder:
    """Decodes the values of one document.

    Values of a sound document do not overlap; counting entries keeps a forged one, whose offsets
    meet, from growing without bounds.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._entries_left = len(data)

    def value(self, kind: int, offset: int, depth_left: int) -> JsonValue:
        """The value of type `kind` at `offset`."""
        if offset > len(self._data):
            raise CodecError(f"a JSON value stands at {offset}, behind its end", offset=offset)
        if depth_left == 0:
            raise CodecError(f"JSON is nested more than {DEPTH_MAX} deep", offset=offset)
        if kind in _OBJECTS or kind in _ARRAYS:
            return self._container(_Kind(kind), offset, depth_left)
        scalar = _SCALARS.get(kind)
        if scalar is None:
            raise CodecError(f"JSON type {kind} is unknown", offset=offset)
        return scalar(Reader(self._data, offset))

    def _container(self, kind: _Kind, start: int, depth_left: int) -> JsonValue:
        is_large = kind in _LARGE
        reader = Reader(self._data, start)
        number = reader.u32 if is_large else reader.u16
        count = number()
        number()  # the size, which nothing depends on
        self._entries_left -= count
        if self._entries_left < 0:
            raise CodecError("JSON has more entries than bytes", offset=start)
        key_places = [(number(), reader.u16()) for _ in range(count if kind in _OBJECTS else 0)]
        inline = _INLINE_LARGE if is_large else _INLINE_SMALL
        values = []
        for _ in range(count):
            entry_kind, place = reader.u8(), reader.offset
            offset = number()
            where = place if entry_kind in inline else start + offset
            values.append(self.value(entry_kind, where, depth_left - 1))
        if kind in _ARRAYS:
            return values
        keys = [self._key(start + offset, length) for offset, length in key_places]
        return dict(zip(keys, values, strict=True))

    def _key(self, offset: int, length: int) -> str:
        return _utf8(Reader(self._data, offset).take(length), offset)


def _literal(reader: Reader) -> bool | None:
    code = reader.u8()
    if code not in _LITERALS:
        raise CodecError(f"JSON literal {code} is unknown", offset=reader.offset)
    return _LITERALS[code]


def _string(reader: Reader) -> str:
    data = reader.take(_variable_length(reader))
    return _utf8(data, reader.offset)


def _variable_length(reader: Reader) -> int:
    """Read a length: seven bits a byte, lowest first; the top bit announces another byte."""
    length = 0
    for index in range(_VARIABLE_LENGTH_BYTES_MAX):
        byte = reader.u8()
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return length
    raise CodecError("a JSON length takes more than 5 bytes", offset=reader.offset)


def _opaque(reader: Reader) -> JsonValue:
    column_type = reader.u8()
    data = reader.take(_variable_length(reader))
    if column_type == ColumnType.NEWDECIMAL:
        if len(data) < 2:
            raise CodecError("a DECIMAL in JSON has no digits", offset=reader.offset)
        return decimal_from_bytes(data[2:], data[0], data[1])
    if column_type in _TEMPORAL:
        return _TEMPORAL[column_type](Reader(data))
    return f"base64:type{column_type}:{base64.b64encode(data).decode()}"


def _packed(reader: Reader) -> tuple[int, int]:
    """Whole part and microseconds of a time or datetime; both negative if the time is."""
    value = int.from_bytes(reader.take(8), "little", signed=True)
    whole, microseconds = divmod(abs(value), 1 << _MICROSECOND_BITS)
    return (-whole, -microseconds) if value < 0 else (whole, microseconds)


def _date(reader: Reader) -> str:
    return datetime_text(abs(_packed(reader)[0])).split(" ")[0]


def _datetime(reader: Reader) -> str:
    whole, microseconds = _packed(reader)
    return f"{datetime_text(abs(whole))}.{abs(microseconds):06d}"


def _time(reader: Reader) -> str:
    packed, microseconds = _packed(reader)
    sign = "-" if packed < 0 or microseconds < 0 else ""
    whole = abs(packed)
    text = f"{whole >> 12 & 0x3FF:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
    return f"{sign}{text}.{abs(microseconds):06d}"


def _utf8(data: bytes, offset: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CodecError("a JSON string is not UTF-8", offset=offset) from None


_TEMPORAL: Final[Mapping[int, Callable[[Reader], str]]] = MappingProxyType(
    {
        ColumnType.DATE: _date,
        ColumnType.TIME: _time,
        ColumnType.DATETIME: _datetime,
        ColumnType.TIMESTAMP: _datetime,
    }
)
_SCALARS: Final[Mapping[int, Callable[[Reader], JsonValue]]] = MappingProxyType(
    {
        _Kind.LITERAL: _literal,
        _Kind.INT16: integer_decoder(2, is_unsigned=False),
        _Kind.UINT16: integer_decoder(2, is_unsigned=True),
        _Kind.INT32: integer_decoder(4, is_unsigned=False),
        _Kind.UINT32: integer_decoder(4, is_unsigned=True),
        _Kind.INT64: integer_decoder(8, is_unsigned=False),
        _Kind.UINT64: integer_decoder(8, is_unsigned=True),
        _Kind.DOUBLE: decode_double,
        _Kind.STRING: _string,
        _Kind.OPAQUE: _opaque,
    }
)


def _text(value: JsonValue) -> str:
    if isinstance(value, dict):
        members = (f"{_text(key)}: {_text(member)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    # MySQL writes 1e308 where Python writes 1e+308.
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e+", "e") if isinstance(value, float) else text
