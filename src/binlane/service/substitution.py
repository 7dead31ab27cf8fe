"""Groups of sessions through the port → what each binlog has of them, as their plans say.

A group of a lane is some session's, which says what it is to each binlog. Where that is not known,
or the group is not what was said, the binlog gets its rows, which are never wrong; that is counted,
and told once for each reason.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from binlane.codec.event import Event
from binlane.codec.payload import TransactionPayloadEvent
from binlane.codec.rows import RowsEvent
from binlane.codec.types import EventType
from binlane.errors import StoreError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.raw import RawRun
from binlane.kernels import layout
from binlane.port.settings import Bypass
from binlane.positions import AnyGtid, Gtid, Position
from binlane.routing.plan import GroupPlan, Text, basis_of
from binlane.routing.planned import MARKS
from binlane.routing.planned_route import (
    CHANGED_DEFINITION,
    PlannedRouting,
    route_planned,
    route_rows,
)
from binlane.routing.routed_group import Routing
from binlane.routing.rows import table_name
from binlane.service.outputs import Output
from binlane.sql.servers import LoggingMode

WAIT_S: Final = 5.0
"""How long the plan of a group is waited for: as a rule its session knows it when the group comes."""
PAST_THE_PORT: Final = "it did not come through the port"
TOO_LARGE: Final = "its rows are too many to be held at once"

_ROWS: Final = RowsEvent | TransactionPayloadEvent

logger = logging.getLogger(__name__)


class Unplanned(Protocol):
    """Says why there is no plan for a group."""

    @property
    def reason(self) -> str:
        """In words that name no object."""
        ...


class Plans(Protocol):
    """What sessions through the port said of their groups."""

    def lane_of(self, gtid: AnyGtid) -> int | None:
        """Which lane a group is of; None if it did not come through the port."""
        ...

    def is_named(self, lane: int, binlog: str) -> bool:
        """Whether a plan of a lane may name a binlog; known before its groups come."""
        ...

    def find(self, gtid: AnyGtid, wait_s: float) -> GroupPlan | Unplanned:
        """The plan of a group of a lane, or why there is none; the same whenever it is asked.

        Args:
            gtid: Of the group.
            wait_s: How long to wait for a session that has not said it yet.
        """
        ...

    def passed(self, position: Position) -> None:
        """Be told that no group before a position will be asked for again."""
        ...


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
class _Found:
    """What is known of a group of a lane."""

    lane: int
    plan: GroupPlan | None
    reason: str = ""


class Substitution:
    """What routing asks of sessions through the port; used by the routing thread alone.

    Args:
        plans: What they said.
        bypass: What binlogs of statements do with changes that came another way.
    """

    def __init__(self, plans: Plans, bypass: Bypass = Bypass.ROWS) -> None:
        self.plans = plans
        self._bypass = bypass
        self._found: tuple[AnyGtid, _Found] | None = None
        self._late: set[int] = set()

    def taken(self, run: RawRun, output: Output) -> list[int]:
        """The groups of a run that cannot go into a binlog as the bytes that they are."""
        lanes = self._lanes(run)
        wanted = {lane: self._wants(output, lane) for lane in {*lanes.tolist()} if lane >= 0}
        is_taken = np.zeros(run.count, np.bool_)
        for lane, is_wanted in wanted.items():
            if is_wanted:
                is_taken |= lanes == lane
        if self._bypass is not Bypass.ROWS and _is_of_statements(output):
            is_taken |= lanes < 0
        return [int(number) for number in np.flatnonzero(is_taken)]

    def _lanes(self, run: RawRun) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The lane of each group, -1 for none."""
        lanes = np.full(run.count, -1, np.int64)
        first = run.groups[layout.GROUP_FIRST, : run.count]
        types = run.events[layout.EVENT_TYPE, first]
        server_ids = run.server_ids()
        is_mariadb = types == EventType.GTID
        for server_id in np.unique(server_ids[is_mariadb]):
            lane = self.plans.lane_of(Gtid(0, int(server_id), 0))
            if lane is not None:
                lanes[is_mariadb & (server_ids == server_id)] = lane
        for number in np.flatnonzero(types == EventType.GTID_TAGGED_LOG):
            gtid = run.gtid(int(number))
            lane = None if gtid is None else self.plans.lane_of(gtid)
            lanes[number] = -1 if lane is None else lane
        return lanes

    def _wants(self, output: Output, lane: int) -> bool:
        """Whether what a binlog has of a lane's groups hangs on their plans."""
        return _is_of_statements(output) or self.plans.is_named(lane, output.name)

    def find(self, output: Output, gtid: AnyGtid | None) -> GroupPlan | str | None:
        """The plan of a group if a binlog hangs on it; why there is none; None where it does not."""
        lane = None if gtid is None else self.plans.lane_of(gtid)
        if gtid is None or lane is None:
            return PAST_THE_PORT if _is_of_statements(output) else None
        if not self._wants(output, lane):
            return None
        found = self._ask(gtid, lane)
        return found.reason if found.plan is None else found.plan

    def _ask(self, gtid: AnyGtid, lane: int) -> _Found:
        if self._found is not None and self._found[0] == gtid:
            return self._found[1]
        answer = self.plans.find(gtid, 0.0 if lane in self._late else WAIT_S)
        if isinstance(answer, GroupPlan):
            self._late.discard(lane)
            found = _Found(lane, answer)
        else:
            # A session that said nothing for so long must not keep back the others again and again.
            self._late.add(lane)
            found = _Found(lane, None, answer.reason)
        self._found = gtid, found
        return found

    def route(self, output: Output, group: EventGroup) -> Routing:
        """What a binlog gets of a group.

        Raises:
            StoreError: If the group did not come through the port, and the binlog is to stop then.
            CodecError: As `route`.
        """
        binlog = output.binlog
        place = binlog.definition, binlog.format, binlog.prepared, binlog.memory
        found = self.find(output, group.gtid)
        if isinstance(found, GroupPlan):
            outcome = route_planned(group, found, *place, lost_threads=output.lost_threads)
            self._note(output, group.gtid, outcome)
            return outcome.routing
        routing = route_rows(group, *place)
        if found is not None and routing.group is not None and _has_rows(routing.group.events):
            self._check_bypass(output, group.gtid, found)
            self.count(output, group.gtid, found)
        return routing

    def _check_bypass(self, output: Output, gtid: AnyGtid | None, reason: str) -> None:
        if reason != PAST_THE_PORT or self._bypass is Bypass.ROWS:
            return
        if self._bypass is Bypass.STOP:
            raise StoreError(
                f"binlog {output.name}: group {gtid} changes rows in its scope and did not come "
                "through the port",
                path=output.name,
                hint='ALTER BINLOG … FORMAT=\'ROW\', or set [gateway] bypass to "rows" or "mark"',
            )
        logger.warning("binlog %s: %s as rows: %s", output.name, gtid, reason)

    def _note(self, output: Output, gtid: AnyGtid | None, outcome: PlannedRouting) -> None:
        for reason in outcome.reasons:
            self.count(output, gtid, reason)
        output.lost_threads |= outcome.lost_threads

    @staticmethod
    def count(output: Output, gtid: AnyGtid | None, reason: str, number: int = 1) -> None:
        """Count rows in the place of statements; say so the first time of its kind."""
        counts = output.counts.rows_instead
        if not counts[reason]:
            logger.warning(
                "binlog %s: %s has rows in the place of a statement: %s "
                "(further ones are only counted)",
                *(output.name, gtid or "a group", reason),
            )
        counts[reason] += number

    def of_large(self, output: Output, gtid: AnyGtid | None) -> LargeChoice:
        """What a binlog has of a group that is not held.

        Raises:
            StoreError: As `route`.
        """
        found = self.find(output, gtid)
        if not isinstance(found, GroupPlan):
            if found is not None:
                self._check_bypass(output, gtid, found)
            return LargeChoice(output, reason=found or "")
        parts = found.binlogs.get(output.name)
        if parts is None:
            return LargeChoice(output)
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
    is_map = run.events[layout.EVENT_TYPE] == EventType.TABLE_MAP
    is_mark = is_map & np.isin(run.events[layout.EVENT_MAP], marks)
    firsts = run.groups[layout.GROUP_FIRST, : run.count]
    numbers = np.searchsorted(firsts, np.flatnonzero(is_mark), side="right") - 1
    return sorted({int(number) for number in numbers})


def bypassing(run: RawRun, taken: Sequence[int], first: int) -> int:
    """How many groups of a run, from one on, have rows and were not taken out of it."""
    types = run.events[layout.EVENT_TYPE]
    is_map = np.concatenate([[0], np.cumsum(types == EventType.TABLE_MAP)])
    counts = is_map[run.groups[layout.GROUP_END]] - is_map[run.groups[layout.GROUP_FIRST]]
    counts[list(taken)] = 0
    return int(np.count_nonzero(counts[first : run.count]))


def _is_of_statements(output: Output) -> bool:
    return output.binlog.definition.logging_mode is not LoggingMode.ROW


def _has_rows(events: Sequence[Event]) -> bool:
    return any(isinstance(event.body, _ROWS) for event in events)
