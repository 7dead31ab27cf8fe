"""A planned group and one binlog → the binlog's part of it: a scope holds for texts as for rows.

The group is routed as rows first: what that teaches, of links and XA transactions, is true however
the group is written, and an INCIDENT stays one. Then texts take the places of rows where the scope
allows it: all that a text names must be in it, and all that the statement changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlogs.routing import xa_groups
from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.cut_group import MARK_BYTES_MAX, MARKS, Mismatch, cut_group
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.planned import PlannedGroup, PlannedPart, planned
from binlane.binlogs.routing.planned_spans import is_all_rows
from binlane.binlogs.routing.query_events import confined
from binlane.binlogs.routing.routed_group import (
    NOTHING_BESIDE,
    Beside,
    OmissionKind,
    RoutedGroup,
    Routing,
)
from binlane.binlogs.routing.routing_memory import NOTHING, Memory, StoredObjectKind
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.statement_verdicts import Drop, Keep, KeepWithRows
from binlane.binlogs.routing.texts import is_named_inside
from binlane.errors import UnsupportedError
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor, HeaderFlag
from binlane.log.grouping.event_group import EventGroup
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import GroupPlan, TextPart, basis_of
from binlane.statements.sql.logged_statements import is_about_rows_only, logged_statement
from binlane.statements.sql.servers import RowImage

CHANGED_DEFINITION: Final = "the binlog's definition changed after the statement was judged"
_OUTSIDE: Final = "its text names what is outside of the scope, or cannot be proven to name nothing"
_PARTIAL: Final = "its text would change what is outside of the scope"
_TRIGGER: Final = "a trigger that the binlog does not have may have changed its rows"
_INCIDENT: Final = "its texts would be an INCIDENT"
_LOST: Final = "a statement on temporary tables before it is not there as its text"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRouting:
    """The outcome for one planned group and one binlog.

    Attributes:
        routing: The part that the binlog gets, with the memory behind it.
        reasons: Causes why statements that were planned as texts are there as rows, or not at all;
            one for each statement, or one for the whole group.
        made: Connections of the source whose temporary tables are made by texts that are there.
        lost: Connections for which a text on temporary tables is not there: later texts of theirs
            may need a table that it would have made.
    """

    routing: Routing
    reasons: tuple[str, ...] = ()
    made: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Threads:
    """Connections of the source that have temporary tables, as a binlog has them.

    Attributes:
        made: Their tables were made by texts that are in it.
        lost: Connections of which the binlog lacks a text, so that it can have no temporary table
            of theirs any more.
    """

    made: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


NO_THREADS: Final = Threads()
"""The connections of a binlog that is fed anew."""


def route_planned(  # noqa: PLR0913  # as `route`, and what was planned
    group: EventGroup,
    plan: GroupPlan,
    definition: Definition,
    format_: Format,
    prepared: frozenset[str] = frozenset(),
    memory: Memory = NOTHING,
    *,
    threads: Threads = NO_THREADS,
    beside: Beside = NOTHING_BESIDE,
) -> PlannedRouting:
    """Select what one binlog gets of an event group that a plan is for.

    Args:
        group: A complete group of the source.
        plan: The plan made for this group.
        definition: Definition of the binlog to route to.
        format_: Format of the FORMAT_DESCRIPTION before the group.
        prepared: The XA transactions that the binlog has prepared and not finished.
        memory: Routing's memory of the groups before.
        threads: Connections with temporary tables, as the groups before left them.
        beside: Further facts, as for `route`.

    Raises:
        CodecError: As `route`.
    """
    place = _Place(definition, format_, prepared, memory, beside)
    outcome = _route(group, plan, place, threads)
    routed = outcome.routing.group
    if plan.image is RowImage.FULL or routed is None:
        return outcome
    routing = replace(outcome.routing, group=replace(routed, image=plan.image))
    return replace(outcome, routing=routing)


def _route(group: EventGroup, plan: GroupPlan, place: _Place, threads: Threads) -> PlannedRouting:
    """Do as `route_planned` does, with the rows as the source has them."""
    definition, format_ = place.definition, place.format
    name = definition.name
    if name not in plan.binlogs or is_all_rows(plan, name):
        return PlannedRouting(routing=place.rows(group))
    found: PlannedGroup | Mismatch = Mismatch(CHANGED_DEFINITION)
    if plan.bases.get(name) == basis_of(definition):
        found = planned(group, plan, name, format_)
    if isinstance(found, Mismatch):
        lost = threads_of_plan(plan, name, flags=HeaderFlag.THREAD_SPECIFIC)
        return PlannedRouting(routing=place.rows(group), reasons=(found.reason,), lost=lost)
    as_rows = place.rows(group) if place.learns_of_rows(found) else None
    if as_rows is not None and as_rows.incident is not None:
        return PlannedRouting(routing=as_rows, lost=_threads(found.parts))
    return _Choice(found, place, as_rows, threads).routed()


@dataclass(frozen=True, slots=True)
class _Place:
    """The target of a group: the arguments of `route` beside the group."""

    definition: Definition
    format: Format
    prepared: frozenset[str]
    memory: Memory
    beside: Beside

    @property
    def takes_all(self) -> bool:
        """True if the binlog takes all, so that nothing is looked at."""
        return self.definition.scope.is_unscoped and not self.memory.left_out

    def rows(self, group: EventGroup) -> Routing:
        """The group as rows."""
        target = self.definition, self.format, self.prepared, self.memory
        return route_rows(group, *target, self.beside)

    def learns_of_rows(self, found: PlannedGroup) -> bool:
        """True if only the rows tell the memory behind the group, or that there is an INCIDENT."""
        scope = self.definition.scope
        return not scope.is_unscoped and (
            found.makes_tables
            or bool(self.memory.empty_tables)
            or not all(map(scope.includes, found.mapped))
        )


def route_rows(
    group: EventGroup,
    definition: Definition,
    format_: Format,
    prepared: frozenset[str] = frozenset(),
    memory: Memory = NOTHING,
    beside: Beside = NOTHING_BESIDE,
) -> Routing:
    """Do as `route` does, without the rows that only mark a place in the log (decision 0042)."""
    unmarked = without_marks(group, format_)
    if unmarked is None:
        return Routing(group=None)
    return route(unmarked, definition, format_, prepared, memory, beside)


def without_marks(group: EventGroup, format_: Format) -> EventGroup | None:
    """A group without marks; itself if it has none, None if it has nothing else."""
    if not _may_have_marks(group):
        return group
    cut = cut_group(group, format_)
    if isinstance(cut, Mismatch) or not cut.has_mark:
        return group
    return replace(group, events=cut.without_marks) if cut.pieces else None


def _may_have_marks(group: EventGroup) -> bool:
    """True if a mark may be in a group."""
    last = group.events[-1]
    if isinstance(last.body, TransactionPayloadEvent):
        return last.header.length < MARK_BYTES_MAX
    return any(
        isinstance(event.body, TableMapEvent) and table_name(event.body) == MARKS
        for event in group.events
    )


class _Choice:
    """One planned group, while it is found out which texts of it a binlog may have."""

    def __init__(
        self, found: PlannedGroup, place: _Place, as_rows: Routing | None, threads: Threads
    ) -> None:
        self._found = found
        self._as_rows = as_rows
        self._place = place
        self._scope = place.definition.scope
        self._memory = place.memory
        self._threads = threads
        self._made: set[int] = set()
        self._is_plain = True
        self._is_forced = False

    def routed(self) -> PlannedRouting:
        parts = tuple(map(self._chosen, self._found.parts))
        found = replace(self._found, parts=parts)
        pairs = zip(self._found.parts, parts, strict=True)
        lost = _threads(before for before, after in pairs if after.reason)
        if found.is_lone and found.reasons:
            # The source has a statement there itself, CREATE TABLE … LIKE a temporary one: no rows.
            as_source = self._place.rows(found.source)
            return PlannedRouting(routing=as_source, reasons=found.reasons, lost=lost)
        routing = self._route(found.group)
        if routing is None:
            as_rows = self._as_rows or self._place.rows(self._found.source)
            lost = _threads(self._found.parts)
            return PlannedRouting(routing=as_rows, reasons=(_INCIDENT,), lost=lost)
        return PlannedRouting(
            routing=self._finished(routing, found),
            reasons=found.reasons,
            made=frozenset(self._made),
            lost=lost,
        )

    def _chosen(self, part: PlannedPart) -> PlannedPart:
        """A statement as it may stand in the binlog."""
        if not part.text:
            self._is_plain = False
            return part
        chosen = part
        if not self._place.takes_all:
            is_plain = self._is_plainly_inside(part)
            self._is_plain &= is_plain
            chosen = part if is_plain else self._judged(part)
        if chosen.uses_temporary_tables and not self._has_its_tables(chosen):
            return chosen.as_rows(_LOST)
        return chosen

    def _has_its_tables(self, part: PlannedPart) -> bool:
        """True if the temporary tables are there that a text uses."""
        assert part.statement is not None, "it is a text"
        thread = part.statement.thread_id
        if thread in self._threads.lost:
            return False
        if part.makes_temporary_table:
            self._made.add(thread)
        if thread in self._made or thread in self._threads.made:
            return True
        return part.may_use_others_alone

    def _is_plainly_inside(self, part: PlannedPart) -> bool:
        """True if all names and effects of a change of rows are in scope, as its shape tells.

        Most statements of a binlog differ in their literals alone.
        """
        scope, statement = self._scope, part.statement
        assert statement is not None, "it is a text"
        if (
            not part.rows
            or part.uses_temporary_tables
            or scope.ignores_case
            or isinstance(part.text[-1].body, ExecuteLoadQueryEvent)
            or self._memory.left_out
            or not is_about_rows_only(statement.query)
            or dangers(self._memory.links, scope)
        ):
            return False
        return all(map(scope.includes, part.changed)) and is_named_inside(statement, scope)

    def _judged(self, part: PlannedPart) -> PlannedPart:
        scope, statement = self._scope, part.statement
        assert statement is not None, "it is a text"
        inside = frozenset(filter(scope.includes, part.changed))
        if part.changed and not inside:
            return PlannedPart()  # nothing of it is in scope
        if inside != part.changed:
            return part.as_rows(_PARTIAL)
        logged = logged_statement(statement)
        try:
            found = judge_statement(logged, scope, self._memory)
        except UnsupportedError:
            return part.as_rows(_OUTSIDE)
        verdict, effects = found.verdict, found.facts.effects
        if isinstance(verdict, KeepWithRows):
            return part
        if isinstance(verdict, Drop) and not part.changed:
            if part.drops_temporary_tables and statement.thread_id in self._threads.made:
                # The definition was another one when they were made; replicas have them.
                self._is_forced = True
                return part
            return replace(part, text=())
        is_load = isinstance(part.text[-1].body, ExecuteLoadQueryEvent)
        if not isinstance(verdict, Keep) or (is_load and found.text != logged.text):
            return part.as_rows(_OUTSIDE)
        databases = {table.database for table in effects.writes}
        if any(
            one.kind is StoredObjectKind.TRIGGER and one.name.database in databases
            for one in self._memory.left_out
        ):
            return part.as_rows(_TRIGGER)
        return part

    def _route(self, group: EventGroup) -> Routing | None:
        """The binlog's part of the group that was put together; None if it cannot be expressed."""
        if not group.events:
            return Routing(group=None)
        if self._place.takes_all:
            return Routing(group=RoutedGroup(gtid=group.gtid, events=group.events))
        if self._is_forced and len(self._found.parts) == 1:
            (part,) = self._found.parts
            events = tuple(e if e in part.text else self._confined(e) for e in group.events)
            return Routing(group=RoutedGroup(gtid=group.gtid, events=events))
        if self._is_plain:
            events = tuple(map(self._confined, group.events))
            return Routing(group=RoutedGroup(gtid=group.gtid, events=events))
        place = self._place
        target = place.definition, place.format, place.prepared, place.memory
        routing = route(group, *target, place.beside)
        return None if routing.incident is not None else routing

    def _confined(self, event: Event) -> Event:
        if not isinstance(event.body, QueryEvent):
            return event
        body = confined(event.body, self._scope, None)
        return event if body is event.body else replace(event, body=body)

    def _finished(self, routing: Routing, found: PlannedGroup) -> Routing:
        """Add the memory that the rows leave, and the facts known of statements."""
        source, is_held = found.source, routing.group is not None
        learned = (self._as_rows and self._as_rows.memory) or self._memory
        if not self._scope.is_unscoped:
            learned = xa_groups.remembered(learned, source, self._place.format, is_held=is_held)
        group = routing.group
        if group is not None:
            has_texts = any(part.text for part in found.parts)
            group = replace(
                group,
                prepares=xa_groups.prepared_in(group.events),
                finishes=xa_groups.finished_in(group.events),
                is_alone=has_texts and self._place.format.flavor is Flavor.MYSQL,
            )
        return Routing(
            group=group,
            omissions=tuple(
                one for one in routing.omissions if one.kind is not OmissionKind.STATEMENT
            ),
            memory=None if learned == self._memory else learned,
        )


def _threads(parts: Iterable[PlannedPart]) -> frozenset[int]:
    """The connections whose temporary tables texts use."""
    return frozenset(
        part.statement.thread_id
        for part in parts
        if part.statement is not None and part.uses_temporary_tables
    )


def threads_of_plan(plan: GroupPlan, name: str, *, flags: int) -> frozenset[int]:
    """The connections whose statements a plan has as texts.

    Args:
        plan: The plan of a group.
        name: Name of a binlog in the plan.
        flags: Header flags that an event must have to count; 0 for all statements.
    """
    return frozenset(
        int.from_bytes(event.body[:4], "little")  # with which a statement begins
        for part in plan.binlogs[name]
        if isinstance(part, TextPart)
        for event in part.events[-1:]
        if event.flags & flags == flags
    )
