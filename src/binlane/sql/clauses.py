"""Clauses that statements on several kinds of objects share.

What they refer to is noted, the rest is only gone behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.names import TableName
from binlane.sql.cursor import Cursor, split
from binlane.sql.draft import Draft
from binlane.sql.keywords import RESERVED
from binlane.sql.tokens import Token, TokenKind


def table_name(cursor: Cursor) -> tuple[str | None, str]:
    """Read the name of a table; a dot before it means the default database.

    Raises:
        Stopped: If none comes next, or a word that can be no name.
    """
    if cursor.word in RESERVED:
        raise cursor.stop("a table")
    cursor.accept_operator(".")
    return cursor.qualified_name()


def name_table(cursor: Cursor, draft: Draft, *, lock: str = "") -> TableName:
    """Read the name of a table that a statement is about, without reading or changing its rows."""
    start = cursor.index
    name = draft.resolve(table_name(cursor))
    draft.name_table(name, cursor.since(start), lock)
    return name


def accept_if_exists(cursor: Cursor, draft: Draft) -> None:
    """IF EXISTS or IF NOT EXISTS."""
    if cursor.accept("IF", "EXISTS") or cursor.accept("IF", "NOT", "EXISTS"):
        draft.if_exists = True


def skip_create_options(cursor: Cursor, draft: Draft) -> None:
    """What stands between CREATE or ALTER and the kind of object."""
    while True:
        if cursor.accept("OR", "REPLACE"):
            draft.is_or_replace = True
        elif cursor.accept("TEMPORARY"):
            draft.is_temporary = True
        elif cursor.accept("DEFINER"):
            cursor.expect_operator("=")
            skip_account(cursor)
        elif cursor.accept("ALGORITHM"):
            cursor.expect_operator("=")
            cursor.identifier()
        elif cursor.accept("SQL", "SECURITY"):
            cursor.identifier()
        elif cursor.accept("JSON"):
            cursor.accept("RELATIONAL")
            cursor.expect("DUALITY")
        elif (
            cursor.word == "SPATIAL" and cursor.ahead(1).word == "REFERENCE"
        ) or not cursor.accept_any(_KINDS_OF_OBJECTS):
            return


_KINDS_OF_OBJECTS: Final = (
    *("AGGREGATE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE"),
    *("EXTERNAL", "MATERIALIZED"),
)
"""Words before that of an object that say which kind of it is meant."""


def skip_account(cursor: Cursor) -> None:
    """`user@host`, with or without quotes and host, or CURRENT_USER."""
    if cursor.accept_any(("CURRENT_USER", "CURRENT_ROLE")):
        if cursor.token.text == "(":
            cursor.group()
        return
    _skip_account_part(cursor)
    if cursor.token.kind is TokenKind.USER_VARIABLE:  # `root`@`localhost`
        cursor.advance()
    elif cursor.accept_operator("@"):
        _skip_account_part(cursor)


def _skip_account_part(cursor: Cursor) -> None:
    if cursor.token.kind is TokenKind.STRING:
        cursor.advance()
    else:
        cursor.identifier()


def skip_wait(cursor: Cursor) -> None:
    """How long MariaDB waits for locks: NOWAIT or WAIT n."""
    if not cursor.accept("NOWAIT") and cursor.accept("WAIT"):
        cursor.advance()


def read_definition(tokens: Sequence[Token], draft: Draft) -> None:
    """Note what column and key definitions and table options refer to.

    Foreign keys, tables of a MERGE table, sequences in defaults.
    """
    cursor = Cursor(tokens)
    while not cursor.is_at_end:
        if cursor.accept("REFERENCES"):
            draft.read(draft.resolve(cursor.qualified_name()))
        elif cursor.word in ("NEXTVAL", "LASTVAL") and cursor.ahead(1).text == "(":
            cursor.advance()
            draft.read(draft.resolve(Cursor(cursor.group()).qualified_name()))
        elif cursor.word in ("NEXT", "PREVIOUS") and cursor.ahead(1).word == "VALUE":
            cursor.advance()
            cursor.expect("VALUE", "FOR")
            draft.read(draft.resolve(cursor.qualified_name()))
        elif cursor.accept("UNION"):
            cursor.accept_operator("=")
            for part in split(cursor.group()):
                draft.read(draft.resolve(Cursor(part).qualified_name()))
        else:
            cursor.advance()


def skip_set_statement(cursor: Cursor) -> None:
    """Go behind `SET STATEMENT variable = value, … FOR`."""
    while cursor.accept("SET", "STATEMENT"):
        cursor.until(("FOR",))
        cursor.expect("FOR")
