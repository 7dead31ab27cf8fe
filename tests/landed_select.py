"""Landed tables beside the SELECT of a server that wrote the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from binlane.live.provision.private_server import PrivateServer
from binlane.tables.landing.tables.table_store import OWN_COLUMNS
from tests.landed import delta_rows
from tests.servers import connect

Row = tuple[Any, ...]


class Source:
    """A database of a server, and the log since it was made.

    Args:
        server: That logs rows in full.
        database: Made anew.
    """

    def __init__(self, server: PrivateServer, database: str) -> None:
        self.server = server
        self.database = database
        self._connection = connect(server)
        self.run(
            "FLUSH BINARY LOGS",
            "SET time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES'",
            f"DROP DATABASE IF EXISTS `{database}`",
            f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4",
            f"USE `{database}`",
        )
        self._first = self._files()[-1]
        self._given: set[str] = set()

    def run(self, *statements: str) -> None:
        """Run statements in the one session."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def try_run(self, statement: str) -> bool:
        """Run a statement that the server may refuse; whether it did not."""
        try:
            self.run(statement)
        except MySQLError:
            return False
        return True

    def close(self) -> None:
        """End the session, and drop the database."""
        self.run(f"DROP DATABASE `{self.database}`")
        self._connection.close()

    def binlogs(self) -> list[tuple[str, bytes]]:
        """The files since the database was made, all closed."""
        self.run("FLUSH BINARY LOGS")
        names = [name for name in self._files()[:-1] if name >= self._first]
        folder = self.server.directory / "data"
        return [(name, (folder / name).read_bytes()) for name in names]

    def new_binlogs(self) -> list[tuple[str, bytes]]:
        """Those that were not given yet."""
        found = [file for file in self.binlogs() if file[0] not in self._given]
        self._given |= {name for name, _ in found}
        return found

    def tables(self) -> list[str]:
        """Names of the base tables there are."""
        with self._connection.cursor() as cursor:
            cursor.execute("SHOW FULL TABLES")
            return [name for name, kind in cursor.fetchall() if kind.endswith("TABLE")]

    def columns(self, table: str) -> list[str]:
        """Names of a table's columns."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SHOW COLUMNS FROM `{table}`")
            return [row[0] for row in cursor.fetchall()]

    def rows(self, table: str, schema: pa.Schema) -> Counter[Row]:
        """The rows of a table, in the types that landing gives them."""
        names = ", ".join(f"`{name.replace('`', '``')}`" for name in schema.names)
        with connect(
            self.server, conv={}, use_unicode=False, charset="utf8mb4", database=self.database
        ) as connection:
            cursor: Cursor = connection.cursor()
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT {names} FROM `{table}`")
            return selected_values(cursor.fetchall(), schema)

    def _files(self) -> list[str]:
        with self._connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            return [row[0] for row in cursor.fetchall()]


def current_schema(path: Path) -> pa.Schema:
    """The source's columns of a current table."""
    schema = delta_rows(path).schema
    return pa.schema([field for field in schema if field.name not in OWN_COLUMNS.names])


def current_values(path: Path) -> Counter[Row]:
    """The rows of a current table, as `Source.rows` gives those of the source."""
    return landed_values(delta_rows(path), current_schema(path))


def landed_values(rows: pa.Table, schema: pa.Schema) -> Counter[Row]:
    """Landed rows, as `selected_values` gives those of a SELECT of the same columns."""
    found = rows.select(schema.names).to_pylist()
    return Counter(
        tuple(landed_value(row[field.name], field.type) for field in schema) for row in found
    )


def selected_values(rows: Iterable[Sequence[bytes | None]], schema: pa.Schema) -> Counter[Row]:
    """What a server's SELECT gave as text, in the types that landing gives the columns."""
    return Counter(
        tuple(_value(value, kind) for value, kind in zip(row, schema.types, strict=True))
        for row in rows
    )


def landed_value(value: Any, data_type: pa.DataType) -> Any:
    """A value of a landed table, as `Source.rows` gives that of the source."""
    # What the servers show of a FLOAT.
    return float(f"{value:.6g}") if pa.types.is_float32(data_type) and value is not None else value


def _value(data: bytes | None, data_type: pa.DataType) -> Any:
    if data is None:
        return None
    if pa.types.is_binary(data_type):
        return data
    if pa.types.is_integer(data_type):
        return int(data) if data.lstrip(b"-").isdigit() else int.from_bytes(data, "big")
    if pa.types.is_decimal(data_type):
        is_text = data.translate(None, b"0123456789-.") == b""
        return Decimal(data.decode()) if is_text else Decimal(int.from_bytes(data, "big"))
    text = data.decode()
    if pa.types.is_floating(data_type):
        return float(text)
    try:
        if pa.types.is_date(data_type):
            return date.fromisoformat(text)
        if isinstance(data_type, pa.TimestampType):
            moment = datetime.fromisoformat(text)
            return moment if data_type.tz is None else moment.replace(tzinfo=UTC)
    except ValueError:
        return None  # a zero date
    return text
