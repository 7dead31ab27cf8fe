"""Net effects of many row changes: the last image of each key, or how often each row comes and goes.

Pure Arrow; a table whose primary key the log tells needs the first, any other the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.tables.landing.tables.key_order import last_of_each

GONE: Final = "_gone"
"""Column of `last_images`: the key's row is deleted."""
COUNT: Final = "_count"
"""Column of `counted`: how often a row comes more than it goes, maybe negative."""
_REMOVES: Final = pa.array(["delete", "update_before"])


def is_gone(changes: pa.Table) -> pa.ChunkedArray[Any]:
    """Return a flag for each image: whether it is of a row that is no more."""
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
    return last_of_each(rows, key)


def counted(changes: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Count how often each distinct row comes more than it goes; rows that come as often are left out.

    Args:
        changes: Row images in any order with `_op`.
        columns: Names of the columns that make rows equal; NULLs are equal, too. Of the other
            columns the last value is kept.

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
