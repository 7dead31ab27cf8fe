"""The LOG and IGNORE lists of a binlog and what they include: the one filter of the product.

Pure values; how a user writes them is read in `statements`. Names are compared as the server does
that they belong to: by case where its `lower_case_table_names` is 0, else without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Self

from binlane.names import ACCOUNT_DATABASE, TableName, folded

SYSTEM_DATABASE: Final = "system"
"""Name that seed 000 gives the database of accounts; a list that names it names `mysql` as well."""

ScopeObject = str | TableName
"""A database by its name, or a table."""


class ScopeList(Enum):
    """One of the two lists."""

    LOG = "LOG"
    IGNORE = "IGNORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Databases and tables that a binlog logs. IGNORE wins over LOG.

    The scope without any entry logs nothing; it is not the same as the unscoped one, which logs
    everything (`Scope.everything()`).

    Attributes:
        log_all: Everything is logged that is not ignored, whatever the LOG list holds.
        log_databases: Databases in the LOG list.
        log_tables: Tables in the LOG list.
        ignore_databases: Databases in the IGNORE list.
        ignore_tables: Tables in the IGNORE list.
        ignores_case: True if names that differ in case alone are the same; the lists then hold
            lower case.
    """

    log_all: bool = False
    log_databases: frozenset[str] = frozenset()
    log_tables: frozenset[TableName] = frozenset()
    ignore_databases: frozenset[str] = frozenset()
    ignore_tables: frozenset[TableName] = frozenset()
    ignores_case: bool = False

    @classmethod
    def everything(cls, *, ignores_case: bool = False) -> Self:
        """The scope of a binlog without a scope of its own: LOG ALL."""
        return cls(log_all=True, ignores_case=ignores_case)

    @classmethod
    def nothing(cls, *, ignores_case: bool = False) -> Self:
        """The scope that logs nothing: IGNORE ALL."""
        return cls(ignores_case=ignores_case)

    @property
    def is_unscoped(self) -> bool:
        """True if everything is logged."""
        return self.log_all and not (self.ignore_databases or self.ignore_tables)

    def includes(self, table: TableName) -> bool:
        """True if changes of a table are logged."""
        if self.ignores_case:
            table = table.folded
        if table in self.ignore_tables or self._is_ignored(table.database):
            return False
        return table in self.log_tables or self.log_all or self._is_logged(table.database)

    def with_tables(self, tables: Iterable[TableName]) -> Self:
        """The scope with some tables more; those of a database that is ignored stay so."""
        new = {table.folded if self.ignores_case else table for table in tables}
        return replace(
            self, log_tables=self.log_tables | new, ignore_tables=self.ignore_tables - new
        )

    def includes_database(self, database: str) -> bool:
        """True if changes of a database as such are logged: its views, routines, options.

        A binlog that logs only tables of a database does not log the database.
        """
        return not self._is_ignored(database) and (self.log_all or self._is_logged(database))

    def touches_database(self, database: str) -> bool:
        """True if anything in a database may be logged."""
        return self.includes_database(database) or any(
            self.is_same(table.database, database) and self.includes(table)
            for table in self.log_tables
        )

    def splits_database(self, database: str) -> bool:
        """True if some tables of a database are logged and others are not."""
        if self._is_ignored(database):
            return False
        tables = self.ignore_tables if self.includes_database(database) else self.log_tables
        return any(
            self.is_same(table.database, database)
            and self.includes(table) != self.includes_database(database)
            for table in tables
        )

    def is_same(self, one: str, other: str) -> bool:
        """True if two names are those of one database."""
        return one == other or (self.ignores_case and folded(one) == folded(other))

    def _is_ignored(self, database: str) -> bool:
        return not self.ignore_databases.isdisjoint(self.names_of(database))

    def _is_logged(self, database: str) -> bool:
        return not self.log_databases.isdisjoint(self.names_of(database))

    def names_of(self, database: str) -> tuple[str, ...]:
        """The names by which the lists may mean a database."""
        name = folded(database) if self.ignores_case else database
        return (name, SYSTEM_DATABASE) if name == ACCOUNT_DATABASE else (name,)

    def with_list(self, which: ScopeList, objects: Iterable[ScopeObject]) -> Self:
        """This scope with a list of exactly these objects."""
        databases, tables = _by_kind(map(self.as_listed, objects))
        if which is ScopeList.LOG:
            return replace(self, log_databases=databases, log_tables=tables)
        return replace(self, ignore_databases=databases, ignore_tables=tables)

    def added(self, which: ScopeList, objects: Iterable[ScopeObject]) -> Self:
        """This scope with objects added to a list."""
        return self.with_list(which, self.objects(which) | set(objects))

    def dropped(self, which: ScopeList, objects: Iterable[ScopeObject]) -> Self:
        """This scope with objects taken out of a list; those that are not in it make no change."""
        return self.with_list(which, self.objects(which) - set(map(self.as_listed, objects)))

    def key(self, table: TableName) -> TableName:
        """The name by which a table is found among others."""
        return table.folded if self.ignores_case else table

    def as_listed(self, name: ScopeObject) -> ScopeObject:
        """The name by which the lists hold an object."""
        if not self.ignores_case:
            return name
        return folded(name) if isinstance(name, str) else name.folded

    def objects(self, which: ScopeList) -> frozenset[ScopeObject]:
        """The objects in a list."""
        if which is ScopeList.LOG:
            return frozenset[ScopeObject](self.log_databases | self.log_tables)
        return frozenset[ScopeObject](self.ignore_databases | self.ignore_tables)

    def tables_named(self) -> frozenset[TableName]:
        """All tables in either list."""
        return self.log_tables | self.ignore_tables

    def render(self, which: ScopeList) -> str:
        """A list as SHOW MASTER STATUS prints it: `baz.bar, test`, sorted."""
        return ", ".join(sorted(map(_plain, self.objects(which))))


def _by_kind(
    objects: Iterable[ScopeObject],
) -> tuple[frozenset[str], frozenset[TableName]]:
    objects = frozenset(objects)
    databases = frozenset(name for name in objects if isinstance(name, str))
    return databases, frozenset(name for name in objects if isinstance(name, TableName))


def _plain(name: ScopeObject) -> str:
    return name.plain if isinstance(name, TableName) else name
