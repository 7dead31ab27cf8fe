"""Groups of sessions through the port → their plans, for each binlog.

Where a group has no plan, or is another one than the plan says, the binlog gets its rows, which are
never wrong; that is counted, and told once for each reason. A plan that is not known yet is waited
for by the binlogs that depend on it alone: `PlanPendingError` is raised, and the plan is asked for
again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, Protocol

import numpy as np

from binlane.binlogs.routing.cut_group import MARKS
from binlane.binlogs.routing.dispatcher import PlanPendingError
from binlane.binlogs.routing.makers import could_be, could_be_raw, thread_of, thread_of_raw
from binlane.binlogs.routing.planned_route import Threads, threads_of_plan
from binlane.binlogs.routing.planned_spans import RunPlans
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.errors import StoreError
from binlane.live.loop.outputs import Output
from binlane.live.loop.port_settings import Bypass
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.found_groups import FoundGroups
from binlane.live.port.live_catalog import Change, changes_in
from binlane.live.port.log_progress import Watch
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.log.codec.format import Format
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.log.kernels import route_layout as lay
from binlane.positions import AnyGtid, GtidSet, MysqlGtid, Position
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.session.plan_bytes import EncodedPlan
from binlane.statements.sql.servers import LoggingMode

PAST_THE_PORT: Final = RowsReason.STRANGER.value

_FEW: Final = 8
_LATE_S: Final = 2.0
"""Seconds behind which the replies to the statements of groups have come."""
_UNSAID: Final = "it is not known what a mark in the source's log stands for"

logger = logging.getLogger(__name__)


class EndingError(BaseException):
    """Routing ends between two groups, and not behind all that came: that may be seconds' work.

    It is no fault of a binlog, so that work that is done for each of them lets it pass. Each goes on
    from where it stands when it is opened again.
    """


@dataclass(frozen=True, slots=True)
class OwnedGroups:
    """Groups of a run that are of sessions through the port, or may be.

    Attributes:
        numbers: The numbers of the groups in the run, in order.
        plans: The plans that are known as the groups come.
        told: Those of the groups that were found by what replies have told; None for none.
        read: The others, by their numbers.
    """

    numbers: Sequence[int] = ()
    plans: RunPlans = field(default_factory=RunPlans)
    told: FoundGroups | None = None
    read: Mapping[int, ReadGroup] = field(default_factory=dict)


class ObjectFollower(Protocol):
    """The follower of the source's objects; called by the routing thread."""

    def logged(self, changes: Sequence[Change] | None, numbers: Sequence[int] = ()) -> None:
        """Follow the DDL in an item that the source gave, and say that these numbers of it were heard."""
        ...

    def source_changed(self) -> None:
        """Take in that it may be another source."""
        ...


class Substitution:
    """Routing's questions to sessions through the port; used by the routing thread alone.

    Args:
        attributions: The plans that the sessions gave.
        bypass: The treatment, by binlogs of statements, of changes that came another way.
        catalog: Gets to know the DDL that comes.
    """

    def __init__(
        self,
        attributions: Attributions,
        bypass: Bypass = Bypass.ROWS,
        catalog: ObjectFollower | None = None,
    ) -> None:
        self._attributions = attributions
        self._bypass = bypass
        self._catalog = catalog
        self._has_source = False
        self._asked: dict[AnyGtid, float] = {}

    def connected(self, position: Position, *, is_new: bool) -> None:
        """Be told of a connection to the source.

        Args:
            position: The position behind which the source's groups come.
            is_new: True if it may be another source than before, whose GTIDs mean other groups.
        """
        if is_new:
            self._attributions.forget()
            if self._catalog is not None:
                self._catalog.source_changed()
        self._has_source = True
        self._attributions.begin(position)

    def source_started(self, position: Position | None) -> None:
        """Be told that the log goes on, behind a position, in a file of a source started anew."""
        self._attributions.source_started(position)

    def passed(self, position: Position) -> None:
        """Be told that no group before a position will be asked for again."""
        self._attributions.passed(position)

    @property
    def lost_threads(self) -> frozenset[int]:
        """The source's threads of sessions that ended with the process before this one."""
        return self._attributions.lost_threads

    # Groups that come.

    def noted(self, item: Item) -> None:
        """Tell the follower of the source's objects of DDL in an item."""
        if self._catalog is None:
            return
        changes = changes_in(item)
        if changes is None or changes:
            gtids = [None] if changes is None else [gtid for _, gtid in changes]
            self._catalog.logged(changes, self._attributions.logged(gtids))

    def read_run(self, groups: RunGroups, after: Position | None) -> OwnedGroups:
        """Take in the groups of a run that comes."""
        attributions, run = self._attributions, groups.run
        if not self._has_source:
            attributions.read((), after)
            return OwnedGroups()
        is_late = time.time() - run.last_timestamp > _LATE_S
        threads, told = groups.facts[lay.FACT_THREAD], None
        if (threads >= 0).all():  # else it takes more to see whose some groups are
            told = attributions.read_told(
                (run.data, run.events, run.groups, threads), is_late=is_late
            )
        numbers = [] if told is None else told.numbers
        wanted = dict(self._wanted(groups, numbers)) if len(numbers) < run.count else {}
        attributions.read(tuple(wanted.values()), after)
        known: dict[int, EncodedPlan] = {}
        if wanted:
            found = attributions.known([group.gtid for group in wanted.values()])
            known = {number: one for number, one in zip(wanted, found, strict=True) if one}
            numbers = sorted((*numbers, *wanted))
        plans = RunPlans(known)
        if told is not None:
            plans = RunPlans(known, told.numbers, told.encoded, told.ends)
        return OwnedGroups(numbers, plans, told, wanted)

    def hear(self) -> None:
        """Take in what sessions of other processes have said by now."""
        self._attributions.hear()

    def plans_now(self, gtids: Sequence[AnyGtid | None]) -> list[EncodedPlan | None]:
        """The plans of groups that were read, as far as they are known by now."""
        return self._attributions.known(gtids)

    def _wanted(self, groups: RunGroups, told: Sequence[int]) -> Iterator[tuple[int, ReadGroup]]:
        """The groups of a run that are of sessions, or may be, but for those that were told."""
        watch, run, known = self._attributions.watch(), groups.run, frozenset(told)
        for number in range(run.count) if run.count <= _FEW else self._candidates(groups, watch):
            gtid = None if number in known else run.gtid(number)
            if gtid is None:
                continue
            group = _of_run(groups, number, gtid)
            if self._attributions.wants(group, watch):
                yield number, group

    def _candidates(self, groups: RunGroups, watch: Watch) -> Iterator[int]:
        """The groups of a long run that are to be looked at, which mostly are few."""
        if not (watch.threads or watch.is_any_open or watch.is_any_known):
            return
        threads, sequences = groups.facts[lay.FACT_THREAD], groups.run.sequences()
        told = self._attributions.numbers(int(sequences.min()), int(sequences.max()))
        if not (told or watch.threads or watch.is_any_open):
            return
        is_wanted = np.isin(threads, np.fromiter(watch.threads, np.int64, len(watch.threads)))
        is_wanted |= np.isin(sequences, np.fromiter(told, np.int64, len(told)))
        is_wanted |= (sequences < 0) | (threads < 0)
        if watch.is_any_open:
            is_wanted |= threads == 0
        yield from map(int, np.flatnonzero(is_wanted))

    def read_group(
        self, group: EventGroup | LargeGroup, after: Position | None, format_: Format | None
    ) -> None:
        """Take in a group that comes.

        Args:
            group: The group that comes from the source.
            after: Everything up to here is read with it.
            format_: The format of the FORMAT_DESCRIPTION before it.
        """
        groups: list[ReadGroup] = []
        if group.gtid is not None and format_ is not None and self._has_source:
            read = _of_group(group, group.gtid, format_)
            if self._attributions.wants(read, self._attributions.watch()):
                groups.append(read)
        self._attributions.read(groups, after)

    # Groups' plans.

    def planned_numbers(self, run: RawRun, own: OwnedGroups, output: Output) -> Sequence[int]:
        """The groups of a run that cannot go into a binlog as the bytes that they are."""
        if not own.numbers and self._bypass is Bypass.ROWS:
            return ()
        is_of_statements = _is_of_statements(output)
        if is_of_statements and self._bypass is not Bypass.ROWS:
            return range(run.count)
        if is_of_statements or not own.numbers:
            return own.numbers
        are_named = self._attributions.are_named(tuple(own.read.values()), output.name)
        named = [number for number, is_named in zip(own.read, are_named, strict=True) if is_named]
        return named if own.told is None else sorted((*named, *own.told.naming(output.name)))

    def find(
        self, output: Output, group: EventGroup | LargeGroup, *, waits: bool = False
    ) -> GroupPlan | str:
        """The plan of a group, or the reason why a binlog has its rows; empty for no reason.

        Raises:
            PlanPendingError: If that is not known yet, unless it is waited for.
        """
        is_large = isinstance(group, LargeGroup)
        format_ = group.format if isinstance(group, LargeGroup) else output.binlog.source_format
        read = None if group.gtid is None else _of_group(group, group.gtid, format_)
        found = self._find(output, read, waits=waits)
        if isinstance(found, GroupPlan) and _was_passed(output, group):
            found = Unattributed(RowsReason.PASSED, _threads(found, output))
        if isinstance(found, GroupPlan):
            if not found.binlogs and _is_mark(group):
                self.count(output, group.gtid, _UNSAID)
            if is_large and output.name in found.binlogs:
                flags = HeaderFlag.THREAD_SPECIFIC
                output.temporary.lose(threads_of_plan(found, output.name, flags=flags))
            return found
        if found is None:
            return ""
        self._doubt(output, found)
        if found.reason is not RowsReason.STRANGER and _is_mark(group):
            self.count(output, group.gtid, found.reason.value)
        return found.reason.value

    @staticmethod
    def _doubt(output: Output, found: Unattributed) -> None:
        """Note that nobody knows what a group was: it may have made temporary tables."""
        if found.threads is None:
            output.temporary.lose(output.temporary.threads.made)
        else:
            output.temporary.lose(found.threads)

    def _find(
        self, output: Output, group: ReadGroup | None, *, waits: bool = False
    ) -> GroupPlan | Unattributed | None:
        """The plan of a group, or why there is none; None where the binlog does not hang on it.

        Raises:
            PlanPendingError: If it is not known yet, unless that is waited for.
        """
        is_of_statements = _is_of_statements(output)
        if group is None or not self._has_source:
            return Unattributed(RowsReason.STRANGER) if is_of_statements else None
        plans = self._attributions
        if not is_of_statements and not plans.are_named((group,), output.name)[0]:
            return None
        if not waits:
            self._require(group.gtid)
        self._asked.pop(group.gtid, None)
        return plans.find(group, wait_s=None if waits else 0.0)

    def note(self, output: Output, part: BinlogPart, gtid: AnyGtid | None) -> None:
        """Note what a binlog's part of a group lacks of its plan, before it is written.

        Raises:
            StoreError: If the group did not come through the port, and the binlog is to stop then.
        """
        for reason in part.reasons:
            is_told = self._tell_bypass(output, gtid, reason)
            self.count(output, gtid, reason, is_told=is_told)
        output.temporary.lose(part.lost)
        output.temporary.note_made(part.made)

    def require(self, output: Output, gtid: AnyGtid) -> None:
        """See that it is known what a group is to a binlog, before it is decoded.

        Raises:
            PlanPendingError: If it is not.
        """
        if _is_of_statements(output):
            self._require(gtid)

    def _require(self, gtid: AnyGtid) -> None:
        plans = self._attributions
        if plans.is_pending(gtid):
            now_s = time.monotonic()
            if now_s - self._asked.setdefault(gtid, now_s) < plans.patience_s(gtid):
                raise PlanPendingError

    def _tell_bypass(self, output: Output, gtid: AnyGtid | None, reason: str) -> bool:
        """Say of a group that it did not come through the port, if that is wanted.

        Raises:
            StoreError: If the binlog is to stop then.
        """
        if reason != PAST_THE_PORT or self._bypass is Bypass.ROWS:
            return False
        accepted = output.accepted
        is_accepted = accepted is not None and gtid is not None and accepted.covers(gtid)
        if self._bypass is Bypass.STOP and not is_accepted:
            output.stop_before(gtid)
            raise StoreError(
                f"binlog {output.name}: group {gtid} changes rows in its scope and did not come "
                "through the port",
                path=output.name,
                hint=f"START BINLOG '{output.name}' takes its rows",
            )
        logger.warning(
            "binlog %s: %s as rows: %s",
            *(output.name, gtid, reason),
            extra={"binlog": output.name, "gtid": str(gtid)},
        )
        return True

    @staticmethod
    def count(
        output: Output,
        gtid: AnyGtid | None,
        reason: str,
        number: int = 1,
        *,
        is_told: bool = False,
    ) -> None:
        """Count rows in the place of statements; say so the first time, if that was not told."""
        counts = output.counts.rows_instead
        if not counts[reason] and not is_told:
            what = "has rows in the place of a statement"
            if not _is_of_statements(output):
                what = "is not as its session wants it (sql_log_bin, binlog_row_image)"
            logger.warning(
                "binlog %s: %s %s: %s (further ones are only counted)",
                *(output.name, gtid or "a group", what, reason),
                extra={"binlog": output.name} | ({} if gtid is None else {"gtid": str(gtid)}),
            )
        counts[reason] += number


class OutputPlans:
    """The plans of one binlog's groups, for the dispatcher.

    Args:
        output: The binlog whose groups are asked about.
        substitution: Knows the plans; None where there are no sessions.
        is_ending: Tells if no more is to be routed; asked before each group that takes long.
        waits: True if a plan that is not known is waited for, within bounds.

    Attributes:
        numbers: Numbers of a run's groups that plans may concern or that hold marks, in order.
        of_run: The plans that are known as the groups of a run come, by the groups' numbers.
    """

    def __init__(
        self,
        output: Output,
        substitution: Substitution | None,
        is_ending: Callable[[], bool],
        *,
        waits: bool = False,
    ) -> None:
        self._output = output
        self._substitution = substitution
        self._is_ending = is_ending
        self._waits = waits
        self.numbers: Sequence[int] = ()
        self.of_run = RunPlans()

    @property
    def threads(self) -> Threads:
        """Connections with temporary tables, as the groups before left them."""
        return self._output.temporary.threads

    def known(self, gtids: Sequence[AnyGtid | None]) -> list[EncodedPlan | None]:
        """The plans of groups, as far as they are known by now."""
        if self._substitution is None:
            return [None] * len(gtids)
        return self._substitution.plans_now(gtids)

    def require(self, gtid: AnyGtid) -> None:
        """See that the plan of a group is known before the group is decoded.

        Raises:
            PlanPendingError: If it is not known, and is not waited for.
        """
        if self._substitution is not None and not self._waits:
            self._substitution.require(self._output, gtid)

    def find(self, group: EventGroup | LargeGroup) -> GroupPlan | str:
        """The plan of a group, or the reason why the binlog has its rows; empty for no reason.

        Raises:
            PlanPendingError: If it is not known, and is not waited for.
            EndingError: If no more is to be routed.
        """
        if self._is_ending():
            raise EndingError
        if self._substitution is None:
            return ""
        return self._substitution.find(self._output, group, waits=self._waits)


def bypassing(groups: RunGroups, taken: Sequence[int], done: range) -> int:
    """Count the untaken groups of a run that have rows, among the groups of `done`."""
    has_rows = groups.facts[lay.FACT_BITS] & lay.HAS_MAPS
    has_rows[list(taken)] = 0
    return int(np.count_nonzero(has_rows[done.start : done.stop]))


def _of_run(groups: RunGroups, number: int, gtid: AnyGtid) -> ReadGroup:
    """A group of a run as sessions may know it."""
    return ReadGroup(
        gtid,
        thread_of_raw(groups, number),
        groups.has(number, lay.ENDS_WITH_XID),
        partial(could_be_raw, groups, number),
    )


def _of_group(group: EventGroup | LargeGroup, gtid: AnyGtid, format_: Format) -> ReadGroup:
    """Return the read facts of a group that is decoded, or of which only the beginning is."""
    if isinstance(group, LargeGroup):
        head = EventGroup(gtid=gtid, events=tuple(islice(group.events(), 2)), file=group.file)
        return ReadGroup(gtid, thread_of(head, group.format))
    return ReadGroup(
        gtid,
        thread_of(group, format_),
        group.events[-1].header.type_code == EventType.XID,
        partial(could_be, group, format_),
    )


def _is_of_statements(output: Output) -> bool:
    return output.binlog.definition.logging_mode is not LoggingMode.ROW


def _is_mark(group: EventGroup | LargeGroup) -> bool:
    """True if a group that is held has a mark."""
    return isinstance(group, EventGroup) and any(
        isinstance(event.body, TableMapEvent) and table_name(event.body) == MARKS
        for event in group.events
    )


def _was_passed(output: Output, group: EventGroup | LargeGroup) -> bool:
    """True if a MySQL gives a mark once more that a binlog of statements has gone past.

    It had left the mark's texts out, which no file tells: behind a kill it is not known to be done.
    """
    reached, gtid = output.binlog.reached, group.gtid
    return (
        isinstance(reached, GtidSet)
        and isinstance(gtid, MysqlGtid)
        and reached.goes_past(gtid)
        and _is_mark(group)
    )


def _threads(plan: GroupPlan, output: Output) -> frozenset[int]:
    """The source's threads of what a plan has for a binlog."""
    return (
        threads_of_plan(plan, output.name, flags=0) if output.name in plan.binlogs else frozenset()
    )
