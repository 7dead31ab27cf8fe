"""The memory that routing of one binlog has of the groups before: facts on which a later group may bear.

A value of text, kept with the binlog's mark, so that it is never older or younger than the files. A
part that is missing leads to stopping a replica, never to a change that the replica does not see:
an object that nothing is known of counts as one that replicas have.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Self

from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.names import TableName

_VERSION: Final = 1


class StoredObjectKind(Enum):
    """Kind of a named object that is no table; the values stand in marks."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    VIEW = "view"
    TRIGGER = "trigger"
    FUNCTION = "function"
    PROCEDURE = "procedure"
    EVENT = "event"
    PACKAGE = "package"
    PACKAGE_BODY = "package body"
    SEQUENCE = "sequence"
    LIBRARY = "library"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a database that is no table."""

    kind: StoredObjectKind
    name: TableName


@dataclass(frozen=True, slots=True)
class PassedXa:
    """An XA transaction of which a binlog holds nothing.

    Attributes:
        xid: Its XID as statements name it.
        tables: All tables that it changes.
    """

    xid: str
    tables: frozenset[TableName]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTable:
    """A table outside of a scope, as one statement made it.

    Attributes:
        name: The table's name by now.
        query: Text of the CREATE TABLE statement.
        database: The default database of that statement.
        status_vars: Context of that statement, as its event had it.
        is_empty: True if it has never had rows since, or lost them all.
    """

    name: TableName
    query: bytes
    database: bytes
    status_vars: bytes
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The facts that are remembered of one binlog from group to group.

    Attributes:
        left_out: Objects in its databases whose CREATE it does not hold, so that replicas have none
            of that name.
        unsure: Objects among `left_out` that may have been there before, and then still are: their
            CREATE said IF NOT EXISTS.
        triggers: Triggers, each with its table, which a DROP does not name; in databases of which
            only a part is in scope.
        passed: XA transactions that were prepared with nothing in scope and are not finished.
        links: Links by which tables' rows change with those of others; known tables are those in
            scope.
        created: Tables outside of the scope that may come into it, and are known whole if empty;
            the oldest first.
    """

    left_out: frozenset[StoredObject] = frozenset()
    unsure: frozenset[StoredObject] = frozenset()
    triggers: frozenset[tuple[TableName, TableName]] = frozenset()
    passed: frozenset[PassedXa] = frozenset()
    links: TableLinks = NO_LINKS
    created: tuple[CreatedTable, ...] = ()

    def encode(self) -> str:
        """Write the memory as a text that is equal for equal ones; empty if there is nothing to remember."""
        fields: dict[str, object] = {}
        if self.left_out:
            fields["left_out"] = sorted(
                (one.kind.value, one.name.database, one.name.table, one in self.unsure)
                for one in self.left_out
            )
        if self.triggers:
            fields["triggers"] = sorted(
                (name.database, name.table, table.database, table.table)
                for name, table in self.triggers
            )
        if self.passed:
            fields["passed"] = sorted(
                (one.xid, sorted((table.database, table.table) for table in one.tables))
                for one in self.passed
            )
        if self.created:
            fields["created"] = [
                (one.name.database, one.name.table, *map(bytes.hex, _bytes_of(one)), one.is_empty)
                for one in self.created
            ]
        if links := self.links.fields():
            fields["links"] = links
        return json.dumps({"v": _VERSION, **fields}, separators=(",", ":")) if fields else ""

    @classmethod
    def decode(cls, text: str) -> Self:
        """The memory of a text.

        Raises:
            ValueError: If it is no such text, or of another version.
        """
        if not text:
            return cls()
        try:
            fields = json.loads(text)
            if fields["v"] != _VERSION:
                raise ValueError(f"memory of version {fields['v']}")
            left_out = [
                (StoredObject(StoredObjectKind(kind), TableName(database, name)), is_unsure)
                for kind, database, name, is_unsure in fields.get("left_out", ())
            ]
            return cls(
                left_out=frozenset(one for one, _ in left_out),
                unsure=frozenset(one for one, is_unsure in left_out if is_unsure),
                triggers=frozenset(
                    (TableName(database, name), TableName(of, table))
                    for database, name, of, table in fields.get("triggers", ())
                ),
                passed=frozenset(
                    PassedXa(xid, frozenset(TableName(*table) for table in tables))
                    for xid, tables in fields.get("passed", ())
                ),
                links=TableLinks.of_fields(fields.get("links", {})),
                created=tuple(
                    CreatedTable(
                        name=TableName(database, table),
                        query=bytes.fromhex(query),
                        database=bytes.fromhex(default),
                        status_vars=bytes.fromhex(status_vars),
                        is_empty=is_empty,
                    )
                    for database, table, query, default, status_vars, is_empty in fields.get(
                        "created", ()
                    )
                ),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no memory: {text[:80]!r}") from error

    def with_left_out(self, *objects: StoredObject) -> Self:
        """Add objects that replicas do not have."""
        gone = set(objects)
        return replace(self, left_out=self.left_out | gone, unsure=self.unsure - gone)

    def with_unsure(self, one: StoredObject) -> Self:
        """Add an object that replicas do not have, unless it was there before."""
        return replace(self, left_out=self.left_out | {one}, unsure=self.unsure | {one})

    def without(self, *objects: StoredObject) -> Self:
        """Forget objects that replicas have like the source, or that are gone there, too."""
        gone = set(objects)
        return replace(self, left_out=self.left_out - gone, unsure=self.unsure - gone)

    def may_be_lost_for(self, later: Self) -> bool:
        """True if this memory in the place of a later one can only lead to stopping a replica."""
        links = self.links
        if links.known < later.links.known:
            links = replace(links, known=later.links.known)
        created = later.created if set(self.created) <= set(later.created) else self.created
        # One that is finished is not asked for again; one that is forgotten is an INCIDENT later.
        passed = later.passed if self.passed.issuperset(later.passed) else self.passed
        return replace(self, passed=passed, links=links, created=created) == later

    def behind_gap(self) -> Self:
        """Give the part of the memory that is still true where groups are missing in between."""
        return replace(self, passed=frozenset(), links=NO_LINKS, created=())

    @property
    def empty_tables(self) -> frozenset[TableName]:
        """Tables outside of the scope that are known whole, until rows come."""
        if not self.created:
            return frozenset()
        return frozenset(one.name for one in self.created if one.is_empty)

    def with_rows(self, tables: Collection[TableName]) -> Self:
        """Note tables that are empty no more."""
        if self.empty_tables.isdisjoint(tables):
            return self
        return self.with_created(
            replace(one, is_empty=one.is_empty and one.name not in tables) for one in self.created
        )

    def with_created(self, tables: Iterable[CreatedTable]) -> Self:
        """Replace the tables outside of the scope."""
        created = tuple(tables)
        return self if created == self.created else replace(self, created=created)

    def has_left_out(self, kinds: Iterable[StoredObjectKind], name: TableName) -> bool:
        """True if an object of one of these kinds was left out."""
        return any(StoredObject(kind, name) in self.left_out for kind in kinds)


def _bytes_of(table: CreatedTable) -> tuple[bytes, bytes, bytes]:
    return table.query, table.database, table.status_vars


NOTHING: Final = Memory()
"""The memory of a binlog of which nothing is remembered."""
