"""What one statement changes and needs, from its resolved form: the input of scope safety.

Views, triggers, functions and foreign keys are followed already: `policy.resolution` lists every
table with the way that leads to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from binlane.errors import NotLoggableError
from binlane.names import TableName
from binlane.policy.access import ResolvedStatement, TableAccess
from binlane.policy.engines import traits
from binlane.policy.reasons import Via
from binlane.policy.server import Server
from binlane.scope.changes import (
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
from binlane.sql.facts import RowChange, StatementFacts, StatementKind
from binlane.sql.schema import Objects, Table

_BY_ROWS: Final = frozenset(
    (
        StatementKind.INSERT,
        StatementKind.REPLACE,
        StatementKind.UPDATE,
        StatementKind.DELETE,
        StatementKind.LOAD_DATA,
        StatementKind.SELECT,
        StatementKind.DO,
        StatementKind.SET,
        StatementKind.CALL,
    )
)
"""What these change is told by what happens to rows; the text may name a view instead."""

_MAKES_TABLE: Final = frozenset(
    (
        StatementKind.CREATE_TABLE,
        StatementKind.CREATE_TABLE_LIKE,
        StatementKind.CREATE_TABLE_SELECT,
        StatementKind.CREATE_SEQUENCE,
    )
)

_TRIGGER_EVENTS: Final[Mapping[RowChange, frozenset[str]]] = MappingProxyType(
    {
        RowChange.INSERT: frozenset(("INSERT",)),
        RowChange.LOAD: frozenset(("INSERT",)),
        RowChange.UPDATE: frozenset(("UPDATE",)),
        RowChange.DELETE: frozenset(("DELETE",)),
        RowChange.REPLACE: frozenset(("INSERT", "DELETE")),
        RowChange.UPSERT: frozenset(("INSERT", "UPDATE")),
    }
)


def changes_of(
    facts: StatementFacts,
    resolved: ResolvedStatement,
    objects: Objects,
    *,
    server: Server,
    is_in_procedure: bool = False,
) -> Changes:
    """Say what a statement changes and needs, through everything that it uses.

    Args:
        facts: What its text says.
        resolved: Its tables.
        objects: The server's objects before the statement runs.
        server: Whose engines.
        is_in_procedure: It stands in the body of a procedure that CALL runs.
    """
    effects = facts.effects
    stopped = effects.stopped_at
    return Changes(
        kind=effects.kind,
        writes=_once(_writes(facts, resolved, objects, server)),
        needs=_once(_needs(facts, resolved, objects)),
        triggers=(*_made_triggers(facts), *_fired_triggers(resolved, objects)),
        is_in_procedure=is_in_procedure,
        stopped_near="" if stopped is None else stopped.text[:80] or "the end",
    )


def _once(found: Iterable[UsedObject]) -> tuple[UsedObject, ...]:
    """Each object once, as it was found first."""
    first: dict[tuple[object, ...], UsedObject] = {}
    for used in found:
        first.setdefault((used.kind, used.name, used.is_temporary), used)
    return tuple(first.values())


def _writes(
    facts: StatementFacts, resolved: ResolvedStatement, objects: Objects, server: Server
) -> Iterator[UsedObject]:
    effects = facts.effects
    if effects.kind is StatementKind.DROP_TRIGGER:
        yield from _table_of_trigger(facts, objects)
        return
    if effects.kind not in _BY_ROWS:
        for name in written_tables(effects):
            yield _named(name, facts, objects)
        yield from changed_databases(effects)
    for access in resolved.accesses:
        if access.changes:
            yield _accessed(access, server)


def _table_of_trigger(facts: StatementFacts, objects: Objects) -> Iterator[UsedObject]:
    """A trigger goes where its table goes, also when it is dropped."""
    tables = [objects.trigger(name) for name in facts.effects.objects]
    yield from (UsedObject(name=found.table) for found in tables if found is not None)
    if None in tables:
        yield from changed_databases(facts.effects)


def _named(name: TableName, facts: StatementFacts, objects: Objects) -> UsedObject:
    """A table that the text of a DDL statement names."""
    use = next((use for use in facts.tables if use.name == name), None)
    if facts.effects.kind in _MAKES_TABLE:
        is_temporary = facts.effects.is_temporary
    else:
        table = objects.table(name)
        is_temporary = facts.effects.is_temporary or (table is not None and table.is_temporary)
    return UsedObject(
        name=name,
        is_temporary=is_temporary,
        offset=use.offset if use else 0,
        length=use.length if use else 0,
    )


def _accessed(access: TableAccess, server: Server | None = None) -> UsedObject:
    return UsedObject(
        name=access.name,
        is_temporary=access.table.is_temporary,
        is_transactional=server is not None and _has_rollback(access.table, server),
        through=tuple(_step(via) for via in access.via),
        offset=access.offset,
        length=access.length,
    )


def _step(via: Via) -> str:
    return f"{via.kind} {via.name.plain}"


def _has_rollback(table: Table, server: Server) -> bool:
    try:
        return traits(table, server).has_rollback
    except NotLoggableError:
        return False


def _needs(
    facts: StatementFacts, resolved: ResolvedStatement, objects: Objects
) -> Iterator[UsedObject]:
    """What a replay of the text needs: tables read, views and functions on the way, and names.

    The tables that a foreign key only looks at are left out: a replica without them has no such
    foreign key either.
    """
    effects = facts.effects
    if effects.kind in NAMED_ONLY:
        return
    if effects.kind not in _BY_ROWS:
        yield from (_need_named(name, facts, objects) for name in needed_tables(effects))
        yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in effects.calls)
    written = set(effects.writes)
    for access in resolved.accesses:
        yield from _needs_on_the_way(access)
        is_outside = access.name.database.lower() not in SCHEMAS_OF_EVERY_SERVER
        is_read = not access.changes and not access.is_foreign_key
        if is_read and is_outside and (effects.kind in _BY_ROWS or access.name not in written):
            yield _accessed(access)
    yield from (UsedObject(name=name, kind=ObjectKind.ROUTINE) for name in resolved.functions)


def _need_named(name: TableName, facts: StatementFacts, objects: Objects) -> UsedObject:
    used = _named(name, facts, objects)
    if facts.effects.kind in _MAKES_TABLE:
        table = objects.table(name)
        is_temporary = table is not None and table.is_temporary
    else:
        is_temporary = used.is_temporary
    return UsedObject(
        name=name,
        kind=ObjectKind.TABLE if objects.view(name) is None else ObjectKind.VIEW,
        is_temporary=is_temporary,
        offset=used.offset,
        length=used.length,
    )


def _needs_on_the_way(access: TableAccess) -> Iterator[UsedObject]:
    """Views and functions through which the statement comes to a table."""
    kinds = {"view": ObjectKind.VIEW, "function": ObjectKind.ROUTINE}
    for index, via in enumerate(access.via):
        if via.kind in kinds:
            yield UsedObject(
                name=via.name,
                kind=kinds[via.kind],
                through=tuple(_step(step) for step in access.via[:index]),
                offset=access.offset,
                length=access.length,
            )


def _made_triggers(facts: StatementFacts) -> Iterator[FiredTrigger]:
    effects = facts.effects
    if effects.kind is StatementKind.CREATE_TRIGGER:
        for name, table in zip(effects.objects, effects.writes, strict=False):
            yield FiredTrigger(trigger=UsedObject(name=name, kind=ObjectKind.ROUTINE), table=table)


def _fired_triggers(resolved: ResolvedStatement, objects: Objects) -> Iterator[FiredTrigger]:
    """Triggers of the tables whose rows change; cascades of foreign keys fire none."""
    for access in resolved.accesses:
        if access.is_foreign_key or access.table.is_temporary or not access.changes:
            continue
        events = frozenset[str]().union(
            *(_TRIGGER_EVENTS.get(change, frozenset[str]()) for change in access.changes)
        )
        for trigger in objects.triggers(access.name):
            if trigger.events & events:
                yield FiredTrigger(
                    trigger=UsedObject(
                        name=trigger.name,
                        kind=ObjectKind.ROUTINE,
                        through=tuple(_step(via) for via in access.via),
                        offset=access.offset,
                        length=access.length,
                    ),
                    table=access.name,
                )
