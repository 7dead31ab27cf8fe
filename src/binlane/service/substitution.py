"""Groups of sessions through the port → what each binlog has of them, as their plans say.

A group of a lane is some session's, which says what it is to each binlog. Where that is not known,
or the group is not what was said, the binlog gets its rows, which are never wrong; that is counted,
and told once for each reason.

What a session has not said yet is waited for, by the binlogs that hang on it alone: `route` raises
`NotYetError`, and is asked again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np

from binlane.capture.source_facts import SourceFacts
from binlane.codec.event import Event
from binlane.codec.payload import TransactionPayloadEvent
from binlane.codec.rows import RowsEvent, TableMapEvent
from binlane.codec.types import EventType, HeaderFlag
from binlane.errors import StoreError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.raw import Item, LargeGroup, RawRun
from binlane.kernels import layout
from binlane.port.attributions import Attributions, LaneGroup
from binlane.port.lanes import Lanes
from binlane.port.settings import Bypass
from binlane.positions import AnyGtid, Position
from binlane.routing.plan import GroupPlan, Text, basis_of
from binlane.routing.planned import MARKS
from binlane.routing.planned_route import (
    CHANGED_DEFINITION,
    PlannedRouting,
    Threads,
    route_planned,
    route_rows,
    threads_of_plan,
)
from binlane.routing.planned_spans import RawGroup, planned_bytes
from binlane.routing.routed_group import Routing
from binlane.routing.rows import table_name
from binlane.service.outputs import Output
from binlane.sql.servers import LoggingMode

PAST_THE_PORT: Final = "it did not come through the port"
TOO_LARGE: Final = "its rows are too many to be held at once"

_FEW: Final = 8
_UNSAID: Final = "it is not known what a mark in the source's log stands for"
_ROWS: Final = RowsEvent | TransactionPayloadEvent

logger = logging.getLogger(__name__)


class NotYetError(Exception):
    """Inside of the service: what a group is to a binlog is not known yet; ask again."""


@dataclass(frozen=True, slots=True)
class LargeChoice:
    """What a binlog has of a group that is not held.

    Attributes:
        output: The binlog.
        has_rows: Whether it has its rows, as far as they are in its scope, or nothing.
        needs_whole: Whether it has some of it, so that the group must be held.
        reason: Why it has rows in the place of statements; empty where it has not.
    """

    output: Output
    has_rows: bool = True
    needs_whole: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunLanes:
    """Which groups of a run are of lanes.

    Attributes:
        numbers: Of the groups.
        groups: The same groups as sessions know them.
        plans: By number, the plans that are known as they come.
    """

    numbers: tuple[int, ...] = ()
    groups: tuple[LaneGroup, ...] = ()
    plans: Mapping[int, GroupPlan] = field(default_factory=dict)


class KnownObjects(Protocol):
    """Who knows the source's objects; called by the routing thread."""

    def noted(self, item: Item) -> None:
        """Be told what the source gave next."""
        ...

    def source_changed(self) -> None:
        """Be told that it may be another source."""
        ...


class Substitution:
    """What routing asks of sessions through the port; used by the routing thread alone.

    Args:
        attributions: What they said.
        bypass: What binlogs of statements do with changes that came another way.
        catalog: Gets to know the DDL that comes.
    """

    def __init__(
        self,
        attributions: Attributions,
        bypass: Bypass = Bypass.ROWS,
        catalog: KnownObjects | None = None,
    ) -> None:
        self._attributions = attributions
        self._bypass = bypass
        self._catalog = catalog
        self._lanes: Lanes | None = None
        self._asked: dict[AnyGtid, float] = {}

    def connected(self, facts: SourceFacts, position: Position, *, is_new: bool) -> None:
        """Be told of a connection to the source.

        Args:
            facts: Of the source.
            position: Behind which its groups come.
            is_new: Whether it may be another source than before, whose GTIDs mean other groups.
        """
        if is_new:
            self._attributions.forget()
            if self._catalog is not None:
                self._catalog.source_changed()
        self._lanes = Lanes(facts.flavor, facts.server_id)
        self._attributions.begin(position)

    def passed(self, position: Position) -> None:
        """Be told that no group before a position will be asked for again."""
        self._attributions.passed(position)

    # What comes.

    def noted(self, item: Item) -> None:
        """Tell whoever judges statements of DDL in what comes."""
        if self._catalog is not None:
            self._catalog.noted(item)

    def read_run(self, run: RawRun, after: Position | None) -> RunLanes:
        """Take in that a run comes."""
        found = RunLanes()
        if self._lanes is not None:
            numbers = tuple(self._numbers(run, self._lanes))
            ends = run.events[layout.EVENT_TYPE, run.groups[layout.GROUP_END, : run.count] - 1]
            groups: list[LaneGroup] = []
            for number in numbers:
                gtid = run.gtid(number)
                assert gtid is not None, "its first event says its lane"
                lane = self._lanes.number_of(gtid)
                assert lane is not None, "it was looked for"
                groups.append((lane, gtid, bool(ends[number] == EventType.XID)))
            found = RunLanes(numbers, tuple(groups))
        self._attributions.read(found.groups, after)
        if not found.numbers:
            return found
        known = zip(found.numbers, self._attributions.known(found.groups), strict=True)
        plans = {number: plan for number, plan in known if isinstance(plan, GroupPlan)}
        return replace(found, plans=plans)

    def plan_now(self, gtid: AnyGtid) -> GroupPlan | None:
        """The plan of a group that was read, if it is known by now."""
        lane = self._lane(gtid)
        if lane is None:
            return None
        (known,) = self._attributions.known(((lane, gtid, False),))
        return known if isinstance(known, GroupPlan) else None

    @staticmethod
    def _numbers(run: RawRun, lanes: Lanes) -> Iterator[int]:
        """The groups of a run that are of lanes."""
        if run.count <= _FEW:
            for each in range(run.count):
                gtid = run.gtid(each)
                if gtid is not None and lanes.number_of(gtid) is not None:
                    yield each
            return
        first = run.groups[layout.GROUP_FIRST, : run.count]
        types = run.events[layout.EVENT_TYPE, first]
        is_of_lane = np.zeros(run.count, np.bool_)
        is_mariadb = types == EventType.GTID
        if is_mariadb.any():
            server_ids = run.server_ids()
            for server_id in np.unique(server_ids[is_mariadb]):
                if lanes.number_of_server_id(int(server_id)) is not None:
                    is_of_lane |= is_mariadb & (server_ids == server_id)
        for number in np.flatnonzero(types == EventType.GTID_TAGGED_LOG):
            gtid = run.gtid(int(number))
            is_of_lane[number] = gtid is not None and lanes.number_of(gtid) is not None
        yield from map(int, np.flatnonzero(is_of_lane))

    def read_group(self, group: EventGroup | LargeGroup, after: Position | None) -> None:
        """Take in that a group comes."""
        gtid = group.gtid
        lane = self._lane(gtid)
        if gtid is None or lane is None:
            self._attributions.read((), after)
            return
        is_commit = isinstance(group, EventGroup) and (
            group.events[-1].header.type_code == EventType.XID
        )
        self._attributions.read(((lane, gtid, is_commit),), after)

    def _lane(self, gtid: AnyGtid | None) -> int | None:
        return None if gtid is None or self._lanes is None else self._lanes.number_of(gtid)

    # What becomes of it.

    def taken(self, run: RawRun, lanes: RunLanes, output: Output) -> list[int]:
        """The groups of a run that cannot go into a binlog as the bytes that they are."""
        is_of_statements = _is_of_statements(output)
        if is_of_statements and self._bypass is not Bypass.ROWS:
            return list(range(run.count))
        if is_of_statements:
            return list(lanes.numbers)
        are_named = self._attributions.are_named(lanes.groups, output.name)
        return [
            number for number, is_named in zip(lanes.numbers, are_named, strict=True) if is_named
        ]

    def append_raw(self, output: Output, plan: GroupPlan, group: RawGroup, gtid: AnyGtid) -> bool:
        """Give a binlog its part of a group, where that needs no reference; whether it has it now.

        Raises:
            StoreError: As `Binlog.append`.
        """
        binlog = output.binlog
        # Which tables statements concern is for the reference.
        if output.name not in plan.binlogs or binlog.may_have_tables_info:
            return False
        if binlog.reached.covers(gtid):
            return True
        definition, memory = binlog.definition, binlog.memory
        made = planned_bytes(group, plan, definition, memory, binlog.size_bytes)
        if made is None:
            return False
        self._meet(output, self._lane(gtid), plan)
        if not binlog.room_bytes:
            binlog.rotate(group.timestamp)
            made = planned_bytes(group, plan, definition, memory, binlog.size_bytes)
            assert made is not None, "it was made before, for another place"
        data, events = made
        binlog.append_placed(data, groups=1)
        binlog.advance(gtid)
        output.counts.event_groups += 1
        output.counts.events += events
        return True

    def route(self, output: Output, group: EventGroup, *, waits: bool = False) -> Routing:
        """What a binlog gets of a group.

        Raises:
            NotYetError: If that is not known yet, unless it is waited for.
            StoreError: If the group did not come through the port, and the binlog is to stop then.
            CodecError: As `route`.
        """
        found = self._find(output, group.gtid, waits=waits)
        binlog = output.binlog
        place = binlog.definition, binlog.source_format, binlog.prepared, binlog.memory
        lane = self._lane(group.gtid)
        if isinstance(found, GroupPlan):
            self._meet(output, lane, found)
            if lane is not None and not found.binlogs and _is_mark(group):
                self._doubt(output, lane)
                self.count(output, group.gtid, _UNSAID)
            outcome = route_planned(group, found, *place, threads=output.threads)
            self._note(output, group.gtid, outcome)
            return outcome.routing
        if found and lane is not None:
            self._doubt(output, lane)
            if _is_mark(group):
                self.count(output, group.gtid, found)
        routing = route_rows(group, *place)
        if found and routing.group is not None and _has_rows(routing.group.events):
            self.note_rows(output, group.gtid, found)
        return routing

    @staticmethod
    def _meet(output: Output, lane: int | None, plan: GroupPlan) -> None:
        """Note which connection says what a group of a lane is."""
        if lane is None or not plan.binlogs.get(output.name):
            return
        for thread in threads_of_plan(plan, output.name, flags=0):
            if output.lane_threads.get(lane) != thread:
                if lane in output.doubtful_lanes:
                    output.lose_threads(frozenset((thread,)))
                output.lane_threads[lane] = thread
            output.doubtful_lanes.discard(lane)

    @staticmethod
    def _doubt(output: Output, lane: int) -> None:
        """Note that nobody knows what a group of a lane was: it may have made temporary tables.

        Its connection is the one that was met last on the lane, or one that was not met yet.
        """
        output.doubtful_lanes.add(lane)
        if lane in output.lane_threads:
            output.lose_threads(frozenset((output.lane_threads[lane],)))

    def _find(
        self, output: Output, gtid: AnyGtid | None, *, waits: bool = False
    ) -> GroupPlan | str | None:
        """The plan of a group; why there is none; None where the binlog does not hang on it.

        Raises:
            NotYetError: If it is not known yet, unless that is waited for.
        """
        lane = self._lane(gtid)
        is_of_statements = _is_of_statements(output)
        if gtid is None or lane is None:
            return PAST_THE_PORT if is_of_statements else None
        plans = self._attributions
        if not is_of_statements and not plans.are_named(((lane, gtid, False),), output.name)[0]:
            return None
        if not waits:
            self._require(lane, gtid)
        self._asked.pop(gtid, None)
        answer = plans.find(lane, gtid, wait_s=None if waits else 0.0)
        return answer if isinstance(answer, GroupPlan) else answer.reason.value

    def note_rows(self, output: Output, gtid: AnyGtid | None, reason: str) -> None:
        """Note that a binlog gets the rows of a group in the place of statements.

        Raises:
            StoreError: If it is to stop then.
        """
        is_told = self._tell_bypass(output, gtid, reason)
        self.count(output, gtid, reason, is_told=is_told)

    def require(self, output: Output, gtid: AnyGtid) -> None:
        """See that it is known what a group is to a binlog, before it is decoded.

        Raises:
            NotYetError: If it is not.
        """
        lane = self._lane(gtid)
        if lane is not None and _is_of_statements(output):
            self._require(lane, gtid)

    def _require(self, lane: int, gtid: AnyGtid) -> None:
        plans = self._attributions
        if plans.is_pending(lane, gtid):
            now_s = time.monotonic()
            if now_s - self._asked.setdefault(gtid, now_s) < plans.patience_s(lane):
                raise NotYetError

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
            output.stopped_at = gtid
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

    def _note(self, output: Output, gtid: AnyGtid | None, outcome: PlannedRouting) -> None:
        for reason in outcome.reasons:
            self.count(output, gtid, reason)
        output.lose_threads(outcome.lost)
        threads = output.threads
        if not outcome.made <= threads.made:
            output.threads = Threads(outcome.made | threads.made, threads.lost)

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
            logger.warning(
                "binlog %s: %s has rows in the place of a statement: %s "
                "(further ones are only counted)",
                *(output.name, gtid or "a group", reason),
                extra={"binlog": output.name} | ({} if gtid is None else {"gtid": str(gtid)}),
            )
        counts[reason] += number

    def of_large(self, output: Output, gtid: AnyGtid | None) -> LargeChoice:
        """What a binlog has of a group that is not held; waits for what is not known yet."""
        found = self._find(output, gtid, waits=True)
        if not isinstance(found, GroupPlan):
            lane = self._lane(gtid)
            if found and lane is not None:
                self._doubt(output, lane)
            return LargeChoice(output, reason=found or "")
        parts = found.binlogs.get(output.name)
        if parts is None:
            return LargeChoice(output)
        output.lose_threads(threads_of_plan(found, output.name, flags=HeaderFlag.THREAD_SPECIFIC))
        if found.bases.get(output.name) != basis_of(output.binlog.definition):
            return LargeChoice(output, reason=CHANGED_DEFINITION)
        if not parts:
            return LargeChoice(output, has_rows=False)
        if {part.section for part in parts} != set(range(len(found.sections))):
            return LargeChoice(output, needs_whole=True)
        has_text = any(isinstance(part, Text) for part in parts)
        return LargeChoice(output, reason=TOO_LARGE if has_text else "")


def marked(run: RawRun) -> list[int]:
    """The groups of a run that hold a mark, which no binlog gets."""
    marks = [
        number for number, table in enumerate(run.tables) if table_name(table.table_map) == MARKS
    ]
    if not marks:
        return []
    last = run.groups[layout.GROUP_END, run.count - 1]
    is_map = run.events[layout.EVENT_TYPE, :last] == EventType.TABLE_MAP
    is_mark = is_map & np.isin(run.events[layout.EVENT_MAP, :last], marks)
    firsts = run.groups[layout.GROUP_FIRST, : run.count]
    numbers = np.searchsorted(firsts, np.flatnonzero(is_mark), side="right") - 1
    return sorted({int(number) for number in numbers})


def bypassing(run: RawRun, taken: Sequence[int], done: range) -> int:
    """How many of some groups of a run have rows and were not taken out of it."""
    if len(taken) == run.count:
        return 0
    types = run.events[layout.EVENT_TYPE, : run.groups[layout.GROUP_END, run.count - 1]]
    is_map = np.concatenate([[0], np.cumsum(types == EventType.TABLE_MAP)])
    counts = is_map[run.groups[layout.GROUP_END]] - is_map[run.groups[layout.GROUP_FIRST]]
    counts[list(taken)] = 0
    return int(np.count_nonzero(counts[done.start : done.stop]))


def _is_of_statements(output: Output) -> bool:
    return output.binlog.definition.logging_mode is not LoggingMode.ROW


def _is_mark(group: EventGroup) -> bool:
    """Whether a group holds a mark."""
    return any(
        isinstance(event.body, TableMapEvent) and table_name(event.body) == MARKS
        for event in group.events
    )


def _has_rows(events: Sequence[Event]) -> bool:
    return any(isinstance(event.body, _ROWS) for event in events)
