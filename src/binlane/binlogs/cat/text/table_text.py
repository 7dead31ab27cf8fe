"""The contents of a TABLE_MAP, as `--print-table-metadata` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from binlane.log.codec.charsets import BINARY, charset_of
from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.columns import Column
from binlane.log.codec.optional_metadata import OptionalMetadata
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import quote

# Bytes that a character has room for; one in all other character sets.
_BYTES_MAX: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
        **dict.fromkeys(("utf8mb3", "ujis", "eucjpms"), 3),
        **dict.fromkeys(("ucs2", "big5", "gbk", "gb2312", "sjis", "cp932", "euckr"), 2),
    }
)
_GEOMETRIES: Final = (
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
)
_COLLECTIONS: Final = MappingProxyType(
    {Flavor.MARIADB: "GEOMETRYCOLLECTION", Flavor.MYSQL: "GEOMCOLLECTION"}
)
_BLOB_SIZES: Final = ("", "TINY", "", "MEDIUM", "LONG")
_ESCAPES: Final = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "'": "\\'", "\0": "\\0"}
)
# A bit of TABLE_MAP's flags (MySQL): the server has made the primary key.
_GENERATED_PRIMARY_KEY: Final = 1 << 2
_GENERATED_NAME: Final = "my_row_id"


@lru_cache(maxsize=256)
def table_lines(table_map: TableMapEvent, flavor: Flavor) -> tuple[str, ...]:
    """Columns and primary key of a table.

    Raises:
        CodecError: If the bytes contradict each other.
    """
    columns = table_columns(table_map, flavor=flavor)
    facts = OptionalMetadata(
        table_map.optional_metadata, [column.type for column in columns], flavor
    )
    if is_generated := bool(columns and table_map.flags & _GENERATED_PRIMARY_KEY):
        # The flag tells the column's name and visibility, whether the log tells them or not.
        generated = replace(columns[0], name=_GENERATED_NAME, is_visible=False)
        columns = (generated, *columns[1:])
    members = facts.member_bytes()
    texts = [_column(column, members.get(column.index, ()), flavor) for column in columns]
    if is_generated:
        texts[0] += " AUTO_INCREMENT"
    heads = ["# Columns(", *["#         "] * (len(texts) - 1)]
    tails = [*[","] * (len(texts) - 1), ")"]
    lines = [f"{head}{text}{tail}" for head, text, tail in zip(heads, texts, tails, strict=False)]
    if is_generated:
        return (*lines, f"# Primary Key({_GENERATED_NAME})")
    return (*lines, *_primary_key(table_map, columns))


def generated_key_line(table_map: TableMapEvent) -> str:
    """MySQL: whether the server made the primary key by itself."""
    is_generated = bool(table_map.flags & _GENERATED_PRIMARY_KEY)
    return f"# has_generated_invisible_primary_key={int(is_generated)}"


def _primary_key(table_map: TableMapEvent, columns: tuple[Column, ...]) -> Iterator[str]:
    parts = primary_key(table_map)
    if not parts:
        return
    names = (_one_line(columns[part.index].name or str(part.index)) for part in parts)
    prefixes = (f"({part.prefix_length})" if part.prefix_length else "" for part in parts)
    yield "# Primary Key(" + ", ".join(map(str.__add__, names, prefixes)) + ")"


def _column(column: Column, members: tuple[bytes, ...], flavor: Flavor) -> str:
    charset = None if column.collation_id is None else charset_of(column.collation_id)
    charset = None if charset == BINARY else charset
    text = _TYPES[column.type](column, charset, flavor)
    if members:
        separator = ", " if flavor is Flavor.MYSQL else ","
        text += "(" + separator.join(map(_member, members)) + ")"
    parts = [_name(column.name, flavor), text]
    parts.append("UNSIGNED" if column.is_unsigned and column.type is not ColumnType.YEAR else "")
    parts.append("" if column.is_nullable else "NOT NULL")
    if charset is not None and column.collation_id is not None:
        parts.append(f"CHARSET {charset} COLLATE {collation_name(column.collation_id, flavor)}")
    parts.append("" if column.is_visible else "INVISIBLE")
    return " ".join(filter(None, parts))


def _name(name: str | None, flavor: Flavor) -> str:
    """Return a name in MariaDB's form: backticks as they are, the rest escaped as in a string."""
    if name is None:
        return ""
    return quote(_one_line(name)) if flavor is Flavor.MYSQL else f"`{name.translate(_ESCAPES)}`"


def _one_line(name: str) -> str:
    return name.replace("\n", "\\n")


def _member(member: bytes) -> str:
    return f"'{member.decode('utf-8', 'surrogateescape').translate(_ESCAPES)}'"


_TypeText = Callable[[Column, str | None, Flavor], str]


def _plain(name: str) -> _TypeText:
    return lambda *_: name


def _sized(name: str) -> _TypeText:
    """Make the text of a type with digits of a fraction, if there are any."""

    def text(column: Column, charset: str | None, flavor: Flavor) -> str:
        del charset, flavor
        return f"{name}({column.fraction_digits})" if column.fraction_digits else name

    return text


def _string(text_name: str, binary_name: str, tail: str = "") -> _TypeText:
    def text(column: Column, charset: str | None, flavor: Flavor) -> str:
        del flavor
        name = binary_name if charset is None else text_name
        # The first byte of a compressed value tells how it is.
        length = column.length_max - bool(tail)
        return f"{name}({length // _BYTES_MAX.get(charset or '', 1)}){tail}"

    return text


def _blob(tail: str = "") -> _TypeText:
    def text(column: Column, charset: str | None, flavor: Flavor) -> str:
        del flavor
        length = column.metadata
        size = _BLOB_SIZES[length] if length < len(_BLOB_SIZES) else ""
        return f"{size}{'BLOB' if charset is None else 'TEXT'}{tail}"

    return text


def _decimal(column: Column, charset: str | None, flavor: Flavor) -> str:
    del charset, flavor
    return f"DECIMAL({column.precision},{column.scale})"


def _bit(column: Column, charset: str | None, flavor: Flavor) -> str:
    del charset, flavor
    return f"BIT({column.bits})"


def _vector(column: Column, charset: str | None, flavor: Flavor) -> str:
    del charset, flavor
    return f"VECTOR({column.dimensions or 0})"


def _geometry(column: Column, charset: str | None, flavor: Flavor) -> str:
    del charset
    number = column.geometry_type or 0
    return _GEOMETRIES[number] if number < len(_GEOMETRIES) else _COLLECTIONS[flavor]


_TYPES: Final[Mapping[ColumnType, _TypeText]] = MappingProxyType(
    {
        ColumnType.NULL: _plain("NULL"),
        ColumnType.DECIMAL: _plain("DECIMAL"),
        ColumnType.TINY: _plain("TINYINT"),
        ColumnType.SHORT: _plain("SMALLINT"),
        ColumnType.INT24: _plain("MEDIUMINT"),
        ColumnType.LONG: _plain("INT"),
        ColumnType.LONGLONG: _plain("BIGINT"),
        ColumnType.FLOAT: _plain("FLOAT"),
        ColumnType.DOUBLE: _plain("DOUBLE"),
        ColumnType.NEWDECIMAL: _decimal,
        ColumnType.BIT: _bit,
        ColumnType.YEAR: _plain("YEAR"),
        ColumnType.DATE: _plain("DATE"),
        ColumnType.NEWDATE: _plain("DATE"),
        ColumnType.TIME: _plain("TIME"),
        ColumnType.DATETIME: _plain("DATETIME"),
        ColumnType.TIMESTAMP: _plain("TIMESTAMP"),
        ColumnType.TIME2: _sized("TIME"),
        ColumnType.DATETIME2: _sized("DATETIME"),
        ColumnType.TIMESTAMP2: _sized("TIMESTAMP"),
        ColumnType.STRING: _string("CHAR", "BINARY"),
        ColumnType.VARCHAR: _string("VARCHAR", "VARBINARY"),
        ColumnType.VAR_STRING: _string("VARCHAR", "VARBINARY"),
        ColumnType.VARCHAR_COMPRESSED: _string("VARCHAR", "VARBINARY", " COMPRESSED"),
        ColumnType.TINY_BLOB: _blob(),
        ColumnType.BLOB: _blob(),
        ColumnType.MEDIUM_BLOB: _blob(),
        ColumnType.LONG_BLOB: _blob(),
        ColumnType.BLOB_COMPRESSED: _blob(" COMPRESSED"),
        ColumnType.ENUM: _plain("ENUM"),
        ColumnType.SET: _plain("SET"),
        ColumnType.GEOMETRY: _geometry,
        ColumnType.VECTOR: _vector,
        ColumnType.JSON: _plain("JSON"),
    }
)
