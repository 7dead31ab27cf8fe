"""Integers of MySQL's serialization library, as its tagged GTID event holds them.

The number of trailing one bits in the first byte says how many bytes follow; the value stands,
little-endian, in the bits that are left. Signed numbers keep their sign in the lowest bit.
"""

from __future__ import annotations

from typing import Final

from binlane.log.codec.buffer import Reader

# With eight trailing one bits there is nothing but the value behind the first byte.
_BYTES_MAX: Final = 9
_WHOLE_VALUE: Final = 0xFF


def read_varint(reader: Reader) -> int:
    """A number from 0 to 2^64-1, in 1 to 9 bytes.

    Raises:
        TruncatedError: If the bytes end inside.
    """
    first = reader.u8()
    if first == _WHOLE_VALUE:
        return reader.u64()
    ones = (~first & (first + 1)).bit_length() - 1
    rest = int.from_bytes(reader.take(ones), "little")
    return (rest << 8 | first) >> (ones + 1)


def write_varint(value: int) -> bytes:
    """The shortest form of a number from 0 to 2^64-1."""
    length = max(1, (value.bit_length() + 6) // 7)
    if length >= _BYTES_MAX:
        return bytes((_WHOLE_VALUE,)) + value.to_bytes(8, "little")
    ones = (1 << (length - 1)) - 1
    return (value << length | ones).to_bytes(length, "little")


def read_signed_varint(reader: Reader) -> int:
    """A number from -2^63 to 2^63-1."""
    value = read_varint(reader)
    return -(value >> 1) - 1 if value & 1 else value >> 1


def write_signed_varint(value: int) -> bytes:
    """The shortest form of a number from -2^63 to 2^63-1."""
    return write_varint(value << 1 if value >= 0 else (-value - 1) << 1 | 1)
