"""The columns that CREATE TABLE makes, and what ALTER TABLE does to them and to values in rows.

`analyse` tells which tables a statement changes; here stands what a reader needs who keeps a copy
of the rows, which no log writes anew after an ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from binlane.sql.clauses import skip_set_statement
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column's type and the value that rows get which are already there.

    Attributes:
        type_name: The type in capitals as one word, such as `VARCHAR` for `CHARACTER VARYING`.
        type_arguments: Texts in the parentheses behind it: `("10", "2")`.
        is_unsigned: It says UNSIGNED, ZEROFILL or SERIAL.
        is_nullable: It does not say NOT NULL.
        default: Tokens of the DEFAULT; empty if there is none.
        is_computed: Rows get values that the text does not tell: it is generated, or
            AUTO_INCREMENT.
        attributes: Tokens behind the type and its parentheses.
    """

    type_name: str
    type_arguments: tuple[str, ...] = ()
    is_unsigned: bool = False
    is_nullable: bool = True
    default: tuple[Token, ...] = ()
    is_computed: bool = False
    attributes: tuple[Token, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column.

    Attributes:
        name: Of the column.
        definition: Its type and default.
        is_first: It becomes the first.
        after: It comes behind this one; None with `is_first` False: at the end.
        if_not_exists: Nothing happens if there is one of that name.
    """

    name: str
    definition: ColumnDefinition
    is_first: bool = False
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column that is gone."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column that has another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumn:
    """A column with another definition, to which the server converts the values.

    Attributes:
        name: Of the column, after the statement.
        definition: Its new one.
        old_name: Before the statement.
        is_first: It becomes the first.
        after: It comes behind this one; None with `is_first` False: it stays where it is.
    """

    name: str
    definition: ColumnDefinition = field(compare=False)
    old_name: str = field(compare=False)
    is_first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows:
    """Rows come or go with their partition or tablespace.

    Attributes:
        action: Its words.
        is_all: All rows of the table go, and none comes.
    """

    action: str
    is_all: bool = False


ColumnChange = AddColumn | DropColumn | RenameColumn | ModifyColumn | ChangeRows

_NOT_COLUMNS: Final = frozenset(
    {
        "INDEX",
        "KEY",
        "KEYS",
        "CONSTRAINT",
        "UNIQUE",
        "PRIMARY",
        "FOREIGN",
        "FULLTEXT",
        "SPATIAL",
        "CHECK",
    }
)
"""What ADD, DROP and lists of columns may name instead of a column."""
_NOT_COLUMNS_BEFORE: Final = {
    "PERIOD": ("FOR",),
    "VECTOR": ("INDEX", "KEY"),
    "SYSTEM": ("VERSIONING",),
}
"""The same for words that may be names of columns, by what then follows."""
_LONG_TYPES: Final = (
    ("VARCHAR", ("CHARACTER", "VARYING")),
    ("VARCHAR", ("CHAR", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "CHARACTER", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "CHAR", "VARYING")),
    ("NVARCHAR", ("NATIONAL", "VARCHAR")),
    ("NVARCHAR", ("NATIONAL", "VARCHARACTER")),
    ("NCHAR", ("NATIONAL", "CHARACTER")),
    ("NCHAR", ("NATIONAL", "CHAR")),
    ("NVARCHAR", ("NCHAR", "VARYING")),
    ("NVARCHAR", ("NCHAR", "VARCHAR")),
    ("NVARCHAR", ("NCHAR", "VARCHARACTER")),
    ("DOUBLE", ("DOUBLE", "PRECISION")),
    ("MEDIUMBLOB", ("LONG", "VARBINARY")),
    ("MEDIUMTEXT", ("LONG", "CHARACTER", "VARYING")),
    ("MEDIUMTEXT", ("LONG", "CHAR", "VARYING")),
    ("MEDIUMTEXT", ("LONG", "VARCHARACTER")),
    ("MEDIUMTEXT", ("LONG", "VARCHAR")),
    ("MEDIUMTEXT", ("LONG",)),
    ("VARCHAR", ("VARCHARACTER",)),
    ("CHAR", ("CHARACTER",)),
)
"""Types by the words that stand for them, longer ones first."""
_CHANGES_ROWS: Final = (
    ("DROP", "PARTITION"),
    ("TRUNCATE", "PARTITION"),
    ("EXCHANGE", "PARTITION"),
    ("CONVERT", "PARTITION"),
    ("CONVERT", "TABLE"),
    ("DISCARD", "TABLESPACE"),
    ("IMPORT", "TABLESPACE"),
    ("DISCARD", "PARTITION"),
    ("IMPORT", "PARTITION"),
)
_EMPTIES: Final = ("TRUNCATE", "PARTITION")
# Behind the opening parenthesis: then it is no list of columns.
_NO_COLUMNS_FOLLOW: Final = frozenset({"LIKE", "SELECT", "WITH", "VALUES", "TABLE"})
_CREATED_CACHED_MAX: Final = 64
_UNSIGNED_WORDS: Final = frozenset({"UNSIGNED", "ZEROFILL"})
_COMPUTED_WORDS: Final = frozenset({"AS", "GENERATED", "AUTO_INCREMENT", "SERIAL"})
DEFAULT_ENDS: Final = frozenset(
    {
        "NOT",
        "NULL",
        "COMMENT",
        "UNIQUE",
        "PRIMARY",
        "KEY",
        "CHECK",
        "CONSTRAINT",
        "REFERENCES",
        "COLUMN_FORMAT",
        "STORAGE",
        "COMPRESSED",
        "INVISIBLE",
        "VISIBLE",
        "COLLATE",
        "ON",
        "FIRST",
        "AFTER",
        "AUTO_INCREMENT",
        "WITH",
        "WITHOUT",
        "AS",
        "GENERATED",
        "VIRTUAL",
        "STORED",
        "PERSISTENT",
    }
)
"""Words that end the DEFAULT of a column, outside of parentheses."""


def column_changes(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> tuple[ColumnChange, ...]:
    """Read an ALTER TABLE.

    Args:
        statement: One that `analyse` knows as ALTER TABLE.
        ansi_quotes: sql_mode ANSI_QUOTES.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.

    Returns:
        What happens to columns and rows, in the order of the text; names of the table, keys and
        options are left out.

    Raises:
        SqlSyntaxError: If the text is no ALTER TABLE that can be understood.
    """
    actions = alter_actions(
        statement, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes
    )
    try:
        return tuple(change for action in actions for change in _read_action(Cursor(action)))
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None


def alter_actions(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> list[list[Token]]:
    """The tokens of each action of an ALTER TABLE; arguments and errors of `column_changes`."""
    cursor = _cursor(statement, ansi_quotes, no_backslash_escapes)
    try:
        _skip_head(cursor)
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    return split([token for token in cursor.rest() if token.text != ";"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTable:
    """The parts of a CREATE TABLE.

    Attributes:
        columns: In order.
        constraints: Tokens of each key, foreign key, check or period in the list of columns.
        options: What stands behind the list: options, partitions, a SELECT.
    """

    columns: tuple[AddColumn, ...] = ()
    constraints: tuple[tuple[Token, ...], ...] = ()
    options: tuple[Token, ...] = ()


def created_columns(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> tuple[AddColumn, ...]:
    """Read a CREATE TABLE; the arguments are those of `column_changes`.

    Returns:
        Its columns in order; none if it has no list of columns (LIKE).

    Raises:
        SqlSyntaxError: If the text is no CREATE TABLE that can be understood.
    """
    return created_table(
        statement, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes
    ).columns


@lru_cache(maxsize=_CREATED_CACHED_MAX)
def created_table(
    statement: str, *, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> CreatedTable:
    """Read a CREATE TABLE; the arguments and errors are those of `created_columns`."""
    cursor = _cursor(statement, ansi_quotes, no_backslash_escapes)
    try:
        skip_set_statement(cursor)
        cursor.expect("CREATE")
        cursor.accept("OR", "REPLACE")
        cursor.accept("TEMPORARY")
        cursor.expect("TABLE")
        cursor.accept("IF", "NOT", "EXISTS")
        cursor.qualified_name()
        inside = cursor.ahead(1)
        if cursor.token.text != "(" or inside.text == "(" or inside.word in _NO_COLUMNS_FOLLOW:
            return CreatedTable(options=tuple(cursor.rest()))
        parts = [part for part in split(cursor.group()) if part]
        columns = [part for part in parts if not _is_no_column(Cursor(part))]
        return CreatedTable(
            columns=tuple(_read_column(Cursor(part), if_not_exists=False) for part in columns),
            constraints=tuple(tuple(part) for part in parts if _is_no_column(Cursor(part))),
            options=tuple(cursor.rest()),
        )
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None


def _cursor(statement: str, ansi_quotes: bool, no_backslash_escapes: bool) -> Cursor:  # noqa: FBT001 - as given
    return Cursor(
        list(
            tokenise(statement, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
        )
    )


def _skip_head(cursor: Cursor) -> None:
    """ALTER TABLE and the table's name."""
    skip_set_statement(cursor)
    cursor.expect("ALTER")
    cursor.accept_any(("ONLINE", "OFFLINE"))
    cursor.accept("IGNORE")
    cursor.expect("TABLE")
    cursor.accept("IF", "EXISTS")
    cursor.qualified_name()
    if cursor.accept("WAIT"):
        cursor.advance()
    cursor.accept("NOWAIT")


def _read_action(cursor: Cursor) -> Sequence[ColumnChange]:
    for words in _CHANGES_ROWS:
        if cursor.accept(*words):
            is_all = words == _EMPTIES and cursor.word == "ALL"
            return (ChangeRows(action=" ".join(words), is_all=is_all),)
    verb = cursor.accept_any(("ADD", "DROP", "CHANGE", "MODIFY", "RENAME"))
    if not verb:
        return ()
    is_column = cursor.accept("COLUMN")
    if not is_column and (verb == "RENAME" or _is_no_column(cursor) or cursor.word == "PARTITION"):
        return ()
    if verb == "ADD":
        return _read_add(cursor)
    if verb == "DROP":
        cursor.accept("IF", "EXISTS")
        return (DropColumn(name=cursor.identifier()),)
    cursor.accept("IF", "EXISTS")
    old = cursor.identifier()
    if verb == "MODIFY":
        return (_read_modify(cursor, old, old),)
    if verb == "RENAME":
        cursor.expect("TO")
    new = cursor.identifier()
    renamed = (RenameColumn(old=old, new=new),) if new != old else ()
    return renamed if verb == "RENAME" else (*renamed, _read_modify(cursor, old, new))


def _column_parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """The columns of a list of columns and keys."""
    return [part for part in split(tokens) if part and not _is_no_column(Cursor(part))]


def _is_no_column(cursor: Cursor) -> bool:
    return cursor.word in _NOT_COLUMNS or cursor.ahead(1).word in _NOT_COLUMNS_BEFORE.get(
        cursor.word, ()
    )


def _read_add(cursor: Cursor) -> Sequence[ColumnChange]:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.token.text == "(":
        columns = _column_parts(cursor.group())
        return [_read_column(Cursor(part), if_not_exists=if_not_exists) for part in columns]
    return (_read_column(cursor, if_not_exists=if_not_exists),)


def _read_modify(cursor: Cursor, old_name: str, name: str) -> ModifyColumn:
    definition, is_first, after = _read_definition(cursor)
    return ModifyColumn(
        name=name, definition=definition, old_name=old_name, is_first=is_first, after=after
    )


def _read_column(cursor: Cursor, *, if_not_exists: bool) -> AddColumn:
    name = cursor.identifier()
    definition, is_first, after = _read_definition(cursor)
    return AddColumn(
        name=name,
        definition=definition,
        is_first=is_first,
        after=after,
        if_not_exists=if_not_exists,
    )


def _read_definition(cursor: Cursor) -> tuple[ColumnDefinition, bool, str | None]:
    """A type with its attributes, and the place that they end with."""
    rest = Cursor(cursor.rest())
    type_name = _read_type(rest)
    arguments: tuple[str, ...] = ()
    if rest.token.text == "(":
        arguments = tuple("".join(t.value for t in part) for part in split(rest.group()))
    attributes = rest.rest()
    words = [token.word for token in attributes]
    is_first, after = _place(attributes)
    definition = ColumnDefinition(
        type_name=type_name,
        type_arguments=arguments,
        is_unsigned=type_name == "SERIAL" or not _UNSIGNED_WORDS.isdisjoint(words),
        is_nullable=type_name != "SERIAL" and not _says_not_null(words),
        default=_default(attributes),
        is_computed=type_name == "SERIAL" or not _COMPUTED_WORDS.isdisjoint(words),
        attributes=tuple(attributes),
    )
    return definition, is_first, after


def _read_type(cursor: Cursor) -> str:
    for name, words in _LONG_TYPES:
        if cursor.accept(*words):
            return name
    # MariaDB says whose type it means where sql_mode could make it another: `mariadb_schema.date`.
    return cursor.qualified_name()[1].upper()


def _says_not_null(words: Sequence[str]) -> bool:
    return not {("NOT", "NULL"), ("PRIMARY", "KEY")}.isdisjoint(pairwise(words))


def _place(tokens: Sequence[Token]) -> tuple[bool, str | None]:
    """Whether a definition ends with FIRST, and the column behind its AFTER."""
    is_first = bool(tokens) and tokens[-1].word == "FIRST"
    after = next((token.value for word, token in pairwise(tokens) if word.word == "AFTER"), None)
    return is_first, after


def _default(attributes: Sequence[Token]) -> tuple[Token, ...]:
    cursor = Cursor(attributes)
    cursor.until(("DEFAULT",))
    if not cursor.accept("DEFAULT"):
        return ()
    # NULL is both a default and the beginning of another attribute.
    if cursor.word == "NULL":
        return (cursor.advance(),)
    return tuple(cursor.until(DEFAULT_ENDS))


def literal(tokens: Sequence[Token]) -> str | None:
    """The text of a default that is a constant: a string, a number with its sign, or a word.

    Returns:
        The value as text; TRUE and FALSE as 1 and 0; None if it is NULL.

    Raises:
        ValueError: If it is an expression.
    """
    sign = ""
    if len(tokens) == 2 and tokens[0].text in {"-", "+"}:
        sign, tokens = tokens[0].text.strip("+"), tokens[1:]
    if len(tokens) != 1:
        raise ValueError("an expression")
    (token,) = tokens
    if token.kind is TokenKind.NUMBER and token.text[:2].lower() not in {"0x", "0b", "x'", "b'"}:
        return sign + token.text
    if token.kind is TokenKind.STRING and not sign:
        return token.value
    if token.word in {"TRUE", "FALSE"}:
        return str(int(token.word == "TRUE"))
    if token.word == "NULL":
        return None
    raise ValueError("an expression")
