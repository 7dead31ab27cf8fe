"""Columns of row images → Arrow arrays, a column at a time: which kernel a column's type takes.

A value that no kernel takes goes through the reference decoder, each distinct value once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import BINARY, charset_of, text_decoder
from binlane.log.codec.columns import Column, ValueDecoder, value_decoder
from binlane.log.codec.logical_types import LENGTHS, LogicalType
from binlane.log.codec.numbers import decimal_length
from binlane.log.codec.types import COUNTED_BLOBS, COUNTED_STRINGS, ColumnType
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.tables.columnar.arrow_types import DECIMAL_DIGITS_MAX, Converter, arrow_type, converter

_ONE_BYTE_LENGTH_MAX: Final = 255
INTEGER_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        ColumnType.TINY: 1,
        ColumnType.SHORT: 2,
        ColumnType.INT24: 3,
        ColumnType.LONG: 4,
        ColumnType.LONGLONG: 8,
    }
)
FIXED_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {
        **INTEGER_BYTES,
        ColumnType.NULL: 0,
        ColumnType.FLOAT: 4,
        ColumnType.DOUBLE: 8,
        ColumnType.YEAR: 1,
        ColumnType.DATE: 3,
        ColumnType.NEWDATE: 3,
    }
)
_FRACTION_BYTES: Final[Mapping[ColumnType, int]] = MappingProxyType(
    {ColumnType.TIME2: 3, ColumnType.DATETIME2: 5, ColumnType.TIMESTAMP2: 4}
)


def value_bytes(column: Column) -> int:
    """Bytes that a value takes, or minus the bytes of its length.

    Raises:
        UnexpectedError: If that is not known, or impossible.
    """
    kind = column.type
    if kind in FIXED_BYTES:
        return FIXED_BYTES[kind]
    if kind in _FRACTION_BYTES and column.fraction_digits <= 6:
        return _FRACTION_BYTES[kind] + (column.fraction_digits + 1) // 2
    if kind is ColumnType.NEWDECIMAL and column.scale <= column.precision:
        return decimal_length(column.precision, column.scale)
    if kind is ColumnType.BIT and column.bits <= 64:
        return (column.bits + 7) // 8
    if kind in {ColumnType.ENUM, ColumnType.SET} and column.pack_length <= 8:
        return column.pack_length
    if kind in COUNTED_STRINGS:
        return -1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else -2
    if kind in COUNTED_BLOBS and 1 <= column.metadata <= 4:
        return -column.metadata
    raise UnexpectedError


Positions = npt.NDArray[np.int32]
Converted = tuple["pa.Array[Any]", int]
"""The values, and how many of them were dates that are none."""
Convert = Callable[[Bytes, Positions, bool], Converted]
"""Function of a buffer, the place of each value in it, and whether any value is NULL.

Raises:
    UnexpectedError: If a value is not what a server writes.
"""

_HEX_DIGITS: Final = np.array([list(b"%02x" % byte) for byte in range(256)], np.uint8)
_UUID_TEXT: Final = 36
_UUID_DIGITS: Final = np.array([at for at in range(_UUID_TEXT) if at not in (8, 13, 18, 23)])
_CACHED_VALUES_MAX: Final = 4096
_SHORT_DIGITS_MAX: Final = 18
_TIME_TEXT_MAX: Final = 20
LISTED_MEMBERS_MAX: Final = 7
_TEXT_MEMBERS_MAX: Final = 1 << 16

_PLAIN_STRINGS: Final = (COUNTED_STRINGS | COUNTED_BLOBS) - {
    ColumnType.VARCHAR_COMPRESSED,
    ColumnType.BLOB_COMPRESSED,
    ColumnType.JSON,
}


def conversion(column: Column) -> Convert:
    """Return the function that turns the values of a column into an array of its Arrow type."""
    if column.logical is LogicalType.UUID:
        return _uuid(column)
    if column.logical in LENGTHS:
        return _by_value(column)
    kind = column.type
    if kind in _CONVERSIONS:
        return _CONVERSIONS[kind](column)
    if kind in _PLAIN_STRINGS:
        return _string(column)
    return _by_value(column)


def array(
    data_type: pa.DataType,
    positions: Positions,
    has_nulls: bool,  # noqa: FBT001
    *buffers: Any,
) -> pa.Array[Any]:
    """An Arrow array of finished buffers, NULL where there is no position."""
    count = positions.shape[0]
    valid, nulls = None, 0
    if has_nulls:
        bits: Any = np.empty((count + 7) // 8, np.uint8)
        nulls = kernels().validity(positions, bits)
        valid = pa.py_buffer(bits) if nulls else None
    return pa.Array.from_buffers(data_type, count, [valid, *map(pa.py_buffer, buffers)], nulls)


def filled(data_type: pa.DataType, values: Any) -> pa.Array[Any]:
    """An Arrow array of numbers of which none is NULL."""
    return pa.Array.from_buffers(data_type, values.shape[0], [None, pa.py_buffer(values)], 0)


def _numbers(column: Column, width: int, *, is_signed: bool) -> Convert:
    data_type = arrow_type(column)
    out_bytes = data_type.bit_width // 8
    numpy_type: Any = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[out_bytes]
    sign = 1 << (8 * width - 1) if is_signed and width < 8 else 0
    name = f"integers{8 * out_bytes}"

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(positions.shape[0], numpy_type)
        getattr(kernels(), name)(data, positions, width, sign, out)
        return array(data_type, positions, has_nulls, out), 0

    return convert


def _integer(column: Column) -> Convert:
    width = INTEGER_BYTES[column.type]
    if column.is_unsigned and width == 8:
        return _unsigned(column, is_big=False)
    return _numbers(column, width, is_signed=not column.is_unsigned)


def _float(column: Column) -> Convert:
    return _numbers(column, FIXED_BYTES[column.type], is_signed=True)


def _unsigned(column: Column, *, is_big: bool) -> Convert:
    data_type = arrow_type(column)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(2 * positions.shape[0], np.int64)
        kernels().unsigned128(data, positions, int(is_big), out)
        return array(data_type, positions, has_nulls, out), 0

    return convert


def _bit(column: Column) -> Convert:
    width, data_type = (column.bits + 7) // 8, arrow_type(column)
    if column.bits > 63:
        return _unsigned(column, is_big=True)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(positions.shape[0], np.int64)
        kernels().bits(data, positions, width, out)
        return array(data_type, positions, has_nulls, out), 0

    # Eight bytes of which the upper one holds a bit that the type has no room for.
    return _by_value(column) if width == 8 else convert


def _year(column: Column) -> Convert:
    data_type = arrow_type(column)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(positions.shape[0], np.int64)
        kernels().years(data, positions, out)
        return array(data_type, positions, has_nulls, out), 0

    return convert


def _decimal(column: Column) -> Convert:
    if not 0 < column.precision <= DECIMAL_DIGITS_MAX:
        return _by_value(column)
    data_type = arrow_type(column)
    precision, scale = column.precision, column.scale

    def convert_short(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(2 * positions.shape[0], np.int64)
        _checked(kernels().short_decimals(data, positions, precision, scale, out))
        return array(data_type, positions, has_nulls, out), 0

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(4 * positions.shape[0], np.int32)
        _checked(kernels().decimals(data, positions, precision, scale, out))
        return array(data_type, positions, has_nulls, out), 0

    return convert_short if precision <= _SHORT_DIGITS_MAX else convert


def _date(column: Column) -> Convert:
    data_type = arrow_type(column)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        out = np.empty(positions.shape[0], np.int32)
        invalid = kernels().dates(data, positions, out)
        return array(data_type, positions, has_nulls or invalid > 0, out), invalid

    return convert


def _moment(name: str) -> Callable[[Column], Convert]:
    def make(column: Column) -> Convert:
        data_type, digits = arrow_type(column), column.fraction_digits

        def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
            out = np.empty(positions.shape[0], np.int64)
            run = getattr(kernels(), name)
            invalid = _checked(run(data, positions, digits, out))
            return array(data_type, positions, has_nulls or invalid > 0, out), invalid

        return convert

    return make


def _time(column: Column) -> Convert:
    data_type, digits = arrow_type(column), column.fraction_digits

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        count = positions.shape[0]
        offsets = np.empty(count + 1, np.int32)
        out = np.empty(_TIME_TEXT_MAX * count + PADDING, np.uint8)
        _checked(kernels().times(data, positions, digits, offsets, out))
        return array(data_type, positions, has_nulls, offsets, out), 0

    return convert


def _string(column: Column) -> Convert:
    prefix, data_type = -value_bytes(column), arrow_type(column)
    collation = None if column.type is ColumnType.GEOMETRY else column.collation_id
    charset = "utf8mb4" if collation is None else charset_of(collation)
    is_fixed = column.type is ColumnType.STRING and charset == BINARY
    if pa.types.is_binary(data_type):
        return _bytes(data_type, prefix, column.length_max if is_fixed else 0)
    if charset in {"utf8mb3", "utf8mb4", "ascii"}:
        return _text(column, prefix, is_ascii=charset == "ascii")
    table = None if charset is None else _utf8_table(charset)
    return _by_value(column) if table is None else _recoded(column, prefix, table)


def _bytes(data_type: pa.DataType, prefix: int, fixed_length: int) -> Convert:
    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        offsets, out = _measured(data, positions, prefix, fixed_length)
        gather = kernels().gather_filled if fixed_length else kernels().gather
        gather(data, positions, prefix, offsets, out)
        return array(data_type, positions, has_nulls, offsets, out), 0

    return convert


def _uuid(column: Column) -> Convert:
    prefix, data_type, length = -value_bytes(column), arrow_type(column), LENGTHS[LogicalType.UUID]

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        offsets, out = _measured(data, positions, prefix, length)
        if np.diff(offsets).max(initial=0) > length:
            raise UnexpectedError
        kernels().gather_filled(data, positions, prefix, offsets, out)
        digits = _HEX_DIGITS[out[: int(offsets[-1])]].reshape(-1, 2 * length)
        texts = np.full((digits.shape[0], _UUID_TEXT), ord("-"), np.uint8)
        texts[:, _UUID_DIGITS] = digits
        starts = offsets // np.int32(length) * np.int32(_UUID_TEXT)
        return array(data_type, positions, has_nulls, starts, texts), 0

    return convert


def _text(column: Column, prefix: int, *, is_ascii: bool) -> Convert:
    data_type, by_value = arrow_type(column), _by_value(column)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        offsets, out = _measured(data, positions, prefix, 0)
        is_all_ascii = kernels().gather(data, positions, prefix, offsets, out)
        if not is_all_ascii and (is_ascii or not kernels().is_utf8(out, offsets)):
            return by_value(data, positions, has_nulls)
        return array(data_type, positions, has_nulls, offsets, out), 0

    return convert


def _recoded(column: Column, prefix: int, table: Bytes) -> Convert:
    data_type, by_value = arrow_type(column), _by_value(column)

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        offsets, out = _measured(data, positions, prefix, 0)
        if not kernels().gather(data, positions, prefix, offsets, out):
            new_offsets = np.empty_like(offsets)
            length = kernels().measure_table(out, offsets, table, new_offsets)
            if length < 0:
                return by_value(data, positions, has_nulls)
            new = np.empty(length + PADDING, np.uint8)
            kernels().recode_table(out, int(offsets[-1]), table, new)
            offsets, out = new_offsets, new
        return array(data_type, positions, has_nulls, offsets, out), 0

    return convert


def _measured(
    data: Bytes, positions: Positions, prefix: int, at_least: int
) -> tuple[Positions, Bytes]:
    """Offsets of strings, and room for their bytes."""
    offsets = np.empty(positions.shape[0] + 1, np.int32)
    length = _checked(kernels().measure(data, positions, prefix, at_least, offsets))
    return offsets, np.empty(length + PADDING, np.uint8)


@cache
def _utf8_table(charset: str) -> Bytes | None:
    """The UTF-8 of each byte of a character set in which every byte below 128 is ASCII."""
    decode = text_decoder(charset)
    table = np.zeros(4 * 256 + PADDING, np.uint8)
    if decode is None:
        return None
    for byte in range(256):
        try:
            text = decode(bytes((byte,))).encode()
        except UnicodeError:
            continue
        if len(text) > 3 or (byte < 128 and text != bytes((byte,))):
            return None
        table[4 * byte : 4 * byte + 1 + len(text)] = [len(text), *text]
    return table if _has_single_bytes(charset) else None


def _has_single_bytes(charset: str) -> bool:
    """True if every character of a character set is one byte."""
    return charset not in {
        *("big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"),
        *("ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4"),
    }


def _enum(column: Column) -> Convert:
    width = column.pack_length
    if not 1 <= width <= 2:
        return _by_value(column)
    members = column.members
    texts = range(1, 1 << (8 * width)) if members is None else members
    return _lenient(column, members_of(column, ["", *map(str, texts)], "enum"))


def _set(column: Column) -> Convert:
    if column.members is None or not 1 <= column.pack_length <= 8:
        return _by_value(column)
    if len(column.members) <= LISTED_MEMBERS_MAX:
        return _lenient(column, members_of(column, all_sets(column.members), "enum"))
    return _lenient(column, members_of(column, column.members, "set"))


def _lenient(column: Column, convert: Convert) -> Convert:
    """A conversion that gives numbers where members are a schema's, which may be an older one."""
    if not column.has_schema:
        return convert
    plainly = _by_value(column)

    def convert_leniently(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        try:
            return convert(data, positions, has_nulls)
        except UnexpectedError:
            return plainly(data, positions, has_nulls)

    return convert_leniently


def all_sets(members: Sequence[str]) -> list[str]:
    """The text of each value of a SET, which is then a number of one of them, as of an ENUM."""
    return [
        ",".join(member for place, member in enumerate(members) if value >> place & 1)
        for value in range(1 << len(members))
    ]


def members_of(column: Column, members: Sequence[str], kind: str) -> Convert:
    """Return the conversion of stored numbers into texts.

    Args:
        column: An ENUM or SET; also any other where a value is the number of a text.
        members: The texts, from that of 0 on; of kind `set` those of the bits.
        kind: Either `enum` or `set`: one text a value, or one a bit.
    """
    data_type, width = pa.string(), column.pack_length
    texts = [member.encode() for member in members]
    member_offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    member_bytes = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8).copy()
    measure_name, gather_name = {
        "enum": ("measure_members", "gather_members"),
        "set": ("measure_sets", "gather_sets"),
    }[kind]

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        offsets = np.empty(positions.shape[0] + 1, np.int32)
        measure = getattr(kernels(), measure_name)
        length = _checked(measure(data, positions, width, member_offsets, offsets))
        out = np.empty(length + PADDING, np.uint8)
        gather = getattr(kernels(), gather_name)
        gather(data, positions, width, member_offsets, member_bytes, offsets, out)
        return array(data_type, positions, has_nulls, offsets, out), 0

    return convert


def _null(column: Column) -> Convert:
    del column
    return lambda _, positions, __: (pa.nulls(positions.shape[0]), 0)


def _by_value(column: Column) -> Convert:
    return by_value(column, arrow_type(column), converter(arrow_type(column)))


def by_value(column: Column, data_type: pa.DataType, finish: Converter | None) -> Convert:
    """Return a conversion by the reference decoder, once for each distinct value of a few thousand.

    Args:
        column: The column whose values are decoded.
        data_type: The Arrow type of the array.
        finish: Turns decoded values into those of the array; None if they need no turning.
    """
    length, decode = value_bytes(column), value_decoder(column)
    cached: dict[bytes, object] = {}

    def convert(data: Bytes, positions: Positions, has_nulls: bool) -> Converted:  # noqa: FBT001
        view = data.data
        del has_nulls
        values: list[object] = []
        invalid = 0
        for position in positions.tolist():
            if position < 0:
                values.append(None)
                continue
            end = position + length
            if length < 0:
                end = position - length
                end += int.from_bytes(view[position:end], "little")
            stored = bytes(view[position:end])
            if stored not in cached:
                if len(cached) == _CACHED_VALUES_MAX:
                    cached.clear()
                cached[stored] = _decoded(decode, stored)
                if finish is not None and cached[stored] is not None:
                    cached[stored] = finish(cached[stored])
            values.append(cached[stored])
            invalid += cached[stored] is None
        return pa.array(values, data_type), invalid

    return convert


def _decoded(decode: ValueDecoder, stored: bytes) -> object:
    try:
        return decode(Reader(stored))
    except CodecError:
        raise UnexpectedError from None


def _checked(result: int) -> int:
    if result in {layout.CONVERT_DAMAGED, layout.CONVERT_TOO_LONG}:
        raise UnexpectedError
    return result


_CONVERSIONS: Final[Mapping[ColumnType, Callable[[Column], Convert]]] = MappingProxyType(
    {
        **dict.fromkeys(INTEGER_BYTES, _integer),
        ColumnType.FLOAT: _float,
        ColumnType.DOUBLE: _float,
        ColumnType.BIT: _bit,
        ColumnType.YEAR: _year,
        ColumnType.NEWDECIMAL: _decimal,
        ColumnType.DATE: _date,
        ColumnType.NEWDATE: _date,
        ColumnType.DATETIME2: _moment("datetimes"),
        ColumnType.TIMESTAMP2: _moment("timestamps"),
        ColumnType.TIME2: _time,
        ColumnType.ENUM: _enum,
        ColumnType.SET: _set,
        ColumnType.NULL: _null,
    }
)
