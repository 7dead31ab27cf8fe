"""Views, triggers, routines, events and packages within a scope: kept, dropped or left out for good.

These objects belong to a database; a trigger to its table. One that names outside objects is left
out, and from then on replicas have none of that name: what is done to it later is left out too,
until it is made anew. One that was there before goes with it, since its old form is no longer true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.binlogs.routing.routed_group import Omission, OmissionKind
from binlane.binlogs.routing.routing_memory import Memory, StoredObject, StoredObjectKind
from binlane.binlogs.routing.statement_verdicts import Drop, Keep, LeaveOut, Rewrite, Verdict
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.statement_kinds import StatementKind

_OMISSION_KINDS: Final[Mapping[StoredObjectKind, OmissionKind]] = MappingProxyType(
    {StoredObjectKind.VIEW: OmissionKind.VIEW, StoredObjectKind.TRIGGER: OmissionKind.TRIGGER}
)
_CASELESS: Final = frozenset(StoredObjectKind) - {StoredObjectKind.VIEW, StoredObjectKind.TRIGGER}
_NAMES_OUTSIDE: Final = "it names objects outside of the scope, or may"
_CREATES: Final = frozenset(
    {
        StatementKind.CREATE_VIEW,
        StatementKind.CREATE_ROUTINE,
        StatementKind.CREATE_EVENT,
        StatementKind.CREATE_PACKAGE,
        StatementKind.CREATE_LIBRARY,
    }
)
_ALTERS: Final = frozenset(
    {StatementKind.ALTER_VIEW, StatementKind.ALTER_ROUTINE, StatementKind.ALTER_LIBRARY}
)
OBJECT_KINDS: Final = (
    _CREATES
    | _ALTERS
    | {
        StatementKind.CREATE_TRIGGER,
        StatementKind.ALTER_EVENT,
        StatementKind.DROP_VIEW,
        StatementKind.DROP_TRIGGER,
        StatementKind.DROP_ROUTINE,
        StatementKind.DROP_EVENT,
        StatementKind.DROP_PACKAGE,
        StatementKind.DROP_LIBRARY,
    }
)
"""Statements on objects that are no tables."""

_ALTER: Final = re.compile(r"\s*ALTER\b", re.IGNORECASE)


def judge_object(
    facts: StatementFacts, text: str, scope: Scope, memory: Memory, *, is_clean: bool
) -> tuple[Verdict, Memory]:
    """Judge a statement on a view, trigger, routine, event or package for a binlog.

    Args:
        facts: Facts of the statement, which is of one of `OBJECT_KINDS`.
        text: Text of the judged statement.
        scope: Scope of the binlog to route to.
        memory: Routing's memory of the groups before.
        is_clean: True if all that the statement names is in scope.

    Returns:
        The verdict, and the memory behind the statement.
    """
    effects = facts.effects
    kind = StoredObjectKind(facts.verb.split(" ", 1)[1].lower())
    if kind is StoredObjectKind.TRIGGER:
        if effects.kind is StatementKind.DROP_TRIGGER:
            return _drop_trigger(effects.objects[0], scope, memory)
        return _create_trigger(facts, scope, memory, is_clean=is_clean)
    if effects.kind is StatementKind.ALTER_EVENT:
        return _alter_event(effects, scope, memory, is_clean=is_clean)
    if effects.kind in _CREATES or effects.kind in _ALTERS:
        return _define(facts, text, kind, scope, memory, is_clean=is_clean)
    return _drop(effects, kind, scope, memory)


def stored_object(kind: StoredObjectKind, name: TableName) -> StoredObject:
    """An object as it is remembered: names of routines and events have no case."""
    if kind in _CASELESS:
        return StoredObject(kind, TableName(name.database, name.table.lower()))
    return StoredObject(kind, name)


def _left_out(kind: StoredObjectKind, name: str) -> Omission:
    return Omission(
        kind=_OMISSION_KINDS.get(kind, OmissionKind.ROUTINE),
        reason=_NAMES_OUTSIDE,
        name=name,
    )


def _dropped(
    kind: StoredObjectKind, names: Iterable[TableName], omission: Omission | None
) -> Verdict:
    listed = ", ".join(map(str, names))
    return Rewrite(f"DROP {kind.value.upper()} IF EXISTS {listed}", omission)


def _define(  # what, where, and what is known of it
    facts: StatementFacts,
    text: str,
    kind: StoredObjectKind,
    scope: Scope,
    memory: Memory,
    *,
    is_clean: bool,
) -> tuple[Verdict, Memory]:
    """CREATE and ALTER of what belongs to a database."""
    effects = facts.effects
    name = effects.objects[0]
    one = stored_object(kind, name)
    is_absent = one in memory.left_out
    is_new = effects.kind in _CREATES
    if not scope.includes_database(name.database) or (is_new and effects.if_exists and is_absent):
        return Drop(), memory
    may_be_there = not is_absent or one in memory.unsure
    if is_absent and not is_new:
        if effects.kind is StatementKind.ALTER_VIEW and is_clean:
            return Rewrite(_ALTER.sub("CREATE OR REPLACE", text, count=1)), memory.without(one)
        verdict = _dropped(kind, [name], _left_out(kind, str(name))) if may_be_there else Drop()
        return verdict, memory.with_left_out(one)
    if is_clean:
        return Keep(), memory.without(one)
    if is_new and effects.if_exists:
        return LeaveOut(_left_out(kind, str(name))), memory.with_unsure(one)
    if may_be_there and (facts.effects.is_or_replace or not is_new):
        return _dropped(kind, [name], _left_out(kind, str(name))), memory.with_left_out(one)
    return LeaveOut(_left_out(kind, str(name))), memory.with_left_out(one)


def _alter_event(
    effects: StatementEffects, scope: Scope, memory: Memory, *, is_clean: bool
) -> tuple[Verdict, Memory]:
    kind = StoredObjectKind.EVENT
    old, new = effects.objects[0], effects.objects[-1]
    before, behind = stored_object(kind, old), stored_object(kind, new)
    was_inside, is_inside = (scope.includes_database(name.database) for name in (old, new))
    is_absent = not was_inside or before in memory.left_out
    is_unsure = before in memory.unsure
    memory = memory.without(before)
    if is_unsure:
        is_absent = is_clean = False
    if not is_inside:
        return (Drop() if is_absent else _dropped(kind, [old], None)), memory
    if is_absent:
        verdict = Drop() if was_inside else LeaveOut(_left_out(kind, str(new)))
        return verdict, memory.with_left_out(behind)
    if is_clean:
        return Keep(), memory.without(behind)
    return _dropped(kind, [old], _left_out(kind, str(new))), memory.with_left_out(behind)


def _drop(
    effects: StatementEffects, kind: StoredObjectKind, scope: Scope, memory: Memory
) -> tuple[Verdict, Memory]:
    names = [name for name in effects.objects if scope.includes_database(name.database)]
    absent = memory.left_out - memory.unsure
    there = [name for name in names if stored_object(kind, name) not in absent]
    gone = [stored_object(kind, name) for name in names]
    if kind is StoredObjectKind.PACKAGE:
        gone += [stored_object(StoredObjectKind.PACKAGE_BODY, name) for name in names]
    return (_dropped(kind, there, None) if there else Drop()), memory.without(*gone)


def _create_trigger(
    facts: StatementFacts, scope: Scope, memory: Memory, *, is_clean: bool
) -> tuple[Verdict, Memory]:
    name, table = facts.effects.objects[0], facts.effects.writes[0]
    one = stored_object(StoredObjectKind.TRIGGER, name)
    is_absent = one in memory.left_out
    if not scope.touches_database(name.database) or (facts.effects.if_exists and is_absent):
        return Drop(), memory
    known = replace(memory, triggers=_without(memory, name) | {(name, table)})
    if is_clean:
        return Keep(), known.without(one)
    may_be_there = not is_absent or one in memory.unsure
    replaces = facts.effects.is_or_replace and may_be_there and _is_there(name, scope, memory)
    known = known.with_unsure(one) if facts.effects.if_exists else known.with_left_out(one)
    told = _left_out(StoredObjectKind.TRIGGER, f"{name} of {table}")
    omission = told if scope.includes(table) else None
    if replaces:
        return _dropped(StoredObjectKind.TRIGGER, [name], omission), known
    return (Drop() if omission is None else LeaveOut(omission)), known


def _drop_trigger(name: TableName, scope: Scope, memory: Memory) -> tuple[Verdict, Memory]:
    one = stored_object(StoredObjectKind.TRIGGER, name)
    if not scope.touches_database(name.database):
        return Drop(), memory
    is_absent = one in memory.left_out - memory.unsure
    is_there = _is_there(name, scope, memory)
    is_known = any(name == trigger for trigger, _ in memory.triggers)
    memory = replace(memory.without(one), triggers=_without(memory, name))
    if is_there and not is_absent:
        return _dropped(StoredObjectKind.TRIGGER, [name], None), memory
    if is_absent or is_known:
        return Drop(), memory
    reason = "it was made before this binlog, which logs some tables of its database"
    return LeaveOut(Omission(kind=OmissionKind.TRIGGER, reason=reason)), memory


def _is_there(name: TableName, scope: Scope, memory: Memory) -> bool:
    """True if a trigger that was not left out belongs to a table in scope, as far as that is known."""
    for trigger, table in memory.triggers:
        if trigger == name:
            return scope.includes(table)
    return scope.includes_database(name.database) and not scope.splits_database(name.database)


def _without(memory: Memory, name: TableName) -> frozenset[tuple[TableName, TableName]]:
    return frozenset(pair for pair in memory.triggers if pair[0] != name)


# What happens to them together with tables and databases -----------------------------------------


def views_left_out(memory: Memory) -> frozenset[TableName]:
    """Views that replicas do not have."""
    return frozenset(one.name for one in memory.left_out if one.kind is StoredObjectKind.VIEW)


def routines_left_out(memory: Memory) -> frozenset[TableName]:
    """Functions and procedures that replicas do not have, by names in lower case."""
    kinds = (StoredObjectKind.FUNCTION, StoredObjectKind.PROCEDURE, StoredObjectKind.PACKAGE)
    return frozenset(one.name for one in memory.left_out if one.kind in kinds)


def after_tables(facts: StatementFacts, scope: Scope, memory: Memory) -> Memory:
    """Give the memory behind a statement on tables or databases."""
    effects = facts.effects
    if effects.is_temporary:
        return memory
    if effects.dropped_databases:
        return _without_databases(frozenset(effects.dropped_databases), memory)
    gone = set(effects.drops)
    if effects.is_or_replace and effects.made is not None:
        gone.add(effects.made)
    if gone:
        memory = _without_tables(gone, memory)
    return _renamed(effects, scope, memory) if effects.renames else memory


def _without_databases(databases: frozenset[str], memory: Memory) -> Memory:
    return replace(
        memory,
        left_out=frozenset(one for one in memory.left_out if one.name.database not in databases),
        unsure=frozenset(one for one in memory.unsure if one.name.database not in databases),
        triggers=frozenset(pair for pair in memory.triggers if pair[0].database not in databases),
    )


def _without_tables(tables: set[TableName], memory: Memory) -> Memory:
    """A table takes its triggers along."""
    gone = [pair for pair in memory.triggers if pair[1] in tables]
    memory = replace(memory, triggers=memory.triggers - set(gone))
    return memory.without(*(stored_object(StoredObjectKind.TRIGGER, name) for name, _ in gone))


def _renamed(effects: StatementEffects, scope: Scope, memory: Memory) -> Memory:
    names = dict(effects.net_renames)
    views = views_left_out(memory)
    moved = {old: new for old, new in names.items() if old in views}
    memory = memory.without(*(StoredObject(StoredObjectKind.VIEW, name) for name in moved))
    memory = memory.with_left_out(
        *(StoredObject(StoredObjectKind.VIEW, name) for name in moved.values())
    )
    triggers = {(name, names.get(table, table)) for name, table in memory.triggers}
    # A table that leaves the scope is dropped with its triggers; one that comes in has none.
    lost = [
        stored_object(StoredObjectKind.TRIGGER, name)
        for name, table in memory.triggers
        if table in names and not (scope.includes(table) and scope.includes(names[table]))
    ]
    return replace(memory, triggers=frozenset(triggers)).with_left_out(*lost)
