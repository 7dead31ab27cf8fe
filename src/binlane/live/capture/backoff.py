"""Delays before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FACTOR: Final = 2.0


@dataclass(slots=True)
class Backoff:
    """Delays that double from a first to a longest one.

    Attributes:
        first_s: The first delay, in seconds.
        longest_s: The longest delay, in seconds.
        attempts: Delays given since the last success.
    """

    first_s: float = 0.1
    longest_s: float = 10.0
    attempts: int = 0

    def next_delay_s(self, jitter: float) -> float:
        """The next delay, in seconds.

        Args:
            jitter: A random number from 0 to 1: up to half of the delay is taken off, so that
                many who lost the same server do not come back at once.
        """
        delay_s = self.first_s
        for _ in range(self.attempts):
            delay_s = min(delay_s * _FACTOR, self.longest_s)
        self.attempts += 1
        return delay_s * (1 - jitter / 2)

    def reset(self) -> None:
        """Something was achieved: begin with the first delay again."""
        self.attempts = 0
