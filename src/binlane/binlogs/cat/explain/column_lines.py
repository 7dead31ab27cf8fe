"""The contents of a TABLE_MAP, part by part; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import charset_of
from binlane.log.codec.columns import Column
from binlane.log.codec.optional_metadata import MetadataType
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects

_CHOICES: Final = frozenset({ColumnType.ENUM, ColumnType.SET})


def column_lines(
    table_map: TableMapEvent, *, flavor: Flavor, catalog: LoggedObjects | None
) -> Iterator[tuple[str, str]]:
    """Return name and type of each column, with all known facts of it."""
    columns = (
        table_columns(table_map, flavor=flavor)
        if catalog is None
        else catalog.columns(table_map, flavor=flavor)
    )
    for column in columns:
        name = f"@{column.index + 1}" + (f" {column.name}" if column.name is not None else "")
        yield name, ", ".join(_column_words(column))


def _column_words(column: Column) -> Iterator[str]:
    yield column.type.name
    if column.metadata:
        yield f"metadata {column.metadata}"
    yield "can be NULL" if column.is_nullable else "never NULL"
    if column.is_unsigned is not None:
        yield "unsigned" if column.is_unsigned else "signed"
    if column.collation_id is not None:
        charset = charset_of(column.collation_id) or "unknown"
        yield f"{charset} (collation {column.collation_id})"
    if column.members is not None:
        yield "members " + ", ".join(map(repr, column.members))
    yield from _rare_words(column)


def _rare_words(column: Column) -> Iterator[str]:
    if column.geometry_type is not None:
        yield f"geometry type {column.geometry_type}"
    if column.dimensions is not None:
        yield f"{column.dimensions} dimensions"
    if column.logical is not None:
        yield f"{column.logical.value} by its schema"
    if column.in_primary_key:
        yield "in the primary key"
    if not column.is_visible:
        yield "invisible"
    if column.is_generated:
        yield "generated"


def metadata_parts(
    table_map: TableMapEvent, *, flavor: Flavor
) -> Iterator[tuple[str, str, int, bytes]]:
    """Return name, meaning, offset in the optional metadata, and bytes of each of its parts."""
    columns = table_columns(table_map, flavor=flavor)
    data = table_map.optional_metadata
    reader = Reader(data)
    while reader.remaining:
        start = reader.offset
        code = reader.u8()
        reader.take(reader.packed_int())
        part = data[start : reader.offset]
        if code not in tuple(MetadataType):
            yield f"type {code}", "binlane does not know it", start, part
            continue
        kind = MetadataType(code)
        tell = _FACTS.get(kind)
        if tell is not None:
            text = ", ".join(filter(None, map(tell, columns)))
        else:
            text = ", ".join(_key_words(table_map, columns))
        yield kind.name, text, start, part


def _key_words(table_map: TableMapEvent, columns: tuple[Column, ...]) -> Iterator[str]:
    for part in primary_key(table_map):
        prefix = f"({part.prefix_length})" if part.prefix_length else ""
        yield f"{_name(columns[part.index])}{prefix}"


def _name(column: Column) -> str:
    return column.name if column.name is not None else f"@{column.index + 1}"


def _charset(column: Column) -> str:
    if column.collation_id is None:
        return ""
    return f"{_name(column)} {charset_of(column.collation_id) or column.collation_id}"


def _of_types(
    types: frozenset[ColumnType], tell: Callable[[Column], str], *, inside: bool = True
) -> Callable[[Column], str]:
    """Describes the columns of some types only, or of all other types."""
    return lambda column: tell(column) if (column.type in types) == inside else ""


def _members(column: Column) -> str:
    return f"{_name(column)} ({', '.join(map(repr, column.members or ()))})"


_FACTS: Final[Mapping[MetadataType, Callable[[Column], str]]] = MappingProxyType(
    {
        MetadataType.SIGNEDNESS: lambda column: _name(column) if column.is_unsigned else "",
        MetadataType.DEFAULT_CHARSET: _of_types(_CHOICES, _charset, inside=False),
        MetadataType.COLUMN_CHARSET: _of_types(_CHOICES, _charset, inside=False),
        MetadataType.COLUMN_NAME: lambda column: column.name or "",
        MetadataType.SET_STR_VALUE: _of_types(frozenset({ColumnType.SET}), _members),
        MetadataType.ENUM_STR_VALUE: _of_types(frozenset({ColumnType.ENUM}), _members),
        MetadataType.GEOMETRY_TYPE: lambda column: (
            "" if column.geometry_type is None else f"{_name(column)} {column.geometry_type}"
        ),
        MetadataType.ENUM_AND_SET_DEFAULT_CHARSET: _of_types(_CHOICES, _charset),
        MetadataType.ENUM_AND_SET_COLUMN_CHARSET: _of_types(_CHOICES, _charset),
        MetadataType.COLUMN_VISIBILITY: lambda column: _name(column) if column.is_visible else "",
        MetadataType.VECTOR_DIMENSIONALITY: lambda column: (
            "" if column.dimensions is None else f"{_name(column)} {column.dimensions}"
        ),
    }
)
