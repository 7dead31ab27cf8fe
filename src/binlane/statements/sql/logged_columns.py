"""The columns that definitions make in a log, and what definitions add to those of a TABLE_MAP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.errors import UnsupportedError
from binlane.log.codec.charsets import BINARY, BINARY_COLLATION, collation_of
from binlane.log.codec.columns import Column
from binlane.log.codec.logical_types import LENGTHS, LogicalType
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import ColumnType, Flavor
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition

_FLOAT: Final = (ColumnType.FLOAT, ColumnType.DOUBLE)
_DOUBLE: Final = (ColumnType.DOUBLE, ColumnType.FLOAT)
_DECIMAL: Final = (ColumnType.NEWDECIMAL,)
_DATETIME: Final = (ColumnType.DATETIME2, ColumnType.DATETIME)
_CHAR: Final = (ColumnType.STRING, ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
_VARCHAR: Final = (
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
    ColumnType.VARCHAR_COMPRESSED,
    # Without strict mode a column that is too long becomes a TEXT or BLOB.
    ColumnType.BLOB,
)
_BLOB: Final = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
_GEOMETRY: Final = (ColumnType.GEOMETRY,)
LOGGED_TYPES: Final[Mapping[str, tuple[ColumnType, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("TINYINT", "INT1", "BOOL", "BOOLEAN"), (ColumnType.TINY,)),
        **dict.fromkeys(("SMALLINT", "INT2"), (ColumnType.SHORT,)),
        **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), (ColumnType.INT24,)),
        **dict.fromkeys(("INT", "INTEGER", "INT4"), (ColumnType.LONG,)),
        **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), (ColumnType.LONGLONG,)),
        **dict.fromkeys(("FLOAT", "FLOAT4"), _FLOAT),
        **dict.fromkeys(("FLOAT8", "DOUBLE", "REAL"), _DOUBLE),
        **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC", "FIXED"), _DECIMAL),
        "NUMBER": (*_DECIMAL, ColumnType.DOUBLE),
        "BIT": (ColumnType.BIT,),
        "YEAR": (ColumnType.YEAR,),
        # With sql_mode ORACLE a DATE is a DATETIME.
        "DATE": (ColumnType.DATE, ColumnType.NEWDATE, *_DATETIME),
        "TIME": (ColumnType.TIME2, ColumnType.TIME),
        "DATETIME": _DATETIME,
        # With sql_mode MAXDB a TIMESTAMP is a DATETIME.
        "TIMESTAMP": (ColumnType.TIMESTAMP2, ColumnType.TIMESTAMP, *_DATETIME),
        **dict.fromkeys(("CHAR", "NCHAR", "BINARY"), _CHAR),
        **dict.fromkeys(("VARCHAR", "NVARCHAR", "VARCHAR2", "VARBINARY", "RAW"), _VARCHAR),
        **dict.fromkeys(("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"), _BLOB),
        **dict.fromkeys(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), _BLOB),
        "ENUM": (ColumnType.ENUM,),
        "SET": (ColumnType.SET,),
        "JSON": (*_BLOB, ColumnType.JSON),
        "VECTOR": (*_VARCHAR, ColumnType.VECTOR),
        **dict.fromkeys(("UUID", "INET4", "INET6"), _CHAR),
        **dict.fromkeys(("GEOMETRY", "POINT", "LINESTRING", "POLYGON"), _GEOMETRY),
        **dict.fromkeys(("MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"), _GEOMETRY),
        **dict.fromkeys(("GEOMETRYCOLLECTION", "GEOMCOLLECTION"), _GEOMETRY),
    }
)
"""Column types in the log of an SQL type, the usual one first; other SQL types fit any column."""
_TEXT_CHARSET: Final = "utf8mb4"
_GENERATED_PRIMARY_KEY: Final = 0x4
_MY_ROW_ID: Final = TableColumn(
    name="my_row_id", type_name="BIGINT", is_unsigned=True, is_visible=False
)
_ROW_START: Final = TableColumn(
    name="row_start", type_name="TIMESTAMP", arguments=("6",), is_visible=False, is_generated=True
)
_ROW_END: Final = replace(_ROW_START, name="row_end")
_ROW_HASH: Final = TableColumn(name="DB_ROW_HASH_", type_name="BIGINT", is_generated=True)
_DECIMAL_DEFAULT: Final = (10, 0)
_ONE_BYTE_MEMBERS_MAX: Final = 255
_FLOAT_DIGITS_MAX: Final = 24
_OWN_CODES: Final = {"JSON": ColumnType.JSON, "VECTOR": ColumnType.VECTOR}
"""Types that MySQL's log has a code for; MariaDB has columns of such types as text and bytes."""
_SIGNED_OR_NOT: Final = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.NEWDECIMAL,
    }
)
_TEXT: Final = frozenset(
    {*LOGGED_TYPES["CHAR"], *LOGGED_TYPES["VARCHAR"], ColumnType.ENUM, ColumnType.SET}
)
_FRACTIONS: Final = frozenset({ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2})


def _of_type(own: TableColumn, *, is_mysql: bool = False) -> tuple[ColumnType, int] | None:
    """The type of a definition in the log and its metadata, without lengths of strings."""
    types = LOGGED_TYPES.get(own.type_name)
    if types is None:
        return None
    kind, numbers = types[0], tuple(map(_number, own.arguments[:2]))
    if is_mysql and own.type_name in _OWN_CODES:
        kind = _OWN_CODES[own.type_name]
    is_long = kind is ColumnType.FLOAT and len(numbers) == 1 and numbers[0] > _FLOAT_DIGITS_MAX
    if is_long or (own.type_name == "NUMBER" and not numbers):
        kind = ColumnType.DOUBLE
    metadata = 0
    if kind is ColumnType.NEWDECIMAL:
        precision, scale = numbers + _DECIMAL_DEFAULT[len(numbers) :]
        metadata = (precision or _DECIMAL_DEFAULT[0]) << 8 | scale
    elif kind is ColumnType.BIT:
        whole, rest = divmod(numbers[0] if numbers else 1, 8)
        metadata = whole << 8 | rest
    elif kind in _FRACTIONS:
        metadata = numbers[0] if numbers else 0
    return kind, metadata


def logged_column(definition: TableColumn) -> Column | None:
    """The column that a definition makes in the log, as far as its type goes.

    Text whose character set the definition does not name is text all the same.

    Returns:
        Without a name; None if the type is not known.
    """
    found = _of_type(definition)
    if found is None:
        return None
    is_bytes = definition.charset == BINARY
    return Column(
        index=0,
        type=found[0],
        metadata=found[1],
        is_nullable=definition.is_nullable,
        is_unsigned=definition.is_unsigned,
        collation_id=BINARY_COLLATION if is_bytes else collation_of(_TEXT_CHARSET),
    )


def fitted(
    columns: Sequence[Column],
    table: TableDefinition,
    table_map: TableMapEvent,
    *,
    flavor: Flavor,
) -> tuple[Column, ...] | str:
    """The columns of a TABLE_MAP with all that a definition adds.

    Returns:
        As many columns; or, as text, the reason why the definition is not that of the TABLE_MAP.
    """
    defined = _logged(columns, table, table_map)
    if len(defined) != len(columns):
        return f"the log has {len(columns)} columns, the schema {len(defined)}"
    for column, own in zip(columns, defined, strict=True):
        reason = _misfit(column, own)
        if reason:
            return f"column {column.index + 1}, {own.name}: {reason}"
    return tuple(_merged(column, own, flavor) for column, own in zip(columns, defined, strict=True))


def logged_form(own: TableColumn, index: int, *, is_mysql: bool) -> Column:
    """The column that a definition makes in the log, with all that the definition tells.

    Lengths of strings are left out; all else that decides its values and their types is there.

    Raises:
        UnsupportedError: If the column's type is not known.
    """
    found = _of_type(own, is_mysql=is_mysql)
    if found is None:
        raise UnsupportedError(f"column {own.name} is of type {own.type_name}, which is not known")
    kind, metadata = found
    bare = Column(index=index, type=kind, metadata=metadata, is_nullable=own.is_nullable)
    return _merged(bare, own, Flavor.MYSQL if is_mysql else Flavor.MARIADB)


def _logged(
    columns: Sequence[Column], table: TableDefinition, table_map: TableMapEvent
) -> list[TableColumn]:
    """A table's columns as the log has them: with those that the server hides."""
    defined = list(table.columns)
    is_hidden = table_map.flags & _GENERATED_PRIMARY_KEY
    if is_hidden and not (defined and defined[0].name.lower() == _MY_ROW_ID.name):
        defined.insert(0, _MY_ROW_ID)
    if table.is_versioned:
        defined += [_ROW_START, _ROW_END]
    if table.has_unique_key:
        extra = columns[len(defined) :]
        if all(column.type is ColumnType.LONGLONG for column in extra):
            defined += [
                replace(_ROW_HASH, name=f"{_ROW_HASH.name}{number}")
                for number in range(1, len(extra) + 1)
            ]
    return defined


def _misfit(column: Column, own: TableColumn) -> str:
    """Why a definition is not that of a column; empty if it can be."""
    if column.name is not None and column.name.lower() != own.name.lower():
        return f"the log calls it {column.name}"
    if column.type not in LOGGED_TYPES.get(own.type_name, (column.type,)):
        return f"it is {column.type.name} in the log, {own.type_name} in the schema"
    check = _CHECKS.get(column.type)
    if check is not None and not check(column, own):
        return f"it has another length in the log than {own.type_name}({', '.join(own.arguments)})"
    return ""


def _same_digits(column: Column, own: TableColumn) -> bool:
    if own.type_name == "NUMBER":
        return True
    numbers = tuple(map(_number, own.arguments))
    return (column.precision, column.scale) == numbers + _DECIMAL_DEFAULT[len(numbers) :]


def _same_fraction(column: Column, own: TableColumn) -> bool:
    digits = _number(own.arguments[0]) if own.arguments else 0
    return column.fraction_digits == digits


def _same_width(column: Column, own: TableColumn) -> bool:
    return column.bits == (_number(own.arguments[0]) if own.arguments else 1)


def _same_string(column: Column, own: TableColumn) -> bool:
    logical = _logical(own)
    return logical is None or column.length_max == LENGTHS.get(logical, column.length_max)


def _room_for_enum(column: Column, own: TableColumn) -> bool:
    return column.pack_length == (1 if len(own.arguments) <= _ONE_BYTE_MEMBERS_MAX else 2)


def _room_for_set(column: Column, own: TableColumn) -> bool:
    length = (len(own.arguments) + 7) // 8
    return column.pack_length == (8 if length > 4 else length)


_CHECKS: Final[Mapping[ColumnType, Callable[[Column, TableColumn], bool]]] = MappingProxyType(
    {
        ColumnType.NEWDECIMAL: _same_digits,
        **dict.fromkeys(_FRACTIONS, _same_fraction),
        ColumnType.BIT: _same_width,
        ColumnType.STRING: _same_string,
        ColumnType.ENUM: _room_for_enum,
        ColumnType.SET: _room_for_set,
    }
)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else -1


def _merged(column: Column, own: TableColumn, flavor: Flavor) -> Column:
    logical = _logical(own)
    if logical is LogicalType.JSON and flavor is Flavor.MYSQL:
        logical = None
    is_unsigned, collation_id = column.is_unsigned, column.collation_id
    if is_unsigned is None and column.type in _SIGNED_OR_NOT:
        is_unsigned = own.is_unsigned
    if collation_id is None and own.charset is not None and column.type in _TEXT:
        collation_id = collation_of(own.charset)
    members = column.members
    if members is None and column.type in {ColumnType.ENUM, ColumnType.SET}:
        members = _members(own, collation_id)
    return replace(
        column,
        name=own.name if column.name is None else column.name,
        is_unsigned=is_unsigned,
        collation_id=collation_id,
        members=members,
        is_visible=column.is_visible and own.is_visible,
        logical=logical,
        is_generated=own.is_generated,
        has_schema=True,
    )


def _logical(own: TableColumn) -> LogicalType | None:
    return LogicalType(own.type_name) if own.type_name in _LOGICAL_NAMES else None


_LOGICAL_NAMES: Final = frozenset(logical.value for logical in LogicalType)


def _members(own: TableColumn, collation_id: int | None) -> tuple[str, ...]:
    """Members as the server keeps them: without trailing spaces, unless they are bytes."""
    if collation_id == BINARY_COLLATION:
        return own.arguments
    return tuple(member.rstrip(" ") for member in own.arguments)
