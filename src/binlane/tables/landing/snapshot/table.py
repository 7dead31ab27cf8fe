"""A table of the server whose rows become a landed table's: its types in Arrow, and what is selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from binlane.client.rows.key_bounds import KeyColumn
from binlane.client.rows.source_table import source_table
from binlane.errors import UnsupportedError
from binlane.log.codec.columns import Column
from binlane.log.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.tables.columnar.arrow_types import arrow_type
from binlane.tables.columnar.table_schema import CHANGE_COLUMNS, SEQUENCE_COLUMN
from binlane.tables.landing.snapshot.cells import expression

_ADDED: Final = frozenset({*CHANGE_COLUMNS.names, SEQUENCE_COLUMN})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTable:
    """A table to read.

    Attributes:
        create: SHOW CREATE TABLE, without the AUTO_INCREMENT that grows.
        columns: Columns as the log has them, in table order, also invisible and generated ones.
        expressions: The expression to select for each column.
        key: The primary key as the log has it; empty for a table without one, which is read as a
            whole.
        is_transactional: Whether reads of the table are consistent.
        rows: The server's estimate of the number of rows.
        row_bytes: The server's estimate of a row's bytes.
    """

    name: TableName
    create: str
    columns: tuple[Column, ...]
    expressions: tuple[str, ...]
    key: tuple[KeyColumn, ...]
    is_transactional: bool
    rows: int = 0
    row_bytes: int = 0

    @property
    def schema(self) -> pa.Schema:
        """Names and types of its rows."""
        return pa.schema(
            [pa.field(column.name or "", arrow_type(column)) for column in self.columns]
        )

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of the key, in its order."""
        return tuple(part.name for part in self.key)

    @property
    def select(self) -> str:
        """The statement that gives all rows, without conditions."""
        return f"SELECT {', '.join(self.expressions)} FROM {self.name}"  # noqa: S608  # quoted


def snapshot_table(
    name: TableName, create: str, *, flavor: Flavor, rows: int = 0, row_bytes: int = 0
) -> SnapshotTable:
    """Read a table's definition.

    Args:
        name: The name of the table.
        create: SHOW CREATE TABLE of a server whose session has no sql_mode.
        flavor: The kind of the server.
        rows: The server's estimate of the number of rows.
        row_bytes: The server's estimate of a row's bytes.

    Raises:
        UnsupportedError: If the table's rows cannot be had as the log has them.
    """
    table = source_table(name, create, flavor=flavor)
    for own in table.defined:
        if own.name in _ADDED:
            raise UnsupportedError(
                f"it has a column {own.name}, which is the name of one that binlane adds"
            )
    quoted = [quote(own.name) for own in table.defined]
    return SnapshotTable(
        name=name,
        create=table.create,
        columns=table.columns,
        expressions=tuple(map(expression, table.columns, table.defined, quoted)),
        key=table.key,
        is_transactional=table.is_transactional,
        rows=rows,
        row_bytes=row_bytes,
    )
