from __future__ import annotations

import pytest

from binlane.live.web.status_words import (
    duration_text,
    exact_size,
    iso_text,
    number_text,
    size_text,
    time_text,
)


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0"),
        (0.0004, "0.0004"),
        (0.1, "0.10"),
        (9.994, "9.99"),
        (9.995, "10.0"),
        (99.94, "99.9"),
        (99.95, "100"),
        (1234567.8, "1,234,568"),
    ],
)
def test_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    "size, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (10**15, "1.00 PB"),
        (10**19, "10,000 PB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_exact_sizes() -> None:
    assert exact_size(1) == "1 byte"
    assert exact_size(711) == "711 bytes"
    assert exact_size(1_004_711) == "1.00 MB (1,004,711 bytes)"


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.0, "0 s"),
        (0.004, "0 s"),
        (0.35, "0.35 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (277_200, "3 d 5 h"),
        (10**9, "11,574 d 1 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_times() -> None:
    assert time_text(1_795_426_360) == "2026-11-23 09:32:40 UTC"
    assert iso_text(1_795_426_360.9) == "2026-11-23T09:32:40Z"
    assert time_text(10**18) == "1000000000000000000 s since 1970"
