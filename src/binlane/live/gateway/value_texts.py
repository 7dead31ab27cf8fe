r"""Form in which the servers log values of prepared statements: as literals in place of the `?`.

Measured on MariaDB 10.11 and MySQL 9.7, by statements that they were given and logged.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import MINYEAR
from functools import cache
from typing import Final, NamedTuple

from binlane.log.codec.packets.execution import (
    DatetimeValue,
    DateValue,
    DecimalValue,
    TimeValue,
    Value,
)
from binlane.log.codec.types import Flavor
from binlane.statements.sql.servers import bytes_per_character

_SIMPLE_ESCAPES: Final = {
    0x00: rb"\0",
    0x0A: rb"\n",
    0x0D: rb"\r",
    0x1A: rb"\Z",
    0x22: rb"\"",
    0x27: rb"\'",
    0x5C: rb"\\",
}
_IN_TURN: Final = [
    (bytes((byte,)), _SIMPLE_ESCAPES[byte]) for byte in sorted(_SIMPLE_ESCAPES, reverse=True)
]
"""The backslash comes first: escapes have one."""
_NO_TEXT: Final = frozenset(("big5", "cp932", "gbk", "gb18030", "sjis"))
"""Character sets in which a backslash may be half of a character.

The servers log strings in them as hexadecimal digits without a character set. A replica stores these bytes as
characters of the column's own, compares them as bytes, and MySQL takes them for a number where one is wanted. So
such a statement goes as rows.
"""
_PLAIN_DECIMAL: Final = re.compile(rb"([+-]?)0*([0-9]*)(?:\.([0-9]*))?")
_DECIMAL_DIGITS_MAX: Final = 65
_DECIMAL_SCALE_MAX: Final = 30
_FIXED_EXPONENTS: Final = range(-14, 16)
"""Places of the decimal point in a number's digits where the number is written without exponent."""
_MYSQL_FLOAT_WIDTH: Final = 22
_MARIADB_FLOAT_WIDTH: Final = 330
_WIDE_EXPONENT: Final = -3
_HOURS_MAX: Final = 838
_HOURS_OF_DAY: Final = 24
_INTEGER_MAX: Final = 0xFFFFFFFF
_HOURS: Final = range(24)
_SIXTY: Final = range(60)
_MICROSECONDS: Final = range(1_000_000)
_YEARS: Final = range(10_000)
_MONTHS: Final = range(13)
_DAYS_MAX: Final = 31


class LogStyle(NamedTuple):
    """Style in which a session's values are logged.

    Attributes:
        flavor: Flavor of the source server.
        charset: Value of the session's variable `character_set_client`.
        no_backslash_escapes: True if sql_mode has NO_BACKSLASH_ESCAPES.
    """

    flavor: Flavor
    charset: str
    no_backslash_escapes: bool


def quotes_strings(charset: str) -> bool:
    """True if strings are logged in quotes by sessions with a `character_set_client`."""
    return charset not in _NO_TEXT


def logged(value: Value, style: LogStyle) -> bytes | None:
    """The literal that a server logs for a value, in the session's character set.

    Returns:
        None where that is not known, or means something else to a replica.
    """
    if value is None:
        return b"NULL"
    if isinstance(value, bytes):
        return _string(value, style)
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return _float(value, style.flavor)
    if isinstance(value, DecimalValue):
        return _decimal(value.text)
    if isinstance(value, TimeValue):
        return _time(value, style.flavor)
    return _date(value, style.flavor)


def _string(data: bytes, style: LogStyle) -> bytes | None:
    charset = style.charset
    if charset in _NO_TEXT:
        return None
    if not data.isascii() and bytes_per_character(charset) > 1 and charset not in _UNICODE:
        return None
    if style.no_backslash_escapes:
        return b"'%s'" % data.replace(b"'", b"''")
    if data.isascii() or charset not in _UNICODE:
        for byte, escape in _IN_TURN:
            data = data.replace(byte, escape)
        return b"'%s'" % data
    return b"'%s'" % _unicode(style.flavor, charset).sub(_escaped, data)


def _escaped(found: re.Match[bytes]) -> bytes:
    byte = found[0]
    return _SIMPLE_ESCAPES.get(byte[0]) or (b"\\" + byte if len(byte) == 1 else byte)


_UNICODE: Final = frozenset(("utf8mb3", "utf8mb4", "utf8"))


@cache
def _unicode(flavor: Flavor, charset: str) -> re.Pattern[bytes]:
    """Give the pattern of bytes that are escaped in UTF-8, and of whole characters, which are not.

    MariaDB puts a backslash before every byte that belongs to no character, MySQL before those that
    begin characters of several bytes. MariaDB's UTF-8 has surrogates.
    """
    is_mysql = flavor is Flavor.MYSQL
    three = rb"\xED[\x80-\x9F][\x80-\xBF] | [\xE1-\xEC\xEE\xEF]" if is_mysql else rb"[\xE1-\xEF]"
    four = (
        rb"""| \xF0[\x90-\xBF][\x80-\xBF]{2} | [\xF1-\xF3][\x80-\xBF]{3}
             | \xF4[\x80-\x8F][\x80-\xBF]{2}"""
        if charset == "utf8mb4"
        else b""
    )
    last_first = rb"\xF7" if charset == "utf8mb4" else rb"\xEF"
    stray = rb"[\xC2-%s]" % last_first if is_mysql else rb"[\x80-\xFF]"
    return re.compile(
        rb"""[\0\n\r\x1a"'\\] | [\xC2-\xDF][\x80-\xBF] | \xE0[\xA0-\xBF][\x80-\xBF]
           | %s[\x80-\xBF]{2} %s | %s"""
        % (three, four, stray),
        re.VERBOSE,
    )


def _float(value: float, flavor: Flavor) -> bytes | None:
    """A double with the fewest digits that tell it, as `my_gcvt` writes it."""
    if value == 0:
        return b"-0" if flavor is Flavor.MYSQL and str(value) == "-0.0" else b"0"
    if value - value != 0:
        return None  # no number
    sign = b"-" if value < 0 else b""
    width = _MYSQL_FLOAT_WIDTH if flavor is Flavor.MYSQL else _MARIADB_FLOAT_WIDTH
    width -= len(sign)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    all_digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(all_digits))
    digits = all_digits.rstrip("0")
    count = len(digits)
    fixed_length = count - point + 2 if point <= 0 else max(count + (point < count), point)
    if fixed_length <= width:
        if point in _FIXED_EXPONENTS or 0 < point < count:
            return sign + _fixed(digits, point).encode()
    elif _WIDE_EXPONENT <= point <= width:
        return None  # digits are cut off
    text = _scientific(digits, point)
    if len(text) > width:
        room = width - len(f"e{point - 1}") - 1
        rounded, _, new_exponent = f"{abs(value):.{room - 1}e}".partition("e")
        text = f"{rounded.rstrip('0').rstrip('.')}e{int(new_exponent)}"
    return sign + text.encode()


def _fixed(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits.ljust(point, "0")
    return f"{digits[:point]}.{digits[point:]}"


def _scientific(digits: str, point: int) -> str:
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1}"


def _decimal(text: bytes) -> bytes | None:
    found = _PLAIN_DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction = found[1], found[2], found[3] or b""
    if len(text) <= len(sign) + (found[3] is not None) and not whole:
        return None  # no digit
    if len(whole) + len(fraction) > _DECIMAL_DIGITS_MAX or len(fraction) > _DECIMAL_SCALE_MAX:
        return None
    number = (whole or b"0") + (b"." + fraction if fraction else b"")
    is_negative = sign == b"-" and bool(number.strip(b"0."))
    return b"-" + number if is_negative else number


def _time(value: TimeValue, flavor: Flavor) -> bytes | None:
    hours = (value.days * _HOURS_OF_DAY + value.hour) & _INTEGER_MAX
    minute, second, microsecond = value[3:]
    is_negative = value.is_negative
    if flavor is Flavor.MYSQL and (hours > _HOURS_MAX or (is_negative and not any(value[1:]))):
        return None  # the one is refused, for the other it logs no time
    if hours > _HOURS_MAX:
        hours, minute, second = _HOURS_MAX, 59, 59
    if not _is_clock(0, minute, second, microsecond):
        if flavor is Flavor.MYSQL:
            return None
        is_negative, hours, minute, second, microsecond = False, 0, 0, 0, 0
    text = (b"-" if is_negative else b"") + b"%02d:%02d:%02d" % (hours, minute, second)
    return _quoted(b"TIME", text + _fraction(microsecond, value.microsecond, flavor), flavor)


def _date(value: DateValue | DatetimeValue, flavor: Flavor) -> bytes | None:
    """A date, with its time if it has one; of parts out of range MariaDB makes none at all."""
    year, month, day = value[:3]
    hour, minute, second, microsecond = value[3:] or (0, 0, 0, 0)
    is_there = year in _YEARS and month in _MONTHS and day <= _DAYS_MAX
    if not is_there or not _is_clock(hour, minute, second, microsecond):
        if flavor is Flavor.MYSQL:
            return None  # it refuses them
        year, month, day, hour, minute, second, microsecond = 0, 0, 0, 0, 0, 0, 0
    elif not _is_date(year, month, day):
        return None  # no replica takes that for sure
    text = b"%04d-%02d-%02d" % (year, month, day)
    if isinstance(value, DateValue):
        return _quoted(b"DATE", text, flavor)
    text += b" %02d:%02d:%02d" % (hour, minute, second)
    return _quoted(b"TIMESTAMP", text + _fraction(microsecond, value.microsecond, flavor), flavor)


def _is_date(year: int, month: int, day: int) -> bool:
    return not month or year < MINYEAR or day <= monthrange(year, month)[1]


def _is_clock(hour: int, minute: int, second: int, microsecond: int) -> bool:
    return hour in _HOURS and minute in _SIXTY and second in _SIXTY and microsecond in _MICROSECONDS


def _fraction(microsecond: int, given: int, flavor: Flavor) -> bytes:
    """Microseconds, which MariaDB writes where it was given some."""
    return b".%06d" % microsecond if given or flavor is Flavor.MYSQL else b""


def _quoted(word: bytes, text: bytes, flavor: Flavor) -> bytes:
    return b"'%s'" % text if flavor is Flavor.MYSQL else b"%s'%s'" % (word, text)
