"""The same table from the server and from the lake, as plain values that can be compared."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

if TYPE_CHECKING:
    import pymysql

Table = tuple[list[str], list[tuple[Any, ...]]]
"""Column names, and rows sorted by all their values."""


def server_rows(connection: pymysql.Connection[Any], table: str) -> Table:
    """`SELECT *` of a server's table, in UTC."""
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")  # noqa: S608  # our own table
        columns = [column[0] for column in cursor.description or ()]
        return columns, _sorted(cursor.fetchall())


def delta_rows(path: Path) -> Table:
    """A current-state table without the columns that landing adds."""
    table = pa.table(DeltaTable(str(path)).scan())
    columns = [name for name in table.column_names if not name.startswith("_")]
    rows = [tuple(map(_plain, row.values())) for row in table.select(columns).to_pylist()]
    return columns, _sorted(rows)


def _plain(value: object) -> object:
    """A value as the MySQL client gives it: times without a zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)
