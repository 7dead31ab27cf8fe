"""A statement's text → its facts: the one entry to this package's readers.

The text alone: that a view hides a table, that a trigger writes another one, or what a procedure
does, is known to the server only. Statements that differ in literals alone are read once
(`shapes`).
"""

from __future__ import annotations

from functools import partial
from typing import Final, TypeVar

from binlane.sql import heads
from binlane.sql.dialect import Dialect
from binlane.sql.fact_finder import Untold, facts_of
from binlane.sql.facts import Shape, StatementFacts
from binlane.sql.parser import NotAnalysed, Stopped, parse, parse_expression
from binlane.sql.shapes import Key, ends_of, has_shape, key_of
from binlane.sql.tokens import LONG, SqlSyntaxError, Token, TokenKind

KEPT_MAX: Final = 4_096
"""Texts and shapes whose facts are kept for a session's circumstances."""
_CONTEXTS_MAX: Final = 64


_Known = TypeVar("_Known", str, Key)
_Kept = TypeVar("_Kept", Shape, StatementFacts)


class _Context:
    """What is known of statements that are read in the same circumstances."""

    __slots__ = ("database", "dialect", "expressions", "shapes", "texts")

    def __init__(self, database: str, dialect: Dialect) -> None:
        self.database = database
        self.dialect = dialect
        self.texts: dict[str, StatementFacts] = {}
        self.expressions: dict[str, StatementFacts] = {}
        self.shapes: dict[Key, Shape] = {}


_contexts: Final[dict[tuple[str, Dialect], _Context]] = {}
_latest: list[_Context] = [_Context("", Dialect())]


def _context(database: str, dialect: Dialect) -> _Context:
    latest = _latest[0]
    if latest.dialect is dialect and latest.database == database:
        return latest
    context = _contexts.get((database, dialect))
    if context is None:
        if len(_contexts) >= _CONTEXTS_MAX:
            _contexts.clear()
        context = _contexts[database, dialect] = _Context(database, dialect)
    if context.dialect is dialect:
        _latest[0] = context
    return context


def read(text: str, *, database: str, dialect: Dialect) -> StatementFacts:
    """Find out all that a statement's text says about how it is logged.

    Args:
        text: One statement, as a client sends it or as a binlog holds it.
        database: The default database; empty if there is none.
        dialect: Whose it is, and how its session reads it.

    Returns:
        Its facts. What is not understood raises nothing: `effects.stopped_at` says where it is,
        and the statement must then not be taken for safe; `error` is there where no server that
        the dialect stands for takes the text.
    """
    if len(text) > LONG:  # its facts are not kept
        return _read(text, database, dialect)
    context = _context(database, dialect)
    facts = context.texts.get(text)
    if facts is not None:
        return facts
    key = key_of(text, dialect)
    shape = context.shapes.get(key)
    if shape is not None:
        return shape.facts_of(text)
    facts = _read(text, database, dialect)
    if has_shape(facts, ends := ends_of(text, dialect)):
        shape = Shape(facts, ends, partial(ends_of, dialect=dialect))
        _keep(context.shapes, key, shape)
        return shape.facts
    _keep(context.texts, text, facts)
    return facts


def _keep(known: dict[_Known, _Kept], key: _Known, value: _Kept) -> None:
    if len(known) >= KEPT_MAX:
        known.clear()
    known[key] = value


def read_expression(text: str, *, database: str, dialect: Dialect) -> StatementFacts:
    """Find out what an expression calls and reads: the facts of a DO, places within `text`."""
    known = _context(database, dialect).expressions
    facts = known.get(text)
    if facts is not None:
        return facts
    try:
        facts = facts_of(parse_expression(text, dialect), text, database, dialect)
    except (SqlSyntaxError, Stopped, Untold, RecursionError) as error:
        facts = _stopped(text, database, dialect, error)
    if len(text) <= LONG:
        _keep(known, text, facts)
    return facts


def _read(text: str, database: str, dialect: Dialect) -> StatementFacts:
    try:
        return facts_of(parse(text, dialect), text, database, dialect)
    except (SqlSyntaxError, Stopped, Untold, RecursionError) as error:
        return _stopped(text, database, dialect, error)


def _stopped(text: str, database: str, dialect: Dialect, error: Exception) -> StatementFacts:
    """What is known of a statement that is not understood to its end."""
    offset = error.offset if isinstance(error, SqlSyntaxError) else 0
    if isinstance(error, Stopped):
        token = error.token
    elif isinstance(error, Untold):
        name = text[error.node.at : error.node.end]
        token = Token(TokenKind.NAME, name, error.node.at, name)
    else:
        rest = text[offset:]
        token = Token(TokenKind.INVALID, rest, offset, rest)
    verb, effects = heads.head(text, token, database, dialect)
    refused: SqlSyntaxError | None = None
    if isinstance(error, SqlSyntaxError):
        refused = error
    elif isinstance(error, Stopped) and not isinstance(error, NotAnalysed):
        refused = SqlSyntaxError(text, error.token.offset, error.expected)
    return StatementFacts(effects=effects, text=text, dialect=dialect, verb=verb, error=refused)
