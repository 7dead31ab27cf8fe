"""The objects of a server, as far as the logging of a statement depends on them, and where they are.

Values in plain dictionaries, so that a copy costs microseconds. What statements do to them stands in
`object_changes`. Among them are the databases that every server has, with the engines of their
tables; of their columns nothing that is logged depends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import Final, Self

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.accounts import ROOT, AccountName, Accounts
from binlane.statements.sql.check_names import CheckName, renamed_checks
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.servers import ANY, ASSUMED, Dialect, Version, default
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A primary, unique, fulltext, spatial or plain key.

    Attributes:
        name: `PRIMARY`, or the name as given or made up by the server.
        columns: Columns in order; the empty text for an expression.
        is_unique: True if the key is PRIMARY or UNIQUE.
        parser: Parser of a FULLTEXT key WITH PARSER; None without.
        parts: The columns as the server prints them: with a length or DESC.
        algorithm: Algorithm of USING, in capitals; empty without.
    """

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_fulltext: bool = False
    parser: str | None = None
    parts: tuple[str, ...] = ()
    algorithm: str = ""
    is_spatial: bool = False

    @property
    def is_primary(self) -> bool:
        """True if this is the primary key."""
        return self.name == "PRIMARY"


ACTING: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
"""Actions of a foreign key that change the child's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A reference of `table` to `parent`.

    Attributes:
            table: Table that has the key.
        columns: Columns of `table` in the key.
        parent: Table that the key refers to.
        on_delete: Action on the key's rows when the parent's are deleted, in capitals.
        on_update: Action on the key's rows when the parent's are changed, in capitals.
        name: Name as given; empty if the server makes it up.
        parent_columns: Columns of `parent` that the key refers to.
        names_index: True if its name is that of its index alone, as MySQL has it without CONSTRAINT.
        made_up: Name that the server gives a key without a name.
    """

    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    on_delete: str = "RESTRICT"
    on_update: str = "RESTRICT"
    name: str = ""
    parent_columns: tuple[str, ...] = ()
    names_index: bool = False
    made_up: str = ""

    @property
    def own_name(self) -> str:
        """As the server calls it; empty where nothing tells."""
        return self.made_up if self.names_index else self.name or self.made_up

    @property
    def acts(self) -> bool:
        """True if the key changes its table's rows."""
        return self.on_delete in ACTING or self.on_update in ACTING

    def renamed(self, new: TableName) -> ForeignKey:
        """The key of a table that gets another name, which names that may be made up follow."""
        number = made_up_number(self.own_name, self.table.table)
        if number is None:
            return replace(self, table=new)
        name = made_up_reference(new.table, number)
        if self.own_name == self.made_up:
            return replace(self, table=new, made_up=name)
        return replace(self, table=new, name=name)


def made_up_reference(table: str, number: int) -> str:
    """The name that the servers make up for a foreign key."""
    return f"{table}_ibfk_{number}"


def made_up_number(name: str, table: str) -> int | None:
    """The number in the name of a foreign key that may be made up; None of another one."""
    begin = made_up_reference(table, 0)[:-1].lower()
    digits = name[len(begin) :]
    is_made_up = name.lower().startswith(begin) and digits.isdecimal()
    return int(digits) if is_made_up else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A base table or a sequence.

    Attributes:
        definition: Definition of the table's columns.
        engine: Engine in capitals, as `policy.engines` has it; a sequence's is that of its table.
        is_sequence: True if CREATE SEQUENCE made it.
        is_temporary: True if only this session has it.
        is_transactional_option: Aria's TRANSACTIONAL=1 (its default), else False.
        keys: All keys, the primary key first.
        auto_increment: Name of the AUTO_INCREMENT column; None without.
        foreign_keys: Foreign keys of this table itself.
        union: Child tables of a MERGE table.
        create_statement: Statement as the user wrote it; empty where nothing is known.
        is_complete: True if its columns, keys and foreign keys are all known. Not so of the
            servers' own tables, and behind a CREATE … SELECT whose columns the text does not tell.
        options: Options of CREATE TABLE as the server prints them, such as `ENGINE` and `InnoDB`.
        checks: CONSTRAINT … CHECK of the table, as the server prints them.
        check_names: Of those and, in MySQL, of the checks of columns.
        unenforced: Names of MySQL's checks that are NOT ENFORCED, in small letters; empty of one
            without a name.
        partitioning: PARTITION BY to its end, as the user wrote it; empty without.
    """

    name: TableName
    definition: TableDefinition
    engine: str
    is_sequence: bool = False
    is_temporary: bool = False
    is_transactional_option: bool = True
    keys: tuple[Key, ...] = ()
    auto_increment: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    union: tuple[TableName, ...] = ()
    create_statement: str = ""
    is_complete: bool = True
    options: tuple[tuple[str, str], ...] = ()
    checks: tuple[str, ...] = ()
    check_names: tuple[CheckName, ...] = ()
    unenforced: frozenset[str] = frozenset()
    partitioning: str = ""
    dialect: Dialect = field(default=ANY, compare=False)

    @property
    def unique_keys(self) -> tuple[Key, ...]:
        """Primary and unique keys."""
        return tuple(key for key in self.keys if key.is_unique)

    @property
    def is_auto_increment_first(self) -> bool:
        """True if some key begins with the auto-increment column, or there is no such column."""
        column = self.auto_increment
        return column is None or any(key.columns[:1] == (column,) for key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view.

    Attributes:
        facts: Facts of its query, names resolved in the database of its creation.
        columns: Names of its columns, if CREATE VIEW gives them.
        database: The default database of its creation.
        definer: Account whose privileges hold in it.
        is_invoker: True for SQL SECURITY INVOKER: the privileges of the invoking account hold.
        algorithm: Algorithm as the server keeps it: `MERGE`, `TEMPTABLE` or `UNDEFINED`.
    """

    name: TableName
    facts: StatementFacts
    columns: tuple[str, ...] = ()
    database: str = ""
    definer: AccountName = ROOT
    is_invoker: bool = False
    algorithm: str = "UNDEFINED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationContext:
    """State of the session that made a routine or trigger, which holds while that runs.

    Attributes:
        sql_mode: Names of modes in capitals, with commas.
        collation: Value of collation_connection; empty if it is not known.
    """

    sql_mode: str
    collation: str = ""


class TriggerTime(Enum):
    """Time at which a trigger runs: before or after the change of a row."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger; `events` of INSERT, UPDATE, DELETE (MariaDB 12 allows several).

    Its body is read in `dialect`, as the session that made it read its statements, and runs in its
    `context`; None: in whatever the session has that runs it.
    """

    name: TableName
    table: TableName
    time: TriggerTime
    events: frozenset[str]
    body: str
    dialect: Dialect = ANY
    context: CreationContext | None = None
    definer: AccountName = ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a routine.

    Attributes:
        type_text: Text of the parameter's type.
        direction: One of IN, OUT and INOUT.
        default: Expression for a call that leaves the parameter out; None if it has to be given.
    """

    name: str
    type_text: str
    direction: str = "IN"
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A stored procedure or function.

    Attributes:
        is_function: True if CREATE FUNCTION made it.
        parameters: Parameters in the order of the text.
        body: Text of the routine's body.
        returns: Text of the type that a function returns.
        charset: Character set of text that names none: its database's when it was made; None if not
            known.
        dialect: Dialect of the session that made it, in which its body is read.
        context: Context in which it runs; None for that of the session that runs it.
        definer: Account whose privileges hold in it.
        is_invoker: True for SQL SECURITY INVOKER: the privileges of the calling account hold.
        outer: Names of the variables of its package.
        language: Language in which the body is written; empty for SQL.
        unread: Reason why only its name is known, and the body is empty: the server does not tell
            the body, or that is not understood; empty where it is read.
    """

    name: TableName
    is_function: bool
    parameters: tuple[Parameter, ...]
    body: str
    returns: str = ""
    charset: str | None = None
    dialect: Dialect = ANY
    context: CreationContext | None = None
    definer: AccountName = ROOT
    is_invoker: bool = False
    outer: tuple[str, ...] = ()
    language: str = ""
    unread: str = ""

    def takes(self, count: int) -> bool:
        """True if the routine may be called with so many arguments."""
        given = [one for one in self.parameters[count:] if one.default is None]
        return bool(self.unread) or (len(self.parameters) >= count and not given)


INFORMATION_SCHEMA: Final = "information_schema"
PERFORMANCE_SCHEMA: Final = "performance_schema"
SYSTEM_DATABASES: Final = frozenset({"mysql", INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, "sys"})
DICTIONARY_ACCOUNT_VIEWS: Final = frozenset(
    (
        *("administrable_role_authorizations", "applicable_roles", "enabled_roles"),
        *("role_column_grants", "role_routine_grants", "role_table_grants", "user_attributes"),
    )
)
"""Views in MySQL's information_schema, in small letters, of tables of accounts: `DICTIONARY_VIEWS`."""
DICTIONARY_VIEWS: Final = DICTIONARY_ACCOUNT_VIEWS | frozenset(
    (
        *("character_sets", "check_constraints", "collation_character_set_applicability"),
        *("collations", "column_statistics", "columns", "columns_extensions", "events", "files"),
        *("innodb_datafiles", "innodb_fields", "innodb_foreign", "innodb_foreign_cols"),
        *("innodb_tablespaces_brief", "json_duality_view_columns", "json_duality_view_links"),
        *("json_duality_view_tables", "json_duality_views", "key_column_usage", "libraries"),
        *("parameters", "partitions", "referential_constraints", "resource_groups"),
        *("routine_libraries", "routines", "schemata", "schemata_extensions"),
        *("st_geometry_columns", "st_spatial_reference_systems", "statistics"),
        *("table_constraints", "table_constraints_extensions", "tables", "tables_extensions"),
        *("tablespaces_extensions", "triggers", "view_routine_usage", "view_table_usage", "views"),
    )
)
"""Views of InnoDB tables, where the server has them: `Fact.DICTIONARY_TABLES`."""
_ANY_CASE: Final = frozenset({INFORMATION_SCHEMA, PERFORMANCE_SCHEMA})
_SEQUENCE_TABLE: Final = re.compile(r"seq_\d+_to_\d+(?:_step_\d+)?\Z", re.IGNORECASE)
_UNKNOWN_COLUMNS: Final = TableDefinition(columns=())
_SEQUENCE_COLUMNS: Final = TableDefinition(
    columns=(TableColumn(name="seq", type_name="BIGINT", is_unsigned=True, is_nullable=False),)
)
_SHARED: Final = (
    *("columns_priv", "db", "func", "plugin", "procs_priv", "proxies_priv", "servers"),
    *("tables_priv", "help_category", "help_keyword", "help_relation", "help_topic", "time_zone"),
    *("time_zone_leap_second", "time_zone_name", "time_zone_transition"),
    "time_zone_transition_type",
)
_LOGS: Final = ("general_log", "slow_log")
_STATISTICS: Final = ("innodb_index_stats", "innodb_table_stats")
_MYSQL_ONLY: Final = (
    *("user", "component", "default_roles", "engine_cost", "server_cost", "global_grants"),
    *("gtid_executed", "ndb_binlog_index", "password_history", "role_edges"),
    *("replication_asynchronous_connection_failover", "replication_group_member_actions"),
    *("replication_asynchronous_connection_failover_managed", "slave_worker_info"),
    *("replication_group_configuration_version", "slave_master_info", "slave_relay_log_info"),
)
_MARIADB_ONLY: Final = (
    *("global_priv", "roles_mapping", "proc", "event"),
    *("index_stats", "column_stats", "table_stats"),
    # A view of `global_priv`, which is its only table.
    "user",
)
# MariaDB makes these with TRANSACTIONAL=0: measured, 10.5 to 11.8.
_NOT_CRASH_SAFE: Final = frozenset(
    {
        *("help_category", "help_keyword", "help_relation", "help_topic"),
        *("index_stats", "column_stats", "table_stats"),
    }
)
_MYSQL_TABLES: Final[Mapping[Flavor, Mapping[str, str]]] = MappingProxyType(
    {
        Flavor.MARIADB: MappingProxyType(
            {
                **dict.fromkeys(_SHARED + _MARIADB_ONLY, "ARIA"),
                **dict.fromkeys(_LOGS, "CSV"),
                **dict.fromkeys((*_STATISTICS, "gtid_slave_pos", "transaction_registry"), "INNODB"),
            }
        ),
        Flavor.MYSQL: MappingProxyType(
            {
                **dict.fromkeys(_SHARED + _MYSQL_ONLY + _STATISTICS, "INNODB"),
                **dict.fromkeys(_LOGS, "CSV"),
            }
        ),
    }
)
_ENGINES: Final = MappingProxyType(
    {
        INFORMATION_SCHEMA: "INFORMATION_SCHEMA",
        PERFORMANCE_SCHEMA: "PERFORMANCE_SCHEMA",
        # Views of the two above.
        "sys": "PERFORMANCE_SCHEMA",
    }
)


def has_system_database(database: str) -> bool:
    """True if every server has the database; information_schema's name has no case."""
    return database in SYSTEM_DATABASES or database.lower() in _ANY_CASE


def system_table(name: TableName, flavor: Flavor) -> Table | None:
    """A table that nobody creates; None if there is none of that name."""
    if flavor is Flavor.MARIADB and _SEQUENCE_TABLE.match(name.table):
        return Table(
            name=name, definition=_SEQUENCE_COLUMNS, engine="SEQUENCE", create_statement=""
        )
    database = name.database.lower() if name.database.lower() in _ANY_CASE else name.database
    engine = _ENGINES.get(database)
    if name == TableName("sys", "sys_config"):
        engine = "ARIA" if flavor is Flavor.MARIADB else "INNODB"
    if database == "mysql":
        engine = _MYSQL_TABLES[flavor].get(name.table)
    if engine is None:
        return None
    return Table(
        name=name,
        definition=_UNKNOWN_COLUMNS,
        engine=engine,
        is_complete=False,
        is_transactional_option=not (database == "mysql" and name.table in _NOT_CRASH_SAFE),
    )


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


def small(name: TableName) -> TableName:
    """A name that has no case, as the store keeps it."""
    return TableName(name.database, name.table.lower())


def body_of(package: TableName) -> TableName:
    """Give the name by which `ObjectStore.packages` says that a package has a body."""
    return TableName(package.database, f"{package.table.lower()} body")


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
