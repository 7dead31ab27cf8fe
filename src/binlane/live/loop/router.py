"""A feed's groups → their parts in each of the feed's binlogs, appended.

What goes wrong in one binlog, be it its disk or the routing of a group into its scope, is told of
that binlog alone; the others get what they are to get. So it is where a binlog has to wait for what
a session has not said yet: its groups are held here, in order, while the others go on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from binlane.binlogs.route.large import LargePart
from binlane.binlogs.routing.makers import marked
from binlane.binlogs.routing.planned_route import route_rows
from binlane.binlogs.routing.planned_spans import RawGroup, raw_group
from binlane.binlogs.routing.routed_group import Omission, OmissionKind, Routing
from binlane.binlogs.routing.session_format import LOGGED_AS_STATEMENT
from binlane.binlogs.routing.spans import SpanCounts, SpanRouter
from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.runs import append_run
from binlane.errors import PeerError
from binlane.live.gateway.log_texts import shown
from binlane.live.loop.outputs import Output
from binlane.live.loop.substitution import (
    PAST_THE_PORT,
    LargeChoice,
    NotYetError,
    RunGroups,
    Substitution,
    bypassing,
)
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import EventHeader
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import EventGroup, group_events, whole_group
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.kernels import layout
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import GroupPlan
from binlane.statements.sql.servers import LoggingMode

logger = logging.getLogger(__name__)

OnFault = Callable[[Output, Exception], None]
"""Told of what went wrong in one binlog."""

_CONTROL_KINDS: Final = frozenset({EventType.INCIDENT})
_HELD_BYTES_MAX: Final = 64 << 20


class EndingError(BaseException):
    """Routing ends between two groups, and not behind all that came: that may be seconds' work.

    It is no fault of a binlog, so that what is done for each of them lets it pass. Each goes on from
    where it stands when it is opened again.
    """


class Router:
    """Routes the groups that a feed gives.

    Args:
        position: Everything up to here was routed; None where that is not known yet.
        substitution: Puts statements in the places of rows; None where there are no sessions that
            say which.
        is_ending: Tells if no more is to be routed; asked before each group that takes long.

    Attributes:
        position: Everything up to here was routed; moves on with each group.
        format: The header and body of the last FORMAT_DESCRIPTION.
        last_timestamp: The time of the last group, in seconds since 1970; None before one.
    """

    def __init__(
        self,
        position: Position | None,
        substitution: Substitution | None = None,
        *,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        self.position = position
        self._substitution = substitution
        self._is_ending = is_ending
        self.format: tuple[EventHeader, FormatDescriptionEvent] | None = None
        self.last_timestamp: int | None = None
        self._spans: SpanRouter | None = None
        self._definitions: list[Definition] = []
        self._held: dict[Output, _Held] = {}

    def take(
        self, item: Item, after: Position | None, outputs: Sequence[Output], on_fault: OnFault
    ) -> None:
        """Route an item into binlogs, to be published by their next `sync`.

        Args:
            item: The item that the source gives next.
            after: Everything up to here is done with it.
            outputs: The binlogs; each has everything up to `position`, or more.
            on_fault: Told which of them must get nothing more, and why.

        Raises:
            PeerError: If the source gives what can go into no binlog; nothing of it is in one.
            CodecError: If the source gives what is damaged for all. What stands before it was
                routed, and `position` says so.
            EndingError: If no more is to be routed.
        """
        own, substitution = RunGroups(), self._substitution
        for output in outputs:
            if output.drops_temporary:
                self._guarded(output, output.drop_temporary, on_fault)
        if substitution is not None:
            substitution.noted(item)
            if isinstance(item, RawRun):
                own = substitution.read_run(item, after)
            else:
                format_ = None if self.format is None else self.format[1].format
                substitution.read_group(item, after, format_)
        self.work_off(outputs, on_fault)
        if isinstance(item, RawRun):
            self._take_run(item, own, after, outputs, on_fault)
        elif isinstance(item, LargeGroup):
            self.work_off(outputs, on_fault, waits=True)
            self._take_large(item, outputs, on_fault)
        else:
            self._take_group(item, outputs, on_fault)
        self.position = after

    @property
    def is_holding(self) -> bool:
        """True if some binlog waits for what a session has not said yet."""
        return bool(self._held)

    def holds(self, output: Output) -> bool:
        """True if a binlog waits for what a session has not said yet."""
        return output in self._held

    def work_off(
        self, outputs: Collection[Output], on_fault: OnFault, *, waits: bool = False
    ) -> bool:
        """Give binlogs the groups that were held, as far as all is known of them now.

        Args:
            outputs: The binlogs that are still fed from here.
            on_fault: Called for a binlog in which something goes wrong, given to `take` as well.
            waits: Wait for what is not known, within bounds.

        Returns:
            True if there is less to wait for.
        """
        has_moved = False
        for output, held in tuple(self._held.items()):
            if output not in outputs:
                del self._held[output]
                continue
            before = len(held.groups)
            work = partial(self._work_off, output, held, waits=waits)
            if not self._guarded(output, work, on_fault) or not held.groups:
                self._held.pop(output, None)
            has_moved |= len(held.groups) < before
        return has_moved

    def _work_off(self, output: Output, held: _Held, *, waits: bool) -> None:
        while held.groups:
            is_full = held.size_bytes > _HELD_BYTES_MAX
            try:
                self._place_held(output, held.groups[0], waits=waits or is_full)
            except NotYetError:
                return
            held.size_bytes -= held.groups.popleft().size_bytes

    def _place_held(self, output: Output, held: EventGroup | _RawHeld, *, waits: bool) -> None:
        if isinstance(held, EventGroup):
            self._place(output, held, waits=waits)
            return
        run, number = held.groups.run, held.number
        gtid, substitution = run.gtid(number), self._substitution
        plan = None if gtid is None or substitution is None else substitution.plan_now(gtid)
        if not self._append_raw(output, held.groups, number, plan):
            if gtid is not None and substitution is not None and not waits:
                substitution.require(output, gtid)
            self._route(output, held.groups.group(number), waits=waits)

    def _hold(self, output: Output, group: EventGroup | _RawHeld) -> None:
        """Keep a group until those before it can be routed."""
        held = self._held.setdefault(output, _Held())
        held.groups.append(group)
        held.size_bytes += group.size_bytes

    def _take_run(
        self,
        run: RawRun,
        own: RunGroups,
        after: Position | None,
        outputs: Sequence[Output],
        on_fault: OnFault,
    ) -> None:
        first = run.groups[layout.GROUP_FIRST]
        if (run.events[layout.EVENT_TYPE, first] == EventType.ANONYMOUS_GTID_LOG).any():
            raise _anonymous(f"{run.file}:{run.base}")
        assert after is not None, "behind a group a position is known"
        spans = self._router_for([output.binlog for output in outputs])
        if not spans.read(run):
            for number in range(run.count):
                self._take_group(run.group(number), outputs, on_fault)
            return
        groups = _Groups(run, own, marked(run))
        for number, output in enumerate(outputs):
            try:
                self._append(output, number, spans, groups, after)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
                on_fault(output, error)
            else:
                output.note_routed(run.last_timestamp)
        self.last_timestamp = run.last_timestamp

    def _append(
        self, output: Output, number: int, spans: SpanRouter, groups: _Groups, after: Position
    ) -> None:
        run, binlog = groups.run, output.binlog
        first = _first_missing(run, binlog.reached, self.position)
        if output in self._held:
            self._hold_from(output, groups, 0)
            return
        if first is None:
            for each in range(run.count):
                self._give(output, groups.group(each))
            return
        counts = spans.counts(number).copy()
        substitution = self._substitution
        planned = [] if substitution is None else substitution.taken(run, groups.own, output)
        taken, stop = sorted({*groups.marked, *planned}), run.count
        try:
            append_run(
                binlog,
                spans,
                number,
                run,
                first=first,
                after=after,
                by_reference=partial(self._route_of, output, groups),
                taken=taken,
            )
        except _HeldError as held:
            stop = held.number
            self._hold_from(output, groups, stop)
        counts = spans.counts(number).since(counts)
        if counts.statements:
            self._tell(output, run.gtid(spans.statements[0]), LOGGED_AS_STATEMENT)
        self._count_spans(output, counts)
        if substitution is not None and binlog.definition.logging_mode is not LoggingMode.ROW:
            self._count_bypassing(output, run, taken, range(first, stop), counts)

    @staticmethod
    def _count_bypassing(
        output: Output, run: RawRun, taken: list[int], done: range, counts: SpanCounts
    ) -> None:
        """Count groups that stayed the rows that they came as: no session through the port made them."""
        number = counts.groups
        if output.binlog.definition.scope.is_unscoped:
            number = bypassing(run, taken, done)
        if number:
            Substitution.count(output, None, PAST_THE_PORT, number)

    def _router_for(self, binlogs: Sequence[Binlog]) -> SpanRouter:
        """The router of these definitions; one that was asked before knows its texts."""
        definitions = [binlog.definition for binlog in binlogs]
        if self._spans is None or self._definitions != definitions:
            self._spans = SpanRouter(
                definitions,
                [binlog.memory for binlog in binlogs],
                has_tables_info=any(binlog.may_have_tables_info for binlog in binlogs),
            )
            self._definitions = definitions
        return self._spans

    def _take_group(self, group: EventGroup, outputs: Sequence[Output], on_fault: OnFault) -> None:
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            self.format = first.header, first.body
            if first.body.created and self._substitution is not None:
                self._substitution.source_started(self.position)
            for output in outputs:
                self._guarded(output, partial(self._give, output, group), on_fault)
            return
        if group.is_control and first.header.type_code not in _CONTROL_KINDS:
            return
        if group.gtid is None and not group.is_control:
            raise _anonymous(f"{group.file}:{group.position}")
        for output in outputs:
            self._guarded(output, partial(self._give, output, group), on_fault)
            output.note_routed(group.timestamp)
        if group.gtid is not None and self.position is not None:
            self.position = self.position.advance(group.gtid)
        self.last_timestamp = group.timestamp

    def _take_large(self, large: LargeGroup, outputs: Sequence[Output], on_fault: OnFault) -> None:
        """Route a group that is not held; one that must be is, where nothing else can route it."""
        lacking = [
            output
            for output in outputs
            if large.gtid is None or not output.binlog.reached.covers(large.gtid)
        ]
        choices = self._choices(large, lacking)
        parts = [
            (
                choice,
                LargePart(choice.output.binlog, large.format, file=large.file, image=choice.image),
            )
            for choice in choices
            if not choice.needs_whole
        ]
        try:
            for event in whole_group(large.events()):
                for _, part in parts:
                    part.feed(event)
            for _, part in parts:
                part.end()
        except UnexpectedError:
            group = next(group_events(large.events(), file=large.file))
            self._take_group(group, [choice.output for choice in choices], on_fault)
            return
        for choice, part in parts:
            work = partial(self._write_large, choice, part, large)
            self._guarded(choice.output, work, on_fault)
        if len(parts) < len(choices):
            group = next(group_events(large.events(), file=large.file))
            for choice in choices:
                if choice.needs_whole:
                    work = partial(self._route, choice.output, group, waits=True)
                    self._guarded(choice.output, work, on_fault)
        for choice in choices:
            choice.output.note_routed(large.timestamp)
        self.last_timestamp = large.timestamp

    def _choices(self, large: LargeGroup, outputs: Sequence[Output]) -> list[LargeChoice]:
        """Return the binlogs' choices for a large group, in order of `outputs`."""
        substitution = self._substitution
        if substitution is None:
            return [LargeChoice(output) for output in outputs]
        return [substitution.of_large(output, large) for output in outputs]

    def _write_large(self, choice: LargeChoice, part: LargePart, large: LargeGroup) -> None:
        output, binlog = choice.output, choice.output.binlog
        if choice.reason and part.has_effect and self._substitution is not None:
            self._substitution.note_rows(output, large.gtid, choice.reason)
        part.remember()
        if part.has_effect and choice.has_rows:
            if not binlog.room_bytes:
                binlog.rotate(large.timestamp)
            if large.format.flavor is Flavor.MYSQL:
                part.measure(whole_group(large.events()))
            part.write(whole_group(large.events()))
            output.counts.add(
                SpanCounts(
                    groups=1,
                    events=part.events,
                    rows_events=part.rows_events,
                    texts_left_out=part.texts_left_out,
                )
            )
        if large.gtid is not None:
            binlog.advance(large.gtid)

    @staticmethod
    def _guarded(output: Output, work: Callable[[], None], on_fault: OnFault) -> bool:
        """Do some work for one binlog; whether that went well."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
            on_fault(output, error)
            return False
        return True

    def _give(self, output: Output, group: EventGroup) -> None:
        """Give a binlog its part of a group, now or as soon as it is known."""
        if output not in self._held:
            try:
                self._place(output, group)
            except NotYetError:
                pass
            else:
                return
        self._hold(output, group)

    def _place(self, output: Output, group: EventGroup, *, waits: bool = False) -> None:
        """Give a binlog its part of a group, or have it begin a file.

        Raises:
            NotYetError: If its part is not known yet, unless that is waited for.
        """
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            output.binlog.set_format(first.body, timestamp=first.header.timestamp)
            if first.body.created:
                output.restart_source()
        else:
            self._route(output, group, waits=waits)

    def _route_of(self, output: Output, groups: _Groups, number: int) -> None:
        if self._append_raw(output, groups, number, groups.own.plans.get(number)):
            return
        gtid = groups.run.gtid(number)
        try:
            if gtid is not None and self._substitution is not None:
                self._substitution.require(output, gtid)
            self._route(output, groups.group(number))
        except NotYetError:
            raise _HeldError(number) from None

    def _append_raw(
        self, output: Output, groups: _Groups, number: int, plan: GroupPlan | None
    ) -> bool:
        """Give a binlog its part of a planned group as bytes; whether it has it."""
        raw = None if plan is None else groups.raw(number)
        gtid = groups.run.gtid(number) if raw is not None else None
        return (
            plan is not None
            and raw is not None
            and gtid is not None
            and self._substitution is not None
            and self._substitution.append_raw(output, plan, raw, gtid)
        )

    def _hold_from(self, output: Output, groups: _Groups, first: int) -> None:
        """Keep the groups of a run from a number on."""
        kept, start = groups.kept(first)
        for number in range(first - start, kept.run.count):
            self._hold(output, _RawHeld(kept, number))

    def _route(self, output: Output, group: EventGroup, *, waits: bool = False) -> None:
        """Give a binlog its part of a group, by the reference.

        Raises:
            NotYetError: As `_place`.
            EndingError: If no more is to be routed.
        """
        if self._is_ending():
            raise EndingError
        binlog = output.binlog
        if group.gtid is not None and binlog.reached.covers(group.gtid):
            return
        if self._substitution is not None:
            routing = self._substitution.route(output, group, waits=waits)
        else:
            place = binlog.definition, binlog.source_format, binlog.prepared, binlog.memory
            routing = route_rows(group, *place)
        self._count(output, group, routing)
        if routing.memory is not None:
            binlog.remember(routing.memory)
        if routing.group is not None:
            binlog.append(routing.group)
        elif group.gtid is not None:
            binlog.advance(group.gtid)

    @staticmethod
    def _count_spans(output: Output, spans: SpanCounts) -> None:
        counts, kind = output.counts, OmissionKind.ANNOTATE.value
        if spans.texts_left_out and not counts.omissions[kind]:
            logger.warning(
                "binlog %s: %s left out: it may name objects outside of the scope "
                "(further ones are only counted)",
                *(output.name, kind),
                extra={"binlog": output.name},
            )
        counts.add(spans)

    @staticmethod
    def _tell(output: Output, gtid: AnyGtid | None, omission: Omission) -> None:
        """Say what is left out, or lacks in the log, the first time of its kind."""
        if not output.counts.omissions[omission.kind.value]:
            logger.warning(
                "binlog %s: %s in %s: %s (further ones are only counted)",
                *(output.name, omission.kind.value, gtid, omission.reason),
                extra={"binlog": output.name, "gtid": str(gtid)},
            )

    @staticmethod
    def _count(output: Output, group: EventGroup, routing: Routing) -> None:
        counts = output.counts
        for omission in routing.omissions:
            Router._tell(output, group.gtid, omission)
            counts.omissions[omission.kind.value] += 1
        for reason in _incidents(routing):
            logger.error(
                "binlog %s: INCIDENT for %s: %s; replicas stop there (SHOW BINLOG INCIDENTS)",
                *(output.name, group.gtid or f"{group.file}:{group.position}", shown(reason)),
                extra={"binlog": output.name, "gtid": str(group.gtid or "")},
            )
            counts.incidents += 1
        if routing.group is not None:
            counts.event_groups += 1
            counts.events += len(routing.group.events)
            counts.rows_events += sum(
                isinstance(event.body, RowsEvent) for event in routing.group.events
            )


def _incidents(routing: Routing) -> Iterator[str]:
    """Give the reasons for which replicas stop at a binlog's part: here, or as the source itself says."""
    if routing.incident is not None:
        yield routing.incident
    elif routing.group is not None:
        for event in routing.group.events:
            if isinstance(event.body, IncidentEvent):
                yield event.body.message.decode("utf-8", "replace") or "the source lost events"


class _HeldError(Exception):
    """Inside of this module: a group of a run has to wait, with all behind it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(slots=True)
class _Held:
    """The groups that a binlog waits with.

    Attributes:
        groups: The groups in order of the log.
        size_bytes: The size of all groups together.
    """

    groups: deque[EventGroup | _RawHeld] = field(default_factory=deque)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _RawHeld:
    """A group of a run that is kept.

    Attributes:
        groups: The groups of the run.
        number: The group's number in the run.
    """

    groups: _Groups
    number: int

    @property
    def size_bytes(self) -> int:
        """The size of the group's events."""
        return self.groups.run.size_bytes(self.number)


class _Groups:
    """The groups of a run, each decoded once at most.

    Attributes:
        run: The run as it was captured.
        own: The groups that are of sessions through the port, or may be.
        marked: The numbers of the groups that hold a mark.
    """

    def __init__(self, run: RawRun, own: RunGroups, marked_groups: list[int]) -> None:
        self.run = run
        self.own = own
        self.marked = marked_groups
        self._groups: dict[int, EventGroup] = {}
        self._raw: dict[int, RawGroup | None] = {}
        self._kept: tuple[_Groups, int] | None = None

    def kept(self, first: int) -> tuple[_Groups, int]:
        """The groups from one on, or more of them, to be kept; the number of the first of them."""
        if self._kept is None or self._kept[1] > first:
            self._kept = _Groups(self.run.kept(first), RunGroups(), []), first
        return self._kept

    def raw(self, number: int) -> RawGroup | None:
        """A group as bytes; None if it is one for the reference."""
        if number not in self._raw:
            self._raw[number] = raw_group(self.run, number)
        return self._raw[number]

    def group(self, number: int) -> EventGroup:
        if number not in self._groups:
            self._groups[number] = self.run.group(number)
        return self._groups[number]


def _first_missing(run: RawRun, reached: Position, before: Position | None) -> int | None:
    """The first group of a run that a binlog lacks; None if those that it has do not come first."""
    if reached is before or (before is not None and before.includes(reached)):
        return 0
    has = [gtid is not None and reached.covers(gtid) for gtid in map(run.gtid, range(run.count))]
    return sum(has) if has == sorted(has, reverse=True) else None


def _anonymous(place: str) -> PeerError:
    return PeerError(
        f"an event group without a GTID stands at {place}",
        peer="source",
        phase="dump",
        hint="the source must give each group a GTID: MariaDB 10.0.2 or later does, MySQL with "
        "gtid_mode=ON",
    )
