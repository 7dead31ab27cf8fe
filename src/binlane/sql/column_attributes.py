"""What stands behind a column's type: default, generation, key, reference.

Texts are kept as the statement has them; how a server prints them is asked in `show_create`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlane.sql.column_changes import DEFAULT_ENDS, ColumnDefinition, literal
from binlane.sql.cursor import Cursor
from binlane.sql.tokens import Token

_STORED_WORDS: Final = ("STORED", "PERSISTENT")


@dataclass(slots=True, kw_only=True)
class ColumnAttributes:
    """Attributes of a column while they are read; see `TableColumn` for those of the same name.

    Attributes:
        is_primary: PRIMARY KEY, or KEY alone.
        is_unique: UNIQUE.
        references: Tokens behind REFERENCES; empty without.
    """

    is_nullable: bool = True
    explicit_null: bool = False
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
    is_primary: bool = False
    is_unique: bool = False
    references: tuple[Token, ...] = ()


def column_attributes(definition: ColumnDefinition, statement: str) -> ColumnAttributes:
    """Read the attributes of a column.

    Args:
        definition: From `statement`.
        statement: The whole text.

    Raises:
        Stopped: If a parenthesis has no partner.
    """
    found = ColumnAttributes(is_nullable=definition.is_nullable)
    if definition.type_name == "SERIAL":
        found.is_auto_increment = found.is_unique = True
    cursor = Cursor(definition.attributes)
    while not cursor.is_at_end:
        if not _read(cursor, found, statement):
            cursor.advance()
    if found.is_primary:
        found.is_nullable = False
    return found


def _read(cursor: Cursor, found: ColumnAttributes, statement: str) -> bool:
    return (
        _read_flag(cursor, found)
        or _read_key(cursor, found)
        or _read_expression(cursor, found, statement)
        or _read_text(cursor, found)
    )


def _read_flag(cursor: Cursor, found: ColumnAttributes) -> bool:
    if cursor.accept("NOT", "NULL"):
        found.is_nullable = False
    elif cursor.accept("NULL"):
        found.explicit_null = True
    elif cursor.accept("ZEROFILL"):
        found.is_zerofill = True
    elif cursor.accept("AUTO_INCREMENT"):
        found.is_auto_increment = True
    elif cursor.accept("SERIAL", "DEFAULT", "VALUE"):
        found.is_auto_increment = found.is_unique = True
        found.is_nullable = False
    elif stored := cursor.accept_any((*_STORED_WORDS, "VIRTUAL")):
        found.is_stored = stored in _STORED_WORDS
    else:
        return False
    return True


def _read_expression(cursor: Cursor, found: ColumnAttributes, statement: str) -> bool:
    if cursor.accept("DEFAULT"):
        _read_default(cursor, found, statement)
    elif cursor.accept("ON", "UPDATE"):
        start = cursor.index
        cursor.advance()
        if cursor.token.text == "(":
            cursor.group()
        found.on_update = text_of(cursor.since(start), statement)
    elif cursor.accept("AS"):
        _read_generated(cursor, found, statement)
    elif cursor.accept("CHECK"):
        found.check = text_of(cursor.group(), statement)
    else:
        return False
    return True


def _read_text(cursor: Cursor, found: ColumnAttributes) -> bool:
    if cursor.accept("COLLATE"):
        cursor.accept_operator("=")
        found.collation = cursor.advance().value.lower()
    elif cursor.accept("COMMENT"):
        found.comment = cursor.advance().value
    elif cursor.accept("REFERENCES"):
        start = cursor.index
        cursor.until(("COMMENT", "CHECK", "UNIQUE", "PRIMARY"))
        found.references = tuple(cursor.since(start))
    else:
        return False
    return True


def _read_key(cursor: Cursor, found: ColumnAttributes) -> bool:
    if cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        found.is_unique = True
    elif cursor.accept("PRIMARY", "KEY") or cursor.accept("KEY"):
        found.is_primary = True
    else:
        return False
    return True


def _read_default(cursor: Cursor, found: ColumnAttributes, statement: str) -> None:
    start = cursor.index
    if cursor.word == "NULL":  # both a default and the beginning of another attribute
        cursor.advance()
    elif cursor.token.text == "(":
        cursor.group()
    else:
        cursor.until(DEFAULT_ENDS)
    tokens = cursor.since(start)
    found.default = text_of(tokens, statement)
    try:
        literal(tokens)
    except ValueError:
        found.has_default_expression = not _is_literal(tokens)


def _is_literal(tokens: Sequence[Token]) -> bool:
    """Whether it is a constant that `literal` has no text of, such as `0x41`, `_latin1'a'`."""
    if len(tokens) == 2 and (
        tokens[0].text.startswith("_") or tokens[0].word in {"DATE", "TIME", "TIMESTAMP"}
    ):
        return tokens[1].kind.name == "STRING"
    return len(tokens) == 1 and tokens[0].kind.name == "NUMBER"


def _read_generated(cursor: Cursor, found: ColumnAttributes, statement: str) -> None:
    if cursor.token.text == "(":
        found.generated = text_of(cursor.group(), statement)
    elif cursor.accept("ROW"):
        found.generated = "ROW " + cursor.advance().word


def text_of(tokens: Sequence[Token], statement: str) -> str:
    """The part of a statement that some of its tokens cover."""
    return statement[tokens[0].offset : tokens[-1].end] if tokens else ""
