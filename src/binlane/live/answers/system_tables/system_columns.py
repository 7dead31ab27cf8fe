"""The tables of `system`: their columns, and what SHOW and DESCRIBE tell of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.log.codec.packets.results import Cell
from binlane.names import quote
from binlane.statements.scope.scope import SYSTEM_DATABASE

_ID: Final = ("log_id", "bigint")
_NAME: Final = ("name", "varchar(64)")
_DATABASE: Final = ("database", "varchar(64)")
_TABLE: Final = ("table", "varchar(64)")

TABLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        "binlogs": (
            *(_NAME, _ID, ("log_all_dbs", "int"), ("format", "varchar(9)"), ("state", "text")),
            *(("file", "varchar(255)"), ("position", "bigint"), ("gtid_complete", "text")),
            *(("created", "datetime"), ("problem", "text"), ("row_image", "varchar(10)")),
            *(("compress", "varchar(3)"), ("cascades", "varchar(8)")),
        ),
        "binlog_log_databases": (_ID, _DATABASE),
        "binlog_log_tables": (_ID, _DATABASE, _TABLE),
        "binlog_ignore_databases": (_ID, _DATABASE),
        "binlog_ignore_tables": (_ID, _DATABASE, _TABLE),
        "binlog_scope_history": (
            *(_ID, _NAME, ("change", "varchar(6)"), ("gtid", "text"), ("changed", "datetime")),
            *(("format", "varchar(9)"), ("log_all_dbs", "int")),
            *(("log_list", "text"), ("ignore_list", "text")),
        ),
        "binlog_replicas": (
            *(("server_id", "bigint"), ("host", "varchar(255)"), ("user", "varchar(128)")),
            *(("binlog", "varchar(64)"), _ID, ("connection_id", "bigint")),
        ),
        "binlog_incidents": (
            *(("binlog", "varchar(64)"), _ID, ("file", "varchar(255)"), ("position", "bigint")),
            *(("gtid", "text"), ("happened", "datetime"), ("reason", "text"), ("count", "bigint")),
        ),
        "binlog_checks": (
            *(("binlog", "varchar(64)"), _ID, ("table", "varchar(129)"), ("server", "text")),
            *(("state", "varchar(12)"), ("gtid", "text"), ("since", "text"), ("rows", "bigint")),
            *(("checked", "datetime"), ("outcome", "text")),
        ),
        "binlog_grants": (
            *(("binlog", "varchar(64)"), _ID, ("user", "varchar(128)"), ("host", "varchar(255)")),
            ("granted", "datetime"),
        ),
    }
)
"""Name and SQL type of each column, by table; times are in UTC."""

DESCRIBE_COLUMNS: Final = ("Field", "Type", "Null", "Key", "Default", "Extra")
TABLES_COLUMN: Final = f"Tables_in_{SYSTEM_DATABASE}"

Row = Sequence[str | int | None]
Snapshot = Mapping[str, Sequence[Row]]
"""The rows of each table."""


def described(table: str) -> list[tuple[Cell, ...]]:
    """The rows of DESCRIBE."""
    return [(name, type_, "YES", "", None, "") for name, type_ in TABLES[table]]


def created(table: str) -> str:
    """The CREATE TABLE that would make a table."""
    columns = ",\n".join(f"  {quote(name)} {type_} DEFAULT NULL" for name, type_ in TABLES[table])
    return f"CREATE TABLE {quote(table)} (\n{columns}\n)"


def is_like(name: str, pattern: str | None) -> bool:
    """True if a name fits a pattern of LIKE; every name fits None."""
    if pattern is None:
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    expression = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(expression, name, re.DOTALL | re.IGNORECASE) is not None
