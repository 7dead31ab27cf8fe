"""MySQL's containers of whole transactions: TRANSACTION_PAYLOAD and the header of a large one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, Self

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.format import Format

_END, _PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_KNOWN: Final = frozenset({_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE})
_LARGE_TRANSACTION: Final = Struct("<BQB")


class PayloadCompression(IntEnum):
    """The compression of a payload's events."""

    ZSTD = 0
    NONE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPayloadEvent:
    """A transaction's events in one, mostly compressed; its GTID stands before it.

    Attributes:
        uncompressed_size: Bytes of the events inside.
        payload: The events, one after the other and without checksums, compressed.
        head: The fields before the payload as written; None in an event that was made here.
    """

    compression: int
    uncompressed_size: int
    payload: bytes
    head: bytes | None = None

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the fields and the compressed payload.

        Raises:
            CodecError: If a field is missing or stands twice, or the size is not the payload's.
            UnsupportedError: If the compression is unknown.
        """
        del format_
        start = reader.offset
        compression, uncompressed_size = read_payload_head(reader)
        end = reader.offset
        return cls(
            compression=compression,
            uncompressed_size=uncompressed_size,
            payload=reader.rest(),
            head=reader.between(start, end),
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        if self.head is not None:
            return self.head + self.payload
        size = len(self.payload)
        return payload_head(self.compression, self.uncompressed_size, size) + self.payload


def payload_head(compression: int, uncompressed_size: int, size: int) -> bytes:
    """The fields before a payload of some bytes, as servers write them."""
    values = {_COMPRESSION: compression}
    if compression != PayloadCompression.NONE:
        values[_UNCOMPRESSED_SIZE] = uncompressed_size
    values[_PAYLOAD_SIZE] = size
    fields = b""
    for number, value in values.items():
        packed = encode_packed_int(value)
        fields += bytes((number, len(packed))) + packed
    return fields + bytes((_END,))


def read_payload_head(reader: Reader) -> tuple[int, int]:
    """Read the fields before the payload, which is the rest.

    Returns:
        The compression and the uncompressed size.

    Raises:
        CodecError: As `TransactionPayloadEvent.decode`.
    """
    start = reader.offset
    fields = _read_fields(reader)
    if fields[_PAYLOAD_SIZE] != reader.remaining:
        raise CodecError(
            f"the payload says {fields[_PAYLOAD_SIZE]} bytes, {reader.remaining} are there",
            offset=reader.offset,
        )
    if fields[_COMPRESSION] not in tuple(PayloadCompression):
        raise UnsupportedError(
            f"payload compression {fields[_COMPRESSION]} is unknown", offset=start
        )
    return fields[_COMPRESSION], _uncompressed_size(fields, reader.offset)


def _uncompressed_size(fields: dict[int, int], offset: int) -> int:
    """Return the size inside; a payload that is not compressed need not say its size twice."""
    if _UNCOMPRESSED_SIZE in fields:
        return fields[_UNCOMPRESSED_SIZE]
    if fields[_COMPRESSION] != PayloadCompression.NONE:
        raise CodecError("the payload does not say its uncompressed size", offset=offset)
    return fields[_PAYLOAD_SIZE]


def _read_fields(reader: Reader) -> dict[int, int]:
    """Read the known fields and skip the others."""
    fields: dict[int, int] = {}
    while (number := reader.packed_int()) != _END:
        length, start = reader.packed_int(), reader.offset
        if number not in _KNOWN:
            reader.take(length)
            continue
        if number in fields:
            raise CodecError(f"payload field {number} stands twice", offset=start)
        fields[number] = reader.packed_int()
        if reader.offset != start + length:
            raise CodecError(f"payload field {number} is not {length} bytes long", offset=start)
    missing = {_PAYLOAD_SIZE, _COMPRESSION} - fields.keys()
    if missing:
        raise CodecError(f"payload field {min(missing)} is missing", offset=reader.offset)
    return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeTransactionHeaderEvent:
    """MySQL after 9.7: the body of one huge transaction follows.

    Attributes:
        version: The version of the format: 1.
        end_offset: The place of the event that ends the transaction.
        end_type: The type code of that event.
        padding: Bytes to the end of the event.
    """

    version: int
    end_offset: int
    end_type: int
    padding: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the fields of the payload."""
        del format_
        version, end_offset, end_type = reader.unpack(_LARGE_TRANSACTION)
        return cls(version=version, end_offset=end_offset, end_type=end_type, padding=reader.rest())

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        fixed = _LARGE_TRANSACTION.pack(self.version, self.end_offset, self.end_type)
        return fixed + self.padding
