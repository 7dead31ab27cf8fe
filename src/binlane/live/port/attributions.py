"""Attribution of the source's groups to statements: told by sessions, asked by the routing thread.

Sessions say what their statements will make before these are sent, and what the replies told. The
routing thread says which groups it reads, then asks for their plans, and waits for a reply that is under way.
The statement of a group is found out once, and stays the same for whoever asks again.

The log names the maker of a group by the thread of the source that made it, or the reply names it by its
GTID. A group of which the log names no thread, and no session was told yet, waits for the replies to those
statements that are under way and could have made it, and for no others.

All is in a journal, so that it is known after a restart: what sessions say in files `*.statements`,
which their thread writes, what was read and found out in files `*.groups`, which the routing thread
writes. No lock is held while either writes.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Lock, RLock
from typing import Final, NamedTuple

from binlane.binlogs.routing.plan import GroupPlan, Text
from binlane.binlogs.routing.plan_bytes import encode_plans
from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.errors import StoreError
from binlane.live.port.journal import journal_records as records
from binlane.live.port.journal.group_journal import GroupJournal
from binlane.live.port.journal.journal_replay import Recovery
from binlane.live.port.journal.record_log import Place
from binlane.live.port.journal.statement_journal import Present, StatementJournal
from binlane.live.port.session_groups import (
    Arrival,
    Point,
    Reason,
    SessionGroups,
    Statement,
    Stream,
    Unattributed,
    Verdict,
    Wait,
    ends_of,
    point_of,
    told_of,
)
from binlane.log.codec.types import EventType, Flavor
from binlane.positions import AnyGtid, Position

JOURNAL_DIRECTORY: Final = "port"
"""In the data directory."""

_KEPT_MOST: Final = 8192
_KEPT_BYTES_MOST: Final = 32 << 20
"""Bytes of plans that are kept; plans of other groups are read from the journal."""
_TOLD_MOST: Final = 8192
_KEPT_SESSIONS: Final = 1024
_PATIENCE_LEAST_S: Final = 0.05
_INSERT_ID_KIND: Final = b"\x02"
_LOCAL_DISK: Final = LocalDisk()
_NO_PLANS: Final = encode_plans(())
_NOBODY: Final = frozenset[int]()

logger = logging.getLogger(__name__)


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


class Watch(NamedTuple):
    """The groups, among those read next, that `read` is to be given.

    Attributes:
        threads: Threads of sessions that are followed, or were followed when they ended.
        is_any_open: True if `read` is also to be given the groups of which the log does not name the thread.
    """

    threads: Collection[int]
    is_any_open: bool


class _Waiting(NamedTuple):
    """A group whose session is not known yet.

    Attributes:
        statements: Statements that were under way and could have made the group, with their threads.
        others: Threads with statements that may have made the group, as it is not known what they make.
    """

    arrival: Arrival
    statements: tuple[tuple[int, Statement], ...]
    others: frozenset[int]

    @property
    def is_over(self) -> bool:
        """True if none of the statements can claim the group any more."""
        return all(
            (one.is_answered and not one.is_split) or one.is_lost for _, one in self.statements
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionSettings:
    """Limits on the time that is waited and on the size of the journal.

    Attributes:
        wait_s: Seconds to wait for a statement's reply, once a group came that may be of the statement.
        file_bytes: Size at which a file of the journal is followed by another.
        journal_max_bytes: Size of all files together; the oldest are removed, and the groups that they tell
            of are routed as rows.
        is_relayed: True if sessions of other processes tell of their statements: a process that is killed may
            not have written the last of it.
    """

    wait_s: float = 5.0
    file_bytes: int = 8 << 20
    journal_max_bytes: int = 1 << 30
    is_relayed: bool = False


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
        self.lost_threads = _NOBODY
        self.hear: Callable[[], None] = _nothing
        self.saying = RLock()
        self._flavor = flavor
        self._settings = settings
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._is_waited_for = False
        self._sessions: dict[int, SessionGroups] = {}
        # Groups that were read and not attributed, with their threads; 0 while that is not known.
        self._open: dict[Point, int] = {}
        self._waiting: dict[Point, _Waiting] = {}
        # Groups that were told and not read yet, with their threads; those of sessions that had
        # the number of a thread before, with a minus.
        self._told: dict[tuple[Stream, int], int] = {}
        self._order = 0
        # Threads of sessions with statements or groups that are not done with, and of some without.
        self._busy: set[int] = set()
        self._read: dict[Stream, int] = {}
        self._position: Position | None = None
        self._known: OrderedDict[Point, GroupPlan | Unattributed] = OrderedDict()
        self._known_bytes = 0
        self._patience_s: dict[int, float] = {}
        self._is_closed = False
        self._is_begun = False
        self._epoch = secrets.randbits(64)
        self._run = 0
        # Contents of the routing thread's next record.
        self._moved: dict[Stream, int] = {}
        self._found: list[records.FoundGroup] = []
        self._doubts: list[tuple[int, int]] = []
        self._must_save = False
        self._statements: StatementJournal | None = None
        self._groups: GroupJournal | None = None
        if folder is not None:
            file_bytes = settings.file_bytes
            self._groups = GroupJournal(folder, disk, file_bytes // 8)
            self._statements = StatementJournal(
                folder, disk, file_bytes, self._present, is_relayed=settings.is_relayed
            )
            try:
                found = Recovery(self._statements, self._groups)
            except StoreError as error:
                logger.error("the port's journal cannot be read, groups go as rows: %s", error)  # noqa: TRY400
            else:
                self._sessions, self._read = found.sessions, found.read
                self._busy.update(found.sessions)
                self._take_up(found)
                self._run, self.lost_threads = found.run, found.lost
                self._is_begun = found.epoch is not None
                self._epoch = self._epoch if found.epoch is None else found.epoch

    @property
    def failure(self) -> str:
        """The reason why the journal cannot be written; empty while it can."""
        journals = [each for each in (self._statements, self._groups) if each is not None]
        return next((each.failure for each in journals if each.failure), "")

    # Messages of the sessions.

    def intend(
        self,
        thread_id: int,
        number: int,
        plans: Sequence[GroupPlan],
        encoded: bytes | None = None,
        *,
        is_split: bool = False,
        is_for_all: bool = False,
    ) -> None:
        """Say which groups a statement will make, before the statement is sent.

        Args:
            thread_id: Thread of the statement's session at the source.
            number: Number of the statement in its session; one that is said again was decided anew.
            plans: Plans of the groups that the statement makes at most, in order; empty where they are not
                known.
            encoded: The plans as `encode_plans` gives them; None where nobody has them.
            is_split: The first of several groups commits what was done before the statement, so that
                it comes for certain.
            is_for_all: True if the statement makes another thing for all binlogs than for the source.
        """
        place = doubt = None
        groups = self._sessions.get(thread_id)
        journal = self._statements
        if journal is not None:
            has_older = groups is not None and bool(groups.arrivals or groups.gone)
            if encoded is None:
                encoded = encode_plans(plans)
            bits = has_older * records.HAS_OLDER | is_split * records.IS_SPLIT
            bits |= is_for_all * records.IS_FOR_ALL
            body = records.statement_body(thread_id, number, bits, "", encoded)
            place = journal.write(records.INTENT, body)
            if place is None:
                doubt = Reason.NOT_WRITTEN
        statement = Statement(number, len(plans), plans, place)
        statement.is_split, statement.is_for_all, statement.doubt = is_split, is_for_all, doubt
        with self._lock:
            if groups is None:
                groups = self._session(thread_id)
            self._busy.add(thread_id)
            if groups.arrivals:
                self._settle([thread_id])  # what was read before is of statements before
            if groups.unanswered:
                groups.drop_old(number)
            groups.add(statement)

    def done(
        self,
        thread_id: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        encoded: bytes | None = None,
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
            encoded: Other plans in the form of `intend`.
            is_bound: `last` is all that the source had executed some time behind the statement and
                before the next one of the session.

        Raises:
            ValueError: If `last` is neither.
        """
        spans = told_of(last or "", is_bound=is_bound)
        is_known = bool(last) or plans is None or len(plans) > 0
        known = self._sessions.get(thread_id)
        statement = None if known is None else known.unanswered.get(number)
        if encoded is None and plans is not None and statement is not None:
            plans = None if _are_same(statement.plans, plans) else plans
        if statement is None and not spans:
            return
        place, journal = None, self._statements
        if journal is not None:
            if plans is None:
                encoded = b"" if statement is not None else _NO_PLANS
            elif encoded is None:
                encoded = encode_plans(plans)
            bits = is_known * records.IS_KNOWN | is_bound * records.IS_BOUND
            body = records.statement_body(thread_id, number, bits, last or "", encoded)
            place = journal.write(records.ANSWER, body)
        with self._lock:
            groups = self._session(thread_id)
            if statement is None:
                statement = Statement(number, 0, (), is_answered=True)
                groups.add(statement)
            if plans is not None:
                statement.plans, statement.place = plans, place
                statement.count = len(plans)
            statement.is_split &= statement.count > 1 and bool(spans)
            groups.answer(statement, spans, is_known=is_known, is_bound=is_bound)
            self._hear_of(thread_id, groups, statement)
            if self._patience_s and statement.doubt is None:
                self._patience_s.pop(thread_id, None)
            self._wake()

    def lost(self, thread_id: int) -> None:
        """Say that a session ended with a statement under way: it gets no reply."""
        self._write(records.LOST, records.dump(thread_id))
        with self._lock:
            self._session(thread_id).lose()
            self._end_waiting()
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
        self._write(records.TAKEN, records.dump((thread_id, self._run, start)))
        with self._lock:
            before = self._sessions.get(thread_id)
            if before is not None:
                self._give_up_all(thread_id, Reason.LOST)
                before.lose()
                self._told.update(
                    (point, -thread_id) for point, of in self._told.items() if of == thread_id
                )
                self._end_waiting()
            self._sessions[thread_id] = SessionGroups(
                start=dict(start), run=self._run, is_taken=True
            )
            if len(self._sessions) > _KEPT_SESSIONS:
                self._forget_over()

    def given(self, thread_id: int) -> None:
        """Say that a session ended."""
        self._write(records.GIVEN, records.dump(thread_id))
        with self._lock:
            groups = self._session(thread_id)
            groups.give()
            self._end_waiting()
            self._wake()

    # Messages and questions of the routing thread.

    def begin(self, position: Position) -> None:
        """Say that groups come from a position on: a feed was connected, or the first one is."""
        with self._lock:
            ends = ends_of(position)
            is_gap = not self._is_begun or any(
                self._read.get(stream, 0) < end for stream, end in ends.items()
            )
            if is_gap:
                self._skip(ends)
                self._must_save = True
            self._is_begun = True
            if self._position is None or is_gap:
                self._position = position
        if is_gap:
            self._save()

    def source_started(self, position: Position | None) -> None:
        """Say that the source was started anew where the log stands: its threads are others.

        Args:
            position: There; None where it is not known.
        """
        self.hear()
        with self._lock:
            known = self._position
            if position is not None and known is not None and not position.includes(known):
                return  # an earlier start, that a feed which lags comes by
            self._run += 1
            for thread_id, groups in self._sessions.items():
                groups.doubt_open(Reason.LOST)
                self._busy.add(thread_id)
            self._must_save = True
        self._save()

    def watch(self) -> Watch:
        """Say that groups were read, and be told of which `read` is to know."""
        self.hear()
        with self._lock:
            is_any_open = any(
                one.is_split or _may_have_made(one)
                for thread_id in self._busy
                for one in self._sessions[thread_id].statements
            )
            return Watch(frozenset(self._sessions), is_any_open)

    def wants(self, group: ReadGroup, watch: Watch) -> bool:
        """True if `read` is to be given a group."""
        point = point_of(group.gtid)
        if self._read.get(point.stream, 0) < point.number:
            is_watched = group.thread_id in watch.threads if group.thread_id else watch.is_any_open
            return is_watched or point in self._told
        return (
            point in self._known
            or point in self._open
            or (self._groups is not None and self._groups.find(point) is not None)
        )

    def numbers(self, first: int, last: int) -> set[int]:
        """Give the numbers of groups that were told or found out, of any stream.

        Args:
            first: The least number that is of interest.
            last: The greatest number that is of interest.
        """
        with self._lock:
            found = {
                number
                for points in (self._known, self._told, self._open)
                for _, number in points
                if first <= number <= last
            }
        if self._groups is not None:
            found |= self._groups.numbers(first, last)
        return found

    def read(self, groups: Iterable[ReadGroup], after: Position | None) -> None:
        """Say which groups come next in the log, before any of them is asked for.

        Args:
            groups: Groups that `watch` wants, in the order of the log.
            after: Position up to which everything is read, with these groups.
        """
        self.hear()
        with self._lock:
            touched = {thread_id for group in groups if (thread_id := self._arrive(group))}
            self._advance(after)
            self._settle(touched)
        self._save()

    def find(self, group: ReadGroup, *, wait_s: float | None = None) -> GroupPlan | Unattributed:
        """The plan of a group; waits for its statement's reply if that is under way.

        Args:
            group: Group that was `read`, or that counts as read by this call.
            wait_s: Longest wait in seconds; the default is the one of the settings.
        """
        point = point_of(group.gtid)
        known = self._known.get(point)
        if known is not None:
            if self._found:
                self._save()
            return known
        self.hear()
        with self._lock:
            self._look_at(group, point)
            if point in self._open:
                self._await(point, wait_s)
            known = self._known.get(point)
            is_closed = self._is_closed and point in self._open
        self._save()
        if is_closed:
            return Unattributed(Reason.CLOSED)
        return self._recall(point, group.thread_id) if known is None else known

    def _look_at(self, group: ReadGroup, point: Point) -> None:
        """Attribute a group as far as that is possible by now; the caller holds the lock."""
        self._arrive(group)
        self._settle_around(point)

    def _await(self, point: Point, wait_s: float | None) -> None:
        """Wait until a group is attributed, or give up; the caller holds the lock."""
        if wait_s is None:
            wait_s = self._patience_of(self._makers(point))
        deadline_s = time.monotonic() + wait_s
        while not self._is_closed and point in self._open:
            thread_id = self._open[point]
            if thread_id and self._sessions[thread_id].wait is Wait.READING:
                self._give_up(thread_id, Reason.APART)
                if point in self._open:
                    self._give_up_all(thread_id, Reason.APART)
                continue
            if not thread_id and all(one.is_answered for _, one in self._waiting[point].statements):
                self._keep(point, Unattributed(Reason.APART, self._makers(point)))
                continue
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                self._lose_patience(point)
                return
            self._is_waited_for = True
            self._changed.wait(left_s)
            self._is_waited_for = False
            self._settle_around(point)

    def known(self, groups: Sequence[ReadGroup]) -> list[GroupPlan | Unattributed | None]:
        """Give the known plans of groups that were read just now; None where `find` has to say it."""
        with self._lock:
            return [self._known.get(point_of(group.gtid)) for group in groups]

    def are_named(self, groups: Sequence[ReadGroup], binlog: str) -> list[bool]:
        """Tell for each group that was read if its plan may name a binlog; plans are known when they come.

        A plan that only the journal holds counts as naming all binlogs.
        """
        with self._lock:
            return [self._is_named(point_of(group.gtid), binlog) for group in groups]

    def _is_named(self, point: Point, binlog: str) -> bool:
        known = self._known.get(point)
        if known is not None:
            return isinstance(known, GroupPlan) and binlog in known.binlogs
        thread_id = self._open.get(point)
        if thread_id is None:
            return self._groups is not None and self._groups.find(point) is not None
        statements: Iterable[Statement] = (
            self._sessions[thread_id].statements
            if thread_id
            else (one for _, one in self._waiting[point].statements)
        )
        return any(
            each.is_for_all
            or each.plans is None
            or any(binlog in plan.binlogs for plan in each.plans)
            for each in statements
        )

    def is_pending(self, gtid: AnyGtid) -> bool:
        """True if more must be read or said before the statement of a group that was read is known."""
        point = point_of(gtid)
        with self._lock:
            if self._is_closed or point not in self._open:
                return False
            self._settle_around(point)
            return point in self._open

    def patience_s(self, gtid: AnyGtid) -> float:
        """Seconds for which a group is waited for."""
        with self._lock:
            return self._patience_of(self._makers(point_of(gtid)))

    def passed(self, position: Position) -> None:
        """Say that all binlogs have everything up to a position: nobody asks for it again."""
        if self._statements is None or self._groups is None:
            return
        ends = ends_of(position)
        with self._lock:
            held = {
                statement.place.file
                for groups in self._sessions.values()
                for statement in groups.statements
                if statement.place is not None
            }
        self._groups.passed(ends)
        self._statements.passed(ends, held)
        groups_bytes = self._settings.journal_max_bytes // 4
        self._groups.shrink(groups_bytes)
        self._statements.shrink(self._settings.journal_max_bytes - groups_bytes)

    def close(self) -> None:
        """Let nobody wait any longer, and let go of the files."""
        with self._lock:
            self._is_closed = True
            self._wake()
        # The other part is the routing thread's, which may be writing.
        if self._statements is not None:
            self._statements.close()

    def forget(self) -> None:
        """Forget all groups: the source is another one, whose GTIDs mean other groups."""
        with self._lock:
            for groups in self._sessions.values():
                groups.arrivals.clear()
                groups.statements.clear()
                groups.unanswered.clear()
                groups.told.clear()
            for known in (self._read, self._known, self._moved, self._patience_s):
                known.clear()
            for points in (self._open, self._waiting, self._told):
                points.clear()
            self._found.clear()
            self._known_bytes = 0
            self._position, self._is_begun = None, False
            # Older records are of the other source, and stay so if they cannot be deleted.
            self._epoch = secrets.randbits(64)
            self._must_save = True
        if self._statements is not None and self._groups is not None:
            self._statements.renew(is_stale=True)
            self._groups.forget()
            self._save()

    # State of the sessions; every call holds the lock.

    def _take_up(self, found: Recovery) -> None:
        """Take up the groups that the process before had not attributed."""
        for thread_id, groups in found.sessions.items():
            self._open.update((each.point, thread_id) for each in groups.arrivals)
            for point in (point for one in groups.statements for point in one.told()):
                if self._read.get(point.stream, 0) < point.number:
                    self._told[point] = thread_id
        for point in found.unknown:
            self._keep(point, Unattributed(Reason.LOST, None))

    def _wake(self) -> None:
        if self._is_waited_for:
            self._changed.notify_all()

    def _session(self, thread_id: int) -> SessionGroups:
        """Give the record of a session that may have statements or groups soon."""
        groups = self._sessions.get(thread_id)
        if groups is None:
            groups = self._sessions[thread_id] = SessionGroups()
        self._busy.add(thread_id)
        return groups

    def _give_up_all(self, thread_id: int, reason: Reason) -> None:
        """Take the groups of a session that were read for nobody's."""
        groups = self._sessions[thread_id]
        groups.doubt_all(reason)
        for arrival in groups.arrivals:
            self._keep(arrival.point, Unattributed(reason, frozenset((thread_id,))))
        groups.arrivals.clear()

    def _forget_over(self) -> None:
        """Let go of sessions that are over and have no more to come, those of long ago first."""
        for thread_id in tuple(self._sessions):
            groups = self._sessions[thread_id]
            is_told = any(self._read.get(stream, 0) < last for stream, last in groups.told.items())
            if groups.is_taken or groups.arrivals or groups.gone or is_told:
                continue
            if not groups.statements or len(self._sessions) > 2 * _KEPT_SESSIONS:
                del self._sessions[thread_id]
                self._busy.discard(thread_id)
                self._patience_s.pop(thread_id, None)

    def _arrive(self, group: ReadGroup) -> int:
        """Take in that a group was read; its thread if that is a session's to be settled, else 0."""
        point = point_of(group.gtid)
        if self._read.get(point.stream, 0) >= point.number:
            return 0
        self._read[point.stream] = self._moved[point.stream] = point.number
        self._order += 1
        arrival = Arrival(point, group.is_commit, self._order)
        thread_id = self._told.pop(point, group.thread_id)
        if thread_id < 0:
            self._keep(point, Unattributed(Reason.LOST, frozenset((-thread_id,))))
            return 0
        groups = self._sessions.get(thread_id)
        if groups is not None and groups.start.get(point.stream, 0) < point.number:
            groups.arrive(arrival)
            self._open[point] = thread_id
            self._busy.add(thread_id)
            return thread_id
        if not thread_id:
            self._wait_for_makers(group, arrival)
        else:
            self._keep(point, Unattributed(Reason.STRANGER))
        return 0

    def _wait_for_makers(self, group: ReadGroup, arrival: Arrival) -> None:
        """Find out which statements could have made a group whose thread is not known."""
        found = [
            (thread_id, one)
            for thread_id in self._busy
            for one in self._sessions[thread_id].statements
            if (one.is_split or _may_have_made(one))
            and (one.is_for_all or any(map(group.could_be, self._plans(one) or ())))
        ]
        others = frozenset(
            thread_id
            for thread_id in self._busy
            if any(map(self._may_make_anything, self._sessions[thread_id].statements))
        )
        self._waiting[arrival.point] = _Waiting(arrival, tuple(found), others)
        self._open[arrival.point] = 0
        self._end_waiting()

    def _may_make_anything(self, one: Statement) -> bool:
        """True if it is not known which groups a statement makes, and some may still come."""
        if one.count or one.is_lost:
            return False
        return not one.is_answered or any(
            self._read.get(span.stream, 0) < span.last for span in one.last
        )

    def _hear_of(self, thread_id: int, groups: SessionGroups, statement: Statement) -> None:
        """Take in which groups are told to be of a statement."""
        if len(statement.last) == 1 and not statement.is_bound:
            # The case of nearly all statements: one group, which is not read yet.
            stream, first, last = statement.last[0]
            if (not first or first == last) and self._read.get(stream, 0) < last:
                self._told[stream, last] = thread_id
                if self._waiting or len(self._told) > _TOLD_MOST:
                    self._end_told()
                return
        for point in statement.told():
            if self._read.get(point.stream, 0) < point.number:
                self._told[point] = thread_id
                continue
            waiting = self._waiting.pop(point, None)
            if waiting is not None:
                groups.arrive(waiting.arrival)
                self._open[point] = thread_id
            elif self._open.get(point) != thread_id and statement.count:
                # The group was taken for nobody's: the texts that were to be in it are not there.
                known = self._known.get(point)
                is_told = isinstance(known, Unattributed) and thread_id in (known.threads or ())
                groups.is_missed |= not is_told
        self._end_told()

    def _end_told(self) -> None:
        if len(self._told) > _TOLD_MOST:
            for point in tuple(self._told)[: _TOLD_MOST // 2]:
                del self._told[point]
        if self._waiting:
            self._end_waiting()

    def _end_waiting(self) -> None:
        """Let groups go as rows that no statement under way can have made any more."""
        for point, waiting in tuple(self._waiting.items()):
            if not waiting.is_over:
                continue
            makers = [each for each in waiting.statements if _may_have_made(each[1])]
            reason = Reason.UNKNOWN if waiting.others else Reason.STRANGER
            if makers:
                is_any_lost = any(one.is_lost for _, one in makers)
                reason = Reason.LOST if is_any_lost else Reason.SEVERAL
            threads = waiting.others.union(thread_id for thread_id, _ in makers)
            self._keep(point, Unattributed(reason, threads))

    def _advance(self, after: Position | None) -> None:
        if after is None or after is self._position:
            return
        read, is_further, ends = self._read, False, ends_of(after)
        for stream, number in ends.items():
            if read.get(stream, 0) < number:
                read[stream] = self._moved[stream] = number
            is_further |= read[stream] == number
        if self._position is None or (self._flavor is Flavor.MARIADB and ends == read):
            self._position = after
        elif is_further:
            is_all = after.includes(self._position)
            self._position = after if is_all else self._position.union(after)

    def _skip(self, ends: dict[Stream, int]) -> None:
        """Go on behind a gap: nothing is certain of statements whose groups may be in it."""
        is_told_all = self._flavor is Flavor.MYSQL
        for thread_id, groups in self._sessions.items():
            for arrival in groups.arrivals:
                found = Unattributed(Reason.NOT_READ, frozenset((thread_id,)))
                self._keep(arrival.point, found)
            groups.arrivals.clear()
            for statement in groups.statements:
                if statement.is_lost or not is_told_all:
                    statement.doubt = statement.doubt or Reason.NOT_READ
        for point, waiting in tuple(self._waiting.items()):
            threads = frozenset(thread_id for thread_id, _ in waiting.statements)
            self._keep(point, Unattributed(Reason.NOT_READ, threads))
        for stream, number in ends.items():
            if self._read.get(stream, 0) < number:
                self._read[stream] = self._moved[stream] = number
        if self._statements is not None:
            self._statements.renew()

    def _settle(self, threads: Iterable[int]) -> None:
        for thread_id in threads:
            groups = self._sessions[thread_id]
            if groups.statements and groups.statements[0].is_split:
                self._find_first(thread_id, groups, groups.statements[0])
            for verdict in groups.settle(self._read):
                self._note(thread_id, verdict)

    def _settle_around(self, point: Point) -> None:
        """Attribute an open group as far as that is possible by now."""
        self._settle(self._makers(point))
        if point in self._waiting:
            self._end_waiting()

    def _find_first(self, thread_id: int, groups: SessionGroups, statement: Statement) -> None:
        """Find the group that a statement has committed before its own, if the log names no thread.

        It is there for certain: where one group only could be it, and can be of nobody else, it is.
        """
        spans = statement.last
        if not spans or any(self._read.get(span.stream, 0) < span.last for span in spans):
            return
        if len(groups.arrivals) < statement.count:
            found = [
                waiting
                for waiting in self._waiting.values()
                if any(one is statement for _, one in waiting.statements)
            ]
            others = [
                one for waiting in found for _, one in waiting.statements if one is not statement
            ]
            if any(not (one.is_answered or one.is_lost) for one in others):
                return  # they will say what is theirs
            if len(found) == 1 and not any(map(_may_have_made, others)):
                arrival = found[0].arrival
                del self._waiting[arrival.point]
                groups.arrive(arrival)
                self._open[arrival.point] = thread_id
        statement.is_split = False
        self._end_waiting()

    def _note(self, thread_id: int, verdict: Verdict) -> None:
        statement, point, threads = verdict.statement, verdict.point, frozenset((thread_id,))
        if statement is None:
            self._keep(point, Unattributed(verdict.reason, threads))
            return
        plan = self._plan_of(statement, verdict.plan)
        if plan is None:
            self._keep(point, Unattributed(Reason.FORGOTTEN, threads))
        elif statement.is_lost and _hangs_on_reply(plan):
            self._keep(point, Unattributed(Reason.LOST, threads))
        else:
            self._keep(point, plan)
            if statement.place is not None:
                found = records.FoundGroup(thread_id, point, statement.place, verdict.plan)
                self._found.append(found)

    def _keep(self, point: Point, known: GroupPlan | Unattributed) -> None:
        self._open.pop(point, None)
        self._waiting.pop(point, None)
        self._known_bytes += _bytes_of(known) - _bytes_of(self._known.pop(point, None))
        self._known[point] = known
        while len(self._known) > _KEPT_MOST or self._known_bytes > _KEPT_BYTES_MOST:
            self._known_bytes -= _bytes_of(self._known.popitem(last=False)[1])
        if isinstance(known, Unattributed) and known.reason is not Reason.STRANGER:
            for thread_id in known.threads or ():
                found = records.FoundGroup(thread_id, point, records.NO_PLACE, records.NO_PLAN)
                self._found.append(found)

    def _makers(self, point: Point) -> frozenset[int]:
        """The sessions that an open group may be of."""
        thread_id = self._open.get(point)
        if thread_id:
            return frozenset((thread_id,))
        waiting = self._waiting.get(point)
        return _NOBODY if waiting is None else frozenset(each for each, _ in waiting.statements)

    def _patience_of(self, threads: Iterable[int]) -> float:
        most_s = self._settings.wait_s
        return min((self._patience_s.get(each, most_s) for each in threads), default=most_s)

    def _give_up(self, thread_id: int, reason: Reason) -> None:
        self._sessions[thread_id].doubt(reason)
        self._settle([thread_id])

    def _lose_patience(self, point: Point) -> None:
        """Give a group up, and wait less for whoever kept all waiting, until a reply comes in time."""
        makers, thread_id = self._makers(point), self._open[point]
        for each in makers:
            patience_s = self._patience_s.get(each, self._settings.wait_s)
            self._patience_s[each] = max(
                patience_s / 4, min(_PATIENCE_LEAST_S, self._settings.wait_s)
            )
        if thread_id:
            self._give_up(thread_id, Reason.NOT_ANSWERED)
        else:
            self._keep(point, Unattributed(Reason.NOT_ANSWERED, makers))

    def _plans(self, statement: Statement) -> Sequence[GroupPlan] | None:
        if statement.plans is None and self._statements is not None:
            return self._statements.plans_of(statement)
        return statement.plans

    def _plan_of(self, statement: Statement, number: int) -> GroupPlan | None:
        plans = self._plans(statement)
        return plans[number] if plans is not None and number < len(plans) else None

    # The journal.

    def _write(self, kind: int, body: bytes) -> Place | None:
        """Write a session's message; None without a journal, and if writing fails."""
        return None if self._statements is None else self._statements.write(kind, body)

    def _present(self) -> Present:
        with self._lock:
            ends = dict(self._read)
            for groups in self._sessions.values():
                for stream, last in groups.told.items():
                    ends[stream] = max(last, ends.get(stream, 0))
            return Present(
                records.sessions_body(self._epoch, ends, self._sessions),
                ends,
                [
                    (thread_id, statement)
                    for thread_id, groups in self._sessions.items()
                    for statement in (*groups.gone, *groups.statements)
                ],
            )

    def _save(self) -> None:
        """Write which groups were read and found out; called by the routing thread only."""
        journal = self._groups
        with self._lock:
            found, self._found = self._found, []
            arrivals = [(0, waiting.arrival) for waiting in self._waiting.values()]
            doubts: list[tuple[int, int]] = []
            gone: list[tuple[list[Statement], int]] = []
            is_any_open = False
            for thread_id in tuple(self._busy):
                groups = self._sessions[thread_id]
                if groups.gone:
                    gone.append((groups.gone, len(groups.gone)))
                if not groups.statements and not groups.arrivals:
                    self._busy.discard(thread_id)
                    continue
                arrivals += [(thread_id, arrival) for arrival in groups.arrivals]
                for statement in groups.statements:
                    is_any_open = True
                    if statement.doubt is not None:
                        doubts.append((thread_id, statement.number))
            has_news = bool(found or arrivals or self._must_save) or doubts != self._doubts
            has_news |= bool(gone) or (journal is not None and bool(journal.failure))
            if journal is None or not (has_news or (self._moved and is_any_open)):
                for statements, _ in gone:
                    statements.clear()
                return
            ends = dict(self._read) if journal.is_file_due else self._moved
            progress = records.ReadProgress(
                *(self._epoch, self._run, ends, arrivals, doubts, found)
            )
            self._moved, self._must_save, self._doubts = {}, False, doubts
        journal.write(progress)
        if gone:
            with self._lock:
                for statements, count in gone:
                    del statements[:count]

    def _recall(self, point: Point, thread_id: int) -> GroupPlan | Unattributed:
        """Give the recorded finding on a group that is not in memory any more."""
        if self._groups is None or self._statements is None:
            return Unattributed(Reason.FORGOTTEN, frozenset((thread_id,)) if thread_id else None)
        found = self._groups.find(point)
        if found is None and self._groups.tells_of(point):
            return Unattributed(Reason.STRANGER)
        if found is None:
            return Unattributed(Reason.FORGOTTEN, frozenset((thread_id,)) if thread_id else None)
        if found.plan != records.NO_PLAN:
            plans = self._statements.plans_at(found.place)
            if plans is not None and found.plan < len(plans):
                return plans[found.plan]
        return Unattributed(Reason.FORGOTTEN, frozenset((found.thread_id,)))


def _may_have_made(statement: Statement) -> bool:
    """True if a group that could be a statement's, but was not told of it, may still be the statement's.

    False for a statement that can have made one group only, and was told another or none.
    """
    if not statement.is_answered:
        return True
    return not statement.count or (bool(statement.last) and statement.count > 1)


def _bytes_of(known: GroupPlan | Unattributed | None) -> int:
    return known.text_bytes if isinstance(known, GroupPlan) else 0


def _nothing() -> None:
    """Do nothing: the default of `hear` where all sessions are this process's."""


def _are_same(intended: Sequence[GroupPlan] | None, plans: Sequence[GroupPlan]) -> bool:
    return intended is not None and list(intended) == list(plans)


def _hangs_on_reply(plan: GroupPlan) -> bool:
    """True if a plan holds values that only a reply tells: the ids that the server chose."""
    return any(
        isinstance(part, Text)
        and any(
            event.type_code == EventType.INTVAR and event.body[:1] == _INSERT_ID_KIND
            for event in part.events
        )
        for parts in plan.binlogs.values()
        for part in parts
    )
