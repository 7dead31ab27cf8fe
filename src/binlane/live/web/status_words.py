"""The page's notation of numbers, sizes and times; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "not known"

_UNITS: Final = ("kB", "MB", "GB", "TB", "PB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def count_text(count: int) -> str:
    """Write a count with a comma between thousands."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number_text(number: float) -> str:
    """Three digits or more, and no more of a fraction than that: `0`, `0.25`, `12.5`, `1,234`."""
    if number >= 99.95 or number == 0:
        return f"{number:,.0f}"
    if number >= 9.995:
        return f"{number:.1f}"
    return f"{number:.2f}" if number >= 0.005 else f"{number:.2g}"


def size_text(size_bytes: float) -> str:
    """`512 B`, `3.20 kB`, `1.50 GB`: of 1,000 each."""
    power = 0
    while size_bytes / 1000**power >= 999.5 and power < len(_UNITS):
        power += 1
    if not power:
        return f"{number_text(size_bytes)} B"
    return f"{number_text(size_bytes / 1000**power)} {_UNITS[power - 1]}"


def exact_size(size_bytes: int) -> str:
    """Return `1.50 GB (1,500,000,123 bytes)`; small sizes are exact as they are."""
    if size_bytes < 1000:
        return counted(size_bytes, "byte")
    return f"{size_text(size_bytes)} ({size_bytes:,} bytes)"


def duration_text(seconds: float) -> str:
    """`0 s`, `0.35 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.005 else "0 s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        units = (_MINUTE, "min", 1, "s")
    elif whole < _DAY:
        units = (_HOUR, "h", _MINUTE, "min")
    else:
        units = (_DAY, "d", _HOUR, "h")
    big, big_name, small, small_name = units
    rest = whole % big // small
    return f"{whole // big:,} {big_name}" + (f" {rest} {small_name}" if rest else "")


def time_text(at_s: float) -> str:
    """`2026-11-23 09:15:42 UTC`; a time that no calendar has is given in seconds."""
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{at_s:.0f} s since 1970"


def clock_text(at_s: float) -> str:
    """Return `09:15`, in UTC."""
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M}"


def iso_text(at_s: float) -> str:
    """Return `2026-11-23T09:15:42Z`."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
