"""The objects of a log's server at one place in the log, followed statement by statement.

Everybody who needs to know what a log's DDL did to tables, their columns and their keys follows the
log by this class, so that two readers of one place know the same. The log's own facts always count
more, and a definition that does not fit the log's TABLE_MAP adds nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Self

from binlane.log.codec.columns import Column
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.logged_columns import fitted
from binlane.statements.sql.logged_statements import LoggedStatement, followed_statement
from binlane.statements.sql.object_store import ChildTables
from binlane.statements.sql.schema import ForeignKey, Table
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition

_MAY_BE_DDL: Final = re.compile(rb"CREATE|ALTER|RENAME|DROP", re.IGNORECASE)
_TABLES_CACHED_MAX: Final = 1024


@dataclass(slots=True)
class LoggedObjects(SchemaCatalog):
    """The objects of a log's server at one place in the log.

    Without a flavor the objects are those that the log's own statements define, of which only
    tables are known, and not all of them.

    Attributes:
        triggered: Tables that have, or had, triggers, as far as the log has their CREATE TRIGGER.
        misfits: Reasons why the definition of a table was not used for it, by the first TABLE_MAP
            that it does not fit.
    """

    triggered: set[TableName] = field(default_factory=set)
    misfits: dict[TableName, str] = field(default_factory=dict)
    _columns: dict[tuple[TableMapEvent, Flavor], tuple[Column, ...]] = field(default_factory=dict)
    _version_of_columns: object = None
    _is_undone: bool = False

    @classmethod
    def of_tables(cls, tables: Iterable[Table], triggered: Iterable[TableName] = ()) -> Self:
        """Make the objects of a log of which some tables are known."""
        found = cls(triggered=set(triggered))
        for table in tables:
            found.store.put(table)
        return found

    def copy(self) -> Self:
        """Return other objects that are the same, and change by themselves."""
        found = SchemaCatalog.copy(self)  # `super` does not work in a class with slots
        found.triggered = set(self.triggered)
        return found

    def only(self, tables: Collection[TableName]) -> Self:
        """Return a copy that knows none but some tables: small, so that it travels."""
        store = self.store.copy()
        store.own()
        store.tables = {name: store.tables[name] for name in store.tables if name in tables}
        store.children = ChildTables()
        store.unknown.clear()
        return type(self)(flavor=self.flavor, version=self.version, store=store)

    # The log's statements -----------------------------------------------------------------------

    def feed(self, event: Event) -> bool:
        """Follow the log by its next event.

        Returns:
            True if the objects changed.

        Raises:
            CodecError: If the status variables of a statement are damaged.
        """
        body = event.body
        if isinstance(body, GtidEvent):
            self._is_undone = body.is_undone
        if not isinstance(body, QueryEvent) or self._is_undone:
            return False
        if not _MAY_BE_DDL.search(body.query):
            return False
        return self.follow(followed_statement(body))

    def follow(self, statement: LoggedStatement) -> bool:
        """Follow the log by its next statement, which has effect.

        Args:
            statement: Any statement of the log, as of `followed_statement`.

        Returns:
            True if the objects changed.
        """
        is_changed = self.apply(
            statement.text,
            database=statement.database,
            sql_mode=statement.sql_mode,
            charset=statement.charset,
            server_charset=statement.server_charset,
        )
        if self.triggered or "TRIGGER" in statement.text.upper():
            effects = statement.effects()
            new = {name for old, name in effects.net_renames if old in self.triggered}
            if effects.kind is StatementKind.CREATE_TRIGGER:
                new |= {*effects.writes, *effects.reads}
            if not new <= self.triggered:
                self.triggered |= new
                self.version = object()
                return True
        return is_changed

    # Columns --------------------------------------------------------------------------------------

    def columns(self, table_map: TableMapEvent, *, flavor: Flavor) -> tuple[Column, ...]:
        """Give a table's columns as log and definitions together tell them.

        Args:
            table_map: Event of a log of that flavor.
            flavor: Flavor of the server that wrote the log.

        Raises:
            CodecError: If the TABLE_MAP contradicts itself.
            UnsupportedError: If a column's type is unknown.
        """
        if self._version_of_columns is not self.version or len(self._columns) >= _TABLES_CACHED_MAX:
            self._columns.clear()
            self._version_of_columns = self.version
        key = (table_map, flavor)
        known = self._columns.get(key)
        if known is None:
            known = self._columns[key] = self._fit(table_map, flavor)
        return known

    def _fit(self, table_map: TableMapEvent, flavor: Flavor) -> tuple[Column, ...]:
        columns = table_columns(table_map, flavor=flavor)
        name = table_map.name
        table = self.definition(name)
        if table is None:
            return columns
        found = fitted(columns, table, table_map, flavor=flavor)
        if isinstance(found, str):
            self.misfits.setdefault(name, found)
            return columns
        return found

    def definition(self, table: TableName) -> TableDefinition | None:
        """Give the columns of a table that is not temporary; None if nothing is known."""
        found = self.store.tables.get(table)
        return None if found is None else found.definition

    def defined_columns(self, name: TableName) -> dict[str, TableColumn]:
        """Give a table's columns by their names in small letters; empty if they are not known."""
        definition = self.definition(name)
        if definition is None:
            return {}
        return {column.name.lower(): column for column in definition.columns}

    # Tables and keys ------------------------------------------------------------------------------

    def is_told(self, name: TableName) -> bool:
        """Return True if the log has a table's CREATE TABLE, understood or not."""
        return self.base_table(name) is not None or self.is_unknown(name)

    def is_plain(self, name: TableName) -> bool:
        """Return True if a name is known to be that of a table, and of one without triggers."""
        return self.is_told(name) and name not in self.triggered

    def is_temporary(self, name: TableName) -> bool:
        """Return True if a statement that has this name can only mean a temporary table."""
        return self.base_table(name) is None and self.table(name) is not None

    def acting_keys(self) -> list[ForeignKey]:
        """Give the foreign keys that change their tables' rows."""
        tables = self.store.tables.values()
        return [key for table in tables for key in table.foreign_keys if key.acts]

    def acting_children(self, parent: TableName) -> list[ForeignKey]:
        """Give the acting foreign keys that refer to a table."""
        return [key for key in self.children(parent) if key.acts]

    def primary_key(self, name: TableName) -> tuple[str, ...]:
        """Give the columns of a table's primary key; empty if they are not known."""
        table = self.base_table(name)
        keys = () if table is None else table.keys
        return next((key.columns for key in keys if key.is_primary), ())

    def with_children(self, tables: Iterable[TableName]) -> list[TableName]:
        """Give some tables, and all whose rows foreign keys may change with theirs."""
        found = list(dict.fromkeys(tables))
        for parent in found:  # it grows
            found += [key.table for key in self.acting_children(parent) if key.table not in found]
        return found
