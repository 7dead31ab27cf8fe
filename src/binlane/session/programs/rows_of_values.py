"""The rows of VALUES: which expressions make which row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.effects import StatementKind
from binlane.sql.facts import Shift, StatementFacts
from binlane.sql.shapes import cut
from binlane.sql.tokens import SqlSyntaxError, tokenise

_CACHE_SIZE: Final = 1024
_LETTERS_MAX: Final = 100_000
"""Rows of longer statements are not looked at one by one."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a row stands, and its expressions: each from where to where."""

    values: tuple[tuple[int, int], ...]
    offset: int
    end: int

    def row(self, statement: str, shift: Callable[[int], int]) -> ValueRow:
        """The row of a statement that differs only in its literals."""
        texts = tuple([statement[shift(start) : shift(end)] for start, end in self.values])
        return ValueRow(texts, shift(self.offset), shift(self.end))


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
    shape = cut(statement, ansi_quotes=False, no_backslash_escapes=False)
    if shape is None:
        return tuple([one.row(statement, _same) for one in _places(statement)])
    known = _shapes.get(shape.key)
    if known is None:
        if len(_shapes) >= _CACHE_SIZE:
            _shapes.clear()
        known = _shapes[shape.key] = (shape.ends, _places(statement))
    ends, places = known
    shift = Shift(ends, shape.ends)
    return tuple([one.row(statement, shift) for one in places])


_shapes: Final[dict[str, tuple[Sequence[int], tuple[_Places, ...]]]] = {}


def _same(place: int) -> int:
    return place


def _places(statement: str) -> tuple[_Places, ...]:
    found: list[_Places] = []
    try:
        cursor = Cursor(list(tokenise(statement)))
        cursor.until(("VALUES", "VALUE", "SET"))
        if cursor.accept("SET"):
            return (_of_set(cursor),)
        cursor.advance()
        while True:
            cursor.accept("ROW")
            opening = cursor.token
            parts = split(cursor.group())
            values = tuple((part[0].offset, part[-1].end) for part in parts if part)
            found.append(_Places(values, opening.offset, cursor.token.offset))
            if not cursor.accept_operator(","):
                return tuple(found)
    except (Stopped, SqlSyntaxError):
        return tuple(found)


def _of_set(cursor: Cursor) -> _Places:
    """The row of INSERT … SET."""
    start = cursor.token.offset
    parts = split(cursor.until(("ON", "RETURNING", "AS")))
    values = []
    for part in parts:
        one = Cursor(part)
        one.until((), operators=("=", ":="))
        value = one.rest()[1:]
        values.append((value[0].offset, value[-1].end) if value else (start, start))
    return _Places(tuple(values), start, cursor.token.offset)
