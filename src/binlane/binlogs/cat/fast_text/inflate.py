"""Events of rows that MariaDB has compressed, in plain form."""

from __future__ import annotations

import zlib
from typing import Final

from binlane.log.codec.buffer import Reader
from binlane.log.codec.compression import decompress_record
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.types import EventType

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
