"""Children of foreign keys that are known to have no rows: nothing can change there unseen.

A child is empty from its CREATE TABLE or TRUNCATE until the first event that may give it rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_selection import table_name, whole_rows
from binlane.binlogs.routing.table_links import TableLinks
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import RowsEvent
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.statement_kinds import (
    OPEN_ENDED_KINDS,
    READING_KINDS,
    WRITING_KINDS,
    StatementKind,
)

# A statement that was logged as such may have filled any table, by triggers and functions.
_UNTOLD: Final = (
    OPEN_ENDED_KINDS
    | WRITING_KINDS
    | READING_KINDS
    | {StatementKind.UNKNOWN, StatementKind.CREATE_TABLE_SELECT}
)
_HARMLESS: Final = frozenset(
    {StatementKind.MAINTENANCE, StatementKind.FLUSH, StatementKind.LOCK, StatementKind.CREATE_INDEX}
)


def with_vacant(memory: Memory, effects: StatementEffects, scope: Scope) -> Memory:
    """Give the memory, with the children that are empty, behind a statement.

    Args:
        memory: The memory, with the foreign keys as they are behind the statement.
        effects: Effects of the statement on tables.
        scope: Scope of the binlog to route to.
    """
    kind = effects.kind
    if not (memory.vacant or memory.links.keys):
        return memory
    if effects.stopped_at is not None or kind in _UNTOLD:
        return replace(memory, vacant=frozenset()) if memory.vacant else memory
    if effects.is_temporary or kind in _HARMLESS:
        return memory
    empty = {
        table
        for table in memory.vacant.difference(map(scope.key, effects.drops))
        if not any(scope.is_same(table.database, one) for one in effects.dropped_databases)
    }
    written = set(map(scope.key, effects.writes))
    is_made = kind is StatementKind.CREATE_TABLE and not effects.if_exists
    if is_made or kind is StatementKind.TRUNCATE_TABLE:
        children = {scope.key(key.table) for key in memory.links.keys}
        empty |= {table for table in written if table in children and scope.includes(table)}
    else:
        empty -= written
    empty -= {scope.key(table) for pair in effects.net_renames for table in pair}
    vacant = frozenset(empty)
    return memory if vacant == memory.vacant else replace(memory, vacant=vacant)


def filled(
    statement: Sequence[Event],
    tables: Collection[TableName],
    scope: Scope,
    format_: Format,
    *,
    file: str,
) -> frozenset[TableName]:
    """Give those of some tables that have rows events in a statement.

    Raises:
        CodecError: If a rows event has no TABLE_MAP.
    """
    if not tables:
        return frozenset()
    maps, found = TableMaps(), set()
    for event in statement:
        whole = whole_rows(event, format_)
        owner = maps.feed(whole, file=file)
        if owner is not None and isinstance(whole.body, RowsEvent):
            found.add(scope.key(table_name(owner)))
    return frozenset(found.intersection(tables))


def links_of_rows(memory: Memory) -> TableLinks:
    """The links without the foreign keys of children that are empty, which change nothing."""
    vacant, links = memory.vacant, memory.links
    if not vacant:
        return links
    keys = frozenset(key for key in links.keys if key.table not in vacant)
    return links if len(keys) == len(links.keys) else replace(links, keys=keys)
