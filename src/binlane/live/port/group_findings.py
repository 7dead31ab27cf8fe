"""Findings on the source's groups: the plan of each, or the reason why it has none."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from binlane.live.port.group_numbers import GroupNumber
from binlane.live.port.journal.journal_records import NO_PLACE, NO_PLAN, FoundGroup, FoundRun
from binlane.live.port.session_groups import RowsReason, SentStatement, Unattributed
from binlane.statements.session.plan_bytes import EncodedPlan

_KEPT_MOST: Final = 8192
_KEPT_BYTES_MOST: Final = 32 << 20
"""Bytes of plans that are kept; plans of other groups are read from the journal."""


class Findings:
    """The latest findings; older ones are in the journal only.

    Attributes:
        news: Findings that the journal lacks.
    """

    def __init__(self) -> None:
        """Begin with no findings."""
        self._known: OrderedDict[GroupNumber, EncodedPlan | Unattributed] = OrderedDict()
        self._bytes = 0
        self._greatest = 0
        self.news: list[FoundGroup] = []
        self.get = self._known.get

    def __contains__(self, point: GroupNumber) -> bool:
        return point in self._known

    def __iter__(self) -> Iterator[GroupNumber]:
        return iter(self._known)

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

    def take_news(self) -> list[FoundRun]:
        """Give the findings that the journal lacks, once."""
        news, self.news = self.news, []
        return FoundRun.each_of(news)

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
            self.news.append(tuple.__new__(FoundGroup, found))

    def keep_none(self, point: GroupNumber, reason: Unattributed) -> None:
        """Keep why a group has no plan."""
        self._keep(point, reason)
        if reason.reason is not RowsReason.STRANGER:
            for thread_id in reason.threads or ():
                self.news.append(FoundGroup(thread_id, point, NO_PLACE, NO_PLAN))

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
        self._known.clear()
        self.news.clear()
        self._bytes = self._greatest = 0


def _bytes_of(known: EncodedPlan | Unattributed) -> int:
    if isinstance(known, Unattributed):
        return 0
    # The plans of a statement share their bytes.
    plans = known[0]
    return len(plans.encoded) // len(plans)
