"""Rates of binlogs over the last hour, in memory; pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

SAMPLE_S: Final = 10.0
"""Interval of samples."""

WINDOW_S: Final = 3600.0
STEP_S: Final = 30.0
"""The time over which a shown rate is taken."""

_SAMPLES_MAX: Final = round(WINDOW_S / SAMPLE_S) + 1


class Written(NamedTuple):
    """Amounts written to a binlog since the process began; they only grow.

    Attributes:
        event_groups: The number of event groups.
        size_bytes: The bytes of the binlog's files.
    """

    event_groups: int
    size_bytes: int


class Peak(NamedTuple):
    """The highest rate between two samples.

    Attributes:
        rate: The rate in units a second.
        at_s: The time when the interval of that rate ended, in seconds since 1970.
    """

    rate: float
    at_s: float


@dataclass(frozen=True, slots=True)
class Series:
    """One rate over the window.

    Attributes:
        values: A second, over `STEP_S` each, the newest last; None from before the first sample.
        last: Between the last two samples; None before there are two.
        peak: The highest between two samples; None likewise.
    """

    values: tuple[float | None, ...]
    last: float | None
    peak: Peak | None


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates at which a binlog grew.

    Attributes:
        since_at_s: The first sample; None before one.
        until_at_s: The last one, where the windows of both series end.
        event_groups: Event groups a second, in windows.
        size_bytes: Bytes a second, in windows.
    """

    since_at_s: float | None
    until_at_s: float | None
    event_groups: Series
    size_bytes: Series


_NO_SERIES: Final = Series((None,) * round(WINDOW_S / STEP_S), None, None)
NO_RATES: Final = Rates(None, None, _NO_SERIES, _NO_SERIES)


class History:
    """Amounts written to binlogs, at the times of the last samples.

    It holds an hour: some ten kilobytes for each binlog.
    """

    def __init__(self) -> None:
        self._times: array[float] = array("d")
        self._written: dict[int, tuple[array[float], array[float]]] = {}

    def sample(self, at_s: float, written: Mapping[int, Written]) -> None:
        """Note the present values; values that are not named are forgotten.

        Args:
            at_s: Seconds since 1970. A clock that was set back begins anew.
            written: The amounts by the binlog's id.
        """
        if self._times and at_s <= self._times[-1]:
            self._times, self._written = array("d"), {}
        self._times.append(at_s)
        _trim(self._times)
        kept = {}
        for key, (event_groups, size_bytes) in written.items():
            groups, sizes = self._written.get(key, (array("d"), array("d")))
            groups.append(event_groups)
            sizes.append(size_bytes)
            _trim(groups)
            _trim(sizes)
            kept[key] = groups, sizes
        self._written = kept

    def rates(self, key: int) -> Rates:
        """The rates of a binlog; `NO_RATES` for one that was not sampled."""
        if key not in self._written:
            return NO_RATES
        groups, sizes = self._written[key]
        times = np.array(self._times[-len(groups) :])
        return Rates(
            float(times[0]), float(times[-1]), _series(times, groups), _series(times, sizes)
        )


def _trim(values: array[float]) -> None:
    if len(values) > _SAMPLES_MAX:
        del values[0]


def _series(times: NDArray[np.float64], values: array[float]) -> Series:
    if len(values) < 2:
        return _NO_SERIES
    totals = np.array(values)
    rates = np.diff(totals) / np.diff(times)
    highest = int(np.argmax(rates))
    grid = times[-1] - STEP_S * np.arange(round(WINDOW_S / STEP_S), -1, -1)
    steps = np.diff(np.interp(grid, times, totals)) / STEP_S
    # The step in which watching began is not whole.
    is_known = grid[:-1] >= times[0] - SAMPLE_S / 2
    if not is_known.any():
        is_known[-1] = True
        steps[-1] = (totals[-1] - totals[0]) / (times[-1] - times[0])
    shown = tuple(
        float(rate) if known else None for rate, known in zip(steps, is_known, strict=True)
    )
    return Series(shown, float(rates[-1]), Peak(float(rates[highest]), float(times[highest + 1])))
