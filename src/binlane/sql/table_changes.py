"""`Table` values as CREATE TABLE, CREATE INDEX and DROP INDEX make them.

Columns come from `table_definitions`, keys from `table_keys`; here they are put together. ALTER
TABLE is done in `table_alterations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from binlane.names import TableName
from binlane.sql.column_attributes import text_of
from binlane.sql.column_changes import (
    created_table,
)
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.schema import ForeignKey, Key, Table
from binlane.sql.sql_mode import Quoting
from binlane.sql.table_definitions import (
    TableColumn,
    create_table,
)
from binlane.sql.table_keys import (
    FOREIGN_KEY_ENGINES,
    has_key,
    in_order,
    inline_keys,
    inline_references,
    key_of,
    named,
    read_foreign_key,
    read_key,
    with_foreign_keys,
    without_key,
)
from binlane.sql.table_options import (
    TableOptions,
    read_options,
)
from binlane.sql.tokens import SqlSyntaxError, tokenise

_CREATED_CACHED_MAX: Final = 4096


def created(
    name: TableName,
    statement: str,
    *,
    engine: str,
    charset: str | None,
    quoting: Quoting,
    is_temporary: bool = False,
) -> Table:
    """The table of a CREATE TABLE; of one with a SELECT, what stands before that.

    Repeated statements, such as those that every script of a run begins with, are read once.

    Args:
        name: Of the table.
        statement: The whole text.
        engine: If it names none, in capitals.
        charset: Of the database; None where nothing tells it.
        quoting: Of the text.
        is_temporary: Whether it makes a temporary one.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    return _created(
        name,
        statement,
        engine,
        charset,
        is_temporary,
        quoting["ansi_quotes"],
        quoting["no_backslash_escapes"],
    )


@lru_cache(maxsize=_CREATED_CACHED_MAX)
def _created(  # noqa: PLR0913, PLR0917 - what one CREATE TABLE depends on
    name: TableName,
    statement: str,
    engine: str,
    charset: str | None,
    is_temporary: bool,  # noqa: FBT001 - as given
    ansi_quotes: bool,  # noqa: FBT001
    no_backslash_escapes: bool,  # noqa: FBT001
) -> Table:
    quoting = Quoting(ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
    definition = create_table(statement, charset=charset, quoting=quoting)
    parts = created_table(statement, **quoting)
    try:
        options = read_options(parts.options, statement)
        keys = inline_keys(parts.columns, statement)
        references = inline_references(parts.columns, name, statement)
        checks = []
        for part in parts.constraints:
            key, reference = read_key(part, statement), read_foreign_key(part, name)
            if key is not None:
                keys.append(key)
            elif reference is not None:
                references.append(reference)
            elif any(token.word == "CHECK" for token in part):
                checks.append(text_of(part, statement))
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    own_engine = options.engine or engine
    table = Table(
        name=name,
        definition=definition,
        engine=own_engine,
        is_temporary=is_temporary,
        is_partitioned=options.partitioning is not None,
        partitioning=options.partitioning or "",
        is_transactional_option=options.is_transactional is not False,
        union=union_of(options, name),
        create_statement=statement,
        options=_printed(options),
        checks=tuple(checks),
    )
    kept = references if own_engine in FOREIGN_KEY_ENGINES and not is_temporary else []
    return with_keys(table, named(keys), kept)


def query_of(statement: str, *, quoting: Quoting) -> str:
    """The query of a CREATE TABLE … SELECT; empty without one.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    parts = created_table(statement, **quoting)
    try:
        start = read_options(parts.options, statement).query_offset
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    return "" if start is None else statement[start:]


def with_selected(table: Table, selected: Sequence[TableColumn]) -> Table:
    """A table with the columns of its SELECT behind those that only its own list names.

    Source: MariaDB 10.11 sql/sql_table.cc, mysql_prepare_create_table.
    """
    own = {column.name.lower(): column for column in table.definition.columns}
    chosen = {column.name.lower() for column in selected}
    columns = (
        *(column for name, column in own.items() if name not in chosen),
        *(own.get(column.name.lower(), column) for column in selected),
    )
    definition = replace(table.definition, columns=columns)
    return with_keys(replace(table, definition=definition), table.keys, table.foreign_keys)


def indexed(table: Table, statement: str, *, quoting: Quoting) -> Table:
    """What CREATE INDEX makes of a table.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    cursor = Cursor(list(tokenise(statement, **quoting)))
    try:
        words = [token.word for token in cursor.until(("INDEX",))]
        cursor.expect("INDEX")
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        name = cursor.identifier()
        if if_not_exists and has_key(table.keys, name):
            return table
        cursor.until(("ON",))
        cursor.expect("ON")
        cursor.qualified_name()
        key = replace(
            key_of(cursor, statement, name=name),
            is_unique="UNIQUE" in words,
            is_fulltext="FULLTEXT" in words,
            is_spatial="SPATIAL" in words,
        )
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    others = [each for each in table.keys if each.name.lower() != name.lower()]
    return with_keys(table, [*others, key], table.foreign_keys)


def unindexed(table: Table, statement: str, *, quoting: Quoting) -> Table:
    """What DROP INDEX makes of a table.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    cursor = Cursor(list(tokenise(statement, **quoting)))
    try:
        cursor.until(("INDEX",))
        cursor.expect("INDEX")
        cursor.accept("IF", "EXISTS")
        name = cursor.identifier()
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    return with_keys(table, without_key(table.keys, name), table.foreign_keys)


def with_keys(table: Table, keys: Sequence[Key], references: Sequence[ForeignKey]) -> Table:
    """A table with other keys, and what follows from them for its columns."""
    columns = table.definition.columns
    in_primary = {column.lower() for key in keys if key.is_primary for column in key.columns}
    if in_primary:
        columns = tuple(
            replace(column, is_nullable=False) if column.name.lower() in in_primary else column
            for column in columns
        )
        table = replace(table, definition=replace(table.definition, columns=columns))
    return replace(
        table,
        keys=in_order(with_foreign_keys(keys, references), columns),
        foreign_keys=tuple(references),
        auto_increment=next((each.name for each in columns if each.is_auto_increment), None),
    )


def union_of(options: TableOptions, name: TableName) -> tuple[TableName, ...]:
    """The tables of UNION=(…), of a table of the engine MERGE."""
    return tuple(
        TableName(database or name.database, table) for database, table in options.union or ()
    )


def _printed(options: TableOptions) -> tuple[tuple[str, str], ...]:
    return tuple(options.given.items())
