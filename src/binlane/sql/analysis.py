"""What a statement does, from its text: the one entry to this package's readers.

The text alone: that a view hides a table, that a trigger writes another one, or what a procedure
does, is known to the server only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final

from binlane.sql import ddl, programs, statements
from binlane.sql.assignments import read_statement_assignments
from binlane.sql.compound import BLOCKS, read_body
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.ddl import Reader
from binlane.sql.draft import Draft
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.facts import StatementFacts
from binlane.sql.queries import read_expressions
from binlane.sql.shapes import read_by_shape
from binlane.sql.statements import SIMPLE, read_simple_statement
from binlane.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise, tokenise_long

LONG: Final = 16_384
"""Characters from which on a statement's facts are not kept, and its literals are read in runs."""
CACHED_MAX: Final = 4_096
"""Statements whose facts are kept."""
TOKENS_MAX: Final = 1_000_000
"""More are not analysed: their memory would be many times that of the text."""


def read(
    statement: str,
    *,
    database: str,
    ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
    is_oracle: bool = False,
) -> StatementFacts:
    """Find out all that a statement's text says about how it is logged.

    Args:
        statement: One statement, as a client sends it or as a binlog holds it.
        database: The default database; empty if there is none.
        ansi_quotes: sql_mode ANSI_QUOTES.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.
        is_oracle: sql_mode ORACLE.

    Returns:
        Its facts. What is not understood raises nothing: `effects.stopped_at` says where it is,
        and the statement must then not be taken for safe.
    """
    reader = _read if len(statement) > LONG else _read_cached
    return reader(statement, database, ansi_quotes, no_backslash_escapes, is_oracle)


def analyse(
    statement: str,
    *,
    database: str,
    ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
) -> StatementEffects:
    """Find out what a statement reads, writes, renames and drops: `read` without the rest."""
    return read(
        statement,
        database=database,
        ansi_quotes=ansi_quotes,
        no_backslash_escapes=no_backslash_escapes,
    ).effects


def read_expression(
    text: str, *, database: str, ansi_quotes: bool = False, no_backslash_escapes: bool = False
) -> StatementFacts:
    """Find out what an expression calls and reads: the facts of a DO, offsets within `text`."""
    reader = _read_do if len(text) > LONG else _read_do_cached
    return reader(text, database, ansi_quotes, no_backslash_escapes)


def _read(
    statement: str,
    database: str,
    ansi_quotes: bool,  # noqa: FBT001 - for the cache's key
    no_backslash_escapes: bool,  # noqa: FBT001
    is_oracle: bool,  # noqa: FBT001
) -> StatementFacts:
    draft = Draft(database, statement, is_oracle)
    return _facts(draft, ansi_quotes, no_backslash_escapes, _read_statement)


def _read_do(
    text: str,
    database: str,
    ansi_quotes: bool,  # noqa: FBT001 - as `_read`
    no_backslash_escapes: bool,  # noqa: FBT001
) -> StatementFacts:
    return _facts(Draft(database, text), ansi_quotes, no_backslash_escapes, _read_expression)


def _read_short(
    statement: str,
    database: str,
    ansi_quotes: bool,  # noqa: FBT001 - as `_read`
    no_backslash_escapes: bool,  # noqa: FBT001
    is_oracle: bool,  # noqa: FBT001
) -> StatementFacts:
    context = (database, ansi_quotes, no_backslash_escapes, is_oracle)
    return read_by_shape(statement, context, lambda: _read(statement, *context))


_read_cached = lru_cache(maxsize=CACHED_MAX)(_read_short)
_read_do_cached = lru_cache(maxsize=CACHED_MAX)(_read_do)


def _facts(
    draft: Draft,
    ansi_quotes: bool,  # noqa: FBT001 - as `_read`
    no_backslash_escapes: bool,  # noqa: FBT001
    reader: Callable[[Cursor, Draft], None],
) -> StatementFacts:
    text = draft.text
    tokenizer = tokenise_long if len(text) > LONG else tokenise
    try:
        tokens = _bounded(
            tokenizer(text, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
        )
        _check_parentheses(tokens)
        reader(Cursor(tokens), draft)
    except SqlSyntaxError as error:
        rest = text[error.offset :]
        return draft.facts(Token(TokenKind.INVALID, rest, error.offset, rest))
    except Stopped as stopped:
        return draft.facts(stopped.token)
    return draft.facts()


def _bounded(tokens: Iterable[Token]) -> list[Token]:
    found = list(islice(tokens, TOKENS_MAX))
    if found[-1].kind is not TokenKind.END:
        raise Stopped(found[-1], "a shorter statement")
    return found


def _read_expression(cursor: Cursor, draft: Draft) -> None:
    draft.kind, draft.verb = StatementKind.DO, "DO"
    read_expressions(cursor, draft)
    cursor.expect_end()


def _read_statement(cursor: Cursor, draft: Draft) -> None:
    read_statement_assignments(cursor, draft)
    if cursor.is_at_end or cursor.token.text == ";":
        draft.kind = StatementKind.EMPTY
    elif _is_compound(cursor):
        draft.kind, draft.verb = StatementKind.COMPOUND, "BEGIN NOT ATOMIC"
        draft.body_offset = cursor.token.offset
        read_body(cursor, draft)
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
    if cursor.ahead(1).text == ":":
        return cursor.ahead(2).word in BLOCKS
    return cursor.word in BLOCKS


def _read_create(cursor: Cursor, draft: Draft) -> None:
    ddl.read_create(cursor, draft, {**ddl.CREATE, **programs.CREATE})


def _read_alter(cursor: Cursor, draft: Draft) -> None:
    ddl.read_alter(cursor, draft, {**ddl.ALTER, **programs.ALTER})


def _read_drop(cursor: Cursor, draft: Draft) -> None:
    if cursor.ahead(1).word == "PREPARE":
        statements.read_deallocate(cursor, draft)
    else:
        ddl.read_drop(cursor, draft, {**ddl.DROP, **programs.DROP})


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {**SIMPLE, "CREATE": _read_create, "ALTER": _read_alter, "DROP": _read_drop}
)
