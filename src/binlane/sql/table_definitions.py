"""The columns of tables as CREATE TABLE and ALTER TABLE make them, with their character sets.

Names and order are exact, also where one ALTER TABLE renames, moves and adds at once. Which tables
there are is the `catalog`'s; whether a definition is that of a TABLE_MAP is asked in `column_fit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.codec.charsets import BINARY, charset_of, collation_of
from binlane.sql.column_attributes import column_attributes
from binlane.sql.column_changes import (
    AddColumn,
    ColumnChange,
    ColumnDefinition,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    alter_actions,
    column_changes,
    created_table,
)
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.sql_mode import Quoting
from binlane.sql.tokens import SqlSyntaxError, Token

_TEXT_TYPES: Final = frozenset(
    {
        *("CHAR", "VARCHAR", "VARCHAR2", "ENUM", "SET"),
        *("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"),
    }
)
_NATIONAL_TYPES: Final = frozenset({"NCHAR", "NVARCHAR"})
_BYTE_TYPES: Final = frozenset(
    {
        *("BINARY", "VARBINARY", "RAW", "VECTOR"),
        *("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
        *("INET4", "INET6", "UUID"),
    }
)
# Words of a column's definition that stand for a character set.
_CHARSET_WORDS: Final = {"BYTE": BINARY, "ASCII": "latin1", "UNICODE": "ucs2"}
_COLUMN_ACTIONS: Final = frozenset({"ADD", "DROP", "CHANGE", "MODIFY", "ALTER", "RENAME", "ORDER"})
_OPTIONS_END: Final = frozenset({"PARTITION", "SELECT", "AS", "UNION"})
_NATIONAL_CHARSET: Final = "utf8mb3"
_JSON_CHARSET: Final = "utf8mb4"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column as its table's definition has it.

    Attributes:
        name: As last written.
        type_name: As in `ColumnDefinition`.
        arguments: Texts in the parentheses behind the type; the members of an ENUM or SET.
        is_unsigned: It says UNSIGNED, ZEROFILL or SERIAL.
        charset: Of text; `binary` for bytes; None where it has none, or nothing tells it.
        is_visible: It is not INVISIBLE.
        is_generated: Its values are computed.
        is_nullable: It can be NULL, as far as its own text says; a primary key says more.
        is_auto_increment: AUTO_INCREMENT, or SERIAL.
        is_zerofill: ZEROFILL.
        default: Text behind DEFAULT as the statement has it; None without.
        has_default_expression: That text is no constant: `uuid()`, `(1 + 1)`, `now()`.
        on_update: Text behind ON UPDATE; None without.
        generated: The expression of a generated column; None without.
        is_stored: A generated column's values are STORED (PERSISTENT).
        collation: Named for it; None without.
        comment: Text behind COMMENT; None without.
        check: CHECK of the column; None without.
        explicit_null: It says NULL.
        names_charset: It names a character set or collation of its own.
        has_no_default: It may be NULL, but that is not its default: made of one that cannot be.
    """

    name: str
    type_name: str
    arguments: tuple[str, ...] = ()
    is_unsigned: bool = False
    charset: str | None = None
    is_visible: bool = True
    is_generated: bool = False
    is_nullable: bool = True
    is_auto_increment: bool = False
    is_zerofill: bool = False
    default: str | None = None
    has_default_expression: bool = False
    on_update: str | None = None
    generated: str | None = None
    is_stored: bool = False
    collation: str | None = None
    comment: str | None = None
    check: str | None = None
    explicit_null: bool = False
    names_charset: bool = False
    has_no_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table's columns, and what decides those to come.

    Attributes:
        columns: In order, without those that the server hides.
        charset: Default of new columns; None where nothing tells it.
        is_versioned: MariaDB's system versioning without columns of its own: the log has
            `row_start` and `row_end` behind the others.
        has_unique_key: It may have a unique key over a long column, for which MariaDB's log has a
            hidden column behind the others.
    """

    columns: tuple[TableColumn, ...]
    charset: str | None = None
    is_versioned: bool = False
    has_unique_key: bool = False


def create_table(statement: str, *, charset: str | None, quoting: Quoting) -> TableDefinition:
    """Read a CREATE TABLE with a list of columns.

    Args:
        statement: Neither LIKE nor SELECT.
        charset: Of the database; None where nothing tells it.
        quoting: Of the text.

    Raises:
        SqlSyntaxError: If it cannot be understood.
    """
    created = created_table(statement, **quoting)
    columns, options = created.columns, created.options
    try:
        own = named_charset(options)
        default = charset if own is None else own
        made = tuple(defined_column(each, default, statement) for each in columns)
        return TableDefinition(
            columns=made,
            charset=default,
            is_versioned=_is_versioned(options, columns),
            # Rather too often: the log then must still have more columns than the table.
            has_unique_key="UNIQUE" in statement.upper(),
        )
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None


def alter_table(
    table: TableDefinition, statement: str, *, charset: str | None, quoting: Quoting
) -> TableDefinition:
    """What an ALTER TABLE makes of a table.

    Columns to add that are there, and columns to change that are not, are left alone: then the
    definition is of a later time than the statement.

    Args:
        table: Before it.
        statement: The whole text.
        charset: Of the database.
        quoting: Of the text.

    Raises:
        SqlSyntaxError: If it cannot be understood, or puts a column behind one that is not there.
    """
    changes = column_changes(statement, **quoting)
    actions = [action for action in alter_actions(statement, **quoting) if action]
    default, converted = table.charset, False
    is_versioned = table.is_versioned
    try:
        for action in actions:
            words = [token.word for token in action]
            if words[0] not in _COLUMN_ACTIONS and _names_charset(words):
                default = named_charset(action) or charset
                converted |= words[:2] == ["CONVERT", "TO"]
            elif words[1:3] == ["SYSTEM", "VERSIONING"]:
                is_versioned = words[0] == "ADD"
        columns = table.columns
        if converted:
            columns = tuple(_converted(column, default) for column in columns)
        columns = _rearranged(columns, changes, default, statement)
    except Stopped as stopped:
        raise SqlSyntaxError(statement, stopped.token.offset, stopped.expected) from None
    except LookupError as error:
        raise SqlSyntaxError(statement, 0, f"column {error}") from None
    is_versioned &= not any(
        isinstance(change, AddColumn) and _is_row_start(change.definition) for change in changes
    )
    return TableDefinition(
        columns=columns,
        charset=default,
        is_versioned=is_versioned,
        has_unique_key=table.has_unique_key or "UNIQUE" in statement.upper(),
    )


def named_charset(tokens: Sequence[Token]) -> str | None:
    """The character set that options name, by itself or by a collation; None if they name none.

    Raises:
        Stopped: If a parenthesis has no partner.
    """
    cursor = Cursor(tokens)
    found = by_collation = None
    while not cursor.is_at_end and cursor.word not in _OPTIONS_END:
        if cursor.token.text == "(":
            cursor.group()
        elif cursor.accept("COLLATE"):
            cursor.accept_operator("=")
            by_collation = _charset_of_collation(cursor.advance().value)
        elif any(cursor.accept(*words) for words in _SET_CHARSET):
            cursor.accept_operator("=")
            name = cursor.advance()
            found = None if name.word == "DEFAULT" else _known(name.value.lower())
        else:
            cursor.advance()
    return found or by_collation


_SET_CHARSET: Final = (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",))


def _names_charset(words: Sequence[str]) -> bool:
    return not {"CHARACTER", "CHARSET", "CHAR", "COLLATE"}.isdisjoint(words)


def _charset_of_collation(collation: str) -> str | None:
    """By its name: `utf8mb4_bin`; some of MariaDB's newer ones name none."""
    return _known(collation.lower().partition("_")[0])


def _known(charset: str) -> str | None:
    """The character set by its name today: `utf8` is `utf8mb3`; None if there is none."""
    collation_id = collation_of(charset)
    return None if collation_id is None else charset_of(collation_id)


def defined_column(
    change: AddColumn | ModifyColumn, default: str | None, statement: str
) -> TableColumn:
    """The column that a part of a statement defines.

    Args:
        change: The part.
        default: Character set of the table; None if it is not known.
        statement: The whole text.
    """
    definition = change.definition
    words = [token.word for token in definition.attributes]
    found = column_attributes(definition, statement)
    return TableColumn(
        name=change.name,
        type_name=definition.type_name,
        arguments=definition.type_arguments,
        is_unsigned=definition.is_unsigned,
        charset=column_charset(definition, default),
        is_visible="INVISIBLE" not in words,
        is_generated=_is_generated(definition.attributes),
        is_nullable=found.is_nullable,
        is_auto_increment=found.is_auto_increment,
        is_zerofill=found.is_zerofill,
        default=found.default,
        has_default_expression=found.has_default_expression,
        on_update=found.on_update,
        generated=found.generated,
        is_stored=found.is_stored,
        collation=found.collation or _binary_collation(definition, default),
        comment=found.comment,
        check=found.check,
        explicit_null=found.explicit_null,
        names_charset=_names_own_charset(definition),
    )


def _binary_collation(definition: ColumnDefinition, default: str | None) -> str | None:
    """Of text that says BINARY: the character set's own that compares bytes."""
    if not any(token.word == "BINARY" for token in definition.attributes):
        return None
    charset = column_charset(definition, default)
    return None if charset in {None, BINARY} else f"{charset}_bin"


def _names_own_charset(definition: ColumnDefinition) -> bool:
    if definition.type_name in _NATIONAL_TYPES:
        return True
    return named_charset(definition.attributes) is not None or any(
        token.word == "BINARY" for token in definition.attributes
    )


def _is_generated(attributes: Sequence[Token]) -> bool:
    """Whether it says `[GENERATED ALWAYS] AS (…)`, or MariaDB's AS ROW START and END."""
    words = [token.word for token in attributes]
    return any(
        word == "AS" and (token.text == "(" or token.word == "ROW")
        for word, token in zip(words, attributes[1:], strict=False)
    )


def column_charset(definition: ColumnDefinition, default: str | None) -> str | None:
    """The character set of a column, `binary` for bytes; None where it has none.

    Args:
        definition: Of the column.
        default: Of its table; None if that is not known.
    """
    if definition.type_name in _BYTE_TYPES:
        return BINARY
    if definition.type_name == "JSON":
        return _JSON_CHARSET
    if definition.type_name in _NATIONAL_TYPES:
        return _NATIONAL_CHARSET
    if definition.type_name not in _TEXT_TYPES:
        return None
    word = next((t.word for t in definition.attributes if t.word in _CHARSET_WORDS), "")
    return named_charset(definition.attributes) or _CHARSET_WORDS.get(word) or default


def _converted(column: TableColumn, charset: str | None) -> TableColumn:
    """A column behind CONVERT TO CHARACTER SET, which leaves bytes as they are."""
    if column.charset == BINARY or column.type_name not in _TEXT_TYPES | _NATIONAL_TYPES | {"JSON"}:
        return column
    return replace(column, charset=charset)


def _rearranged(
    columns: Sequence[TableColumn],
    changes: Sequence[ColumnChange],
    charset: str | None,
    statement: str,
) -> tuple[TableColumn, ...]:
    """What one ALTER TABLE makes of columns: first what stays in place, then what moves or comes.

    Names to change and drop are those before the statement, names to stand behind those after it.

    Raises:
        LookupError: If there is none to stand behind.

    Source: MariaDB 10.11 sql/sql_table.cc, mysql_prepare_alter_table.
    """
    dropped = {change.name.lower() for change in changes if isinstance(change, DropColumn)}
    renamed = {
        change.old.lower(): change.new for change in changes if isinstance(change, RenameColumn)
    }
    modified = {
        change.old_name.lower(): change for change in changes if isinstance(change, ModifyColumn)
    }
    made: list[TableColumn] = []
    for column in columns:
        key = column.name.lower()
        change = modified.get(key)
        if key in dropped or (change is not None and _moves(change)):
            continue
        if change is not None:
            made.append(defined_column(change, charset, statement))
        else:
            made.append(replace(column, name=renamed.get(key, column.name)))
    known = {column.name.lower() for column in columns}
    for each in changes:
        is_new = isinstance(each, AddColumn) and _find(made, each.name) is None
        is_moved = isinstance(each, ModifyColumn) and _moves(each)
        if isinstance(each, ModifyColumn) and each.old_name.lower() not in known:
            continue
        if isinstance(each, AddColumn | ModifyColumn) and (is_new or is_moved):
            _insert(made, defined_column(each, charset, statement), each)
    return tuple(made)


def _moves(change: AddColumn | ModifyColumn) -> bool:
    return change.is_first or change.after is not None


def _insert(
    columns: list[TableColumn], column: TableColumn, change: AddColumn | ModifyColumn
) -> None:
    if change.is_first:
        columns.insert(0, column)
    elif change.after is None:
        columns.append(column)
    else:
        index = _find(columns, change.after)
        if index is None:
            raise LookupError(change.after)
        columns.insert(index + 1, column)


def _find(columns: Sequence[TableColumn], name: str) -> int | None:
    """Where a column stands; the servers compare their names without regard to case."""
    lower = name.lower()
    return next((i for i, column in enumerate(columns) if column.name.lower() == lower), None)


def _is_versioned(options: Sequence[Token], columns: Sequence[AddColumn]) -> bool:
    """Whether the server adds the two columns of system versioning: the text has none of its own."""
    if any(_is_row_start(column.definition) for column in columns):
        return False
    return _says_versioned(options) or any(
        _says_versioned(column.definition.attributes) for column in columns
    )


def _says_versioned(options: Sequence[Token]) -> bool:
    words = [token.word for token in options]
    return any(
        words[index : index + 3] == ["WITH", "SYSTEM", "VERSIONING"] for index in range(len(words))
    )


def _is_row_start(definition: ColumnDefinition) -> bool:
    words = [token.word for token in definition.attributes]
    return any(words[index : index + 3] == ["AS", "ROW", "START"] for index in range(len(words)))
