"""Events of row-based logging: TABLE_MAP and the rows events. Row images stay bytes here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar, Final, Self

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.compression import compress_record, decompress_record
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType, RowsFlag
from binlane.names import TableName

DUMMY_TABLE_ID: Final = 0xFFFFFF
_SHORT_ID_POST_HEADER: Final = 6
_EXTRA_PARTITION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapEvent:
    """Gives a table id its meaning until the end of the statement.

    A table that is mapped need not be changed: MariaDB maps children of foreign keys too.

    Attributes:
        table_id: Number that rows events refer to.
        flags: The event's flags: 1 is BIT_LEN_EXACT.
        database: Name; the servers write it in UTF-8.
        table: Name; the servers write it in UTF-8.
        column_types: One `ColumnType` code a column.
        metadata: The metadata of all columns, packed by type.
        null_bits: A bit a column, least significant first: 1 can be NULL.
        optional_metadata: Type, length, value; `codec.table_metadata` tells what they say.
        has_short_id: True if the id has 4 bytes, as before 5.1.4.
    """

    table_id: int
    flags: int
    database: str
    table: str
    column_types: bytes
    metadata: bytes
    null_bits: bytes
    optional_metadata: bytes = b""
    has_short_id: bool = False

    @property
    def name(self) -> TableName:
        """Name of the table with that of its database."""
        return TableName(self.database, self.table)

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read ids, names, and the columns' bytes."""
        has_short_id = format_.post_header_length(EventType.TABLE_MAP) == _SHORT_ID_POST_HEADER
        table_id = reader.u32() if has_short_id else reader.u48()
        flags = reader.u16()
        database, table = _read_name(reader), _read_name(reader)
        column_count = reader.packed_int()
        column_types = reader.take(column_count)
        metadata = reader.take(reader.packed_int())
        return cls(
            table_id=table_id,
            flags=flags,
            database=database,
            table=table,
            column_types=column_types,
            metadata=metadata,
            null_bits=reader.take((column_count + 7) // 8),
            optional_metadata=reader.rest(),
            has_short_id=has_short_id,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return b"".join(
            (
                self.table_id.to_bytes(4 if self.has_short_id else 6, "little"),
                self.flags.to_bytes(2, "little"),
                _write_name(self.database),
                _write_name(self.table),
                encode_packed_int(len(self.column_types)),
                self.column_types,
                encode_packed_int(len(self.metadata)),
                self.metadata,
                self.null_bits,
                self.optional_metadata,
            )
        )


def _read_name(reader: Reader) -> str:
    name = reader.take(reader.u8())
    if reader.u8() != 0:
        raise CodecError("no NUL stands after a name", offset=reader.offset - 1)
    return name.decode("utf-8", "surrogateescape")


def _write_name(name: str) -> bytes:
    data = name.encode("utf-8", "surrogateescape")
    return bytes((len(data),)) + data + b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsEvent:
    """Row images of one table; the subclasses name the kind of change.

    Attributes:
        table_id: The id of a TABLE_MAP in the same statement.
        flags: The `RowsFlag` bits as written.
        extra: V2 only: what follows its length field; None in V1.
        column_count: The number of columns of the table.
        columns_present: Bitmap of the columns in the images, least significant bit first; of the
            before images in an UPDATE.
        columns_present_after: Bitmap of an UPDATE's after images, else None.
        images: One row image after the other; an UPDATE alternates before and after. As written: of a
            compressed event MariaDB's record of them, which `plain_images` reads.
        has_short_id: True if the id has 4 bytes.
    """

    event_type: ClassVar[EventType]
    has_extra: ClassVar[bool] = True
    has_after_bitmap: ClassVar[bool] = False
    is_compressed: ClassVar[bool] = False

    table_id: int
    flags: int
    extra: bytes | None
    column_count: int
    columns_present: bytes
    columns_present_after: bytes | None
    images: bytes
    has_short_id: bool = False

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read everything but the images, which are kept as bytes."""
        has_short_id = format_.post_header_length(cls.event_type) == _SHORT_ID_POST_HEADER
        table_id = reader.u32() if has_short_id else reader.u48()
        flags = reader.u16()
        extra = _read_extra(reader) if cls.has_extra else None
        column_count = reader.packed_int()
        bitmap_length = (column_count + 7) // 8
        columns_present = reader.take(bitmap_length)
        columns_present_after = reader.take(bitmap_length) if cls.has_after_bitmap else None
        return cls(
            table_id=table_id,
            flags=flags,
            extra=extra,
            column_count=column_count,
            columns_present=columns_present,
            columns_present_after=columns_present_after,
            images=reader.rest(),
            has_short_id=has_short_id,
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        extra = (
            b"" if self.extra is None else (len(self.extra) + 2).to_bytes(2, "little") + self.extra
        )
        return b"".join(
            (
                self.table_id.to_bytes(4 if self.has_short_id else 6, "little"),
                self.flags.to_bytes(2, "little"),
                extra,
                encode_packed_int(self.column_count),
                self.columns_present,
                self.columns_present_after or b"",
                self.images,
            )
        )

    @property
    def plain_images(self) -> bytes:
        """The row images, decompressed each time if they are compressed.

        Raises:
            CodecError: If their record is broken.
        """
        return decompress_record(self.images) if self.is_compressed else self.images

    @property
    def ends_statement(self) -> bool:
        """True if the statement's table maps are forgotten after this event."""
        return bool(self.flags & RowsFlag.STMT_END)

    @property
    def partition_ids(self) -> tuple[int, ...]:
        """MySQL: the partition of the rows; of an UPDATE the new one and the old one.

        Empty where `extra` does not tell.
        """
        if not self.extra or self.extra[0] != _EXTRA_PARTITION:
            return ()
        count = 2 if self.has_after_bitmap else 1
        ids = self.extra[1 : 1 + 2 * count]
        return tuple(int.from_bytes(ids[at : at + 2], "little") for at in range(0, len(ids), 2))


def _read_extra(reader: Reader) -> bytes:
    length = reader.u16()
    if length < 2:
        raise CodecError(
            f"extra data of {length} bytes cannot hold its own length", offset=reader.offset
        )
    return reader.take(length - 2)


class WriteRowsEvent(RowsEvent):
    """Rows that were inserted: after images."""

    __slots__ = ()
    event_type = EventType.WRITE_ROWS


class WriteRowsV1Event(WriteRowsEvent):
    """Inserted rows as MariaDB writes them."""

    __slots__ = ()
    event_type = EventType.WRITE_ROWS_V1
    has_extra = False


class WriteRowsCompressedV1Event(WriteRowsV1Event):
    """Inserted rows as MariaDB writes them with log_bin_compress."""

    __slots__ = ()
    event_type = EventType.WRITE_ROWS_COMPRESSED_V1
    is_compressed = True


class WriteRowsCompressedEvent(WriteRowsEvent):
    """Inserted rows in a form that MariaDB knows, though no server writes it."""

    __slots__ = ()
    event_type = EventType.WRITE_ROWS_COMPRESSED
    is_compressed = True


class UpdateRowsEvent(RowsEvent):
    """Rows that were changed: pairs of before and after images."""

    __slots__ = ()
    event_type = EventType.UPDATE_ROWS
    has_after_bitmap = True


class UpdateRowsV1Event(UpdateRowsEvent):
    """Updated rows as MariaDB writes them."""

    __slots__ = ()
    event_type = EventType.UPDATE_ROWS_V1
    has_extra = False


class UpdateRowsCompressedV1Event(UpdateRowsV1Event):
    """Updated rows as MariaDB writes them with log_bin_compress."""

    __slots__ = ()
    event_type = EventType.UPDATE_ROWS_COMPRESSED_V1
    is_compressed = True


class UpdateRowsCompressedEvent(UpdateRowsEvent):
    """Updated rows in a form that MariaDB knows, though no server writes it."""

    __slots__ = ()
    event_type = EventType.UPDATE_ROWS_COMPRESSED
    is_compressed = True


class PartialUpdateRowsEvent(UpdateRowsEvent):
    """MySQL with binlog_row_value_options=PARTIAL_JSON: after images may hold JSON diffs."""

    __slots__ = ()
    event_type = EventType.PARTIAL_UPDATE_ROWS


class DeleteRowsEvent(RowsEvent):
    """Rows that were deleted: before images."""

    __slots__ = ()
    event_type = EventType.DELETE_ROWS


class DeleteRowsV1Event(DeleteRowsEvent):
    """Deleted rows as MariaDB writes them."""

    __slots__ = ()
    event_type = EventType.DELETE_ROWS_V1
    has_extra = False


class DeleteRowsCompressedV1Event(DeleteRowsV1Event):
    """Deleted rows as MariaDB writes them with log_bin_compress."""

    __slots__ = ()
    event_type = EventType.DELETE_ROWS_COMPRESSED_V1
    is_compressed = True


class DeleteRowsCompressedEvent(DeleteRowsEvent):
    """Deleted rows in a form that MariaDB knows, though no server writes it."""

    __slots__ = ()
    event_type = EventType.DELETE_ROWS_COMPRESSED
    is_compressed = True


_PLAIN_KINDS: Final[Mapping[type[RowsEvent], type[RowsEvent]]] = MappingProxyType(
    {
        WriteRowsCompressedV1Event: WriteRowsV1Event,
        UpdateRowsCompressedV1Event: UpdateRowsV1Event,
        DeleteRowsCompressedV1Event: DeleteRowsV1Event,
        WriteRowsCompressedEvent: WriteRowsEvent,
        UpdateRowsCompressedEvent: UpdateRowsEvent,
        DeleteRowsCompressedEvent: DeleteRowsEvent,
    }
)

_COMPRESSED_KINDS: Final[Mapping[type[RowsEvent], type[RowsEvent]]] = MappingProxyType(
    {plain: kind for kind, plain in _PLAIN_KINDS.items()}
)


def uncompressed(event: RowsEvent) -> RowsEvent:
    """The same rows as an event that is not compressed.

    Raises:
        CodecError: If their record is broken.
    """
    kind = _PLAIN_KINDS.get(type(event))
    return event if kind is None else _as_kind(event, kind, event.plain_images)


def compressed_rows(event: RowsEvent) -> RowsEvent:
    """Return the same rows as MariaDB's compressed event; itself if its type has none."""
    kind = _COMPRESSED_KINDS.get(type(event))
    return event if kind is None else _as_kind(event, kind, compress_record(event.images))


def _as_kind(event: RowsEvent, kind: type[RowsEvent], images: bytes) -> RowsEvent:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return kind(**values | {"images": images})
