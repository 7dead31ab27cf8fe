"""The databases that every server has, with the engines of their tables.

Columns are not listed: nothing that is logged depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.schema import Table
from binlane.sql.table_definitions import TableColumn, TableDefinition

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
