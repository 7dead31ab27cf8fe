"""Messages of other processes on their sessions' statements, taken in by a kernel.

A kernel writes messages of the usual kinds into the journal and gives their numbers. All else is for `Attributions`,
as before; it is told the same by either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from binlane.live.port.attribution_state import AttributionState, News, ReportedGroups
from binlane.live.port.group_numbers import GroupSpan, stream_of
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.record_log import RecordPlace
from binlane.live.port.journal.statement_journal import StatementJournal
from binlane.live.port.session_groups import SentStatement
from binlane.live.port.source_changes import SourceChanges
from binlane.log.kernels.load import is_compiled
from binlane.statements.session.plan_bytes import EncodedPlans

_TOGETHER_MOST: Final = 256
"""Messages that are read together: a session's groups may become older ones meanwhile."""
_NO_PLANS: Final = EncodedPlans.of(())


class StatementNews(NamedTuple):
    """The part of `Attributions` that takes what sessions have said.

    Attributes:
        news: Statements that were sent or answered, in order, that the state does not know yet.
        last_sent: The last statement that each session has sent, by its thread, until it is answered.
        unanswered: Gives another statement of a session by its number that is not answered.
        wake: Wakes whoever waits for an answer.
    """

    news: deque[News]
    last_sent: dict[int, SentStatement]
    unanswered: Callable[[int, int], SentStatement | None]
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
        """True if the kernel is compiled."""
        return is_compiled(("statement_messages",))

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
        found, file, offset = self._journal.write_messages(said, start, older, _TOGETHER_MOST)
        changes, (news, last_sent, unanswered, wake) = self._changes, self._news
        for kind, thread_id, number, at, checksum, begin, end, count, domain, sequence in found:
            # As the classes' own calls, in a third of the time.
            place = tuple.__new__(RecordPlace, (file, offset + at, checksum))
            plans = None if count < 0 else EncodedPlans(data[begin:end], count)
            start = end
            if kind == records.INTENT:
                statement = last_sent[thread_id] = SentStatement(number, count, plans, place)
                changes.note_sent(thread_id, statement)
                news.append((thread_id, statement, None))
                continue
            sent = last_sent.pop(thread_id, None)
            if sent is None or sent.number != number:
                sent = unanswered(thread_id, number)
            if sent is None:
                sent, plans = unintended(changes, thread_id, number), plans or _NO_PLANS
            if sent.count and count:
                sent.answered = changes.last
            span = tuple.__new__(GroupSpan, (stream_of(domain), 0, sequence))
            answer = tuple.__new__(ReportedGroups, ((span,), plans, place, True, False))
            news.append((thread_id, sent, answer))
        if found:
            wake()
        return start


def unintended(changes: SourceChanges, thread_id: int, number: int) -> SentStatement:
    """Make a statement that was answered, and of which nothing was said before.

    Args:
        changes: Changes of the source's objects.
        thread_id: Thread of the statement's session at the source.
        number: Number of the statement in its session.
    """
    statement = SentStatement(number, 0, _NO_PLANS)
    changes.note_sent(thread_id, statement)
    statement.is_answered = True
    return statement
