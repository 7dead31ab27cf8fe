"""The text of a JSON value and the types of its parts → MySQL's binary JSON. Pure.

The text alone does not tell a DECIMAL from a DOUBLE, or a time from a string: the server is asked
for the types of all parts, in the order in which it finds them. What it cannot tell is how many
zeros a DECIMAL has before it, and whether a time was a TIMESTAMP; values are the same all the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Any, Final

from binlane.errors import CodecError
from binlane.log.codec.numbers import encode_decimal
from binlane.log.codec.types import ColumnType

_DOUBLE: Final = Struct("<d")
_SMALL_MAX: Final = 0xFFFF
_LITERALS: Final[Mapping[object, int]] = MappingProxyType({None: 0, True: 1, False: 2})
_LITERAL, _STRING, _OPAQUE = 4, 12, 15
_INTEGERS: Final = ((5, 2, True), (7, 4, True), (9, 8, True))
_UNSIGNED: Final = ((6, 2, False), (8, 4, False), (10, 8, False))
_DOUBLE_KIND: Final = 11
_INLINE_SMALL: Final = frozenset({_LITERAL, 5, 6})
_INLINE_LARGE: Final = _INLINE_SMALL | {7, 8}
_OF_TYPE: Final = "base64:type"


def json_expression(name: str) -> str:
    """The expression to select of a JSON column: an array of its value, and of the types of its parts.

    Args:
        name: The column's name as a quoted identifier.
    """
    parts = f"JSON_EXTRACT(JSON_ARRAY({name}), '$**[*]', '$**.*')"
    types = f"JSON_TABLE({parts}, '$[*]' COLUMNS (v JSON PATH '$')) AS parts"
    asked = f"(SELECT JSON_ARRAYAGG(JSON_TYPE(parts.v)) FROM {types})"  # noqa: S608  # quoted
    return f"IF({name} IS NULL, NULL, JSON_ARRAY({name}, {asked}))"


@dataclass(slots=True)
class _Part:
    """A value of a document, with the type that the server says it has."""

    value: Any
    kind: str = "NULL"


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as the text has it."""

    text: str


def binary_json(text: bytes) -> bytes:
    """The binary form of what `json_expression` gives.

    Raises:
        CodecError: If it is none, or the types do not fit the value.

    Source: MySQL 9.7 sql-common/json_binary.cc, serialize.
    """
    try:
        value, types = json.loads(text, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"it is no JSON: {error}") from None
    document = _parts(value)
    found = [document, *_cells(document), *_members(document)]
    if len(found) != len(types):
        raise CodecError(f"a JSON value of {len(found)} parts has {len(types)} types")
    for part, kind in zip(found, types, strict=True):
        part.kind = kind or "NULL"
    kind, data = _encoded(document)
    return bytes((kind,)) + data


def _parts(value: object) -> _Part:
    if isinstance(value, dict):
        members = [
            (key.encode("utf-8", "surrogatepass"), _parts(each)) for key, each in value.items()
        ]
        return _Part(dict(sorted(members, key=lambda member: (len(member[0]), member[0]))))
    if isinstance(value, list):
        return _Part([_parts(each) for each in value])
    return _Part(value)


def _containers(part: _Part) -> Iterator[_Part]:
    """The objects and arrays of a value, each before those in it."""
    if isinstance(part.value, dict | list):
        yield part
        inner = part.value.values() if isinstance(part.value, dict) else part.value
        for each in inner:
            yield from _containers(each)


def _cells(part: _Part) -> Iterator[_Part]:
    for each in _containers(part):
        if isinstance(each.value, list):
            yield from each.value


def _members(part: _Part) -> Iterator[_Part]:
    for each in _containers(part):
        if isinstance(each.value, dict):
            yield from each.value.values()


def _encoded(part: _Part) -> tuple[int, bytes]:
    """The type and the bytes of a value that is not inlined."""
    if isinstance(part.value, dict | list):
        values = part.value.values() if isinstance(part.value, dict) else part.value
        encoded = [_encoded(each) for each in values]
        keys = list(part.value) if isinstance(part.value, dict) else None
        small = _container(keys, encoded, 2)
        first = 2 if keys is None else 0
        if small is not None:
            return first, small
        large = _container(keys, encoded, 4)
        assert large is not None, "the large form has room for all"
        return first + 1, large
    encode = _SCALARS.get(part.kind)
    if encode is None:
        raise CodecError(f"a JSON value is of the unknown type {part.kind}")
    return encode(part.value)


def _container(
    keys: list[bytes] | None, values: list[tuple[int, bytes]], size: int
) -> bytes | None:
    """An object or array with numbers of `size` bytes; None if they have no room."""
    inline = _INLINE_SMALL if size == 2 else _INLINE_LARGE
    count = len(values)
    head = 2 * size + count * (1 + size) + (count * (size + 2) if keys is not None else 0)
    offset = head + sum(map(len, keys or ()))
    entries, tail = [], []
    for kind, data in values:
        if kind in inline:
            filling = b"\xff" if kind in {5, 7} and data[-1] & 0x80 else b"\0"
            entries.append(bytes((kind,)) + data.ljust(size, filling))
            continue
        if size == 2 and offset > _SMALL_MAX:
            return None
        entries.append(bytes((kind,)) + offset.to_bytes(size, "little"))
        tail.append(data)
        offset += len(data)
    if size == 2 and (offset > _SMALL_MAX or count > _SMALL_MAX):
        return None
    parts = [count.to_bytes(size, "little"), offset.to_bytes(size, "little")]
    place = head
    for key in keys or ():
        parts.append(place.to_bytes(size, "little") + len(key).to_bytes(2, "little"))
        place += len(key)
    return b"".join([*parts, *entries, *(keys or ()), *tail])


def _length(length: int) -> bytes:
    """Seven bits a byte, lowest first; the top bit announces another byte."""
    data = bytearray()
    while True:
        length, low = length >> 7, length & 0x7F
        data.append(low | (0x80 if length else 0))
        if not length:
            return bytes(data)


def _literal(value: object) -> tuple[int, bytes]:
    return _LITERAL, bytes((_LITERALS[value],))


def _whole(
    forms: tuple[tuple[int, int, bool], ...],
) -> Callable[[Any], tuple[int, bytes]]:
    def encode(value: _Number) -> tuple[int, bytes]:
        number = int(value.text)
        for kind, size, is_signed in forms:
            half = 1 << (8 * size - 1)
            if -half <= number < half if is_signed else number < 2 * half:
                return kind, number.to_bytes(size, "little", signed=is_signed)
        raise CodecError(f"{number} is too large for JSON")

    return encode


def _double(value: _Number) -> tuple[int, bytes]:
    return _DOUBLE_KIND, _DOUBLE.pack(float(value.text))


def _string(value: str) -> tuple[int, bytes]:
    data = value.encode("utf-8", "surrogatepass")
    return _STRING, _length(len(data)) + data


def _opaque(code: int, data: bytes) -> tuple[int, bytes]:
    return _OPAQUE, bytes((code,)) + _length(len(data)) + data


def _decimal(value: _Number) -> tuple[int, bytes]:
    return _opaque(ColumnType.NEWDECIMAL, encode_decimal(value.text))


def _bytes(value: str) -> tuple[int, bytes]:
    number, _, data = value.removeprefix(_OF_TYPE).partition(":")
    return _opaque(int(number), base64.b64decode(data))


def _clock(text: str) -> int:
    """Hours, minutes, seconds and microseconds of `12:34:56.000000`, packed."""
    whole, _, micro = text.partition(".")
    hour, minute, second = map(int, whole.split(":"))
    return (hour << 12 | minute << 6 | second) << 24 | int(micro or 0)


def _time(value: str) -> tuple[int, bytes]:
    packed = _clock(value.removeprefix("-"))
    signed = -packed if value.startswith("-") else packed
    return _opaque(ColumnType.TIME, signed.to_bytes(8, "little", signed=True))


def _moment(code: int) -> Callable[[Any], tuple[int, bytes]]:
    def encode(value: str) -> tuple[int, bytes]:
        date, _, clock = value.partition(" ")
        year, month, day = map(int, date.split("-"))
        packed = ((year * 13 + month) << 5 | day) << 41 | _clock(clock or "0:0:0")
        return _opaque(code, packed.to_bytes(8, "little", signed=True))

    return encode


_SCALARS: Final[Mapping[str, Callable[[Any], tuple[int, bytes]]]] = MappingProxyType(
    {
        "NULL": _literal,
        "BOOLEAN": _literal,
        "INTEGER": _whole(_INTEGERS),
        "UNSIGNED INTEGER": _whole(_UNSIGNED),
        "DOUBLE": _double,
        "STRING": _string,
        "DECIMAL": _decimal,
        "TIME": _time,
        "DATE": _moment(ColumnType.DATE),
        "DATETIME": _moment(ColumnType.DATETIME),
        "BLOB": _bytes,
        "BIT": _bytes,
        "OPAQUE": _bytes,
    }
)
