"""State of the journal after a restart: the sessions, their statements, and how far was read."""

from __future__ import annotations

from collections.abc import Iterable

from binlane.live.port.group_numbers import GroupNumber, Stream
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.group_journal import GroupJournal
from binlane.live.port.journal.journal_records import ReadProgress, StatementRecord
from binlane.live.port.journal.record_log import JournalRecord, RecordPlace
from binlane.live.port.journal.statement_journal import StatementJournal
from binlane.live.port.session_groups import (
    Arrival,
    RowsReason,
    SentStatement,
    SessionGroups,
    told_of,
)


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
        self.unknown: dict[GroupNumber, Arrival] = {}
        self.read: dict[Stream, int] = {}
        self.epoch: int | None = None
        self.run = 0
        doubts = self._replay_groups(groups)
        for is_whole in statements.replay(self._replay_file):
            if not is_whole:
                # Replies to these statements, and later statements, may be lacking there.
                self._doubt_open(RowsReason.FORGOTTEN)
        for thread_id, number in doubts:
            for statement in self._session(thread_id).statements:
                if statement.number == number:
                    statement.doubt = statement.doubt or RowsReason.FORGOTTEN
        self.lost = frozenset(thread for thread, each in self.sessions.items() if each.is_taken)
        # All sessions ended with the process before; of threads from before a start nothing comes.
        for session in self.sessions.values():
            session.give()
        self._doubt_open(RowsReason.LOST, before_run=self.run)

    def _replay_groups(self, groups: GroupJournal) -> Iterable[tuple[int, int]]:
        """Take in how far was read; give the threads and numbers of doubted statements."""
        last: ReadProgress | None = None
        for last in groups.progress():
            if last.epoch != self.epoch:
                self.read.clear()
            self.epoch, self.run = last.epoch, last.run
            self.read.update(last.ends)
        if last is None:
            return ()
        for thread_id, arrival in last.arrivals:
            if thread_id:
                self._session(thread_id).arrivals.append(arrival)
            else:
                self.unknown[arrival.point] = arrival
        return last.doubts

    def _doubt_open(self, reason: RowsReason, before_run: int | None = None) -> None:
        for session in self.sessions.values():
            if before_run is None or session.run < before_run:
                session.doubt_open(reason)

    def _session(self, thread_id: int) -> SessionGroups:
        return self.sessions.setdefault(thread_id, SessionGroups())

    def _replay_file(self, found: Iterable[JournalRecord]) -> None:
        under_way: list[tuple[int, SentStatement]] = []
        is_current = False
        for record in found:
            if record.kind == records.OPEN:
                told = records.read_statement(record.body)
                statement = told.statement()
                statement.place = record.place
                under_way.append((told.thread_id, statement))
            elif record.kind == records.SESSIONS:
                epoch, _, sessions = records.read_sessions(record.body)
                is_current = epoch == self.epoch
                if is_current:
                    self._begin_again(sessions, under_way)
            elif is_current:
                self._replay(record)

    def _begin_again(
        self, sessions: dict[int, SessionGroups], under_way: Iterable[tuple[int, SentStatement]]
    ) -> None:
        """Take the state with which a file begins in place of the older files' state."""
        before, self.sessions = self.sessions, sessions
        for thread_id, groups in before.items():
            self._session(thread_id).arrivals = groups.arrivals
        for thread_id, statement in under_way:
            self._session(thread_id).add(statement)
        for groups in self.sessions.values():
            self._drop_over(groups)

    def _replay(self, record: JournalRecord) -> None:
        kind, body = record.kind, record.body
        if kind == records.INTENT:
            self._replay_intent(records.read_statement(body), record.place)
        elif kind == records.ANSWER:
            self._replay_answer(records.read_statement(body), record.place)
        elif kind == records.TAKEN:
            thread_id, run, start = records.load(body)
            groups = SessionGroups(start=start, run=run, is_taken=True)
            for each in self._session(thread_id).arrivals:
                if start.get(each.point.stream, 0) < each.point.number:
                    groups.arrivals.append(each)
                else:
                    self.unknown[each.point] = each
            self.sessions[thread_id] = groups
        elif kind == records.GIVEN:
            self._session(records.load(body)).give()
        elif kind == records.LOST:
            self._session(records.load(body)).lose()

    def _replay_intent(self, intent: StatementRecord, place: RecordPlace) -> None:
        groups = self._session(intent.thread_id)
        groups.drop_old(intent.number)
        statement = SentStatement(intent.number, intent.plan_count or 0, None, place)
        statement.is_split = bool(intent.bits & records.IS_SPLIT)
        statement.is_for_all = bool(intent.bits & records.IS_FOR_ALL)
        if intent.bits & records.HAS_OLDER:
            # The journal does not tell which of the groups that were read are the statement's.
            statement.doubt = RowsReason.FORGOTTEN
        groups.add(statement)

    def _replay_answer(self, answer: StatementRecord, place: RecordPlace) -> None:
        groups = self._session(answer.thread_id)
        statement = groups.unanswered.get(answer.number)
        if statement is None:
            # The journal does not tell which of the statement's groups were read before it was known.
            statement = SentStatement(answer.number, 0)
            statement.is_answered, statement.doubt = True, RowsReason.FORGOTTEN
            groups.add(statement)
        if answer.plan_count is not None:
            statement.plans, statement.place = None, place
            statement.count = answer.plan_count
        is_bound = bool(answer.bits & records.IS_BOUND)
        spans = told_of(answer.text, is_bound=is_bound)
        is_known = bool(answer.bits & records.IS_KNOWN)
        groups.answer(statement, spans, is_known=is_known, is_bound=is_bound)
        for point in filter(self.unknown.__contains__, statement.told()):
            groups.arrive(self.unknown.pop(point))
        # Statements that can make no more groups are many where binlogs lag.
        self._drop_over(groups)

    def _drop_over(self, groups: SessionGroups) -> None:
        while groups.statements and groups.is_over(groups.statements[0], self.read):
            groups.end_first()
