"""What a statement does, from its text: the one entry to this package's readers.

The text alone: that a view hides a table, that a trigger writes another one, or what a procedure
does, is known to the server only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.sql import ddl, programs
from binlane.sql.compound import BLOCKS, read_body
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.ddl import Reader
from binlane.sql.effects import Draft, StatementEffects, StatementKind
from binlane.sql.statements import SIMPLE, read_simple_statement, skip_set_statement
from binlane.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise


def analyse(
    statement: str,
    *,
    database: str,
    ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
) -> StatementEffects:
    """Find out what a statement reads, writes, renames and drops.

    Args:
        statement: One statement, as a client sends it or as a binlog holds it.
        database: The default database; empty if there is none.
        ansi_quotes: sql_mode ANSI_QUOTES.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.

    Returns:
        Its effects. What is not understood raises nothing: `stopped_at` says where it is, and the
        statement must then not be taken for safe.
    """
    draft = Draft(database)
    try:
        tokens = list(
            tokenise(statement, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
        )
    except SqlSyntaxError as error:
        rest = statement[error.offset :]
        return draft.effects(stopped_at=Token(TokenKind.INVALID, rest, error.offset, rest))
    try:
        _read_statement(Cursor(tokens), draft)
        _check_parentheses(tokens)
    except Stopped as stopped:
        return draft.effects(stopped_at=stopped.token)
    except RecursionError:
        return draft.effects(stopped_at=tokens[0])
    return draft.effects()


def _read_statement(cursor: Cursor, draft: Draft) -> None:
    skip_set_statement(cursor)
    if cursor.is_at_end or cursor.token.text == ";":
        draft.kind = StatementKind.EMPTY
    elif _is_compound(cursor):
        draft.kind = StatementKind.COMPOUND
        read_body(cursor, draft)
        draft.kind = StatementKind.COMPOUND
    else:
        read_simple_statement(cursor, draft, READERS)
    while cursor.accept_operator(";"):
        pass
    cursor.expect_end()


def _check_parentheses(tokens: Sequence[Token]) -> None:
    """Stop at a parenthesis that has no partner: then some clause ends elsewhere than we think."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind is not TokenKind.OPERATOR:
            continue
        if token.text == "(":
            opened.append(token)
        elif token.text == ")":
            if not opened:
                raise Stopped(token, "no closing parenthesis")
            opened.pop()
    if opened:
        raise Stopped(opened[-1], "a closing parenthesis")


def _is_compound(cursor: Cursor) -> bool:
    """Whether this is a block outside of a routine, which MariaDB allows."""
    if cursor.word == "BEGIN":
        return cursor.ahead(1).word == "NOT"
    return cursor.word in BLOCKS and cursor.ahead(1).text != "("


def _read_create(cursor: Cursor, draft: Draft) -> None:
    ddl.read_create(cursor, draft, {**ddl.CREATE, **programs.CREATE})


def _read_alter(cursor: Cursor, draft: Draft) -> None:
    ddl.read_alter(cursor, draft, {**ddl.ALTER, **programs.ALTER})


def _read_drop(cursor: Cursor, draft: Draft) -> None:
    ddl.read_drop(cursor, draft, {**ddl.DROP, **programs.DROP})


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {**SIMPLE, "CREATE": _read_create, "ALTER": _read_alter, "DROP": _read_drop}
)
