"""The common header and the checksum: one event ⇄ its bytes, with any body."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Final, Self

from binlane.errors import ChecksumError, CodecError, TruncatedError, UnsupportedError
from binlane.log.codec.body import Body
from binlane.log.codec.buffer import Reader
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format, knows_checksums
from binlane.log.codec.registry import REFUSED, body_type
from binlane.log.codec.types import EventType, HeaderFlag

_HEADER: Final = Struct("<IBIIIH")
_FLAGS_OFFSET: Final = 17
_TIMESTAMP_MASK: Final = (1 << 32) - 1
_OLD_HINT: Final = "let a MySQL 5.0 or later of its time read the file: mysqlbinlog FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHeader:
    """The 19 bytes before every event.

    Attributes:
        timestamp: Seconds since 1970 when the statement began.
        type_code: `EventType`, or a number that binlane does not know.
        server_id: The server that first wrote the event.
        length: The length of the whole event with header and checksum, in bytes.
        next_position: `end_log_pos` as written: 0 in artificial events and inside cached groups of
            MariaDB >= 11.7; 32 bits, so it wraps in files over 4 GiB.
        flags: The `HeaderFlag` bits as written.
    """

    timestamp: int
    type_code: int
    server_id: int
    length: int
    next_position: int
    flags: int

    @classmethod
    def decode(cls, data: bytes | memoryview) -> Self:
        """Decode the first 19 bytes of `data`.

        Raises:
            TruncatedError: If there are fewer.
        """
        if len(data) < HEADER_LENGTH:
            raise TruncatedError(
                f"an event header needs {HEADER_LENGTH} bytes, {len(data)} are left"
            )
        timestamp, type_code, server_id, length, next_position, flags = _HEADER.unpack_from(data)
        return cls(
            timestamp=timestamp,
            type_code=type_code,
            server_id=server_id,
            length=length,
            next_position=next_position,
            flags=flags,
        )

    def encode(self) -> bytes:
        """The 19 bytes; of a clock beyond 2106 the low 32 bits, as servers write it."""
        return _HEADER.pack(
            self.timestamp & _TIMESTAMP_MASK,
            self.type_code,
            self.server_id,
            self.length,
            self.next_position,
            self.flags,
        )

    @property
    def type_name(self) -> str:
        """Upper-case name of the type, `UNKNOWN` where binlane has none."""
        try:
            return EventType(self.type_code).name
        except ValueError:
            return "UNKNOWN"

    @property
    def is_ignorable(self) -> bool:
        """True if an event of a type that binlane does not know says that nobody needs it."""
        return self.type_name == "UNKNOWN" and bool(self.flags & HeaderFlag.IGNORABLE)


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        header: The header common to all events.
        body: The decoded body; an `OpaqueEvent` where the type has no decoder.
        position: The place of the event's first byte in its file; 0 outside of a file. An event
            inside a TRANSACTION_PAYLOAD stands where its carrier does.
        inner: Number of the event inside its TRANSACTION_PAYLOAD, from 1; 0 outside of one.
        carrier_length: Length of the TRANSACTION_PAYLOAD that holds it, 0 outside of one.
        header_tail: The bytes that a foreign writer has behind the common header, mostly none.
        post_header_tail: The bytes that such a writer has behind the fixed part of the body, mostly
            none.
        joined: The bytes of a whole rows event that was cut up, in its last piece.
        raw: The whole event as it was read; None in one that was made or changed here.
    """

    header: EventHeader
    body: Body
    position: int = 0
    inner: int = 0
    carrier_length: int = 0
    header_tail: bytes = b""
    post_header_tail: bytes = b""
    joined: bytes | None = field(default=None, compare=False, repr=False)
    raw: bytes | None = field(init=False, default=None, compare=False, repr=False)

    @property
    def next_position(self) -> int:
        """Start of the next event of the file: computed, since the header may say 0."""
        return self.position + (self.carrier_length or self.header.length)


def decode_event(data: bytes | memoryview, format_: Format | None, *, position: int = 0) -> Event:
    """Decode one whole event.

    Args:
        data: Exactly the event's bytes, with header and checksum.
        format_: The format of the FORMAT_DESCRIPTION before it; None only for the
            FORMAT_DESCRIPTION itself.
        position: The place of the event in its file.

    Raises:
        TruncatedError: If the bytes end before the event does.
        ChecksumError: If the CRC32 is wrong.
        CodecError: If the body is not what its type says; `offset` counts from the event's start.
    """
    header = EventHeader.decode(data)
    if header.length != len(data):
        raise TruncatedError(f"the event says {header.length} bytes, {len(data)} are there")
    event = _decode(data, header, format_, position)
    if isinstance(data, bytes):
        object.__setattr__(event, "raw", data)  # no argument, so that `replace` loses it
    return event


def _decode(
    data: bytes | memoryview, header: EventHeader, format_: Format | None, position: int
) -> Event:
    if header.type_code == EventType.FORMAT_DESCRIPTION:
        return Event(header, _decode_format_description(data, header), position)
    if header.type_code in REFUSED:
        raise UnsupportedError(REFUSED[header.type_code], hint=_OLD_HINT)
    if format_ is None:
        raise CodecError(
            f"{header.type_name} stands before any FORMAT_DESCRIPTION event",
            hint="read the file from its beginning; the file may be damaged",
        )
    end = len(data) - format_.checksum_length
    if end < HEADER_LENGTH:
        raise TruncatedError(f"an event of {header.length} bytes has no room for its checksum")
    if format_.checksum_length:
        _verify_checksum(data, end)
    if format_.header_length != HEADER_LENGTH or header.type_code in format_.foreign_lengths:
        return _decode_foreign(memoryview(data)[:end], header, format_, position)
    return Event(header, _decode_body(Reader(data, HEADER_LENGTH, end), header, format_), position)


def _decode_body(reader: Reader, header: EventHeader, format_: Format) -> Body:
    body = body_type(header.type_code).decode(reader, format_)
    reader.finish()
    return body


def _decode_foreign(data: memoryview, header: EventHeader, format_: Format, position: int) -> Event:
    """Decode an event with fields that binlane does not know; they are kept as they are."""
    reader = Reader(data, HEADER_LENGTH)
    # Readers must understand a ROTATE before they know the format.
    is_rotate = header.type_code == EventType.ROTATE
    header_tail = reader.take(0 if is_rotate else format_.header_length - HEADER_LENGTH)
    known, announced = format_.foreign_lengths.get(header.type_code, (0, 0))
    fixed, post_header_tail = reader.take(known), reader.take(announced - known)
    body = _decode_body(Reader(fixed + reader.rest()), header, format_)
    return Event(header, body, position, header_tail=header_tail, post_header_tail=post_header_tail)


def encode_event(event: Event, format_: Format | None) -> bytes:
    """Encode one event; length and checksum are computed, all else is written as it stands.

    Args:
        event: The event, whose `header.length` is not read.
        format_: The format that `decode_event` takes.
    """
    if isinstance(event.body, FormatDescriptionEvent):
        has_checksum = knows_checksums(event.body.server_version)
        body = event.body.encode()
    else:
        assert format_ is not None, "only FORMAT_DESCRIPTION stands before the format is known"
        has_checksum = format_.checksum_length > 0
        body = _encode_body(event, format_)
    length = HEADER_LENGTH + len(body) + (CHECKSUM_LENGTH if has_checksum else 0)
    data = replace(event.header, length=length).encode() + body
    return data + checksum(data).to_bytes(4, "little") if has_checksum else data


def _encode_body(event: Event, format_: Format) -> bytes:
    """Encode the body; a foreign writer's additions to fixed parts are zero in new events."""
    type_code = event.header.type_code
    body = event.body.encode(format_)
    if type_code in format_.foreign_lengths:
        known, announced = format_.foreign_lengths[type_code]
        body = body[:known] + event.post_header_tail.ljust(announced - known, b"\0") + body[known:]
    if format_.header_length != HEADER_LENGTH and type_code != EventType.ROTATE:
        body = event.header_tail.ljust(format_.header_length - HEADER_LENGTH, b"\0") + body
    return body


def checksum(data: bytes | memoryview) -> int:
    """CRC32 of an event's header and body; a FORMAT_DESCRIPTION counts as not in use."""
    is_format_description = data[4] == EventType.FORMAT_DESCRIPTION
    if is_format_description and data[_FLAGS_OFFSET] & HeaderFlag.BINLOG_IN_USE:
        cleared = bytearray(data)
        cleared[_FLAGS_OFFSET] &= ~HeaderFlag.BINLOG_IN_USE
        return zlib.crc32(cleared)
    return zlib.crc32(data)


def _verify_checksum(data: bytes | memoryview, end: int) -> None:
    stored = int.from_bytes(data[end : end + CHECKSUM_LENGTH], "little")
    computed = checksum(data[:end])
    if stored != computed:
        raise ChecksumError(
            f"checksum is {stored:08x}, the event's bytes give {computed:08x}",
            offset=end,
            hint="the file is damaged here: fetch it again from its source",
        )


def _decode_format_description(
    data: bytes | memoryview, header: EventHeader
) -> FormatDescriptionEvent:
    body = FormatDescriptionEvent.decode_whole(memoryview(data)[HEADER_LENGTH:])
    if knows_checksums(body.server_version):
        _verify_checksum(data, header.length - CHECKSUM_LENGTH)
    return body
