"""What columns of an SQL type are in the log."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.codec.charsets import BINARY, BINARY_COLLATION, collation_of
from binlane.codec.columns import Column
from binlane.codec.types import ColumnType
from binlane.sql.column_changes import ColumnDefinition
from binlane.sql.table_definitions import column_charset

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
"""What columns of an SQL type are in the log, the usual first; others fit any column."""

_FLOAT_DIGITS_MAX: Final = 24
_TEXT_CHARSET: Final = "utf8mb4"
_DECIMAL_DEFAULT: Final = (10, 0)


def logged_column(definition: ColumnDefinition) -> Column | None:
    """The column that a definition makes in the log, as far as its type goes.

    Text whose character set the definition does not name is text all the same.

    Returns:
        Without a name; None if the type is not known.
    """
    types = LOGGED_TYPES.get(definition.type_name)
    if types is None:
        return None
    digits = [int(text) for text in definition.type_arguments[:2] if text.isdecimal()]
    kind, metadata = types[0], 0
    if (kind is ColumnType.FLOAT and len(digits) == 1 and digits[0] > _FLOAT_DIGITS_MAX) or (
        definition.type_name == "NUMBER" and not digits
    ):
        kind = ColumnType.DOUBLE
    elif kind is ColumnType.NEWDECIMAL:
        precision, scale = (*digits, *_DECIMAL_DEFAULT[len(digits) :])
        metadata = (precision or _DECIMAL_DEFAULT[0]) << 8 | scale
    elif kind is ColumnType.BIT:
        whole, rest = divmod(digits[0] if digits else 1, 8)
        metadata = whole << 8 | rest
    is_bytes = column_charset(definition, None) == BINARY
    return Column(
        index=0,
        type=kind,
        metadata=metadata,
        is_nullable=definition.is_nullable,
        is_unsigned=definition.is_unsigned,
        collation_id=BINARY_COLLATION if is_bytes else collation_of(_TEXT_CHARSET),
    )
