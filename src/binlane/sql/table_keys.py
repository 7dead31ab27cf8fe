"""Keys and foreign keys of tables, as CREATE TABLE, CREATE INDEX and ALTER TABLE make them.

Names that the text leaves out are made up as the servers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from binlane.names import TableName, quote
from binlane.sql.facts import StatementFacts
from binlane.sql.schema import ForeignKey, Key
from binlane.sql.table_definitions import TableColumn
from binlane.sql.tree.definitions import Column, KeyDefinition, KeyPart, Reference

PRIMARY: Final = "PRIMARY"
FOREIGN_KEY_ENGINES: Final = frozenset({"INNODB", "NDBCLUSTER", "NDB"})
"""Others read foreign keys and forget them."""


def column_keys(columns: Iterable[Column]) -> list[Key]:
    """Keys that stand in the definitions of columns, names left empty."""
    keys = []
    for column in columns:
        part = (quote(column.name),)
        if column.key == PRIMARY:
            keys.append(Key(name=PRIMARY, columns=(column.name,), is_unique=True, parts=part))
        if "UNIQUE" in column.words:
            keys.append(Key(name="", columns=(column.name,), is_unique=True, parts=part))
    return keys


def column_references(columns: Iterable[Column], table: TableName) -> list[ForeignKey]:
    """Foreign keys that stand in the definitions of columns."""
    return [
        _foreign_key(column.references, table, (column.name,), name="")
        for column in columns
        if column.references is not None
    ]


def key_of(node: KeyDefinition, facts: StatementFacts) -> Key:
    """A key that is no foreign one."""
    is_primary = node.kind == PRIMARY
    return Key(
        name=PRIMARY if is_primary else node.name or node.constraint,
        columns=tuple(part.column for part in node.parts),
        is_unique=is_primary or node.kind == "UNIQUE",
        is_fulltext=node.kind == "FULLTEXT",
        is_spatial=node.kind == "SPATIAL",
        parts=tuple(_part(part, facts) for part in node.parts),
        parser=node.parser or None,
        algorithm=node.algorithm,
    )


def foreign_key_of(node: KeyDefinition, table: TableName) -> ForeignKey:
    """A foreign key of a table."""
    assert node.references is not None  # the grammar demands it
    columns = tuple(part.column for part in node.parts)
    return _foreign_key(node.references, table, columns, name=node.constraint or node.name)


def named(keys: Iterable[Key], others: Sequence[Key] = ()) -> list[Key]:
    """Keys with names for those that have none, different from each other and from `others`.

    Source: MariaDB 10.11 sql/sql_table.cc, make_unique_key_name.
    """
    made: list[Key] = []
    pending = list(keys)
    taken = {key.name.lower() for key in (*others, *pending) if key.name}
    for key in pending:
        if key.name:
            made.append(key)
            continue
        name = made_up_name(key.columns[0] or "functional_index", taken)
        taken.add(name.lower())
        made.append(replace(key, name=name))
    return made


def made_up_name(column: str, taken: Collection[str]) -> str:
    """A key's name: that of its first column, with a number if it is taken."""
    if column.lower() not in taken and column.upper() != PRIMARY:
        return column
    return next(
        name for number in range(2, 10_000) if (name := f"{column}_{number}").lower() not in taken
    )


def in_order(keys: Iterable[Key], columns: Sequence[TableColumn]) -> tuple[Key, ...]:
    """Keys as the servers order them: primary, unique without NULL, unique, others, full-text.

    Source: MariaDB 10.11 sql/sql_table.cc, sort_keys.
    """
    nullable = {column.name.lower() for column in columns if column.is_nullable}
    return tuple(sorted(keys, key=lambda key: _rank(key, nullable)))


def with_foreign_keys(keys: Sequence[Key], references: Iterable[ForeignKey]) -> list[Key]:
    """Keys, with those that the server adds for foreign keys that none of them serves."""
    made = list(keys)
    for reference in references:
        width = len(reference.columns)
        wanted = [column.lower() for column in reference.columns]
        if any([name.lower() for name in key.columns[:width]] == wanted for key in made):
            continue
        parts = tuple(quote(column) for column in reference.columns)
        key = Key(name=reference.name, columns=reference.columns, parts=parts)
        made += named([key], made)
    return made


def has_key(keys: Sequence[Key], name: str) -> bool:
    """Whether one of the keys has a name, in any case."""
    return any(key.name.lower() == name.lower() for key in keys)


def without_key(keys: Sequence[Key], name: str) -> list[Key]:
    """The keys but for that of a name, in any case."""
    return [key for key in keys if key.name.lower() != name.lower()]


def _rank(key: Key, nullable: Collection[str]) -> int:
    if key.is_primary:
        return 0
    if key.is_unique:
        return 2 if any(column.lower() in nullable for column in key.columns) else 1
    return 4 if key.is_fulltext else 3


def _part(part: KeyPart, facts: StatementFacts) -> str:
    """One column of a key as it is printed."""
    if part.expression is not None:
        printed = f"({facts.text_of(part.expression)})"
    else:
        printed = quote(part.column)
    if part.length is not None:
        printed += f"({part.length})"
    return printed + " DESC" * part.is_descending


def _foreign_key(
    node: Reference, table: TableName, columns: tuple[str, ...], *, name: str
) -> ForeignKey:
    """A reference without a database is to the table's own, whatever the default one is."""
    return ForeignKey(
        table=table,
        columns=columns,
        parent=TableName(node.table.database or table.database, node.table.name),
        on_delete=node.on_delete or "RESTRICT",
        on_update=node.on_update or "RESTRICT",
        name=name,
        parent_columns=node.columns,
    )
