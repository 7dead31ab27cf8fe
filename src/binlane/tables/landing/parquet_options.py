"""Options for writing columns to Parquet, chosen by a look at the columns' values in passing.

Encoding and compressing costs more than decoding the log. A dictionary pays where values repeat;
where values do not repeat, the dictionary is built, thrown away, and the column written plain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

ROW_GROUP_ROWS: Final = 1 << 16
"""A merge reads the row groups in which its rows lie."""
_SAMPLE_ROWS: Final = 4096
_DICTIONARY_BYTES_MAX: Final = 1 << 20  # Arrow's own limit; behind it the rest is written plain
# Columns that grow by little from row to row.
_GROWING: Final = frozenset({"_pos", "_seq", "_ts"})


def parquet_options(
    rows: pa.Table, known: Collection[str], *, is_staged: bool = False
) -> dict[str, Any]:
    """Keyword arguments of `pq.write_table`.

    Args:
        rows: The rows to be written.
        known: Columns of which readers are to have the bounds of each row group.
        is_staged: Whether the file is read once and then removed.
    """
    repeated = [
        name for name in rows.column_names if name not in _GROWING and _is_repeated(rows[name])
    ]
    bounded = [
        field.name for field in rows.schema if field.name in known or _is_compared_fast(field.type)
    ]
    found: dict[str, Any] = {
        "store_schema": False,
        "row_group_size": ROW_GROUP_ROWS,
        "use_dictionary": repeated,
        "write_statistics": False if is_staged else bounded,
        "compression": "lz4" if is_staged else "zstd",
        "column_encoding": {
            name: "DELTA_BINARY_PACKED" for name in rows.column_names if name in _GROWING
        },
    }
    if not is_staged:
        found["compression_level"] = 1
    return found


def _is_repeated(values: pa.ChunkedArray[Any]) -> bool:
    """True if a dictionary of a row group's values is worth its making, as a sample tells."""
    if pa.types.is_dictionary(values.type):
        return True
    if pa.types.is_boolean(values.type) or pa.types.is_null(values.type) or not len(values):
        return False
    sample = values.slice(max(0, len(values) - _SAMPLE_ROWS) // 2, _SAMPLE_ROWS)
    count = len(sample)
    repeats = count - pc.count_distinct(sample, mode="all").as_py()
    if not repeats:
        return False
    # Number of distinct values that gives so many repeats by chance (birthdays).
    distinct = count * count / (2 * repeats)
    size_bytes = distinct * sample.nbytes / count
    return distinct <= min(len(values), ROW_GROUP_ROWS) / 2 and size_bytes <= _DICTIONARY_BYTES_MAX


def _is_compared_fast(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_timestamp(data_type)
        or pa.types.is_floating(data_type)
    )


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
