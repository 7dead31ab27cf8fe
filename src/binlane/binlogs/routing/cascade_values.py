"""Values of foreign keys as bytes: when two of them are equal at the server, and how one is set.

Numbers, times and binary strings are equal where their bytes in the log are. Texts are equal by
their collation: by what is known of it, else nobody here says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.columns import Column
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, Flavor

Values = list[bytes | None]
"""The bytes of each column's value with the length before it, None for NULL."""

_EXACT: Final = frozenset(
    {
        *(ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG),
        *(ColumnType.LONGLONG, ColumnType.YEAR, ColumnType.DATE, ColumnType.NEWDATE),
        *(ColumnType.TIMESTAMP2, ColumnType.DATETIME2, ColumnType.TIME2, ColumnType.NEWDECIMAL),
        *(ColumnType.ENUM, ColumnType.SET, ColumnType.BIT),
    }
)
_TEXTS: Final = frozenset({ColumnType.VARCHAR, ColumnType.STRING, ColumnType.VAR_STRING})
_BINARY: Final = 63
# Letters and digits that are equal only to themselves in the other case, whatever else there is.
_PLAIN: Final = re.compile(rb"[0-9A-Za-z]*")
_CHARSETS: Final = ("utf8_", "utf8mb3_", "utf8mb4_", "latin1_", "ascii_")
_FOLDING: Final = frozenset(
    {
        *("latin1_swedish_ci", "ascii_general_ci", "utf8mb4_0900_ai_ci"),
        *(
            f"{charset}_{name}"
            for charset in ("utf8", "utf8mb3", "utf8mb4")
            for name in ("general_ci", "unicode_ci", "unicode_520_ci", "uca1400_ai_ci")
        ),
    }
)


class KeyBytes(NamedTuple):
    """The value of a key in a form in which equal keys have equal bytes.

    Attributes:
        data: The form; empty for an odd key.
        is_odd: True if another key may be equal to it that has other bytes.
    """

    data: bytes
    is_odd: bool = False


ODD: Final = KeyBytes(b"", is_odd=True)


class KeyShape(NamedTuple):
    """The columns of a key in a table.

    Attributes:
        columns: Their facts, in the order of the key.
        collations: Names of their collations; empty for a column that is no text.
    """

    columns: tuple[Column, ...]
    collations: tuple[str, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """Numbers of the columns in the table."""
        return tuple(column.index for column in self.columns)

    def of(self, values: Values) -> Values:
        """The values of the key in a row."""
        return [values[column.index] for column in self.columns]

    def key(self, values: Sequence[bytes | None]) -> KeyBytes | None:
        """Give the form of a key's values by which it is found; None if one of them is NULL."""
        parts = []
        for column, collation, value in zip(self.columns, self.collations, values, strict=True):
            if value is None:
                return None
            data = value
            if column.type in _TEXTS:
                data = value[_prefix(column) :]
                if collation in _FOLDING:
                    data = data if collation == "utf8mb4_0900_ai_ci" else data.rstrip(b" ")
                    if not _PLAIN.fullmatch(data):
                        return ODD
                    data = data.lower()
                elif collation and "nopad" not in collation and "0900" not in collation:
                    data = data.rstrip(b" ")
            parts.append(len(data).to_bytes(4, "little") + data)
        return KeyBytes(b"".join(parts))

    def is_like(self, other: KeyShape) -> bool:
        """True if keys of both are compared as `key` does, and one's values can be the other's."""
        pairs = zip(self.columns, other.columns, strict=True)
        return self.collations == other.collations and all(
            one.type == two.type
            and (
                (one.type in _TEXTS and one.collation_id != _BINARY)
                or (one.metadata, one.is_unsigned) == (two.metadata, two.is_unsigned)
            )
            for one, two in pairs
        )

    def set_in(self, values: Values, change: tuple[Values, Values], given: KeyShape) -> None:
        """Put the values of a parent's key that changed into a row.

        Args:
            values: The row, which is changed.
            change: The parent's key before and after; what is the same stays as the row has it.
            given: The columns of the parent's key.
        """
        for column, source, old, new in zip(self.columns, given.columns, *change, strict=True):
            if old == new:
                continue
            value = new
            if new is not None and column.type in _TEXTS:
                data = new[_prefix(source) :]
                value = len(data).to_bytes(_prefix(column), "little") + data
            values[column.index] = value


def _prefix(column: Column) -> int:
    """Bytes of the length before a text."""
    return 1 if column.length_max < 256 else 2


@lru_cache(maxsize=1024)
def key_shape(table_map: TableMapEvent, names: tuple[str, ...], flavor: Flavor) -> KeyShape | None:
    """The columns of a key in a table.

    Args:
        table_map: TABLE_MAP of the table with the key.
        names: The columns' names in small letters.
        flavor: Flavor of the source of the log.

    Returns:
        None if the TABLE_MAP does not name them, or if it is not known when values are equal.
    """
    named = {
        (column.name or "").lower(): column for column in table_columns(table_map, flavor=flavor)
    }
    if not names or not all(name in named for name in names):
        return None
    columns = tuple(named[name] for name in names)
    collations = []
    for column in columns:
        if column.type in _EXACT:
            collations.append("")
            continue
        if column.type not in _TEXTS or column.collation_id is None:
            return None
        if column.collation_id == _BINARY:
            collations.append("")
            continue
        collation = collation_name(column.collation_id, flavor)
        is_known = collation is not None and (
            collation in _FOLDING
            or (collation.endswith("_bin") and collation.startswith(_CHARSETS))
        )
        if collation is None or not is_known:
            return None
        collations.append(collation)
    return KeyShape(columns, tuple(collations))


@lru_cache(maxsize=1024)
def widths_of(table_map: TableMapEvent, flavor: Flavor) -> tuple[int, ...] | None:
    """The widths of a table's values; None if the log does not tell where they end."""
    return value_widths(table_columns(table_map, flavor=flavor))
