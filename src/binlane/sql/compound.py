"""The bodies of routines, triggers and events: BEGIN … END and what may stand in it.

Statements in a body are read by the same readers as elsewhere; here is only what lies around them:
blocks, labels, declarations, conditions and loops, of SQL/PSM as MySQL and MariaDB have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

from binlane.sql.cursor import Cursor
from binlane.sql.dml import read_expressions, read_query
from binlane.sql.effects import Draft
from binlane.sql.statements import read_simple_statement
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

EXPRESSION_WORDS: Final = (
    "RETURN",
    "SET",
    "OPEN",
    "FETCH",
    "CLOSE",
    "LEAVE",
    "ITERATE",
    "SIGNAL",
    "RESIGNAL",
    "GET",
)


def read_body(cursor: Cursor, draft: Draft) -> None:
    """Read one statement of a body, simple or compound, with its label.

    Raises:
        Stopped: Where the text is not understood.
    """
    if cursor.ahead(1).text == ":" and cursor.token.kind in NAME_KINDS:
        cursor.advance()
        cursor.advance()
    reader = BLOCKS.get(cursor.word)
    if reader is not None:
        cursor.advance()
        reader(cursor, draft)
    elif cursor.word in EXPRESSION_WORDS:
        read_expressions(cursor.until((), operators=(";",)), draft)
    else:
        statement = Cursor(cursor.until((), operators=(";",)))
        read_simple_statement(statement, draft)
        statement.expect_end()


def _read_statements(cursor: Cursor, draft: Draft, ends: Collection[str]) -> None:
    """Read statements up to one of the words that end a block."""
    while cursor.word not in ends:
        if cursor.is_at_end:
            raise cursor.stop(" or ".join(ends))
        read_body(cursor, draft)
        cursor.expect_operator(";")


def _end(cursor: Cursor, *words: str) -> None:
    """Read the end of a block and the label that may follow."""
    cursor.expect(*words)
    if cursor.token.kind in NAME_KINDS:
        cursor.advance()


def _read_block(cursor: Cursor, draft: Draft) -> None:
    cursor.accept("NOT", "ATOMIC")
    _read_statements(cursor, draft, ("END",))
    _end(cursor, "END")


def _read_if(cursor: Cursor, draft: Draft) -> None:
    while True:
        _read_expression(cursor, draft, "THEN")
        _read_statements(cursor, draft, ("ELSEIF", "ELSE", "END"))
        if not cursor.accept("ELSEIF"):
            break
    if cursor.accept("ELSE"):
        _read_statements(cursor, draft, ("END",))
    cursor.expect("END", "IF")


def _read_case(cursor: Cursor, draft: Draft) -> None:
    _read_expression(cursor, draft, "WHEN")
    while True:
        _read_expression(cursor, draft, "THEN")
        _read_statements(cursor, draft, ("WHEN", "ELSE", "END"))
        if not cursor.accept("WHEN"):
            break
    if cursor.accept("ELSE"):
        _read_statements(cursor, draft, ("END",))
    cursor.expect("END", "CASE")


def _read_loop(cursor: Cursor, draft: Draft) -> None:
    _read_statements(cursor, draft, ("END",))
    _end(cursor, "END", "LOOP")


def _read_while(cursor: Cursor, draft: Draft) -> None:
    _read_expression(cursor, draft, "DO")
    _read_statements(cursor, draft, ("END",))
    _end(cursor, "END", "WHILE")


def _read_for(cursor: Cursor, draft: Draft) -> None:
    _read_expression(cursor, draft, "DO")
    _read_statements(cursor, draft, ("END",))
    _end(cursor, "END", "FOR")


def _read_repeat(cursor: Cursor, draft: Draft) -> None:
    _read_statements(cursor, draft, ("UNTIL",))
    cursor.expect("UNTIL")
    read_expressions(_expression(cursor, "END"), draft)
    _end(cursor, "END", "REPEAT")


def _read_declare(cursor: Cursor, draft: Draft) -> None:
    if cursor.ahead(1).word == "HANDLER":
        cursor.until(("FOR",))
        cursor.expect("FOR")
        _skip_condition(cursor)
        while cursor.accept_operator(","):
            _skip_condition(cursor)
        read_body(cursor, draft)
        return
    declared = cursor.until(("CURSOR",), operators=(";",))
    if cursor.accept("CURSOR"):
        if cursor.token.text == "(":
            cursor.group()
        cursor.expect("FOR")
        read_query(cursor.until((), operators=(";",)), draft)
    else:
        read_expressions(declared, draft)


def _skip_condition(cursor: Cursor) -> None:
    """One condition that a handler is for."""
    if cursor.accept("NOT", "FOUND"):
        return
    if cursor.accept("SQLSTATE"):
        cursor.accept("VALUE")
    if cursor.token.kind not in (*NAME_KINDS, TokenKind.STRING, TokenKind.NUMBER):
        raise cursor.stop("a condition")
    cursor.advance()


def _read_expression(cursor: Cursor, draft: Draft, end: str) -> None:
    read_expressions(_expression(cursor, end), draft)
    cursor.expect(end)


def _expression(cursor: Cursor, end: str) -> list[Token]:
    """Read up to a word; those inside CASE … END do not count."""
    start = cursor.index
    while True:
        cursor.until((end, "CASE"), operators=(";",))
        if not cursor.accept("CASE"):
            return cursor.since(start)
        depth = 1
        while depth and not cursor.is_at_end:
            depth += {"CASE": 1, "END": -1}.get(cursor.advance().word, 0)


BLOCKS: Final[Mapping[str, Callable[[Cursor, Draft], None]]] = MappingProxyType(
    {
        "BEGIN": _read_block,
        "IF": _read_if,
        "CASE": _read_case,
        "LOOP": _read_loop,
        "WHILE": _read_while,
        "FOR": _read_for,
        "REPEAT": _read_repeat,
        "DECLARE": _read_declare,
    }
)
