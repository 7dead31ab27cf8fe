"""A table of the server that is to be read: which columns, how they are asked for, by which key.

Everything comes from its SHOW CREATE TABLE, read as the log's own statements are, so that names and
types are those of the log's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from binlane.errors import UnsupportedError
from binlane.log.codec.columns import Column
from binlane.log.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.schema import Table
from binlane.tables.columnar.arrow_types import arrow_type
from binlane.tables.columnar.table_schema import CHANGE_COLUMNS, SEQUENCE_COLUMN
from binlane.tables.landing.snapshot.cells import expression, logged_columns
from binlane.tables.landing.snapshot.snapshot_keys import KeyColumn, key_column

_TRANSACTIONAL: Final = frozenset({"INNODB", "ROCKSDB", "TOKUDB", "NDB", "NDBCLUSTER"})
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
    catalog = SchemaCatalog(flavor=flavor)
    catalog.apply(f"CREATE DATABASE {quote(name.database)}", database="")
    catalog.apply(create, database=name.database)
    table = catalog.table(name)
    if table is None or not table.is_complete:
        raise UnsupportedError("its definition is not understood")
    _check(table, create)
    own = table.definition.columns
    columns = logged_columns(own, is_mysql=flavor is Flavor.MYSQL)
    quoted = [quote(column.name) for column in own]
    return SnapshotTable(
        name=name,
        create=without_counter(create),
        columns=columns,
        expressions=tuple(map(expression, columns, own, quoted)),
        key=_key(logged_key(table), columns),
        is_transactional=table.engine in _TRANSACTIONAL,
        rows=rows,
        row_bytes=row_bytes,
    )


def logged_key(table: Table) -> tuple[str, ...]:
    """The columns of what the log calls a table's primary key; empty if there is none.

    Without a PRIMARY KEY the servers take the first unique key, in the order in which they print
    them, that has whole columns of which none can be NULL.
    """
    nullable = {column.name.lower() for column in table.definition.columns if column.is_nullable}
    for key in table.unique_keys:
        is_whole = all(key.columns) and not any("(" in part for part in key.parts)
        if key.is_primary or (
            is_whole and nullable.isdisjoint(name.lower() for name in key.columns)
        ):
            return key.columns
    return ()


def without_counter(create: str) -> str:
    """A definition without the next AUTO_INCREMENT, which changes with every row."""
    head, mark, tail = create.rpartition(" AUTO_INCREMENT=")
    number, space, rest = tail.partition(" ")
    return f"{head} {rest}" if mark and space and number.isdigit() else create


def _key(names: Sequence[str], columns: Sequence[Column]) -> tuple[KeyColumn, ...]:
    by_name = {(column.name or "").lower(): column for column in columns}
    return tuple(key_column(by_name[name.lower()]) for name in names)


def _check(table: Table, create: str) -> None:
    """Refuse what the log has rows of that a SELECT does not give."""
    if table.is_sequence:
        raise UnsupportedError("it is a sequence")
    if "WITH SYSTEM VERSIONING" in create.upper():
        raise UnsupportedError(
            "it is system-versioned: the log has rows of its history, which are not read"
        )
    if table.engine != "MEMORY" and any(
        key.is_unique and key.algorithm == "HASH" for key in table.keys
    ):
        raise UnsupportedError(
            "it has a unique key over a long column, for which the log has a hidden one"
        )
    for column in table.definition.columns:
        if column.name in _ADDED:
            raise UnsupportedError(
                f"it has a column {column.name}, which is the name of one that binlane adds"
            )
