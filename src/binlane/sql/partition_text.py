"""PARTITION BY as the servers print it, where columns alone decide the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import quote
from binlane.sql.column_attributes import text_of
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.tokens import SqlSyntaxError, Token, tokenise

_KINDS: Final = ("HASH", "KEY", "RANGE", "LIST")


def partition_text(text: str, *, flavor: Flavor, engine: str) -> str:
    """A PARTITION BY clause with the line break before it.

    Args:
        text: As the user wrote it.
        flavor: Who prints it.
        engine: Of the table, as printed.

    Returns:
        The same text where it is beyond what is known here.
    """
    try:
        printed = _printed(Cursor(list(tokenise(text))), text, flavor, engine)
    except (Stopped, SqlSyntaxError):
        printed = None
    if printed is None:
        return f"\n {text}"
    return f"\n {printed}" if flavor is Flavor.MARIADB else f"\n/*!50100 {printed} */"


def _printed(cursor: Cursor, text: str, flavor: Flavor, engine: str) -> str | None:
    cursor.expect("PARTITION", "BY")
    linear = "LINEAR " if cursor.accept("LINEAR") else ""
    kind = cursor.accept_any(_KINDS)
    is_columns = cursor.accept("COLUMNS")
    columns = [_column(part) for part in split(cursor.group()) if part]
    if not kind or None in columns or (len(columns) > 1 and not is_columns and kind != "KEY"):
        return None
    is_bare = flavor is Flavor.MYSQL and (kind == "KEY" or is_columns)
    names = [name if is_bare else quote(name) for name in columns if name is not None]
    columns_word = "  COLUMNS" * is_columns
    separator = "" if is_columns else " "
    lines = [f"PARTITION BY {linear}{kind}{columns_word}{separator}({','.join(names)})"]
    if cursor.accept("PARTITIONS"):
        lines.append(f"PARTITIONS {cursor.advance().text}")
    if cursor.token.text == "(":
        parts = [_part(part, text, flavor, engine) for part in split(cursor.group())]
        if None in parts:
            return None
        lines.append("(" + ",\n ".join(part for part in parts if part is not None) + ")")
    return "\n".join(lines) if cursor.is_at_end else None


def _column(tokens: Sequence[Token]) -> str | None:
    return tokens[0].value if len(tokens) == 1 and tokens[0].value else None


def _part(tokens: Sequence[Token], text: str, flavor: Flavor, engine: str) -> str | None:
    cursor = Cursor(tokens)
    cursor.expect("PARTITION")
    name = cursor.identifier()
    printed = f"PARTITION {quote(name) if flavor is Flavor.MARIADB else name}"
    if cursor.accept("VALUES", "LESS", "THAN"):
        is_last = cursor.accept("MAXVALUE")
        values = "MAXVALUE" if is_last else f"({text_of(cursor.group(), text)})"
        printed += f" VALUES LESS THAN {values}"
    elif cursor.accept("VALUES", "IN"):
        values = ",".join(text_of(part, text) for part in split(cursor.group()))
        printed += f" VALUES IN ({values})"
    return f"{printed} ENGINE = {engine}" if cursor.is_at_end else None
