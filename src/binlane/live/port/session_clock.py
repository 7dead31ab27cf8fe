"""The time of a session's statements: the source's clock, and a timestamp that the session has of its own.

The microseconds of a statement's start are not told by the source, so they are set where they matter: `SET
timestamp` goes before the statement. The timestamp is given back before the next statement that does not read
what the last one left: sent directly behind the statement, giving it back would hide that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from binlane.live.port.context_use import ContextUse
from binlane.live.port.statement_context import StatementContext

_MEASURE_AGAIN_S: Final = 10.0
"""For so long the difference of the clocks is taken for what it was."""
_MICRO: Final = 1_000_000
_STALE_S: Final = 1.0
"""So long a timestamp of binlane's may stay behind its statement, for another one that reads both the
time and what that statement left."""


class SessionClock:
    """The time at which a session's statements run at the source.

    Attributes:
        fixed: Microseconds of the timestamp that the client has set; None where the source's clock runs.
        held: Time at which binlane's own timestamp was set in the session; None without one.
        may_be_fixed: True if the client may have set a timestamp.
        was_given_back: True if binlane's timestamp ends before the statement that is sent now.

    Args:
        clock: Gives the seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self.fixed: int | None = None
        self.held: float | None = None
        self.may_be_fixed = False
        self._offset_s = 0.0
        self._measured_s = 0.0
        self._last_set = 0
        self.was_given_back = False

    @property
    def has_drifted(self) -> bool:
        """True if the source's clock was read too long ago."""
        return self.now() - self._measured_s > _MEASURE_AGAIN_S and self.held is None

    @property
    def source_s(self) -> float:
        """The source's time in seconds."""
        return self.now() + self._offset_s

    @property
    def is_in_doubt(self) -> bool:
        """True if the timestamp has to be asked for twice to know if it is the client's own."""
        return self.held is None and self.may_be_fixed

    def measure(self, timestamp: str, again: str | None, middle_s: float) -> None:
        """Take the source's time.

        Args:
            timestamp: Value of the variable `timestamp`.
            again: The same, as it was asked for once more; None where it was not.
            middle_s: Our time at which the source answered first.
        """
        self.fixed = _microseconds(timestamp) if again == timestamp else None
        if self.held is None and self.fixed is None:
            self.may_be_fixed = False
            self._offset_s, self._measured_s = float(timestamp) - middle_s, middle_s

    def set_for(self, context: StatementContext) -> str:
        """Give the statement that sets the time of a statement, and note the time in its context."""
        now = max(int(self.source_s * _MICRO), self._last_set + 1)
        self._last_set, self.held = now, self.now()
        context.timestamp, context.microseconds = divmod(now, _MICRO)
        return f"SET timestamp={now // _MICRO}.{now % _MICRO:06}"

    def may_stay(self, use: ContextUse | None) -> bool:
        """True if binlane's timestamp may stay for a statement that reads what the last one left."""
        reads = use is not None and use.reads_diagnostics
        return reads and self.held is not None and self.now() - self.held < _STALE_S

    def give_back(self) -> tuple[str, ...]:
        """Give the statements that end binlane's timestamp."""
        self.was_given_back = self.held is not None
        if self.held is None:
            return ()
        self.held = None
        return ("SET timestamp=DEFAULT",)

    def unsent(self) -> None:
        """Note that the statements that were to end the timestamp were perhaps not sent."""
        if self.was_given_back:
            self.held = self.now()


def _microseconds(timestamp: str) -> int:
    """The fraction of a timestamp as the servers print it."""
    return int(timestamp.partition(".")[2][:6].ljust(6, "0"))
