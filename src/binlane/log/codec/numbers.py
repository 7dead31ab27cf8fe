"""Numbers of row images: integers, DECIMAL, FLOAT, DOUBLE, BIT and YEAR."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from struct import Struct
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader

_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_SIGNED: Final = {1: Struct("<b"), 2: Struct("<h"), 4: Struct("<i"), 8: Struct("<q")}
_UNSIGNED: Final = {1: Struct("<B"), 2: Struct("<H"), 4: Struct("<I"), 8: Struct("<Q")}
_YEAR_BASE: Final = 1900

# DECIMAL packs nine digits in four bytes, and a shorter group in as many bytes as it needs.
_GROUP_DIGITS: Final = 9
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def integer_decoder(length: int, *, is_unsigned: bool) -> Callable[[Reader], int]:
    """Decoder of a little-endian integer of 1, 2, 3, 4 or 8 bytes."""
    layout = (_UNSIGNED if is_unsigned else _SIGNED).get(length)
    if layout is not None:
        return lambda reader: int(reader.unpack(layout)[0])
    return lambda reader: int.from_bytes(reader.take(length), "little", signed=not is_unsigned)


def decode_float(reader: Reader) -> float:
    """Four bytes: the double with the FLOAT's exact value."""
    return float(reader.unpack(_FLOAT)[0])


def decode_double(reader: Reader) -> float:
    """Decode a DOUBLE of eight bytes."""
    return float(reader.unpack(_DOUBLE)[0])


def decode_year(reader: Reader) -> int:
    """One byte; 0 is the year 0000."""
    year = reader.u8()
    return year + _YEAR_BASE if year else 0


def bit_decoder(bits: int) -> Callable[[Reader], int]:
    """Decoder of a BIT(`bits`): big-endian in as few bytes as hold it."""
    length = (bits + 7) // 8
    return lambda reader: int.from_bytes(reader.take(length), "big")


def decimal_decoder(precision: int, scale: int) -> Callable[[Reader], Decimal]:
    """Decoder of a DECIMAL(`precision`, `scale`).

    Raises:
        CodecError: If the scale exceeds the precision.
    """
    if scale > precision:
        raise CodecError(f"DECIMAL({precision},{scale}) has more decimals than digits")
    length = decimal_length(precision, scale)
    return lambda reader: decimal_from_bytes(reader.take(length), precision, scale)


def decimal_length(precision: int, scale: int) -> int:
    """Bytes that a DECIMAL takes."""
    return sum(_GROUP_BYTES[digits] for digits in _group_digits(precision, scale))


def decimal_from_bytes(data: bytes, precision: int, scale: int) -> Decimal:
    """A DECIMAL with its full scale, `1.50` for DECIMAL(5,2).

    Args:
        data: The value in `decimal_length(precision, scale)` bytes.
        precision: The number of digits in all.
        scale: The number of digits after the point.

    Raises:
        CodecError: If the bytes hold more digits than there is room for.

    Source: strings/decimal.c, bin2decimal: big-endian groups; the sign is the inverted top bit,
    and a negative number has all its bits inverted.
    """
    reader = Reader(_positive(data))
    digits = ""
    for group in _group_digits(precision, scale):
        text = (
            f"{int.from_bytes(reader.take(_GROUP_BYTES[group]), 'big'):0{group}d}" if group else ""
        )
        if len(text) > group:
            raise CodecError(
                f"DECIMAL({precision},{scale}) has {text} where {group} digits have room"
            )
        digits += text
    reader.finish()
    whole = precision - scale
    sign = "-" if data and not data[0] & 0x80 else ""
    return Decimal(f"{sign}{digits[:whole] or '0'}.{digits[whole:]}")


def encode_decimal(text: str) -> bytes:
    """Precision, scale and the digits of a DECIMAL, as user variables have them.

    Args:
        text: The number's digits, with a sign and a point if need be.

    Source: MariaDB 10.11 strings/decimal.c `decimal2bin`.
    """
    whole, _, fraction = text.lstrip("+-").partition(".")
    precision, scale = len(whole) + len(fraction), len(fraction)
    return bytes((precision, scale)) + packed_decimal(text.lstrip("+"), precision, scale)


def packed_decimal(text: str, precision: int, scale: int) -> bytes:
    """The bytes of a DECIMAL(`precision`, `scale`) in a row image.

    Args:
        text: The number as a server prints it, perhaps with zeros before it.
        precision: The number of digits in all.
        scale: The number of digits after the point.

    Raises:
        CodecError: If there are more digits than there is room for.
    """
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = whole.lstrip("0").rjust(precision - scale, "0") + fraction.ljust(scale, "0")
    if len(digits) != precision or not digits.isdecimal():
        raise CodecError(f"{text} is no DECIMAL({precision},{scale})")
    data, start = b"", 0
    for group in _group_digits(precision, scale):
        end = start + group
        data += int(digits[start:end] or "0").to_bytes(_GROUP_BYTES[group], "big")
        start = end
    if text.startswith("-") and digits.strip("0"):
        data = bytes(byte ^ 0xFF for byte in data)
    return bytes((data[0] ^ 0x80,)) + data[1:]


def _positive(data: bytes) -> bytes:
    if not data:
        return data
    if data[0] & 0x80:
        return bytes((data[0] ^ 0x80,)) + data[1:]
    inverted = bytes(byte ^ 0xFF for byte in data)
    return bytes((inverted[0] ^ 0x80,)) + inverted[1:]


def _group_digits(precision: int, scale: int) -> list[int]:
    """Digits of each group, in order: the short group of the integer part stands first."""
    whole_groups, whole_rest = divmod(precision - scale, _GROUP_DIGITS)
    groups, rest = divmod(scale, _GROUP_DIGITS)
    return [whole_rest] + [_GROUP_DIGITS] * (whole_groups + groups) + [rest]
