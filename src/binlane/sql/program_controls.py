"""Statements that stand in programs only and hold no others: RETURN, LEAVE, FETCH, SIGNAL and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from binlane.sql.body import (
    BodyStatement,
    Close,
    Fetch,
    Iterate,
    Leave,
    Open,
    PlainStatement,
    Return,
    Signal,
    Span,
)
from binlane.sql.cursor import Cursor, split
from binlane.sql.effects import StatementKind
from binlane.sql.program_reader import ProgramReader


def _return(reader: ProgramReader) -> BodyStatement:
    if reader.cursor.is_at_end or reader.cursor.token.text == ";":
        return Return()
    return Return(value=reader.rest_expression())


def _leave(reader: ProgramReader) -> BodyStatement:
    return Leave(label=reader.cursor.identifier())


def _iterate(reader: ProgramReader) -> BodyStatement:
    return Iterate(label=reader.cursor.identifier())


def _open(reader: ProgramReader) -> BodyStatement:
    return Open(cursor=reader.cursor.identifier(), arguments=reader.arguments())


def _fetch(reader: ProgramReader) -> BodyStatement:
    cursor = reader.cursor
    if cursor.accept("GROUP", "NEXT", "ROW"):
        return Fetch(cursor="", variables=())
    if cursor.accept("NEXT"):
        cursor.expect("FROM")
    else:
        cursor.accept("FROM")
    name = cursor.identifier()
    cursor.expect("INTO")
    variables = [_variable(reader)]
    while cursor.accept_operator(","):
        variables.append(_variable(reader))
    return Fetch(cursor=name, variables=tuple(variables))


def _variable(reader: ProgramReader) -> str:
    database, name = reader.cursor.qualified_name()
    return name if database is None else f"{database}.{name}"


def _close(reader: ProgramReader) -> BodyStatement:
    return Close(cursor=reader.cursor.identifier())


def _signal(reader: ProgramReader, *, is_again: bool) -> Signal:
    cursor = reader.cursor
    condition = ""
    if cursor.word != "SET" and cursor.token.text != ";" and not cursor.is_at_end:
        condition = reader.condition()
    items: list[tuple[str, Span]] = []
    if cursor.accept("SET"):
        for part in split(cursor.until((), operators=(";",))):
            inside = Cursor(part)
            name = inside.identifier().upper()
            inside.expect_operator("=")
            items.append((name, reader.read_expression(inside.rest())))
    return Signal(condition=condition, items=tuple(items), is_again=is_again)


def _diagnostics(reader: ProgramReader) -> BodyStatement:
    """GET [CURRENT | STACKED] DIAGNOSTICS."""
    cursor = reader.cursor
    cursor.index -= 1
    tokens = cursor.until((), operators=(";",))
    return PlainStatement(sql=reader.span(tokens), kind=StatementKind.SIGNAL)


CONTROLS: Final[Mapping[str, Callable[[ProgramReader], BodyStatement]]] = MappingProxyType(
    {
        "RETURN": _return,
        "LEAVE": _leave,
        "ITERATE": _iterate,
        "OPEN": _open,
        "FETCH": _fetch,
        "CLOSE": _close,
        "SIGNAL": partial(_signal, is_again=False),
        "RESIGNAL": partial(_signal, is_again=True),
        "GET": _diagnostics,
    }
)
"""By first word, which is read already."""
