"""Strings of row images: text and bytes, ENUM and SET."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.charsets import BINARY, charset_of, text_decoder
from binlane.log.codec.compression import decompress_column

Bytes = Callable[[Reader], bytes]
"""Reads a length and so many bytes."""


def counted_bytes(count_length: int) -> Bytes:
    """Reader of bytes behind their length, a little-endian integer of `count_length` bytes.

    Raises:
        CodecError: If no server writes such lengths.
    """
    if not 1 <= count_length <= 4:
        raise CodecError(f"a string's length has {count_length} bytes; 1 to 4 are possible")
    return lambda reader: reader.take(int.from_bytes(reader.take(count_length), "little"))


def string_decoder(
    read: Bytes, *, collation_id: int | None, fixed_length: int = 0
) -> Callable[[Reader], str | bytes]:
    """Decoder of a text or binary column.

    Args:
        read: Reads the bytes that are stored.
        collation_id: None where the log names none: then what is valid UTF-8 is text.
        fixed_length: The length of a BINARY column, whose trailing zero bytes the log leaves out.

    Returns:
        A decoder that gives bytes for `binary`, for a character set that cannot be decoded, and
        for bytes that mean nothing in their character set.
    """
    charset = "utf8mb4" if collation_id is None else charset_of(collation_id)
    if charset == BINARY and fixed_length:
        return lambda reader: read(reader).ljust(fixed_length, b"\0")
    decode = None if charset is None else text_decoder(charset)
    if decode is None:
        return read

    def decode_text(reader: Reader) -> str | bytes:
        data = read(reader)
        try:
            return decode(data)
        except UnicodeDecodeError:
            return data

    return decode_text


def enum_decoder(
    length: int, members: Sequence[str] | None, *, is_lenient: bool = False
) -> Callable[[Reader], str | int]:
    """Decoder of an ENUM: its member, "" for 0; the number where the members are unknown.

    Args:
        length: The bytes that the number takes.
        members: None where the log does not tell.
        is_lenient: True if the members come from elsewhere: a number beyond them is given as it is,
            no error.
    """

    def decode(reader: Reader) -> str | int:
        number = int.from_bytes(reader.take(length), "little")
        if number == 0:
            return ""
        if members is None or (is_lenient and number > len(members)):
            return number
        if number > len(members):
            raise CodecError(f"ENUM member {number} of {len(members)}", offset=reader.offset)
        return members[number - 1]

    return decode


def set_decoder(
    length: int, members: Sequence[str] | None, *, is_lenient: bool = False
) -> Callable[[Reader], tuple[str, ...] | int]:
    """Decoder of a SET: its members in order; the bits where the members are unknown.

    The arguments are those of `enum_decoder`.
    """

    def decode(reader: Reader) -> tuple[str, ...] | int:
        bits = int.from_bytes(reader.take(length), "little")
        if members is None or (is_lenient and bits >> len(members)):
            return bits
        if bits >> len(members):
            raise CodecError(f"SET bits {bits:b} of {len(members)} members", offset=reader.offset)
        return tuple(member for index, member in enumerate(members) if bits >> index & 1)

    return decode


def decompressed(read: Bytes) -> Bytes:
    """Reader of a column that MariaDB stores compressed."""
    return lambda reader: decompress_column(read(reader))
