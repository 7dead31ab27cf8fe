"""What the journal tells after a restart: the lanes, their statements, and how far was read."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from binlane.codec.types import Flavor
from binlane.errors import CodecError
from binlane.port import journal_records as records
from binlane.port.group_journal import GroupJournal
from binlane.port.journal import Place, Record
from binlane.port.lane_groups import LaneGroups, Reason, Statement, Stream, spans_told
from binlane.port.statement_journal import RecordedFile, StatementJournal
from binlane.positions import parse_position

logger = logging.getLogger(__name__)


class Recovery:
    """What the files tell of the moment when the process before ended.

    Attributes:
        lanes: By number.
        read: Up to where each stream was read.
        epoch: Of which source this is; None where nothing tells it.
    """

    def __init__(self, flavor: Flavor, statements: StatementJournal, groups: GroupJournal) -> None:
        """Read the files.

        Args:
            flavor: Of the source.
            statements: What sessions said.
            groups: What was read and found out.

        Raises:
            StoreError: If they cannot be read.
        """
        self.lanes: dict[int, LaneGroups] = {}
        self.read: dict[Stream, int] = {}
        self.epoch: int | None = None
        self._flavor = flavor
        self._journal = statements
        last: records.Reading | None = None
        for last in groups.files():
            if last.epoch != self.epoch:
                self.read.clear()
            self.epoch = last.epoch
            self.read.update(last.ends)
        for lane, arrival in last.arrivals if last is not None else ():
            self._lane(lane).arrivals.append(arrival)
        for file in statements.files():
            self._take_file(file)
        for lane, number in last.doubts if last is not None else ():
            for statement in self._lane(lane).statements:
                if statement.number == number:
                    statement.doubt = statement.doubt or Reason.FORGOTTEN
        for each in self.lanes.values():
            if each.is_taken or any(not one.is_answered for one in each.statements):
                each.is_taken = False
                each.lose()

    def _lane(self, lane: int) -> LaneGroups:
        return self.lanes.setdefault(lane, LaneGroups())

    def _take_file(self, file: RecordedFile) -> None:
        is_whole = True
        try:
            self._replay_file(file.records)
        except CodecError as error:
            logger.warning("the port's journal: %s", error)
            is_whole = False
        if is_whole and file.is_whole():
            return
        # What lacks there may be what came of them, and later ones.
        for groups in self.lanes.values():
            for statement in groups.statements:
                if not statement.is_answered:
                    statement.doubt = statement.doubt or Reason.FORGOTTEN

    def _replay_file(self, found: Iterable[Record]) -> None:
        under_way: list[tuple[int, Statement]] = []
        is_current = False
        for record in found:
            if record.kind == records.OPEN:
                lane, statement = records.read_open(record.body)
                statement.place = record.place
                under_way.append((lane, statement))
            elif record.kind == records.LANES:
                epoch, heads = records.read_lanes(record.body)
                is_current = epoch == self.epoch
                if is_current:
                    self._begin_again(heads, under_way)
            elif is_current:
                self._replay(record)

    def _begin_again(
        self, heads: Iterable[records.LaneHead], under_way: Iterable[tuple[int, Statement]]
    ) -> None:
        """Take what a file begins with in place of what older ones told."""
        arrivals = {lane: groups.arrivals for lane, groups in self.lanes.items()}
        self.lanes = {lane: LaneGroups(arrivals=list(each)) for lane, each in arrivals.items()}
        for head in heads:
            groups = self._lane(head.lane)
            groups.is_taken, groups.needs_end = head.is_taken, head.needs_end
            groups.has_untold, groups.thread_id = head.has_untold, head.thread_id
            groups.told, groups.start = dict(head.told), dict(head.start)
            groups.end = parse_position(head.end, self._flavor.value) if head.end else None
        for lane, statement in under_way:
            self._lane(lane).statements.append(statement)
            self._journal.need(statement)
        for groups in self.lanes.values():
            self._drop_over(groups)

    def _replay(self, record: Record) -> None:
        kind, body, place = record.kind, record.body, record.place
        if kind == records.INTENT:
            intent = records.read_intent(body)
            groups = self._lane(intent.lane)
            groups.drop_old(intent.number)
            statement = Statement(intent.number, intent.plan_count, None, place)
            if intent.has_older:
                # Which of the groups that were read these are is not in the journal.
                statement.doubt = Reason.FORGOTTEN
            groups.add(statement)
        elif kind == records.ANSWER:
            self._replay_answer(records.read_answer(body), place)
        elif kind == records.ENDED:
            lane, position = records.read_ended(body)
            self._lane(lane).end = parse_position(position, self._flavor.value)
        elif kind == records.TAKEN:
            lane, thread_id, start = records.read_taken(body)
            self._lane(lane).take(thread_id, start)
        else:
            lane = records.read_lane(body)
            if kind == records.GIVEN:
                self._lane(lane).give()
            elif kind == records.LOST:
                self._lane(lane).lose()

    def _replay_answer(self, answer: records.Answer, place: Place) -> None:
        groups = self._lane(answer.lane)
        statement = groups.find(answer.number)
        if statement is None:
            # Which of its groups were read before it was known is not in the journal.
            statement = Statement(answer.number, 0, is_answered=True, doubt=Reason.FORGOTTEN)
            groups.add(statement)
        if answer.plan_count is not None:
            statement.plans, statement.place = None, place
            statement.count = answer.plan_count
        spans = spans_told(answer.last) if answer.last else ()
        groups.answer(statement, spans, is_known=answer.is_known)
        self._journal.need(statement)
        # Those of which nothing can come any more are many where binlogs lag.
        self._drop_over(groups)

    def _drop_over(self, groups: LaneGroups) -> None:
        while groups.statements and groups.is_over(groups.statements[0], self.read):
            groups.statements.popleft()
