"""`Table` values as CREATE TABLE, CREATE INDEX and ALTER TABLE make them.

Columns come from `table_definitions`, keys from `table_keys`; here they are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from binlane.names import TableName
from binlane.sql.column_attributes import text_of
from binlane.sql.column_changes import (
    AddColumn,
    ColumnChange,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    alter_actions,
    column_changes,
    created_table,
)
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.schema import ForeignKey, Key, Table
from binlane.sql.sql_mode import Quoting
from binlane.sql.table_definitions import (
    TableColumn,
    alter_table,
    create_table,
)
from binlane.sql.table_keys import (
    FOREIGN_KEY_ENGINES,
    PRIMARY,
    in_order,
    inline_keys,
    inline_references,
    key_of,
    named,
    read_foreign_key,
    read_key,
    with_foreign_keys,
)
from binlane.sql.table_options import (
    PRINTED_OPTIONS,
    TableOptions,
    printed_engine,
    read_options,
)
from binlane.sql.tokens import SqlSyntaxError, Token, tokenise

_CREATED_CACHED_MAX: Final = 4096
_OPTION_STARTS: Final = frozenset(
    (*PRINTED_OPTIONS, "TYPE", "CHARACTER", "CHAR", "DEFAULT", "REMOVE", "PARTITION", "UNION")
)


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
        union=_union(options, name),
        create_statement=statement,
        options=_printed(options),
        checks=tuple(checks),
    )
    kept = references if own_engine in FOREIGN_KEY_ENGINES and not is_temporary else []
    return _with_keys(table, named(keys), kept)


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
    return _with_keys(replace(table, definition=definition), table.keys, table.foreign_keys)


def altered(
    table: Table, statement: str, *, engine: str, charset: str | None, quoting: Quoting
) -> Table:
    """What an ALTER TABLE makes of a table; its name stays.

    Args:
        table: Before it.
        statement: The whole text.
        engine: The default one, for ENGINE=DEFAULT and such; not used else.
        charset: Of the database.
        quoting: Of the text.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    definition = alter_table(table.definition, statement, charset=charset, quoting=quoting)
    changes = column_changes(statement, **quoting)
    keys, references = _follow_columns(table, changes)
    table = replace(table, definition=definition)
    try:
        for action in alter_actions(statement, **quoting):
            if action:
                table, keys, references = _act(table, keys, references, action, statement)
        new_columns = [each for each in changes if isinstance(each, AddColumn | ModifyColumn)]
        added = [
            key
            for key in inline_keys(new_columns, statement)
            if not (key.is_primary and any(other.is_primary for other in keys))
        ]
        keys += named(added, keys)
        references += inline_references(new_columns, table.name, statement)
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    if table.engine not in FOREIGN_KEY_ENGINES:
        references = []
    table = replace(table, engine=table.engine or engine)
    return _with_keys(table, keys, references)


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
        if if_not_exists and _has(table.keys, name):
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
    return _with_keys(table, [*others, key], table.foreign_keys)


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
    return _with_keys(table, _without(table.keys, name), table.foreign_keys)


def _with_keys(table: Table, keys: Sequence[Key], references: Sequence[ForeignKey]) -> Table:
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


def _union(options: TableOptions, name: TableName) -> tuple[TableName, ...]:
    return tuple(
        TableName(database or name.database, table) for database, table in options.union or ()
    )


def _printed(options: TableOptions) -> tuple[tuple[str, str], ...]:
    return tuple(options.given.items())


def _has(keys: Sequence[Key], name: str) -> bool:
    return any(key.name.lower() == name.lower() for key in keys)


def _without(keys: Sequence[Key], name: str) -> list[Key]:
    return [key for key in keys if key.name.lower() != name.lower()]


def _follow_columns(
    table: Table, changes: Sequence[ColumnChange]
) -> tuple[list[Key], list[ForeignKey]]:
    """Keys behind the renaming and dropping of columns."""
    dropped = {each.name.lower() for each in changes if isinstance(each, DropColumn)}
    renamed = {each.old.lower(): each.new for each in changes if isinstance(each, RenameColumn)}
    keys = []
    for key in table.keys:
        kept = [
            (column, part)
            for column, part in zip(key.columns, key.parts or key.columns, strict=False)
            if column.lower() not in dropped
        ]
        if kept:
            keys.append(
                replace(
                    key,
                    columns=tuple(renamed.get(column.lower(), column) for column, _ in kept),
                    parts=tuple(_renamed_part(column, part, renamed) for column, part in kept),
                )
            )
    references = [
        replace(each, columns=tuple(renamed.get(name.lower(), name) for name in each.columns))
        for each in table.foreign_keys
    ]
    return keys, references


def _renamed_part(column: str, part: str, renamed: dict[str, str]) -> str:
    new = renamed.get(column.lower())
    return part if new is None else part.replace(column, new, 1)


_State = tuple[Table, list[Key], list[ForeignKey]]


def _act(
    table: Table,
    keys: list[Key],
    references: list[ForeignKey],
    action: Sequence[Token],
    statement: str,
) -> _State:
    """One action of ALTER TABLE, as far as it is not about columns."""
    cursor = Cursor(action)
    if cursor.accept("ADD"):
        return _add(table, keys, references, cursor.rest(), statement)
    if cursor.accept("DROP"):
        keys, references = _drop(keys, references, cursor)
    elif cursor.accept("RENAME", "INDEX") or cursor.accept("RENAME", "KEY"):
        cursor.accept("IF", "EXISTS")
        old = cursor.identifier()
        cursor.expect("TO")
        new = cursor.identifier()
        keys = [replace(key, name=new) if key.name == old else key for key in keys]
    elif cursor.accept("ALTER"):
        table = _alter_default(table, cursor, statement)
    elif cursor.word in _OPTION_STARTS or cursor.word == "ENGINE":
        table = _with_options(table, action, statement)
    return table, keys, references


def _add(
    table: Table,
    keys: list[Key],
    references: list[ForeignKey],
    tokens: Sequence[Token],
    statement: str,
) -> _State:
    if not Cursor(tokens).word:
        return table, keys, references
    key, reference = read_key(tokens, statement), read_foreign_key(tokens, table.name)
    if key is not None and not (key.name and _has(keys, key.name)):
        keys = [*keys, *named([key], keys)]
    elif reference is not None:
        references = [*references, reference]
    return table, keys, references


def _drop(
    keys: list[Key], references: list[ForeignKey], cursor: Cursor
) -> tuple[list[Key], list[ForeignKey]]:
    kind = cursor.accept_any(("PRIMARY", "INDEX", "KEY", "FOREIGN", "CONSTRAINT"))
    if kind == "PRIMARY":
        return _without(keys, PRIMARY), references
    if not kind:
        return keys, references
    cursor.accept("KEY")
    cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    if kind in {"INDEX", "KEY", "CONSTRAINT"}:
        keys = _without(keys, name)
    if kind in {"FOREIGN", "CONSTRAINT"}:
        references = [each for each in references if each.name.lower() != name.lower()]
    return keys, references


def _alter_default(table: Table, cursor: Cursor, statement: str) -> Table:
    """ALTER COLUMN … SET DEFAULT and DROP DEFAULT."""
    cursor.accept("COLUMN")
    if cursor.word in {"INDEX", "CHECK", "CONSTRAINT"} and cursor.ahead(1).word != "SET":
        return table
    name = cursor.identifier().lower()
    change: Callable[[TableColumn], TableColumn]
    if cursor.accept("SET", "DEFAULT"):
        value = cursor.rest()
        text = text_of(value, statement)
        has_expression = bool(value) and any(token.text == "(" for token in value)

        def change(column: TableColumn) -> TableColumn:
            return replace(column, default=text, has_default_expression=has_expression)
    elif cursor.accept("DROP", "DEFAULT"):

        def change(column: TableColumn) -> TableColumn:
            return replace(column, default=None, has_default_expression=False)
    else:
        return table
    columns = tuple(
        change(column) if column.name.lower() == name else column
        for column in table.definition.columns
    )
    return replace(table, definition=replace(table.definition, columns=columns))


def _with_options(table: Table, action: Sequence[Token], statement: str) -> Table:
    options = read_options(action, statement)
    given = {**dict(table.options), **options.given}
    if options.engine is not None:
        given["ENGINE"] = printed_engine(options.engine)
    return replace(
        table,
        engine=options.engine or table.engine,
        is_partitioned=(table.is_partitioned or options.partitioning is not None)
        and not options.removes_partitioning,
        partitioning=""
        if options.removes_partitioning
        else options.partitioning or table.partitioning,
        is_transactional_option=table.is_transactional_option
        if options.is_transactional is None
        else options.is_transactional,
        union=table.union if options.union is None else _union(options, table.name),
        options=tuple(given.items()),
    )
