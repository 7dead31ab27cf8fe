"""Effects of a statement on the objects of a catalog: tables, databases, views, programs, accounts.

The module is a fold over the statement's tree. Names without a database get that of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.account_changes import change, give_routine, take_routine
from binlane.statements.sql.accounts import ROOT, AccountName, Level, Situation, named
from binlane.statements.sql.check_names import copied_checks
from binlane.statements.sql.column_charsets import named_charset
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.evaluation.operator_types import Scope, Untyped
from binlane.statements.sql.evaluation.query_types import UNKNOWN_TYPE, columns_as_far_as_known
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.object_store import Objects, ObjectStore
from binlane.statements.sql.parser import Stopped, parse_package
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import (
    CreationContext,
    Parameter,
    Routine,
    Table,
    Trigger,
    TriggerTime,
    View,
    body_of,
    small,
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
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition, string_of
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree import definitions
from binlane.statements.sql.tree.account_statements import Account, AccountStatement
from binlane.statements.sql.tree.expressions import Literal, LiteralKind, Name, Node, ObjectName
from binlane.statements.sql.tree.statements import Administration, Set, SetItem
from binlane.statements.sql.views import attributes

_GLOBAL_SCOPES: Final = ("global", "persist", "persist_only")
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
class ObjectChange:
    """A statement that may change the catalog, with what its session adds to its text.

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
        scope = Scope(
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
        if table is not None:
            charset = store.databases.get(database)
            table = altered(table, self.facts, engine=self.default_engine, charset=charset)
            store.put(table)
            for action in self.node(definitions.AlterTable).actions:
                if action.words[:1] == ("CONVERT",) and action.table is not None:
                    new = _resolved(action.table, database)
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
            charset = named_charset(self.node(definitions.Database).options)
            self.store.databases[database] = charset or self.server_charset

    def alter_database(self) -> None:
        """ALTER DATABASE."""
        (database,) = self.effects.databases
        charset = named_charset(self.node(definitions.Database).options)
        if charset is not None:
            self.store.databases[database] = charset

    def drop_database(self) -> None:
        """DROP DATABASE."""
        for database in self.effects.databases:
            self.store.drop_database(database)

    def create_view(self) -> None:
        """CREATE VIEW and ALTER VIEW."""
        name = self.effects.objects[0]
        if self.effects.if_exists and (name in self.store.views or name in self.store.tables):
            return
        node = self.node(definitions.CreateView)
        query = self.facts.text_of(node.query)
        is_mariadb = self.objects.flavor is Flavor.MARIADB
        kept = attributes(node, self.store.views.get(name), is_mariadb=is_mariadb)
        self.store.views[name] = View(
            name=name,
            facts=read(query, database=self.database, dialect=self.facts.dialect),
            columns=node.columns,
            database=self.database,
            definer=kept.definer or self._definer(node.definer),
            is_invoker=kept.is_invoker,
            algorithm=kept.algorithm,
        )
        self.store.databases.setdefault(name.database, None)

    def drop_views(self) -> None:
        """DROP VIEW."""
        for name in self.effects.objects:
            self.store.views.pop(name, None)

    # Programs ---------------------------------------------------------------------------------

    def create_trigger(self) -> None:
        """CREATE TRIGGER."""
        node = self.node(definitions.CreateTrigger)
        name = _resolved(node.name, self.database)
        table = _resolved(node.table, name.database)
        trigger = Trigger(
            dialect=self.facts.dialect,
            context=self.context,
            name=TableName(table.database, name.table),
            table=table,
            time=TriggerTime.BEFORE if node.time == "BEFORE" else TriggerTime.AFTER,
            events=frozenset(node.events),
            body=self._body(node.body_at),
            definer=self._definer(node.definer),
        )
        if self.effects.if_exists and self.objects.trigger(trigger.name) is not None:
            return
        self.store.drop_trigger(trigger.name)
        triggers = self.store.triggers.get(table, ())
        self.store.triggers[table] = _placed(triggers, trigger, node.order)

    def drop_triggers(self) -> None:
        """DROP TRIGGER."""
        for name in self.effects.objects:
            self.store.drop_trigger(name)

    def _body(self, at: int) -> str:
        """A body as it stands, without delimiters behind it."""
        return self.facts.text[self.facts.place(at) :].rstrip().rstrip(";").rstrip()

    def create_routine(self) -> None:
        """CREATE PROCEDURE and CREATE FUNCTION, also of a loadable one."""
        node = self.node(definitions.CreateRoutine)
        if node.soname:
            self.store.loadable.add(node.name.name.lower())
            return
        name = _resolved(node.name, self.database)
        key = node.verb.endswith("FUNCTION"), small(name)
        if self.effects.if_exists and key in self.store.routines:
            return
        self.store.routines[key] = self._routine(name, node, self.facts)
        self.store.databases.setdefault(name.database, None)
        give_routine(self.store.accounts, self.account, _level(name, is_function=key[0]))

    def _routine(
        self,
        name: TableName,
        node: definitions.CreateRoutine,
        facts: StatementFacts,
        outer: tuple[str, ...] = (),
    ) -> Routine:
        """Give the routine that a definition makes."""
        text_of = facts.text_of
        return Routine(
            dialect=self.facts.dialect,
            context=self.context,
            name=name,
            is_function=node.verb.endswith("FUNCTION"),
            parameters=tuple(
                Parameter(
                    name=each.name,
                    type_text=text_of(each.type),
                    direction=each.direction,
                    default=None if each.default is None else text_of(each.default),
                )
                for each in node.parameters
            ),
            body=facts.text[facts.place(node.body_at) :].rstrip().rstrip(";").rstrip(),
            returns="" if node.returns is None else text_of(node.returns),
            charset=self.store.databases.get(name.database) or self.server_charset,
            definer=self._definer(node.definer),
            is_invoker="SQL SECURITY INVOKER" in node.characteristics,
            outer=outer,
            language=node.language,
        )

    def create_package(self) -> None:
        """CREATE PACKAGE, which leaves no older body, and CREATE PACKAGE BODY."""
        node = self.node(definitions.ObjectStatement)
        assert node.name is not None, "the grammar wants one"
        name = small(_resolved(node.name, self.database))
        is_body = node.verb.endswith("BODY")
        if self.effects.if_exists and (body_of(name) if is_body else name) in self.store.packages:
            return
        self._drop_body(name)
        self.store.packages.add(name)
        if not is_body:
            return
        self.store.packages.add(body_of(name))
        rest = self.facts.text[self.facts.place(node.name.end) :]
        begins = _PACKAGE_BEGINS.search(rest)
        if begins is None:
            return
        try:
            package = parse_package(rest[begins.start() :], self.facts.dialect)
        except (Stopped, SqlSyntaxError):
            return
        for text in package.routines:
            facts = read(f"CREATE {text}", database=name.database, dialect=self.facts.dialect)
            if isinstance(facts.tree, definitions.CreateRoutine):
                own = facts.tree.name.name
                routine = self._routine(
                    TableName(name.database, f"{name.table}.{own}"),
                    facts.tree,
                    facts,
                    package.variables,
                )
                self.store.routines[routine.is_function, small(routine.name)] = routine

    def drop_packages(self) -> None:
        """DROP PACKAGE and DROP PACKAGE BODY."""
        for name in map(small, self.effects.objects):
            self._drop_body(name)
            if not self.facts.verb.endswith("BODY"):
                self.store.packages.discard(name)

    def _drop_body(self, name: TableName) -> None:
        """Have no body of a package any more."""
        self.store.packages.discard(body_of(name))
        for kind, routine in [*self.store.routines]:
            if routine.database == name.database and routine.table.startswith(f"{name.table}."):
                del self.store.routines[kind, routine]

    def alter_routine(self) -> None:
        """ALTER PROCEDURE and ALTER FUNCTION: whose privileges hold."""
        words = self.node(definitions.ObjectStatement).words
        is_function = self.facts.verb.endswith("FUNCTION")
        for name in self.effects.objects:
            routine = self.store.routines.get((is_function, small(name)))
            for security in ("INVOKER", "DEFINER"):
                if routine is not None and f"SQL SECURITY {security}" in words:
                    changed = replace(routine, is_invoker=security == "INVOKER")
                    self.store.routines[is_function, small(name)] = changed

    def drop_routines(self) -> None:
        """DROP PROCEDURE and DROP FUNCTION, also of a loadable one."""
        is_function = self.facts.verb.endswith("FUNCTION")
        for name in self.effects.objects:
            found = self.store.routines.pop((is_function, small(name)), None)
            take_routine(self.store.accounts, _level(name, is_function=is_function))
            if is_function and found is None:
                self.store.loadable.discard(name.table.lower())

    def create_event(self) -> None:
        """CREATE EVENT."""
        self.store.events.add(small(self.effects.objects[0]))

    def alter_event(self) -> None:
        """ALTER EVENT, which may give it another name."""
        names = [small(name) for name in self.effects.objects]
        if len(names) > 1 and names[0] in self.store.events:
            self.store.events.discard(names[0])
            self.store.events.add(names[1])

    def drop_events(self) -> None:
        """DROP EVENT."""
        self.store.events.difference_update(map(small, self.effects.objects))

    def create_library(self) -> None:
        """CREATE LIBRARY."""
        self.store.libraries.add(small(self.effects.objects[0]))

    def drop_library(self) -> None:
        """DROP LIBRARY."""
        self.store.libraries.discard(small(self.effects.objects[0]))

    def install(self) -> None:
        """INSTALL and UNINSTALL of plugins and components."""
        node = self.facts.tree
        names = node.names if isinstance(node, Administration) else ()
        found = {name.lower() for name in names}
        if self.facts.verb.startswith("INSTALL"):
            self.store.plugins |= found
        else:
            self.store.plugins -= found

    def change_reference_system(self) -> None:
        """CREATE and DROP SPATIAL REFERENCE SYSTEM."""
        node = self.node(definitions.ObjectStatement)
        is_made = self.effects.kind is StatementKind.CREATE_REFERENCE_SYSTEM
        self.store.reference_systems[node.number] = is_made

    # Accounts and settings --------------------------------------------------------------------

    def change_accounts(self) -> None:
        """Users and roles, and what they are granted."""
        node = self.facts.tree
        if isinstance(node, AccountStatement):
            self.store.accounts = change(self.store.accounts, node, self._situation()).accounts

    def _situation(self) -> Situation:
        return Situation(
            is_mariadb=self.objects.flavor is Flavor.MARIADB,
            database=self.database,
            current=self.account,
            is_complete=self.knows_accounts,
        )

    def _definer(self, account: Account | None) -> AccountName:
        """Give the account whose privileges hold in a view or program."""
        if account is None:
            return self.account
        return named(account, self.store.accounts, self._situation())

    def set_globals(self) -> None:
        """SET GLOBAL; values of one session are no objects."""
        node = self.facts.tree
        for item in node.items if isinstance(node, Set) else ():
            if item.scope in _GLOBAL_SCOPES:
                self.store.settings[item.name] = self._setting(item)

    def _setting(self, item: SetItem) -> str:
        node = item.value
        if node is None:
            return item.words or "DEFAULT"
        if isinstance(node, Literal) and node.kind is LiteralKind.STRING:
            return string_of(node, self.facts)
        if isinstance(node, Name):
            return ".".join(node.parts)
        return self.facts.text_of(node)


def _level(routine: TableName, *, is_function: bool) -> Level:
    """Give the level at which the privileges of a routine are granted."""
    kind = "FUNCTION" if is_function else "PROCEDURE"
    return kind, routine.database, routine.table.lower()


_PACKAGE_BEGINS: Final = re.compile(
    r"\b(?:AS|IS|PROCEDURE|FUNCTION|DECLARE|BEGIN|END)\b", re.IGNORECASE
)


def _resolved(name: ObjectName, database: str) -> TableName:
    return TableName(name.database or database, name.name)


def _placed(
    triggers: Sequence[Trigger], new: Trigger, order: tuple[str, str] | None
) -> tuple[Trigger, ...]:
    """A table's triggers with a new one behind, or where FOLLOWS and PRECEDES put it."""
    names = [each.name.table for each in triggers]
    index = len(names)
    if order is not None and order[1] in names:
        index = names.index(order[1]) + (order[0] == "FOLLOWS")
    return (*triggers[:index], new, *triggers[index:])


# By kind --------------------------------------------------------------------------------------

LOG_HANDLERS: Final[Mapping[StatementKind, Callable[[ObjectChange], None]]] = MappingProxyType(
    {
        StatementKind.CREATE_TABLE: ObjectChange.create_table,
        StatementKind.CREATE_TABLE_LIKE: ObjectChange.create_like,
        StatementKind.CREATE_TABLE_SELECT: ObjectChange.create_select,
        StatementKind.CREATE_SEQUENCE: ObjectChange.create_sequence,
        StatementKind.CREATE_INDEX: ObjectChange.create_index,
        StatementKind.DROP_INDEX: ObjectChange.drop_index,
        StatementKind.ALTER_TABLE: ObjectChange.alter_table,
        StatementKind.RENAME_TABLE: ObjectChange.rename_tables,
        StatementKind.DROP_TABLE: ObjectChange.drop_tables,
        StatementKind.DROP_SEQUENCE: ObjectChange.drop_tables,
        StatementKind.CREATE_DATABASE: ObjectChange.create_database,
        StatementKind.ALTER_DATABASE: ObjectChange.alter_database,
        StatementKind.DROP_DATABASE: ObjectChange.drop_database,
    }
)
"""Handlers for the statements of a log, where tables and their databases count."""
SERVER_HANDLERS: Final[Mapping[StatementKind, Callable[[ObjectChange], None]]] = MappingProxyType(
    {
        **LOG_HANDLERS,
        StatementKind.CREATE_VIEW: ObjectChange.create_view,
        StatementKind.ALTER_VIEW: ObjectChange.create_view,
        StatementKind.DROP_VIEW: ObjectChange.drop_views,
        StatementKind.CREATE_TRIGGER: ObjectChange.create_trigger,
        StatementKind.DROP_TRIGGER: ObjectChange.drop_triggers,
        StatementKind.CREATE_ROUTINE: ObjectChange.create_routine,
        StatementKind.ALTER_ROUTINE: ObjectChange.alter_routine,
        StatementKind.DROP_ROUTINE: ObjectChange.drop_routines,
        StatementKind.CREATE_PACKAGE: ObjectChange.create_package,
        StatementKind.DROP_PACKAGE: ObjectChange.drop_packages,
        StatementKind.CREATE_EVENT: ObjectChange.create_event,
        StatementKind.ALTER_EVENT: ObjectChange.alter_event,
        StatementKind.DROP_EVENT: ObjectChange.drop_events,
        StatementKind.CREATE_LIBRARY: ObjectChange.create_library,
        StatementKind.DROP_LIBRARY: ObjectChange.drop_library,
        StatementKind.CREATE_REFERENCE_SYSTEM: ObjectChange.change_reference_system,
        StatementKind.DROP_REFERENCE_SYSTEM: ObjectChange.change_reference_system,
        StatementKind.ACCOUNT: ObjectChange.change_accounts,
        StatementKind.SET: ObjectChange.set_globals,
        StatementKind.SESSION: ObjectChange.install,
    }
)
