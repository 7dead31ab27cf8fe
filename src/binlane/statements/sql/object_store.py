"""The objects of a server: tables, views, programs and all else that statements name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Final, Self

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.accounts import Accounts
from binlane.statements.sql.check_names import renamed_checks
from binlane.statements.sql.schema import (
    ForeignKey,
    Routine,
    Table,
    Trigger,
    View,
    has_system_database,
    small,
    system_table,
)
from binlane.statements.sql.servers import ASSUMED, Version, default


class ChildTables:
    """Foreign keys by the tables that they refer to, found when they are asked for.

    Attributes:
        keys: Foreign keys by the table referred to; None as long as nobody asked.
    """

    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: dict[TableName, list[ForeignKey]] | None = None

    def of(self, tables: Mapping[TableName, Table]) -> Mapping[TableName, Sequence[ForeignKey]]:
        """Give the foreign keys of tables by parent; the tables are those of the first call, unchanged."""
        if self.keys is None:
            self.keys = {}
            for table in tables.values():
                for key in table.foreign_keys:
                    self.keys.setdefault(key.parent, []).append(key)
        return self.keys


@dataclass(slots=True)
class ObjectStore:
    """All objects of a server, by kind.

    Attributes:
        databases: Databases with their character sets, None where nothing tells one.
        tables: Base tables and sequences by name.
        temporary: Temporary tables of the session.
        unknown: Tables that exist, or may exist, in a form that no statement told.
        views: Views of all databases by name.
        triggers: Triggers of each table, in the order in which they run.
        routines: Routines by kind (function or not) and name in small letters.
        loadable: Names of loadable functions, in small letters.
        events: Names of events in small letters.
        packages: Names of packages in small letters; a package with a body has also its name with
            ` body` behind it.
        libraries: Names of libraries in small letters.
        plugins: Plugins that were installed: names in small letters, and URNs of components.
        reference_systems: Spatial reference systems by their ids: True for one that was made, False
            for one that was dropped.
        accounts: Users and roles by name.
        settings: Values of SET GLOBAL by variable.
        is_shared: True if all of these may be another store's, too: `own` them before any is
            changed.
        children: Tables that refer to others; a change of the tables empties it.
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
    libraries: set[TableName] = field(default_factory=set)
    plugins: set[str] = field(default_factory=set)
    reference_systems: dict[int, bool] = field(default_factory=dict)
    accounts: Accounts = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    is_shared: bool = field(default=False, compare=False, repr=False)
    children: ChildTables = field(default_factory=ChildTables, compare=False, repr=False)

    def copy(self) -> Self:
        """Give another store that changes by itself; nothing is copied before one of the two changes."""
        self.is_shared = True
        found = type(self)(*_ALL_OF(self))
        found.temporary = self.temporary.copy()
        return found

    def own(self) -> None:
        """Share nothing any more: before a change."""
        if self.is_shared:
            for one in OBJECT_KINDS:
                setattr(self, one, getattr(self, one).copy())
            self.is_shared = False

    def add(self, other: ObjectStore, before: ObjectStore) -> bool:
        """Have what another one has, too: what is new in it since `before`, or was changed.

        Returns:
            True if anything was added or changed.
        """
        self.own()
        self.children = ChildTables()
        is_more = False
        for one in OBJECT_KINDS:
            own, more = getattr(self, one), getattr(other, one)
            if isinstance(own, set):
                found = more - own
            else:
                old = getattr(before, one)
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
        self.children = ChildTables()
        if table.is_temporary:
            self.temporary[table.name] = table
            return
        self.tables[table.name] = table
        self.unknown.discard(table.name)
        self.databases.setdefault(table.name.database, None)

    def forget(self, *names: TableName) -> None:
        """Know no more of base tables than that they may exist."""
        self.children = ChildTables()
        for name in names:
            self.tables.pop(name, None)
            self.unknown.add(name)

    def drop(self, name: TableName) -> None:
        """Have a base table no more, nor its triggers."""
        self.children = ChildTables()
        self.tables.pop(name, None)
        self.triggers.pop(name, None)
        self.unknown.discard(name)

    def rename(self, old: TableName, new: TableName) -> None:
        """Give a base table or view another name; triggers stay with their table."""
        self.children = ChildTables()
        table, view = self.tables.pop(old, None), self.views.pop(old, None)
        if table is not None:
            self.tables[new] = replace(
                _renamed(table, new),
                foreign_keys=tuple(each.renamed(new) for each in table.foreign_keys),
            )
            self._follow_parent(old, lambda key: replace(key, parent=new))
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

    def rename_temporary(self, old: TableName, new: TableName) -> None:
        """Give a temporary table another name, if it is there."""
        table = self.temporary.pop(old, None)
        if table is not None:
            self.temporary[new] = _renamed(table, new)

    def drop_trigger(self, name: TableName) -> None:
        """Have a trigger no more."""
        for table, triggers in list(self.triggers.items()):
            kept = tuple(each for each in triggers if each.name != name)
            if not kept:
                del self.triggers[table]
            elif len(kept) < len(triggers):
                self.triggers[table] = kept

    def rename_columns(self, parent: TableName, renamed: Mapping[str, str]) -> None:
        """Have foreign keys of other tables follow the new names of a base table's columns."""
        self.children = ChildTables()
        self._follow_parent(
            parent, lambda key: key if key.table == parent else key.with_columns(parent, renamed)
        )

    def _follow_parent(self, parent: TableName, follow: Callable[[ForeignKey], ForeignKey]) -> None:
        """Change the foreign keys of all tables that refer to one."""
        for name, table in list(self.tables.items()):
            if any(each.parent == parent for each in table.foreign_keys):
                keys = (follow(one) if one.parent == parent else one for one in table.foreign_keys)
                self.tables[name] = replace(table, foreign_keys=tuple(keys))

    def drop_database(self, database: str) -> None:
        """Have nothing of a database any more; temporary tables in it stay."""
        self.children = ChildTables()
        self.databases.pop(database, None)
        for tables in (self.tables, self.views, self.triggers):
            for name in [each for each in tables if each.database == database]:
                del tables[name]
        for kind, name in [key for key in self.routines if key[1].database == database]:
            del self.routines[kind, name]
        for names in (self.unknown, self.events, self.packages, self.libraries):
            names.difference_update({name for name in names if name.database == database})


_COMPONENT_OF_LANGUAGES: Final = "file://component_mle"
_WITHOUT_COMPONENT: Final = (
    "BEGIN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 6001, "
    "MESSAGE_TEXT = 'Language component: Not available.'; END"
)
_FIRST_SYSTEMS: Final = range(2_000, 32_767)
"""The ids of the spatial reference systems that MySQL 9.7 comes with; a sixth of these has one."""
OBJECT_KINDS: Final = tuple(one.name for one in fields(ObjectStore) if one.compare)
"""Kinds of objects that a store has."""
_ALL_OF: Final = attrgetter(*(one.name for one in fields(ObjectStore)))


@dataclass(slots=True)
class Objects:
    """The objects of a server with one session's temporary tables. Names are looked up as they are.

    Attributes:
        flavor: Flavor of the server; None for the tables of a log, of which not all are known.
        version: Another object after every change; copies share it until one of them changes.
        server_version: Version of the server; None for the one that is assumed where none is named.
        store: Store that holds the objects; `object_changes` changes it.
        missed: Tables and routines that were looked for and are not there, for whoever reads them
            when they are needed, and takes them away.
        knows_components: There are no others than those that were installed here.
    """

    flavor: Flavor | None = None
    version: object = field(default_factory=object)
    server_version: Version | None = None
    store: ObjectStore = field(default_factory=ObjectStore)
    missed: set[TableName] = field(default_factory=set, compare=False, repr=False)
    knows_components: bool = True

    @property
    def server_charset(self) -> str | None:
        """The character set of databases that name none; None where nothing tells it."""
        if self.flavor is None:
            return None
        version = self.server_version or ASSUMED[self.flavor.value]
        return self.store.settings.get("character_set_server") or default(
            "character_set_server", self.flavor.value, version
        )

    @property
    def has_programs(self) -> bool:
        """True if there is any trigger or routine."""
        return bool(self.store.triggers or self.store.routines)

    def add(self, other: Objects, before: Objects) -> None:
        """Have what another one has, too: what is new in it since `before`, or was changed."""
        if other.version is before.version:
            return
        if self.store.add(other.store, before.store):
            self.version = object()

    @property
    def ignores_case(self) -> bool:
        """True if names of databases and tables are kept in lower case: `lower_case_table_names`."""
        return self.store.settings.get("lower_case_table_names", "0") != "0"

    def has_database(self, database: str) -> bool:
        """True if there is such a database."""
        return database in self.store.databases or has_system_database(database)

    def table(self, name: TableName) -> Table | None:
        """A table or sequence, a temporary one first; None if there is none, or it is a view."""
        found = self.store.temporary.get(name) or self.store.tables.get(name)
        if found is None and self.flavor is not None and name not in self.store.views:
            return system_table(name, self.flavor)
        return found

    def base_table(self, name: TableName) -> Table | None:
        """A table or sequence that is not temporary."""
        return self.store.tables.get(name)

    def is_unknown(self, name: TableName) -> bool:
        """True if there may be a table of this name that no statement defined well enough."""
        return name in self.store.unknown and name not in self.store.temporary

    def temporary_tables(self) -> tuple[Table, ...]:
        """The session's temporary tables, in the order in which they were made."""
        return tuple(self.store.temporary.values())

    def drop_temporary_tables(self) -> None:
        """Have no temporary table any more: the session ends."""
        if self.store.temporary:
            self.store.temporary = {}
            self.version = object()

    def view(self, name: TableName) -> View | None:
        """A view; none that a temporary table hides."""
        return None if name in self.store.temporary else self.store.views.get(name)

    def base_view(self, name: TableName) -> View | None:
        """A view, also one that a temporary table hides."""
        return self.store.views.get(name)

    def triggers(self, table: TableName) -> Sequence[Trigger]:
        """A table's triggers in the order in which they run; temporary tables have none."""
        return () if table in self.store.temporary else self.store.triggers.get(table, ())

    def trigger(self, name: TableName) -> Trigger | None:
        """A trigger by its name."""
        return next(
            (each for all_ in self.store.triggers.values() for each in all_ if each.name == name),
            None,
        )

    def called(
        self,
        database: str | None,
        name: str,
        default: str,
        *,
        calls_packages: bool = False,
        caller: TableName | None = None,
    ) -> TableName:
        """Give the whole name of a routine that a text calls; one of a package is `package.routine`.

        Args:
            database: Text before the routine's name, if there is any: also a package of the default
                database, or `database.package`.
            name: Name of the routine alone.
            default: Name of the default database.
            calls_packages: Value of `calls_packages` of the text's `Dialect`.
            caller: The routine that the text stands in: it finds those of its package first.
        """
        home, package = default, ""
        if not self.store.packages:
            return TableName(database or default, name)
        if database is None:
            package = "" if caller is None else caller.table.rpartition(".")[0]
        elif "." in database:
            home, _, package = database.rpartition(".")
        elif calls_packages:
            package = database
        member = TableName(home, f"{package}.{name}")
        if package and any((kind, small(member)) in self.store.routines for kind in (False, True)):
            return member
        return TableName(database or default, name)

    def procedure(self, name: TableName) -> Routine | None:
        """A stored procedure; its name without regard to case."""
        return self._as_run(self.store.routines.get((False, small(name))))

    def function(self, name: TableName) -> Routine | None:
        """A stored function; its name without regard to case."""
        return self._as_run(self.store.routines.get((True, small(name))))

    def _as_run(self, routine: Routine | None) -> Routine | None:
        """A routine as a server runs it: without its component, another language is an error."""
        if (
            routine is None
            or not (routine.language and self.knows_components)
            or self.is_installed(_COMPONENT_OF_LANGUAGES)
        ):
            return routine
        return replace(routine, body=_WITHOUT_COMPONENT)

    def is_loadable_function(self, name: str) -> bool:
        """True if CREATE FUNCTION … SONAME made the function (a UDF)."""
        return name.lower() in self.store.loadable

    def children(self, parent: TableName) -> Sequence[ForeignKey]:
        """Foreign keys that refer to a table."""
        return [*self.store.children.of(self.store.tables).get(parent, ())]

    def event(self, name: TableName) -> bool:
        """True if there is such an event."""
        return small(name) in self.store.events

    def library(self, name: TableName) -> bool:
        """True if there is such a library."""
        return small(name) in self.store.libraries

    def is_installed(self, name: str) -> bool:
        """True if a plugin, or a component of that URN, was installed."""
        return name.lower() in self.store.plugins

    def reference_system(self, number: int) -> bool:
        """True if there is a spatial reference system of an id; 0 is always there."""
        is_first = number in _FIRST_SYSTEMS or number == 0
        return self.store.reference_systems.get(number, is_first)

    @property
    def accounts(self) -> Accounts:
        """All users and roles; not to be changed."""
        return self.store.accounts

    def names_in(self, database: str) -> tuple[TableName, ...]:
        """The tables and views of a database, in the order of their names."""
        found = (name for name in (*self.store.tables, *self.store.views))
        return tuple(sorted(name for name in found if name.database == database))

    def charset_of_database(self, database: str) -> str | None:
        """The character set of new tables in a database; None where nothing tells it."""
        return self.store.databases.get(database) or self.server_charset

    def settings(self) -> dict[str, str]:
        """Give the values that `SET GLOBAL` of the schema's script set, names in lower case."""
        return dict(self.store.settings)


def _renamed(table: Table, new: TableName) -> Table:
    """A table with another name, which MySQL's names of its checks follow."""
    checks = table.check_names
    if not table.dialect.may_be_mariadb:
        checks = renamed_checks(checks, table.name.table, new.table)
    return replace(table, name=new, check_names=checks)
