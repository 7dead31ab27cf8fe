"""Messages of other processes on their sessions' statements, taken in by a kernel.

A kernel writes messages of the usual kinds into the journal and gives their numbers. All else is for `Attributions`,
as before; it is told the same by either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from binlane.live.port.attribution_state import AttributionState, News
from binlane.live.port.heard_messages import HeardMessages
from binlane.live.port.journal.statement_journal import StatementJournal
from binlane.live.port.session_groups import SentStatement
from binlane.live.port.source_changes import SourceChanges
from binlane.log.kernels.load import is_compiled

_TOGETHER_MOST: Final = 256
"""Messages that are read together: a session's groups may become older ones meanwhile."""


class StatementNews(NamedTuple):
    """The part of `Attributions` that takes what sessions have said.

    Attributes:
        news: Statements that were sent or answered, in order, that the state does not know yet.
        last_sent: The last statement that each session has sent, by its thread, until it is answered.
        wake: Wakes whoever waits for an answer.
    """

    news: deque[News]
    last_sent: dict[int, SentStatement]
    wake: Callable[[], None]


class KernelHearing:
    """Takes in messages by a kernel.

    Args:
        journal: Journal to which the messages are written.
        state: State of the attribution, which knows which sessions have older groups.
        changes: Changes of the source's objects.
        news: Takes what was said of statements.
    """

    def __init__(
        self,
        journal: StatementJournal,
        state: AttributionState,
        changes: SourceChanges,
        news: StatementNews,
    ) -> None:
        self._journal, self._state, self._changes = journal, state, changes
        self._news = news

    @staticmethod
    def is_possible() -> bool:
        """True if the kernels are compiled."""
        return is_compiled(("statement_messages", "told_groups"))

    def hear(self, data: bytes, said: Any, start: int) -> int:
        """Take in messages from one on, as far as the kernel reads them.

        Args:
            data: Messages of another process, one after another.
            said: The same bytes as an array that is changed.
            start: Place of the first message.

        Returns:
            The place behind the messages that were taken in: `start` if there are none.
        """
        older = self._state.with_older()
        numbers = self._state.numbers
        what = said, start, numbers.sources
        rows, *place = self._journal.write_messages(what, older, _TOGETHER_MOST)
        if not len(rows):
            return start
        news, last_sent, wake = self._news
        heard = HeardMessages(rows, data, place, self._changes.known, numbers)
        self._changes.note_intended(heard.intended())
        if last_sent:
            for thread_id in heard.threads():
                last_sent.pop(thread_id, None)
        news.append(heard)
        wake()
        return heard.end
