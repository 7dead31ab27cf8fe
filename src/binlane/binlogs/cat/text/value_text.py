"""Column values as the official tools print them in comments, from the bytes of a row image.

Strings are the bytes of the log, whatever their character set, and are never decoded here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.binlogs.cat.text.escapes import MYSQL_ESCAPES
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec import numbers, strings, temporal
from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType, Flavor

ValuePrinter = Callable[[Reader], str]
_BytesOf = Callable[[Column], tuple[strings.Bytes, str]]

# MariaDB leaves quotes and backslashes as they are, so that a value may seem to end early.
_ESCAPES: Final[Mapping[Flavor, Mapping[int, str]]] = MappingProxyType(
    {
        Flavor.MARIADB: {code: f"\\x{code:02x}" for code in range(32)},
        Flavor.MYSQL: MYSQL_ESCAPES,
    }
)
_BLOB_NAMES: Final = ("", "TINYBLOB/TINYTEXT", "BLOB/TEXT", "MEDIUMBLOB/MEDIUMTEXT")
_LONG_BLOB: Final = "LONGBLOB/LONGTEXT"
_ONE_BYTE_LENGTH_MAX: Final = 255
_YEAR_ZERO: Final = 1900
_FLOAT_LENGTH: Final = 4


@dataclass(frozen=True, slots=True)
class ColumnText:
    """The printed form of one column.

    Attributes:
        value: Function that prints a value that is not NULL.
        type_name: Name of the type in the comment behind a value.
    """

    value: ValuePrinter
    type_name: str


def column_text(column: Column, flavor: Flavor) -> ColumnText:
    """Give the printed form of a column.

    Args:
        column: A column of a TABLE_MAP.
        flavor: MySQL escapes quotes, and leaves them away around an old DATETIME.

    Raises:
        CodecError: If the column's metadata is impossible.
        UnsupportedError: If its type cannot be printed.
    """
    if column.type in _BYTES:
        read, name = _BYTES[column.type](column)
        escapes = _ESCAPES[flavor]
        return ColumnText(lambda reader: _quoted(read(reader), escapes), name)
    factory = _COLUMNS.get(column.type)
    if factory is None:
        raise UnsupportedError(
            f"column {column.index + 1} is of type {column.type.name}, which cannot be printed"
        )
    if column.type is ColumnType.DATETIME and flavor is Flavor.MYSQL:
        return ColumnText(temporal.decode_old_datetime, "DATETIME")
    return factory(column)


def _quoted(data: bytes, escapes: Mapping[int, str]) -> str:
    """A string literal; bytes that are not UTF-8 become lone surrogates."""
    return f"'{data.decode('utf-8', 'surrogateescape').translate(escapes)}'"


def _integer(name: str, length: int) -> Callable[[Column], ColumnText]:
    """Return an integer; the log need not have its sign, so a negative one is printed both ways."""
    modulus = 1 << 8 * length

    def value(reader: Reader) -> str:
        number = int.from_bytes(reader.take(length), "little", signed=True)
        return f"{number} ({number + modulus})" if number < 0 else str(number)

    return lambda _: ColumnText(value, name)


def _decimal(column: Column) -> ColumnText:
    decode = numbers.decimal_decoder(column.precision, column.scale)
    name = f"DECIMAL({column.precision},{column.scale})"
    return ColumnText(lambda reader: format(decode(reader), "f"), name)


def _float(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda reader: f"{numbers.decode_float(reader):<20g}", "FLOAT")


def _double(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda reader: f"{numbers.decode_double(reader):.20g}", "DOUBLE")


def _bit(column: Column) -> ColumnText:
    bits = column.bits
    decode = numbers.bit_decoder(bits)
    return ColumnText(lambda reader: f"b'{decode(reader):0{bits}b}'", f"BIT({bits})")


def _year(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda reader: str(reader.u8() + _YEAR_ZERO), "YEAR")


def _date(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda reader: f"'{temporal.decode_date(reader).replace('-', ':')}'", "DATE")


def _old_timestamp(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda reader: str(reader.u32()), "TIMESTAMP")


def _timestamp(column: Column) -> ColumnText:
    digits = column.fraction_digits
    length = (_checked_digits(column) + 1) // 2

    def value(reader: Reader) -> str:
        seconds = int.from_bytes(reader.take(4), "big")
        if not digits:
            return str(seconds)
        fraction = int.from_bytes(reader.take(length), "big")
        return f"{seconds}.{fraction:0{2 * length}d}"[: len(str(seconds)) + 1 + digits]

    return ColumnText(value, f"TIMESTAMP({digits})")


def _checked_digits(column: Column) -> int:
    if column.fraction_digits > temporal.FRACTION_DIGITS_MAX:
        raise CodecError(
            f"column {column.index + 1} has {column.fraction_digits} fractional digits"
        )
    return column.fraction_digits


def _quoted_temporal(
    name: str, decoder: Callable[[int], Callable[[Reader], str]]
) -> Callable[[Column], ColumnText]:
    def text(column: Column) -> ColumnText:
        decode = decoder(column.fraction_digits)
        return ColumnText(lambda reader: f"'{decode(reader)}'", f"{name}({column.fraction_digits})")

    return text


def _quoted_old(name: str, decode: Callable[[Reader], str]) -> Callable[[Column], ColumnText]:
    text = ColumnText(lambda reader: f"'{decode(reader)}'", name)
    return lambda _: text


def _string(name: str, tail: str = "") -> _BytesOf:
    def read(column: Column) -> tuple[strings.Bytes, str]:
        length_bytes = 1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else 2
        return strings.counted_bytes(length_bytes), f"{name}({column.length_max}){tail}"

    return read


def _blob(tail: str = "") -> _BytesOf:
    def read(column: Column) -> tuple[strings.Bytes, str]:
        length = column.metadata
        name = _BLOB_NAMES[length] if length < len(_BLOB_NAMES) else _LONG_BLOB
        return strings.counted_bytes(length), f"{name}{tail}"

    return read


def _geometry(column: Column) -> tuple[strings.Bytes, str]:
    return strings.counted_bytes(column.metadata), "GEOMETRY"


def _enum(column: Column) -> ColumnText:
    length = column.pack_length
    name = f"ENUM({length} byte{'s' if length > 1 else ''})"
    return ColumnText(lambda reader: str(int.from_bytes(reader.take(length), "little")), name)


def _set(column: Column) -> ColumnText:
    """The bits of the bytes as they stand in the log: the first member is the first byte's last."""
    length = column.pack_length

    def value(reader: Reader) -> str:
        return f"b'{''.join(f'{byte:08b}' for byte in reader.take(length))}'"

    return ColumnText(value, f"SET({length} bytes)")


def _json(column: Column) -> ColumnText:
    from binlane.binlogs.cat.text.json_as_text import json_literal  # noqa: PLC0415  # few tables have JSON
    from binlane.log.codec.json_binary import decode_json  # noqa: PLC0415

    read = strings.counted_bytes(column.metadata)
    return ColumnText(lambda reader: json_literal(decode_json(read(reader))), "JSON")


def _vector(column: Column) -> ColumnText:
    read = strings.counted_bytes(column.metadata)

    def value(reader: Reader) -> str:
        data = read(reader)
        floats = Reader(data)
        count = len(data) // _FLOAT_LENGTH
        return "[" + ",".join(f"{numbers.decode_float(floats):.5e}" for _ in range(count)) + "]"

    return ColumnText(value, f"VECTOR({column.dimensions or 0})")


def _null(column: Column) -> ColumnText:
    del column
    return ColumnText(lambda _: "NULL", "NULL")


_COLUMNS: Final[Mapping[ColumnType, Callable[[Column], ColumnText]]] = MappingProxyType(
    {
        ColumnType.NULL: _null,
        ColumnType.TINY: _integer("TINYINT", 1),
        ColumnType.SHORT: _integer("SHORTINT", 2),
        ColumnType.INT24: _integer("MEDIUMINT", 3),
        ColumnType.LONG: _integer("INT", 4),
        ColumnType.LONGLONG: _integer("LONGINT", 8),
        ColumnType.FLOAT: _float,
        ColumnType.DOUBLE: _double,
        ColumnType.NEWDECIMAL: _decimal,
        ColumnType.BIT: _bit,
        ColumnType.YEAR: _year,
        ColumnType.DATE: _date,
        ColumnType.NEWDATE: _date,
        ColumnType.TIME: _quoted_old("TIME", temporal.decode_old_time),
        ColumnType.DATETIME: _quoted_old("DATETIME", temporal.decode_old_datetime),
        ColumnType.TIMESTAMP: _old_timestamp,
        ColumnType.TIME2: _quoted_temporal("TIME", temporal.time_decoder),
        ColumnType.DATETIME2: _quoted_temporal("DATETIME", temporal.datetime_decoder),
        ColumnType.TIMESTAMP2: _timestamp,
        ColumnType.ENUM: _enum,
        ColumnType.SET: _set,
        ColumnType.VECTOR: _vector,
        ColumnType.JSON: _json,
    }
)
_BYTES: Final[Mapping[ColumnType, _BytesOf]] = MappingProxyType(
    {
        ColumnType.STRING: _string("STRING"),
        ColumnType.VARCHAR: _string("VARSTRING"),
        ColumnType.VAR_STRING: _string("VARSTRING"),
        ColumnType.VARCHAR_COMPRESSED: _string("VARSTRING", " COMPRESSED"),
        ColumnType.TINY_BLOB: _blob(),
        ColumnType.BLOB: _blob(),
        ColumnType.MEDIUM_BLOB: _blob(),
        ColumnType.LONG_BLOB: _blob(),
        ColumnType.BLOB_COMPRESSED: _blob(" COMPRESSED"),
        ColumnType.GEOMETRY: _geometry,
    }
)
