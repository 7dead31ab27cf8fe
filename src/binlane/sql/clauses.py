"""Clauses that statements on several kinds of objects share.

What they refer to is noted, the rest is only gone behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from binlane.sql.cursor import Cursor, split
from binlane.sql.effects import Draft
from binlane.sql.tokens import Token, TokenKind


def accept_if_exists(cursor: Cursor, draft: Draft) -> None:
    """IF EXISTS or IF NOT EXISTS."""
    if cursor.accept("IF", "EXISTS") or cursor.accept("IF", "NOT", "EXISTS"):
        draft.if_exists = True


def skip_create_options(cursor: Cursor, draft: Draft) -> None:
    """What stands between CREATE or ALTER and the kind of object."""
    while True:
        if cursor.accept("OR", "REPLACE"):
            continue
        if cursor.accept("TEMPORARY"):
            draft.is_temporary = True
        elif cursor.accept("DEFINER"):
            cursor.expect_operator("=")
            skip_account(cursor)
        elif cursor.accept("ALGORITHM"):
            cursor.expect_operator("=")
            cursor.identifier()
        elif cursor.accept("SQL", "SECURITY"):
            cursor.identifier()
        elif not cursor.accept_any(("AGGREGATE", "UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE")):
            return


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
