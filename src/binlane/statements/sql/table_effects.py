"""Effects of statements on tables and databases, which are all that a log tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.accounts import ROOT, AccountName
from binlane.statements.sql.check_names import copied_checks
from binlane.statements.sql.column_charsets import named_charset
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.evaluation.operator_types import TypeScope, Untyped
from binlane.statements.sql.evaluation.query_types import UNKNOWN_TYPE, columns_as_far_as_known
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.object_store import Objects, ObjectStore
from binlane.statements.sql.schema import (
    CreationContext,
    Table,
)
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import (
    altered,
    created,
    indexed,
    named_engine,
    unindexed,
    with_invisible_primary_key,
    with_selected,
)
from binlane.statements.sql.table_definitions import (
    TableColumn,
    TableDefinition,
    renamed_columns,
)
from binlane.statements.sql.tree import definitions
from binlane.statements.sql.tree.expressions import Node, ObjectName

_CONNECTIONS: Final = MappingProxyType(
    {
        Flavor.MARIADB: ("utf8mb4", "utf8mb4_general_ci"),
        Flavor.MYSQL: ("utf8mb4", "utf8mb4_0900_ai_ci"),
    }
)
_Node = TypeVar("_Node", bound=Node)


def _number(
    name: str, type_name: str = "BIGINT", *, width: str = "21", sign: bool = True
) -> TableColumn:
    return TableColumn(
        name=name, type_name=type_name, arguments=(width,), is_unsigned=not sign, is_nullable=False
    )


_SEQUENCE: Final = TableDefinition(
    columns=(
        *map(
            _number,
            ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment"),
        ),
        _number("cache_size", sign=False),
        _number("cycle_option", "TINYINT", width="1", sign=False),
        _number("cycle_count"),
    )
)
"""The columns of every sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A statement that may change tables and databases, with what its session adds to its text.

    Attributes:
        objects: Objects that the statement changes.
        facts: Facts that the statement's text tells.
        database: Name of the default database.
        server_charset: Character set of databases that name none; None if it is not known.
        engine: Engine of tables that name none.
        temporary_engine: Engine of temporary tables that name none.
        connection: Character set and collation of literals; None if it is not known.
        generates_primary_key: The value of MySQL's sql_generate_invisible_primary_key.
        environment: Environment with the variables of queries; None where nobody knows them.
        account: Account that runs the statement.
        knows_accounts: True if there are no accounts beside those that are known.
        context: Context in which new routines and triggers run; None if it is not known.
    """

    objects: Objects
    facts: StatementFacts
    database: str
    server_charset: str | None = None
    engine: str = "INNODB"
    temporary_engine: str = "INNODB"
    connection: tuple[str, str] | None = None
    generates_primary_key: bool = False
    environment: Environment | None = None
    account: AccountName = ROOT
    knows_accounts: bool = False
    context: CreationContext | None = None

    @property
    def store(self) -> ObjectStore:
        """Store that holds the objects."""
        return self.objects.store

    @property
    def is_of_log(self) -> bool:
        """True if the statement stands in a log, whose objects are known in part only."""
        return self.objects.flavor is None

    @property
    def effects(self) -> StatementEffects:
        """Objects that the statement is about."""
        return self.facts.effects

    @property
    def name(self) -> TableName:
        """The first table that it changes."""
        return self.effects.writes[0]

    @property
    def default_engine(self) -> str:
        """The engine of a table that names none."""
        return self.temporary_engine if self.effects.is_temporary else self.engine

    def node(self, kind: type[_Node]) -> _Node:
        """The statement itself, without SET STATEMENT … FOR."""
        node = self.facts.tree
        assert isinstance(node, kind)
        return node

    # Tables -----------------------------------------------------------------------------------

    def create_table(self) -> None:
        """CREATE TABLE."""
        if not self._is_left_alone():
            self._put(self._with_primary_key(self._created()))

    def create_like(self) -> None:
        """CREATE TABLE … LIKE."""
        if self._is_left_alone():
            return
        # A table may be like itself in another case, or like one that was found to be written.
        source = next(iter(self.effects.reads), self.name)
        like = self.store.temporary.get(source) or self.store.tables.get(source)
        if like is None or not like.engine:
            self.store.forget(self.name)
            return
        checks = like.check_names
        if not self.facts.dialect.may_be_mariadb:
            checks = copied_checks(checks, self.name.table)
        table = replace(
            like,
            name=self.name,
            is_temporary=self.effects.is_temporary,
            foreign_keys=(),
            union=(),
            check_names=checks,
            create_statement=self.facts.text,
        )
        self._put(table)

    def create_select(self) -> None:
        """CREATE TABLE … SELECT; in a log nobody knows what the query reads."""
        if self._is_left_alone():
            return
        flavor = self.objects.flavor
        query = self.node(definitions.CreateTable).query
        if flavor is None or query is None:
            self.store.forget(self.name)
            return
        scope = TypeScope(
            text=self.facts,
            objects=self.objects,
            flavor=flavor,
            database=self.database,
            connection=self.connection or _CONNECTIONS[flavor],
            environment=self.environment,
        )
        table = self._created()
        try:
            columns = columns_as_far_as_known(query, scope)
        except Untyped:
            columns, is_known = (), False
        else:
            is_known = all(column.type_name != UNKNOWN_TYPE for column in columns)
        table = with_selected(table, columns)
        self._put(self._with_primary_key(table) if is_known else replace(table, is_complete=False))

    def create_sequence(self) -> None:
        """CREATE SEQUENCE."""
        if self._is_left_alone():
            return
        node = self.node(definitions.Sequence)
        table = Table(
            name=self.name,
            definition=_SEQUENCE,
            engine=named_engine(node.options) or self.default_engine,
            is_sequence=True,
            is_temporary=self.effects.is_temporary,
            create_statement=self.facts.text,
        )
        self._put(table)

    def create_index(self) -> None:
        """CREATE INDEX."""
        if table := self._visible(self.name):
            self.store.put(indexed(table, self.facts))

    def drop_index(self) -> None:
        """DROP INDEX."""
        if table := self._visible(self.name):
            self.store.put(unindexed(table, self.facts))

    def alter_table(self) -> None:
        """ALTER TABLE."""
        store, database = self.store, self.name.database
        if self.is_of_log and self.name in store.temporary:
            return
        table = self._visible(self.name)
        actions = self.node(definitions.AlterTable).actions
        renamed = renamed_columns(actions)
        if renamed and not (table is not None and table.is_temporary):
            store.rename_columns(self.name, renamed)
        if table is not None:
            charset = store.databases.get(database)
            table = altered(table, self.facts, engine=self.default_engine, charset=charset)
            store.put(table)
            for action in actions:
                if action.words[:1] == ("CONVERT",) and action.table is not None:
                    new = resolved(action.table, database)
                    store.put(replace(table, name=new, partitioning=""))
        for dropped in self.effects.drops:
            store.drop(dropped)
        for old, new in self.effects.renames:
            if table is not None and table.is_temporary:
                store.rename_temporary(old, new)
            else:
                self._rename(old, new)

    def rename_tables(self) -> None:
        """RENAME TABLE."""
        for old, new in self.effects.renames:
            self._rename(old, new)

    def _rename(self, old: TableName, new: TableName) -> None:
        """MariaDB means the temporary table that hides another one, MySQL never does."""
        if self.objects.flavor is Flavor.MARIADB and old in self.store.temporary:
            self.store.rename_temporary(old, new)
        else:
            self.store.rename(old, new)

    def drop_tables(self) -> None:
        """DROP TABLE and DROP SEQUENCE."""
        for name in self.effects.drops:
            if self.effects.is_temporary:
                self.store.temporary.pop(name, None)
            elif self.is_of_log or self.store.temporary.pop(name, None) is None:
                self.store.drop(name)

    def _created(self) -> Table:
        """The table of a CREATE TABLE, without the columns of a SELECT."""
        charset = self.store.databases.get(self.name.database)
        if not self.is_of_log:
            charset = charset or self.server_charset
        return created(
            self.name,
            self.facts,
            engine=self.default_engine,
            charset=charset,
            is_temporary=self.effects.is_temporary,
        )

    def _with_primary_key(self, table: Table) -> Table:
        return with_invisible_primary_key(table) if self.generates_primary_key else table

    def _put(self, table: Table) -> None:
        """Have a new table."""
        if not table.is_temporary and not self.is_of_log:
            self.store.drop(table.name)  # with the triggers of the one that OR REPLACE drops
        self.store.put(table)

    def _is_left_alone(self) -> bool:
        """True if IF NOT EXISTS leaves everything as it is."""
        if not self.effects.if_exists:
            return False
        if self.effects.is_temporary:
            return self.name in self.store.temporary
        return self.name in self.store.tables or self.name in self.store.views

    def _visible(self, name: TableName) -> Table | None:
        """The table that the session means by a name."""
        temporary = None if self.is_of_log else self.store.temporary.get(name)
        return temporary or self.store.tables.get(name)

    # Databases and views ----------------------------------------------------------------------

    def create_database(self) -> None:
        """CREATE DATABASE."""
        (database,) = self.effects.databases
        if not (self.effects.if_exists and database in self.store.databases):
            self.drop_database()
            charset = named_charset(self.node(definitions.Database).options)
            self.store.databases[database] = charset or self.server_charset

    def alter_database(self) -> None:
        """ALTER DATABASE."""
        (database,) = self.effects.databases
        charset = named_charset(self.node(definitions.Database).options)
        if charset is not None:
            self.store.databases[database] = charset

    def drop_database(self) -> None:
        """DROP DATABASE, and CREATE OR REPLACE DATABASE before it creates."""
        for database in self.effects.dropped_databases:
            self.store.drop_database(database)


def resolved(name: ObjectName, database: str) -> TableName:
    """Give the full name of an object, from a default database."""
    return TableName(name.database or database, name.name)


LOG_HANDLERS: Final[Mapping[StatementKind, Callable[[TableChange], None]]] = MappingProxyType(
    {
        StatementKind.CREATE_TABLE: TableChange.create_table,
        StatementKind.CREATE_TABLE_LIKE: TableChange.create_like,
        StatementKind.CREATE_TABLE_SELECT: TableChange.create_select,
        StatementKind.CREATE_SEQUENCE: TableChange.create_sequence,
        StatementKind.CREATE_INDEX: TableChange.create_index,
        StatementKind.DROP_INDEX: TableChange.drop_index,
        StatementKind.ALTER_TABLE: TableChange.alter_table,
        StatementKind.RENAME_TABLE: TableChange.rename_tables,
        StatementKind.DROP_TABLE: TableChange.drop_tables,
        StatementKind.DROP_SEQUENCE: TableChange.drop_tables,
        StatementKind.CREATE_DATABASE: TableChange.create_database,
        StatementKind.ALTER_DATABASE: TableChange.alter_database,
        StatementKind.DROP_DATABASE: TableChange.drop_database,
    }
)
"""Handlers for the statements of a log, where tables and their databases count."""
