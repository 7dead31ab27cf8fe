"""Each group's form in each binlog, decided once: an item of a log and a binlog's state → its parts.

A binlog has a group in one of these forms, of which the first that can is taken:

- `spans`: as the bytes that it is, without those that are out of scope;
- `planned_spans`: as the texts of its session's plan, made as bytes;
- `planned_route` and `route`: as texts or rows, event by event, for every group there is;
- `large`: in pieces, if it is too large to be held.

The dispatcher reads a binlog's state and writes nothing: whoever drives it writes each part before
it asks for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Protocol

from binlane.binlogs.routing.large import LargePart, feed_parts
from binlane.binlogs.routing.planned_spans import (
    NO_PLANS,
    PlannedForms,
    PlanReader,
    RunPlans,
    RunTexts,
)
from binlane.binlogs.routing.routed_group import (
    Beside,
    BinlogPart,
    RoutedBinlog,
    Routing,
    prepared_with,
)
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.spans import SpanRouter
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.raw import LargeGroup
from binlane.log.kernels import route_layout as lay
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import GroupPlan, TextPart, basis_of
from binlane.statements.session.plan_bytes import EncodedPlan

if TYPE_CHECKING:
    from binlane.binlogs.routing.planned_route import Threads

_TOGETHER: Final = 64
"""Groups whose plans are asked for at once: one that waits is looked at again and again."""

TOO_LARGE: Final = "its rows are too many to be held at once"


class DecisiveTrace(Protocol):
    """Takes note of the groups on which the memory of binlogs may depend."""

    def run(self, groups: RunGroups, numbers: list[int]) -> None:
        """Take a run, of which some groups are routed event by event."""
        ...

    def group(self, group: EventGroup) -> None:
        """Take a group that is routed event by event."""
        ...

    def large(self) -> None:
        """Take a group of which the events are not held."""
        ...


class PlanPendingError(Exception):
    """A group's plan is not known yet: the binlog's groups from it on are asked for again later."""


class PlanLookup(Protocol):
    """The plans that sessions gave for the groups of one binlog."""

    @property
    def numbers(self) -> Sequence[int]:
        """Numbers of a run's groups that plans may concern or that hold marks, in order."""
        ...

    @property
    def of_run(self) -> RunPlans:
        """The plans that are known as the groups of a run come, by the groups' numbers."""
        ...

    @property
    def threads(self) -> Threads:
        """Connections with temporary tables, as the groups before left them."""
        ...

    def known(self, gtids: Sequence[AnyGtid | None]) -> list[EncodedPlan | None]:
        """The plans of groups, as far as they are known by now."""
        ...

    def require(self, gtid: AnyGtid) -> None:
        """See that the plan of a group is known before the group is decoded.

        Raises:
            PlanPendingError: If it is not known, and is not waited for.
        """
        ...

    def find(self, group: EventGroup | LargeGroup) -> GroupPlan | str:
        """The plan of a group, or the reason why rows stand in the places of its statements.

        Returns:
            An empty reason if the binlog has rows anyway.

        Raises:
            PlanPendingError: If it is not known, and is not waited for.
        """
        ...


class Dispatcher:
    """Decides in which form each of some binlogs gets the groups of one log.

    Args:
        rereads_log: True if the log can be read again where a table comes into a scope.
    """

    def __init__(self, *, rereads_log: bool = False) -> None:
        self._rereads_log = rereads_log
        self._definitions: list[Definition] | None = None
        self._binlogs: Sequence[RoutedBinlog] = ()
        self._spans: SpanRouter
        self._plan_reader = PlanReader()
        self._texts: tuple[RunPlans, RunTexts] | None = None
        self._routings: dict[tuple[int, int], Routing] = {}

    def read(self, groups: RunGroups, binlogs: Sequence[RoutedBinlog]) -> bool:
        """Learn the tables and texts of a run before parts of it are asked for.

        Args:
            groups: The groups of a run of the source.
            binlogs: The binlogs that get it, each meant by its place in the sequence.

        Returns:
            True if that could be done; else the groups are to be given one by one.
        """
        definitions = [binlog.definition for binlog in binlogs]
        if definitions != self._definitions:
            self._spans = SpanRouter(
                definitions,
                [binlog.memory for binlog in binlogs],
                has_tables_info=any(binlog.may_have_tables_info for binlog in binlogs),
                rereads_log=self._rereads_log,
            )
            self._definitions = definitions
        self._binlogs, self._routings = binlogs, {}
        self._texts = None
        return self._spans.read(groups)

    def route_ahead(
        self, groups: RunGroups, trace: DecisiveTrace | None = None
    ) -> tuple[int, CodecError] | None:
        """Route the groups of a run that are for `route` before anything of the run is written.

        Args:
            groups: The groups of the run that was read last.
            trace: Takes note of these groups; None if nobody asks for them.

        Returns:
            The first group that is damaged, and its error; None if all can be routed.
        """
        run, following, is_changed = groups.run, 0, False
        known = [(binlog.prepared, binlog.memory) for binlog in self._binlogs]
        odd: list[int] = []
        xa = self._spans.xa_groups(run)
        first = self._spans.odd_groups(run, self._binlogs)
        if first and xa:
            # What is prepared, and what was not, must be known where these groups are routed.
            first = sorted({*first, *xa})
            self._spans.leave_xa()
        waiting = first[::-1]
        while waiting:
            number = waiting.pop()
            odd.append(number)
            between, following = range(following, number), number + 1
            for place, binlog in enumerate(self._binlogs):
                prepared, memory = known[place]
                follow = partial(self._followed, groups, binlog)
                reached = binlog.reached if self._rereads_log else None
                try:
                    memory = self._spans.memory_behind(place, between, memory, reached, follow)
                    routing = self._route(groups.group(number), binlog, prepared, memory)
                except CodecError as error:
                    return number, error
                self._routings[place, number] = routing
                memory = memory if routing.memory is None else routing.memory
                known[place] = prepared_with(prepared, routing.group), memory
            changes = (self._routings[place, number].memory for place in range(len(known)))
            if not is_changed and any(memory is not None for memory in changes):
                # Statements were judged by what was remembered before.
                is_changed = True
                others = {one for one in self._spans.groups_judged(run) if one > number}
                waiting = sorted({*waiting, *others}, reverse=True)
        if trace is not None:
            trace.run(groups, sorted({*odd, *xa, *self._spans.ddl_groups}))
        return None

    def _followed(
        self, groups: RunGroups, binlog: RoutedBinlog, number: int, memory: Memory
    ) -> Memory:
        """A binlog's memory behind a group that is for `route` with the memory before it."""
        routing = self._route(groups.group(number), binlog, binlog.prepared, memory)
        return memory if routing.memory is None else routing.memory

    def run_parts(
        self,
        groups: RunGroups,
        place: int,
        plans: PlanLookup | None,
        after: Position,
        first: int = 0,
    ) -> Iterator[BinlogPart]:
        """Give a binlog its parts of the run that was read last.

        Args:
            groups: The groups of the run.
            place: Place of the binlog in the sequence that was given with the run.
            plans: Plans of the binlog's groups; None if there are no sessions, and marks stay.
            after: Position of the source behind the run.
            first: Number of the first group that the binlog does not have.

        Raises:
            PlanPendingError: If the group that follows the last part has no plan yet.
            CodecError: If the group that follows the last part is damaged.
        """
        run, binlog, following, is_done = groups.run, self._binlogs[place], first, False
        planned, memory, count = NO_PLANS, None, run.count
        has_plans = plans is not None and bool(plans.numbers)
        stops: list[int] = []
        while following < count:
            if has_plans and plans is not None and binlog.memory is not memory:
                memory = binlog.memory
                texts = self._read_texts(groups, plans.of_run)
                planned, last_first = texts.forms_in(binlog, plans.numbers)
                stops = list(last_first) if last_first else []
            while stops and stops[-1] < following:
                stops.pop()
            if stops and stops[-1] == following:
                yield from self.group_parts(groups, range(following, following + 1), binlog, plans)
                following, is_done = following + 1, False
                continue
            wanted = range(following, stops[-1] if stops else count)
            part, status = self._spans.select(run, place, binlog, wanted, planned, after)
            yield part
            following, is_done = part.next_group, part.done is after
            if status == lay.ROTATE and not binlog.room_bytes:
                yield BinlogPart(rotates_at=run.timestamp(following), next_group=following)
            elif status == lay.ASK:
                routing = self._routings.get((place, following))
                if routing is not None:
                    yield _part(groups.group(following), routing, following + 1)
                else:
                    yield from self.group_parts(
                        groups, range(following, following + 1), binlog, plans
                    )
                following, is_done = following + 1, False
        if not is_done:
            yield BinlogPart(next_group=count, done=after)

    def _read_texts(self, groups: RunGroups, plans: RunPlans) -> RunTexts:
        """The planned texts of the run that was read last."""
        if self._texts is None or self._texts[0] is not plans:
            self._texts = plans, self._plan_reader.read(groups, plans)
        return self._texts[1]

    def group_parts(
        self, groups: RunGroups, numbers: range, binlog: RoutedBinlog, plans: PlanLookup | None
    ) -> Iterator[BinlogPart]:
        """Give a binlog its parts of groups of a run, by their plans or event by event.

        Raises:
            PlanPendingError: If the group that follows the last part has no plan yet.
            CodecError: If the group that follows the last part is damaged.
        """
        for start in range(numbers.start, numbers.stop, _TOGETHER):
            following, stop = start, min(start + _TOGETHER, numbers.stop)
            texts = _AwaitedTexts(self._plan_reader, groups, range(start, stop), binlog, plans)
            while following < stop:
                if texts.is_there(following):
                    part = BinlogPart(next_group=following + 1)
                else:
                    part = texts.part(following) or self.group_part(
                        groups.group(following), binlog, plans, following + 1
                    )
                yield part
                following = part.next_group

    def group_part(
        self,
        group: EventGroup,
        binlog: RoutedBinlog,
        plans: PlanLookup | None,
        next_group: int = 1,
    ) -> BinlogPart:
        """Give a binlog its part of a decoded group.

        Raises:
            PlanPendingError: If the group has no plan yet.
            CodecError: If the group is damaged.
        """
        if plans is None:
            routing = self._route(group, binlog, binlog.prepared, binlog.memory)
            return _part(group, routing, next_group)
        if group.gtid is not None and binlog.reached.covers(group.gtid):
            return BinlogPart(next_group=next_group)
        from binlane.binlogs.routing import planned_route  # noqa: PLC0415  # parses SQL

        plan = plans.find(group)
        target = binlog.definition, binlog.source_format, binlog.prepared, binlog.memory
        if isinstance(plan, GroupPlan):
            outcome = planned_route.route_planned(
                group, plan, *target, threads=plans.threads, beside=self._beside(binlog)
            )
            part = _part(group, outcome.routing, next_group)
            return part._replace(reasons=outcome.reasons, made=outcome.made, lost=outcome.lost)
        routing = planned_route.route_rows(group, *target, self._beside(binlog))
        part = _part(group, routing, next_group)
        return part._replace(reasons=(plan,)) if plan and _has_rows(part) else part

    def large_parts(
        self,
        large: LargeGroup,
        binlogs: Sequence[RoutedBinlog],
        plans: Sequence[PlanLookup | None],
        read: Callable[[], Iterator[Event]],
    ) -> list[Iterator[BinlogPart]]:
        """Give binlogs their parts of a group that is too large to be held.

        Args:
            large: The group, which is read from its bytes again.
            binlogs: The binlogs that get it.
            plans: Plans of each binlog's groups, which wait for what is not known.
            read: Gives the group's events from its first on, each time anew.

        Raises:
            UnexpectedError: If nobody can route the group in pieces: it must be held.
            CodecError: If the group is damaged.
        """

        @cache
        def whole() -> EventGroup:
            return next(group_events(large.events(), file=large.file))

        def held(binlog: RoutedBinlog, lookup: PlanLookup | None) -> Iterator[BinlogPart]:
            yield self.group_part(whole(), binlog, lookup)

        streamed: list[LargePart] = []
        made: list[Iterator[BinlogPart]] = []
        for binlog, lookup in zip(binlogs, plans, strict=True):
            plan = "" if lookup is None else lookup.find(large)
            part = _streamed(large, binlog, plan)
            if part is None:
                made.append(held(binlog, lookup))
            else:
                streamed.append(part)
                made.append(part.parts(read))
        feed_parts(streamed, read, large)
        return made

    def _route(
        self, group: EventGroup, binlog: RoutedBinlog, prepared: frozenset[str], memory: Memory
    ) -> Routing:
        from binlane.binlogs.routing.event_routing import route  # noqa: PLC0415  # parses SQL

        target = binlog.definition, binlog.source_format, prepared, memory
        return route(group, *target, self._beside(binlog))

    def _beside(self, binlog: RoutedBinlog) -> Beside:
        """The facts of a binlog before the group that follows."""
        return Beside(binlog.reached if self._rereads_log else None, binlog.children)


def _streamed(large: LargeGroup, binlog: RoutedBinlog, plan: GroupPlan | str) -> LargePart | None:
    """A binlog's part of a group that is not held; None if the group must be held for it."""
    if isinstance(plan, str):
        return LargePart(binlog, large, reason=plan)
    from binlane.binlogs.routing.planned_route import CHANGED_DEFINITION  # noqa: PLC0415  # parses SQL

    name = binlog.definition.name
    parts = plan.binlogs.get(name)
    if parts is None:
        return LargePart(binlog, large)
    if plan.bases.get(name) != basis_of(binlog.definition):
        return LargePart(binlog, large, plan.image, CHANGED_DEFINITION)
    if not parts:
        return LargePart(binlog, large, is_left_out=True)
    if {part.section for part in parts} != set(range(len(plan.sections))):
        return None
    has_text = any(isinstance(part, TextPart) for part in parts)
    return LargePart(binlog, large, plan.image, TOO_LARGE if has_text else "")


class _AwaitedTexts:
    """The planned texts of some groups for one binlog, as far as the groups' plans are known by now.

    Args:
        reader: Finds the texts in plans.
        groups: The groups of a run.
        numbers: Numbers of those of them that are asked for.
        binlog: The binlog, which has everything before the group that is asked for.
        plans: Plans of the binlog's groups; None if there are no sessions.
    """

    def __init__(
        self,
        reader: PlanReader,
        groups: RunGroups,
        numbers: range,
        binlog: RoutedBinlog,
        plans: PlanLookup | None,
    ) -> None:
        self._reader = reader
        self._groups = groups
        self._numbers = numbers
        self._binlog = binlog
        self._plans = plans
        self._gtids = [] if plans is None else list(map(groups.run.gtid, numbers))
        self._known: Mapping[int, EncodedPlan] = {}
        self._texts = reader.read(groups, RunPlans())
        self._forms: PlannedForms | None = None
        self._memory: Memory | None = None

    def is_there(self, number: int) -> bool:
        """True if the binlog has a group already, as far as anybody asks where there are sessions."""
        gtid = self._gtid(number)
        return gtid is not None and self._binlog.reached.covers(gtid)

    def _gtid(self, number: int) -> AnyGtid | None:
        return self._gtids[number - self._numbers.start] if self._gtids else None

    def part(self, first: int) -> BinlogPart | None:
        """The binlog's part of a group and of those behind it that are texts, too; None if it is no text.

        Raises:
            PlanPendingError: If the group has no plan yet.
        """
        gtid, plans, binlog = self._gtid(first), self._plans, self._binlog
        if plans is None or gtid is None:
            return None
        if first not in self._known:
            self._ask(first, plans)
        if first not in self._known:
            plans.require(gtid)
            self._ask(first, plans)
        if self._forms is None or self._memory is not binlog.memory:
            self._memory = binlog.memory
            self._forms = self._texts.forms_in(binlog, self._numbers)
        forms = self._forms
        if not forms.is_text(first):
            plans.require(gtid)
            return None
        run = self._groups.run
        if not binlog.room_bytes:
            return BinlogPart(rotates_at=run.timestamp(first), next_group=first)
        behind = first + 1
        while behind in self._numbers and forms.is_text(behind) and not self.is_there(behind):
            behind += 1
        return self._texts.placed(forms, range(first, behind), binlog)

    def _ask(self, first: int, plans: PlanLookup) -> None:
        """Know the plans of a group and of those behind it, as far as they are known by now."""
        numbers = self._numbers[first - self._numbers.start :]
        found = zip(numbers, plans.known(self._gtids[first - self._numbers.start :]), strict=True)
        self._known = {number: plan for number, plan in found if plan is not None}
        self._texts = self._reader.read(self._groups, RunPlans(self._known))
        self._forms = None


def _part(group: EventGroup, routing: Routing, next_group: int) -> BinlogPart:
    """A binlog's part of a group that was routed event by event."""
    routed = routing.group
    events = () if routed is None else routed.events
    return BinlogPart(
        group=routed,
        groups=int(routed is not None),
        events=len(events),
        rows_events=len([event for event in events if isinstance(event.body, RowsEvent)]),
        next_group=next_group,
        gtid=group.gtid,
        memory=routing.memory,
        omissions=tuple((omission, 1) for omission in routing.omissions),
        incident=routing.incident,
        arrival=routing.arrival,
    )


def _has_rows(part: BinlogPart) -> bool:
    events = () if part.group is None else part.group.events
    return any(isinstance(event.body, RowsEvent | TransactionPayloadEvent) for event in events)
