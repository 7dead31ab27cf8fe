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
class TableBirth:
    """The place in the source's log where a table outside of a scope was made.

    Attributes:
        name: The name that the table was made with.
        gtid: GTID of the statement that made it; empty if it is not known.
        since: A position of the source before that statement; empty if it is not known.
    """

    name: TableName
    gtid: str = ""
    since: str = ""


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
        births: Tables that were made outside of the scope, and where; the oldest first.
        vacant: Children of foreign keys that have had no rows since their CREATE TABLE or TRUNCATE.
        left_keys: Foreign keys that the binlog's DDL lacks since their parent is outside of the
            scope: table, and name in small letters.
    """

    left_out: frozenset[StoredObject] = frozenset()
    unsure: frozenset[StoredObject] = frozenset()
    triggers: frozenset[tuple[TableName, TableName]] = frozenset()
    passed: frozenset[PassedXa] = frozenset()
    links: TableLinks = NO_LINKS
    created: tuple[CreatedTable, ...] = ()
    births: tuple[TableBirth, ...] = ()
    vacant: frozenset[TableName] = frozenset()
    left_keys: frozenset[tuple[TableName, str]] = frozenset()

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
        if self.births:
            fields["births"] = [
                (one.name.database, one.name.table, one.gtid, one.since) for one in self.births
            ]
        if self.vacant:
            fields["vacant"] = sorted((one.database, one.table) for one in self.vacant)
        if self.left_keys:
            fields["left_keys"] = sorted(
                (table.database, table.table, name) for table, name in self.left_keys
            )
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
                births=tuple(
                    TableBirth(name=TableName(database, table), gtid=gtid, since=since)
                    for database, table, gtid, since in fields.get("births", ())
                ),
                vacant=frozenset(TableName(*one) for one in fields.get("vacant", ())),
                left_keys=frozenset(
                    (TableName(database, table), name)
                    for database, table, name in fields.get("left_keys", ())
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
        # A table whose birth is forgotten, or that is gone, comes in by an INCIDENT or not at all.
        births = later.births
        # One that is finished is not asked for again; one that is forgotten is an INCIDENT later.
        passed = later.passed if self.passed.issuperset(later.passed) else self.passed
        vacant = later.vacant if self.vacant.issubset(later.vacant) else self.vacant
        has_keys = self.left_keys.issubset(later.left_keys)
        left_keys = later.left_keys if has_keys else self.left_keys
        known = replace(self, passed=passed, links=links, created=created, births=births)
        return replace(known, vacant=vacant, left_keys=left_keys) == later

    def is_but_for_xa(self, other: Self) -> bool:
        """True if no statement is judged otherwise than with another memory: only `passed` differs."""
        return self is other or replace(self, passed=other.passed) == other

    def behind_gap(self) -> Self:
        """Give the part of the memory that is still true where groups are missing in between."""
        known = replace(self, passed=frozenset(), links=NO_LINKS, created=())
        return replace(known, births=(), vacant=frozenset())

    @property
    def empty_tables(self) -> frozenset[TableName]:
        """Tables that are known to have no rows, until rows come."""
        if not self.created:
            return self.vacant
        return self.vacant | {one.name for one in self.created if one.is_empty}

    def with_rows(self, tables: Collection[TableName]) -> Self:
        """Note tables that are empty no more."""
        if self.empty_tables.isdisjoint(tables):
            return self
        return replace(self, vacant=self.vacant.difference(tables)).with_created(
            replace(one, is_empty=one.is_empty and one.name not in tables) for one in self.created
        )

    def with_created(self, tables: Iterable[CreatedTable]) -> Self:
        """Replace the tables outside of the scope."""
        created = tuple(tables)
        return self if created == self.created else replace(self, created=created)

    def with_births(self, tables: Iterable[TableBirth]) -> Self:
        """Replace the tables of which it is known where they were made."""
        births = tuple(tables)
        return self if births == self.births else replace(self, births=births)

    def left_keys_of(self, table: TableName) -> frozenset[str]:
        """Names of the foreign keys that replicas lack in a table."""
        return frozenset(name for one, name in self.left_keys if one == table)

    def with_left_keys(self, table: TableName, names: Iterable[str]) -> Self:
        """Note all foreign keys that replicas lack in a table."""
        others = {pair for pair in self.left_keys if pair[0] != table}
        return replace(self, left_keys=frozenset(others | {(table, name) for name in names}))

    def has_left_out(self, kinds: Iterable[StoredObjectKind], name: TableName) -> bool:
        """True if an object of one of these kinds was left out."""
        return any(StoredObject(kind, name) in self.left_out for kind in kinds)


def _bytes_of(table: CreatedTable) -> tuple[bytes, bytes, bytes]:
    return table.query, table.database, table.status_vars


NOTHING: Final = Memory()
"""The memory of a binlog of which nothing is remembered."""
