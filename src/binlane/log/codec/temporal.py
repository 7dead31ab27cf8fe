"""Dates and times of row images → the text that the server prints.

Zero and partial dates are values like all others; TIMESTAMP comes in UTC. The types without a 2 are
those of servers before 5.6 and of MariaDB with mysql56_temporal_format=OFF. MariaDB 5.3's
high-resolution types have the codes of the old ones and other lengths; the log does not tell them
apart, so the old types are checked for values that no server writes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader

FRACTION_DIGITS_MAX: Final = 6
_TIME_BIAS: Final = 0x800000
_DATETIME_BIAS: Final = 0x8000000000
# Not a time zone in sight: all arithmetic is on UTC.
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001
_ZERO_DATETIME: Final = "0000-00-00 00:00:00"
_HOUR_MAX: Final = 838
_YEAR_MAX: Final = 9999


def decode_date(reader: Reader) -> str:
    """Decode a DATE of three bytes: `2024-02-29`."""
    packed = reader.u24()
    return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}"


def time_decoder(digits: int) -> Callable[[Reader], str]:
    """Decoder of a TIME with `digits` digits of a fraction: `-838:59:59.000`."""
    fraction_length = _fraction_length(digits)
    bias = _TIME_BIAS << 8 * fraction_length

    def decode(reader: Reader) -> str:
        # A negative time is negative as one number, with its fraction.
        value = int.from_bytes(reader.take(3 + fraction_length), "big") - bias
        packed, fraction = divmod(abs(value), 1 << 8 * fraction_length)
        text = f"{packed >> 12:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}"
        return ("-" if value < 0 else "") + text + _fraction(fraction, digits)

    return decode


def datetime_decoder(digits: int) -> Callable[[Reader], str]:
    """Decoder of a DATETIME with `digits` digits of a fraction: `2024-02-29 12:00:00.000`."""
    fraction_length = _fraction_length(digits)

    def decode(reader: Reader) -> str:
        packed = int.from_bytes(reader.take(5), "big") - _DATETIME_BIAS
        if packed < 0:
            raise CodecError("a DATETIME is negative", offset=reader.offset)
        fraction = int.from_bytes(reader.take(fraction_length), "big")
        return datetime_text(packed) + _fraction(fraction, digits)

    return decode


def datetime_text(packed: int) -> str:
    """Year, month, day, hour, minute and second, packed as DATETIME2 and JSON have them."""
    day, time = packed >> 17, packed & 0x1FFFF
    year, month = divmod(day >> 5, 13)
    date = f"{year:04d}-{month:02d}-{day & 31:02d}"
    return f"{date} {time >> 12:02d}:{time >> 6 & 63:02d}:{time & 63:02d}"


def timestamp_decoder(digits: int) -> Callable[[Reader], str]:
    """Decoder of a TIMESTAMP with `digits` digits of a fraction, in UTC; 0 is the zero date."""
    fraction_length = _fraction_length(digits)

    def decode(reader: Reader) -> str:
        seconds = int.from_bytes(reader.take(4), "big")
        fraction = int.from_bytes(reader.take(fraction_length), "big")
        text = _timestamp_text(seconds) if seconds or fraction else _ZERO_DATETIME
        return text + _fraction(fraction, digits)

    return decode


def decode_old_time(reader: Reader) -> str:
    """Three bytes: the decimal number HHMMSS, signed."""
    value = int.from_bytes(reader.take(3), "little", signed=True)
    minutes, second = divmod(abs(value), 100)
    hour, minute = divmod(minutes, 100)
    if hour > _HOUR_MAX or minute > 59 or second > 59:
        raise CodecError(f"{value} is no TIME", offset=reader.offset)
    return f"{'-' if value < 0 else ''}{hour:02d}:{minute:02d}:{second:02d}"


def decode_old_datetime(reader: Reader) -> str:
    """Eight bytes: the decimal number YYYYMMDDhhmmss."""
    value = reader.u64()
    date, time = divmod(value, 1_000_000)
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    hour, minute, second = time // 10_000, time // 100 % 100, time % 100
    if year > _YEAR_MAX or month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        raise CodecError(f"{value} is no DATETIME", offset=reader.offset)
    return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"


def decode_old_timestamp(reader: Reader) -> str:
    """Four bytes: seconds since 1970, little-endian."""
    seconds = reader.u32()
    return _timestamp_text(seconds) if seconds else _ZERO_DATETIME


def _timestamp_text(seconds: int) -> str:
    return str(_EPOCH + timedelta(seconds=seconds))


def _fraction_length(digits: int) -> int:
    if digits > FRACTION_DIGITS_MAX:
        raise CodecError(
            f"a time has {digits} fractional digits; at most {FRACTION_DIGITS_MAX} are possible"
        )
    return (digits + 1) // 2


def _fraction(fraction: int, digits: int) -> str:
    """The fraction as printed: whole bytes hold an even number of digits, the last one 0 if odd."""
    if not digits:
        return ""
    stored_digits = digits + digits % 2
    if fraction >= 10**stored_digits:
        raise CodecError(f"{fraction} is no fraction of {digits} digits")
    return f".{fraction:0{stored_digits}d}"[: digits + 1]
