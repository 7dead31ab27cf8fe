"""Findings on the source's groups: the plan of each, or the reason why it has none."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from binlane.live.port.found_groups import FoundPlans
from binlane.live.port.group_numbers import GroupNumber, Stream
from binlane.live.port.journal.journal_records import NO_PLACE, NO_PLAN, FoundGroup, FoundRun
from binlane.live.port.session_groups import RowsReason, SentStatement, Unattributed
from binlane.statements.session.plan_bytes import EncodedPlan

_KEPT_MOST: Final = 8192
_KEPT_BYTES_MOST: Final = 32 << 20
"""Bytes of plans that are kept; plans of other groups are read from the journal."""


class Findings:
    """The latest findings; older ones are in the journal only."""

    def __init__(self) -> None:
        """Begin with no findings."""
        self._known: OrderedDict[GroupNumber, EncodedPlan | Unattributed] = OrderedDict()
        self._bytes = 0
        self._greatest = 0
        # Groups that were found together, in the order in which they were found, and by their streams.
        self._runs: deque[FoundPlans] = deque()
        self._of_stream: dict[Stream, list[FoundPlans]] = {}
        self._run_groups = self._run_bytes = 0
        self._news: list[FoundGroup] = []
        self._new_runs: list[FoundRun] = []

    @property
    def has_news(self) -> bool:
        """True if the journal lacks findings."""
        return bool(self._news or self._new_runs)

    @property
    def are_any(self) -> bool:
        """True if anything was found out."""
        return bool(self._known or self._runs)

    def get(self, point: GroupNumber) -> EncodedPlan | Unattributed | None:
        """Give the finding on a group; None for none, or an older one."""
        return self._known.get(point) or self._found_together(point)

    def __contains__(self, point: GroupNumber) -> bool:
        return self.get(point) is not None

    def _found_together(self, point: GroupNumber) -> EncodedPlan | None:
        runs = self._of_stream.get(point[0])
        if not runs:
            return None
        place = bisect_left(runs, point[1], key=_last_of)
        return runs[place].get(point[1]) if place < len(runs) else None

    def numbers(self, first: int, last: int) -> Iterator[int]:
        """Give the numbers of groups with findings, of any stream.

        Args:
            first: The least number that is of interest.
            last: The greatest number that is of interest.
        """
        # Groups that come for the first time are behind all that were found.
        for _, number in self._known if first <= self._greatest else ():
            if first <= number <= last:
                yield number
        for run in self._runs:
            if run.found.first <= last and first <= run.found.last:
                yield from run.sequences()

    def take_news(self) -> list[FoundRun]:
        """Give the findings that the journal lacks, once."""
        news, self._news = self._news, []
        runs, self._new_runs = self._new_runs, []
        return [*runs, *FoundRun.each_of(news)]

    def keep_plans(self, plans: FoundPlans) -> None:
        """Keep plans of groups that were found together, behind all groups of their stream that were."""
        self._runs.append(plans)
        self._of_stream.setdefault(plans.found.stream, []).append(plans)
        self._run_groups += len(plans)
        self._run_bytes += plans.size_bytes
        self._new_runs.append(plans.found)
        while self._run_groups > _KEPT_MOST or self._run_bytes > _KEPT_BYTES_MOST:
            oldest = self._runs.popleft()
            self._of_stream[oldest.found.stream].pop(0)
            self._run_groups -= len(oldest)
            self._run_bytes -= oldest.size_bytes

    def keep_plan(
        self,
        point: GroupNumber,
        plan: EncodedPlan,
        thread_id: int,
        statement: SentStatement,
    ) -> None:
        """Keep which plan of a session's statement is a group's."""
        self._keep(point, plan)
        if statement.place is not None:
            # As `FoundGroup(…)`, in a third of the time.
            found = thread_id, point, statement.place, plan[1]
            self._news.append(tuple.__new__(FoundGroup, found))

    def keep_none(self, point: GroupNumber, reason: Unattributed) -> None:
        """Keep why a group has no plan."""
        self._keep(point, reason)
        if reason.reason is not RowsReason.STRANGER:
            for thread_id in reason.threads or ():
                self._news.append(FoundGroup(thread_id, point, NO_PLACE, NO_PLAN))

    def _keep(self, point: GroupNumber, known: EncodedPlan | Unattributed) -> None:
        all_known = self._known
        if point in all_known:
            self._bytes -= _bytes_of(all_known.pop(point))
        all_known[point] = known
        self._greatest = max(self._greatest, point[1])
        self._bytes += _bytes_of(known)
        while len(all_known) > _KEPT_MOST or self._bytes > _KEPT_BYTES_MOST:
            self._bytes -= _bytes_of(all_known.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget all findings, and those that the journal lacks."""
        for each in (self._known, self._runs, self._of_stream, self._news, self._new_runs):
            each.clear()
        self._bytes = self._greatest = self._run_groups = self._run_bytes = 0


def _last_of(plans: FoundPlans) -> int:
    return plans.found.last


def _bytes_of(known: EncodedPlan | Unattributed) -> int:
    if isinstance(known, Unattributed):
        return 0
    # The plans of a statement share their bytes.
    plans = known[0]
    return len(plans.encoded) // len(plans)
