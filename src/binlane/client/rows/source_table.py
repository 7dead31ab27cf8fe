"""A server's table that is to be read: which columns it has, and by which key it is read.

Everything comes from its SHOW CREATE TABLE, read as the log's own statements are, so that names and
types are those of the log's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlane.client.rows.key_bounds import KeyColumn, key_column
from binlane.errors import UnsupportedError
from binlane.log.codec.columns import Column
from binlane.log.codec.types import Flavor
from binlane.names import TableName, quote
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.logged_columns import logged_form
from binlane.statements.sql.schema import ForeignKey, Key, Table
from binlane.statements.sql.table_definitions import TableColumn

_TRANSACTIONAL: Final = frozenset({"INNODB", "ROCKSDB", "TOKUDB", "NDB", "NDBCLUSTER"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table to read.

    Attributes:
        create: SHOW CREATE TABLE, without the AUTO_INCREMENT that grows.
        defined: Columns as the definition has them, in table order, also invisible and generated
            ones.
        columns: The same columns as the log has them, without the lengths of strings.
        key: The primary key as the log has it; empty for a table without one, which is read as a
            whole.
        key_parts: The columns of the key as the server prints them: with a length or DESC.
        is_transactional: Whether reads of the table are consistent.
        cascades: The foreign keys that change its rows with those of a parent, unseen by the log.
    """

    name: TableName
    create: str
    defined: tuple[TableColumn, ...]
    columns: tuple[Column, ...]
    key: tuple[KeyColumn, ...]
    key_parts: tuple[str, ...]
    is_transactional: bool
    cascades: tuple[ForeignKey, ...] = ()


def source_table(name: TableName, create: str, *, flavor: Flavor) -> SourceTable:
    """Read a table's definition.

    Args:
        name: The name of the table.
        create: SHOW CREATE TABLE of a server whose session has no sql_mode.
        flavor: The kind of the server.

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
    own, key = table.definition.columns, logged_key(table)
    columns = logged_columns(own, is_mysql=flavor is Flavor.MYSQL)
    return SourceTable(
        name=name,
        create=without_counter(create),
        defined=own,
        columns=columns,
        key=_key(() if key is None else key.columns, columns),
        key_parts=() if key is None else key.parts,
        is_transactional=table.engine in _TRANSACTIONAL,
        cascades=tuple(key for key in table.foreign_keys if key.acts),
    )


def logged_columns(columns: tuple[TableColumn, ...], *, is_mysql: bool) -> tuple[Column, ...]:
    """A table's columns as the log has them, without the lengths of strings.

    Raises:
        UnsupportedError: If the type of a column is not known.
    """
    return tuple(logged_form(own, index, is_mysql=is_mysql) for index, own in enumerate(columns))


def logged_key(table: Table) -> Key | None:
    """The key that the log calls a table's primary one; None if there is none.

    Without a PRIMARY KEY the servers take the first unique key, in the order in which they print
    them, that has whole columns of which none can be NULL.
    """
    nullable = {column.name.lower() for column in table.definition.columns if column.is_nullable}
    for key in table.unique_keys:
        is_whole = all(key.columns) and not any("(" in part for part in key.parts)
        if key.is_primary or (
            is_whole and nullable.isdisjoint(name.lower() for name in key.columns)
        ):
            return key
    return None


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
    options = create.rpartition(")")[2].replace(" ", "").upper()
    if table.is_sequence or "SEQUENCE=1" in options:
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
