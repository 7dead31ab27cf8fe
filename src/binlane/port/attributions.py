"""Which group of the source is of which statement: told by sessions, asked by the routing thread.

Sessions say what their statements will make before these are sent, and what the replies told. The
routing thread says which groups of lanes it reads, then asks for their plans, and waits for a reply
that is under way. What a group is, is found out once, and stays the same for whoever asks again.

All is in a journal, so that it is known after a restart: what sessions say in files `*.statements`,
which their thread writes, what was read and found out in files `*.groups`, which the routing thread
writes. No lock is held while either writes.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Lock, RLock
from typing import Final

from binlane.codec.types import EventType, Flavor
from binlane.errors import StoreError
from binlane.port import journal_records as records
from binlane.port.group_journal import GroupJournal
from binlane.port.journal import Place
from binlane.port.lane_groups import (
    Arrival,
    LaneGroups,
    Point,
    Reason,
    Statement,
    Stream,
    Unattributed,
    Verdict,
    Wait,
    ends_of,
    point_of,
    spans_told,
)
from binlane.port.plan_bytes import encode_plans
from binlane.port.recovery import Recovery
from binlane.port.statement_journal import Present, StatementJournal, head_of
from binlane.positions import AnyGtid, Position
from binlane.routing.plan import GroupPlan, Text
from binlane.store.disk import Disk, LocalDisk

JOURNAL_DIRECTORY: Final = "port"
"""In the data directory."""

_KEPT_MOST: Final = 8192
_LOADED_MOST: Final = 4
_RETRY_S: Final = 1.0
_MACHINE_BYTES: Final = 40
_PATIENCE_LEAST_S: Final = 0.05
_INSERT_ID_KIND: Final = b"\x02"
_LOCAL_DISK: Final = LocalDisk()
_NO_PLANS: Final = encode_plans(())

logger = logging.getLogger(__name__)

LaneGroup = tuple[int, AnyGtid, bool]
"""A group of the source: its lane, its GTID, and whether it ends with XID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionSettings:
    """How long is waited, and how much is kept.

    Attributes:
        wait_s: For a statement's reply, once a group came that may be of it.
        file_bytes: A file of the journal that has so many is followed by another.
        journal_max_bytes: Of all files; the oldest go, and what they tell of goes as rows.
        is_relayed: What sessions say comes from other processes: a process that is killed may not
            have written the last of it.
    """

    wait_s: float = 5.0
    file_bytes: int = 8 << 20
    journal_max_bytes: int = 1 << 30
    is_relayed: bool = False


_DEFAULT_SETTINGS: Final = AttributionSettings()


class Attributions:
    """Knows which group is of which statement.

    `intend`, `done`, `lost`, `taken`, `given` and `ended` are called by one thread, that of the
    sessions, or by one at a time, which holds `saying`; `begin`, `read`, `find`, `passed` and `forget` by one other, which routes.

    Attributes:
        unwritten: How many statements go as rows for that.
        given_up: For how many groups a reply was waited for in vain.
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
        """Take up what the journal tells.

        Args:
            folder: Of the journal; None keeps none.
            flavor: Of the source.
            settings: How long is waited, and how much is kept.
            disk: Where the folder is.

        Raises:
            StoreError: If the folder cannot be used.
        """
        self.unwritten = 0
        self.given_up = 0
        self.hear: Callable[[], None] = _nothing
        self.saying = RLock()
        self._flavor = flavor
        self._settings = settings
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._is_waited_for = False
        self._lanes: dict[int, LaneGroups] = {}
        # Those with statements or groups that are not done with, and some that were.
        self._busy: set[int] = set()
        self._read: dict[Stream, int] = {}
        self._position: Position | None = None
        self._known: OrderedDict[Point, tuple[int, GroupPlan | Unattributed]] = OrderedDict()
        self._patience_s: dict[int, float] = {}
        self._is_closed = False
        self._is_begun = False
        self._epoch = secrets.randbits(64)
        # What the routing thread's next record is to say.
        self._moved: dict[Stream, int] = {}
        self._found: list[records.FoundGroup] = []
        self._doubts: list[tuple[int, int]] = []
        self._has_gap = False
        self._statements: StatementJournal | None = None
        self._groups: GroupJournal | None = None
        if folder is not None:
            file_bytes = settings.file_bytes
            self._groups = GroupJournal(folder, disk, file_bytes // 8)
            self._statements = StatementJournal(
                folder, disk, file_bytes, self._present, is_relayed=settings.is_relayed
            )
            try:
                found = Recovery(flavor, self._statements, self._groups)
            except StoreError as error:
                logger.error("the port's journal cannot be read, groups go as rows: %s", error)  # noqa: TRY400
            else:
                self._lanes, self._read = found.lanes, found.read
                self._busy.update(found.lanes)
                self._is_begun = found.epoch is not None
                self._epoch = self._epoch if found.epoch is None else found.epoch

    @property
    def failure(self) -> str:
        """Why the journal cannot be written; empty while it can."""
        journals = [each for each in (self._statements, self._groups) if each is not None]
        return next((each.failure for each in journals if each.failure), "")

    # What sessions say.

    def intend(
        self, lane: int, number: int, plans: Sequence[GroupPlan], encoded: bytes | None = None
    ) -> None:
        """Say what a statement will make, before it is sent.

        Args:
            lane: On which.
            number: Which statement of its session; one that is said again was decided anew.
            plans: Of the groups that it makes at most, in order; empty where that is not known.
            encoded: The plans as `encode_plans` gives them; None where nobody has them.
        """
        place = doubt = None
        groups = self._lanes.get(lane)
        journal = self._statements
        if journal is not None:
            has_older = groups is not None and bool(groups.arrivals or groups.gone)
            if encoded is None:
                encoded = encode_plans(plans)
            body = records.intent_body(lane, number, encoded, has_older=has_older)
            place = journal.write(records.INTENT, body)
            if place is None:
                doubt = Reason.NOT_WRITTEN
                self.unwritten += 1
        statement = Statement(number, len(plans), plans, place, doubt=doubt)
        with self._lock:
            if groups is None:
                groups = self._lane(lane)
            self._busy.add(lane)
            if groups.arrivals:
                self._settle([lane])  # what was read before is of statements before
            if groups.statements:
                groups.drop_old(number)
            groups.add(statement)

    def done(
        self,
        lane: int,
        number: int,
        last: str | None,
        plans: Sequence[GroupPlan] | None = None,
        encoded: bytes | None = None,
    ) -> None:
        """Say what a statement's reply told.

        Args:
            lane: On which.
            number: Which statement of its session; one that was not intended may be.
            last: What was told of its groups: MariaDB's `last_gtid`, MySQL's GTID set; None for
                nothing, which means that it made none.
            plans: Of its groups, where they are others than those that were intended; empty where
                nothing is known of them, nor, without `last`, whether there are any.
            encoded: As of `intend`, of plans that are others.

        Raises:
            ValueError: If `last` is neither.
        """
        spans = spans_told(last) if last else ()
        is_known = bool(last) or plans is None or len(plans) > 0
        groups = self._lanes.get(lane) or self._lane(lane)
        statement = groups.find(number)
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
            body = records.answer_body(lane, number, last or "", encoded, is_known=is_known)
            place = journal.write(records.ANSWER, body)
        with self._lock:
            self._busy.add(lane)
            if statement is None:
                statement = Statement(number, 0, (), is_answered=True)
                groups.add(statement)
            if plans is not None:
                statement.plans, statement.place = plans, place
                statement.count = len(plans)
            groups.answer(statement, spans, is_known=is_known)
            if journal is not None and statement.place is not None and statement.last:
                journal.need(statement)
            if self._patience_s and statement.doubt is None:
                self._patience_s.pop(lane, None)
            self._wake()

    def lost(self, lane: int) -> None:
        """Say that a session ended with a statement under way: it gets no reply."""
        self._write(records.LOST, records.lane_body(lane))
        with self._lock:
            self._lane(lane).lose()
            self._wake()

    def taken(self, lane: int, thread_id: int = 0, position: Position | None = None) -> None:
        """Say that a session got a lane.

        Args:
            lane: Which; it is clear.
            thread_id: Of the session at the source.
            position: What the source had logged by then: nothing of it is this session's.
        """
        self.taken_from(lane, thread_id, {} if position is None else ends_of(position))

    def taken_from(self, lane: int, thread_id: int, start: Mapping[Stream, int]) -> None:
        """As `taken`, with the last number of each stream in place of the position."""
        self._write(records.TAKEN, records.taken_body(lane, thread_id, start))
        with self._lock:
            self._lane(lane).take(thread_id, start)

    def given(self, lane: int) -> None:
        """Say that a lane's session ended, or left it."""
        self._write(records.GIVEN, records.lane_body(lane))
        with self._lock:
            self._lane(lane).give()
            self._wake()

    def ended(self, lane: int, position: Position) -> None:
        """Say that the thread of a lane's last session is gone from the source.

        Args:
            lane: Whose statement under way was lost.
            position: What the source had logged at some time after that.
        """
        with self.saying:
            self._write(records.ENDED, records.ended_body(lane, str(position)))
        with self._lock:
            self._lane(lane).end = position
            self._settle([lane])
            self._wake()

    @property
    def unended(self) -> dict[int, int]:
        """The lanes that wait for `ended`, each with the thread of its last session; 0 for none."""
        with self._lock:
            return {
                number: groups.thread_id
                for number, groups in self._lanes.items()
                if groups.needs_end and groups.end is None
            }

    def is_clear(self, lane: int) -> bool:
        """Whether all that a lane's last session made was read, so that another may have it."""
        with self._lock:
            groups = self._lanes.get(lane)
            if groups is None:
                return True
            if groups.is_taken or (groups.needs_end and not self._is_end_read(groups)):
                return False
            read = self._read
            if any(read.get(stream, 0) < number for stream, number in groups.told.items()):
                return False
            self._settle([lane])
            return not groups.statements and not groups.arrivals

    # What the routing thread says and asks.

    def begin(self, position: Position) -> None:
        """Say that groups come from a position on: a feed was connected, or the first one is."""
        with self._lock:
            ends = ends_of(position)
            is_gap = not self._is_begun or any(
                self._read.get(stream, 0) < end for stream, end in ends.items()
            )
            if is_gap:
                self._skip(ends)
                self._has_gap = True
            self._is_begun = True
            if self._position is None or is_gap:
                self._position = position
        if is_gap:
            self._save()

    def read(self, groups: Iterable[LaneGroup], after: Position | None) -> None:
        """Say what comes next in the log, before any of it is asked for.

        Args:
            groups: All that are of lanes, in the order of the log.
            after: Everything up to here is read with them.
        """
        self.hear()
        with self._lock:
            touched = [
                lane for lane, gtid, is_commit in groups if self._arrive(lane, gtid, is_commit)
            ]
            self._advance(after)
            self._settle(touched)
        self._save()

    def find(
        self, lane: int, gtid: AnyGtid, *, is_commit: bool = False, wait_s: float | None = None
    ) -> GroupPlan | Unattributed:
        """The plan of a group; waits for its statement's reply if that is under way.

        Args:
            lane: On which it came.
            gtid: Its GTID; whether it was `read` or is so by this.
            is_commit: Whether it ends with XID.
            wait_s: At most; by default as the settings say.
        """
        point = point_of(gtid)
        known = self._known.get(point)
        if known is not None and known[0] == lane:
            if self._found:
                self._save()
            return known[1]
        self.hear()
        with self._lock:
            if self._arrive(lane, gtid, is_commit) or self._is_open(lane, point):
                self._settle([lane])
            if self._is_open(lane, point):
                self._await(lane, point, wait_s)
            known = self._known.get(point)
            is_closed = self._is_closed and self._is_open(lane, point)
        self._save()
        if is_closed:
            return Unattributed(Reason.CLOSED)
        if known is None:
            return self._recall(lane, point)
        return known[1] if known[0] == lane else Unattributed(Reason.NO_STATEMENT)

    def _await(self, lane: int, point: Point, wait_s: float | None) -> None:
        """Wait until it is known what a group is, or give up; with the lock."""
        if wait_s is None:
            wait_s = self._patience_s.get(lane, self._settings.wait_s)
        deadline_s = time.monotonic() + wait_s
        while not self._is_closed:
            if self._lanes[lane].wait is Wait.READING:
                self._give_up(lane, Reason.APART)
            else:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    self._lose_patience(lane)
                    is_lost = self._lanes[lane].wait is Wait.END
                    self._give_up(lane, Reason.LOST if is_lost else Reason.NOT_ANSWERED)
                    return
                self._is_waited_for = True
                self._changed.wait(left_s)
                self._is_waited_for = False
                self._settle([lane])
            if not self._is_open(lane, point):
                return

    def known(self, groups: Sequence[LaneGroup]) -> list[GroupPlan | Unattributed | None]:
        """What is known of groups that were read just now; None where `find` has to say it."""
        with self._lock:
            found = [(lane, self._known.get(point_of(gtid))) for lane, gtid, _ in groups]
        return [
            known[1] if known is not None and known[0] == lane else None for lane, known in found
        ]

    def are_named(self, groups: Sequence[LaneGroup], binlog: str) -> list[bool]:
        """Whether the plans of groups that were read may name a binlog; known when they come.

        What the journal alone knows counts as naming all.
        """
        with self._lock:
            return [self._is_named(lane, point_of(gtid), binlog) for lane, gtid, _ in groups]

    def _is_named(self, lane: int, point: Point, binlog: str) -> bool:
        known = self._known.get(point)
        if known is not None:
            return isinstance(known[1], GroupPlan) and binlog in known[1].binlogs
        if not self._is_open(lane, point):
            return self._statements is not None
        return any(
            each.plans is None or any(binlog in plan.binlogs for plan in each.plans)
            for each in self._lanes[lane].statements
        )

    def is_pending(self, lane: int, gtid: AnyGtid) -> bool:
        """Whether more must be read or said before a group is known that was read."""
        with self._lock:
            if self._is_closed or not self._is_open(lane, point_of(gtid)):
                return False
            self._settle([lane])
            return self._is_open(lane, point_of(gtid))

    def patience_s(self, lane: int) -> float:
        """How long a group of a lane is waited for."""
        with self._lock:
            return self._patience_s.get(lane, self._settings.wait_s)

    def passed(self, position: Position) -> None:
        """Say that all binlogs have everything up to a position: nobody asks for it again."""
        if self._statements is None or self._groups is None:
            return
        ends = ends_of(position)
        with self._lock:
            held = {
                statement.place.file
                for groups in self._lanes.values()
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
        """Know nothing any more: the source is another one, whose GTIDs mean other groups."""
        with self._lock:
            for groups in self._lanes.values():
                groups.arrivals.clear()
                groups.statements.clear()
                groups.told.clear()
                groups.end = None
            for known in (self._read, self._known, self._moved, self._patience_s):
                known.clear()
            self._found.clear()
            self._position, self._is_begun = None, False
            # What was written before is of the other source, and stays so if it cannot be deleted.
            self._epoch = secrets.randbits(64)
            self._has_gap = True
        if self._statements is not None and self._groups is not None:
            self._statements.renew(is_stale=True)
            self._groups.forget()
            self._save()

    # What is known of lanes; all of it with the lock.

    def _wake(self) -> None:
        if self._is_waited_for:
            self._changed.notify_all()

    def _lane(self, lane: int) -> LaneGroups:
        """What is known of a lane that may have statements or groups soon."""
        groups = self._lanes.get(lane)
        if groups is None:
            groups = self._lanes[lane] = LaneGroups()
        self._busy.add(lane)
        return groups

    def _is_end_read(self, groups: LaneGroups) -> bool:
        return (
            groups.end is not None
            and self._position is not None
            and self._position.includes(groups.end)
        )

    def _arrive(self, lane: int, gtid: AnyGtid, is_commit: bool) -> bool:  # noqa: FBT001
        """Take in that a group was read; whether it was not before."""
        point = point_of(gtid)
        if self._read.get(point.stream, 0) >= point.number:
            return False
        self._read[point.stream] = self._moved[point.stream] = point.number
        groups = self._lane(lane)
        if groups.start.get(point.stream, 0) >= point.number:
            self._keep(lane, point, Unattributed(Reason.NO_STATEMENT))
        else:
            groups.arrivals.append(Arrival(point, is_commit))
        return True

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
        for lane, groups in self._lanes.items():
            for arrival in groups.arrivals:
                self._keep(lane, arrival.point, Unattributed(Reason.NOT_READ))
            groups.arrivals.clear()
            for statement in groups.statements:
                if statement.is_lost or not is_told_all:
                    statement.doubt = statement.doubt or Reason.NOT_READ
        for stream, number in ends.items():
            if self._read.get(stream, 0) < number:
                self._read[stream] = self._moved[stream] = number
        if self._statements is not None:
            self._statements.renew()

    def _settle(self, lanes: Iterable[int]) -> None:
        for lane in lanes:
            groups = self._lanes[lane]
            is_end_read = groups.end is not None and self._is_end_read(groups)
            for verdict in groups.settle(self._read, is_end_read=is_end_read):
                self._note(lane, verdict)

    def _note(self, lane: int, verdict: Verdict) -> None:
        statement = verdict.statement
        if statement is None:
            self._keep(lane, verdict.point, Unattributed(verdict.reason))
            return
        plan = self._plan_of(statement, verdict.plan)
        if plan is None:
            self._keep(lane, verdict.point, Unattributed(Reason.FORGOTTEN))
        elif statement.is_lost and _hangs_on_reply(plan):
            self._keep(lane, verdict.point, Unattributed(Reason.LOST))
        else:
            self._keep(lane, verdict.point, plan)
            if statement.place is not None:
                found = records.FoundGroup(lane, verdict.point, statement.place, verdict.plan)
                self._found.append(found)

    def _keep(self, lane: int, point: Point, known: GroupPlan | Unattributed) -> None:
        if len(self._known) >= _KEPT_MOST:
            self._known.popitem(last=False)
        self._known[point] = lane, known

    def _is_open(self, lane: int, point: Point) -> bool:
        groups = self._lanes.get(lane)
        return groups is not None and any(arrival.point == point for arrival in groups.arrivals)

    def _give_up(self, lane: int, reason: Reason) -> None:
        self.given_up += 1
        self._lanes[lane].doubt(reason)
        self._settle([lane])

    def _lose_patience(self, lane: int) -> None:
        """Wait less for a lane that kept everybody waiting in vain, until a reply comes in time."""
        patience_s = self._patience_s.get(lane, self._settings.wait_s)
        self._patience_s[lane] = max(patience_s / 4, min(_PATIENCE_LEAST_S, self._settings.wait_s))

    def _plan_of(self, statement: Statement, number: int) -> GroupPlan | None:
        plans = statement.plans
        if plans is None and self._statements is not None:
            plans = self._statements.plans_of(statement)
        return plans[number] if plans is not None and number < len(plans) else None

    # The journal.

    def _write(self, kind: int, body: bytes) -> Place | None:
        """Write what a session says; None without a journal, and if that fails."""
        return None if self._statements is None else self._statements.write(kind, body)

    def _present(self) -> Present:
        with self._lock:
            return Present(
                self._epoch,
                [head_of(number, groups) for number, groups in self._lanes.items()],
                [
                    (number, statement)
                    for number, groups in self._lanes.items()
                    for statement in (*groups.gone, *groups.statements)
                ],
            )

    def _save(self) -> None:
        """Write what was read and found out; by the routing thread only."""
        journal = self._groups
        with self._lock:
            found, self._found = self._found, []
            arrivals: list[tuple[int, Arrival]] = []
            doubts: list[tuple[int, int]] = []
            gone: list[tuple[list[Statement], int]] = []
            is_any_open = False
            for lane in tuple(self._busy):
                groups = self._lanes[lane]
                if groups.gone:
                    gone.append((groups.gone, len(groups.gone)))
                if not groups.statements and not groups.arrivals:
                    self._busy.discard(lane)
                    continue
                arrivals += [(lane, arrival) for arrival in groups.arrivals]
                for statement in groups.statements:
                    is_any_open = True
                    if statement.doubt is not None:
                        doubts.append((lane, statement.number))
            has_news = bool(found or arrivals or self._has_gap) or doubts != self._doubts
            has_news |= bool(gone) or (journal is not None and bool(journal.failure))
            if journal is None or not (has_news or (self._moved and is_any_open)):
                for statements, _ in gone:
                    statements.clear()
                return
            ends = dict(self._read) if journal.is_file_due else self._moved
            reading = records.Reading(self._epoch, self._has_gap, ends, arrivals, doubts, found)
            self._moved, self._has_gap, self._doubts = {}, False, doubts
        journal.write(reading)
        if gone:
            with self._lock:
                for statements, count in gone:
                    del statements[:count]

    def _recall(self, lane: int, point: Point) -> GroupPlan | Unattributed:
        """What was found out of a group that is not in memory any more."""
        if self._groups is not None and self._statements is not None:
            found = self._groups.find(lane, point)
            plans = None if found is None else self._statements.plans_at(found.place)
            if found is not None and plans is not None and found.plan < len(plans):
                return plans[found.plan]
        return Unattributed(Reason.FORGOTTEN)


def _nothing() -> None:
    """Where all sessions are this process's."""


def _are_same(intended: Sequence[GroupPlan] | None, plans: Sequence[GroupPlan]) -> bool:
    return intended is not None and list(intended) == list(plans)


def _hangs_on_reply(plan: GroupPlan) -> bool:
    """Whether a plan has what only a reply tells: the ids that the server chose."""
    return any(
        isinstance(part, Text)
        and any(
            event.type_code == EventType.INTVAR and event.body[:1] == _INSERT_ID_KIND
            for event in part.events
        )
        for parts in plan.binlogs.values()
        for part in parts
    )
