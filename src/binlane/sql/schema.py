"""The objects of a server, as far as the logging of a statement depends on them.

Values, and the Protocol that the rest of the package reads a server's objects through. Last come
the databases that every server has, with the engines of their tables; of their columns nothing that
is logged depends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.facts import StatementFacts
from binlane.sql.servers import ANY, Dialect
from binlane.sql.table_definitions import TableColumn, TableDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A primary, unique, fulltext, spatial or plain key.

    Attributes:
        name: `PRIMARY`, or as given or made up by the server.
        columns: In order; the empty text for an expression.
        is_unique: PRIMARY or UNIQUE.
        parser: Of a FULLTEXT key WITH PARSER; None without.
        parts: The columns as the server prints them: with a length or DESC.
        algorithm: Of USING, in capitals; empty without.
        is_spatial: SPATIAL.
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
        """Whether this is the primary key."""
        return self.name == "PRIMARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A reference of `table` to `parent`.

    Attributes:
        table: That has the key.
        columns: Its own.
        parent: That the key refers to.
        on_delete: What happens to its rows when the parent's are deleted, in capitals.
        on_update: The same for changes.
        name: As given; empty if the server makes it up.
        parent_columns: Of the parent.
    """

    table: TableName
    columns: tuple[str, ...]
    parent: TableName
    on_delete: str = "RESTRICT"
    on_update: str = "RESTRICT"
    name: str = ""
    parent_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A base table or a sequence.

    Attributes:
        name: Its own.
        definition: Its columns.
        engine: In capitals, as `policy.engines` has it; a sequence's is that of its table.
        is_sequence: CREATE SEQUENCE made it.
        is_temporary: Of this session only.
        is_transactional_option: Aria's TRANSACTIONAL=1 (its default), else False.
        keys: All, the primary key first.
        auto_increment: Its column; None without.
        foreign_keys: Those of this table.
        union: Children of a MERGE table.
        create_statement: As the user wrote it; empty where nothing is known.
        is_complete: Its columns, keys and foreign keys are all known. Not so of the servers' own
            tables, and behind a CREATE … SELECT whose columns the text does not tell.
        options: Options of CREATE TABLE as the server prints them, such as `ENGINE` and `InnoDB`.
        checks: CONSTRAINT … CHECK of the table, as the server prints them.
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
    partitioning: str = ""

    @property
    def unique_keys(self) -> tuple[Key, ...]:
        """Primary and unique keys."""
        return tuple(key for key in self.keys if key.is_unique)

    @property
    def is_auto_increment_first(self) -> bool:
        """Whether some key begins with the auto-increment column."""
        column = self.auto_increment
        return column is None or any(key.columns[:1] == (column,) for key in self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view.

    Attributes:
        name: Its own.
        facts: Of its query, names resolved in the database of its creation.
        columns: Their names, if CREATE VIEW gives them.
        database: The default database of its creation.
    """

    name: TableName
    facts: StatementFacts
    columns: tuple[str, ...] = ()
    database: str = ""


class TriggerTime(Enum):
    """When a trigger runs."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger; `events` of INSERT, UPDATE, DELETE (MariaDB 12 allows several).

    Its body is read as the session that made it read its statements.
    """

    name: TableName
    table: TableName
    time: TriggerTime
    events: frozenset[str]
    body: str
    dialect: Dialect = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a routine; `direction` is IN, OUT or INOUT."""

    name: str
    type_text: str
    direction: str = "IN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A stored procedure or function.

    Attributes:
        name: Its own.
        is_function: CREATE FUNCTION made it.
        parameters: In order.
        body: Its text.
        returns: The type's text of a function.
        charset: Of text that names none: its database's when it was made; None if not known.
        dialect: Of the session that made it, as which its body is read.
    """

    name: TableName
    is_function: bool
    parameters: tuple[Parameter, ...]
    body: str
    returns: str = ""
    charset: str | None = None
    dialect: Dialect = ANY


INFORMATION_SCHEMA: Final = "information_schema"
PERFORMANCE_SCHEMA: Final = "performance_schema"
SYSTEM_DATABASES: Final = frozenset({"mysql", INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, "sys"})
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
    """Whether every server has it; information_schema's name has no case."""
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
