"""The events of a TRANSACTION_PAYLOAD as a window takes them: bytes, a piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from binlane.binlogs.cat.fast_text.text_window import TextWindow
from binlane.binlogs.store.byte_source import ChunkBytes
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.compression import decompress_record
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.inner import NEVER_INSIDE, expanded, payload_chunks


class Payload:
    """The inside of a TRANSACTION_PAYLOAD.

    The reference tells of all damage in the payload: it reads the payload again.

    Attributes:
        source: Decompressed bytes of the payload.

    Args:
        carrier: The event with the payload.
        body: Body of that event, with its compressed bytes.
        format_: Format of the event's file.
        file: Name of the file, for errors.
    """

    def __init__(
        self, carrier: Event, body: TransactionPayloadEvent, format_: Format, *, file: str
    ) -> None:
        self._carrier = carrier
        self._size = body.uncompressed_size
        self._format = format_
        self._plain_format = replace(format_, checksum=ChecksumAlgorithm.NONE)
        self._file = file
        self._pieces = payload_chunks(body)
        self._given = 0
        self.source = ChunkBytes(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        """Yield as many bytes as the payload announces; fewer if it is broken."""
        try:
            for chunk in self._pieces:
                piece = chunk[: self._size - self._given]
                self._given += len(piece)
                yield piece
                if len(piece) < len(chunk):
                    self._given = -1
                    return
        except CodecError:
            self._given = -1

    def event(self, window: TextWindow, number: int) -> Event:
        """The next event of a window.

        Args:
            window: Window over the payload's bytes.
            number: Number of the events before it.

        Raises:
            CodecError: If there is no event, as `expanded` tells it.
        """
        data = window.event_bytes()
        try:
            header = EventHeader.decode(data)
            is_whole = HEADER_LENGTH <= header.length == len(data)
            if is_whole and header.type_code not in NEVER_INSIDE:
                event = decode_event(data, self._plain_format, position=self._carrier.position)
                return replace(event, inner=number + 1, carrier_length=self._carrier.header.length)
        except CodecError:
            pass
        self._fail(number)
        raise AssertionError("the reference reads what is none")

    def finish(self, number: int) -> None:
        """Check that no bytes are left behind the last event.

        Raises:
            CodecError: If something is, or something is missing.
        """
        if self._given != self._size:
            self._fail(number)

    def _fail(self, number: int) -> None:
        events = expanded(self._carrier, self._format, file=self._file)
        for _ in islice(events, number + 1, None):
            pass


_ROWS_POST_HEADER: Final = 8
_TYPE_AT: Final = 4
_SERVER_ID: Final = slice(5, 9)
_END_AND_FLAGS: Final = slice(13, 19)


def plain_rows(data: bytes, *, checksum_length: int) -> bytes:
    """A compressed rows event of MariaDB → the plain one, which a BINLOG statement takes.

    Raises:
        CodecError: If its bytes are none.
    """
    reader = Reader(data, HEADER_LENGTH + _ROWS_POST_HEADER, len(data) - checksum_length)
    bitmap_length = (reader.packed_int() + 7) // 8
    type_code = data[_TYPE_AT] - (EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1)
    reader.take(bitmap_length * (1 + (type_code == EventType.UPDATE_ROWS_V1)))
    fixed = data[HEADER_LENGTH : reader.offset]
    images = decompress_record(reader.rest())
    length = HEADER_LENGTH + len(fixed) + len(images) + checksum_length
    plain = b"".join(
        (
            data[:_TYPE_AT],
            bytes((type_code,)),
            data[_SERVER_ID],
            length.to_bytes(4, "little"),
            data[_END_AND_FLAGS],
            fixed,
            images,
        )
    )
    return plain + zlib.crc32(plain).to_bytes(4, "little") if checksum_length else plain
