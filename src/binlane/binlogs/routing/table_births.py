"""Tables that were made outside of a scope, and where: by that a table that comes in has a history.

The source's log holds all rows of a table that was made in it. A binlog remembers where the log has
the statement that made such a table, and whoever drives routing can read the log again from there
(`table_history`) when the table comes into the scope. This module says which tables are remembered,
and what is asked for where some come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlogs.routing.query_events import confined, with_made_text
from binlane.binlogs.routing.routing_memory import Memory, TableBirth
from binlane.log.codec.query import QueryEvent
from binlane.names import TableName
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.statement_kinds import (
    CREATE_TABLE_KINDS,
    TABLE_DROPPING_KINDS,
    StatementKind,
)

BIRTHS_MAX: Final = 64
"""Tables of which it is remembered where they were made; of more the oldest are forgotten."""
PLACE_MAX: Final = 4096
"""Characters of a position that is remembered."""
FILLING: Final = "binlane_filling_"
"""Prefix of the names under which tables are filled that come into a scope."""
COMING: Final = "binlane_coming_"
"""Prefix of the names that such tables have once they are whole."""
LEAVING: Final = "binlane_leaving_"
"""Prefix of the names that tables have that are dropped behind the statement."""
_MADE: Final = CREATE_TABLE_KINDS | {StatementKind.CREATE_TABLE_LIKE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingTable:
    """A table that comes into a scope with its rows.

    Attributes:
        birth: The place where it was made, and its name there.
        new: Its name in the scope, or that of the table to whose partition its rows come.
        number: Its number among those that come in by one statement, from 1.
    """

    birth: TableBirth
    new: TableName
    number: int = 1

    @property
    def filling(self) -> TableName:
        """The name under which it is filled."""
        return TableName(self.new.database, f"{FILLING}{self.number}")

    @property
    def stage(self) -> TableName:
        """The name that it has once it is whole, and that the statement finds it under."""
        return TableName(self.new.database, f"{COMING}{self.number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableArrival:
    """A statement that brings tables into a scope, whose rows the source's log may have.

    Attributes:
        tables: The tables that come in.
        query: Event of the statement, by names within the scope: those that come in have the names
            of their stages.
        left: Tables that are dropped behind it.
        into_partition: True if the rows become those of a partition.
        dropped_first: Tables that leave and are dropped before those that come in are made.
        without_left: The same with all tables that leave dropped first. None if the names of
            constraints, which are unique in a database, cannot be in the way, since the source had
            these tables in one database at once.
    """

    tables: tuple[ComingTable, ...]
    query: QueryEvent
    left: tuple[TableName, ...] = ()
    into_partition: bool = False
    dropped_first: tuple[TableName, ...] = ()
    without_left: TableArrival | None = None

    @property
    def what(self) -> str:
        """The words for a log that name what comes in."""
        names = ", ".join(str(one.new) for one in self.tables)
        return f"{'a partition of ' if self.into_partition else ''}{names}"


def births_after(
    memory: Memory,
    effects: StatementEffects,
    scope: Scope,
    gtid: AnyGtid | None,
    *,
    since: Position | None,
) -> Memory:
    """Give the memory, with the tables that were made outside of a scope, behind a statement.

    A table that is remembered wrongly does no harm: its history tells.

    Args:
        memory: Routing's memory before the statement.
        effects: Effects of the statement on objects.
        scope: Scope of the binlog to route to.
        gtid: GTID of the statement; None for one without.
        since: A position of the source before the statement; None where it is not known.
    """
    kind = effects.kind
    is_made = kind in _MADE and not effects.if_exists and bool(effects.writes)
    is_told = is_made and gtid is not None and since is not None
    if effects.is_temporary or not (memory.births or is_told):
        return memory
    gone: set[TableName] = set()
    if effects.dropped_databases:
        gone = {
            one.name
            for one in memory.births
            if any(scope.is_same(one.name.database, name) for name in effects.dropped_databases)
        }
    elif effects.renames:
        gone = {scope.key(name) for pair in effects.net_renames for name in pair}
    elif kind in TABLE_DROPPING_KINDS:
        gone = set(map(scope.key, effects.drops))
    elif is_made:
        gone = {scope.key(effects.writes[0])}
    elif kind is StatementKind.ALTER_TABLE and len(effects.writes) > 1:
        # It has given its rows to a partition, or has those of one.
        gone = set(map(scope.key, effects.writes))
    births = [one for one in memory.births if one.name not in gone]
    if is_made and gtid is not None and since is not None:
        name, place = scope.key(effects.writes[0]), str(since)
        if not scope.includes(name) and len(place) <= PLACE_MAX:
            births.append(TableBirth(name=name, gtid=str(gtid), since=place))
    return memory.with_births(births[-BIRTHS_MAX:])


def arrival(
    query: QueryEvent, effects: StatementEffects, scope: Scope, memory: Memory
) -> TableArrival | None:
    """The tables that a RENAME brings into a scope.

    The statement is done step by step as the source did it, by other names for those outside: a
    table that comes in has that of its stage, and one that leaves one of its own, to be dropped.

    Args:
        query: Event of the statement, which only renames tables.
        effects: Effects of the statement on objects.
        scope: Scope of the binlog to route to.
        memory: Routing's memory before the statement.

    Returns:
        The arrival; None if none comes in. Where the birth of a table has no place, its history
        does not tell its rows; nothing is remembered of it, or its rows may be logged as those of
        a MERGE table.
    """
    last = {scope.key(old): new for old, new in effects.net_renames}
    moves = {old: new for old, new in last.items() if scope.includes(old) or scope.includes(new)}
    tables: dict[TableName, ComingTable] = {}
    for old, new in moves.items():
        if not scope.includes(old):
            birth = known_birth(old, memory) or TableBirth(name=old)
            tables[old] = ComingTable(birth=birth, new=new, number=len(tables) + 1)
    if not tables:
        return None
    named = _Names(scope, {old: one.stage for old, one in tables.items()})
    steps: list[tuple[TableName, str]] = []
    firsts: dict[TableName, TableName] = {}
    for old, new in effects.renames:
        first = firsts.pop(scope.key(old), scope.key(old))
        firsts[scope.key(new)] = first
        if first in moves or (scope.includes(first) and first not in last):
            steps.append((first, f"{named.of(old, first)} TO {named.of(new, first)}"))
    leaving = {old: new for old, new in moves.items() if not scope.includes(new)}

    def renaming(texts: list[str]) -> QueryEvent:
        if_exists = "IF EXISTS " if effects.if_exists else ""
        made = with_made_text(query, f"RENAME TABLE {if_exists}{', '.join(texts)}")
        return confined(replace(made, database=b""), scope, None)

    found = TableArrival(
        tables=tuple(tables.values()),
        query=renaming([text for _, text in steps]),
        left=tuple(named.of(new, old) for old, new in leaving.items()),
    )
    if not _may_share_names(tables, leaving, scope):
        return found
    rest = renaming([text for first, text in steps if first not in leaving])
    return replace(
        found,
        without_left=replace(found, query=rest, left=(), dropped_first=tuple(leaving)),
    )


def _may_share_names(
    coming: Mapping[TableName, ComingTable], leaving: Mapping[TableName, TableName], scope: Scope
) -> bool:
    """True if a table comes from another database in exchange for one that goes to another."""
    into = {one.new.database for old, one in coming.items() if not _is_within(old, one.new, scope)}
    out_of = [old.database for old, new in leaving.items() if not _is_within(old, new, scope)]
    return any(scope.is_same(one, other) for one in into for other in out_of)


def _is_within(old: TableName, new: TableName, scope: Scope) -> bool:
    return scope.is_same(old.database, new.database)


class _Names:
    """Names within a scope for those that a RENAME has outside of it.

    Args:
        scope: Scope of the binlog that tables come into.
        known: The names that are given already, by outside name.
    """

    def __init__(self, scope: Scope, known: Mapping[TableName, TableName]) -> None:
        self._scope = scope
        self._known = dict(known)
        self._number = 0

    def of(self, name: TableName, first: TableName) -> TableName:
        """The name; one that is new stands in the database that the table has at first."""
        key = self._scope.key(name)
        if self._scope.includes(key):
            return name
        if key not in self._known:
            self._number += 1
            inside = first if self._scope.includes(first) else self._known[first]
            self._known[key] = TableName(inside.database, f"{LEAVING}{self._number}")
        return self._known[key]


def known_birth(name: TableName, memory: Memory) -> TableBirth | None:
    """The place where a table was made, if it is known.

    Returns:
        The place; None too if rows of the table may be logged as those of a MERGE table.
    """
    birth = next((one for one in memory.births if one.name == name), None)
    return None if memory.links.is_merged(name) else birth
