"""Columns as a TABLE_MAP describes them, and row images → their values.

This is the reference: one value at a time, exact before fast; `columnar` decodes batches and must
give the same. What a TABLE_MAP's bytes say is read by `table_metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec import numbers, strings, temporal
from binlane.log.codec.buffer import Reader
from binlane.log.codec.logical_types import LENGTHS, LogicalType, logical_decoder
from binlane.log.codec.rows import DeleteRowsEvent, PartialUpdateRowsEvent, RowsEvent
from binlane.log.codec.types import ColumnType

if TYPE_CHECKING:
    from binlane.log.codec.json_binary import JsonDocument
    from binlane.log.codec.json_diff import JsonDiffs


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
"""Stands for a column that a row image does not hold; a NULL is None."""

Value: TypeAlias = "int | float | Decimal | str | bytes | tuple[str, ...] | JsonDocument | JsonDiffs | Absent | None"
RowImage = tuple[Value, ...]
RowChange = tuple[RowImage | None, RowImage | None]
"""Before image and after image; an insert has no before image, a delete no after image."""
ValueDecoder = Callable[[Reader], Value]
_Row = TypeVar("_Row")

# Row images of MariaDB 5.3's high-resolution types are longer or shorter than these say.
_OLD_TEMPORAL: Final = frozenset({ColumnType.TIME, ColumnType.DATETIME, ColumnType.TIMESTAMP})
_ONE_BYTE_LENGTH_MAX: Final = 255
_PARTIAL_JSON: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a TABLE_MAP.

    Attributes:
        index: The column's number in the table, from 0.
        type: The real type: ENUM and SET are STRING in the log.
        metadata: The number that `mariadb-binlog -vv` prints; the properties below say what it
            means.
        is_nullable: True if it can be NULL.
        name: None unless the server logs full metadata.
        is_unsigned: None where the log does not tell, and for types without a sign.
        collation_id: The collation of a string, ENUM or SET; None where the log does not tell.
        members: The members of an ENUM or SET; None where the log does not tell.
        geometry_type: The type of a GEOMETRY: 0 any, 1 point … 7 collection; None where the log
            does not tell.
        in_primary_key: True if the log says that the primary key holds it.
        is_visible: False for an INVISIBLE column, where the log tells.
        dimensions: The dimensions of a MySQL VECTOR, where the log tells.
        logical: The type that a schema beside the log gives it, where that is more than its type.
        is_generated: True if such a schema says that its values are computed.
        has_schema: True if such a schema told some of this, so that a value which does not fit
            its members is given as its number.
    """

    index: int
    type: ColumnType
    metadata: int
    is_nullable: bool
    name: str | None = None
    is_unsigned: bool | None = None
    collation_id: int | None = None
    members: tuple[str, ...] | None = None
    geometry_type: int | None = None
    in_primary_key: bool = False
    is_visible: bool = True
    dimensions: int | None = None
    logical: LogicalType | None = None
    is_generated: bool = False
    has_schema: bool = False

    @property
    def precision(self) -> int:
        """Digits of a DECIMAL."""
        return self.metadata >> 8

    @property
    def scale(self) -> int:
        """Digits of a DECIMAL after the point."""
        return self.metadata & 0xFF

    @property
    def bits(self) -> int:
        """Width of a BIT."""
        return (self.metadata >> 8) * 8 + (self.metadata & 0xFF)

    @property
    def fraction_digits(self) -> int:
        """Digits of a TIME, DATETIME or TIMESTAMP after the point; old types have none."""
        return self.metadata

    @property
    def length_max(self) -> int:
        """Bytes that a CHAR, VARCHAR, BINARY or VARBINARY has room for.

        CHAR of more than 255 bytes keeps two bits of its length, inverted, in the type's byte.
        """
        if self.type is ColumnType.STRING:
            return (((self.metadata >> 4) & 0x300) ^ 0x300) + (self.metadata & 0xFF)
        return self.metadata

    @property
    def pack_length(self) -> int:
        """Bytes of an ENUM's number or a SET's bits."""
        return self.metadata & 0xFF


def value_decoder(column: Column) -> ValueDecoder:
    """Return the decoder of the column's values, never NULL, from a row image.

    Raises:
        CodecError: If the column's metadata is impossible.
        UnsupportedError: If its type cannot be decoded.
    """
    factory = _DECODERS.get(column.type)
    if factory is None:
        raise UnsupportedError(
            f"column {column.index + 1} is of type {column.type.name}, which cannot be decoded"
        )
    return factory(column)


def decode_rows(
    event: RowsEvent, columns: Sequence[Column], *, applies_diffs: bool = True
) -> Iterator[RowChange]:
    """Decode all rows of an event.

    Args:
        event: The event, whose bytes are not copied.
        columns: The columns of the table that `event.table_id` refers to.
        applies_diffs: True if a partially updated JSON value is given as the whole new document
            where the before image holds the old one; otherwise it is always `JsonDiffs`.

    Yields:
        Changes in log order; each image has one value a column, `ABSENT` where it lacks one.

    Raises:
        CodecError: If the images are not what the columns say; if that may be because of MariaDB
            5.3's high-resolution types it is an UnsupportedError, before any row is given.
    """
    yield from whole_or_unsupported(
        _decode_changes(event, columns, applies_diffs=applies_diffs), columns
    )


def whole_or_unsupported(rows: Iterator[_Row], columns: Sequence[Column]) -> Iterator[_Row]:
    """Yield rows as they come; tables with columns of an old temporal type give all rows or none.

    Raises:
        UnsupportedError: If rows with an old temporal type do not decode: they may be of MariaDB
            5.3's high-resolution types.
    """
    if any(column.type in _OLD_TEMPORAL for column in columns):
        try:
            rows = iter(list(rows))
        except CodecError as error:
            raise UnsupportedError(
                f"rows with a TIME, DATETIME or TIMESTAMP of an old type do not decode: {error}",
                offset=error.offset,
                hint="MariaDB 5.3's high-resolution types cannot be told apart in its log: "
                "rebuild the table with mysql56_temporal_format=ON",
            ) from None
    yield from rows


def _decode_changes(
    event: RowsEvent, columns: Sequence[Column], *, applies_diffs: bool
) -> Iterator[RowChange]:
    if event.column_count != len(columns):
        raise CodecError(
            f"rows have {event.column_count} columns, their TABLE_MAP has {len(columns)}",
            hint="an event is missing or damaged before this one",
        )
    decoders = [value_decoder(column) for column in columns]
    if isinstance(event, PartialUpdateRowsEvent):
        decode_change = _partial_decoder(event, columns, decoders, applies_diffs=applies_diffs)
    else:
        decode_change = _change_decoder(event, decoders)
    reader = Reader(event.plain_images)
    while reader.remaining:
        start = reader.offset
        change = decode_change(reader)
        if reader.offset == start:
            raise CodecError("bytes follow where row images have no columns", offset=start)
        yield change


def _change_decoder(
    event: RowsEvent, decoders: Sequence[ValueDecoder]
) -> Callable[[Reader], RowChange]:
    decode = _image_decoder(decoders, event.columns_present)
    if event.columns_present_after is not None:
        decode_after = _image_decoder(decoders, event.columns_present_after)
        return lambda reader: (decode(reader), decode_after(reader))
    if isinstance(event, DeleteRowsEvent):
        return lambda reader: (decode(reader), None)
    return lambda reader: (None, decode(reader))


def _partial_decoder(
    event: RowsEvent,
    columns: Sequence[Column],
    decoders: Sequence[ValueDecoder],
    *,
    applies_diffs: bool,
) -> Callable[[Reader], RowChange]:
    """Decoder of an update whose after image may hold JSON diffs.

    Its after image begins with options. With bit 0 a bitmap follows, of one bit for each JSON
    column of the table, present or not: its value is a length of 4 bytes and diffs.
    """
    decode_before = _image_decoder(decoders, event.columns_present)
    present_after = event.columns_present_after or b""
    decode_whole = _image_decoder(decoders, present_after)
    json_columns = [column.index for column in columns if column.type is ColumnType.JSON]
    bitmap_length = (len(json_columns) + 7) // 8

    def decode(reader: Reader) -> RowChange:
        before = decode_before(reader)
        if not reader.packed_int() & _PARTIAL_JSON:
            return before, decode_whole(reader)
        bits = int.from_bytes(reader.take(bitmap_length), "little")
        partial = list(decoders)
        for number, index in enumerate(json_columns):
            if bits >> number & 1:
                partial[index] = _diff_decoder(before[index] if applies_diffs else ABSENT)
        return before, _image_decoder(partial, present_after)(reader)

    return decode


def _diff_decoder(old: Value) -> ValueDecoder:
    """Decoder of a partially updated value; `old` is its document where the before image has it."""
    from binlane.log.codec.json_binary import JsonDocument  # noqa: PLC0415  # few tables have JSON
    from binlane.log.codec.json_diff import apply_diffs, decode_diffs  # noqa: PLC0415

    def decode(reader: Reader) -> Value:
        start = reader.offset
        diffs = decode_diffs(reader.take(reader.u32()))
        if old is ABSENT:
            return diffs
        if not isinstance(old, JsonDocument):
            raise CodecError("a partial update of JSON that was NULL before", offset=start)
        return apply_diffs(old, diffs.diffs)

    return decode


def _image_decoder(
    decoders: Sequence[ValueDecoder], columns_present: bytes
) -> Callable[[Reader], RowImage]:
    """Decoder of one row image.

    An image is a bitmap of NULLs over the columns that are present, then their values.
    """
    bits = int.from_bytes(columns_present, "little")
    present = [decoder if bits >> index & 1 else None for index, decoder in enumerate(decoders)]
    bitmap_length = (sum(decoder is not None for decoder in present) + 7) // 8

    def decode(reader: Reader) -> RowImage:
        nulls = int.from_bytes(reader.take(bitmap_length), "little")
        values: list[Value] = []
        for decoder in present:
            if decoder is None:
                values.append(ABSENT)
                continue
            values.append(None if nulls & 1 else decoder(reader))
            nulls >>= 1
        return tuple(values)

    return decode


def _integer(length: int) -> Callable[[Column], ValueDecoder]:
    return lambda column: numbers.integer_decoder(length, is_unsigned=bool(column.is_unsigned))


def _as_it_is(decoder: ValueDecoder) -> Callable[[Column], ValueDecoder]:
    return lambda _: decoder


def _decimal(column: Column) -> ValueDecoder:
    return numbers.decimal_decoder(column.precision, column.scale)


def _bit(column: Column) -> ValueDecoder:
    return numbers.bit_decoder(column.bits)


def _fraction(
    factory: Callable[[int], Callable[[Reader], str]],
) -> Callable[[Column], ValueDecoder]:
    return lambda column: factory(column.fraction_digits)


def _string_bytes(column: Column) -> strings.Bytes:
    return strings.counted_bytes(1 if column.length_max <= _ONE_BYTE_LENGTH_MAX else 2)


def _blob_bytes(column: Column) -> strings.Bytes:
    return strings.counted_bytes(column.metadata)


def _char(column: Column) -> ValueDecoder:
    if column.logical is not None and column.logical in LENGTHS:
        return logical_decoder(column.logical, _string_bytes(column))
    return strings.string_decoder(
        _string_bytes(column), collation_id=column.collation_id, fixed_length=column.length_max
    )


def _varchar(column: Column) -> ValueDecoder:
    return strings.string_decoder(_string_bytes(column), collation_id=column.collation_id)


def _varchar_compressed(column: Column) -> ValueDecoder:
    read = strings.decompressed(_string_bytes(column))
    return strings.string_decoder(read, collation_id=column.collation_id)


def _blob(column: Column) -> ValueDecoder:
    return strings.string_decoder(_blob_bytes(column), collation_id=column.collation_id)


def _blob_compressed(column: Column) -> ValueDecoder:
    read = strings.decompressed(_blob_bytes(column))
    return strings.string_decoder(read, collation_id=column.collation_id)


def _enum(column: Column) -> ValueDecoder:
    return strings.enum_decoder(column.pack_length, column.members, is_lenient=column.has_schema)


def _set(column: Column) -> ValueDecoder:
    return strings.set_decoder(column.pack_length, column.members, is_lenient=column.has_schema)


def _null(column: Column) -> ValueDecoder:
    del column
    return lambda _: None


def _json(column: Column) -> ValueDecoder:
    from binlane.log.codec.json_binary import decode_json  # noqa: PLC0415  # few tables have JSON

    read = _blob_bytes(column)
    return lambda reader: decode_json(read(reader))


_DECODERS: Final[Mapping[ColumnType, Callable[[Column], ValueDecoder]]] = MappingProxyType(
    {
        ColumnType.NULL: _null,
        ColumnType.TINY: _integer(1),
        ColumnType.SHORT: _integer(2),
        ColumnType.INT24: _integer(3),
        ColumnType.LONG: _integer(4),
        ColumnType.LONGLONG: _integer(8),
        ColumnType.FLOAT: _as_it_is(numbers.decode_float),
        ColumnType.DOUBLE: _as_it_is(numbers.decode_double),
        ColumnType.NEWDECIMAL: _decimal,
        ColumnType.BIT: _bit,
        ColumnType.YEAR: _as_it_is(numbers.decode_year),
        ColumnType.DATE: _as_it_is(temporal.decode_date),
        ColumnType.NEWDATE: _as_it_is(temporal.decode_date),
        ColumnType.TIME: _as_it_is(temporal.decode_old_time),
        ColumnType.DATETIME: _as_it_is(temporal.decode_old_datetime),
        ColumnType.TIMESTAMP: _as_it_is(temporal.decode_old_timestamp),
        ColumnType.TIME2: _fraction(temporal.time_decoder),
        ColumnType.DATETIME2: _fraction(temporal.datetime_decoder),
        ColumnType.TIMESTAMP2: _fraction(temporal.timestamp_decoder),
        ColumnType.STRING: _char,
        ColumnType.VARCHAR: _varchar,
        ColumnType.VAR_STRING: _varchar,
        ColumnType.VARCHAR_COMPRESSED: _varchar_compressed,
        ColumnType.TINY_BLOB: _blob,
        ColumnType.BLOB: _blob,
        ColumnType.MEDIUM_BLOB: _blob,
        ColumnType.LONG_BLOB: _blob,
        ColumnType.BLOB_COMPRESSED: _blob_compressed,
        ColumnType.ENUM: _enum,
        ColumnType.SET: _set,
        ColumnType.GEOMETRY: _blob_bytes,
        ColumnType.VECTOR: _blob_bytes,
        ColumnType.JSON: _json,
    }
)
