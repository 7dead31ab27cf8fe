"""Statistics of a file for Delta's log: least and greatest values, and how many NULLs.

A column whose statistics would not be exact is left out; readers then read the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_TEXT_MAX: Final = 64


def statistics(rows: pa.Table, columns: Iterable[str]) -> dict[str, Any]:
    """Statistics of some columns, as Delta's JSON has them.

    Args:
        rows: All rows of the file.
        columns: Names of columns that shall be known; others are not looked at.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in columns:
        values = rows.column(name)
        nulls[name] = values.null_count
        if not _is_ordered(values.type):
            continue
        bounds = pc.min_max(values)
        low, high = _json(bounds["min"].as_py()), _json(bounds["max"].as_py())
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    return {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _is_ordered(data_type: pa.DataType) -> bool:
    """True if Delta's readers order values of this type as Arrow does."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_string(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_timestamp(data_type)
        or (isinstance(data_type, pa.Decimal128Type) and data_type.scale == 0)
    )


def _json(value: Any) -> Any:
    """A value as Delta writes it; None where it has none or would be cut."""
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text if value.tzinfo is None else f"{text}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, str) and len(value) > _TEXT_MAX:
        return None
    return value
