from __future__ import annotations

import pytest

from binlane.live.web.rate_history import (
    NO_RATES,
    SAMPLE_S,
    STEP_S,
    WINDOW_S,
    History,
    Rates,
    Written,
)

STEPS = round(WINDOW_S / STEP_S)


def watched(*totals: int, every_s: float = SAMPLE_S, begin_s: float = 1000.0) -> Rates:
    history = History()
    for number, total in enumerate(totals):
        history.sample(begin_s + number * every_s, {1: Written(total, 100 * total)})
    return history.rates(1)


def test_nothing_is_known_before_two_samples() -> None:
    assert History().rates(1) is NO_RATES
    once = watched(5)
    assert once.since_at_s == once.until_at_s == 1000.0
    assert once.event_groups == NO_RATES.event_groups


def test_a_rate_is_what_came_between_two_samples() -> None:
    rates = watched(5, 25, 25, 125, 130)
    assert rates.event_groups.last == 0.5
    assert rates.event_groups.peak == (10.0, 1030.0)
    assert rates.size_bytes.last == 50.0
    assert rates.since_at_s == 1000.0
    assert rates.until_at_s == 1040.0
    # 30 s back from the last sample there were 25.
    assert rates.event_groups.values == (None,) * (STEPS - 1) + (3.5,)


def test_a_first_step_that_is_not_whole_counts_by_its_own_time() -> None:
    assert watched(0, 100).event_groups.values == (None,) * (STEPS - 1) + (10.0,)


def test_an_hour_is_kept_and_no_more() -> None:
    history = History()
    for number in range(2000):
        history.sample(number * SAMPLE_S, {1: Written(number * 10, 0), number: Written(0, 0)})
    rates = history.rates(1)
    assert rates.until_at_s is not None
    assert rates.since_at_s == rates.until_at_s - WINDOW_S
    assert rates.event_groups.values == (1.0,) * STEPS
    assert history.rates(7) is NO_RATES, "a binlog that was dropped is forgotten"
    assert len(history._times) == len(history._written[1][0]) == WINDOW_S / SAMPLE_S + 1


def test_samples_that_come_late_do_not_look_like_a_peak() -> None:
    history = History()
    for at_s, total in ((0, 0), (10, 100), (70, 700), (80, 800)):
        history.sample(at_s, {1: Written(total, total)})
    assert history.rates(1).event_groups.peak == (10.0, 10.0)
    assert history.rates(1).event_groups.values[-2:] == (10.0, 10.0)


def test_a_binlog_that_came_later() -> None:
    history = History()
    for number in range(10):
        written = {1: Written(number, 0)} | ({2: Written(number, 0)} if number > 7 else {})
        history.sample(number * SAMPLE_S, written)
    assert history.rates(1).since_at_s == 0.0
    assert history.rates(2).since_at_s == 80.0
    assert history.rates(2).event_groups.values[-1] == pytest.approx(0.1)


def test_a_clock_that_is_set_back_begins_anew() -> None:
    history = History()
    for at_s in (1000.0, 1010.0, 500.0, 510.0):
        history.sample(at_s, {1: Written(round(at_s), 0)})
    assert history.rates(1).since_at_s == 500.0
    assert history.rates(1).event_groups.last == 1.0
