"""Rows in scope that change with rows outside of it, while the log has nothing of the change.

A foreign key that cascades, and a MERGE table, change rows of one table with those of another. A
replica that has both does the same; one that has the child alone does not learn of it. So a
statement that may have done this to a table in scope becomes an INCIDENT.

The signs of such a change: the links between tables, as far as they are known; the rows of the
parent, which must be deleted, or updated in the columns that are referred to; MariaDB's TABLE_MAP
of the child, which stands in each such statement, though also in others (of triggers, LOCK TABLES,
joins); and the flags of the rows: MySQL 9.6 and later log cascaded changes, and say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from binlane.binlogs.routing.row_selection import table_name, whole_rows
from binlane.binlogs.routing.table_links import TableLinks
from binlane.errors import CodecError
from binlane.log.codec.columns import decode_rows
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    uncompressed,
)
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor, RowsFlag
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.schema import ACTING
from binlane.statements.sql.statement_kinds import WRITING_KINDS, StatementKind

NOT_CASCADED: Final = RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.USE_SQL_FOREIGN_KEY
"""Flags of rows with which no foreign key acts, or what it does is logged."""

CASCADED: Final = "rows may have changed by a foreign key of a table outside of the scope"
MERGED: Final = "rows changed by way of a MERGE table outside of the scope"
MAPPED: Final = (
    "a table is locked for write beside rows outside of the scope, whose foreign keys are not known"
)
_CACHED_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenChanges:
    """The tables in scope that change, unseen, with the rows of a table.

    Attributes:
        by_delete: Tables that foreign keys change when rows are deleted.
        by_update: Tables that foreign keys change when these columns change, in small letters; none
            for any column.
        by_any: Tables that any row changes, since the table is a MERGE table.
    """

    by_delete: frozenset[TableName]
    by_update: Mapping[tuple[str, ...], frozenset[TableName]]
    by_any: frozenset[TableName]


@lru_cache(maxsize=_CACHED_MAX)
def dangers(links: TableLinks, scope: Scope) -> Mapping[TableName, UnseenChanges]:
    """Give, by table, the changes that its rows may make in a scope beside themselves."""
    tables = {key.parent for key in links.keys} | {merge for merge, _ in links.unions}
    found = {}
    for table in tables:
        columns = {_small(key.parent_columns) for key in links.keys if key.parent == table}
        by_update = {each: _reached(links, scope, (table, each)) for each in columns}
        danger = UnseenChanges(
            by_delete=_reached(links, scope, (table, None)),
            by_update={each: reached for each, reached in by_update.items() if reached},
            by_any=_merged(links, scope, table),
        )
        if danger.by_delete or danger.by_update or danger.by_any:
            found[table] = danger
    return found


def _small(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(column.lower() for column in columns)


_Change = tuple[TableName, tuple[str, ...] | None]
"""A table with the columns that change; None for rows that go."""


def _reached(links: TableLinks, scope: Scope, start: _Change) -> frozenset[TableName]:
    """Tables in scope that keys of tables outside of it change, one after the other."""
    seen, left = {start}, [start]
    reached = set()
    while left:
        table, columns = left.pop()
        for key in links.keys:
            if key.parent != table:
                continue
            action = key.on_delete if columns is None else key.on_update
            meant = set(_small(key.parent_columns))
            if action not in ACTING or (columns and meant and not meant & set(columns)):
                continue
            if scope.includes(key.table) and not scope.includes(table):
                reached.add(key.table)
            goes = columns is None and action == "CASCADE"
            following = (key.table, None if goes else _small(key.columns))
            if following not in seen:
                seen.add(following)
                left.append(following)
    return frozenset(reached)


def _merged(links: TableLinks, scope: Scope, table: TableName) -> frozenset[TableName]:
    if scope.includes(table):
        return frozenset()
    return frozenset(
        child for merge, child in links.unions if merge == table and scope.includes(child)
    )


def named(table_map: TableMapEvent, scope: Scope) -> TableName:
    """The table of a TABLE_MAP, as links name it."""
    return scope.key(table_name(table_map))


def unseen_changes(
    statement: Sequence[Event],
    links: TableLinks,
    scope: Scope,
    format_: Format,
    *,
    file: str,
    is_transactional: bool,
) -> str | None:
    """Give the reason why a statement's row changes may have changed rows in scope that the log lacks.

    Args:
        statement: The statement's events, as `select_rows` takes them.
        links: Foreign keys and MERGE tables between tables.
        scope: Scope of the binlog to route to.
        format_: Format of the FORMAT_DESCRIPTION before the events.
        file: Name of the events' file, for errors.
        is_transactional: True if the group ends with XID or is prepared, so that it changes no
            MERGE table.

    Raises:
        CodecError: If a rows event has no TABLE_MAP.
    """
    mapped = {
        named(event.body, scope) for event in statement if isinstance(event.body, TableMapEvent)
    }
    known = dangers(links, scope)
    unknown = {name for name in mapped if scope.includes(name) and not links.knows(name)}
    if not unknown and known.keys().isdisjoint(mapped):
        return None
    changes = list(_changes(statement, format_, file=file))
    lone = unknown - {named(owner, scope) for _, owner in changes}
    for body, owner in changes:
        name = named(owner, scope)
        danger = known.get(name)
        if danger is not None and not danger.by_any.isdisjoint(mapped):
            return MERGED
        if body.flags & NOT_CASCADED:
            continue
        if danger is not None and _has_cascaded(body, owner, danger, mapped, format_.flavor):
            return CASCADED
        is_new = isinstance(body, WriteRowsEvent)
        if lone and not scope.includes(name) and not (is_new and is_transactional):
            return MAPPED
    return None


class StatementWatch:
    """Tells of each statement of a group that is not held if `unseen_changes` must look at it.

    Args:
        links: Foreign keys and MERGE tables between tables.
        scope: Scope of the binlog to route to.
    """

    def __init__(self, links: TableLinks, scope: Scope) -> None:
        self._links = links
        self._scope = scope
        self._dangers = dangers(links, scope)
        self._begin()

    def _begin(self) -> None:
        self._lone: set[TableName] = set()
        self._has_outside = self._has_danger = False

    def see_map(self, table_map: TableMapEvent) -> None:
        """Take a TABLE_MAP, which all stand before the rows."""
        name = named(table_map, self._scope)
        if self._scope.includes(name) and not self._links.knows(name):
            self._lone.add(name)

    def see_rows(self, body: RowsEvent, owner: TableMapEvent) -> None:
        """Take a rows event of a table."""
        name = named(owner, self._scope)
        self._lone.discard(name)
        may_cascade = not body.flags & NOT_CASCADED
        danger = self._dangers.get(name)
        self._has_danger |= danger is not None and (
            bool(danger.by_any)
            or (may_cascade and isinstance(body, DeleteRowsEvent) and bool(danger.by_delete))
            or (may_cascade and isinstance(body, UpdateRowsEvent) and bool(danger.by_update))
        )
        self._has_outside |= may_cascade and not self._scope.includes(name)

    def end(self) -> bool:
        """True if the statement that ends here may have changed rows that the log does not have."""
        found = self._has_danger or (self._has_outside and bool(self._lone))
        self._begin()
        return found


def _changes(
    statement: Sequence[Event], format_: Format, *, file: str
) -> Iterator[tuple[RowsEvent, TableMapEvent]]:
    maps = TableMaps()
    for event in statement:
        whole = whole_rows(event, format_)
        owner = maps.feed(whole, file=file)
        if owner is not None and isinstance(whole.body, RowsEvent):
            yield whole.body, owner


def _has_cascaded(
    body: RowsEvent,
    owner: TableMapEvent,
    danger: UnseenChanges,
    mapped: Collection[TableName],
    flavor: Flavor,
) -> bool:
    def may(children: frozenset[TableName]) -> bool:
        # MariaDB maps each table that it locks for a cascade; MySQL, where InnoDB does it, none.
        return bool(children) and (flavor is Flavor.MYSQL or not children.isdisjoint(mapped))

    if isinstance(body, DeleteRowsEvent):
        return may(danger.by_delete)
    if not isinstance(body, UpdateRowsEvent):
        return False
    return any(
        may(children) and _change(body, owner, columns, flavor)
        for columns, children in danger.by_update.items()
    )


def _change(body: RowsEvent, owner: TableMapEvent, names: tuple[str, ...], flavor: Flavor) -> bool:
    """True if an update changes one of some columns, or if that cannot be found out.

    No row refers to a key of which a part was NULL.
    """
    columns = table_columns(owner, flavor=flavor)
    places = [column.index for column in columns if (column.name or "").lower() in names]
    if not names or len(places) != len(names):
        return True
    try:
        return any(
            before is None
            or after is None
            or (
                [before[place] for place in places] != [after[place] for place in places]
                and all(before[place] is not None for place in places)
            )
            for before, after in decode_rows(uncompressed(body), columns)
        )
    except CodecError:
        return True


def changes_unseen(effects: StatementEffects, links: TableLinks, scope: Scope) -> bool:
    """True if a statement that was logged as such may have changed rows in scope beside its own."""
    if effects.kind not in WRITING_KINDS and effects.kind is not StatementKind.TRUNCATE_TABLE:
        return False
    known = dangers(links, scope)
    found = [known[table] for table in map(scope.key, effects.writes) if table in known]
    if effects.kind in (StatementKind.TRUNCATE_TABLE, StatementKind.INSERT):
        return any(danger.by_any for danger in found)
    return bool(found)
