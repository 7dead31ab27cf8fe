r"""Literals as servers log them: each of these was read from the log of the server that is named."""

from __future__ import annotations

import pytest

from binlane.live.gateway.value_texts import LogStyle, logged
from binlane.log.codec.packets.execution import (
    DatetimeValue,
    DateValue,
    DecimalValue,
    TimeValue,
    Value,
)
from binlane.log.codec.types import Flavor

MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL
ALL = b'it\'s \\ "q" \0 \n \r \x1a \t % _'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"NULL"),
        (-(1 << 63), b"-9223372036854775808"),
        ((1 << 64) - 1, b"18446744073709551615"),
        (0.10000000149011612, b"0.10000000149011612"),
        (1.0000000150474662e30, b"1.0000000150474662e30"),
        (100000.0, b"100000"),
        (0.0, b"0"),
        (1e15, b"1e15"),
        (1e14, b"100000000000000"),
        (5e-324, b"5e-324"),
        (-2.5e-7, b"-0.00000025"),
        (123456789012345.67, b"123456789012345.67"),
        (12345678901234567890.0, b"1.2345678901234567e19"),
        (float("inf"), None),
        (float("nan"), None),
        (DecimalValue(b"1.50"), b"1.50"),
        (DecimalValue(b"-0.000"), b"0.000"),
        (DecimalValue(b"007.50"), b"7.50"),
        (DecimalValue(b"+5"), b"5"),
        (DecimalValue(b"-.5"), b"-0.5"),
        (DecimalValue(b"5."), b"5"),
        (DecimalValue(b"00"), b"0"),
        (DecimalValue(b"1.23E2"), None),
        (DecimalValue(b"."), None),
        (DecimalValue(b""), None),
        (DecimalValue(b"abc"), None),
        (DecimalValue(b"1" * 66), None),
        (DecimalValue(b"0." + b"1" * 31), None),
        (ALL, b"'it\\'s \\\\ \\\"q\\\" \\0 \\n \\r \\Z \t % _'"),
        ("é😀".encode(), b"'\xc3\xa9\xf0\x9f\x98\x80'"),
        (b"", b"''"),
        (DateValue(2021, 2, 29), None),
    ],
)
@pytest.mark.parametrize("flavor", [MARIADB, MYSQL])
def test_both_servers(value: Value, text: bytes | None, flavor: Flavor) -> None:
    assert logged(value, LogStyle(flavor, "utf8mb4", no_backslash_escapes=False)) == text


@pytest.mark.parametrize(
    ("value", "mariadb", "mysql"),
    [
        (-0.0, b"0", b"-0"),
        (-1.0000000031710769e-30, b"-1.0000000031710769e-30", b"-1.000000003171077e-30"),
        (-1.996150245444706e-194, b"-1.996150245444706e-194", b"-1.99615024544471e-194"),
        (-0.00012345678901234567, b"-0.00012345678901234567", None),
        (DateValue(2020, 2, 29), b"DATE'2020-02-29'", b"'2020-02-29'"),
        (DateValue(), b"DATE'0000-00-00'", b"'0000-00-00'"),
        (DateValue(2020, 0, 5), b"DATE'2020-00-05'", b"'2020-00-05'"),
        (
            DatetimeValue(2020, 2, 29),
            b"TIMESTAMP'2020-02-29 00:00:00'",
            b"'2020-02-29 00:00:00.000000'",
        ),
        (
            DatetimeValue(2020, 2, 29, 1, 2, 3, 4500),
            b"TIMESTAMP'2020-02-29 01:02:03.004500'",
            b"'2020-02-29 01:02:03.004500'",
        ),
        (TimeValue(False, 0, 1, 2, 3), b"TIME'01:02:03'", b"'01:02:03.000000'"),
        (TimeValue(True, 2, 1, 2, 3), b"TIME'-49:02:03'", b"'-49:02:03.000000'"),
        (TimeValue(True, 0, 1, 2, 3, 45), b"TIME'-01:02:03.000045'", b"'-01:02:03.000045'"),
        # Parts that are out of range: MariaDB makes something of them, MySQL refuses most.
        (TimeValue(True, 40, 1), b"TIME'-838:59:59'", None),
        (TimeValue(False, 0, 25, 0, 0), b"TIME'25:00:00'", b"'25:00:00.000000'"),
        (TimeValue(True, 0, 255, 0, 0), b"TIME'-255:00:00'", b"'-255:00:00.000000'"),
        (TimeValue(True), b"TIME'-00:00:00'", None),
        (TimeValue(True, 0, 1, 60), b"TIME'00:00:00'", None),
        (TimeValue(False, 0, 1, 59, 59, 1_000_000), b"TIME'00:00:00.000000'", None),
        (DateValue(2020, 13, 1), b"DATE'0000-00-00'", None),
        (DateValue(2020, 1, 32), b"DATE'0000-00-00'", None),
        (DatetimeValue(10_000, 1, 1), b"TIMESTAMP'0000-00-00 00:00:00'", None),
        (DatetimeValue(2020, 1, 1, 24), b"TIMESTAMP'0000-00-00 00:00:00'", None),
        (
            DatetimeValue(2020, 1, 1, 1, 0, 0, 1_000_000),
            b"TIMESTAMP'0000-00-00 00:00:00.000000'",
            None,
        ),
        # Bytes that are no characters.
        (
            bytes(range(128, 256, 16)),
            b"'\\\x80\\\x90\\\xa0\\\xb0\\\xc0\\\xd0\\\xe0\\\xf0'",
            b"'\x80\x90\xa0\xb0\xc0\\\xd0\\\xe0\\\xf0'",
        ),
        (b"a\xe2\x82", b"'a\\\xe2\\\x82'", b"'a\\\xe2\x82'"),
        (b"a\xed\xa0\x80b", b"'a\xed\xa0\x80b'", b"'a\\\xed\xa0\x80b'"),
    ],
)
def test_each_server(value: Value, mariadb: bytes | None, mysql: bytes | None) -> None:
    style = LogStyle(MARIADB, "utf8mb4", no_backslash_escapes=False)
    assert logged(value, style) == mariadb
    assert logged(value, style._replace(flavor=MYSQL)) == mysql


@pytest.mark.parametrize(
    ("charset", "value", "mariadb", "mysql"),
    [
        ("latin1", b"\xe9\x5c'", b"'\xe9\\\\\\''", b"'\xe9\\\\\\''"),
        ("binary", b"\xbf\x5c\x80", b"'\xbf\\\\\x80'", b"'\xbf\\\\\x80'"),
        # The servers log X'BF5CBF27' and 0xBF5CBF27, which replicas read as other characters.
        ("gbk", b"\xbf\x5c\xbf'", None, None),
        ("sjis", b"1", None, None),
        (
            "utf8mb3",
            "é😀".encode(),
            b"'\xc3\xa9\\\xf0\\\x9f\\\x98\\\x80'",
            b"'\xc3\xa9\xf0\x9f\x98\x80'",
        ),
        ("ujis", b"abc'", b"'abc\\''", b"'abc\\''"),
        ("ujis", b"\xa4\xa2", None, None),
    ],
)
def test_character_sets(
    charset: str, value: bytes, mariadb: bytes | None, mysql: bytes | None
) -> None:
    style = LogStyle(MARIADB, charset, no_backslash_escapes=False)
    assert logged(value, style) == mariadb
    assert logged(value, style._replace(flavor=MYSQL)) == mysql


def test_without_escapes() -> None:
    style = LogStyle(MARIADB, "utf8mb4", no_backslash_escapes=True)
    value = b'it\'s \\ "q" \0 \n \xe9'
    expected = b"'it''s \\ \"q\" \0 \n \xe9'"
    assert logged(value, style) == expected
    assert logged(value, style._replace(flavor=MYSQL)) == expected
