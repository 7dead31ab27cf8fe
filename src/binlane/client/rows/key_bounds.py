"""Ranges of a key: values as literals, and the conditions that select what lies between two of them.

The order is the server's own, so that every row lies in exactly one range at any time; bounds are
exact whatever the type or character set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlane.log.codec.charsets import BINARY, charset_of
from binlane.log.codec.columns import Column
from binlane.log.codec.types import ColumnType
from binlane.names import quote

Bound = tuple[str, ...]
"""A key's values as literals, one a column."""


class KeyLiteralKind(Enum):
    """Forms in which a value is written as a literal."""

    NUMBER = "number"
    QUOTED = "quoted"
    BYTES = "bytes"
    TEXT = "text"


_NUMBERS: Final = frozenset(
    {
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.NEWDECIMAL,
        ColumnType.YEAR,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.BIT,
        ColumnType.ENUM,
        ColumnType.SET,
    }
)
_TEMPORAL: Final = frozenset(
    {
        ColumnType.DATE,
        ColumnType.NEWDATE,
        ColumnType.TIME2,
        ColumnType.DATETIME2,
        ColumnType.TIMESTAMP2,
    }
)
# Servers order ENUM and SET by their numbers, which is what must be compared.
_AS_NUMBER: Final = {
    ColumnType.ENUM: "({} + 0)",
    ColumnType.SET: "({} + 0)",
    ColumnType.BIT: "CAST({} AS UNSIGNED)",
    ColumnType.FLOAT: "CAST({} AS DOUBLE)",
    ColumnType.DOUBLE: "CAST({} AS DOUBLE)",
}
_COMPARED_AS_NUMBER: Final = frozenset({ColumnType.ENUM, ColumnType.SET})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of a key.

    Attributes:
        kind: The form in which the column's values are written.
        selected: The expression to select for the column's value.
        compared: The expression to compare with a literal.
        introducer: The character set before a text.
    """

    name: str
    kind: KeyLiteralKind
    selected: str
    compared: str
    introducer: str = ""

    def literal(self, cell: bytes | None) -> str:
        """A value as the server sent it → as it is written in a statement."""
        assert cell is not None, "a key is never NULL"
        if self.kind is KeyLiteralKind.NUMBER:
            return cell.decode()
        if self.kind is KeyLiteralKind.QUOTED:
            return f"'{cell.decode()}'"
        if self.kind is KeyLiteralKind.BYTES:
            return f"0x{cell.hex()}" if cell else "''"
        return f"_{self.introducer} 0x{cell.hex()}" if cell else "''"


def key_column(column: Column) -> KeyColumn:
    """Return how the values of a key's column are selected, written and compared."""
    assert column.name is not None, "a schema names every column"
    name = quote(column.name)
    kind, introducer = _kind(column)
    as_number = _AS_NUMBER.get(column.type, "{}").format(name)
    return KeyColumn(
        name=column.name,
        kind=kind,
        selected=as_number,
        compared=as_number if column.type in _COMPARED_AS_NUMBER else name,
        introducer=introducer,
    )


def _kind(column: Column) -> tuple[KeyLiteralKind, str]:
    if column.type in _NUMBERS:
        return KeyLiteralKind.NUMBER, ""
    if column.type in _TEMPORAL or column.logical is not None:
        return KeyLiteralKind.QUOTED, ""
    charset = None if column.collation_id is None else charset_of(column.collation_id)
    if charset is None or charset == BINARY:
        return KeyLiteralKind.BYTES, ""
    return KeyLiteralKind.TEXT, charset


def between(key: Sequence[KeyColumn], low: Bound | None, high: Bound | None) -> str:
    """The condition of the rows behind `low` up to and with `high`, ` WHERE …`; empty for all."""
    conditions = []
    if low is not None:
        conditions.append(_beyond(key, low, ">", is_with=False))
    if high is not None:
        conditions.append(_beyond(key, high, "<", is_with=True))
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _beyond(key: Sequence[KeyColumn], bound: Bound, sign: str, *, is_with: bool) -> str:
    """Rows on one side of a bound, in a form that servers read a range of the index for."""
    last = len(key) - 1
    ways = []
    for place, (part, value) in enumerate(zip(key, bound, strict=True)):
        alike = [f"{key[i].compared} = {bound[i]}" for i in range(place)]
        mark = f"{sign}=" if is_with and place == last else sign
        ways.append(" AND ".join([*alike, f"{part.compared} {mark} {value}"]))
    if len(ways) == 1:
        return ways[0]
    return f"({key[0].compared} {sign}= {bound[0]} AND ({' OR '.join(f'({way})' for way in ways)}))"


def bound_statement(table: str, key: Sequence[KeyColumn], low: Bound | None, rows: int) -> str:
    """The statement that gives the key of the row that is `rows` behind a bound."""
    order = ", ".join(part.compared if "(" in part.compared else quote(part.name) for part in key)
    selected = ", ".join(part.selected for part in key)
    return (
        f"SELECT {selected} FROM {table}{between(key, low, None)}"  # noqa: S608  # quoted names
        f" ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"
    )
