"""Events and binlog files made for tests, byte for byte, where no real server is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from binlane.log.codec.body import Body
from binlane.log.codec.compression import compress_record
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader, encode_event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.registry import BODIES
from binlane.log.codec.rows import RowsEvent, TableMapEvent, WriteRowsV1Event
from binlane.log.codec.types import ChecksumAlgorithm, EventType, RowsFlag

SERVER_VERSION: Final = "10.11.19-MariaDB-log"
TIMESTAMP: Final = 1_700_000_000
TYPE_CODES: Final[Mapping[type, int]] = {body: code for code, body in BODIES.items()}
"""Event type by body class."""

_POST_HEADER_LENGTHS: Final[Mapping[int, int]] = {
    EventType.START_V3: 56,
    EventType.QUERY: 13,
    EventType.ROTATE: 8,
    EventType.FORMAT_DESCRIPTION: 228,
    EventType.TABLE_MAP: 8,
    EventType.WRITE_ROWS_V1: 8,
    EventType.UPDATE_ROWS_V1: 8,
    EventType.DELETE_ROWS_V1: 8,
    EventType.INCIDENT: 2,
    EventType.WRITE_ROWS: 10,
    EventType.UPDATE_ROWS: 10,
    EventType.DELETE_ROWS: 10,
    EventType.BINLOG_CHECKPOINT: 4,
    EventType.GTID: 19,
    EventType.GTID_LIST: 4,
    EventType.QUERY_COMPRESSED: 13,
    EventType.WRITE_ROWS_COMPRESSED_V1: 8,
    EventType.UPDATE_ROWS_COMPRESSED_V1: 8,
    EventType.DELETE_ROWS_COMPRESSED_V1: 8,
    EventType.WRITE_ROWS_COMPRESSED: 10,
    EventType.UPDATE_ROWS_COMPRESSED: 10,
    EventType.DELETE_ROWS_COMPRESSED: 10,
}


def format_description(
    *,
    server_version: str = SERVER_VERSION,
    checksum: ChecksumAlgorithm | None = ChecksumAlgorithm.CRC32,
    lengths: Mapping[int, int] = {},
) -> FormatDescriptionEvent:
    """A FORMAT_DESCRIPTION as MariaDB 10.11 writes it.

    Args:
        server_version: At most 50 bytes.
        checksum: None as a server writes it that knows no checksums.
        lengths: Post-header lengths that differ, by event type.
    """
    all_lengths = {**_POST_HEADER_LENGTHS, **lengths}
    return FormatDescriptionEvent(
        binlog_version=4,
        server_version_field=server_version.encode().ljust(50, b"\0"),
        created=0,
        header_length=19,
        post_header_lengths=bytes(all_lengths.get(code, 0) for code in range(1, 172)),
        checksum_algorithm=None if checksum is None else int(checksum),
    )


FORMAT: Final[Format] = format_description().format
"""The usual format: MariaDB, with CRC32."""
PLAIN_FORMAT: Final[Format] = format_description(checksum=ChecksumAlgorithm.NONE).format
"""MariaDB without checksums."""


def event(
    body: Body,
    *,
    type_code: int | None = None,
    next_position: int = 0,
    flags: int = 0,
    server_id: int = 1,
) -> Event:
    """An event around a body; its type follows from the body unless it is given."""
    header = EventHeader(
        timestamp=TIMESTAMP,
        type_code=TYPE_CODES[type(body)] if type_code is None else type_code,
        server_id=server_id,
        length=0,
        next_position=next_position,
        flags=flags,
    )
    return Event(header, body)


def log(*events: Event | Body, head: FormatDescriptionEvent | None = None) -> bytes:
    """A whole binlog file: magic, FORMAT_DESCRIPTION, then the events with their positions right."""
    head = head or format_description()
    data = MAGIC
    for item in (head, *events):
        made = item if isinstance(item, Event) else event(item)
        length = len(encode_event(made, head.format))
        header = replace(made.header, next_position=len(data) + length)
        data += encode_event(replace(made, header=header), head.format)
    return data


def table_map(
    *column_types: int,
    metadata: bytes = b"",
    optional_metadata: bytes = b"",
    table: str = "t",
    table_id: int = 7,
) -> TableMapEvent:
    """A TABLE_MAP of `shop`.`t` whose columns can all be NULL."""
    count = len(column_types)
    return TableMapEvent(
        table_id=table_id,
        flags=1,
        database="shop",
        table=table,
        column_types=bytes(column_types),
        metadata=metadata,
        null_bits=((1 << count) - 1).to_bytes((count + 7) // 8, "little"),
        optional_metadata=optional_metadata,
    )


def rows(
    column_count: int,
    images: bytes,
    *,
    kind: type[RowsEvent] = WriteRowsV1Event,
    present: int | None = None,
    present_after: int | None = None,
    table_id: int = 7,
) -> RowsEvent:
    """A rows event that ends its statement.

    Args:
        column_count: Columns of the table.
        images: Row images, plain; a compressed event gets a record of them.
        kind: Its class.
        present: Bits of the columns present; all by default.
        present_after: The same of an UPDATE's after images.
        table_id: Of its TABLE_MAP.
    """
    length, everything = (column_count + 7) // 8, (1 << column_count) - 1
    after = everything if present_after is None else present_after
    return kind(
        table_id=table_id,
        flags=RowsFlag.STMT_END,
        extra=b"" if kind.has_extra else None,
        column_count=column_count,
        columns_present=(everything if present is None else present).to_bytes(length, "little"),
        columns_present_after=after.to_bytes(length, "little") if kind.has_after_bitmap else None,
        images=compress_record(images) if kind.is_compressed else images,
    )
