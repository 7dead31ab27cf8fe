from __future__ import annotations

from binlane.live.capture.backoff import Backoff


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=0.1, longest_s=1.0)
    delays = [round(backoff.next_delay_s(0), 3) for _ in range(6)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.attempts == 6


def test_jitter_takes_off_up_to_half() -> None:
    assert Backoff(first_s=4.0).next_delay_s(1.0) == 2.0


def test_success_begins_anew() -> None:
    backoff = Backoff()
    first = backoff.next_delay_s(0)
    backoff.next_delay_s(0)
    backoff.reset()
    assert backoff.next_delay_s(0) == first
    assert backoff.attempts == 1
