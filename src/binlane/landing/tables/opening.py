"""A store of tables in the format that is asked for."""

from __future__ import annotations

from binlane.errors import ConfigError
from binlane.landing.tables.delta import DeltaFormat
from binlane.landing.tables.formats import TableFormat
from binlane.landing.tables.plain import PlainFormat
from binlane.landing.tables.store import StoreSettings, TableStore
from binlane.landing.work import Format, Mode


def open_store(
    into: str, mode: Mode, table_format: Format, app_id: str, settings: StoreSettings
) -> TableStore:
    """The tables of one kind of a target.

    Args:
        into: URI or absolute path of the target.
        mode: The kind.
        table_format: Of the tables.
        app_id: Names the landing in the tables' commits.
        settings: How to keep them.

    Raises:
        ConfigError: If the format cannot be used here.
    """
    tables = _tables(into, mode, table_format, app_id, settings)
    return TableStore(into, mode, tables, settings)


def _tables(
    into: str, mode: Mode, table_format: Format, app_id: str, settings: StoreSettings
) -> TableFormat:
    if table_format is Format.DELTA:
        feed = settings.feed if mode is Mode.CURRENT else None
        return DeltaFormat(into, mode, app_id, settings.keep_hours, feed=feed)
    if table_format is Format.PARQUET:
        return PlainFormat(into, mode, app_id)
    try:
        # Only who lands Iceberg tables needs it, and it takes a second.
        from binlane.landing.tables.iceberg import IcebergFormat, open_catalog  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"Iceberg tables need pyiceberg: {error}",
            key="format",
            hint="pip install 'binlane[iceberg]'",
        ) from error
    return IcebergFormat(into, mode, app_id, open_catalog(into, settings.catalog))
