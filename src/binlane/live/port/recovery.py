"""State in the journal after a restart: the sessions, their statements, and how far was read."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from binlane.binlogs.store.record_log import Place, Record
from binlane.errors import CodecError
from binlane.live.port import journal_records as records
from binlane.live.port.group_journal import GroupJournal
from binlane.live.port.session_groups import (
    Arrival,
    Point,
    Reason,
    SessionGroups,
    Statement,
    Stream,
    told_of,
)
from binlane.live.port.statement_journal import RecordedFile, StatementJournal

logger = logging.getLogger(__name__)


class Recovery:
    """State, from the journal's files, of the moment when the process before ended.

    Attributes:
        sessions: Sessions by the threads that they had at the source; all of them are over.
        lost: Threads of the sessions that were there when the process ended.
        unknown: Groups that were read, but not claimed by a session, by their points.
        read: Last number that was read of each stream.
        epoch: Number of the source that the journal is about; None where nothing tells it.
        run: Number of times that the log was seen to go on behind a start of the source.
    """

    def __init__(self, statements: StatementJournal, groups: GroupJournal) -> None:
        """Read the files.

        Args:
            statements: Journal of the sessions' statements.
            groups: Journal of the groups that were read and found out.

        Raises:
            StoreError: If the files cannot be read.
        """
        self.sessions: dict[int, SessionGroups] = {}
        self.unknown: dict[Point, Arrival] = {}
        self.read: dict[Stream, int] = {}
        self.epoch: int | None = None
        self.run = 0
        last: records.Reading | None = None
        for last in groups.files():
            if last.epoch != self.epoch:
                self.read.clear()
            self.epoch, self.run = last.epoch, last.run
            self.read.update(last.ends)
        for thread_id, arrival in last.arrivals if last is not None else ():
            if thread_id:
                self._session(thread_id).arrivals.append(arrival)
            else:
                self.unknown[arrival.point] = arrival
        for file in statements.files():
            self._take_file(file)
        for thread_id, number in last.doubts if last is not None else ():
            for statement in self._session(thread_id).statements:
                if statement.number == number:
                    statement.doubt = statement.doubt or Reason.FORGOTTEN
        self.lost = frozenset(
            thread_id for thread_id, each in self.sessions.items() if each.is_taken
        )
        self._end_all()

    def _end_all(self) -> None:
        """All sessions ended with the process before; of threads from before a start nothing comes."""
        for each in self.sessions.values():
            each.give()
            if each.run < self.run:
                each.doubt_open(Reason.LOST)

    def _session(self, thread_id: int) -> SessionGroups:
        return self.sessions.setdefault(thread_id, SessionGroups())

    def _take_file(self, file: RecordedFile) -> None:
        is_whole = True
        try:
            self._replay_file(file.records)
        except CodecError as error:
            logger.warning("the port's journal: %s", error)
            is_whole = False
        if is_whole and file.is_whole():
            return
        # Replies to these statements, and later statements, may be lacking there.
        for groups in self.sessions.values():
            groups.doubt_open(Reason.FORGOTTEN)

    def _replay_file(self, found: Iterable[Record]) -> None:
        under_way: list[tuple[int, Statement]] = []
        is_current = False
        for record in found:
            if record.kind == records.OPEN:
                thread_id, statement = records.read_open(record.body)
                statement.place = record.place
                under_way.append((thread_id, statement))
            elif record.kind == records.SESSIONS:
                epoch, heads = records.read_sessions(record.body)
                is_current = epoch == self.epoch
                if is_current:
                    self._begin_again(heads, under_way)
            elif is_current:
                self._replay(record)

    def _begin_again(
        self, heads: Iterable[records.SessionHead], under_way: Iterable[tuple[int, Statement]]
    ) -> None:
        """Take the state with which a file begins in place of the older files' state."""
        arrivals = {thread_id: groups.arrivals for thread_id, groups in self.sessions.items()}
        self.sessions = {
            thread_id: SessionGroups(arrivals=list(each)) for thread_id, each in arrivals.items()
        }
        for head in heads:
            groups = self._session(head.thread_id)
            groups.is_taken, groups.has_untold = head.is_taken, head.has_untold
            groups.run = head.run
            groups.start = dict(head.start)
            groups.told = {**head.start, **head.told}
        for thread_id, statement in under_way:
            self._session(thread_id).add(statement)
        for groups in self.sessions.values():
            self._drop_over(groups)

    def _replay(self, record: Record) -> None:
        kind, body, place = record.kind, record.body, record.place
        if kind == records.INTENT:
            intent = records.read_intent(body)
            groups = self._session(intent.thread_id)
            groups.drop_old(intent.number)
            statement = Statement(intent.number, intent.plan_count, None, place)
            statement.is_split, statement.is_for_all = intent.is_split, intent.is_for_all
            if intent.has_older:
                # The journal does not tell which of the groups that were read are the statement's.
                statement.doubt = Reason.FORGOTTEN
            groups.add(statement)
        elif kind == records.ANSWER:
            self._replay_answer(records.read_answer(body), place)
        elif kind == records.TAKEN:
            thread_id, start, run = records.read_taken(body)
            self.unknown |= {one.point: one for one in self._session(thread_id).arrivals}
            self.sessions[thread_id] = SessionGroups(start=start, run=run, is_taken=True)
        else:
            groups = self._session(records.read_thread(body))
            if kind == records.GIVEN:
                groups.give()
            elif kind == records.LOST:
                groups.lose()

    def _replay_answer(self, answer: records.Answer, place: Place) -> None:
        groups = self._session(answer.thread_id)
        statement = groups.unanswered.get(answer.number)
        if statement is None:
            # The journal does not tell which of the statement's groups were read before it was known.
            statement = Statement(answer.number, 0, is_answered=True, doubt=Reason.FORGOTTEN)
            groups.add(statement)
        if answer.plan_count is not None:
            statement.plans, statement.place = None, place
            statement.count = answer.plan_count
        spans = told_of(answer.last, is_bound=answer.is_bound)
        groups.answer(statement, spans, is_known=answer.is_known, is_bound=answer.is_bound)
        for point in filter(self.unknown.__contains__, statement.told()):
            groups.arrive(self.unknown.pop(point))
        # Statements that can make no more groups are many where binlogs lag.
        self._drop_over(groups)

    def _drop_over(self, groups: SessionGroups) -> None:
        while groups.statements and groups.is_over(groups.statements[0], self.read):
            groups.statements.popleft()
