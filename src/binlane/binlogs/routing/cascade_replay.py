"""Effects of foreign keys on the rows of children, from the images of parents and the children's rows.

InnoDB deletes and changes children below the log. Here the same is done again, row by row, with the
children's rows as they are at this place of the log.

Source: MariaDB 10.11 storage/innobase/row/row0ins.cc, row_ins_foreign_check_on_constraint;
storage/innobase/row/row0upd.cc, row_upd_check_references_constraints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from binlane.binlogs.routing.cascade_values import KeyBytes, KeyShape, Values, key_shape, widths_of
from binlane.binlogs.routing.table_links import TableLinks
from binlane.log.codec.columns import Column
from binlane.log.codec.row_cutting import joined_image, whole_images
from binlane.log.codec.rows import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    uncompressed,
)
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor, RowsFlag
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.schema import ACTING, ForeignKey

_UNCHECKED: Final = RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.USE_SQL_FOREIGN_KEY
_DEPTH_MAX: Final = 16


class DerivedChange(NamedTuple):
    """A change of a child's row that the log does not have.

    Attributes:
        table: Name of the child in scope.
        before: The row's image before; always whole.
        after: Its image after; None if the row is gone.
    """

    table: TableName
    before: bytes
    after: bytes | None


@dataclass(slots=True)
class FollowedTable:
    """A table whose rows are kept.

    Attributes:
        indexes: Columns of its foreign keys in small letters, each with a number of its own.
        reason: Why its rows are not known; empty if they are.
        table_map: The columns of its rows; None while it has had none.
        is_altered: True if it was altered since, so that the next TABLE_MAP must be compared.
        is_plain: True if its CREATE TABLE was seen, and no column follows from others.
    """

    indexes: dict[tuple[str, ...], int]
    reason: str = "its CREATE TABLE is not in the binlog"
    table_map: TableMapEvent | None = None
    is_altered: bool = False
    is_plain: bool = False


class KeptRow(NamedTuple):
    """A row of a child: its number, and its image."""

    number: int
    image: bytes


class ChildRows(Protocol):
    """The rows of all children at one place of the log."""

    def find(self, index: int, key: bytes) -> list[KeptRow]:
        """Rows whose foreign key has a value, in the order in which they came."""
        ...

    def has_odd(self, index: int) -> bool:
        """True if there is a row whose foreign key has an odd value."""
        ...

    def has_rows(self, table: TableName) -> bool:
        """True if a table has rows."""
        ...

    def add(self, table: TableName, image: bytes, keys: Iterable[tuple[int, KeyBytes]]) -> None:
        """Take a row, with the values of its foreign keys by the numbers of their indexes."""
        ...

    def remove(self, table: TableName, image: bytes) -> bool:
        """Have a row no more; False if there is none of this image."""
        ...

    def forget(self, table: TableName) -> None:
        """Have no row of a table any more."""
        ...


class UnknownRowsError(Exception):
    """It is not known which rows of a child changed.

    Attributes:
        table: Name of the child in question.
        reason: Why that is so, for people.
    """

    def __init__(self, table: TableName, reason: str) -> None:
        super().__init__(f"{table.plain}: {reason}" if table.table else reason)
        self.table = table
        self.reason = reason


class _Parent(NamedTuple):
    """A change of a row that is a parent by a map; `new` None if the row is gone."""

    table_map: TableMapEvent
    old: Values
    new: Values | None
    mapped: Collection[TableName]


class CascadeReplay:
    """Rows events, and what they do to the rows of children.

    Args:
        rows: The children's rows, which change with each event.
        tables: The tables whose rows are kept.
        keys: All foreign keys that act.
        scope: Scope of the binlog with the children.
        flavor: Flavor of the source: MariaDB maps each child that a statement may change.

    Attributes:
        on_unknown: Told of children that change in ways that are not known; None: it is raised.
    """

    def __init__(
        self,
        rows: ChildRows,
        tables: Mapping[TableName, FollowedTable],
        keys: Collection[ForeignKey],
        scope: Scope,
        flavor: Flavor,
    ) -> None:
        self.on_unknown: Callable[[UnknownRowsError], None] | None = None
        self._rows, self._tables, self._scope, self._flavor = rows, tables, scope, flavor
        self._by_parent: dict[TableName, list[ForeignKey]] = {}
        for key in sorted(keys, key=lambda one: f"{one.table.database}/{one.own_name}"):
            parent = scope.key(key.parent)
            self._by_parent.setdefault(parent, []).append(replace(key, table=scope.key(key.table)))
        self._leading = self._reaching()
        self._made: list[DerivedChange] = []
        self._gone: Counter[tuple[TableName, bytes]] = Counter()
        self._is_native = False

    def _reaching(self) -> frozenset[TableName]:
        """Tables by whose changes a table in scope may change, those in scope themselves included."""
        children = {key.table for keys in self._by_parent.values() for key in keys}
        found = {table for table in children if self._scope.includes(table)}
        while True:
            more = {
                parent
                for parent, keys in self._by_parent.items()
                if parent not in found and any(key.table in found for key in keys)
            }
            if not more:
                return frozenset(found)
            found |= more

    def see_map(self, table: TableName, table_map: TableMapEvent) -> None:
        """Take a TABLE_MAP: the columns of a table that is altered must be those of its rows.

        Raises:
            UnknownRowsError: If they are others, and there are rows.
        """
        known = self._tables.get(table)
        if known is None or known.reason:
            return
        before = known.table_map
        is_same = before is not None and self._facts(before) == self._facts(table_map)
        if before is not None and not is_same and self._rows.has_rows(table):
            raise UnknownRowsError(table, "its columns changed")
        known.table_map, known.is_altered = table_map, False

    def _facts(self, table_map: TableMapEvent) -> list[Column]:
        """The columns of a table, but for the key that they make."""
        columns = table_columns(table_map, flavor=self._flavor)
        return [replace(column, in_primary_key=False) for column in columns]

    def feed(
        self, body: RowsEvent, owner: TableMapEvent, mapped: Collection[TableName]
    ) -> list[DerivedChange]:
        """Take a rows event, and give the changes of children that follow from it, in order.

        Args:
            body: Rows event of any table.
            owner: The table that it changes.
            mapped: All tables that its statement maps.

        Raises:
            UnknownRowsError: If the children's rows are not known behind it.
            CodecError: If the event is damaged.
        """
        table = self._scope.key(TableName(owner.database, owner.table))
        known = self._tables.get(table)
        is_kept = known is not None and not known.reason
        acts = bool(self._by_parent.get(table)) and not body.flags & _UNCHECKED
        is_new = not isinstance(body, UpdateRowsEvent | DeleteRowsEvent)
        if not is_kept and (not acts or is_new):
            return []
        self._made, self._is_native = [], self._scope.includes(table)
        for old, new in self._changes(body, owner, table):
            if is_kept:
                self._take(table, owner, old, new)
            if acts and old is not None:
                values = None if new is None else new[0]
                self._leave(table, _Parent(owner, old[0], values, mapped), 0)
        return self._made

    def begin_statement(self) -> None:
        """Forget the rows that went in the statement before."""
        self._gone.clear()

    def deleted(self, body: RowsEvent, owner: TableMapEvent) -> Iterator[tuple[TableName, bytes]]:
        """Rows of a table that is kept, and that an event deletes by itself, with their images.

        Raises:
            UnknownRowsError: If the event does not have whole rows.
            CodecError: If it is damaged.
        """
        table = self._scope.key(TableName(owner.database, owner.table))
        if isinstance(body, DeleteRowsEvent) and table in self._tables:
            for old, _ in self._changes(body, owner, table):
                assert old is not None, "it is a row that goes"
                yield table, old[1]

    def _changes(
        self, body: RowsEvent, owner: TableMapEvent, table: TableName
    ) -> Iterator[tuple[tuple[Values, bytes] | None, tuple[Values, bytes] | None]]:
        """Each row of an event before and after, with its images."""
        plain = uncompressed(body)
        widths = widths_of(owner, self._flavor)
        present = (body.columns_present, body.columns_present_after or body.columns_present)
        everything = (1 << body.column_count) - 1
        is_whole = all(int.from_bytes(one, "little") & everything == everything for one in present)
        if widths is None or not is_whole or isinstance(body, PartialUpdateRowsEvent):
            raise UnknownRowsError(table, "the log does not have its whole rows")
        images = whole_images(plain.images, widths)
        if isinstance(body, UpdateRowsEvent):
            for old, new in zip(images, images, strict=True):
                yield old, new
        elif isinstance(body, DeleteRowsEvent):
            for old in images:
                yield old, None
        else:
            for new in images:
                yield None, new

    def _take(
        self,
        table: TableName,
        owner: TableMapEvent,
        old: tuple[Values, bytes] | None,
        new: tuple[Values, bytes] | None,
    ) -> None:
        """Have a row as it is now."""
        if old is not None and not self._rows.remove(table, old[1]):
            # DELETE of parents and children in one statement: a key was faster, and MySQL logs both.
            if new is not None or not self._gone[table, old[1]]:
                raise UnknownRowsError(table, "the log changes a row that is not there")
            self._gone[table, old[1]] -= 1
        if new is not None:
            self._add(table, owner, *new)

    def _add(self, table: TableName, owner: TableMapEvent, values: Values, image: bytes) -> None:
        keys: list[tuple[int, KeyBytes]] = []
        for columns, number in self._tables[table].indexes.items():
            shape = key_shape(owner, columns, self._flavor)
            if shape is None:
                raise UnknownRowsError(table, "it is not known when its foreign keys are equal")
            key = shape.key(shape.of(values))
            keys += [] if key is None else [(number, key)]
        self._rows.add(table, image, keys)

    def _leave(self, parent: TableName, change: _Parent, depth: int) -> None:
        """A parent's row is gone, or has other values: what keys do to its children."""
        for key in self._by_parent.get(parent, ()):
            try:
                self._follow(key, change, depth)
            except UnknownRowsError as error:
                if self.on_unknown is None:
                    raise
                self.on_unknown(error)

    def _follow(self, key: ForeignKey, change: _Parent, depth: int) -> None:
        action = key.on_delete if change.new is None else key.on_update
        child = key.table
        if action not in ACTING or child not in self._leading:
            return
        if self._is_native and child not in self._tables and self._scope.includes(child):
            return  # the replica does it, and nothing leads from outside to that table
        if self._flavor is Flavor.MARIADB and child not in change.mapped:
            return  # the server locks each table that a key of this statement may change
        given = key_shape(change.table_map, _small(key.parent_columns), self._flavor)
        if given is None:
            raise UnknownRowsError(child, "it is not known when its foreign keys are equal")
        old = given.of(change.old)
        new = None if change.new is None else given.of(change.new)
        if None in old or old == new:
            return
        if not self._scope.includes(child):
            raise UnknownRowsError(child, "it is outside of the scope, between parent and child")
        self._act(key, given, (old, new), change.mapped, depth)

    def _act(
        self,
        key: ForeignKey,
        given: KeyShape,
        values: tuple[Values, Values | None],
        mapped: Collection[TableName],
        depth: int,
    ) -> None:
        (old, new), child = values, key.table
        table_map, columns = self._child(child), _small(key.columns)
        action = key.on_delete if new is None else key.on_update
        if table_map is None:
            return
        index = self._tables[child].indexes.get(columns)
        shape = key_shape(table_map, columns, self._flavor)
        if index is None or shape is None or not shape.is_like(given):
            raise UnknownRowsError(child, "it is not known when its foreign keys are equal")
        wanted = given.key(old)
        assert wanted is not None, "no part is NULL"
        if self._rows.has_odd(index) or (wanted.is_odd and self._rows.has_rows(child)):
            raise UnknownRowsError(child, "it is not known when its foreign keys are equal")
        if action == "SET DEFAULT" or depth >= _DEPTH_MAX:
            raise UnknownRowsError(child, f"its key has {action}, or too many tables follow")
        widths = widths_of(table_map, self._flavor)
        for row in self._rows.find(index, wanted.data):
            assert widths is not None, "the row was read by them"
            ((before, _),) = whole_images(row.image, widths)
            if not self._rows.remove(child, row.image):
                continue  # a key that came before has changed it
            if action == "CASCADE" and new is None:
                self._made.append(DerivedChange(child, row.image, None))
                self._gone[child, row.image] += 1
                self._leave(child, _Parent(table_map, before, None, mapped), depth + 1)
                continue
            after = list(before)
            if new is None or action == "SET NULL":
                for place in shape.places:
                    after[place] = None
            else:
                shape.set_in(after, (old, new), given)
            image = joined_image(after, flavor=self._flavor)
            self._add(child, table_map, after, image)
            self._made.append(DerivedChange(child, row.image, image))
            self._leave(child, _Parent(table_map, before, after, mapped), depth + 1)

    def _child(self, child: TableName) -> TableMapEvent | None:
        """The columns of a child's rows; None if it has none.

        Raises:
            UnknownRowsError: If its rows are not known.
        """
        known = self._tables.get(child)
        if known is None or known.reason:
            reason = "its rows are not followed" if known is None else known.reason
            raise UnknownRowsError(child, reason)
        if not self._rows.has_rows(child):
            return None
        if known.is_altered:
            raise UnknownRowsError(child, "it was altered, and no row came since")
        return known.table_map

    def map_of(self, table: TableName) -> TableMapEvent:
        """The columns of the changes that were given of a child."""
        table_map = self._tables[table].table_map
        assert table_map is not None, "it has rows"
        return table_map


class ChildRowsKeeper(Protocol):
    """Keeps the rows of a binlog's children, as they are behind its last group."""

    def begin(self, links: TableLinks) -> CascadeReplay:
        """Give the rows behind the last group, to be changed by the next one and then given back.

        Raises:
            UnknownRowsError: If they are not known.
        """
        ...

    def end(self) -> None:
        """Have the rows as they were at `begin`; the group that follows is read from the binlog."""
        ...


def _small(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
