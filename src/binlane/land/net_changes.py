"""What is left of many row changes: the last image of each key, or how often each row comes and goes.

Pure Arrow; which of the two a table needs is decided by whether the log tells its primary key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GONE: Final = "_gone"
"""Column of `last_images`: the key's row is deleted."""
COUNT: Final = "_count"
"""Column of `counted`: how often a row comes more than it goes, maybe negative."""
_ORDER: Final = "_order"
_REMOVES: Final = pa.array(["delete", "update_before"])


def is_gone(changes: pa.Table) -> pa.ChunkedArray[Any]:
    """Of each image, whether it says what is no more."""
    found: Any = pc.is_in(changes.column("_op"), value_set=_REMOVES)
    return pa.chunked_array(found) if isinstance(found, pa.Array) else found


def last_images(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last image of each key, sorted by key.

    An update that changes the key is the end of one and the beginning of another, since its
    images stand under their own keys.

    Args:
        changes: Row images in log order with `_op`.
        key: Names of the key's columns.

    Returns:
        One row a key without `_op`, and `GONE`.
    """
    rows = changes.append_column(GONE, is_gone(changes)).drop_columns(["_op"])
    column = changes.column(key[0])
    if len(key) == 1 and pa.types.is_integer(column.type) and not column.null_count:
        return rows.take(_last_places(column.to_numpy()))
    ordered = changes.select(list(key)).append_column(
        _ORDER, pa.array(np.arange(changes.num_rows, dtype=np.int64))
    )
    grouped = ordered.group_by(list(key), use_threads=False).aggregate([(_ORDER, "max")])
    places = grouped.sort_by([(name, "ascending") for name in key]).column(f"{_ORDER}_max")
    return rows.take(places.combine_chunks())


def _last_places(keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where each key stands last, by key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_last = np.ones(len(keys), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
    return np.asarray(order[is_last])


def counted(changes: pa.Table, columns: Sequence[str]) -> pa.Table:
    """How often each distinct row comes more than it goes; rows that come as often are left out.

    Args:
        changes: Row images in any order with `_op`.
        columns: Names of the columns that make rows equal; NULLs are equal, too. Of the others
            the last value is kept.

    Returns:
        The columns of `changes` without `_op`, and `COUNT`.
    """
    weights = pc.if_else(is_gone(changes), pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
    return _summed(changes.drop_columns(["_op"]).append_column(COUNT, weights), columns)


def added(parts: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Several results of `counted` as one."""
    return _summed(pa.concat_tables(parts), columns)


def _summed(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    others = [name for name in rows.column_names if name not in {*columns, COUNT}]
    grouped = rows.group_by(list(columns), use_threads=False).aggregate(
        [(COUNT, "sum"), *((name, "last") for name in others)]
    )
    names = {f"{COUNT}_sum": COUNT, **{f"{name}_last": name for name in others}}
    renamed = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    kept = renamed.filter(pc.not_equal(renamed.column(COUNT), pa.scalar(0, pa.int64())))
    return kept.select(rows.column_names)


def count_rows(
    table: pa.Table | None, changes: pa.Table, columns: Sequence[str]
) -> tuple[pa.Table, int]:
    """Apply counts to a table without a key, as a multiset of rows.

    Args:
        table: The rows there are, with `columns` and others that take the last value.
        changes: Result of `counted`.
        columns: Names of the columns that make rows equal.

    Returns:
        The rows afterwards, and how many were to be removed that were not there.
    """
    parts = [changes]
    if table is not None:
        ones = pa.array(np.ones(table.num_rows, np.int64))
        parts.insert(0, table.append_column(COUNT, ones).select(changes.column_names))
    total = added(parts, columns)
    counts = total.column(COUNT).to_numpy()
    repeated = total.take(np.repeat(np.arange(len(counts)), np.maximum(counts, 0)))
    return repeated.drop_columns([COUNT]), int(-counts[counts < 0].sum())
