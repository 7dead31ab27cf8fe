"""What a feed gives → its part in each of the feed's binlogs, appended.

What goes wrong in one binlog, be it its disk or the routing of a group into its scope, is told of
that binlog alone; the others get what they are to get.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import EventHeader
from binlane.codec.rows import RowsEvent
from binlane.codec.types import EventType
from binlane.errors import BinlaneError, PeerError
from binlane.grouping.event_group import EventGroup
from binlane.grouping.raw import Item, LargeGroup, RawRun
from binlane.positions import AnyGtid, GtidPosition, Position, nothing_done
from binlane.routing.route import route
from binlane.routing.routed_group import OmissionKind, Routing
from binlane.routing.spans import SpanCounts, SpanRouter
from binlane.scope.definition import Definition
from binlane.service.outputs import Output
from binlane.store.runs import append_run

logger = logging.getLogger(__name__)

OnFault = Callable[[Output, Exception], None]
"""Told of what went wrong in one binlog."""

_CONTROL_KINDS: Final = frozenset({EventType.INCIDENT})


class Router:
    """Routes what one feed gives.

    Args:
        position: Everything up to here was routed; None where that is not known yet.

    Attributes:
        position: Likewise, moving.
        format: The header and body of the last FORMAT_DESCRIPTION.
        last_timestamp: Of the last group, seconds since 1970; None before one.
    """

    def __init__(self, position: Position | None) -> None:
        self.position = position
        self.format: tuple[EventHeader, FormatDescriptionEvent] | None = None
        self.last_timestamp: int | None = None
        self._spans: SpanRouter | None = None
        self._definitions: list[Definition] = []

    def take(self, item: Item, outputs: Sequence[Output], on_fault: OnFault) -> None:
        """Route an item into binlogs, to be published by their next `sync`.

        Args:
            item: What the source gives next.
            outputs: The binlogs; each has everything up to `position`, or more.
            on_fault: Told which of them must get nothing more, and why.

        Raises:
            PeerError: If the source gives what can go into no binlog; nothing of it is in one.
            CodecError: If the source gives what is damaged for all; nothing of it is in one.
        """
        if isinstance(item, RawRun):
            self._take_run(item, outputs, on_fault)
        elif isinstance(item, LargeGroup):
            raise NotImplementedError
        else:
            self._take_group(item, outputs, on_fault)

    def _take_run(self, run: RawRun, outputs: Sequence[Output], on_fault: OnFault) -> None:
        before = self._known_position(run.format.flavor.value)
        after = self._after(run, before)
        spans = self._router_for([output.binlog.definition for output in outputs])
        if not spans.read(run):
            for number in range(run.count):
                self._take_group(run.group(number), outputs, on_fault)
            return
        groups = _Groups(run)
        for number, output in enumerate(outputs):
            try:
                self._append(output, number, spans, groups, before, after)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
                on_fault(output, error)
            else:
                output.last_timestamp = run.last_timestamp
        self.position = after
        self.last_timestamp = run.last_timestamp

    def _append(  # noqa: PLR0913, PLR0917  # who gets what, and between which positions
        self,
        output: Output,
        number: int,
        spans: SpanRouter,
        groups: _Groups,
        before: Position,
        after: Position,
    ) -> None:
        run, binlog = groups.run, output.binlog
        first = _first_missing(run, binlog.reached, before)
        if first is None:
            for each in range(run.count):
                self._route(output, groups.group(each))
            return
        counts = spans.counts(number).copy()
        append_run(
            binlog,
            spans,
            number,
            run,
            first=first,
            after=after,
            by_reference=partial(self._route_of, output, groups),
        )
        self._count_spans(output, spans.counts(number).since(counts))

    @staticmethod
    def _after(run: RawRun, before: Position) -> Position:
        if run.count > 1:
            return run.position_after(before)
        gtid = run.gtid(0)
        return before if gtid is None else _advanced(before, gtid)

    def _known_position(self, flavor: str) -> Position:
        if self.position is None:
            self.position = nothing_done(flavor)
        return self.position

    def _router_for(self, definitions: list[Definition]) -> SpanRouter:
        """The router of these definitions; one that was asked before knows its texts."""
        if self._spans is None or self._definitions != definitions:
            self._spans, self._definitions = SpanRouter(definitions), definitions
        return self._spans

    def _take_group(
        self, group: EventGroup, outputs: Sequence[Output], on_fault: OnFault
    ) -> None:
        first = group.events[0]
        if isinstance(first.body, FormatDescriptionEvent):
            self.format = first.header, first.body
            for output in outputs:
                self._guarded(
                    output,
                    partial(
                        output.binlog.set_format, first.body, timestamp=first.header.timestamp
                    ),
                    on_fault,
                )
            return
        if group.is_control and first.header.type_code not in _CONTROL_KINDS:
            return
        if group.gtid is None and not group.is_control:
            raise PeerError(
                f"an event group without a GTID stands at {group.file}:{group.position}",
                peer="source",
                phase="capture",
                hint="the source must give each group a GTID: MariaDB 10.0.2 or later does, MySQL "
                "with gtid_mode=ON",
            )
        if group.gtid is not None:
            before = self.position or nothing_done(first_flavor(group.gtid))
            self.position = _advanced(before, group.gtid)
        for output in outputs:
            self._guarded(output, partial(self._route, output, group), on_fault)
            output.last_timestamp = group.timestamp
        self.last_timestamp = group.timestamp

    @staticmethod
    def _guarded(output: Output, work: Callable[[], None], on_fault: OnFault) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this binlog's
            on_fault(output, error)

    def _route_of(self, output: Output, groups: _Groups, number: int) -> None:
        self._route(output, groups.group(number))

    def _route(self, output: Output, group: EventGroup) -> None:
        """Give a binlog its part of a group, by the reference."""
        binlog = output.binlog
        if group.gtid is not None and binlog.reached.covers(group.gtid):
            return
        routing = route(group, binlog.definition, binlog.format, binlog.prepared)
        self._count(output, group, routing)
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
            )
        counts.add(spans)

    @staticmethod
    def _count(output: Output, group: EventGroup, routing: Routing) -> None:
        counts = output.counts
        for omission in routing.omissions:
            if not counts.omissions[omission.kind.value]:
                logger.warning(
                    "binlog %s: %s left out of %s: %s (further ones are only counted)",
                    *(output.name, omission.kind.value, group.gtid, omission.reason),
                )
            counts.omissions[omission.kind.value] += 1
        if routing.incident is not None:
            logger.error("binlog %s: INCIDENT for %s: %s", output.name, group.gtid, routing.incident)
            counts.incidents += 1
        if routing.group is not None:
            counts.event_groups += 1
            counts.events += len(routing.group.events)
            counts.rows_events += sum(
                isinstance(event.body, RowsEvent) for event in routing.group.events
            )


class _Groups:
    """The groups of a run, each decoded once at most."""

    def __init__(self, run: RawRun) -> None:
        self.run = run
        self._groups: dict[int, EventGroup] = {}

    def group(self, number: int) -> EventGroup:
        if number not in self._groups:
            self._groups[number] = self.run.group(number)
        return self._groups[number]


def first_flavor(gtid: AnyGtid) -> str:
    """The flavor of a GTID."""
    return GtidPosition.flavor if hasattr(gtid, "domain_id") else "mysql"


def _first_missing(run: RawRun, reached: Position, before: Position) -> int | None:
    """The first group of a run that a binlog lacks; None if those that it has do not come first."""
    if reached is before or before.includes(reached):
        return 0
    has = [gtid is not None and reached.covers(gtid) for gtid in map(run.gtid, range(run.count))]
    return sum(has) if has == sorted(has, reverse=True) else None


def _advanced(position: Position, gtid: AnyGtid) -> Position:
    """The position after a group; sequences must grow, since "done up to here" is told by them."""
    if position.covers(gtid):
        raise PeerError(
            f"event group {gtid} comes after {position}",
            peer="source",
            phase="capture",
            hint="set gtid_strict_mode=ON on the source, so that sequences grow in each domain",
        )
    return position.advance(gtid)
