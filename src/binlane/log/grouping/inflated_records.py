"""MariaDB's compressed statements and row images, inflated by the fastest decompressor there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isal import igzip_lib

from binlane.log.codec.format import EVENT_LENGTH_MAX
from binlane.log.grouping.unexpected import UnexpectedError

_IsalError: Any = igzip_lib.IsalError
_RECORD: Final = 0x80
_LENGTH_BYTES: Final = 0x07
_PIECE_BYTES: Final = 1 << 20


def inflated_record(record: memoryview) -> Iterator[bytes]:
    """Give the plain bytes of a compressed record in pieces.

    Raises:
        UnexpectedError: If they are not as many as the record announces; the reference decoder says
            why.
    """
    head = record[0] if record else 0
    length_bytes = head & _LENGTH_BYTES
    if head & ~_LENGTH_BYTES != _RECORD or not 1 <= length_bytes <= 4:
        raise UnexpectedError
    length = int.from_bytes(record[1 : 1 + length_bytes], "big")
    if length > EVENT_LENGTH_MAX:
        raise UnexpectedError
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_ZLIB)
    stream: memoryview | bytes = record[1 + length_bytes :]
    size = 0
    try:
        while not inflater.eof:
            plain = inflater.decompress(stream, min(_PIECE_BYTES, length + 1))
            stream = b""
            size += len(plain)
            if size > length or not (plain or inflater.eof):
                raise UnexpectedError
            yield plain
    except (_IsalError, EOFError):
        raise UnexpectedError from None
    if size != length or inflater.unused_data:
        raise UnexpectedError
