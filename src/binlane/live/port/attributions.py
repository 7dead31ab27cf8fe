"""Attribution of the source's groups to statements: told by sessions, asked by the routing thread.

Sessions say what their statements will make before these are sent, and what the replies told. The
routing thread says which groups it reads, then asks for their plans, and waits for a reply that is under way.
The statement of a group is found out once, and stays the same for whoever asks again.

Here are the lock, the waiting and the journal; which group is whose is `attribution_state`. All is in
the journal, so that it is known after a restart. No lock is held while it is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Condition, Lock, RLock
from typing import Final

from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import NO_PLANS, AttributionState, ReadGroup
from binlane.live.port.found_groups import FoundGroups, RunArrays
from binlane.live.port.group_numbers import GroupNumber, Stream, ends_of, point_of
from binlane.live.port.heard_messages import News, ReportedGroups
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.port_journal import PortJournal, forgotten
from binlane.live.port.journal.record_log import RecordPlace
from binlane.live.port.journal.statement_journal import Present
from binlane.live.port.kernel_hearing import HearingParts, KernelHearing
from binlane.live.port.log_progress import Watch
from binlane.live.port.patience import Patience
from binlane.live.port.session_groups import RowsReason, SentStatement, Unattributed, told_of
from binlane.live.port.source_changes import SourceChanges
from binlane.live.port.statement_news import StatementNews
from binlane.live.port.waiting_groups import Unsettled
from binlane.log.codec.types import Flavor
from binlane.positions import AnyGtid, Position
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.plan_bytes import EncodedPlan, EncodedPlans, encode_plans

_LOCAL_DISK: Final = LocalDisk()
_NEWS_MOST: Final = 256
"""Sayings that are kept unheard while no group comes that they may be about."""


_DEFAULT_SETTINGS: Final = AttributionSettings()


class Attributions:
    """Attributes the source's groups to statements, as a session or the routing thread asks.

    Sessions are told apart by their threads at the source: a new one of a number that was there
    before takes its place.

    `intend`, `done`, `lost`, `taken` and `given` are called by one thread, that of the sessions, or by one at
    a time, which holds `saying`; `begin`, `read`, `find`, `passed` and `forget` are called by one other
    thread, which routes.

    Attributes:
        lost_threads: Threads of sessions that were there when the process before ended: their temporary
            tables and locks at the source are gone.
        hear: Takes in what other processes' sessions have said by now, before a group is looked at.
        saying: Held by those who say something, where they are several threads.
        changes: Changes of the source's objects, and which processes have heard of them.
        by_kernel: Takes in what other processes have said, faster; None where that is not possible.
    """

    def __init__(
        self,
        folder: Path | None,
        flavor: Flavor,
        settings: AttributionSettings = _DEFAULT_SETTINGS,
        *,
        disk: Disk = _LOCAL_DISK,
    ) -> None:
        """Take up the state that the journal tells.

        Args:
            folder: Folder of the journal; None keeps none.
            flavor: Flavor of the source server.
            settings: Limits on waiting and on the journal's size.
            disk: Disk that holds the journal's folder.

        Raises:
            StoreError: If the folder cannot be used.
        """
        self.lost_threads = frozenset[int]()
        self.hear: Callable[[], None] = _nothing
        self.saying = RLock()
        self.changes = SourceChanges(has_own=not settings.is_relayed)
        self._settings = settings
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._is_waited_for = self._is_closed = False
        # Statements that were sent or answered that the state does not know yet.
        self._news = StatementNews()
        self._last_sent: dict[int, SentStatement] = {}
        self._patience = Patience(settings.wait_s)
        self._must_save = False
        self._doubts: list[tuple[int, int]] = []
        self._journal: PortJournal | None = None
        if folder is not None:
            self._journal = PortJournal(
                *(folder, disk, settings.file_bytes, self._present), is_relayed=settings.is_relayed
            )
        journal = self._journal
        self._state = AttributionState(
            flavor,
            _plans_in_memory if journal is None else journal.statements.plans_of,
            self.changes,
        )
        self._findings = self._state.findings
        self.by_kernel: KernelHearing | None = None
        if journal is not None and KernelHearing.is_possible():
            said = HearingParts(self._news, self._last_sent, self._lock, self._wake_waiting)
            self.by_kernel = KernelHearing(journal.statements, self._state, self.changes, said)
        recovered = None if journal is None else journal.recovered()
        if recovered is not None:
            self._state.recover(recovered)
            self.lost_threads = recovered.lost

    @property
    def failure(self) -> str:
        """The reason why the journal cannot be written; empty while it can."""
        return "" if self._journal is None else self._journal.failure

    # Messages of the sessions.

    def intend(
        self,
        thread_id: int,
        number: int,
        plans: Sequence[GroupPlan],
        *,
        is_split: bool = False,
        is_for_all: bool = False,
        is_outdated: bool = False,
    ) -> None:
        """Say which groups a statement will make, before the statement is sent.

        Args:
            thread_id: Thread of the statement's session at the source.
            number: Number of the statement in its session; one that is said again was decided anew.
            plans: Plans of the groups that the statement makes at most, in order; empty where they are not
                known.
            is_split: The first of several groups commits what was done before the statement, so that
                it comes for certain.
            is_for_all: True if the statement makes another thing for all binlogs than for the source.
            is_outdated: True if its transaction was judged before changes of objects that were heard of since.
        """
        encoded = plans if isinstance(plans, EncodedPlans) else EncodedPlans.of(plans)
        statement = SentStatement(number, len(plans), encoded)
        self.changes.note_sent(thread_id, statement, is_outdated=is_outdated)
        if is_split or is_for_all:
            statement.is_split, statement.is_for_all = is_split, is_for_all
        journal = self._journal
        if journal is not None:
            groups = self._state.sessions.get(thread_id)
            has_older = groups is not None and bool(groups.arrivals or groups.gone)
            bits = has_older * records.HAS_OLDER | is_split * records.IS_SPLIT
            bits |= is_for_all * records.IS_FOR_ALL
            body = records.statement_body(thread_id, number, bits, "", encoded.encoded)
            statement.place = journal.statements.write(records.INTENT, body)
            if statement.place is None:
                statement.doubt = RowsReason.NOT_WRITTEN
        self._last_sent[thread_id] = statement
        self._news.add((thread_id, statement, None))

    def done(
        self,
        thread_id: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        *,
        is_bound: bool = False,
    ) -> None:
        """Say which groups a statement's reply told.

        Args:
            thread_id: Thread of the statement's session at the source.
            number: Number of the statement in its session; one that was not intended may be said, too.
            last: GTIDs of the statement's groups: MariaDB's `last_gtid`, MySQL's GTID set; None for nothing,
                which means that it made none.
            plans: Plans of the groups, where they are others than those that were intended; empty where
                nothing is known of them, nor, without `last`, whether there are any.
            is_bound: `last` is all that the source had executed some time behind the statement and
                before the next one of the session.

        Raises:
            ValueError: If `last` is neither.
        """
        spans = told_of(last or "", is_bound=is_bound)
        is_known = bool(last) or plans is None or len(plans) > 0
        statement = self._last_sent.pop(thread_id, None)
        if statement is None or statement.number != number:
            statement = self._unanswered(thread_id, number)
        if statement is None and not spans:
            return
        encoded: EncodedPlans | None = None
        if statement is None:
            # Nothing was said of it before.
            statement = SentStatement(number, 0, NO_PLANS)
            self.changes.note_sent(thread_id, statement)
            statement.is_answered = True
            encoded = EncodedPlans.of(plans or ())
        elif isinstance(plans, EncodedPlans):
            encoded = plans
        elif plans is not None and not _are_same(statement.plans, plans):
            encoded = EncodedPlans.of(plans)
        if statement.count and (plans is None or len(plans)):
            statement.answered = self.changes.last
        place, journal = None, self._journal
        if journal is not None:
            bits = is_known * records.IS_KNOWN | is_bound * records.IS_BOUND
            told = b"" if encoded is None or plans is None else encoded.encoded
            body = records.statement_body(thread_id, number, bits, last or "", told)
            place = journal.statements.write(records.ANSWER, body)
        # In a third of the time of `ReportedGroups(…)`.
        answer = tuple.__new__(ReportedGroups, (spans, encoded, place, is_known, is_bound))
        self._news.add((thread_id, statement, answer))
        if self._is_waited_for:
            self._wake_waiting()

    def _unanswered(self, thread_id: int, number: int) -> SentStatement | None:
        """Give a statement that is not answered, and not the last one that its session has sent."""
        with self._lock:
            self._hear_news_of(thread_id)
            groups = self._state.sessions.get(thread_id)
            return None if groups is None else groups.unanswered.get(number)

    def _hear_news(self) -> None:
        """Take in, in order, what sessions have said of their statements; the caller holds the lock."""
        if self._news:
            self._take_in(self._news.take())

    def _hear_news_of(self, thread_id: int) -> None:
        """Take in what one session has said, if that bears on it alone, else all; the caller holds the lock."""
        if self._state.waiting or len(self._news) > _NEWS_MOST:
            self._hear_news()
        elif self._news:
            self._take_in(self._news.take_of(thread_id))

    def _take_in(self, heard: Sequence[News]) -> None:
        if self._patience.seconds:
            self._patience.hear(heard, self._state.without_doubt)
        self._state.hear(heard)

    def lost(self, thread_id: int) -> None:
        """Say that a session ended with a statement under way: it gets no reply."""
        self._write(records.LOST, records.dump(thread_id))
        with self._lock:
            self._hear_news_of(thread_id)
            self._state.lose(thread_id)
            self._wake()

    def taken(self, thread_id: int, position: Position | None = None) -> None:
        """Say that a session is followed from now on.

        Args:
            thread_id: Thread of the session at the source.
            position: Position of the source's log at that moment: groups up to there are not this session's.
        """
        self.taken_from(thread_id, {} if position is None else ends_of(position))

    def taken_from(self, thread_id: int, start: Mapping[Stream, int]) -> None:
        """Do the same as `taken`, with the last number of each stream in place of the position."""
        self._write(records.TAKEN, records.dump((thread_id, self._state.progress.run, start)))
        self.changes.note_taken(thread_id)
        with self._lock:
            self._hear_news_of(thread_id)
            for forgotten_id in self._state.take(thread_id, start, self._news.threads):
                self._patience.regain(forgotten_id)

    def given(self, thread_id: int) -> None:
        """Say that a session ended."""
        self._write(records.GIVEN, records.dump(thread_id))
        self._last_sent.pop(thread_id, None)
        self.changes.note_given(thread_id)
        with self._lock:
            # Of statements that were answered nothing changes.
            if self._state.may_be_open(thread_id) or self._news.is_any_unanswered(thread_id):
                self._hear_news_of(thread_id)
            self._state.give(thread_id)
            self._wake()

    # Messages and questions of the routing thread.

    def logged(self, gtids: Iterable[AnyGtid | None]) -> range:
        """Give the numbers of changes of objects, by their groups, that come for the first time, before `read`."""
        points = [None if gtid is None else point_of(gtid) for gtid in gtids]
        has_read = self._state.progress.has_read
        return self.changes.logged([one for one in points if one is None or not has_read(one)])

    def begin(self, position: Position) -> None:
        """Say that groups come from a position on: a feed was connected, or the first one is."""
        state, ends = self._state, ends_of(position)
        with self._lock:
            self._hear_news()
            is_gap = state.progress.lacks(ends)
            if is_gap:
                state.skip(ends)
                self._must_save = True
                if self._journal is not None:
                    self._journal.statements.renew()
            state.progress.begin(position, is_gap=is_gap)
        if is_gap:
            self._save()

    def source_started(self, position: Position | None) -> None:
        """Say that the source was started anew where the log stands: its threads are others.

        Args:
            position: There; None where it is not known.
        """
        self.hear()
        with self._lock:
            self._hear_news()
            known = self._state.progress.position
            if position is not None and known is not None and not position.includes(known):
                return  # an earlier start, that a feed which lags comes by
            self._state.source_started()
            self._must_save = True
        self._save()

    def watch(self) -> Watch:
        """Say that groups were read, and be told of which `read` is to know."""
        self.hear()
        with self._lock:
            if self.by_kernel is None:
                self._hear_news()
            state, news = self._state, self._news
            threads = {*state.sessions, *news.threads()}
            is_known = state.knows_groups or (self._journal and self._journal.groups.are_any)
            return Watch(threads, bool(news) or state.is_any_open(), bool(is_known))

    def wants(self, group: ReadGroup, watch: Watch) -> bool:
        """True if `read` is to be given a group."""
        point, state = point_of(group.gtid), self._state
        if not state.progress.has_read(point):
            is_watched = group.thread_id in watch.threads if group.thread_id else watch.is_any_open
            return is_watched or point in state.told
        return point in state.findings or point in state.open or self._is_recorded(point)

    def _is_recorded(self, point: GroupNumber) -> bool:
        return self._journal is not None and self._journal.groups.find(point) is not None

    def numbers(self, first: int, last: int) -> set[int]:
        """Give the numbers of groups that were told or found out, of any stream.

        Args:
            first: The least number that is of interest.
            last: The greatest number that is of interest.
        """
        state = self._state
        with self._lock:
            found = {
                number
                for points in (state.told, state.open)
                for _, number in points
                if first <= number <= last
            }
            found.update(state.findings.numbers(first, last))
        if self._journal is not None:
            found |= self._journal.groups.numbers(first, last)
        return found

    def read_told(self, run: RunArrays, *, is_late: bool) -> FoundGroups | None:
        """Find the groups that come next in the log by what replies have told, before the others are `read`.

        Args:
            run: Bytes and index of the groups, in their order.
            is_late: True if they are not new, so that the replies to their statements are not under way.

        Returns:
            The groups that were found; None if all are to be looked at one by one.
        """
        self.hear()
        kernel = self.by_kernel
        return None if kernel is None else kernel.read_told(run, self.hear, is_late=is_late)

    def read(self, groups: Sequence[ReadGroup], after: Position | None) -> None:
        """Say which groups come next in the log, before any of them is asked for.

        Args:
            groups: Groups that `watch` wants, in the order of the log, without those that `read_told` has found.
            after: Position up to which everything is read, with these groups.
        """
        if groups:
            self.hear()
        state = self._state
        with self._lock:
            if groups or len(self._news) > _NEWS_MOST:
                self._hear_news()
            touched = {thread_id for group in groups if (thread_id := state.arrive(group))}
            state.progress.advance(after)
            state.settle(touched)
        self._save()

    def find(self, group: ReadGroup, *, wait_s: float | None = None) -> GroupPlan | Unattributed:
        """The plan of a group; waits for its statement's reply if that is under way.

        Args:
            group: Group that was `read`, or that counts as read by this call.
            wait_s: Longest wait in seconds; the default is the one of the settings.
        """
        point, findings = point_of(group.gtid), self._findings
        known = findings.get(point)
        if known is not None:
            if findings.has_news:
                self._save()
            return known.plan if isinstance(known, EncodedPlan) else known
        self.hear()
        state, journal = self._state, self._journal
        with self._lock:
            self._hear_news()
            state.arrive(group)
            state.settle_around(point)
            if point in state.open:
                self._await(point, wait_s)
            known = findings.get(point)
            is_closed = self._is_closed and point in state.open
        self._save()
        if is_closed:
            return Unattributed(RowsReason.CLOSED)
        if known is not None:
            return known.plan if isinstance(known, EncodedPlan) else known
        return (
            forgotten(group.thread_id)
            if journal is None
            else journal.recall(point, group.thread_id)
        )

    def _await(self, point: GroupNumber, wait_s: float | None) -> None:
        """Wait until a group is attributed, or give up; the caller holds the lock."""
        state = self._state
        if wait_s is None:
            wait_s = self._patience.of(state.makers(point))
        deadline_s = time.monotonic() + wait_s
        while not self._is_closed and point in state.open:
            if state.end_apart(point):
                continue
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                self._patience.lose(state.makers(point))
                state.give_up(point, RowsReason.NOT_ANSWERED)
                return
            self._is_waited_for = True
            if not self._news:  # one of them may have come before it was known that somebody waits
                self._changed.wait(left_s)
            self._is_waited_for = False
            self._hear_news()
            state.settle_around(point)

    def known(self, gtids: Iterable[AnyGtid | None]) -> list[EncodedPlan | None]:
        """Give the known plans of groups that were read; None where `find` has to say it."""
        with self._lock:
            found = [None if gtid is None else self._findings.get(point_of(gtid)) for gtid in gtids]
            return [one if isinstance(one, EncodedPlan) else None for one in found]

    def are_named(self, groups: Sequence[ReadGroup], binlog: str) -> list[bool]:
        """Tell for each group that was read if its plan may name a binlog; plans are known when they come.

        A plan that only the journal holds counts as naming all binlogs.
        """
        with self._lock:
            self._hear_news()
            return [self._is_named(point_of(group.gtid), binlog) for group in groups]

    def _is_named(self, point: GroupNumber, binlog: str) -> bool:
        known = self._findings.get(point)
        if known is not None:
            return isinstance(known, EncodedPlan) and known.names(binlog)
        if point in self._state.open:
            return self._state.may_name(point, binlog)
        return self._is_recorded(point)

    def is_pending(self, gtid: AnyGtid) -> bool:
        """True if more must be read or said before the statement of a group that was read is known."""
        point = point_of(gtid)
        with self._lock:
            if self._is_closed or point not in self._state.open:
                return False
            self._hear_news()
            self._state.settle_around(point)
            return point in self._state.open

    def patience_s(self, gtid: AnyGtid) -> float:
        """Seconds for which a group is waited for."""
        with self._lock:
            return self._patience.of(self._state.makers(point_of(gtid)))

    def passed(self, position: Position) -> None:
        """Say that all binlogs have everything up to a position: nobody asks for it again."""
        if self._journal is None:
            return
        with self._lock:
            held = {
                place.file
                for groups in self._state.sessions.values()
                for statement in groups.statements
                if (place := statement.place) is not None
            }
            held |= self._news.files()
        self._journal.passed(ends_of(position), held, self._settings.journal_max_bytes)

    def close(self) -> None:
        """Let nobody wait any longer, and let go of the files."""
        with self._lock:
            self._is_closed = True
            self._wake()
        # The other part is the routing thread's, which may be writing.
        if self._journal is not None:
            self._journal.statements.close()

    def forget(self) -> None:
        """Forget all groups: the source is another one, whose GTIDs mean other groups."""
        with self._lock:
            self._hear_news()
            self._state.forget()
            self._patience = Patience(self._settings.wait_s)
            self._must_save = True
        if self._journal is not None:
            self._journal.forget()
            self._save()

    def _wake_waiting(self) -> None:
        if self._is_waited_for:
            with self._lock:
                self._wake()

    def _wake(self) -> None:
        if self._is_waited_for:
            self._changed.notify_all()

    # The journal.

    def _write(self, kind: int, body: bytes) -> RecordPlace | None:
        """Write a session's message; None without a journal, and if writing fails."""
        return None if self._journal is None else self._journal.statements.write(kind, body)

    def _present(self) -> Present:
        with self._lock:
            self._hear_news()
            state = self._state
            ends = state.ends()
            return Present(
                records.sessions_body(state.progress.epoch, ends, state.sessions),
                ends,
                state.under_way(),
            )

    def _save(self) -> None:
        """Write which groups were read and found out; called by the routing thread only."""
        journal, state = self._journal, self._state
        with self._lock:
            found, open_ = state.findings.take_news(), state.unsettled()
            progress = None if journal is None else self._record(journal, found, open_)
            if progress is None:
                state.unsaved.clear()
                for statements, _ in open_.gone:
                    statements.clear()
        if journal is None or progress is None:
            return
        journal.groups.write(progress)
        if open_.gone or state.unsaved:
            with self._lock:
                state.unsaved.clear()
                for statements, count in open_.gone:
                    del statements[:count]

    def _record(
        self, journal: PortJournal, found: list[records.FoundRun], open_: Unsettled
    ) -> records.ReadProgress | None:
        """Give the routing thread's next record; None if there is nothing to write."""
        progress = self._state.progress
        has_news = bool(found or open_.arrivals or open_.gone or self._must_save)
        has_news |= open_.doubts != self._doubts or bool(journal.groups.failure)
        if not (has_news or (progress.moved and open_.is_any_open)):
            return None
        moved, progress.moved = progress.moved, {}
        ends = dict(progress.read) if journal.groups.is_file_due else moved
        self._must_save, self._doubts = False, open_.doubts
        return records.ReadProgress(
            *(progress.epoch, progress.run, ends, open_.arrivals, open_.doubts, found)
        )


def _plans_in_memory(statement: SentStatement) -> EncodedPlans | None:
    """Give a statement's plans where there is no journal."""
    return statement.plans


def _nothing() -> None:
    """Do nothing: the default of `hear` where all sessions are this process's."""


def _are_same(intended: EncodedPlans | None, plans: Sequence[GroupPlan]) -> bool:
    return intended is not None and intended.encoded == encode_plans(plans)
