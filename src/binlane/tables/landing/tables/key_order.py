"""Keys of rows: where they stand in other rows, which is the last of several, their order.

A key is one or more columns of any type that Arrow can hash. NULLs are equal to each other: a key
is NULL where a date in it cannot be held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places = npt.NDArray[np.int64]


def places(rows: pa.Table, among: pa.Table, key: Sequence[str]) -> Places:
    """Return the index of each row's key among other keys, -1 if it is not there.

    Args:
        rows: Rows with the columns of the key.
        among: The other keys; each key stands there once.
        key: Names of the key's columns.
    """
    if not among.num_rows or not rows.num_rows:
        return np.full(rows.num_rows, -1, np.int64)
    found, known = _codes(rows, among, key)
    if len(key) == 1:
        return found
    order = np.argsort(known)
    at = np.searchsorted(known, found, sorter=order).clip(max=len(known) - 1)
    candidates = order[at]
    return np.where((found >= 0) & (known[candidates] == found), candidates, -1)


def last_of_each(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, sorted by key.

    Args:
        rows: Rows in the order of the log, with the columns of the key.
        key: Names of the key's columns.
    """
    numbers = _numbers(rows.column(key[0])) if len(key) == 1 else None
    is_ordered = numbers is not None
    if numbers is None:
        numbers, _ = _codes(rows, None, key)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_last = np.ones(len(order), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
    last = rows.take(order[is_last])
    return last if is_ordered else sorted_by_key(last, key)


def sorted_by_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows by key, NULLs last; rows of one key stay in the order that they have."""
    if not key or rows.num_rows < 2:
        return rows
    rows = rows.combine_chunks()
    numbers = _numbers(rows.column(key[0])) if len(key) == 1 else None
    if numbers is not None:
        if np.all(numbers[1:] >= numbers[:-1]):
            return rows
        return rows.take(np.argsort(numbers, kind="stable"))
    return rows.take(pc.sort_indices(rows.select(list(key)), [(n, "ascending") for n in key]))


def is_same_as_next(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a flag for each row: whether the next one has the same key; False for the last one."""
    same = np.ones(rows.num_rows, bool)
    same[-1:] = False
    for name in key:
        column: Any = rows.column(name).combine_chunks()
        numbers = _places_in(column, column.unique())
        same[:-1] &= numbers[1:] == numbers[:-1]
    return same


def _codes(rows: pa.Table, among: pa.Table | None, key: Sequence[str]) -> tuple[Places, Places]:
    """Keys as numbers, equal where the keys are; -1 for a key with a value that `among` lacks."""
    known_rows = rows if among is None else among
    found = np.zeros(rows.num_rows, np.int64)
    known = np.zeros(known_rows.num_rows, np.int64)
    for name in key:
        values = known_rows.column(name).combine_chunks()
        if len(key) > 1 or among is None:
            distinct: Any = values.unique()
            values_known = _places_in(values, distinct)
        else:
            distinct, values_known = values, np.arange(len(values))
        values_found = values_known if among is None else _places_in(rows.column(name), distinct)
        is_missing = (found < 0) | (values_found < 0)
        found = np.where(is_missing, -1, found * len(distinct) + values_found)
        known = known * len(distinct) + values_known
        if len(key) > 1:  # keep the numbers small
            kept, known = np.unique(known, return_inverse=True)
            at = np.searchsorted(kept, found).clip(max=len(kept) - 1)
            found = np.where((found >= 0) & (kept[at] == found), at, -1)
    return found, known


def _places_in(values: pa.Array[Any] | pa.ChunkedArray[Any], distinct: pa.Array[Any]) -> Places:
    at: Any = pc.index_in(values, value_set=distinct)
    return np.asarray(pc.fill_null(at, -1).to_numpy(), np.int64)


def _numbers(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any] | None:
    """Values as numbers in the same order, where that costs nothing."""
    if column.null_count:
        return None
    kind = column.type
    if pa.types.is_integer(kind):
        return column.to_numpy()
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).to_numpy()
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_numpy()
    return None
