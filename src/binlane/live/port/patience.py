"""Limits on the time for which replies of sessions are waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from binlane.live.port.heard_messages import HeardMessages, News

_PATIENCE_LEAST_S: Final = 0.05


class Patience:
    """Seconds for which replies of sessions are waited for.

    Attributes:
        seconds: Patience with sessions that kept others waiting, by their threads.

    Args:
        most_s: Patience with a session that did not keep anybody waiting.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self.seconds: dict[int, float] = {}

    def of(self, threads: Iterable[int]) -> float:
        """Give the least patience with any of the sessions."""
        return min((self.seconds.get(each, self._most_s) for each in threads), default=self._most_s)

    def lose(self, threads: Iterable[int]) -> None:
        """Wait less for whoever kept all waiting, until a reply comes in time."""
        for thread_id in threads:
            patience_s = self.seconds.get(thread_id, self._most_s)
            least_s = min(_PATIENCE_LEAST_S, self._most_s)
            self.seconds[thread_id] = max(patience_s / 4, least_s)

    def regain(self, thread_id: int) -> None:
        """Wait for a session as long as for any other again."""
        self.seconds.pop(thread_id, None)

    def hear(
        self, news: Iterable[News], without_doubt: Callable[[Iterable[int]], Iterable[int]]
    ) -> None:
        """Wait for those sessions again that have answered in time.

        Args:
            news: What sessions have said, in order.
            without_doubt: Gives those of some sessions whose unanswered statements may all be planned.
        """
        for each in news:
            if isinstance(each, HeardMessages):
                for thread_id in without_doubt(each.answered()):
                    self.regain(thread_id)
                continue
            thread_id, statement, answer = each
            if answer is not None and statement.doubt is None:
                self.regain(thread_id)
