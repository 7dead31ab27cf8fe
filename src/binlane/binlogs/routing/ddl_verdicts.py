"""The part that a scoped binlog has of DDL: judged once a statement and scope, by the reference.

A verdict holds as long as no object is remembered otherwise (`what_decides`). All else that is
remembered, DDL changes and does not ask for: `memory_behind` follows it for each statement, as the
reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, NamedTuple

from binlane.binlogs.routing.ddl_texts import (
    KEPT_MAX,
    DdlText,
    OneTable,
    behind_context,
    context_of,
)
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.memory_behind import beside_links, links_behind
from binlane.binlogs.routing.query_events import PLAIN, THREAD_AND_TIME, confined
from binlane.binlogs.routing.routed_group import Omission
from binlane.binlogs.routing.routing_memory import (
    NOTHING,
    Memory,
    StoredObject,
    StoredObjectKind,
)
from binlane.binlogs.routing.statement_verdicts import IncidentVerdict, KeepWithRows
from binlane.binlogs.routing.table_links import TableLinks
from binlane.errors import CodecError
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup
from binlane.log.kernels import route_layout as lay
from binlane.names import TableName
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.statement_kinds import (
    CREATE_TABLE_KINDS,
    OPEN_ENDED_KINDS,
    READING_KINDS,
    TABLE_DROPPING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import AlterTable, CreateTable

_UNTOLD: Final = OPEN_ENDED_KINDS | WRITING_KINDS | {StatementKind.UNKNOWN}
_CREATED: Final = CREATE_TABLE_KINDS | {StatementKind.CREATE_TABLE_LIKE}
_ON_MORE: Final = (
    _UNTOLD | READING_KINDS | {StatementKind.CREATE_TABLE_SELECT, StatementKind.ALTER_DATABASE}
)
"""Statements by which tables may change that they do not name."""
_HEADER: Final = EventHeader(
    timestamp=0, type_code=EventType.QUERY, server_id=0, length=0, next_position=0, flags=0
)
_CONTEXTS_MAX: Final = 4


def what_decides(memory: Memory) -> tuple[object, ...]:
    """The part of a memory on which verdicts on DDL depend."""
    return (
        *(memory.left_out, memory.unsure, memory.triggers, memory.left_keys),
        memory.links.unions,
    )


class SeenTables(NamedTuple):
    """The change of a statement that makes no links, to the tables whose definitions were seen.

    Attributes:
        seen: A table in scope whose definition the statement tells; None if there is none.
        gone: Tables that are no more.
        named: All tables whose links the statement may change, if they have any.
        moves: Old and new names of tables, pair after pair.
    """

    seen: TableName | None
    gone: tuple[TableName, ...]
    named: tuple[TableName, ...]
    moves: tuple[tuple[TableName, TableName], ...] = ()


Objects = tuple[
    frozenset[StoredObject], frozenset[StoredObject], frozenset[tuple[TableName, TableName]]
]
"""Objects that replicas lack, those of them that may be there, and triggers with their tables."""
_NOTHING_SEEN: Final = SeenTables(None, (), ())


@dataclass(slots=True, eq=False, kw_only=True)
class DdlVerdict:
    """The part that a binlog has of a statement.

    Attributes:
        action: COPY, DROP, or PUT_BODY, as kernels take it.
        kept: The statement as it stands in the binlog; None if it does not, or as it is.
        name: The name of its one table in that text, which others of its template have in its place;
            None if it stands for no others.
        has_same_context: True if `kept` has the context of the statement.
        omissions: Parts that are left out and are worth a note.
        facts: Facts of the statement that was judged, or of another one of its template.
        effects: Effects of the statement by the names that the scope has.
        links: Its change to the links between tables; None if the links behind it must be made anew.
        objects: Objects that replicas lack behind it, those that may be there, and triggers; None
            if they stay the same.
        known_by: The statement that was judged.
        makes_outside: True if it makes a table outside of the scope.
        is_local: True if it bears on no other tables than it names.
        named: The tables that it names as changed.
        encoded: Body of `kept`; empty before anybody has asked for it.
    """

    action: int
    kept: QueryEvent | None
    name: OneTable | None
    has_same_context: bool
    omissions: tuple[Omission, ...]
    facts: StatementFacts
    effects: StatementEffects
    links: SeenTables | None
    objects: Objects | None
    known_by: DdlText
    makes_outside: bool
    is_local: bool
    named: frozenset[TableName]
    encoded: bytes = b""

    def of(self, text: DdlText, scope: Scope) -> DdlVerdict:
        """The verdict on another statement of the template."""
        if text is self.known_by:
            return self
        assert text.name is not None, "a template has the name of a table"
        table = scope.key(text.name.table)
        before, links = self.effects, self.links
        tables = (table,)
        drops = tables if before.drops else ()
        if links is not None:
            seen = None if links.seen is None else table
            links = SeenTables(seen, drops, tables if links.named else ())
        return DdlVerdict(
            action=self.action,
            kept=self._kept(text),
            name=text.name,
            has_same_context=self.has_same_context,
            omissions=self.omissions,
            facts=self.facts,
            effects=StatementEffects(
                kind=before.kind,
                writes=tables,
                drops=drops,
                is_or_replace=before.is_or_replace,
                if_exists=before.if_exists,
            ),
            links=links,
            objects=self.objects,
            known_by=text,
            makes_outside=self.makes_outside,
            is_local=self.is_local,
            named=frozenset(tables),
        )

    def _kept(self, text: DdlText) -> QueryEvent | None:
        kept = self.kept
        if kept is None:
            return None
        assert text.name is not None, "as above"
        assert self.name is not None, "as above"
        query = kept.query
        made = query[: self.name.at] + text.name.written + query[self.name.end :]
        return replace(kept, query=made)

    def body(self, data: bytes, text: DdlText, scope: Scope) -> bytes:
        """The body of an event of the statement as it stands in the binlog.

        Args:
            data: Body of the event, as the source wrote it.
            text: The statement, as it was read of the log.
            scope: Scope of the binlog to route to.
        """
        kept, at = self.kept, text.number_at
        assert kept is not None, "there is another body"
        context = context_of(data)
        if not self.has_same_context and at >= 0:
            own = confined(replace(text.body, status_vars=context), scope, None).status_vars
            made = replace(kept, status_vars=own).encode(PLAIN)
            return data[:THREAD_AND_TIME] + made[THREAD_AND_TIME:]
        if not self.encoded:
            self.encoded = kept.encode(PLAIN)
        made, length = self.encoded, len(kept.status_vars)
        if length != len(context) or not self.has_same_context:
            return data[:THREAD_AND_TIME] + made[THREAD_AND_TIME:]
        start, end = THREAD_AND_TIME, behind_context(made)
        return data[:start] + made[start : end - length] + context + made[end:]


class DdlVerdicts:
    """The verdicts on the statements of one binlog.

    Args:
        definition: Definition of the binlog to route to.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._scope = definition.scope
        self._contexts: dict[tuple[object, ...], dict[object, DdlVerdict | None]] = {}
        self._deciding: tuple[object, ...] = (None,) * len(what_decides(NOTHING))
        self._verdicts: dict[object, DdlVerdict | None] = {}
        self._memory: Memory | None = None

    def verdict(self, text: DdlText, memory: Memory, format_: Format) -> DdlVerdict | None:
        """The verdict on a statement behind some groups; None if the reference must look at it.

        Args:
            text: The statement, as it was read of the log.
            memory: Routing's memory of the groups before.
            format_: Format of the FORMAT_DESCRIPTION before it.
        """
        known = self.context(memory)
        if text in known:
            return known[text]
        if len(known) >= KEPT_MAX:
            known.clear()
        key = self._key(text, memory)
        if key not in known:
            found = _judged(text, self._definition, memory, format_)
            if key is not text and found is not None and not _stands_for_all(found, text):
                text.template, key = None, text
            known[key] = found
        found = known[key]
        known[text] = found = None if found is None else found.of(text, self._scope)
        return found

    def _key(self, text: DdlText, memory: Memory) -> object:
        """The statement, or its template and if its table is in scope."""
        if text.template is None or text.name is None or memory.left_keys:
            return text
        table = self._scope.key(text.name.table)
        if memory.left_out and StoredObject(StoredObjectKind.VIEW, table) in memory.left_out:
            return text
        if memory.triggers and any(table == of for _, of in memory.triggers):
            return text
        return text.template, self._scope.includes(table)

    def context(self, memory: Memory) -> dict[object, DdlVerdict | None]:
        """The verdicts that hold with a memory, as far as they are known."""
        if memory is self._memory:
            return self._verdicts
        self._memory = memory
        deciding = what_decides(memory)
        if not all(map(is_, deciding, self._deciding)):
            self._deciding = deciding
            if deciding not in self._contexts:
                if len(self._contexts) >= _CONTEXTS_MAX:
                    self._contexts.clear()
                self._contexts[deciding] = {}
            self._verdicts = self._contexts[deciding]
        return self._verdicts


def _stands_for_all(verdict: DdlVerdict, text: DdlText) -> bool:
    """True if a verdict on one statement of a template holds for all whose tables are as much in scope."""
    if verdict.objects is not None or verdict.links is None:
        return False
    kept, name = verdict.kept, text.name
    if kept is None or name is None:
        return name is not None
    return kept.query[: name.end] == text.body.query[: name.end]


def _judged(
    text: DdlText, definition: Definition, memory: Memory, format_: Format
) -> DdlVerdict | None:
    body, scope = text.body, definition.scope
    group = EventGroup(gtid=None, events=(Event(_HEADER, body, 0),), file="")
    found = judge_statement(logged_statement(body), scope, memory)
    effects = found.facts.effects
    if effects.kind in _UNTOLD or isinstance(found.verdict, IncidentVerdict | KeepWithRows):
        return None
    if memory.left_keys and isinstance(found.facts.tree, CreateTable | AlterTable):
        return None
    try:
        routing = route(group, definition, format_, memory=memory)
    except CodecError:
        return None  # the reference tells where
    if routing.incident is not None:
        return None
    after = found.memory
    objects = (after.left_out, after.unsure, after.triggers)
    is_same = objects == (memory.left_out, memory.unsure, memory.triggers)
    kept, action, has_same_context = None, lay.DROP, True
    if routing.group is not None:
        (event,) = routing.group.events
        if not isinstance(event.body, QueryEvent):
            return None
        action = lay.COPY
        if event.body != body:
            kept, action = event.body, lay.PUT_BODY
            has_same_context = kept.status_vars == body.status_vars
    return DdlVerdict(
        action=action,
        kept=kept,
        name=text.name,
        has_same_context=has_same_context,
        omissions=routing.omissions,
        facts=found.facts,
        effects=effects,
        links=None if text.may_link else _seen_tables(found.facts, scope),
        objects=None if is_same else objects,
        known_by=text,
        makes_outside=_makes_outside(effects, scope),
        is_local=_is_local(effects),
        named=frozenset(map(scope.key, (*effects.writes, *effects.drops, *_renamed(effects)))),
    )


def _makes_outside(effects: StatementEffects, scope: Scope) -> bool:
    if effects.kind not in _CREATED or effects.if_exists or effects.is_temporary:
        return False
    return bool(effects.writes) and not scope.includes(effects.writes[0])


def _is_local(effects: StatementEffects) -> bool:
    """True if all that is remembered of other tables than those that a statement names stays."""
    if effects.stopped_at is not None or effects.dropped_databases:
        return False
    return effects.kind not in _ON_MORE


def _renamed(effects: StatementEffects) -> Iterator[TableName]:
    return (name for pair in effects.renames for name in pair)


def _seen_tables(facts: StatementFacts, scope: Scope) -> SeenTables | None:
    """The tables that a statement without links tells of, as `TableLinks.after` follows it; None of others."""
    effects = facts.effects
    kind, writes = effects.kind, effects.writes
    if effects.is_temporary:
        return _NOTHING_SEEN
    if effects.stopped_at is not None or effects.dropped_databases:
        return None
    named = (*writes, *(name for pair in effects.renames for name in pair))
    if kind is StatementKind.RENAME_TABLE:
        return SeenTables(None, (), named, effects.renames)
    if kind in _CREATED:
        seen = writes[0] if scope.includes(writes[0]) else None
        return _NOTHING_SEEN if effects.if_exists else SeenTables(seen, (), writes)
    if kind is StatementKind.CREATE_SEQUENCE:
        return SeenTables(writes[0], (), writes) if scope.includes(writes[0]) else _NOTHING_SEEN
    if kind is StatementKind.ALTER_TABLE:
        is_plain = isinstance(facts.tree, AlterTable) and not effects.drops
        return SeenTables(None, (), named, effects.renames) if is_plain else None
    if kind in TABLE_DROPPING_KINDS:
        return SeenTables(None, effects.drops, effects.drops)
    return _NOTHING_SEEN


class MemoryFollower:
    """Follows a memory from statement to statement of DDL.

    The tables that were seen are many, so that they are put together once.

    Args:
        memory: Routing's memory before the first statement.
        scope: Scope of the binlog to route to.
    """

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._memory = memory
        self._scope = scope
        self._known: set[TableName] | None = None
        self._named_for: Memory | None = None
        self._named_by: tuple[object, ...] = ()
        self._named = frozenset[TableName]()

    @property
    def memory(self) -> Memory:
        """The memory behind the statements."""
        known, links = self._known, self._memory.links
        if known is not None:
            self._known = None
            if known != links.known:
                links = replace(links, known=frozenset(known))
                self._memory = replace(self._memory, links=links)
        return self._memory

    @property
    def deciding(self) -> Memory:
        """The memory behind the statements, but for tables whose definitions were seen."""
        return self._memory

    @property
    def empty_tables(self) -> frozenset[TableName]:
        """Tables that are known to have no rows behind the statements."""
        return self._memory.empty_tables

    def with_rows(self, tables: Iterable[TableName]) -> None:
        """Note tables that have rows behind the last statement."""
        self._memory = self._memory.with_rows(frozenset(tables))

    def follow(
        self,
        verdict: DdlVerdict,
        query: Callable[[], QueryEvent],
        place: Callable[[], tuple[AnyGtid | None, Position | None]],
    ) -> None:
        """Take a statement.

        Args:
            verdict: The binlog's verdict on the statement.
            query: Gives the event, with its own context.
            place: Gives its GTID, and a position of the source before it, where it is known.
        """
        effects, scope = verdict.effects, self._scope
        if verdict.objects is not None:
            left_out, unsure, triggers = verdict.objects
            self._memory = replace(
                self._memory, left_out=left_out, unsure=unsure, triggers=triggers
            )
        self._follow_links(verdict)
        memory = self._memory
        is_outside = verdict.makes_outside
        if is_outside or not (verdict.is_local and self._remembered.isdisjoint(verdict.named)):
            is_asked = is_outside and effects.kind is StatementKind.CREATE_TABLE
            body = query() if is_asked else verdict.known_by.body
            gtid, since = place() if is_outside else (None, None)
            memory = self._memory
            self._memory = beside_links(memory, body, effects, scope, gtid, since=since)

    @property
    def _remembered(self) -> frozenset[TableName]:
        """The tables of which anything is remembered beside links, or may be by links."""
        memory = self._memory
        if memory is self._named_for:
            return self._named
        self._named_for = memory
        by = (*(memory.created, memory.births, memory.left_keys, memory.vacant), memory.links.keys)
        if not (self._named_by and all(map(is_, by, self._named_by))):
            self._named_by = by
            self._named = memory.vacant.union(
                (one.name for one in memory.created),
                (one.name for one in memory.births),
                (table for table, _ in memory.left_keys),
                (self._scope.key(key.table) for key in memory.links.keys),
            )
        return self._named

    def _follow_links(self, verdict: DdlVerdict) -> None:
        links, change, known = self._memory.links, verdict.links, self._known
        if change is None or links.is_complete or _has_links(links, change.named):
            memory = self.memory
            facts = verdict.facts
            if facts.effects is not verdict.effects:
                facts = replace(facts, effects=verdict.effects)
            links = links_behind(memory.links, facts, self._scope)
            if links is not memory.links:
                self._memory = replace(memory, links=links)
            return
        gone = tuple(old for old, _ in change.moves) or change.gone
        before = links.known if known is None else known
        if (change.seen is None or change.seen in before) and before.isdisjoint(gone):
            return
        if known is None:
            known = self._known = set(links.known)
        _follow_seen(known, change, self._scope)


def _follow_seen(known: set[TableName], change: SeenTables, scope: Scope) -> None:
    """Change the tables in scope that were seen as a statement does."""
    known.difference_update(change.gone)
    if change.seen is not None:
        known.add(change.seen)
    for old, new in change.moves:
        if old in known:
            known.remove(old)
            known.add(new)
    known.difference_update(new for _, new in change.moves if not scope.includes(new))


def _has_links(links: TableLinks, tables: Iterable[TableName]) -> bool:
    """True if any of some tables has links, or links that are not known."""
    if not (links.keys or links.unions or links.unknown):
        return False
    return not links.linked.isdisjoint(tables)


def changes_links(verdict: DdlVerdict, links: TableLinks) -> bool:
    """True if a statement may change links between tables, beside what was seen of them."""
    change = verdict.links
    if verdict.known_by.may_link or links.is_complete:
        return True
    if change is None:
        return bool(links.keys or links.unions or links.unknown) or (
            verdict.effects.stopped_at is not None
        )
    return _has_links(links, change.named)
