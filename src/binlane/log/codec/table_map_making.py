"""Columns → the TABLE_MAP that a server writes before their rows, byte for byte.

The inverse of `table_metadata` and `optional_metadata`, for tables whose columns are known from
elsewhere. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from binlane.log.codec.buffer import encode_packed_int
from binlane.log.codec.charsets import BINARY_COLLATION, charset_of, encoded_text
from binlane.log.codec.columns import Column
from binlane.log.codec.optional_metadata import (
    CHARACTER_OF_FLAVOR,
    ENUM_AND_SET,
    NUMERIC,
    MetadataType,
    PrimaryKeyPart,
)
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import (
    BIG_ENDIAN_METADATA,
    ONE_BYTE_METADATA,
    TWO_BYTE_METADATA,
)
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName

_BLOBS: Final = frozenset(
    {ColumnType.TINY_BLOB, ColumnType.BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB}
)
_BEYOND_UTF8MB3: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
BIT_LENGTHS_EXACT: Final = 1
"""The flag that every TABLE_MAP has."""
GENERATED_KEY: Final = 4
"""MySQL's flag of a table whose primary key the server made up."""


def string_metadata(length: int) -> int:
    """The metadata of a CHAR or BINARY that has room for `length` bytes."""
    return (ColumnType.STRING ^ ((length & 0x300) >> 4)) << 8 | (length & 0xFF)


def make_table_map(  # what a TABLE_MAP says
    name: TableName,
    columns: Sequence[Column],
    key: Sequence[PrimaryKeyPart] = (),
    *,
    table_id: int,
    flavor: Flavor,
    row_metadata: str,
) -> TableMapEvent:
    """The TABLE_MAP of a table.

    Args:
        name: The name of the table.
        columns: Its columns with everything known of them; where members are not known for sure,
            or have no bytes in their character set, those of all columns are left out.
        key: The primary key as the log has it.
        table_id: The number that rows events refer to.
        flavor: The kind of the server.
        row_metadata: `NO_LOG`, `MINIMAL` or `FULL`, as binlog_row_metadata has it.
    """
    nulls = sum(1 << index for index, column in enumerate(columns) if column.is_nullable)
    return TableMapEvent(
        table_id=table_id,
        flags=BIT_LENGTHS_EXACT,
        database=name.database,
        table=name.table,
        column_types=bytes(map(_type_code, columns)),
        metadata=b"".join(map(_metadata, columns)),
        null_bits=nulls.to_bytes((len(columns) + 7) // 8, "little"),
        optional_metadata=_optional(columns, key, flavor, row_metadata),
    )


def _type_code(column: Column) -> int:
    if column.type in ENUM_AND_SET:
        return ColumnType.STRING
    return ColumnType.BLOB if column.type in _BLOBS else column.type


def _metadata(column: Column) -> bytes:
    if column.type in ONE_BYTE_METADATA:
        return bytes((column.metadata,))
    if column.type in TWO_BYTE_METADATA:
        return column.metadata.to_bytes(2, "little")
    if column.type in BIG_ENDIAN_METADATA:
        return column.metadata.to_bytes(2, "big")
    return b""


def _optional(
    columns: Sequence[Column], key: Sequence[PrimaryKeyPart], flavor: Flavor, row_metadata: str
) -> bytes:
    if row_metadata not in {"MINIMAL", "FULL"}:
        return b""
    numeric = [column for column in columns if column.type in NUMERIC]
    characters = [column for column in columns if column.type in CHARACTER_OF_FLAVOR[flavor]]
    members = [column for column in columns if column.type in ENUM_AND_SET]
    geometries = [column for column in columns if column.type is ColumnType.GEOMETRY]
    vectors = [column for column in columns if column.type is ColumnType.VECTOR]
    parts = [
        _field(
            MetadataType.SIGNEDNESS,
            _bits(column.is_unsigned or column.type is ColumnType.YEAR for column in numeric),
        ),
        _charsets(characters, MetadataType.DEFAULT_CHARSET, MetadataType.COLUMN_CHARSET),
        _field(
            MetadataType.GEOMETRY_TYPE,
            b"".join(encode_packed_int(column.geometry_type or 0) for column in geometries),
        ),
        _field(
            MetadataType.VECTOR_DIMENSIONALITY,
            b"".join(encode_packed_int(column.dimensions or 0) for column in vectors),
        ),
    ]
    if row_metadata == "FULL":
        parts += [
            _field(
                MetadataType.COLUMN_NAME,
                b"".join(
                    _counted((column.name or "").encode("utf-8", "surrogateescape"))
                    for column in columns
                ),
            ),
            _charsets(
                members,
                MetadataType.ENUM_AND_SET_DEFAULT_CHARSET,
                MetadataType.ENUM_AND_SET_COLUMN_CHARSET,
            ),
            _members(MetadataType.SET_STR_VALUE, columns, ColumnType.SET),
            _members(MetadataType.ENUM_STR_VALUE, columns, ColumnType.ENUM),
            _key(key),
        ]
        if flavor is Flavor.MYSQL:
            visible = _bits(column.is_visible for column in columns)
            parts.append(_field(MetadataType.COLUMN_VISIBILITY, visible))
    return b"".join(parts)


def _field(code: MetadataType, value: bytes) -> bytes:
    return bytes((code,)) + encode_packed_int(len(value)) + value if value else b""


def _counted(data: bytes) -> bytes:
    return encode_packed_int(len(data)) + data


def _bits(flags: Iterable[bool | None]) -> bytes:
    """Most significant bit of each byte first."""
    data = bytearray()
    for index, flag in enumerate(flags):
        if index % 8 == 0:
            data.append(0)
        data[-1] |= bool(flag) << (7 - index % 8)
    return bytes(data)


def _charsets(
    columns: Sequence[Column], default_code: MetadataType, column_code: MetadataType
) -> bytes:
    """Collations in the form that servers take for the shorter one.

    Source: MySQL 9.7 sql/log_event.cc, Table_map_log_event::init_charset_field.
    """
    ids = [
        BINARY_COLLATION if column.collation_id is None else column.collation_id
        for column in columns
    ]
    if not ids:
        return b""
    counts = Counter(ids)
    most = max(sorted(counts), key=counts.__getitem__)
    others = [(index, number) for index, number in enumerate(ids) if number != most]
    if len(ids) < 1 + 2 * len(others):
        return _field(column_code, b"".join(map(encode_packed_int, ids)))
    pairs = b"".join(map(encode_packed_int, (number for pair in others for number in pair)))
    return _field(default_code, encode_packed_int(most) + pairs)


def _members(code: MetadataType, columns: Sequence[Column], kind: ColumnType) -> bytes:
    data = b""
    for column in columns:
        if column.type is not kind:
            continue
        charset = charset_of(column.collation_id or BINARY_COLLATION) or ""
        if has_lost_members(column):
            return b""
        names = [encoded_text(member, charset) for member in column.members or ()]
        texts = [name for name in names if name is not None]
        if len(texts) != len(names):
            return b""
        data += encode_packed_int(len(texts)) + b"".join(map(_counted, texts))
    return _field(code, data)


def has_lost_members(column: Column) -> bool:
    """True if members of an ENUM or SET may be others than a definition says.

    Servers print members in utf8mb3, with a question mark for what is not in it.
    """
    charset = charset_of(column.collation_id or BINARY_COLLATION)
    return (
        column.has_schema
        and charset in _BEYOND_UTF8MB3
        and any("?" in member for member in column.members or ())
    )


def _key(key: Sequence[PrimaryKeyPart]) -> bytes:
    if any(part.prefix_length for part in key):
        numbers = [number for part in key for number in (part.index, part.prefix_length)]
        return _field(
            MetadataType.PRIMARY_KEY_WITH_PREFIX, b"".join(map(encode_packed_int, numbers))
        )
    indexes = b"".join(encode_packed_int(part.index) for part in key)
    return _field(MetadataType.SIMPLE_PRIMARY_KEY, indexes)
