"""Changes and needs of one statement, through everything that it uses: the input of the rules of scopes.

They come from the statement's resolved form, in which views, triggers, functions and foreign keys are
followed already: `policy.resolution` lists every table with the steps that lead to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from binlane.errors import NotLoggableError
from binlane.names import TableName
from binlane.statements.policy.engines import traits
from binlane.statements.policy.reasons import Via
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.schema_change_tools import (
    can_come_in,
    shadow_of_trigger,
    swapped_table,
)
from binlane.statements.policy.server import Server
from binlane.statements.scope.changes import (
    NAMED_ONLY,
    SCHEMAS_OF_EVERY_SERVER,
    Changes,
    FiredTrigger,
    ObjectKind,
    UsedObject,
    changed_databases,
    needed_tables,
    written_tables,
)
from binlane.statements.sql.facts import RowChange, StatementFacts, TableUse
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.schema import Table, Trigger, TriggerTime
from binlane.statements.sql.statement_kinds import (
    READING_KINDS,
    TABLE_MAKING_KINDS,
    WRITING_KINDS,
    StatementKind,
)
from binlane.statements.sql.tree.definitions import CreateTrigger

_BY_ROWS: Final = WRITING_KINDS | READING_KINDS | {StatementKind.CALL}
"""Kinds of statements whose changes are those of rows; the text may name a view instead."""


_OF_TRIGGERS: Final = frozenset((StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER))


_EVENTS: Final[Mapping[RowChange, tuple[str, ...]]] = MappingProxyType(
    {
        RowChange.INSERT: ("INSERT",),
        RowChange.LOAD: ("INSERT",),
        RowChange.UPDATE: ("UPDATE",),
        RowChange.DELETE: ("DELETE",),
        RowChange.REPLACE: ("INSERT", "DELETE"),
        RowChange.UPSERT: ("INSERT", "UPDATE"),
    }
)
"""Events of triggers by the change of rows."""


def changes_of(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    objects: Objects,
    *,
    server: Server,
    is_in_procedure: bool = False,
) -> Changes:
    """Return a statement's changes and needs, through everything that it uses.

    Args:
        facts: Facts of the statement's text.
        resolved: The statement's tables with its accesses.
        objects: The server's objects before the statement runs.
        server: Server whose engines are meant.
        is_in_procedure: The statement stands in the body of a procedure that CALL runs.
    """
    is_by_rows = facts.effects.kind in _BY_ROWS
    # The first place is the one that is told.
    uses = {} if is_by_rows else {use.name: use for use in reversed(facts.tables)}
    found = _Used(facts, resolved, objects, server, uses)
    stopped = facts.effects.stopped_at
    return Changes(
        kind=facts.effects.kind,
        writes=_once(found.writes()),
        needs=_once(found.needs()),
        triggers=(*found.made_triggers(), *found.fired_triggers()),
        is_in_procedure=is_in_procedure,
        drops_databases=bool(facts.effects.dropped_databases),
        stopped_near="" if stopped is None else stopped.text[:80] or "the end",
    )


def _once(found: Iterable[UsedObject]) -> tuple[UsedObject, ...]:
    """Each object once, as it was found first."""
    first: dict[tuple[object, ...], UsedObject] = {}
    for used in found:
        first.setdefault((used.kind, used.name, used.is_temporary), used)
    return tuple(first.values())


@dataclass(frozen=True, slots=True)
class _Used:
    """Finds the objects that a statement uses."""

    facts: StatementFacts
    resolved: ResolvedStatement
    objects: Objects
    server: Server
    uses: Mapping[TableName, TableUse]

    def writes(self) -> Iterator[UsedObject]:
        effects = self.facts.effects
        if effects.kind is StatementKind.DROP_TRIGGER:
            # A trigger goes where its table goes, also when it is dropped.
            triggers = [self.objects.trigger(name) for name in effects.objects]
            yield from (UsedObject(name=one.table) for one in triggers if one is not None)
            if None in triggers:
                yield from changed_databases(effects)
            return
        if effects.kind not in _BY_ROWS:
            swapped = swapped_table(effects, self.objects)
            made = self._new_names()
            for name in written_tables(effects):
                if name not in made:
                    shadowed = None if name == swapped else swapped
                    yield replace(self._named(name), shadowed=shadowed)
            yield from changed_databases(effects)
        changed = [access for access in self.resolved.accesses if access.changes]
        filled = {access.name: self._shadowed(access) for access in changed if access.via}
        # A shadow that is written in another way, too, is a table like any other.
        direct = {
            access.name for access in changed if not access.via or self._shadowed(access) is None
        }
        for access in changed:
            used = _accessed(access, is_transactional=_has_rollback(access.table, self.server))
            yield used if access.name in direct else replace(used, shadowed=filled[access.name])

    def _shadowed(self, access: TableAccess) -> TableName | None:
        """The table whose shadow a tool's trigger writes; None for every other change."""
        if not access.via or access.via[-1].kind != "trigger":
            return None
        trigger = self.objects.trigger(access.via[-1].name)
        if trigger is None or shadow_of_trigger(trigger) != access.name:
            return None
        return trigger.table

    def _new_names(self) -> frozenset[TableName]:
        """The new names of temporary tables, which no binlog can know."""
        effects = self.facts.effects
        if effects.kind is StatementKind.RENAME_TABLE and not self.server.is_mariadb:
            return frozenset()  # MySQL renames no temporary tables
        return frozenset(new for old, new in effects.net_renames if self._is_temporary(old))

    def _named(self, name: TableName) -> UsedObject:
        """A table that the text of a DDL statement names."""
        effects = self.facts.effects
        use = self.uses.get(name)
        is_made = effects.kind in TABLE_MAKING_KINDS
        return UsedObject(
            name=name,
            is_temporary=effects.is_temporary or (not is_made and self._is_temporary(name)),
            offset=use.offset if use else 0,
            length=use.length if use else 0,
        )

    def _is_temporary(self, name: TableName) -> bool:
        table = self.objects.table(name)
        return table is not None and table.is_temporary

    def needs(self) -> Iterator[UsedObject]:
        """Give the needs of a replay of the text: tables read, views and functions on the way, and names.

        Tables that a foreign key only looks at are left out: a replica without them has no such foreign key
        either.
        """
        effects = self.facts.effects
        if effects.kind in NAMED_ONLY:
            return
        if effects.kind in _OF_TRIGGERS:
            yield from self._shadows_of_triggers()
        if effects.kind not in _BY_ROWS:
            yield from map(self._need_named, needed_tables(effects))
            yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in effects.calls)
        written = set(effects.writes)
        for access in self.resolved.accesses:
            yield from _needs_on_the_way(access)
            is_outside = access.name.database.lower() not in SCHEMAS_OF_EVERY_SERVER
            is_read = not access.changes and not access.is_foreign_key
            if is_read and is_outside and (effects.kind in _BY_ROWS or access.name not in written):
                yield _accessed(access)
        functions = self.resolved.functions
        yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in functions)

    def _need_named(self, name: TableName) -> UsedObject:
        used = self._named(name)
        is_made = self.facts.effects.kind in TABLE_MAKING_KINDS
        return replace(
            used,
            kind=ObjectKind.TABLE if self.objects.view(name) is None else ObjectKind.VIEW,
            is_temporary=self._is_temporary(name) if is_made else used.is_temporary,
        )

    def _shadows_of_triggers(self) -> Iterator[UsedObject]:
        """Give the shadows of tools' triggers that are made or dropped."""
        shadow = self._made_shadow()
        if shadow is not None:
            yield UsedObject(name=shadow, shadowed=self.facts.effects.writes[0])
        if self.facts.effects.kind is StatementKind.DROP_TRIGGER:
            for one in map(self.objects.trigger, self.facts.effects.objects):
                shadow = None if one is None else shadow_of_trigger(one)
                if one is not None and shadow is not None:
                    yield UsedObject(name=shadow, shadowed=one.table)

    def made_triggers(self) -> Iterator[FiredTrigger]:
        made = self._made_trigger() if self.facts.effects.kind in _OF_TRIGGERS else None
        if made is not None:
            trigger = UsedObject(name=made.name, kind=ObjectKind.ROUTINE)
            yield FiredTrigger(trigger=trigger, table=made.table, shadow=self._made_shadow())

    def _made_shadow(self) -> TableName | None:
        """The shadow of a trigger that a tool makes.

        The tool ends here already if its RENAME would be refused: it may have dropped the table then.
        """
        made = self._made_trigger()
        shadow = None if made is None else shadow_of_trigger(made)
        return shadow if shadow is not None and can_come_in(shadow, self.objects) else None

    def _made_trigger(self) -> Trigger | None:
        """The trigger that a CREATE TRIGGER makes."""
        facts, tree = self.facts, self.facts.tree
        if not isinstance(tree, CreateTrigger):
            return None
        return Trigger(
            name=facts.effects.objects[0],
            table=facts.effects.writes[0],
            time=TriggerTime.BEFORE if tree.time == "BEFORE" else TriggerTime.AFTER,
            events=frozenset(tree.events),
            body=facts.text[facts.place(tree.body_at) :].rstrip(" ;"),
            dialect=facts.dialect,
        )

    def fired_triggers(self) -> Iterator[FiredTrigger]:
        """Triggers of the tables whose rows change; cascades of foreign keys fire none."""
        for access in self.resolved.accesses:
            if access.is_foreign_key or access.table.is_temporary or not access.changes:
                continue
            events = {event for change in access.changes for event in _EVENTS.get(change, ())}
            for trigger in self.objects.triggers(access.name):
                if trigger.events & events:
                    used = _on_the_way(access, trigger.name, ObjectKind.ROUTINE, access.via)
                    shadow = shadow_of_trigger(trigger)
                    yield FiredTrigger(trigger=used, table=access.name, shadow=shadow)


def _accessed(access: TableAccess, *, is_transactional: bool = False) -> UsedObject:
    return UsedObject(
        name=access.name,
        is_temporary=access.table.is_temporary,
        is_transactional=is_transactional,
        through=_through(access.via),
        offset=access.offset,
        length=access.length,
    )


def _through(via: Iterable[Via]) -> tuple[str, ...]:
    return tuple([f"{step.kind} {step.name.plain}" for step in via])


def _on_the_way(
    access: TableAccess, name: TableName, kind: ObjectKind, via: Iterable[Via]
) -> UsedObject:
    return UsedObject(
        name=name,
        kind=kind,
        through=_through(via),
        offset=access.offset,
        length=access.length,
    )


def _has_rollback(table: Table, server: Server) -> bool:
    try:
        return traits(table, server).has_rollback
    except NotLoggableError:
        return False


_KINDS: Final = {"view": ObjectKind.VIEW, "function": ObjectKind.ROUTINE}


def _needs_on_the_way(access: TableAccess) -> Iterator[UsedObject]:
    """Views and functions through which the statement comes to a table."""
    for index, via in enumerate(access.via):
        if via.kind in _KINDS:
            yield _on_the_way(access, via.name, _KINDS[via.kind], access.via[:index])
