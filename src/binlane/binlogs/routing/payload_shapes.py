"""The shapes of MySQL's compressed transactions of rows.

The shape of a TRANSACTION_PAYLOAD is everything that the events inside of it say, but for row images,
literals in texts of rows, times and threads. A payload with anything but BEGIN, rows, their texts and
XID in it has no shape; neither has one that is damaged, or that may be a mark.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from binlane.binlogs.routing.cut_group import MARKS
from binlane.binlogs.routing.texts import TEXT_MAX, shape_of
from binlane.log.codec.payload import PayloadCompression
from binlane.log.codec.types import EventType
from binlane.names import TableName

if TYPE_CHECKING:
    import zstandard

Shape = tuple[bytes, ...]
"""What the events of a payload say, but for row images, literals, times and threads; a part each."""

_PLAIN_BYTES_MAX: Final = 4 << 20
_HEAD: Final = Struct("<4xB4xI4xH")  # of an event: type, length and flags
_HEAD_LENGTH: Final = 19
_QUERY: Final = int(EventType.QUERY)
_MAP: Final = int(EventType.TABLE_MAP)
_XID: Final = int(EventType.XID)
_UPDATE: Final = int(EventType.UPDATE_ROWS)
_ROWS: Final = frozenset(
    map(int, (EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS))
)
_TEXT: Final = int(EventType.ROWS_QUERY)
_XID_LENGTH: Final = 8
_CONTEXT: Final = 8
"""Bytes of a QUERY's body before its context: thread and duration, which differ each time."""
_BEGIN: Final = b"\0BEGIN"
_COMPRESSIONS: Final = tuple(map(int, PayloadCompression))
_ROWS_HEAD: Final = 8
_MAP_NAME: Final = 3 + 8  # of a part: behind type and flags, number of the table and its flags
_SIZE_FIELD, _COMPRESSION_FIELD, _PLAIN_SIZE_FIELD = 1, 2, 3
_PACKED_MARKS: Final = (252, 253, 254)
_MARK: Final = b"".join(
    bytes((len(name),)) + name.encode() + b"\0" for name in (MARKS.database, MARKS.table)
)


class ReadPayload(NamedTuple):
    """The contents of a payload of rows.

    Attributes:
        thread_id: The source's thread of the session that made it.
        compression: Compression that the payload has.
        plain: The events inside; empty where they were not kept.
    """

    shape: Shape
    thread_id: int
    compression: int = PayloadCompression.NONE
    plain: bytes = b""

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that it maps."""
        maps = (part[_MAP_NAME:] for part in self.shape if part[0] == _MAP)
        return frozenset(map(_mapped_table, maps))


class PayloadReader:
    """Reads payloads of one log."""

    def __init__(self) -> None:
        self._decompressor: zstandard.ZstdDecompressor | None = None

    def read(self, body: bytes) -> ReadPayload | None:
        """Read the body of a TRANSACTION_PAYLOAD; None if it has no shape."""
        found = self.unpacked(body)
        return None if found is None else _read_events(*found)

    def unpacked(self, body: bytes) -> tuple[int, bytes] | None:
        """The compression of a TRANSACTION_PAYLOAD and the events inside; None if it has no shape."""
        head = _read_head(body)
        if head is None or head[1] > _PLAIN_BYTES_MAX:
            return None
        compression, size, start = head
        plain = body[start:]
        if compression == PayloadCompression.ZSTD:
            unpacked = self._decompressed(plain, size)
            if unpacked is None:
                return None
            plain = unpacked
        return (compression, plain) if len(plain) == size else None

    def _decompressed(self, packed: bytes, size: int) -> bytes | None:
        import zstandard  # noqa: PLC0415  # few logs need it

        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor()
        try:
            # One byte more, which is not there unless the payload says too little.
            return self._decompressor.stream_reader(packed).read(size + 1)
        except zstandard.ZstdError:
            return None


def _mapped_table(names: bytes) -> TableName:
    """The table of a TABLE_MAP, from the length of its database on."""
    end = 1 + names[0]
    table = names[end + 2 : end + 2 + names[end + 1]]
    return TableName(
        names[1:end].decode("utf-8", "surrogateescape"), table.decode("utf-8", "surrogateescape")
    )


def _read_head(body: bytes) -> tuple[int, int, int] | None:
    """Compression, plain size, and the place of the payload; None if the fields are not the usual."""
    fields: dict[int, int] = {}
    at, end = 0, len(body)
    while at + 2 < end and (number := body[at]):
        length, first = body[at + 1], body[at + 2]
        stop = at + 2 + length
        if number in fields or not 1 <= length <= 9 or stop >= end:
            return None
        if length == 1:
            value = first
        elif first in _PACKED_MARKS and length == (3, 4, 9)[first - 252]:
            value = int.from_bytes(body[at + 3 : stop], "little")
        else:
            return None
        if length == 1 and first > 250:
            return None
        fields[number] = value
        at = stop
    start = at + 1
    if fields.keys() - {_SIZE_FIELD, _COMPRESSION_FIELD, _PLAIN_SIZE_FIELD}:
        return None
    compression = fields.get(_COMPRESSION_FIELD)
    if compression not in _COMPRESSIONS or fields.get(_SIZE_FIELD) != end - start:
        return None
    size = fields.get(_PLAIN_SIZE_FIELD)
    if size is None and compression == PayloadCompression.NONE:
        size = end - start
    return None if size is None else (compression, size, start)


def _read_events(compression: int, plain: bytes) -> ReadPayload | None:
    """The shape of a payload's events: BEGIN, texts, table maps and rows, and XID."""
    parts: list[bytes] = []
    at, size, kind = 0, len(plain), 0
    unpack = _HEAD.unpack_from
    while at + _HEAD_LENGTH <= size and kind != _XID:
        kind, length, flags = unpack(plain, at)
        body, stop = at + _HEAD_LENGTH, at + length
        if stop > size or length <= _HEAD_LENGTH:
            return None
        if (kind == _QUERY) is not (at == 0):
            return None
        part = _part(plain, kind, body, stop)
        if part is None:
            return None
        parts.append(bytes((kind, flags & 255, flags >> 8)) + part)
        at = stop
    if at != size or kind != _XID:
        return None
    thread_id = int.from_bytes(plain[_HEAD_LENGTH : _HEAD_LENGTH + 4], "little")
    return ReadPayload(tuple(parts), thread_id, compression, plain)


def _part(plain: bytes, kind: int, at: int, stop: int) -> bytes | None:
    """An event's part of the shape, from its body; None if the payload has no shape."""
    if kind in _ROWS:
        return _rows_part(plain, kind, at, stop)
    if kind == _MAP:
        part = plain[at:stop]
        return None if _MARK in part else part
    if kind == _QUERY:
        part = plain[at + _CONTEXT : stop]
        return part if part.endswith(_BEGIN) else None
    if kind == _TEXT and stop - at <= TEXT_MAX:
        return shape_of(plain[at + 1 : stop])
    return b"" if kind == _XID and stop - at == _XID_LENGTH else None


def _rows_part(plain: bytes, kind: int, at: int, stop: int) -> bytes | None:
    """All of a rows event before its images; None if it ends there or before."""
    place = at + _ROWS_HEAD
    place += plain[place] | plain[place + 1] << 8 if place + 1 < stop else stop
    if place >= stop or plain[place] > 250:
        return None
    bitmap = (plain[place] + 7) >> 3
    place += 1 + bitmap * (2 if kind == _UPDATE else 1)
    return plain[at:place] if place < stop else None
