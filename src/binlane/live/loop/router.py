"""A feed's groups → their parts in each of the feed's binlogs, appended.

What goes wrong in one binlog, be it its disk or the routing of a group into its scope, is told of
that binlog alone; the others get what they are to get. So it is where a binlog has to wait for what
a session has not said yet: its groups are held here, in order, while the others go on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from binlane.binlogs.routing.dispatcher import Dispatcher, PlanPendingError
from binlane.binlogs.routing.makers import marked
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.errors import BinlaneError, PeerError
from binlane.live.gateway.log_texts import shown
from binlane.live.loop.outputs import Output
from binlane.live.loop.substitution import (
    PAST_THE_PORT,
    OutputPlans,
    OwnedGroups,
    Substitution,
    bypassing,
)
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import EventHeader
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, group_events, whole_group
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.kernels import layout
from binlane.positions import AnyGtid, Position
from binlane.statements.sql.servers import LoggingMode

logger = logging.getLogger(__name__)

OnFault = Callable[[Output, Exception], None]
"""Told of what went wrong in one binlog."""

_CONTROL_KINDS: Final = frozenset({EventType.INCIDENT})
_HELD_BYTES_MAX: Final = 64 << 20
# A plain int: arrays are compared with a member of an enum slowly.
_ANONYMOUS: Final = int(EventType.ANONYMOUS_GTID_LOG)


class Histories(Protocol):
    """Gives the rows of tables that come into scopes."""

    def is_pending(self, name: str) -> bool:
        """True if a binlog waits for rows that are being read or placed."""
        ...

    def parts(self, output: Output, part: BinlogPart, gtid: AnyGtid | None) -> Iterator[BinlogPart]:
        """Give what stands in a binlog where a table comes into its scope.

        Raises:
            PlanPendingError: If its rows are being read or placed.
        """
        ...


class HistoryPendingError(BinlaneError):
    """A binlog waits for the rows of a table that comes in, and is fed anew behind them."""


class Router:
    """Routes the groups that a feed gives.

    Args:
        position: Everything up to here was routed; None where that is not known yet.
        substitution: Puts statements in the places of rows; None where there are no sessions that
            say which.
        is_ending: Tells if no more is to be routed; asked before each group that takes long.
        histories: Gives the rows of tables that come into scopes; None where nobody has them.

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
        histories: Histories | None = None,
    ) -> None:
        self._histories = histories
        self.position = position
        self._substitution = substitution
        self._is_ending = is_ending
        self.format: tuple[EventHeader, FormatDescriptionEvent] | None = None
        self.last_timestamp: int | None = None
        self._dispatcher = Dispatcher(rereads_log=True)
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
        own, substitution = OwnedGroups(), self._substitution
        groups = RunGroups(item) if isinstance(item, RawRun) else None
        for output in outputs:
            if output.temporary.drops_all:
                self._guarded(output, output.drop_temporary, on_fault)
        if substitution is not None:
            substitution.noted(item)
            if groups is not None:
                own = substitution.read_run(groups, after)
            elif not isinstance(item, RawRun):
                format_ = None if self.format is None else self.format[1].format
                substitution.read_group(item, after, format_)
        if self._held:
            outputs = self._worked_off(outputs, on_fault)
        if groups is not None:
            assert after is not None, "behind a group a position is known"
            self._take_run(_Run(groups, own, marked(groups), after), outputs, on_fault)
        elif isinstance(item, LargeGroup):
            outputs = self._worked_off(outputs, on_fault, waits=True)
            self._take_large(item, outputs, on_fault)
        elif not isinstance(item, RawRun):
            self._take_group(item, outputs, on_fault)
        self.position = after

    def _worked_off(
        self, outputs: Sequence[Output], on_fault: OnFault, *, waits: bool = False
    ) -> Sequence[Output]:
        """Do as `work_off`; gives the binlogs that can get what follows."""
        failed: list[Output] = []

        def note(output: Output, error: Exception) -> None:
            failed.append(output)
            on_fault(output, error)

        self.work_off(outputs, note, waits=waits)
        return [one for one in outputs if one not in failed] if failed else outputs

    @property
    def is_holding(self) -> bool:
        """True if some binlog waits for what a session has not said yet."""
        return bool(self._held)

    def _check_pending(self, output: Output) -> None:
        """See that a binlog does not wait for the rows of a table that comes in.

        That may take long, and what comes meanwhile is read faster from the source than it is held.

        Raises:
            HistoryPendingError: If it does.
        """
        if self._histories is not None and self._histories.is_pending(output.name):
            raise HistoryPendingError("the rows of a table that comes in are being read or placed")

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
        if self._held and self._substitution is not None:
            self._substitution.hear()
        for output, held in tuple(self._held.items()):
            if output not in outputs:
                del self._held[output]
                continue
            before = held.count
            work = partial(self._work_off, output, held, waits=waits)
            if not self._guarded(output, work, on_fault) or not held.groups:
                self._held.pop(output, None)
            has_moved |= held.count < before
        return has_moved

    def _work_off(self, output: Output, held: _Held, *, waits: bool) -> None:
        while held.groups:
            is_full = held.size_bytes > _HELD_BYTES_MAX
            before = held.groups[0].size_bytes
            try:
                self._place_held(output, held.groups[0], waits=waits or is_full)
            except PlanPendingError:
                held.size_bytes -= before - held.groups[0].size_bytes
                self._check_pending(output)
                return
            held.groups.popleft()
            held.size_bytes -= before

    def _place_held(self, output: Output, held: EventGroup | _RawHeld, *, waits: bool) -> None:
        if isinstance(held, EventGroup):
            self._place(output, held, waits=waits)
            return
        numbers = range(held.first, held.groups.run.count)
        plans = self._plans(output, waits=waits)
        for part in self._dispatcher.group_parts(held.groups, numbers, output.binlog, plans):
            self._take_part(output, part, part.gtid)
            held.first = part.next_group

    def _plans(self, output: Output, *, waits: bool = False) -> OutputPlans:
        return OutputPlans(output, self._substitution, self._is_ending, waits=waits)

    def _hold(self, output: Output, group: EventGroup | _RawHeld) -> None:
        """Keep a group until those before it can be routed."""
        held = self._held.setdefault(output, _Held())
        held.groups.append(group)
        held.size_bytes += group.size_bytes

    def _take_run(self, taken: _Run, outputs: Sequence[Output], on_fault: OnFault) -> None:
        groups, run = taken.groups, taken.groups.run
        first = run.groups[layout.GROUP_FIRST]
        if (run.events[layout.EVENT_TYPE, first] == _ANONYMOUS).any():
            raise _anonymous(f"{run.file}:{run.base}")
        if not self._dispatcher.read(groups, [output.binlog for output in outputs]):
            for number in range(run.count):
                self._take_group(groups.group(number), outputs, on_fault)
            return
        last_timestamp = run.last_timestamp
        for number, output in enumerate(outputs):
            try:
                self._append(output, number, taken)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
                on_fault(output, error)
            else:
                output.last_timestamp = last_timestamp
        self.last_timestamp = last_timestamp

    def _append(self, output: Output, place: int, taken: _Run) -> None:
        groups, run = taken.groups, taken.groups.run
        if output in self._held:
            self._hold_from(output, groups, 0)
            return
        binlog = output.binlog
        reached = output.taken if binlog.seedings else binlog.reached
        first = 0 if reached is self.position else _first_missing(run, reached, self.position)
        if first is None:
            for number in range(run.count):
                self._give(output, groups.group(number))
            return
        plans, substitution = self._plans(output), self._substitution
        plans.of_run, plans.numbers = taken.own.plans, taken.marks
        if substitution is not None:
            planned = substitution.planned_numbers(run, taken.own, output)
            plans.numbers = sorted({*taken.marks, *planned}) if taken.marks else planned
        following, as_bytes = first, 0
        try:
            for part in self._dispatcher.run_parts(groups, place, plans, taken.after, first):
                self._take_part(output, part, part.gtid)
                following = part.next_group
                rows = part.groups - part.planned - part.bare
                as_bytes += rows if part.gtid is None else 0
        except PlanPendingError:
            self._check_pending(output)
            self._hold_from(output, groups, following)
        if (
            substitution is not None
            # Else sessions made all of them, or may have.
            and len(plans.numbers) < run.count
            and binlog.definition.logging_mode is not LoggingMode.ROW
        ):
            if binlog.definition.scope.is_unscoped:
                as_bytes = bypassing(groups, plans.numbers, range(first, following))
            if as_bytes:
                # No session through the port made the rows.
                substitution.count(output, None, PAST_THE_PORT, as_bytes)

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
            output.last_timestamp = group.timestamp
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
        binlogs = [output.binlog for output in lacking]
        plans = [self._plans(output, waits=True) for output in lacking]
        try:
            made = self._dispatcher.large_parts(
                large, binlogs, plans, lambda: whole_group(large.events())
            )
        except UnexpectedError:
            group = next(group_events(large.events(), file=large.file))
            self._take_group(group, lacking, on_fault)
            return
        for output, parts in zip(lacking, made, strict=True):
            self._guarded(output, partial(self._write, output, parts, large.gtid), on_fault)
            output.last_timestamp = large.timestamp
        self.last_timestamp = large.timestamp

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
            except PlanPendingError:
                self._check_pending(output)
            else:
                return
        self._hold(output, group)

    def _place(self, output: Output, group: EventGroup, *, waits: bool = False) -> None:
        """Give a binlog its part of a group, or have it begin a file.

        Raises:
            PlanPendingError: If its part is not known yet, unless that is waited for.
        """
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            output.binlog.set_format(first.body, timestamp=first.header.timestamp)
            if first.body.created:
                is_complete = output.complete_s is not None
                output.temporary.restart_source(is_complete=is_complete)
        else:
            plans = self._plans(output, waits=waits)
            part = self._dispatcher.group_part(group, output.binlog, plans)
            place = "" if group.gtid else f"{group.file}:{group.position}"
            self._take_part(output, part, group.gtid, place)

    def _hold_from(self, output: Output, groups: RunGroups, first: int) -> None:
        """Keep the groups of a run from a number on."""
        kept, start = groups.kept(first)
        if first - start < kept.run.count:
            self._hold(output, _RawHeld(kept, first - start))

    def _write(
        self, output: Output, parts: Iterable[BinlogPart], gtid: AnyGtid | None = None
    ) -> None:
        for part in parts:
            self._take_part(output, part, part.gtid or gtid)

    def _take_part(
        self, output: Output, part: BinlogPart, gtid: AnyGtid | None, place: str = ""
    ) -> None:
        """Give a binlog a part, and count and tell of it; a table that comes in with its rows.

        Raises:
            PlanPendingError: If these rows are still to be read or placed.
        """
        if part.arrival is not None and self._histories is not None:
            for each in self._histories.parts(output, part, gtid):
                self._take_part(output, each._replace(arrival=None), gtid, place)
            return
        if self._substitution is not None and (part.reasons or part.lost or part.made):
            self._substitution.note(output, part, gtid)
        output.take(part)
        counts = output.counts
        for omission, number in part.omissions:
            kind = omission.kind.value
            if omission.name:
                logger.warning(
                    "binlog %s: %s %s in %s is left out: %s",
                    *(output.name, kind, shown(omission.name), gtid or "a group", omission.reason),
                    extra={"binlog": output.name} | ({"gtid": str(gtid)} if gtid else {}),
                )
            elif not counts.omissions[kind]:
                logger.warning(
                    "binlog %s: %s in %s: %s (further ones are only counted)",
                    *(output.name, kind, gtid or "a group", omission.reason),
                    extra={"binlog": output.name} | ({"gtid": str(gtid)} if gtid else {}),
                )
            counts.omissions[kind] += number
        if part.incident is None and part.group is None:
            return
        for reason in _incidents(part):
            logger.error(
                "binlog %s: INCIDENT for %s: %s; replicas stop there (SHOW BINLOG INCIDENTS)",
                *(output.name, gtid or place, shown(reason)),
                extra={"binlog": output.name, "gtid": str(gtid or "")},
            )
            counts.incidents += 1


def _incidents(part: BinlogPart) -> Iterator[str]:
    """Give the reasons for which replicas stop at a part: here, or as the source itself says."""
    if part.incident is not None:
        yield part.incident
    elif part.group is not None:
        for event in part.group.events:
            if isinstance(event.body, IncidentEvent):
                yield event.body.message.decode("utf-8", "replace") or "the source lost events"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is being routed.

    Attributes:
        groups: The groups of the run.
        own: The groups that are of sessions through the port, or may be.
        marks: The numbers of the groups that hold a mark.
        after: Position of the source behind the run.
    """

    groups: RunGroups
    own: OwnedGroups
    marks: list[int]
    after: Position


@dataclass(slots=True)
class _Held:
    """The groups that a binlog waits with.

    Attributes:
        groups: The groups in order of the log.
        size_bytes: The size of all groups together.
    """

    groups: deque[EventGroup | _RawHeld] = field(default_factory=deque)
    size_bytes: int = 0

    @property
    def count(self) -> int:
        """Number of the groups."""
        return sum(1 if isinstance(one, EventGroup) else one.count for one in self.groups)


@dataclass(slots=True)
class _RawHeld:
    """The last groups of a run that is kept.

    Attributes:
        groups: The groups of the run.
        first: Number of the first one that waits.
    """

    groups: RunGroups
    first: int

    @property
    def count(self) -> int:
        """Number of the groups that wait."""
        return self.groups.run.count - self.first

    @property
    def size_bytes(self) -> int:
        """The size of their events."""
        return self.groups.run.size_bytes(self.first, self.groups.run.count)


def _first_missing(run: RawRun, reached: Position, before: Position | None) -> int | None:
    """The first group of a run that a binlog lacks; None if those that it has do not come first."""
    if before is not None and before.includes(reached):
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
