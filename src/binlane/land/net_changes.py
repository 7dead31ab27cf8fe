"""What is left of many row changes: the last image of each key, or how often each row comes and goes.

Pure Arrow; which of the two a table needs is decided by whether the log tells its primary key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GONE: Final = "_gone"
"""Column of `last_images`: the key's row is deleted."""
_ORDER: Final = "_order"
_COUNT: Final = "_count"
_REMOVES: Final = pa.array(["delete", "update_before"])


def last_images(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last image of each key.

    An update that changes the key is the end of one and the beginning of another, since its
    images stand under their own keys.

    Args:
        changes: Row images in log order with `_op`.
        key: Names of the key's columns.

    Returns:
        One row a key without `_op`, and `GONE`.
    """
    gone = pc.is_in(changes.column("_op"), value_set=_REMOVES)
    ordered = changes.append_column(_ORDER, pa.array(np.arange(changes.num_rows)))
    grouped = ordered.group_by(list(key), use_threads=False).aggregate([(_ORDER, "max")])
    last = grouped.column(f"{_ORDER}_max").to_numpy()
    return changes.append_column(GONE, gone).drop_columns(["_op"]).take(last)


def count_rows(
    table: pa.Table | None, changes: pa.Table, columns: Sequence[str]
) -> tuple[pa.Table, int]:
    """Apply changes to a table without a key, as a multiset of rows.

    Args:
        table: The rows there are, with `columns` and others that take the highest value.
        changes: Row images in any order with `_op` and the columns of the table.
        columns: Names of the columns that make rows equal; NULLs are equal, too.

    Returns:
        The rows afterwards, and how many were to be removed that were not there.
    """
    gone = pc.is_in(changes.column("_op"), value_set=_REMOVES)
    weights = pc.if_else(gone, pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
    rows = changes.drop_columns(["_op"]).append_column(_COUNT, weights)
    if table is not None:
        ones = pa.array(np.ones(table.num_rows, np.int64))
        rows = pa.concat_tables([table.append_column(_COUNT, ones).select(rows.column_names), rows])
    others = [name for name in rows.column_names if name not in {*columns, _COUNT}]
    grouped = rows.group_by(list(columns), use_threads=False).aggregate(
        [(_COUNT, "sum"), *((name, "last") for name in others)]
    )
    counts = grouped.column(f"{_COUNT}_sum").to_numpy()
    repeated = grouped.take(np.repeat(np.arange(len(counts)), np.maximum(counts, 0)))
    names = {f"{name}_last": name for name in others}
    renamed = repeated.rename_columns([names.get(name, name) for name in repeated.column_names])
    missing = int(-counts[counts < 0].sum())
    return renamed.select([name for name in rows.column_names if name != _COUNT]), missing
