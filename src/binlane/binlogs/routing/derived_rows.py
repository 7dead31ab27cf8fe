"""A statement on outside parents → the statement with the rows of children in scope that it changed.

The rows events come where the parents' rows stood, with foreign_key_checks off: a replica does what
they say and nothing beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.cascade_replay import (
    CascadeReplay,
    ChildRowsKeeper,
    DerivedChange,
    UnknownRowsError,
)
from binlane.binlogs.routing.cascades import CASCADED
from binlane.binlogs.routing.row_selection import STATEMENT_TEXTS, table_name
from binlane.binlogs.routing.table_links import TableLinks
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import Format
from binlane.log.codec.fragments import PartialRowDataEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    DeleteRowsV1Event,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    UpdateRowsV1Event,
)
from binlane.log.codec.types import EventType, Flavor, RowsFlag
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.table_maps import TableMaps
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.statement_kinds import StatementKind

_COMMITS: Final = frozenset({EventType.XID, EventType.TRANSACTION_PAYLOAD})
_BRACKETS: Final = frozenset(
    {
        *(StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.SAVEPOINT),
        *(StatementKind.RELEASE_SAVEPOINT, StatementKind.EMPTY),
    }
)
_EVENT_BYTES_MAX: Final = 128 << 10


class GroupDerivation:
    """Derives what keys of outside parents do in one group, if its children are followed.

    Args:
        group: The group that is routed now.
        scope: Scope of the binlog to route to.
        format_: Format of the FORMAT_DESCRIPTION before the group.
        children: The children's rows behind the last group; whoever gives them ends with them.
    """

    def __init__(
        self,
        group: EventGroup,
        scope: Scope,
        format_: Format,
        children: ChildRowsKeeper,
    ) -> None:
        self._group, self._scope, self._format, self._children = group, scope, format_, children
        self._seen: list[Sequence[Event]] = []
        self._replay: StatementReplay | None = None
        self._doubt = ""
        last = group.events[-1]
        is_committed = last.header.type_code in _COMMITS or (
            isinstance(last.body, QueryEvent) and last.body.query == b"COMMIT"
        )
        if not is_committed:
            self._doubt = "its transaction does not simply commit"

    def see_statement(self, kind: StatementKind) -> None:
        """Take a statement of the group that is there as its text."""
        if kind not in _BRACKETS:
            self._doubt = "a statement of the transaction is not in the log as rows"

    def feed(
        self, statement: Sequence[Event], unseen: str | None, links: TableLinks
    ) -> tuple[Event, ...] | None:
        """Take the next statement of row changes.

        Args:
            statement: Its events, from the first TABLE_MAP on.
            unseen: Why it may have changed rows that the log lacks; None if it has not.
            links: Foreign keys as they are now.

        Returns:
            The statement with the rows that are derived; None if none are, and none are to be.

        Raises:
            UnknownRowsError: If the rows of the children are not known.
            CodecError: As `StatementReplay.feed`.
        """
        if unseen is not None and unseen != CASCADED:
            return None
        if unseen is None:
            if self._replay is None:
                self._seen.append(tuple(statement))
            else:
                self._replay.feed(statement)
            return None
        if self._doubt:
            raise UnknownRowsError(TableName("", ""), self._doubt)
        if self._replay is None:
            begun = self._children.begin(links)
            file = self._group.file
            self._replay = StatementReplay(begun, self._scope, self._format, file=file)
            for each in self._seen:
                self._replay.feed(each)
        return self._replay.feed(statement)


class StatementReplay:
    """Statements of one group, replayed in order.

    Args:
        replay: The children's rows before the group.
        scope: Scope of the binlog to route to.
        format_: Format of the FORMAT_DESCRIPTION before the group.
        file: Name of the events' file, for errors.
    """

    def __init__(self, replay: CascadeReplay, scope: Scope, format_: Format, *, file: str) -> None:
        self._replay, self._scope, self._format, self._file = replay, scope, format_, file

    def feed(self, statement: Sequence[Event]) -> tuple[Event, ...]:
        """Take the next statement, and give it as the binlog is to have it.

        Returns:
            Its part in scope and the rows that are derived; empty if there are none of either.

        Raises:
            UnknownRowsError: If the children's rows are not known.
            CodecError: If a rows event has no TABLE_MAP, or is damaged.
        """
        scope, replay, maps = self._scope, self._replay, TableMaps()
        tables = [event.body for event in statement if isinstance(event.body, TableMapEvent)]
        mapped = {scope.key(table_name(table)) for table in tables}
        for table in tables:
            replay.see_map(scope.key(table_name(table)), table)
        ids = _Ids(tables, scope)
        texts = [event for event in statement if isinstance(event.body, STATEMENT_TEXTS)]
        heads = [
            event
            for event in statement
            if isinstance(event.body, TableMapEvent) and scope.includes(table_name(event.body))
        ]
        pairs: list[tuple[Event, RowsEvent, TableMapEvent]] = []
        for event in statement:
            if isinstance(event.body, PartialRowDataEvent):
                raise UnknownRowsError(TableName("", ""), "a rows event is in pieces")
            owner = maps.feed(event, file=self._file)
            if owner is not None and isinstance(event.body, RowsEvent):
                pairs.append((event, event.body, owner))
        inside = [scope.includes(table_name(owner)) for _, _, owner in pairs]
        replay.begin_statement()
        told: Counter[tuple[TableName, bytes]] = Counter()
        if any(inside) and not all(inside):
            told.update(one for _, body, owner in pairs for one in replay.deleted(body, owner))
        rows: list[Event] = []
        for (event, body, owner), is_inside in zip(pairs, inside, strict=True):
            derived = replay.feed(body, owner, mapped)
            if is_inside:
                # What follows from it replicas do by themselves.
                rows.append(_with_flags(event, ends=False))
            else:
                rows += self._events(_untold(derived, told), event.header, ids)
        if not rows:
            return ()
        rows[-1] = _with_flags(rows[-1], ends=True)
        added = [_mapped(each, texts or heads or rows) for each in ids.added]
        return (*texts, *heads, *added, *rows)

    def _events(
        self, changes: Iterable[DerivedChange], header: EventHeader, ids: _Ids
    ) -> Iterator[Event]:
        """Rows events of changes, as few as keep their order."""
        for run in _runs(changes):
            table_map = self._replay.map_of(run[0].table)
            table_id = ids.of(run[0].table, table_map)
            yield _rows_event(run, table_map, table_id, header, self._format.flavor)


class _Ids:
    """The ids of tables in one statement, and the TABLE_MAPs that it lacks."""

    def __init__(self, tables: Sequence[TableMapEvent], scope: Scope) -> None:
        self._ids = {scope.key(table_name(table)): table.table_id for table in tables}
        self._next = max((table.table_id for table in tables), default=0) + 1
        self.added: list[TableMapEvent] = []

    def of(self, table: TableName, table_map: TableMapEvent) -> int:
        """The id of a table; one that is not mapped gets a map."""
        if table not in self._ids:
            self._ids[table] = self._next
            self.added.append(replace(table_map, table_id=self._next))
            self._next += 1
        return self._ids[table]


def _untold(
    changes: Iterable[DerivedChange], told: Counter[tuple[TableName, bytes]]
) -> Iterator[DerivedChange]:
    """Changes but for rows that the statement deletes by itself as well."""
    for change in changes:
        if change.after is None and told[change.table, change.before]:
            told[change.table, change.before] -= 1
            continue
        yield change


def _runs(changes: Iterable[DerivedChange]) -> Iterator[list[DerivedChange]]:
    """Changes that follow each other in one table, all deletes or all updates, of bounded size."""
    run: list[DerivedChange] = []
    size = 0
    for change in changes:
        is_like = run and (run[0].table, run[0].after is None) == (
            change.table,
            change.after is None,
        )
        if run and (not is_like or size >= _EVENT_BYTES_MAX):
            yield run
            run, size = [], 0
        run.append(change)
        size += len(change.before) + len(change.after or b"")
    if run:
        yield run


def _rows_event(
    run: Sequence[DerivedChange],
    table_map: TableMapEvent,
    table_id: int,
    header: EventHeader,
    flavor: Flavor,
) -> Event:
    is_delete, is_mariadb = run[0].after is None, flavor is Flavor.MARIADB
    kind: type[RowsEvent]
    if is_delete:
        kind = DeleteRowsV1Event if is_mariadb else DeleteRowsEvent
    else:
        kind = UpdateRowsV1Event if is_mariadb else UpdateRowsEvent
    count = len(table_map.column_types)
    whole = _bitmap(count, flavor)
    body = kind(
        table_id=table_id,
        flags=RowsFlag.NO_FOREIGN_KEY_CHECKS,
        extra=None if is_mariadb else b"",
        column_count=count,
        columns_present=whole,
        columns_present_after=None if is_delete else whole,
        images=b"".join(image for one in run for image in (one.before, one.after or b"")),
    )
    return Event(replace(header, type_code=kind.event_type, flags=0), body)


def _bitmap(count: int, flavor: Flavor) -> bytes:
    """All columns; both servers set the bits behind the last column."""
    del flavor
    return b"\xff" * ((count + 7) // 8)


def _mapped(table_map: TableMapEvent, beside: Sequence[Event]) -> Event:
    """A TABLE_MAP beside other events of a statement."""
    header = replace(beside[0].header, type_code=EventType.TABLE_MAP, flags=0)
    return Event(header, table_map)


def _with_flags(event: Event, *, ends: bool) -> Event:
    """A rows event that ends its statement, or does not."""
    body = event.body
    assert isinstance(body, RowsEvent), "it has rows"
    flags = body.flags | RowsFlag.STMT_END if ends else body.flags & ~RowsFlag.STMT_END
    return event if flags == body.flags else replace(event, body=replace(body, flags=flags))
