"""`Table` values as ALTER TABLE makes them of others, action by action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from binlane.sql.column_attributes import text_of
from binlane.sql.column_changes import (
    AddColumn,
    ColumnChange,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    alter_actions,
    column_changes,
)
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.schema import ForeignKey, Key, Table
from binlane.sql.sql_mode import Quoting
from binlane.sql.table_changes import union_of, with_keys
from binlane.sql.table_definitions import (
    TableColumn,
    alter_table,
)
from binlane.sql.table_keys import (
    FOREIGN_KEY_ENGINES,
    PRIMARY,
    has_key,
    inline_keys,
    inline_references,
    named,
    read_foreign_key,
    read_key,
    without_key,
)
from binlane.sql.table_options import (
    PRINTED_OPTIONS,
    printed_engine,
    read_options,
)
from binlane.sql.tokens import SqlSyntaxError, Token

_OPTION_STARTS: Final = frozenset(
    (*PRINTED_OPTIONS, "TYPE", "CHARACTER", "CHAR", "DEFAULT", "REMOVE", "PARTITION", "UNION")
)


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
    return with_keys(table, keys, references)


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
    if key is not None and not (key.name and has_key(keys, key.name)):
        keys = [*keys, *named([key], keys)]
    elif reference is not None:
        references = [*references, reference]
    return table, keys, references


def _drop(
    keys: list[Key], references: list[ForeignKey], cursor: Cursor
) -> tuple[list[Key], list[ForeignKey]]:
    kind = cursor.accept_any(("PRIMARY", "INDEX", "KEY", "FOREIGN", "CONSTRAINT"))
    if kind == "PRIMARY":
        return without_key(keys, PRIMARY), references
    if not kind:
        return keys, references
    cursor.accept("KEY")
    cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    if kind in {"INDEX", "KEY", "CONSTRAINT"}:
        keys = without_key(keys, name)
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
        union=table.union if options.union is None else union_of(options, table.name),
        options=tuple(given.items()),
    )
