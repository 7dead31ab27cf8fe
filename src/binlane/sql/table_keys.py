"""Keys and foreign keys of tables, as CREATE TABLE, CREATE INDEX and ALTER TABLE make them.

Names that the text leaves out are made up as the servers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from binlane.names import TableName, quote
from binlane.sql.column_attributes import column_attributes, text_of
from binlane.sql.column_changes import AddColumn, ModifyColumn
from binlane.sql.cursor import Cursor, split
from binlane.sql.schema import ForeignKey, Key
from binlane.sql.table_definitions import TableColumn
from binlane.sql.tokens import NAME_KINDS, Token

PRIMARY: Final = "PRIMARY"
FOREIGN_KEY_ENGINES: Final = frozenset({"INNODB", "NDBCLUSTER", "NDB"})
"""Others read foreign keys and forget them."""
_ACTIONS: Final = (
    ("SET", "NULL"),
    ("SET", "DEFAULT"),
    ("NO", "ACTION"),
    ("CASCADE",),
    ("RESTRICT",),
)


def inline_keys(columns: Iterable[AddColumn | ModifyColumn], statement: str) -> list[Key]:
    """Keys that stand in the definitions of columns, names left empty."""
    keys = []
    for column in columns:
        found = column_attributes(column.definition, statement)
        part = (quote(column.name),)
        if found.is_primary:
            keys.append(Key(name=PRIMARY, columns=(column.name,), is_unique=True, parts=part))
        if found.is_unique:
            keys.append(Key(name="", columns=(column.name,), is_unique=True, parts=part))
    return keys


def inline_references(
    columns: Iterable[AddColumn | ModifyColumn], table: TableName, statement: str
) -> list[ForeignKey]:
    """Foreign keys that stand in the definitions of columns."""
    found = []
    for column in columns:
        references = column_attributes(column.definition, statement).references
        if references:
            found.append(_reference(Cursor(references), table, (column.name,), name=""))
    return found


def read_key(tokens: Sequence[Token], statement: str) -> Key | None:
    """A key as it stands in a list of columns or behind ADD; None if it is something else.

    Raises:
        Stopped: Where it is not understood.
    """
    cursor = Cursor(tokens)
    name = _constraint_name(cursor)
    is_primary = cursor.accept("PRIMARY", "KEY")
    is_unique = is_primary or cursor.accept("UNIQUE")
    kind = cursor.accept_any(("FULLTEXT", "SPATIAL", "VECTOR"))
    is_key = bool(cursor.accept_any(("KEY", "INDEX"))) or is_unique or bool(kind)
    if not is_key:
        return None
    cursor.accept("IF", "NOT", "EXISTS")
    algorithm = ""
    if cursor.token.text != "(":
        if cursor.word not in {"USING", "TYPE"} and cursor.token.kind in NAME_KINDS:
            given = cursor.identifier()
            name = name if is_primary else given
        algorithm = _algorithm(cursor)
        if algorithm:
            cursor.advance()
    key = key_of(cursor, statement, name=PRIMARY if is_primary else name)
    return replace(
        key,
        is_unique=is_unique,
        is_fulltext=kind == "FULLTEXT",
        is_spatial=kind == "SPATIAL",
        algorithm=key.algorithm or algorithm,
    )


def key_of(cursor: Cursor, statement: str, *, name: str) -> Key:
    """A plain key from its parentheses to its end.

    Raises:
        Stopped: Where it is not understood.
    """
    parts = [_part(Cursor(part), statement) for part in split(cursor.group())]
    algorithm = parser = ""
    while not cursor.is_at_end:
        if cursor.accept("WITH", "PARSER"):
            parser = cursor.identifier()
        else:
            algorithm = _algorithm(cursor) or algorithm
            cursor.advance()
    return Key(
        name=name,
        columns=tuple(column for column, _ in parts),
        parts=tuple(printed for _, printed in parts),
        parser=parser or None,
        algorithm=algorithm,
    )


def read_foreign_key(tokens: Sequence[Token], table: TableName) -> ForeignKey | None:
    """A foreign key as it stands in a list of columns or behind ADD; None if it is none.

    Raises:
        Stopped: Where it is not understood.
    """
    cursor = Cursor(tokens)
    name = _constraint_name(cursor)
    if not cursor.accept("FOREIGN", "KEY"):
        return None
    cursor.accept("IF", "NOT", "EXISTS")
    if cursor.token.text != "(":
        given = cursor.identifier()
        name = name or given
    columns = tuple(Cursor(part).identifier() for part in split(cursor.group()))
    cursor.expect("REFERENCES")
    return _reference(cursor, table, columns, name=name)


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


def _rank(key: Key, nullable: Collection[str]) -> int:
    if key.is_primary:
        return 0
    if key.is_unique:
        return 2 if any(column.lower() in nullable for column in key.columns) else 1
    return 4 if key.is_fulltext else 3


def _constraint_name(cursor: Cursor) -> str:
    if not cursor.accept("CONSTRAINT"):
        return ""
    if cursor.word in {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}:
        return ""
    cursor.accept("IF", "NOT", "EXISTS")
    return cursor.identifier()


def _algorithm(cursor: Cursor) -> str:
    if cursor.accept_any(("USING", "TYPE")):
        return cursor.token.word
    return ""


def _part(cursor: Cursor, statement: str) -> tuple[str, str]:
    """One column of a key, and how it is printed."""
    if cursor.token.text == "(":  # an expression
        return "", f"({text_of(cursor.group(), statement)})"
    column = cursor.identifier()
    printed = quote(column)
    if cursor.token.text == "(":
        printed += f"({text_of(cursor.group(), statement)})"
    if cursor.accept("DESC"):
        printed += " DESC"
    return column, printed


def _reference(
    cursor: Cursor, table: TableName, columns: tuple[str, ...], *, name: str
) -> ForeignKey:
    database, parent = cursor.qualified_name()
    parent_columns: tuple[str, ...] = ()
    if cursor.token.text == "(":
        parent_columns = tuple(Cursor(part).identifier() for part in split(cursor.group()))
    actions = {"DELETE": "RESTRICT", "UPDATE": "RESTRICT"}
    while not cursor.is_at_end:
        if cursor.accept("ON") and cursor.word in actions:
            changed = cursor.advance().word
            for words in _ACTIONS:
                if cursor.accept(*words):
                    actions[changed] = " ".join(words)
        else:
            cursor.advance()
    return ForeignKey(
        table=table,
        columns=columns,
        parent=TableName(database or table.database, parent),
        on_delete=actions["DELETE"],
        on_update=actions["UPDATE"],
        name=name,
        parent_columns=parent_columns,
    )


def has_key(keys: Sequence[Key], name: str) -> bool:
    """Whether one of the keys has a name, in any case."""
    return any(key.name.lower() == name.lower() for key in keys)


def without_key(keys: Sequence[Key], name: str) -> list[Key]:
    """The keys but for that of a name, in any case."""
    return [key for key in keys if key.name.lower() != name.lower()]
