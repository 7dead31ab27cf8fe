"""The local time zone, a stretch of time at once: kernels add its distance from UTC."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final, NamedTuple

_DAY: Final = 86_400
_QUARTER: Final = 900


class Zone(NamedTuple):
    """The local time of a stretch of time.

    Attributes:
        start: The first second of it, since 1970.
        end: The first second behind it, since 1970.
        offset: Seconds by which local time is ahead of UTC.
        name: Name that the system gives it, such as `CEST`.
    """

    start: int
    end: int
    offset: int
    name: str


@lru_cache(maxsize=256)
def zone_at(timestamp: int) -> Zone:
    """The local time around a second since 1970."""
    offset, name = _local(timestamp)
    for span in (_DAY, _QUARTER):
        start = timestamp - timestamp % span
        if all(_local(edge) == (offset, name) for edge in (start, start + span - 1)):
            return Zone(start, start + span, offset, name)
    return Zone(timestamp, timestamp + 1, offset, name)


def _local(timestamp: int) -> tuple[int, str]:
    local = time.localtime(timestamp)
    return local.tm_gmtoff, local.tm_zone
