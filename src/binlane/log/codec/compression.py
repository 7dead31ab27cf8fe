"""MariaDB's zlib compression: of whole statements and row images, and of single columns."""

from __future__ import annotations

import zlib
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import EVENT_LENGTH_MAX

_COLUMN_ZLIB: Final = 8
_COLUMN_RAW_DEFLATE: Final = 0x08
_RECORD: Final = 0x80
_RECORD_ALGORITHM: Final = 0x70
_LENGTH_BYTES: Final = 0x07


def decompress_record(record: bytes) -> bytes:
    """The statement or row images in a compressed event.

    A record begins with 0x80, the algorithm in bits 4 to 6 (0 is zlib) and the number of length
    bytes in bits 0 to 2; then come the plain length, big-endian, and the stream.

    Raises:
        CodecError: If the algorithm is unknown or the stream is broken.

    Source: MariaDB 10.11 sql/log_event.cc, binlog_buf_uncompress.
    """
    reader = Reader(record)
    head = reader.u8()
    length_bytes = head & _LENGTH_BYTES
    if not head & _RECORD or head & _RECORD_ALGORITHM or not 1 <= length_bytes <= 4:
        raise CodecError(f"0x{head:02X} begins no compressed record")
    length = int.from_bytes(reader.take(length_bytes), "big")
    return _inflate(reader.rest(), length)


def compress_record(plain: bytes) -> bytes:
    """Compress bytes for `decompress_record`."""
    length_bytes = max(1, (len(plain).bit_length() + 7) // 8)
    head = bytes((_RECORD | length_bytes,))
    return head + len(plain).to_bytes(length_bytes, "big") + zlib.compress(plain)


def rewritten_record(plain: bytes, record: bytes | None) -> bytes:
    """Return the record as it was written if it still has the same content; else a new one."""
    if record is not None and decompress_record(record) == plain:
        return record
    return compress_record(plain)


def decompress_column(record: bytes) -> bytes:
    """The value in a compressed column's record.

    A record is empty; or begins with 0, then the value as it is; or with the method in the upper
    four bits and the number of length bytes in the lower three, then the value's length,
    big-endian, and its stream.

    Raises:
        CodecError: If the method is unknown or the stream is broken.

    Source: MariaDB 10.11 sql/field_comp.cc.
    """
    if not record:
        return b""
    reader = Reader(record)
    head = reader.u8()
    if head == 0:
        return reader.rest()
    if head >> 4 != _COLUMN_ZLIB:
        raise CodecError(f"column compression method {head >> 4} is unknown")
    length = int.from_bytes(reader.take(head & _LENGTH_BYTES), "big")
    return _inflate(reader.rest(), length, is_raw=bool(head & _COLUMN_RAW_DEFLATE))


def _inflate(stream: bytes, length: int, *, is_raw: bool = False) -> bytes:
    """Decompress a zlib stream that must give exactly `length` bytes.

    Args:
        stream: The whole stream of compressed bytes.
        length: The length of the result, in bytes.
        is_raw: True if the stream lacks zlib's header and checksum.

    Raises:
        CodecError: If the stream is broken, or gives fewer or more bytes.
    """
    if length > EVENT_LENGTH_MAX:
        raise CodecError(
            f"a compressed value announces {length} bytes; {EVENT_LENGTH_MAX} are possible"
        )
    inflater = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
    try:
        data = inflater.decompress(stream, length + 1)
    except zlib.error as error:
        raise CodecError(f"a compressed value is broken: {error}") from None
    if len(data) != length or not inflater.eof or inflater.unused_data:
        raise CodecError(f"a compressed value does not give the {length} bytes that it announces")
    return data
