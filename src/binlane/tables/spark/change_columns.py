"""The columns that data frames have beside a table's own: names, types, and which range gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from binlane.tables.columnar.table_schema import CHANGE_TYPES

_NAMES: Final = ("op", "gtid", "ts", "file", "pos", "row", "txn_order", "server_id")
CHANGE_COLUMNS: Final[Mapping[str, tuple[str, pa.DataType]]] = MappingProxyType(
    {name: (f"_{name}", CHANGE_TYPES[f"_{name}"]) for name in _NAMES}
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
"""Operations that may be asked for, and the values of `_op` that each means."""


def range_columns(names: Collection[str]) -> tuple[str, ...]:
    """Names that ranges give change columns, in their order: `_op` is first."""
    return tuple(source for source, _ in CHANGE_COLUMNS.values() if source in names)


def change_fields(prefix: str, wanted: Collection[str] | None) -> list[pa.Field[Any]]:
    """The change columns of a data frame, in order.

    Args:
        prefix: Prefix of the names of the change columns.
        wanted: Names of the wanted columns without the prefix, all if None.
    """
    return [
        pa.field(prefix + name, data_type)
        for name, (_, data_type) in CHANGE_COLUMNS.items()
        if wanted is None or name in wanted
    ]
