"""Facts of a table in its TABLE_MAP: the columns with everything known of them, and the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from binlane.errors import UnsupportedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column
from binlane.log.codec.optional_metadata import OptionalMetadata, PrimaryKeyPart
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import ColumnType, Flavor

_REAL_TYPE_BITS: Final = 0x30


def _read_none(reader: Reader) -> int:
    del reader
    return 0


def _read_big_endian(reader: Reader) -> int:
    return int.from_bytes(reader.take(2), "big")


ONE_BYTE_METADATA: Final = frozenset(
    {
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.TIMESTAMP2,
        ColumnType.DATETIME2,
        ColumnType.TIME2,
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
        ColumnType.GEOMETRY,
        ColumnType.JSON,
        ColumnType.VECTOR,
    }
)
TWO_BYTE_METADATA: Final = frozenset(
    {ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING, ColumnType.BIT}
)
"""Little-endian."""
BIG_ENDIAN_METADATA: Final = frozenset(
    {ColumnType.STRING, ColumnType.NEWDECIMAL, ColumnType.ENUM, ColumnType.SET}
)
"""Two bytes, big-endian."""
# The packed form of each type's metadata; a type that is not here has none.
_METADATA: Final[Mapping[ColumnType, Callable[[Reader], int]]] = MappingProxyType(
    {
        **dict.fromkeys(ONE_BYTE_METADATA, Reader.u8),
        **dict.fromkeys(TWO_BYTE_METADATA, Reader.u16),
        **dict.fromkeys(BIG_ENDIAN_METADATA, _read_big_endian),
    }
)


@lru_cache(maxsize=1024)
def table_columns(table_map: TableMapEvent, *, flavor: Flavor) -> tuple[Column, ...]:
    """The columns that a TABLE_MAP describes, in table order.

    Args:
        table_map: The event of a log of that flavor.
        flavor: MariaDB counts GEOMETRY among the columns with a character set, MySQL does not.

    Raises:
        CodecError: If the bytes contradict each other.
        UnsupportedError: If a column's type is unknown.
    """
    types, metadata = _types(table_map)
    facts = OptionalMetadata(table_map.optional_metadata, types, flavor)
    keys = {part.index for part in facts.primary_key()}
    nulls = int.from_bytes(table_map.null_bits, "little")
    collations = facts.collations()
    unsigned, names, members = facts.signedness(), facts.names(), facts.members(collations)
    geometries, dimensions = facts.geometry_types(), facts.dimensions()
    visible = facts.visibility()
    return tuple(
        Column(
            index=index,
            type=column_type,
            metadata=metadata[index],
            is_nullable=bool(nulls >> index & 1),
            name=names.get(index),
            is_unsigned=unsigned.get(index),
            collation_id=collations.get(index),
            members=members.get(index),
            geometry_type=geometries.get(index),
            in_primary_key=index in keys,
            is_visible=visible.get(index, True),
            dimensions=dimensions.get(index),
        )
        for index, column_type in enumerate(types)
    )


def primary_key(table_map: TableMapEvent) -> tuple[PrimaryKeyPart, ...]:
    """The primary key's columns in key order; empty if the log names none.

    Raises:
        CodecError: If it names a column that the table does not have.
    """
    types, _ = _types(table_map)
    return OptionalMetadata(table_map.optional_metadata, types, Flavor.MARIADB).primary_key()


def _types(table_map: TableMapEvent) -> tuple[tuple[ColumnType, ...], tuple[int, ...]]:
    """Real type and metadata of each column."""
    reader = Reader(table_map.metadata)
    types, metadata = [], []
    for index, code in enumerate(table_map.column_types):
        column_type = _column_type(code, index)
        value = _METADATA.get(column_type, _read_none)(reader)
        if column_type is ColumnType.STRING:
            # ENUM and SET say what they are here; in long CHARs these bits are of the length.
            column_type = _column_type((value >> 8) | _REAL_TYPE_BITS, index)
        types.append(column_type)
        metadata.append(value)
    reader.finish()
    return tuple(types), tuple(metadata)


def _column_type(code: int, index: int) -> ColumnType:
    try:
        column_type = ColumnType(code)
    except ValueError:
        raise UnsupportedError(f"column {index + 1} is of the unknown type {code}") from None
    if column_type is ColumnType.TYPED_ARRAY:
        raise UnsupportedError(f"column {index + 1} is an array, which no table has")
    return column_type
