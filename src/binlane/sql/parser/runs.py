"""Many literals, or rows of them, that stand as one token: read when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from binlane.sql.dialect import Dialect
    from binlane.sql.tree.expressions import Expression

from binlane.sql.tokens import literal_pattern
from binlane.sql.tree.expressions import Literal, LiteralKind, Operation, Row

_T = TypeVar("_T", bound="Expression")
_WORDS: Final = {"N": LiteralKind.NULL, "T": LiteralKind.TRUE, "F": LiteralKind.FALSE}


class Items(Sequence["_T"]):
    """Several sequences as one."""

    __slots__ = ("_length", "_parts")

    def __init__(self, parts: Sequence[Sequence[_T]]) -> None:
        self._parts = [part for part in parts if part]
        self._length = -1

    def __len__(self) -> int:
        if self._length < 0:
            self._length = sum(map(len, self._parts))
        return self._length

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __iter__(self) -> Iterator[_T]:
        for part in self._parts:
            yield from part

    @property
    def told(self) -> Sequence[_T]:
        """Those that do not stand in one token with others."""
        return [item for part in self._parts if not isinstance(part, _Run) for item in part]

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        if index < 0:
            index += len(self)
        for part in self._parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)


class _Run(Sequence["_T"]):
    """What stands in one token."""

    __slots__ = ("_at", "_length", "_make", "_pattern", "_text")

    def __init__(
        self, text: str, at: int, pattern: re.Pattern[str], make: Callable[[re.Match[str], int], _T]
    ) -> None:
        self._text = text
        self._at = at
        self._pattern = pattern
        self._make = make
        self._length = -1

    def __len__(self) -> int:
        if self._length < 0:
            self._length = sum(1 for _ in self._pattern.finditer(self._text))
        return self._length

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[_T]:
        make, at = self._make, self._at
        return (make(found, at) for found in self._pattern.finditer(self._text))

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | Sequence[_T]:
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        if index < 0:
            index += len(self)
        for item in islice(self, index, None):
            return item
        raise IndexError(index)


@cache
def _literals(dialect: Dialect) -> re.Pattern[str]:
    return re.compile(rf"[,(]\s*+({literal_pattern(dialect)})", re.VERBOSE | re.DOTALL)


@cache
def _rows(dialect: Dialect) -> re.Pattern[str]:
    literal = literal_pattern(dialect)
    return re.compile(
        rf",\s*+(\(\s*+{literal}\s*+(?:,\s*+{literal}\s*+)*+\))", re.VERBOSE | re.DOTALL
    )


def _literal(found: re.Match[str], at: int) -> Expression:
    text = found[1]
    start, end = at + found.start(1), at + found.end(1)
    first = text[0]
    if first in "-+":
        number = Literal(start + 1, end, LiteralKind.NUMBER)
        return Operation(start, end, "NEG" if first == "-" else "POS", (number,))
    if first.isdigit():
        is_hex = text[1:2] in ("x", "X")
        return Literal(start, end, LiteralKind.HEX if is_hex else LiteralKind.NUMBER)
    if first in "'\"":
        return Literal(start, end, LiteralKind.STRING)
    if first == "_":
        quote = min(place for place in map(text.find, "'\" ") if place > 0)
        return Literal(start, end, LiteralKind.STRING, text[1:quote].lower())
    if text[1] in "'\"":
        kinds = {"x": LiteralKind.HEX, "b": LiteralKind.BIT}
        kind = kinds.get(first.lower(), LiteralKind.STRING)
        return Literal(start, end, kind, "n" if kind is LiteralKind.STRING else "")
    return Literal(start, end, _WORDS[first.upper()])


def literals_of(text: str, at: int, dialect: Dialect) -> Sequence[Expression]:
    """The literals of a LITERALS token."""
    return _Run(text, at, _literals(dialect), _literal)


def rows_of(text: str, at: int, dialect: Dialect) -> Sequence[Row]:
    """The rows of a ROWS token."""
    pattern = _literals(dialect)

    def row(found: re.Match[str], at: int) -> Row:
        start = found.start(1)
        items = tuple(_literal(each, at + start) for each in pattern.finditer(found[1]))
        return Row(at + start, at + found.end(1), items)

    return _Run(text, at, _rows(dialect), row)
