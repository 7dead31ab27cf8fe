"""MariaDB's types that its log shows as strings of bytes: addresses and UUIDs as text.

Only a schema beside the log says which column is one. Their bytes stand in the order of the text;
the log leaves out trailing zero bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from itertools import groupby
from struct import Struct
from types import MappingProxyType
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.strings import Bytes

_WORDS: Final = Struct(">8H")
_MAPPED: Final = 0xFFFF


class LogicalType(Enum):
    """The type that a schema gives a column whose type in the log is another; values are SQL's names."""

    INET4 = "INET4"
    INET6 = "INET6"
    UUID = "UUID"
    JSON = "JSON"
    """MariaDB's, which is text in the log and remains a string."""


LENGTHS: Final[Mapping[LogicalType, int]] = MappingProxyType(
    {LogicalType.INET4: 4, LogicalType.INET6: 16, LogicalType.UUID: 16}
)
"""Bytes of a value, for the types that have a decoder of their own."""


def logical_decoder(logical: LogicalType, read: Bytes) -> Callable[[Reader], str]:
    """Decoder of an address or UUID.

    Args:
        logical: One of the types in `LENGTHS`.
        read: Reads the bytes that are stored.

    Raises:
        CodecError: From the decoder, if there are more bytes than the type has.
    """
    length, text = LENGTHS[logical], _TEXTS[logical]

    def decode(reader: Reader) -> str:
        data = read(reader)
        if len(data) > length:
            raise CodecError(
                f"{logical.value} of {len(data)} bytes; it has {length}", offset=reader.offset
            )
        return text(data.ljust(length, b"\0"))

    return decode


def _inet4(data: bytes) -> str:
    return ".".join(map(str, data))


def _inet6(data: bytes) -> str:
    """As MariaDB prints it: the first longest run of zeros is a gap, even one of a single word.

    Source: measured on MariaDB 10.11.
    """
    words: tuple[int, ...] = _WORDS.unpack(data)
    start, length = _gap(words)
    if start == 0 and (length == 6 or (length == 5 and words[5] == _MAPPED)):
        mapped = "ffff:" if length == 5 else ""
        return f"::{mapped}{_inet4(data[12:])}"
    if not length:
        return _hexadecimal(words)
    return f"{_hexadecimal(words[:start])}::{_hexadecimal(words[start + length :])}"


def _gap(words: tuple[int, ...]) -> tuple[int, int]:
    """Return the start and length of the first longest run of zeros."""
    start, gap = 0, (0, 0)
    for is_zero, run in groupby(words, lambda word: word == 0):
        length = len(list(run))
        if is_zero and length > gap[1]:
            gap = (start, length)
        start += length
    return gap


def _hexadecimal(words: tuple[int, ...]) -> str:
    return ":".join(f"{word:x}" for word in words)


def _uuid(data: bytes) -> str:
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_TEXTS: Final[Mapping[LogicalType, Callable[[bytes], str]]] = MappingProxyType(
    {
        LogicalType.INET4: _inet4,
        LogicalType.INET6: _inet6,
        LogicalType.UUID: _uuid,
    }
)
