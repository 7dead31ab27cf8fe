"""The objects of a server, as far as the logging of a statement depends on them, and where they are.

Values in plain dictionaries, so that a copy costs microseconds. What statements do to them stands in
`object_changes`. Among them are the databases that every server has, with the engines of their
tables; of their columns nothing that is logged depends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.accounts import ROOT, AccountName
from binlane.statements.sql.check_names import CheckName
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.servers import ANY, Dialect
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

    def with_columns(self, table: TableName, renamed: Mapping[str, str]) -> ForeignKey:
        """The key after columns of a table got new names, given by the old ones in small letters."""
        if not renamed or table not in (self.table, self.parent):
            return self
        own, others = (
            tuple(renamed.get(name.lower(), name) for name in names) if table == named else names
            for named, names in ((self.table, self.columns), (self.parent, self.parent_columns))
        )
        return replace(self, columns=own, parent_columns=others)

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
        return column is None or (column,) in [key.columns[:1] for key in self.keys]


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


def small(name: TableName) -> TableName:
    """A name that has no case, as the store keeps it."""
    return TableName(name.database, name.table.lower())


def body_of(package: TableName) -> TableName:
    """Give the name by which `ObjectStore.packages` says that a package has a body."""
    return TableName(package.database, f"{package.table.lower()} body")


def printed_engine(engine: str) -> str:
    """An engine's name as the servers print it."""
    return _PRINTED_ENGINES.get(engine, engine)


_PRINTED_ENGINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INNODB": "InnoDB",
        "MYISAM": "MyISAM",
        "ARIA": "Aria",
        "MRG_MYISAM": "MRG_MyISAM",
        "NDBCLUSTER": "ndbcluster",
    }
)
