"""The rows of VALUES: which expressions make which row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts
from binlane.sql.tokens import SqlSyntaxError, tokenise

_CACHE_SIZE: Final = 1024
_LETTERS_MAX: Final = 100_000
"""Rows of longer statements are not looked at one by one."""


@dataclass(frozen=True, slots=True)
class ValueRow:
    """One row of VALUES: the texts of its expressions, and where it stands."""

    values: tuple[str, ...]
    offset: int
    end: int

    def holds(self, offset: int) -> bool:
        """Whether something stands in this row."""
        return self.offset <= offset < self.end


def value_rows(statement: str, facts: StatementFacts) -> tuple[ValueRow, ...]:
    """The rows that INSERT or REPLACE gives by VALUES; none where a query gives them."""
    kinds = (StatementKind.INSERT, StatementKind.REPLACE)
    if facts.effects.kind not in kinds or not facts.row_count or len(statement) > _LETTERS_MAX:
        return ()
    return _rows(statement)


@lru_cache(_CACHE_SIZE)
def _rows(statement: str) -> tuple[ValueRow, ...]:
    found: list[ValueRow] = []
    try:
        cursor = Cursor(list(tokenise(statement)))
        cursor.until(("VALUES", "VALUE", "SET"))
        if cursor.accept("SET"):
            return (_of_set(cursor, statement),)
        cursor.advance()
        while True:
            cursor.accept("ROW")
            opening = cursor.token
            parts = split(cursor.group())
            texts = tuple(statement[part[0].offset : part[-1].end] for part in parts if part)
            found.append(ValueRow(texts, opening.offset, cursor.token.offset))
            if not cursor.accept_operator(","):
                return tuple(found)
    except (Stopped, SqlSyntaxError):
        return tuple(found)


def _of_set(cursor: Cursor, statement: str) -> ValueRow:
    """The row of INSERT … SET."""
    start = cursor.token.offset
    parts = split(cursor.until(("ON", "RETURNING", "AS")))
    texts = []
    for part in parts:
        one = Cursor(part)
        one.until((), operators=("=", ":="))
        value = one.rest()[1:]
        texts.append(statement[value[0].offset : value[-1].end] if value else "")
    return ValueRow(tuple(texts), start, cursor.token.offset)
