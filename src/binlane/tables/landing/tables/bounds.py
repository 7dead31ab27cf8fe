"""Facts about a live file that need no opening: its rows, its size, the bounds of its values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa

from binlane.tables.landing.range_work import DataFile

Order = tuple[tuple[bool, Any], ...]
"""A key in the order that files have: NULLs last."""

UNKNOWN: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file that belongs to a table now.

    Attributes:
        path: Path relative to the table's directory.
        rows: The number of rows in it.
        low: Values that no row is less than, by column, where they are known.
        high: Values that no row is greater than, by column, where they are known.
        nulls: The number of NULLs by column, where that is known.
        is_read: Whether the file's footer was asked, too.
    """

    path: str
    rows: int
    size_bytes: int
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    is_read: bool = False

    @classmethod
    def of(cls, file: DataFile, path: str | None = None) -> LiveFile:
        """Return the live file of a file that a task wrote; `path` where it has another path now."""
        types = {each.name: each.type for each in file.schema}

        def values(kind: str) -> dict[str, Any]:
            found = file.stats.get(kind, {}).items()
            return {name: _value(value, types[name]) for name, value in found}

        return cls(
            path=file.path if path is None else path,
            rows=file.rows,
            size_bytes=file.size_bytes,
            low=values("minValues"),
            high=values("maxValues"),
            nulls=file.stats.get("nullCount", {}),
        )

    def first(self, key: Sequence[str]) -> Order:
        """Bound that no key in the file comes before; known values come before unknown ones."""
        return tuple((name not in self.low, self.low.get(name)) for name in key)


def _value(value: Any, data_type: pa.DataType) -> Any:
    if isinstance(value, str) and pa.types.is_timestamp(data_type):
        return datetime.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_date(data_type):
        return date.fromisoformat(value)
    return value


class SortedKeys:
    """The keys of a run, in order.

    Args:
        rows: The columns of the key, sorted by it, NULLs last.
        key: Names of the key's columns.
    """

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        self._columns = {name: rows.column(name).combine_chunks() for name in key}
        self._rows = rows.num_rows
        self._ends = (self.at(0), self.at(self._rows - 1)) if self._rows else None

    def __len__(self) -> int:
        return self._rows

    def at(self, place: int) -> Order:
        """The key of one row."""
        return tuple(
            ((value := column[place].as_py()) is None, value) for column in self._columns.values()
        )

    def place(self, key: Order) -> int:
        """Return how many keys come before a key."""
        if self._ends is None or key <= self._ends[0]:
            return 0
        if key > self._ends[1]:
            return self._rows
        return bisect_left(range(self._rows), key, key=self.at)

    def reach(self, file: LiveFile) -> tuple[int, int]:
        """Return the span of rows, its end not included, whose keys may be in a file."""
        start, stop = 0, self._rows
        leading = next(iter(self._columns))
        if self._ends is not None and leading in file.low and not file.nulls.get(leading, 1):
            if (False, file.high[leading]) < self._ends[0][0]:
                return 0, 0
            if (False, file.low[leading]) > self._ends[1][0]:
                return self._rows, self._rows
        for name, column in self._columns.items():
            low, high = file.low.get(name), file.high.get(name)
            if low is None or high is None:
                break

            def value(place: int, column: pa.Array[Any] = column) -> tuple[bool, Any]:
                found = column[place].as_py()
                return found is None, found

            span = range(self._rows)
            start = bisect_left(span, (False, low), start, stop, key=value)
            if file.nulls.get(name, 1):
                break  # NULLs are at the end of what is left
            stop = bisect_right(span, (False, high), start, stop, key=value)
            if low != high:
                break  # the next column is in order only where this one is constant
        return start, stop
