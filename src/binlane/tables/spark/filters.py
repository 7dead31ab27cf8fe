"""Filters of a query that the source can use: to leave ranges unread, and rows unhanded.

Each filter stays with Spark too, which applies it again. So a filter that is used here may keep too
much, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

pc: Any = pyarrow.compute  # its stubs know no scalars among arrays

USABLE: Final = frozenset({"op", "gtid", "ts", "file", "pos", "database", "table"})
"""The columns, by name without a prefix, whose filters are used."""

_COMPARISONS: Final[Mapping[type[Filter], str]] = MappingProxyType(
    {
        EqualTo: "equal",
        EqualNullSafe: "equal",
        GreaterThan: "greater",
        GreaterThanOrEqual: "greater_equal",
        LessThan: "less",
        LessThanOrEqual: "less_equal",
    }
)


@dataclass(frozen=True, slots=True)
class PushedCondition:
    """A condition on the values of a column.

    Attributes:
        column: The column's name without a prefix.
        comparison: A function of Arrow: `equal`, `less` …, or `is_in`.
        values: The values to compare with; one value, of `is_in` any number.
    """

    column: str
    comparison: str
    values: tuple[Any, ...]

    def mask(self, values: pa.Array[Any]) -> Any:
        """Return a flag for each value: whether the condition holds; for NULL it does not."""
        if self.comparison == "is_in":
            return pc.is_in(values, pa.array(self.values, values.type))
        scalar = pa.scalar(self.values[0], values.type)
        return pc.fill_null(getattr(pc, self.comparison)(values, scalar), False)

    def admits(self, value: Any) -> bool:
        """True if the condition holds for one value."""
        return bool(self.mask(pa.array([value]))[0].as_py())

    def allows(self, low: Any, high: Any) -> bool:
        """True if the condition may hold for a value from `low` to `high`."""
        if self.comparison.startswith("greater"):
            return self.admits(high)
        if self.comparison.startswith("less"):
            return self.admits(low)
        return any(low <= value <= high for value in self.values)


def conditions(filters: Iterable[Filter], prefix: str) -> list[PushedCondition]:
    """Return the conditions of a query's filters that can be used.

    Args:
        filters: The filters as Spark gives them.
        prefix: Prefix of the names of change columns.
    """
    found = []
    for each in filters:
        column = _column_of(each, prefix)
        if column is None:
            continue
        if isinstance(each, In):
            values = tuple(value for value in each.value if value is not None)
            found.append(PushedCondition(column, "is_in", tuple(map(_plain, values))))
        elif type(each) in _COMPARISONS and each.value is not None:  # type: ignore[attr-defined]
            value = _plain(each.value)  # type: ignore[attr-defined]
            found.append(PushedCondition(column, _COMPARISONS[type(each)], (value,)))
    return found


def _column_of(each: Filter, prefix: str) -> str | None:
    attribute: Any = getattr(each, "attribute", ())
    if len(attribute) != 1 or not attribute[0].startswith(prefix):
        return None
    column = attribute[0].removeprefix(prefix)
    return column if column in USABLE else None


def _plain(value: Any) -> Any:
    """A moment in UTC: Spark gives it in the zone of the machine."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.astimezone()
    return value
