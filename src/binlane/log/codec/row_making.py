"""Rows of a prepared statement's result → the row images that the server's log has of them.

This is the reference, value by value and pure; `kernels.image_making` does the same for the forms
that it knows. Both flavors send the same binary values, which are exact: no number goes by a text
but a DECIMAL.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from struct import Struct
from types import MappingProxyType
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.numbers import packed_decimal
from binlane.log.codec.packets.framing import packed_bytes
from binlane.log.codec.types import Flavor

_NULL_OFFSET: Final = 2
_DATE: Final = Struct("<HBB")
_CLOCK: Final = Struct("<BBB")
_TIME_HEAD: Final = Struct("<BI")
_TIME_BIAS: Final = 0x800000
_DATETIME_BIAS: Final = 0x8000000000
_YEAR_BASE: Final = 1900
_COMPRESSED_FROM: Final = 100
_RAW_ZLIB: Final = 8 << 4 | 8


class CellForm(IntEnum):
    """Ways in which a value comes, and stands in an image."""

    WHOLE = 0
    """A little-endian number of `width` bytes, of which the first `size` stand in the image."""
    YEAR = 1
    DECIMAL = 2
    """`size` digits, `scale` of them behind the point."""
    DATE = 3
    TIME = 4
    """`scale` digits of a fraction, as for DATETIME and TIMESTAMP."""
    DATETIME = 5
    TIMESTAMP = 6
    COUNTED = 7
    """Bytes behind a length of `size` bytes."""
    PADDED = 8
    """The same without the zero bytes at their end."""
    BITS = 9
    """Big-endian in `size` bytes."""
    OLD_TIME = 10
    OLD_DATETIME = 11
    OLD_TIMESTAMP = 12
    COMPRESSED = 13
    """MariaDB's compressed columns; a length of `size` bytes stands before the record."""
    JSON = 14
    """MySQL's binary JSON, of what `json_making.json_expression` gives; a length of `size` bytes
    stands before it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The form of one column's values.

    Attributes:
        form: The kind of the form.
        width: Bytes of the value in the result; 0 if its length stands before it.
        size: The first number of the form.
        scale: The second number of the form.
    """

    form: CellForm
    width: int = 0
    size: int = 0
    scale: int = 0


class RowMaker:
    """Makes images of the rows of one result.

    Args:
        cells: The columns of the result, which are those of the table, in table order.
        key: Numbers of the key's columns, in the order of the key; empty: the whole image is the
            key.
        flavor: MariaDB sets the bits behind those that say what is NULL.
    """

    def __init__(self, cells: Sequence[Cell], key: Sequence[int], *, flavor: Flavor) -> None:
        self._makers = [(_READERS[cell.form], cell) for cell in cells]
        self._key = tuple(key)
        self._bitmap_length = (len(cells) + 7) // 8
        room = (1 << 8 * self._bitmap_length) - (1 << len(cells))
        self._filling = room if flavor is Flavor.MARIADB else 0

    def make(self, payload: bytes) -> tuple[bytes, bytes]:
        """Key and image of a row.

        Args:
            payload: The packet of the row.

        Raises:
            CodecError: If it is no such row, or a value has no place in its column's image.
        """
        reader = Reader(payload)
        if reader.u8():
            raise CodecError("a row of a result begins with another byte than 0")
        count = len(self._makers)
        bits = int.from_bytes(reader.take((count + _NULL_OFFSET + 7) // 8), "little")
        nulls = bits >> _NULL_OFFSET & ((1 << count) - 1)
        parts = []
        for index, (read, cell) in enumerate(self._makers):
            try:
                parts.append(b"" if nulls >> index & 1 else read(reader, cell))
            except (CodecError, ValueError, OverflowError) as error:
                raise CodecError(f"column {index + 1}: {error}") from None
        reader.finish()
        head = (nulls | self._filling).to_bytes(self._bitmap_length, "little")
        image = b"".join((head, *parts))
        if not self._key:
            return image, image
        return b"".join([parts[index] for index in self._key]), image


def _whole(reader: Reader, cell: Cell) -> bytes:
    return reader.take(cell.width)[: cell.size]


def _year(reader: Reader, cell: Cell) -> bytes:
    year = int.from_bytes(reader.take(cell.width), "little")
    return bytes((year - _YEAR_BASE if year else 0,))


def _decimal(reader: Reader, cell: Cell) -> bytes:
    return packed_decimal(packed_bytes(reader).decode("ascii"), cell.size, cell.scale)


def _moment(reader: Reader) -> tuple[int, int, int, int, int, int, int]:
    """Year, month, day, hour, minute, second, microsecond; zero where they are not sent."""
    data = Reader(reader.take(reader.u8()))
    year, month, day = data.unpack(_DATE) if data.remaining else (0, 0, 0)
    hour, minute, second = data.unpack(_CLOCK) if data.remaining else (0, 0, 0)
    micro = data.u32() if data.remaining else 0
    data.finish()
    return year, month, day, hour, minute, second, micro


def _clock(reader: Reader) -> tuple[bool, int, int, int, int]:
    """Sign, hours, minute, second, microsecond of a TIME."""
    data = Reader(reader.take(reader.u8()))
    negative, days = data.unpack(_TIME_HEAD) if data.remaining else (0, 0)
    hour, minute, second = data.unpack(_CLOCK) if data.remaining else (0, 0, 0)
    micro = data.u32() if data.remaining else 0
    data.finish()
    return bool(negative), days * 24 + hour, minute, second, micro


def _date(reader: Reader, cell: Cell) -> bytes:
    del cell
    year, month, day, *_ = _moment(reader)
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


def _fraction(micro: int, digits: int) -> tuple[int, int]:
    """A fraction as it is stored, and the bytes that it takes."""
    length = (digits + 1) // 2
    return micro // 100 ** (3 - length), length


def _time(reader: Reader, cell: Cell) -> bytes:
    negative, hours, minute, second, micro = _clock(reader)
    fraction, length = _fraction(micro, cell.scale)
    value = (hours << 12 | minute << 6 | second) << 8 * length | fraction
    bias = _TIME_BIAS << 8 * length
    return (bias - value if negative else bias + value).to_bytes(3 + length, "big")


def _datetime(reader: Reader, cell: Cell) -> bytes:
    year, month, day, hour, minute, second, micro = _moment(reader)
    fraction, length = _fraction(micro, cell.scale)
    packed = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    return (_DATETIME_BIAS + packed).to_bytes(5, "big") + fraction.to_bytes(length, "big")


def _seconds(moment: tuple[int, int, int, int, int, int, int]) -> int:
    """Seconds since 1970, of a moment in UTC; 0 is the zero date."""
    year, month, day, hour, minute, second, _ = moment
    if not year:
        return 0
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())


def _timestamp(reader: Reader, cell: Cell) -> bytes:
    moment = _moment(reader)
    fraction, length = _fraction(moment[6], cell.scale)
    return _seconds(moment).to_bytes(4, "big") + fraction.to_bytes(length, "big")


def _old_time(reader: Reader, cell: Cell) -> bytes:
    del cell
    negative, hours, minute, second, _ = _clock(reader)
    value = hours * 10_000 + minute * 100 + second
    return (-value if negative else value).to_bytes(3, "little", signed=True)


def _old_datetime(reader: Reader, cell: Cell) -> bytes:
    del cell
    year, month, day, hour, minute, second, _ = _moment(reader)
    date, time = year * 10_000 + month * 100 + day, hour * 10_000 + minute * 100 + second
    return (date * 1_000_000 + time).to_bytes(8, "little")


def _old_timestamp(reader: Reader, cell: Cell) -> bytes:
    del cell
    return _seconds(_moment(reader)).to_bytes(4, "little")


def _counted(reader: Reader, cell: Cell) -> bytes:
    data = packed_bytes(reader)
    return len(data).to_bytes(cell.size, "little") + data


def _padded(reader: Reader, cell: Cell) -> bytes:
    data = packed_bytes(reader).rstrip(b"\0")
    return len(data).to_bytes(cell.size, "little") + data


def _bits(reader: Reader, cell: Cell) -> bytes:
    return int.from_bytes(packed_bytes(reader), "big").to_bytes(cell.size, "big")


def _compressed(reader: Reader, cell: Cell) -> bytes:
    record = compressed_record(packed_bytes(reader))
    return len(record).to_bytes(cell.size, "little") + record


def compressed_record(data: bytes) -> bytes:
    """The record of a value in a compressed column, as MariaDB makes it by default.

    Source: MariaDB 10.11 sql/field_comp.cc, compress_zlib.
    """
    if not data:
        return b""
    if len(data) >= _COMPRESSED_FROM:
        length = (len(data).bit_length() + 7) // 8
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        stream = deflate.compress(data) + deflate.flush()
        record = bytes((_RAW_ZLIB | length,)) + len(data).to_bytes(length, "big") + stream
        if len(record) < len(data):
            return record
    return b"\0" + data


def _json(reader: Reader, cell: Cell) -> bytes:
    from binlane.log.codec.json_making import binary_json  # noqa: PLC0415  # few tables have JSON

    data = binary_json(packed_bytes(reader))
    return len(data).to_bytes(cell.size, "little") + data


_READERS: Final[Mapping[CellForm, Callable[[Reader, Cell], bytes]]] = MappingProxyType(
    {
        CellForm.WHOLE: _whole,
        CellForm.YEAR: _year,
        CellForm.DECIMAL: _decimal,
        CellForm.DATE: _date,
        CellForm.TIME: _time,
        CellForm.DATETIME: _datetime,
        CellForm.TIMESTAMP: _timestamp,
        CellForm.COUNTED: _counted,
        CellForm.PADDED: _padded,
        CellForm.BITS: _bits,
        CellForm.OLD_TIME: _old_time,
        CellForm.OLD_DATETIME: _old_datetime,
        CellForm.OLD_TIMESTAMP: _old_timestamp,
        CellForm.COMPRESSED: _compressed,
        CellForm.JSON: _json,
    }
)
