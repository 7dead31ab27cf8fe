"""One event group and one definition → the part of it that this binlog holds.

Seed 000, "How Scoping Works": what counts is what a change touches, never the default database. A
binlog gets all of a group's in-scope effect or none of it (invariant 4), and no byte of an outside
object (invariant 6): not in rows, table maps, texts, default databases or DDL.

This is the reference: event by event, for every group there is. `spans` does the same for groups
of rows as bytes, and hands back to this module whatever it was not made for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing import xa_groups
from binlane.binlogs.routing.cascade_replay import UnknownRowsError
from binlane.binlogs.routing.cascades import CASCADED, changes_unseen, unseen_changes
from binlane.binlogs.routing.derived_rows import GroupDerivation
from binlane.binlogs.routing.judging import RoutedStatement, judge_statement
from binlane.binlogs.routing.memory_behind import memory_behind
from binlane.binlogs.routing.moves import (
    after_rows,
    came_in,
    judge_partition,
    only_renames,
    partition_arrival,
)
from binlane.binlogs.routing.objects import OBJECT_KINDS
from binlane.binlogs.routing.outside_references import without_outside_keys
from binlane.binlogs.routing.password_hashing import with_hashes
from binlane.binlogs.routing.payload_selection import select_inside
from binlane.binlogs.routing.query_events import confined, with_made_text, with_text, without_phases
from binlane.binlogs.routing.routed_group import (
    NOTHING_BESIDE,
    TEXT_LEFT_OUT,
    Beside,
    Omission,
    RoutedGroup,
    Routing,
)
from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.binlogs.routing.row_selection import (
    PIECES,
    STATEMENT_TEXTS,
    ends_statement,
    select_rows,
    table_name,
)
from binlane.binlogs.routing.session_format import (
    LOGGED_AS_STATEMENT,
    has_statement,
    is_logged_as_statement,
)
from binlane.binlogs.routing.statement_verdicts import (
    Drop,
    IncidentVerdict,
    Keep,
    KeepWithRows,
    LeaveOut,
    Rewrite,
)
from binlane.binlogs.routing.table_births import TableArrival, arrival
from binlane.binlogs.routing.texts import names_in
from binlane.binlogs.routing.vacant_children import filled, links_of_rows
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.load_data import DeleteFileEvent, ExecuteLoadQueryEvent, FileBlockEvent
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ALTER_PHASES, UNDONE_ALTER, EventType, GtidFlag
from binlane.log.grouping.event_group import END_QUERIES, GTID_TYPES, EventGroup
from binlane.log.grouping.xa import finished_by, prepared_by
from binlane.positions import Position
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import StatementKind

LOST_EVENTS: Final = 1
_INCIDENT_MESSAGE_MAX: Final = 255
# They stand before the event that they are the context of.
_OTHER_NAMES: Final = "a statement cannot be written in the character set of its client"
_CONTEXT: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_SAVEPOINTS: Final = frozenset(
    {
        StatementKind.SAVEPOINT,
        StatementKind.ROLLBACK_TO,
        StatementKind.RELEASE_SAVEPOINT,
    }
)
_STAYING: Final = GTID_TYPES | {EventType.XID, EventType.XA_PREPARE_LOG, EventType.INCIDENT}
_TRANSACTIONAL_ENDS: Final = frozenset(
    {EventType.XID, EventType.XA_PREPARE_LOG, EventType.TRANSACTION_PAYLOAD}
)
# These events bear on no table: a group member's certification, a view of members, padding.
_NOTHING: Final = frozenset(
    {
        EventType.IGNORABLE,
        EventType.LARGE_TRANSACTION_HEADER,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
    }
)


def route(
    group: EventGroup,
    definition: Definition,
    format_: Format,
    prepared: frozenset[str] = frozenset(),
    memory: Memory = NOTHING,
    beside: Beside = NOTHING_BESIDE,
) -> Routing:
    """Select what one binlog gets of an event group.

    Args:
        group: A complete group, or an INCIDENT of the source.
        definition: Definition of the binlog to route to.
        format_: Format of the FORMAT_DESCRIPTION before the group.
        prepared: The XA transactions that the binlog has prepared and not finished.
        memory: Routing's memory of the groups before.
        beside: The rest that is known of the binlog before the group.

    Raises:
        CodecError: If a rows event has no TABLE_MAP, or a payload is broken.
    """
    group = with_hashes(group, format_)
    if definition.scope.is_unscoped and memory.left_out:
        return _without_left_out(group, format_, memory)
    if definition.scope.is_unscoped:
        # The header says where in its file the transaction ends, which is another place now.
        moved = EventType.LARGE_TRANSACTION_HEADER
        events = tuple(event for event in group.events if event.header.type_code != moved)
        omissions = (LOGGED_AS_STATEMENT,) if has_statement(group.events, format_) else ()
        if not events:
            return Routing(group=None, omissions=omissions)
        # A definition that follows may give it a scope, within which they must be finished.
        routed = RoutedGroup(
            gtid=group.gtid,
            events=events,
            prepares=xa_groups.prepared_in(events),
            finishes=xa_groups.finished_in(events),
        )
        return Routing(group=routed, omissions=omissions)
    selection = _Selection(group, definition, format_, prepared, memory)
    selection.reached = beside.reached
    if beside.children is None:
        return selection.routing()
    selection.derivation = GroupDerivation(group, definition.scope, format_, beside.children)
    try:
        return selection.routing()
    finally:
        beside.children.end()


def damaged_event(group: EventGroup) -> Event:
    """The event of a group that `route` could not read: the first whose context is damaged."""
    for event in group.events:
        if isinstance(event.body, QueryEvent):
            try:
                decode_status_vars(event.body.status_vars)
            except CodecError:
                return event
    return group.events[0]


def _without_left_out(group: EventGroup, format_: Format, memory: Memory) -> Routing:
    """Route to a binlog that was scoped before: all but changes of objects that it never had."""
    everything, after = Scope.everything(), memory
    events: list[Event] = []
    for event in group.events:
        body = event.body
        if isinstance(body, QueryEvent) and body.query not in END_QUERIES:
            found = judge_statement(logged_statement(body), everything, after)
            after = found.memory
            kept = _of_what_is_there(body, found)
            if kept is None:
                continue
            event = event if kept is body else replace(event, body=kept)  # noqa: PLW2901
        events.append(event)
    is_empty = all(event.header.type_code in GTID_TYPES for event in events)
    return Routing(
        group=None if is_empty else RoutedGroup(gtid=group.gtid, events=tuple(events)),
        omissions=(LOGGED_AS_STATEMENT,) if has_statement(group.events, format_) else (),
        memory=None if after == memory else after,
    )


def _of_what_is_there(body: QueryEvent, found: RoutedStatement) -> QueryEvent | None:
    """A statement on objects that a binlog has, as it is; None where it has none of them."""
    effects, verdict = found.facts.effects, found.verdict
    if isinstance(verdict, Rewrite):
        return with_made_text(body, verdict.statement)
    is_about = effects.kind in OBJECT_KINDS or effects.renames
    if isinstance(verdict, LeaveOut) or (isinstance(verdict, Drop) and is_about):
        return None
    return body


def _are_named(made: StatementEffects, effects: StatementEffects, scope: Scope) -> bool:
    """True if a made statement is about the original's objects, in its client's character set, too."""
    own = set(map(scope.key, effects.writes))
    return own.issuperset(map(scope.key, made.writes)) and set(made.databases) <= {
        *effects.databases,
        *(table.database for table in own),
    }


class _IncidentError(Exception):
    """Inside this module: the group cannot be expressed within the scope."""

    def __init__(self, reason: str, arrival: TableArrival | None = None) -> None:
        super().__init__(reason)
        self.arrival = arrival


class _Selection:
    """The in-scope part of one group while it is being put together."""

    def __init__(
        self,
        group: EventGroup,
        definition: Definition,
        format_: Format,
        prepared: frozenset[str],
        memory: Memory,
    ) -> None:
        self.reached: Position | None = None
        self._group = group
        self._scope = definition.scope
        self._binlog = definition.name
        self._format = format_
        self._omissions: list[Omission] = []
        self._has_effect = False
        self._prepared = prepared
        self._memory_before = self._memory = memory
        self._prepares: str | None = None
        self._finishes: str | None = None
        self._savepoints: dict[str, int] = {}
        self._is_told = False
        first = group.events[0].body
        flags = (first.flags_extra or 0) if isinstance(first, GtidEvent) else 0
        self._is_undone = bool(flags & UNDONE_ALTER)
        self._has_phases = bool(flags & ALTER_PHASES)
        self._loses_phases = False
        self.derivation: GroupDerivation | None = None

    def routing(self) -> Routing:
        try:
            kept = tuple(self._select(self._group.events))
        except _IncidentError as incident:
            return self._incident(str(incident), incident.arrival)
        except UnsupportedError as error:
            return self._incident(error.message)
        omissions = self._all_omissions()
        self._remember_group(is_held=self._has_effect)
        if not self._has_effect:
            return Routing(group=None, omissions=omissions, memory=self._new_memory())
        group = RoutedGroup(
            gtid=self._group.gtid,
            events=without_phases(kept, self._format) if self._loses_phases else kept,
            prepares=self._prepares,
            finishes=self._finishes,
        )
        return Routing(group=group, omissions=omissions, memory=self._new_memory())

    def _all_omissions(self) -> tuple[Omission, ...]:
        return (*self._omissions, *((LOGGED_AS_STATEMENT,) if self._is_told else ()))

    def _remember_group(self, *, is_held: bool | None) -> None:
        """Remember what is told by the group as a whole; None: an INCIDENT is in its place."""
        group = self._group
        self._memory = xa_groups.remembered(self._memory, group, self._format, is_held=is_held)
        self._memory = after_rows(self._memory, group, self._scope, self._format)

    def _new_memory(self) -> Memory | None:
        return None if self._memory == self._memory_before else self._memory

    def _select(self, events: Iterable[Event]) -> Iterator[Event]:
        context: list[Event] = []
        statement: list[Event] = []
        for event in events:
            body, type_code = event.body, event.header.type_code
            if isinstance(body, PIECES):
                statement.append(event)
                if ends_statement(event, self._format):
                    yield from self._select_rows(statement)
                    statement = []
            elif type_code in _CONTEXT or isinstance(body, FileBlockEvent):
                context.append(event)
            elif isinstance(body, QueryEvent | ExecuteLoadQueryEvent):
                yield from self._select_query(event, body, context)
                context = []
            elif isinstance(body, DeleteFileEvent):
                context = []  # the LOAD DATA whose blocks they were failed
            else:
                yield from self._select_other(event)
        has_rows = any(isinstance(e.body, PIECES) and not _is_head(e) for e in statement)
        if has_rows and self._select_rows(statement):
            raise _IncidentError("rows of a statement that does not end")

    def _select_other(self, event: Event) -> tuple[Event, ...]:
        """Give the part of an event that stays if it is neither a row change nor of a statement."""
        type_code = event.header.type_code
        if isinstance(event.body, TransactionPayloadEvent):
            return self._select_payload(event, event.body)
        self._prepares = prepared_by(event) or self._prepares
        self._has_effect |= type_code == EventType.INCIDENT
        if type_code in _STAYING:
            return (event,)
        if type_code in _NOTHING or event.header.is_ignorable:
            return ()
        raise _IncidentError(f"event type {type_code} is unknown, so it may be out of scope")

    def _select_rows(self, statement: list[Event]) -> tuple[Event, ...]:
        self._memory = self._memory.with_rows(
            filled(statement, self._memory.vacant, self._scope, self._format, file=self._group.file)
        )
        unseen = unseen_changes(
            statement,
            links_of_rows(self._memory),
            self._scope,
            self._format,
            file=self._group.file,
            is_transactional=self._group.events[-1].header.type_code in _TRANSACTIONAL_ENDS,
        )
        try:
            derived = self.derivation and self.derivation.feed(
                statement, unseen, self._memory.links
            )
        except UnknownRowsError as error:
            raise _IncidentError(f"{unseen or CASCADED} ({error})") from error
        if derived is not None:
            # The group stands in the binlog even if it is empty: after a crash one that does not is
            # routed again, when the children's rows are those of a later place.
            kept, self._has_effect = derived, True
        elif unseen is not None:
            raise _IncidentError(unseen)
        else:
            kept = select_rows(statement, self._scope, file=self._group.file, format_=self._format)
        if not kept:
            return ()
        self._has_effect = True
        named = {table_name(e.body) for e in statement if isinstance(e.body, TableMapEvent)}
        is_whole = all(map(self._scope.includes, named))
        changed = {table.table for table in named} if is_whole else set[str]()
        return tuple(event for event in kept if self._may_stay(event, changed))

    def _may_stay(self, event: Event, changed: set[str]) -> bool:
        """True if an event of an in-scope statement may stay: a text must be read."""
        if not isinstance(event.body, STATEMENT_TEXTS):
            return True
        if names_in(event.body.query).is_inside(self._scope, changed):
            return True
        self._omissions.append(TEXT_LEFT_OUT)
        return False

    def _select_payload(self, event: Event, payload: TransactionPayloadEvent) -> tuple[Event, ...]:
        before, self._has_effect = self._has_effect, False

        def select(events: Iterable[Event]) -> tuple[Event, ...]:
            kept = tuple(self._select(events))
            return kept if self._has_effect else ()

        kept = select_inside(event, payload, select, format_=self._format, file=self._group.file)
        self._has_effect |= before
        return () if kept is None else (kept,)

    def _select_query(
        self, event: Event, body: QueryEvent | ExecuteLoadQueryEvent, context: list[Event]
    ) -> Iterator[Event]:
        xid = finished_by(event)
        if xid is not None:
            assert isinstance(body, QueryEvent), "it is a statement"
            yield from self._finish_xa(event, body, xid)
            return
        query = body.statement if isinstance(body, ExecuteLoadQueryEvent) else body
        statement = logged_statement(query)
        before = self._memory
        found = judge_statement(statement, self._scope, before)
        verdict = found.verdict
        if not self._is_undone:
            self._memory = found.memory
            self._follow(found, query)
        if self._has_phases and not self._stays_alter(query, found):
            if self._is_undone:
                return  # what stands for it comes with its commit
            self._loses_phases = True
        if isinstance(verdict, IncidentVerdict) or before.left_keys:
            query, found = self._at_the_edge(query, found, before)
            verdict = found.verdict
        if is_logged_as_statement(found.facts):
            self._is_told = True
        self._omissions += found.omissions
        if isinstance(verdict, LeaveOut | Rewrite) and verdict.omission is not None:
            self._omissions.append(verdict.omission)
        if isinstance(verdict, Keep | Rewrite):
            self._has_effect = True
            yield from context if isinstance(verdict, Keep) else ()
        kept = self._kept(query, found)
        if kept is not None:
            yield self._confined(event, kept)

    def _stays_alter(self, query: QueryEvent, found: RoutedStatement) -> bool:
        """True if the binlog's form of a statement can have two phases as well."""
        verdict = found.verdict
        if not isinstance(verdict, Rewrite):
            return isinstance(verdict, Keep)
        made = logged_statement(with_made_text(query, verdict.statement))
        return made.effects().kind is found.facts.effects.kind

    def _kept(self, query: QueryEvent, found: RoutedStatement) -> QueryEvent | None:
        """The statement as it may stand in the binlog; None if it may not."""
        verdict, effects = found.verdict, found.facts.effects
        if isinstance(verdict, IncidentVerdict):
            raise _IncidentError(verdict.reason)
        if isinstance(verdict, KeepWithRows):
            return confined(with_text(query, self._control_text(found)), self._scope, None)
        if isinstance(verdict, Keep):
            return confined(with_text(query, found.text), self._scope, effects)
        if isinstance(verdict, Rewrite):
            query = with_made_text(query, verdict.statement)
            made = logged_statement(query).effects()
            if not _are_named(made, effects, self._scope):
                raise _IncidentError(_OTHER_NAMES)
            return confined(query, self._scope, made)
        return None

    def _at_the_edge(
        self, query: QueryEvent, found: RoutedStatement, before: Memory
    ) -> tuple[QueryEvent, RoutedStatement]:
        """Replace what crosses the edge: a foreign key to an outside parent, a move of tables."""
        effects, scope = found.facts.effects, self._scope
        child = without_outside_keys(query, found, scope, before)
        if child is not None:
            if not self._is_undone:
                self._memory = self._memory.with_left_keys(child.table, child.left_keys)
            return child.query, child.found
        if not isinstance(found.verdict, IncidentVerdict):
            return query, found
        partition = judge_partition(found.facts, effects, scope, before)
        if isinstance(partition, IncidentVerdict):
            coming = partition_arrival(query, found.facts, scope, before)
            if coming is not None:
                raise _IncidentError(partition.reason, coming)
        if partition is not None:
            return query, replace(found, verdict=partition)
        if effects.renames and only_renames(found.facts, effects):
            made = came_in(query, effects, scope, before, self._format.flavor)
            if made is not None:
                self._follow(made[1], made[0])
                return made
            coming = arrival(query, effects, scope, before)
            if coming is not None and isinstance(found.verdict, IncidentVerdict):
                raise _IncidentError(found.verdict.reason, coming)
        return query, found

    def _follow(self, found: RoutedStatement, query: QueryEvent) -> None:
        """Remember what a statement does to tables and the links between them.

        Raises:
            _IncidentError: If it may have changed rows in scope by way of them.
        """
        effects = found.facts.effects
        if self.derivation is not None:
            self.derivation.see_statement(effects.kind)
        before = self._memory.links
        self._memory = memory_behind(
            self._memory, query, found.facts, self._scope, self._group.gtid, since=self.reached
        )
        if changes_unseen(effects, before, self._scope):
            raise _IncidentError(CASCADED)

    def _finish_xa(self, event: Event, body: QueryEvent, xid: str) -> Iterator[Event]:
        # One that was prepared with nothing in scope was not prepared here.
        if xid in self._prepared:
            self._has_effect, self._finishes = True, xid
            yield self._confined(event, confined(body, self._scope, None))
        elif xa_groups.is_commit(event) and not xa_groups.is_passed(self._memory, xid, self._scope):
            raise _IncidentError(xa_groups.UNKNOWN)

    def _control_text(self, found: RoutedStatement) -> str:
        """BEGIN, COMMIT and their like without what a session calls its savepoints."""
        facts = found.facts
        if facts.effects.kind not in _SAVEPOINTS:
            return found.text
        name = facts.name.lower()
        number = self._savepoints.setdefault(name, len(self._savepoints) + 1)
        return f"{facts.verb} `s{number}`"

    def _confined(self, event: Event, query: QueryEvent) -> Event:
        if isinstance(event.body, ExecuteLoadQueryEvent):
            if query.query != event.body.statement.query:
                # The event says where in the text its file is named.
                raise _IncidentError("a LOAD DATA holds comments")
            return replace(event, body=replace(event.body, statement=query))
        return event if event.body == query else replace(event, body=query)

    def _incident(self, reason: str, coming: TableArrival | None = None) -> Routing:
        first = self._group.events[0]
        self._remember_group(is_held=None)
        # SHOW SLAVE STATUS cuts it after some 70 characters: what the operator needs comes first.
        place = self._group.gtid or f"{self._group.file}:{self._group.position}"
        message = (
            f"{place}: {reason}; binlog {self._binlog}; "
            "rebuild the replica from the source, or repair it and skip this GTID"
        )
        header = replace(first.header, type_code=EventType.INCIDENT, flags=0)
        incident = Event(
            header,
            IncidentEvent(number=LOST_EVENTS, message=message.encode()[:_INCIDENT_MESSAGE_MAX]),
        )
        has_gtid = first.header.type_code in GTID_TYPES
        events = (_standalone(first), incident) if has_gtid else (incident,)
        return Routing(
            group=RoutedGroup(gtid=self._group.gtid, events=events),
            omissions=self._all_omissions(),
            incident=reason,
            memory=self._new_memory(),
            arrival=coming,
        )


def _is_head(event: Event) -> bool:
    """True if an event of a statement comes before its rows."""
    return isinstance(event.body, TableMapEvent | STATEMENT_TEXTS)


def _standalone(event: Event) -> Event:
    """A GTID event behind which one event follows."""
    if not isinstance(event.body, GtidEvent):
        return event
    body = GtidEvent(
        sequence=event.body.sequence,
        domain_id=event.body.domain_id,
        flags=GtidFlag.STANDALONE,
        flags_extra=0,
        padding=bytes(5),
    )
    return replace(event, body=body)
