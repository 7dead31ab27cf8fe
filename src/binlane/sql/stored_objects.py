"""What can be asked of the objects that a catalog knows: the servers' view of its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.object_store import ObjectStore, small
from binlane.sql.schema import ForeignKey, Routine, Table, Trigger, View
from binlane.sql.system_schemas import has_system_database, system_table
from binlane.sql.versions import ASSUMED, Version, default


@dataclass(slots=True)
class StoredObjects:
    """The objects of a server with one session's temporary tables: `schema.Objects`.

    Attributes:
        flavor: Of the server; None for the tables of a log, of which not all are known.
        version: Another object after every change; copies share it until one of them changes.
        server_version: Of the server; None for the one that is assumed where none is named.
    """

    flavor: Flavor | None = None
    version: object = field(default_factory=object)
    server_version: Version | None = None
    _store: ObjectStore = field(default_factory=ObjectStore)

    @property
    def server_charset(self) -> str | None:
        """The character set of databases that name none; None where nothing tells it."""
        if self.flavor is None:
            return None
        version = self.server_version or ASSUMED[self.flavor.value]
        return self._store.settings.get("character_set_server") or default(
            "character_set_server", self.flavor.value, version
        )

    @property
    def has_programs(self) -> bool:
        """Whether there is any trigger or routine."""
        return bool(self._store.triggers or self._store.routines)

    def add(self, other: StoredObjects, before: StoredObjects) -> None:
        """Have what another one has, too: what is new in it since `before`, or was changed."""
        if other.version is before.version:
            return
        if self._store.add(other._store, before._store):
            self.version = object()

    @property
    def ignores_case(self) -> bool:
        """Whether names of databases and tables are kept in lower case: `lower_case_table_names`."""
        return self._store.settings.get("lower_case_table_names", "0") != "0"

    def has_database(self, database: str) -> bool:
        """Whether there is such a database."""
        return database in self._store.databases or has_system_database(database)

    def table(self, name: TableName) -> Table | None:
        """A table or sequence, a temporary one first; None if there is none, or it is a view."""
        found = self._store.temporary.get(name) or self._store.tables.get(name)
        if found is None and self.flavor is not None and name not in self._store.views:
            return system_table(name, self.flavor)
        return found

    def base_table(self, name: TableName) -> Table | None:
        """A table or sequence that is not temporary."""
        return self._store.tables.get(name)

    def is_unknown(self, name: TableName) -> bool:
        """Whether there may be a table of this name that no statement told of well enough."""
        return name in self._store.unknown and name not in self._store.temporary

    def temporary_tables(self) -> tuple[Table, ...]:
        """The session's temporary tables, in the order in which they were made."""
        return tuple(self._store.temporary.values())

    def drop_temporary_tables(self) -> None:
        """Have no temporary table any more: the session ends."""
        if self._store.temporary:
            self._store.temporary.clear()
            self.version = object()

    def view(self, name: TableName) -> View | None:
        """A view; none that a temporary table hides."""
        return None if name in self._store.temporary else self._store.views.get(name)

    def triggers(self, table: TableName) -> Sequence[Trigger]:
        """A table's triggers in the order in which they run; temporary tables have none."""
        return () if table in self._store.temporary else self._store.triggers.get(table, ())

    def trigger(self, name: TableName) -> Trigger | None:
        """A trigger by its name."""
        return next(
            (each for all_ in self._store.triggers.values() for each in all_ if each.name == name),
            None,
        )

    def procedure(self, name: TableName) -> Routine | None:
        """A stored procedure; its name without regard to case."""
        return self._store.routines.get((False, small(name)))

    def function(self, name: TableName) -> Routine | None:
        """A stored function; its name without regard to case."""
        return self._store.routines.get((True, small(name)))

    def is_loadable_function(self, name: str) -> bool:
        """Whether CREATE FUNCTION … SONAME made it (a UDF)."""
        return name.lower() in self._store.loadable

    def children(self, parent: TableName) -> Sequence[ForeignKey]:
        """Foreign keys that refer to a table."""
        return [
            key
            for table in self._store.tables.values()
            for key in table.foreign_keys
            if key.parent == parent
        ]

    def event(self, name: TableName) -> bool:
        """Whether there is such an event."""
        return small(name) in self._store.events

    @property
    def accounts(self) -> frozenset[str]:
        """All users and roles, as `user@host`."""
        return frozenset(self._store.accounts)

    def names_in(self, database: str) -> tuple[TableName, ...]:
        """The tables and views of a database, in the order of their names."""
        found = (name for name in (*self._store.tables, *self._store.views))
        return tuple(sorted(name for name in found if name.database == database))

    def has_account(self, account: str) -> bool:
        """Whether there is a user or role, as `user@host`."""
        return account in self._store.accounts

    def charset_of_database(self, database: str) -> str | None:
        """The character set of new tables in a database; None where nothing tells it."""
        return self._store.databases.get(database) or self.server_charset

    def settings(self) -> dict[str, str]:
        """What `SET GLOBAL` of the schema's script said, names in lower case."""
        return dict(self._store.settings)
