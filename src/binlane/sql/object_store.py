"""The state of a catalog: the objects of a server, and those of one session.

Plain dictionaries of frozen values, so that a copy costs microseconds. What statements do to it
stands in `object_changes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Self

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.effects import StatementEffects
from binlane.sql.evaluation.evaluator import Environment
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import Routine, Table, Trigger, View
from binlane.sql.tree.node import Node
from binlane.sql.tree.statements import innermost


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStatement:
    """A statement that may change the catalog, with what its session adds to its text.

    Attributes:
        facts: Of the statement.
        database: The default database.
        server_charset: Of databases that name none; None if it is not known.
        flavor: Of the server; None for a log whose objects are known in part only.
        engine: Of tables that name none.
        temporary_engine: Of temporary tables that name none.
        connection: Character set and collation of literals; None if it is not known.
        generates_primary_key: MySQL's sql_generate_invisible_primary_key.
        environment: Of whom variables in a query are; None where nobody knows them.
    """

    facts: StatementFacts
    database: str
    server_charset: str | None = None
    flavor: Flavor | None = None
    engine: str = "INNODB"
    temporary_engine: str = "INNODB"
    connection: tuple[str, str] | None = None
    generates_primary_key: bool = False
    environment: Environment | None = None

    @property
    def text(self) -> str:
        """Of the statement."""
        return self.facts.text

    @property
    def effects(self) -> StatementEffects:
        """Its objects."""
        return self.facts.effects

    @property
    def node(self) -> Node:
        """The statement itself, without SET STATEMENT … FOR."""
        return innermost(self.facts.tree)

    @property
    def default_engine(self) -> str:
        """The engine of a table that names none."""
        return self.temporary_engine if self.effects.is_temporary else self.engine


@dataclass(slots=True)
class ObjectStore:
    """All objects.

    Attributes:
        databases: With their character sets, None where nothing tells one.
        tables: Base tables and sequences.
        temporary: Temporary tables of the session.
        unknown: Tables that exist, or may exist, in a form that no statement told.
        views: By name.
        triggers: Of each table, in the order in which they run.
        routines: By kind (function or not) and name in small letters.
        loadable: Names of loadable functions, in small letters.
        events: Names in small letters.
        packages: Names in small letters.
        accounts: Users and roles as `user@host`.
        settings: What SET GLOBAL said.
    """

    databases: dict[str, str | None] = field(default_factory=dict)
    tables: dict[TableName, Table] = field(default_factory=dict)
    temporary: dict[TableName, Table] = field(default_factory=dict)
    unknown: set[TableName] = field(default_factory=set)
    views: dict[TableName, View] = field(default_factory=dict)
    triggers: dict[TableName, tuple[Trigger, ...]] = field(default_factory=dict)
    routines: dict[tuple[bool, TableName], Routine] = field(default_factory=dict)
    loadable: set[str] = field(default_factory=set)
    events: set[TableName] = field(default_factory=set)
    packages: set[TableName] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Self:
        """Another one that changes by itself."""
        return type(self)(
            databases=self.databases.copy(),
            tables=self.tables.copy(),
            temporary=self.temporary.copy(),
            unknown=self.unknown.copy(),
            views=self.views.copy(),
            triggers=self.triggers.copy(),
            routines=self.routines.copy(),
            loadable=self.loadable.copy(),
            events=self.events.copy(),
            packages=self.packages.copy(),
            accounts=self.accounts.copy(),
            settings=self.settings.copy(),
        )

    def add(self, other: ObjectStore, before: ObjectStore) -> bool:
        """Have what another one has, too: what is new in it since `before`, or was changed.

        Returns:
            Whether that is more.
        """
        is_more = False
        for one in fields(self):
            own, more = getattr(self, one.name), getattr(other, one.name)
            if isinstance(own, set):
                found = more - own
            else:
                old = getattr(before, one.name)
                found = {
                    key: value
                    for key, value in more.items()
                    if key not in own or (own[key] is old.get(key) and value is not own[key])
                }
            is_more |= bool(found)
            own.update(found)
        return is_more

    def put(self, table: Table) -> None:
        """Have a table instead of what had its name."""
        if table.is_temporary:
            self.temporary[table.name] = table
            return
        self.tables[table.name] = table
        self.unknown.discard(table.name)
        self.databases.setdefault(table.name.database, None)

    def forget(self, *names: TableName) -> None:
        """Know no more of base tables than that they may exist."""
        for name in names:
            self.tables.pop(name, None)
            self.unknown.add(name)

    def drop(self, name: TableName) -> None:
        """Have a base table no more, nor its triggers."""
        self.tables.pop(name, None)
        self.triggers.pop(name, None)
        self.unknown.discard(name)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a base table or view another name; triggers stay with their table."""
        table, view = self.tables.pop(old, None), self.views.pop(old, None)
        if table is not None:
            self.tables[new] = replace(
                table,
                name=new,
                foreign_keys=tuple(replace(each, table=new) for each in table.foreign_keys),
            )
            self._follow_parent(old, new)
        elif view is not None:
            self.views[new] = replace(view, name=new)
        if old in self.unknown:
            self.unknown.discard(old)
            self.unknown.add(new)
        elif table is not None:
            self.unknown.discard(new)
        triggers = self.triggers.pop(old, ())
        if triggers:
            self.triggers[new] = tuple(replace(each, table=new) for each in triggers)

    def _follow_parent(self, old: TableName, new: TableName) -> None:
        """Foreign keys that refer to a renamed table follow it."""
        for name, table in list(self.tables.items()):
            if any(each.parent == old for each in table.foreign_keys):
                keys = tuple(
                    replace(each, parent=new) if each.parent == old else each
                    for each in table.foreign_keys
                )
                self.tables[name] = replace(table, foreign_keys=keys)

    def drop_database(self, database: str) -> None:
        """Have nothing of a database any more; temporary tables in it stay."""
        self.databases.pop(database, None)
        for tables in (self.tables, self.views, self.triggers):
            for name in [each for each in tables if each.database == database]:
                del tables[name]
        for kind, name in [key for key in self.routines if key[1].database == database]:
            del self.routines[kind, name]
        for names in (self.unknown, self.events, self.packages):
            names.difference_update({name for name in names if name.database == database})


def small(name: TableName) -> TableName:
    """A name that has no case, as the store keeps it."""
    return TableName(name.database, name.table.lower())
