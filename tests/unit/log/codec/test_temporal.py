from __future__ import annotations

from collections.abc import Callable

import pytest

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.temporal import (
    datetime_decoder,
    decode_date,
    decode_old_datetime,
    decode_old_time,
    decode_old_timestamp,
    time_decoder,
    timestamp_decoder,
)


def decode(decoder: Callable[[Reader], str], data: str) -> str:
    reader = Reader(bytes.fromhex(data))
    value = decoder(reader)
    reader.finish()
    return value


@pytest.mark.parametrize(
    "data, text",
    [
        ((2024 << 9 | 2 << 5 | 29).to_bytes(3, "little").hex(), "2024-02-29"),
        ("000000", "0000-00-00"),
        ((2024 << 9).to_bytes(3, "little").hex(), "2024-00-00"),
    ],
)
def test_dates_may_be_zero_or_partial(data: str, text: str) -> None:
    assert decode(decode_date, data) == text


@pytest.mark.parametrize(
    "digits, data, text",
    [
        (0, "800000", "00:00:00"),
        (0, "b46efb", "838:59:59"),
        (0, "4b9105", "-838:59:59"),
        (0, "7fffff", "-00:00:01"),
        # The fraction of a negative time is negative, too.
        (1, "7fffffce", "-00:00:00.5"),
        (2, "80000005", "00:00:00.05"),
        (3, "7ffffffff6", "-00:00:00.001"),
        (6, "80000100000a", "00:00:01.000010"),
        (6, "7fffffffffff", "-00:00:00.000001"),
    ],
)
def test_times(digits: int, data: str, text: str) -> None:
    assert decode(time_decoder(digits), data) == text


@pytest.mark.parametrize(
    "digits, data, text",
    [
        (0, "8000000000", "0000-00-00 00:00:00"),
        (0, "99b27ac51e", "2024-01-29 12:20:30"),
        (1, "99b27ac51e32", "2024-01-29 12:20:30.5"),
        (3, "99b27ac51e1388", "2024-01-29 12:20:30.500"),
        (6, "99b27ac51e0f423f", "2024-01-29 12:20:30.999999"),
    ],
)
def test_datetimes(digits: int, data: str, text: str) -> None:
    assert decode(datetime_decoder(digits), data) == text


@pytest.mark.parametrize(
    "digits, data, text",
    [
        (0, "00000000", "0000-00-00 00:00:00"),
        (3, "000000000000", "0000-00-00 00:00:00.000"),
        (0, "00000001", "1970-01-01 00:00:01"),
        (0, "7fffffff", "2038-01-19 03:14:07"),
        # MariaDB 11.5 and later go on to 2106.
        (0, "ffffffff", "2106-02-07 06:28:15"),
        (6, "6553f10001e240", "2023-11-14 22:13:20.123456"),
    ],
)
def test_timestamps_are_in_utc(digits: int, data: str, text: str) -> None:
    assert decode(timestamp_decoder(digits), data) == text


def test_old_types_are_decimal_numbers() -> None:
    assert decode(decode_old_time, (8385959).to_bytes(3, "little").hex()) == "838:59:59"
    minus = (-1).to_bytes(3, "little", signed=True).hex()
    assert decode(decode_old_time, minus) == "-00:00:01"
    value = (20240229123456).to_bytes(8, "little").hex()
    assert decode(decode_old_datetime, value) == "2024-02-29 12:34:56"
    assert decode(decode_old_datetime, "00" * 8) == "0000-00-00 00:00:00"
    assert decode(decode_old_timestamp, "00000000") == "0000-00-00 00:00:00"
    assert decode(decode_old_timestamp, "00f15365") == "2023-11-14 22:13:20"


def test_numbers_that_no_server_writes_are_no_times() -> None:
    with pytest.raises(CodecError, match="is no TIME"):
        decode(decode_old_time, (6100).to_bytes(3, "little").hex())
    for value in (20241301000000, 20240132000000, 20240101240000, 99999999999999999):
        with pytest.raises(CodecError, match="is no DATETIME"):
            decode(decode_old_datetime, value.to_bytes(8, "little").hex())
    with pytest.raises(CodecError, match="a DATETIME is negative"):
        decode(datetime_decoder(0), "7fffffffff")
    with pytest.raises(CodecError, match="100 is no fraction of 2 digits"):
        decode(time_decoder(2), "80000064")
    with pytest.raises(CodecError, match="7 fractional digits"):
        timestamp_decoder(7)
