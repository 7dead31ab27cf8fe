"""Event groups as they stand in a file → the same groups, compressed as servers compress their logs.

MariaDB compresses the rows of an event and the text of a statement (`log_bin_compress`), MySQL all
of a transaction of rows (`binlog_transaction_compression`). Bytes compressed before stay as they
are, and so do those that would not become smaller.

Source: MariaDB 10.11 sql/log_event.cc and MySQL 9.7 sql/binlog.cc; measured on both. Two things are
ours: MariaDB asks the length of an event's first row, we that of all rows in it; MySQL takes what
comes of a compression even where it is longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent, compressed_query
from binlane.log.codec.rows import RowsEvent, compressed_rows
from binlane.log.codec.types import ROWS_TYPES, EventType, Flavor
from binlane.log.grouping.event_group import GTID_TYPES
from binlane.log.grouping.placing import fitted, place, shifted
from binlane.statements.sql.logged_statements import is_about_transactions

COMPRESSED_MIN: Final = 256
"""MariaDB's default of `log_bin_compress_min_len`: bytes of rows or text, below which they stay."""

_LEVEL: Final = 3  # MySQL's default of binlog_transaction_compression_level_zstd
_TYPE_AND_LENGTH: Final = Struct("<4xB4xI")
_LENGTH_AND_END: Final = Struct("<II")
_LENGTH_AT: Final = 9
_COMPRESSIBLE: Final = frozenset(
    {
        EventType.QUERY,
        EventType.WRITE_ROWS_V1,
        EventType.UPDATE_ROWS_V1,
        EventType.DELETE_ROWS_V1,
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
    }
)
_ENDS: Final = frozenset({EventType.XID, EventType.XA_PREPARE_LOG})
_INSIDE: Final = frozenset(
    {EventType.QUERY, EventType.TABLE_MAP, EventType.ROWS_QUERY, *ROWS_TYPES, *_ENDS}
)


class _Placed(NamedTuple):
    """An event in bytes that hold many.

    Attributes:
        start: Position of its first byte in the bytes.
        end: Position behind its checksum in the bytes.
    """

    type_code: int
    start: int
    end: int


def compressed(
    data: bytes | bytearray | memoryview, position: int, format_: Format
) -> bytes | bytearray | memoryview:
    """Whole events of whole groups, or of a piece of one, compressed.

    Args:
        data: The events as they stand at `position`.
        position: Position of the events in their file, before and after compression.
        format_: Format of the file's events.

    Returns:
        The events, compressed ones with types of their own; `data` itself where none is compressed.
    """
    view = memoryview(data)
    events = tuple(_events(view))
    if format_.flavor is Flavor.MARIADB:
        made = _compressed_events(view, events, position, format_)
    else:
        made = _compressed_groups(view, events, position, format_)
    return data if made is None else made


def knows_compressed(format_: Format) -> bool:
    """True if a reader of a file's FORMAT_DESCRIPTION is told of compressed events.

    MariaDB before 10.2 and MySQL before 8.0.20 do not know them. In a MySQL file with tables info
    nobody may compress: readers that did not ask for it get plain Query events, and those inside of
    a payload cannot be made plain at their place.
    """
    if format_.flavor is Flavor.MARIADB:
        return len(format_.post_header_lengths) >= EventType.DELETE_ROWS_COMPRESSED
    announced = len(format_.post_header_lengths) >= EventType.TRANSACTION_PAYLOAD
    return announced and not format_.has_tables_info


def _events(data: memoryview) -> Iterator[_Placed]:
    at, size = 0, len(data)
    while at < size:
        type_code, length = _TYPE_AND_LENGTH.unpack_from(data, at)
        yield _Placed(type_code, at, at + length)
        at += length


def _compressed_events(
    data: memoryview, events: Sequence[_Placed], position: int, format_: Format
) -> bytearray | None:
    """Events of MariaDB, each by itself; None where all stay."""
    out: bytearray | None = None
    least = COMPRESSED_MIN + HEADER_LENGTH
    for type_code, start, end in events:
        made = None
        if end - start >= least and type_code in _COMPRESSIBLE:
            made = _compressed_event(decode_event(bytes(data[start:end]), format_))
        if made is not None:
            out = bytearray(data[:start]) if out is None else out
            out += place(made, position + len(out), format_)
        elif out is not None:
            out += shifted(data[start:end], position + len(out), format_)
    return out


def _compressed_event(event: Event) -> Event | None:
    """A statement or rows, compressed; None where nothing would be gained."""
    body = event.body
    if isinstance(body, QueryEvent) and len(body.query) >= COMPRESSED_MIN:
        query = compressed_query(body)
        is_smaller = len(query.record or b"") < len(body.query)
        header = replace(event.header, type_code=EventType.QUERY_COMPRESSED)
        return Event(header, query) if is_smaller else None
    if isinstance(body, RowsEvent) and len(body.images) >= COMPRESSED_MIN:
        rows = compressed_rows(body)
        is_smaller = len(rows.images) < len(body.images)
        header = replace(event.header, type_code=rows.event_type)
        return Event(header, rows) if is_smaller else None
    return None


def _compressed_groups(
    data: memoryview, events: Sequence[_Placed], position: int, format_: Format
) -> bytearray | None:
    """Transactions of MySQL, each as a whole; None where all stay."""
    out: bytearray | None = None
    begins = [number for number, each in enumerate(events) if each.type_code in GTID_TYPES]
    # Events before the first group are the rest of a group that was written in pieces.
    for first, stop in pairwise(sorted({0, *begins, len(events)})):
        group = events[first:stop]
        made = None
        if _is_of_rows(data, group, format_):
            at = position + (group[0].start if out is None else len(out))
            made = _compressed_group(data, group, at, format_)
        if made is not None:
            out = bytearray(data[: group[0].start]) if out is None else out
            out += made
        elif out is not None:
            for _, start, end in group:
                out += shifted(data[start:end], position + len(out), format_)
    return out


def _is_of_rows(data: memoryview, group: Sequence[_Placed], format_: Format) -> bool:
    """True if a group is a whole transaction of rows of transactional engines, and nothing else.

    A group that ends with a COMMIT as its text has changed other engines' rows: MySQL does not
    compress it.
    """
    first, *inside = group
    if first.type_code not in GTID_TYPES or not inside or inside[-1].type_code not in _ENDS:
        return False
    if not _INSIDE.issuperset(each.type_code for each in inside):
        return False
    queries = (each for each in inside if each.type_code == EventType.QUERY)
    bodies = (decode_event(bytes(data[start:end]), format_).body for _, start, end in queries)
    return all(
        isinstance(body, QueryEvent) and is_about_transactions(body.query) for body in bodies
    )


def _compressed_group(
    data: memoryview, group: Sequence[_Placed], position: int, format_: Format
) -> bytes | None:
    """A transaction with its events in one; None where that is not smaller."""
    import zstandard  # noqa: PLC0415  # few binlogs need it

    first, begin, last = group[0], group[1], group[-1]
    inner = bytearray()
    for _, start, end in group[1:]:
        inner += _inner(data[start:end], format_)
    payload = TransactionPayloadEvent(
        compression=PayloadCompression.ZSTD,
        uncompressed_size=len(inner),
        payload=zstandard.ZstdCompressor(level=_LEVEL).compress(inner),
    )
    length = HEADER_LENGTH + len(payload.encode(format_)) + format_.checksum_length
    if length >= last.end - first.end:
        return None
    gtid = decode_event(bytes(data[first.start : first.end]), format_)
    assert isinstance(gtid.body, MysqlGtidEvent), "its type says so"
    others = length + HEADER_LENGTH + format_.checksum_length
    # The GTID event's logical timestamps are those of this file already.
    head = place(replace(gtid, body=fitted(gtid.body, others, format_, clock=0)), position, format_)
    began = decode_event(bytes(data[begin.start : begin.end]), format_)
    header = replace(began.header, type_code=EventType.TRANSACTION_PAYLOAD, flags=0)
    return head + place(Event(header, payload), position + len(head), format_)


def _inner(event: memoryview, format_: Format) -> bytes:
    """An event as it stands inside of a payload: without checksum, and without a place."""
    data = bytearray(event[: len(event) - format_.checksum_length])
    _LENGTH_AND_END.pack_into(data, _LENGTH_AT, len(data), 0)
    return bytes(data)
