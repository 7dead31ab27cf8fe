"""Messages of other processes on their sessions' statements, taken in by kernels, and the groups that they tell.

A kernel writes messages of the usual kinds into the journal and gives their numbers; another one finds the groups of
a run that they are about. All else is for `Attributions`, as before; the same is found by either way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

from binlane.live.port.attribution_state import AttributionState
from binlane.live.port.found_groups import FoundGroups, RunArrays, find_groups, messages_of
from binlane.live.port.heard_messages import HeardMessages, News
from binlane.live.port.journal.statement_journal import StatementJournal
from binlane.live.port.session_groups import SentStatement
from binlane.live.port.source_changes import SourceChanges
from binlane.live.port.statement_news import StatementNews, threads_of
from binlane.log.kernels.load import is_compiled

_REPLY_S: Final = 0.001
"""Seconds from a group's arrival until its session has usually told of it."""
_TRIES_MOST: Final = 5
_TOGETHER_MOST: Final = 256
"""Messages that are read together: a session's groups may become older ones meanwhile."""


class HearingParts(NamedTuple):
    """The part of `Attributions` that takes what sessions have said.

    Attributes:
        news: Statements that were sent or answered that the state does not know yet.
        last_sent: The last statement that each session has sent, by its thread, until it is answered.
        lock: Held by whoever takes news out, or looks at the state.
        wake: Wakes whoever waits for an answer.
    """

    news: StatementNews
    last_sent: dict[int, SentStatement]
    lock: Lock
    wake: Callable[[], None]


class KernelHearing:
    """Takes in messages, and finds groups, by kernels.

    Args:
        journal: Journal to which the messages are written.
        state: State of the attribution, which knows which sessions have older groups.
        changes: Changes of the source's objects.
        parts: Those of `Attributions` that get what was said of statements.
    """

    def __init__(
        self,
        journal: StatementJournal,
        state: AttributionState,
        changes: SourceChanges,
        parts: HearingParts,
    ) -> None:
        self._journal, self._state, self._changes = journal, state, changes
        self._parts = parts
        self._tries = _TRIES_MOST

    @staticmethod
    def is_possible() -> bool:
        """True if the kernels are compiled."""
        return is_compiled(("statement_messages", "group_makers"))

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
        news, last_sent, _, wake = self._parts
        heard = HeardMessages(rows, data, place, self._changes.known, numbers)
        self._changes.note_intended(heard.intended())
        if last_sent:
            for thread_id in heard.threads:
                last_sent.pop(thread_id, None)
        news.add(heard)
        wake()
        return heard.end

    def read_told(
        self, run: RunArrays, hear: Callable[[], None], *, is_late: bool
    ) -> FoundGroups | None:
        """Find the groups that come next in the log by what replies have told.

        Args:
            run: Bytes and index of the groups, in their order.
            hear: Takes in what sessions have said by now.
            is_late: True if they are not new, so that the replies to their statements are not under way.
        """
        tries = 0 if is_late else self._tries
        while True:
            with self._parts.lock:
                news = self._parts.news.all()
                found = self._find_groups(run, news)
                is_awaited = found is not None and found.is_awaited
                if not (is_awaited and tries):
                    if found is not None:
                        self._take_told(found, news)
                    if not is_late:
                        self._tries = max(1, self._tries // 2) if is_awaited else _TRIES_MOST
                    return found
            # A group is in the log some time before its session says so, and is looked at by itself until then.
            time.sleep(_REPLY_S)
            hear()
            tries -= 1

    def _find_groups(self, run: RunArrays, news: Sequence[News]) -> FoundGroups | None:
        """Find groups of a run by what sessions have said of usual statements; nothing changes.

        Args:
            run: The next groups of the log.
            news: What sessions have said that is not heard yet, in order.
        """
        heard = [each for each in news if isinstance(each, HeardMessages)]
        others = {each[0] for each in news if not isinstance(each, HeardMessages)}
        threads = threads_of(heard).union(self._state.answered())
        last_change = self._changes.last
        sessions = {
            thread_id: groups
            for thread_id in threads - others
            if (groups := self._state.sessions.get(thread_id)) is not None
            and groups.is_usual(last_change)
        }
        if not sessions:
            return None
        open_ = [(each, one) for each, groups in sessions.items() for one in groups.statements]
        said = messages_of(open_, self._state.numbers), heard
        reading = self._state.progress.read, last_change
        return find_groups(run, said, sessions, reading, self._state.numbers)

    def _take_told(self, found: FoundGroups, news: Sequence[News]) -> None:
        """Take in groups that were found by some news, and forget what was said of their statements."""
        found.drop_messages()
        self._parts.news.drop_empty(news)
        if not found.numbers:
            return
        for thread_id, count, told in found.makers():
            groups = self._state.sessions[thread_id]
            for _ in range(min(count, len(groups.statements))):
                first = groups.end_first()
                groups.unanswered.pop(first.number, None)
                for point in first.told():
                    self._state.told.pop(point, None)
            for stream, last in told.items():
                if last > groups.told.get(stream, 0):
                    groups.told[stream] = last
            groups.has_strangers = False
        self._state.keep_found(found.plans())
