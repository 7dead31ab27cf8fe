"""The columns that data frames have beside a table's own: names, types, and which range gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

CHANGE_COLUMNS: Final[Mapping[str, tuple[str, pa.DataType]]] = MappingProxyType(
    {
        "op": ("_op", pa.string()),
        "gtid": ("_gtid", pa.string()),
        "ts": ("_timestamp", pa.timestamp("us", tz="UTC")),
        "file": ("_file", pa.string()),
        "pos": ("_position", pa.int64()),
        "row": ("_row", pa.int32()),
    }
)
"""By name without the prefix: the name that ranges give the column, and its type."""

OPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "insert": ("insert",),
        "update": ("update", "update_before", "update_after"),
        "update_before": ("update_before",),
        "update_after": ("update_after",),
        "delete": ("delete",),
        "truncate": ("truncate",),
        "ddl": ("ddl",),
    }
)
"""What may be asked for, and which values of `_op` it means."""


def change_fields(prefix: str, wanted: Collection[str] | None) -> list[pa.Field[Any]]:
    """The change columns of a data frame, in order.

    Args:
        prefix: What their names begin with.
        wanted: Their names without it, all if None.
    """
    return [
        pa.field(prefix + name, data_type)
        for name, (_, data_type) in CHANGE_COLUMNS.items()
        if wanted is None or name in wanted
    ]
