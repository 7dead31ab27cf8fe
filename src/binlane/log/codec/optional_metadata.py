"""The optional metadata of a TABLE_MAP: a run of type, length and value.

A value lists facts for the columns that it applies to only, in table order: as many bits, numbers
or strings as there are such columns. Types that binlane does not know are left alone, as the
servers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of, text_decoder
from binlane.log.codec.types import ColumnType, Flavor

_T = TypeVar("_T")


class MetadataType(IntEnum):
    """Types of the optional metadata."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12
    VECTOR_DIMENSIONALITY = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryKeyPart:
    """One column of a primary key.

    Attributes:
        index: The number of the column in the table, from 0.
        prefix_length: Characters of it that count; 0 means all.
    """

    index: int
    prefix_length: int = 0


NUMERIC: Final = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.NEWDECIMAL,
        # The servers count YEAR, too, always as unsigned.
        ColumnType.YEAR,
    }
)
_CHARACTER: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
    }
)
CHARACTER_OF_FLAVOR: Final[Mapping[Flavor, frozenset[ColumnType]]] = MappingProxyType(
    {
        Flavor.MYSQL: _CHARACTER | {ColumnType.VECTOR},
        Flavor.MARIADB: _CHARACTER
        | {ColumnType.GEOMETRY, ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED},
    }
)
ENUM_AND_SET: Final = frozenset({ColumnType.ENUM, ColumnType.SET})


class OptionalMetadata:
    """The optional metadata of one TABLE_MAP, by column index; empty parts are not in the log.

    Raises:
        CodecError: From every method, if the bytes contradict the column types.
    """

    def __init__(self, data: bytes, types: Sequence[ColumnType], flavor: Flavor) -> None:
        self._values = _split(data)
        self._types = types
        self._character = CHARACTER_OF_FLAVOR[flavor]

    def signedness(self) -> dict[int, bool]:
        """Return for each numeric column, by index, if it is UNSIGNED."""
        columns = self._columns(NUMERIC)
        return self._flags(MetadataType.SIGNEDNESS, columns)

    def visibility(self) -> dict[int, bool]:
        """Return for each column, by index, if it is visible."""
        return self._flags(MetadataType.COLUMN_VISIBILITY, list(range(len(self._types))))

    def names(self) -> dict[int, str]:
        """Names; the servers write them in UTF-8."""
        names = self._list(MetadataType.COLUMN_NAME, _read_string)
        self._check(MetadataType.COLUMN_NAME, names, len(self._types))
        return {index: name.decode("utf-8", "surrogateescape") for index, name in enumerate(names)}

    def collations(self) -> dict[int, int]:
        """Collation ids of strings, ENUMs and SETs."""
        strings = self._charsets(
            self._columns(self._character),
            MetadataType.DEFAULT_CHARSET,
            MetadataType.COLUMN_CHARSET,
        )
        for index in self._columns({ColumnType.VECTOR}):
            strings.pop(index, None)  # MySQL counts vectors in, and they are no strings
        return {
            **strings,
            **self._charsets(
                self._columns(ENUM_AND_SET),
                MetadataType.ENUM_AND_SET_DEFAULT_CHARSET,
                MetadataType.ENUM_AND_SET_COLUMN_CHARSET,
            ),
        }

    def members(self, collations: Mapping[int, int]) -> dict[int, tuple[str, ...]]:
        """Members of ENUMs and SETs, decoded with each column's character set."""
        return {
            index: tuple(_member_text(member, collations.get(index)) for member in members)
            for index, members in self.member_bytes().items()
        }

    def member_bytes(self) -> dict[int, tuple[bytes, ...]]:
        """Members of ENUMs and SETs as written."""
        found: dict[int, tuple[bytes, ...]] = {}
        for code, column_type in (
            (MetadataType.ENUM_STR_VALUE, ColumnType.ENUM),
            (MetadataType.SET_STR_VALUE, ColumnType.SET),
        ):
            lists = self._list(code, _read_strings)
            columns = self._columns({column_type})
            self._check(code, lists, len(columns))
            found.update(zip(columns, map(tuple, lists), strict=False))
        return found

    def geometry_types(self) -> dict[int, int]:
        """Types of GEOMETRY columns."""
        return self._numbers(MetadataType.GEOMETRY_TYPE, ColumnType.GEOMETRY)

    def dimensions(self) -> dict[int, int]:
        """Dimensions of MySQL's VECTOR columns."""
        return self._numbers(MetadataType.VECTOR_DIMENSIONALITY, ColumnType.VECTOR)

    def primary_key(self) -> tuple[PrimaryKeyPart, ...]:
        """The key's columns in key order."""
        simple = self._list(MetadataType.SIMPLE_PRIMARY_KEY, Reader.packed_int)
        prefixed = self._list(MetadataType.PRIMARY_KEY_WITH_PREFIX, _read_pair)
        parts = [PrimaryKeyPart(index=index) for index in simple]
        parts += [PrimaryKeyPart(index=index, prefix_length=length) for index, length in prefixed]
        for part in parts:
            if part.index >= len(self._types):
                raise CodecError(
                    f"the primary key names column {part.index + 1} of {len(self._types)}"
                )
        return tuple(parts)

    def _columns(self, types: frozenset[ColumnType] | set[ColumnType]) -> list[int]:
        return [index for index, column_type in enumerate(self._types) if column_type in types]

    def _flags(self, code: MetadataType, columns: Sequence[int]) -> dict[int, bool]:
        if code not in self._values:
            return {}
        value = self._values[code]
        if len(value) != (len(columns) + 7) // 8:
            raise CodecError(f"{code.name} has {len(value)} bytes for {len(columns)} columns")
        return dict(zip(columns, _bits(value), strict=False))

    def _charsets(
        self, columns: Sequence[int], default_code: MetadataType, column_code: MetadataType
    ) -> dict[int, int]:
        if default_code in self._values:
            reader = Reader(self._values[default_code])
            found = dict.fromkeys(columns, reader.packed_int())
            for number, collation_id in _repeat(reader, _read_pair):
                if number >= len(columns):
                    raise CodecError(
                        f"{default_code.name} names column {number + 1} of {len(columns)}"
                    )
                found[columns[number]] = collation_id
            return found
        ids = self._list(column_code, Reader.packed_int)
        self._check(column_code, ids, len(columns))
        return dict(zip(columns, ids, strict=False))

    def _numbers(self, code: MetadataType, column_type: ColumnType) -> dict[int, int]:
        numbers = self._list(code, Reader.packed_int)
        columns = self._columns({column_type})
        self._check(code, numbers, len(columns))
        return dict(zip(columns, numbers, strict=False))

    def _list(self, code: MetadataType, read: Callable[[Reader], _T]) -> list[_T]:
        return list(_repeat(Reader(self._values.get(code, b"")), read))

    def _check(self, code: MetadataType, found: Sequence[object], expected: int) -> None:
        if code in self._values and len(found) != expected:
            raise CodecError(f"{code.name} tells of {len(found)} columns, the table has {expected}")


def _split(data: bytes) -> Mapping[int, bytes]:
    reader = Reader(data)
    found: dict[int, bytes] = {}
    while reader.remaining:
        code = reader.u8()
        if code in found:
            raise CodecError(f"optional metadata {code} stands twice", offset=reader.offset)
        found[code] = reader.take(reader.packed_int())
    return found


def _repeat(reader: Reader, read: Callable[[Reader], _T]) -> Iterator[_T]:
    while reader.remaining:
        yield read(reader)


def _read_pair(reader: Reader) -> tuple[int, int]:
    return reader.packed_int(), reader.packed_int()


def _read_string(reader: Reader) -> bytes:
    return reader.take(reader.packed_int())


def _read_strings(reader: Reader) -> list[bytes]:
    return [_read_string(reader) for _ in range(reader.packed_int())]


def _member_text(member: bytes, collation_id: int | None) -> str:
    r"""Return a member as text; bytes that its character set does not have as `\\xNN`."""
    charset = None if collation_id is None else charset_of(collation_id)
    decode = None if charset is None else text_decoder(charset)
    if decode is not None:
        try:
            return decode(member)
        except UnicodeDecodeError:
            pass
    return member.decode("utf-8", "backslashreplace")


def _bits(data: bytes) -> list[bool]:
    """Most significant bit of each byte first."""
    return [bool(byte >> shift & 1) for byte in data for shift in range(7, -1, -1)]
