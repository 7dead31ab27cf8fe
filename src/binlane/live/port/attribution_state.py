"""State of the attribution: sessions, groups that are not attributed yet, and what is found of them.

The log names the maker of a group by the thread of the source that made it, or the reply names it by its
GTID. A group of which the log names no thread, and no session was told yet, waits for the replies to those
statements that are under way and could have made it, and for no others.

The module has no files, clocks or threads; `attributions` calls it under its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from binlane.live.port.found_groups import FoundPlans
from binlane.live.port.group_findings import Findings
from binlane.live.port.group_numbers import (
    GroupNumber,
    Stream,
    StreamNumbers,
    point_of,
)
from binlane.live.port.heard_messages import HeardMessages, News, ReportedGroups
from binlane.live.port.journal.journal_replay import Recovery
from binlane.live.port.log_progress import LogProgress
from binlane.live.port.session_groups import (
    Arrival,
    Attribution,
    RowsReason,
    SentStatement,
    SessionGroups,
    Unattributed,
    Wait,
)
from binlane.live.port.source_changes import SourceChanges
from binlane.live.port.waiting_groups import Unsettled, WaitingGroup, may_have_made
from binlane.log.codec.types import Flavor
from binlane.positions import AnyGtid
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.plan_bytes import EncodedPlan, EncodedPlans

_TOLD_LEAST: Final = 8192
_TOLD_MOST: Final = 256 << 10
"""Groups that were told and not read yet: numbers at which those that were read are looked for, and at which the
oldest are forgotten, so that they go as rows."""
_KEPT_SESSIONS: Final = 1024
_NOBODY: Final = frozenset[int]()
NO_PLANS: Final = EncodedPlans.of(())
"""Plans of a statement of which nothing was said before its reply."""


class ReadGroup(NamedTuple):
    """A group of the source, as the routing thread has read it.

    Attributes:
        thread_id: Thread of the source's session that made the group; 0 where the log does not say that.
        is_commit: True if the group ends with XID.
        could_be: Tells if the group could be the one of a plan; asked only where the thread is not known.
    """

    gtid: AnyGtid
    thread_id: int = 0
    is_commit: bool = False
    could_be: Callable[[GroupPlan], bool] = lambda _: True


class AttributionState:
    """The sessions and the groups of which the makers are sought.

    Attributes:
        sessions: Statements and groups of each session, by its thread.
        open: Groups that were read and not attributed, with their threads; 0 while that is not known.
        told: Groups that were told and not read yet, with their threads; those of sessions that had the
            number of a thread before, with a minus.
        waiting: Those of `open` whose threads are not known, each with the statements that may have made it.
        progress: Progress of reading the source's log.
        numbers: Numbers of streams, as kernels know them.
        findings: Groups that were attributed, and those that turned out to be nobody's.
        unsaved: Groups that were found together, and that the journal lacks.
    """

    def __init__(
        self,
        flavor: Flavor,
        plans_of: Callable[[SentStatement], EncodedPlans | None],
        changes: SourceChanges,
    ) -> None:
        """Begin without sessions.

        Args:
            flavor: Flavor of the source server.
            plans_of: Gives the plans of a statement, from the journal if need be.
            changes: Changes of the source's objects, and who has heard of them.
        """
        self.sessions: dict[int, SessionGroups] = {}
        self.open: dict[GroupNumber, int] = {}
        self.told: dict[tuple[Stream, int], int] = {}
        self.progress = LogProgress(flavor)
        self.numbers = StreamNumbers(flavor)
        self.findings = Findings()
        self.unsaved: list[FoundPlans] = []
        self._is_told_all = flavor is Flavor.MYSQL
        self._plans_of = plans_of
        self._changes, self._has_missed = changes, partial(changes.may_have_missed, self._claimed)
        self.waiting: dict[GroupNumber, WaitingGroup] = {}
        self._order = 0
        self._told_most = _TOLD_LEAST
        # Threads of sessions with something that is not done with, and of some without.
        self._busy: set[int] = set()

    # Messages of the sessions.

    def _intend(self, thread_id: int, statement: SentStatement) -> None:
        groups = self._session(thread_id)
        if groups.arrivals:
            self.settle([thread_id])  # what was read before is of statements before
        if groups.unanswered:
            groups.drop_old(statement.number)
        groups.add(statement)

    def hear(self, news: Iterable[News]) -> None:
        """Take in which statements sessions have sent, and which were answered."""
        for each in news:
            if isinstance(each, HeardMessages):
                self._hear_messages(each)
                continue
            thread_id, statement, answer = each
            if answer is None:
                self._intend(thread_id, statement)
            else:
                self._answer(thread_id, statement, answer)

    def _hear_messages(self, heard: HeardMessages) -> None:
        for message in heard.messages():
            thread_id, number, plans, place, told = message
            if told is None:
                self._intend(thread_id, heard.statement(message))
                continue
            statement = self._session(thread_id).unanswered.get(number)
            if statement is None:
                # Nothing was said of it before.
                statement = heard.statement(message)
                statement.count, statement.plans, statement.place = 0, NO_PLANS, None
                statement.is_answered, plans = True, plans or NO_PLANS
            if statement.count and (plans is None or len(plans)):
                statement.answered = heard.last
            # As `ReportedGroups(…)`, in a third of the time.
            answer = tuple.__new__(ReportedGroups, ((told,), plans, place, True, False))
            self._answer(thread_id, statement, answer)

    def _answer(self, thread_id: int, statement: SentStatement, answer: ReportedGroups) -> None:
        spans, plans, place, is_known, is_bound = answer
        groups = self._session(thread_id)
        if plans is not None:
            statement.plans, statement.place, statement.count = plans, place, len(plans)
        if statement.is_answered:
            groups.add(statement)
        statement.is_split &= statement.count > 1 and bool(spans)
        groups.answer(statement, spans, is_known=is_known, is_bound=is_bound)
        self._hear_of(thread_id, groups, statement)

    def lose(self, thread_id: int) -> None:
        """A session ended with a statement under way."""
        self._session(thread_id).lose()
        self._end_waiting()

    def give(self, thread_id: int) -> None:
        """A session ended."""
        self._session(thread_id).give()
        self._end_waiting()

    def take(
        self, thread_id: int, start: Mapping[Stream, int], unheard: Callable[[], Collection[int]]
    ) -> list[int]:
        """A session is followed from the ends of streams on; give the threads that are forgotten for it.

        Args:
            thread_id: Thread of the session at the source; nothing is unheard of one that it had before.
            start: Last number of each stream by then.
            unheard: Gives the threads of sessions with statements that are not known here yet.
        """
        before = self.sessions.get(thread_id)
        if before is not None:
            self._give_up_all(thread_id, RowsReason.LOST)
            before.lose()
            self.told.update(
                (point, -thread_id) for point, of in self.told.items() if of == thread_id
            )
            self._end_waiting()
        run = self.progress.run
        self.sessions[thread_id] = SessionGroups(start=dict(start), run=run, is_taken=True)
        return self._forget_over(unheard()) if len(self.sessions) > _KEPT_SESSIONS else []

    # What the routing thread reads.

    def arrive(self, group: ReadGroup) -> int:
        """Take in that a group was read; its thread if that is a session's to be settled, else 0."""
        gtid, thread_id, is_commit, _ = group
        point = point_of(gtid)
        stream, number = point
        read, moved = self.progress.read, self.progress.moved
        if read.get(stream, 0) >= number:
            return 0
        read[stream] = moved[stream] = number
        self._order += 1
        # As `Arrival(…)`, in a third of the time.
        arrival = tuple.__new__(Arrival, (point, is_commit, self._order))
        thread_id = self.told.pop(point, thread_id)
        if thread_id < 0:
            self.keep_none(point, Unattributed(RowsReason.LOST, frozenset((-thread_id,))))
            return 0
        groups = self.sessions.get(thread_id)
        if groups is not None and groups.start.get(stream, 0) < number:
            groups.arrive(arrival)
            self.open[point] = thread_id
            self._busy.add(thread_id)
            return thread_id
        if not thread_id:
            self._wait_for_makers(group, arrival)
        else:
            self.keep_none(point, Unattributed(RowsReason.STRANGER))
        return 0

    def _wait_for_makers(self, group: ReadGroup, arrival: Arrival) -> None:
        """Find out which statements could have made a group whose thread is not known."""
        found = [
            (thread_id, one)
            for thread_id in self._busy
            for one in self.sessions[thread_id].undecided()
            if (one.is_split or may_have_made(one))
            and (one.is_for_all or any(map(group.could_be, self._plans_of(one) or ())))
        ]
        others = frozenset(
            thread_id
            for thread_id in self._busy
            if any(map(self._may_make_anything, self.sessions[thread_id].undecided()))
        )
        self.waiting[arrival.point] = WaitingGroup(arrival, tuple(found), others)
        self.open[arrival.point] = 0
        self._end_waiting()

    def _may_make_anything(self, one: SentStatement) -> bool:
        """True if it is not known which groups a statement makes, and some may still come."""
        if one.count or one.is_lost:
            return False
        return not one.is_answered or any(
            self.progress.read.get(span.stream, 0) < span.last for span in one.last
        )

    def skip(self, ends: dict[Stream, int]) -> None:
        """Go on behind a gap: nothing is certain of statements whose groups may be in it."""
        for thread_id, groups in self.sessions.items():
            for arrival in groups.arrivals:
                found = Unattributed(RowsReason.NOT_READ, frozenset((thread_id,)))
                self.keep_none(arrival.point, found)
            groups.arrivals.clear()
            for statement in groups.statements:
                if statement.is_lost or not self._is_told_all:
                    statement.doubt = statement.doubt or RowsReason.NOT_READ
        for point, waiting in tuple(self.waiting.items()):
            threads = frozenset(thread_id for thread_id, _ in waiting.statements)
            self.keep_none(point, Unattributed(RowsReason.NOT_READ, threads))
        for stream, number in ends.items():
            if self.progress.read.get(stream, 0) < number:
                self.progress.move(stream, number)

    def source_started(self) -> None:
        """The source was started anew: its threads are others."""
        self.progress.run += 1
        for thread_id, groups in self.sessions.items():
            groups.doubt_open(RowsReason.LOST)
            self._busy.add(thread_id)

    def settle(self, threads: Iterable[int]) -> None:
        """Attribute the groups of sessions as far as that is possible by now."""
        for thread_id in threads:
            groups = self.sessions[thread_id]
            if groups.statements and groups.statements[0].is_split:
                self._find_first(thread_id, groups, groups.statements[0])
            for verdict in groups.settle(self.progress.read):
                self._note(thread_id, verdict)

    def settle_around(self, point: GroupNumber) -> None:
        """Attribute an open group as far as that is possible by now."""
        self.settle(self.makers(point))
        if point in self.waiting:
            self._end_waiting()

    def _find_first(self, thread_id: int, groups: SessionGroups, statement: SentStatement) -> None:
        """Find the group that a statement has committed before its own, if the log names no thread.

        It is there for certain: where one group only could be it, and can be of nobody else, it is.
        """
        spans = statement.last
        if not spans or any(self.progress.read.get(span.stream, 0) < span.last for span in spans):
            return
        if len(groups.arrivals) < statement.count:
            found = [
                waiting
                for waiting in self.waiting.values()
                if any(one is statement for _, one in waiting.statements)
            ]
            others = [
                one for waiting in found for _, one in waiting.statements if one is not statement
            ]
            if any(not (one.is_answered or one.is_lost) for one in others):
                return  # they will say what is theirs
            if len(found) == 1 and not any(map(may_have_made, others)):
                arrival = found[0].arrival
                del self.waiting[arrival.point]
                groups.arrive(arrival)
                self.open[arrival.point] = thread_id
        statement.is_split = False
        self._end_waiting()

    def _note(self, thread_id: int, verdict: Attribution) -> None:
        point, statement, number, reason = verdict
        plan = None if statement is None else self._plan_of(statement, number)
        if statement is None:
            pass
        elif plan is None:
            reason = RowsReason.FORGOTTEN
        elif statement.is_lost and plan.plan.hangs_on_reply:
            reason = RowsReason.LOST
        elif self._has_missed(point, statement) and plan.plan.text_bytes:
            reason = RowsReason.CHANGED
        else:
            self._changes.note_maker(point, statement)
            self._close(point)
            self.findings.keep_plan(point, plan, thread_id, statement)
            return
        self.keep_none(point, Unattributed(reason, frozenset((thread_id,))))

    def _claimed(self, point: GroupNumber) -> SentStatement | None:
        """Give the statement whose reply named a group that was read, and is not attributed yet."""
        groups = self.sessions.get(self.open.get(point, 0), SessionGroups())
        return next((one for one in groups.statements if point in one.told()), None)

    def _plan_of(self, statement: SentStatement, number: int) -> EncodedPlan | None:
        plans = statement.plans or self._plans_of(statement)
        if plans is None or number >= len(plans):
            return None
        return tuple.__new__(EncodedPlan, (plans, number))  # as above

    # Groups that are given up.

    def keep_none(self, point: GroupNumber, reason: Unattributed) -> None:
        """Take a group for nobody's."""
        self._close(point)
        self.findings.keep_none(point, reason)

    def _close(self, point: GroupNumber) -> None:
        self.open.pop(point, None)
        self.waiting.pop(point, None)

    def give_up(self, point: GroupNumber, reason: RowsReason) -> None:
        """Plan no group of the statement that an open group may be of."""
        thread_id = self.open[point]
        if thread_id:
            self.sessions[thread_id].doubt(reason)
            self.settle([thread_id])
        else:
            self.keep_none(point, Unattributed(reason, self.makers(point)))

    def end_apart(self, point: GroupNumber) -> bool:
        """Give up an open group if only more reading could tell whose it is; True if that is so."""
        thread_id = self.open[point]
        if thread_id:
            if self.sessions[thread_id].wait is not Wait.READING:
                return False
        elif not all(one.is_answered for _, one in self.waiting[point].statements):
            return False
        self.give_up(point, RowsReason.APART)
        if point in self.open:
            self._give_up_all(thread_id, RowsReason.APART)
        return True

    def _give_up_all(self, thread_id: int, reason: RowsReason) -> None:
        """Take the groups of a session that were read for nobody's."""
        groups = self.sessions[thread_id]
        groups.doubt_all(reason)
        for arrival in groups.arrivals:
            self.keep_none(arrival.point, Unattributed(reason, frozenset((thread_id,))))
        groups.arrivals.clear()

    def _hear_of(self, thread_id: int, groups: SessionGroups, statement: SentStatement) -> None:
        """Take in which groups are told to be of a statement."""
        if len(statement.last) == 1 and not statement.is_bound:
            # The case of nearly all statements: one group, which is not read yet.
            stream, first, last = statement.last[0]
            if (not first or first == last) and self.progress.read.get(stream, 0) < last:
                self.told[stream, last] = thread_id
                if self.waiting or len(self.told) > self._told_most:
                    self._end_told()
                return
        for point in statement.told():
            if self.progress.read.get(point.stream, 0) < point.number:
                self.told[point] = thread_id
                continue
            waiting = self.waiting.pop(point, None)
            if waiting is not None:
                groups.arrive(waiting.arrival)
                self.open[point] = thread_id
            elif self.open.get(point) != thread_id and statement.count:
                # The group was taken for nobody's: the texts that were to be in it are not there.
                known = self.findings.get(point)
                is_told = isinstance(known, Unattributed) and thread_id in (known.threads or ())
                groups.is_missed |= not is_told
        self._end_told()

    def _end_told(self) -> None:
        if len(self.told) > self._told_most:
            self._drop_told()
        if self.waiting:
            self._end_waiting()

    def _drop_told(self) -> None:
        """Let go of groups that will not be read any more; if that is not enough, of those told first."""
        read = self.progress.read
        self.told = {
            point: thread_id
            for point, thread_id in self.told.items()
            if read.get(point[0], 0) < point[1]
        }
        for point in tuple(self.told)[: max(0, len(self.told) - _TOLD_MOST)]:
            del self.told[point]
        # Reading may be far behind: what is to come is looked through seldom.
        self._told_most = max(_TOLD_LEAST, 2 * len(self.told))

    def _end_waiting(self) -> None:
        """Let groups go as rows that no statement under way can have made any more."""
        for point, waiting in tuple(self.waiting.items()):
            if not waiting.is_over:
                continue
            makers = [each for each in waiting.statements if may_have_made(each[1])]
            reason = RowsReason.UNKNOWN if waiting.others else RowsReason.STRANGER
            if makers:
                is_any_lost = any(one.is_lost for _, one in makers)
                reason = RowsReason.LOST if is_any_lost else RowsReason.SEVERAL
            threads = waiting.others.union(thread_id for thread_id, _ in makers)
            self.keep_none(point, Unattributed(reason, threads))

    # Questions.

    def makers(self, point: GroupNumber) -> frozenset[int]:
        """The sessions that an open group may be of."""
        thread_id = self.open.get(point)
        if thread_id:
            return frozenset((thread_id,))
        waiting = self.waiting.get(point)
        return _NOBODY if waiting is None else frozenset(each for each, _ in waiting.statements)

    @property
    def knows_groups(self) -> bool:
        """True if a group was told or found out."""
        return bool(self.told or self.open) or self.findings.are_any

    def may_be_open(self, thread_id: int) -> bool:
        """True if the end of a session may tell something of statements that are known."""
        groups = self.sessions.get(thread_id)
        return groups is None or bool(groups.unanswered or self.waiting)

    def is_any_open(self) -> bool:
        """True if a statement of any session may make a group of which the log names no thread."""
        return any(
            one.is_split or may_have_made(one)
            for thread_id in self._busy
            for one in self.sessions[thread_id].undecided()
        )

    def may_name(self, point: GroupNumber, binlog: str) -> bool:
        """True if a statement that may have made an open group has a plan that names a binlog."""
        thread_id = self.open[point]
        statements: Iterable[SentStatement] = (
            self.sessions[thread_id].statements
            if thread_id
            else (one for _, one in self.waiting[point].statements)
        )
        return any(
            each.is_for_all
            or each.plans is None
            or any(binlog in plan.binlogs for plan in each.plans)
            for each in statements
        )

    def without_doubt(self, threads: Iterable[int]) -> list[int]:
        """Give those of some sessions that have no statement without a reply of which no group is planned."""
        return [
            thread_id
            for thread_id in threads
            if all(one.doubt is None for one in self._session(thread_id).unanswered.values())
        ]

    def with_older(self) -> list[int]:
        """Give the threads of sessions with groups, or statements without more groups, that are to be written down."""
        # In one step: another thread may change them.
        groups = [(one, self.sessions.get(one)) for one in tuple(self._busy)]
        older = [one for one, each in groups if each and (each.arrivals or each.gone)]
        for plans in tuple(self.unsaved):
            older += plans.threads()
        return older

    def answered(self) -> list[int]:
        """Give the threads of sessions with statements that may have groups to come, and were all answered."""
        return [
            thread_id
            for thread_id in self._busy
            if (groups := self.sessions[thread_id]).statements and not groups.unanswered
        ]

    def keep_found(self, found: Sequence[FoundPlans]) -> None:
        """Keep plans of groups that were found together, behind all that were before."""
        for plans in found:
            self._order += len(plans)
            self.findings.keep_plans(plans)
            self.unsaved.append(plans)

    def ends(self) -> dict[Stream, int]:
        """Give the last number of each stream of which is told."""
        ends = dict(self.progress.read)
        for groups in self.sessions.values():
            for stream, last in groups.told.items():
                ends[stream] = max(last, ends.get(stream, 0))
        return ends

    def under_way(self) -> list[tuple[int, SentStatement]]:
        """Give the statements that the journal is to know, each behind its session's thread."""
        found = [each for plans in self.unsaved for each in plans.statements()]
        for thread_id, groups in self.sessions.items():
            found += [(thread_id, each) for each in (*groups.gone, *groups.statements)]
        return found

    def unsettled(self) -> Unsettled:
        """Give what is not done with."""
        arrivals = [(0, waiting.arrival) for waiting in self.waiting.values()]
        doubts: list[tuple[int, int]] = []
        gone: list[tuple[list[SentStatement], int]] = []
        is_any_open = False
        # Sorted, so that what the journal has does not hang on when something was heard.
        for thread_id in sorted(self._busy):
            groups = self.sessions[thread_id]
            if groups.gone:
                gone.append((groups.gone, len(groups.gone)))
            if not groups.statements and not groups.arrivals:
                if not groups.gone:
                    self._busy.discard(thread_id)
                continue
            arrivals += [(thread_id, arrival) for arrival in groups.arrivals]
            for statement in groups.statements:
                is_any_open = True
                if statement.doubt is not None:
                    doubts.append((thread_id, statement.number))
        return Unsettled(arrivals, doubts, is_any_open, gone)

    # The whole state.

    def recover(self, found: Recovery) -> None:
        """Take up the state that a journal tells."""
        self.sessions = found.sessions
        self._busy.update(found.sessions)
        self.progress.recover(found.read, found.epoch, found.run)
        for thread_id, groups in found.sessions.items():
            self.open.update((each.point, thread_id) for each in groups.arrivals)
            for point in (point for one in groups.statements for point in one.told()):
                if not self.progress.has_read(point):
                    self.told[point] = thread_id
        for point in found.unknown:
            self.keep_none(point, Unattributed(RowsReason.LOST, None))

    def forget(self) -> None:
        """Forget all groups: the source is another one."""
        for groups in self.sessions.values():
            groups.clear()
        for points in (self.open, self.waiting, self.told):
            points.clear()
        self.findings.clear()
        self.unsaved.clear()
        self.progress.clear()

    def _session(self, thread_id: int) -> SessionGroups:
        """Give the record of a session that may have statements or groups soon."""
        groups = self.sessions.get(thread_id)
        if groups is None:
            groups = self.sessions[thread_id] = SessionGroups()
        self._busy.add(thread_id)
        return groups

    def _forget_over(self, unheard: Collection[int]) -> list[int]:
        """Let go of sessions that are over and have no more to come, those of long ago first."""
        forgotten = []
        for thread_id in tuple(self.sessions):
            groups = self.sessions[thread_id]
            if thread_id in unheard or not groups.is_done_with(self.progress.read):
                continue
            if not groups.statements or len(self.sessions) > 2 * _KEPT_SESSIONS:
                del self.sessions[thread_id]
                self._busy.discard(thread_id)
                forgotten.append(thread_id)
        return forgotten
