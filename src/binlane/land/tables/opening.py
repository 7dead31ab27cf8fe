"""A store of tables in the format that is asked for."""

from __future__ import annotations

from binlane.land.tables.delta import DeltaFormat
from binlane.land.tables.formats import TableFormat
from binlane.land.tables.plain import PlainFormat
from binlane.land.tables.store import StoreSettings, TableStore
from binlane.land.work import Format, Mode


def open_store(
    into: str, mode: Mode, table_format: Format, app_id: str, settings: StoreSettings
) -> TableStore:
    """The tables of one kind of a target.

    Args:
        into: URI or path of the target.
        mode: The kind.
        table_format: Of the tables.
        app_id: Names the landing in the tables' commits.
        settings: How to keep them.
    """
    tables: TableFormat = (
        PlainFormat(into, mode, app_id)
        if table_format is Format.PARQUET
        else DeltaFormat(into, mode, app_id)
    )
    return TableStore(into, mode, tables, settings)
