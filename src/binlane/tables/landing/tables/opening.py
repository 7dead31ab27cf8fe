"""A store of tables in the format that is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from binlane.errors import ConfigError
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.formats import TableFormat
from binlane.tables.landing.tables.plain import PlainFormat
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore

_NEEDS: Final = {
    FormatName.DELTA: ("binlane.tables.landing.tables.delta", "delta"),
    FormatName.ICEBERG: ("binlane.tables.landing.tables.iceberg", "iceberg"),
}
"""The module of a format, and the extra that brings what it imports."""


def open_store(
    into: str, mode: Mode, table_format: FormatName, app_id: str, settings: TableStoreSettings
) -> TableStore:
    """The tables of one kind of a target.

    Args:
        into: URI or absolute path of the target.
        mode: The kind of tables that are kept.
        table_format: The format that tables are kept in.
        app_id: Name of the landing in the tables' commits.
        settings: Settings of the store and its format.

    Raises:
        ConfigError: If the format cannot be used here.
    """
    tables = _tables(into, mode, table_format, app_id, settings)
    return TableStore(into, mode, tables, settings)


def check_format(table_format: FormatName) -> None:
    """See that what a format needs is installed.

    Raises:
        ConfigError: If it is not.
    """
    if table_format not in _NEEDS:
        return
    module, extra = _NEEDS[table_format]
    try:
        import_module(module)
    except ImportError as error:
        what = f"{error.name} is not installed" if error.name else str(error)
        raise ConfigError(
            f"{what}, without which no {table_format.value.capitalize()} tables are written",
            key="format",
            hint=f"pip install 'binlane[{extra}]', or use --format parquet, which needs nothing else",
        ) from error


def _tables(
    into: str, mode: Mode, table_format: FormatName, app_id: str, settings: TableStoreSettings
) -> TableFormat:
    check_format(table_format)
    if table_format is FormatName.PARQUET:
        return PlainFormat(into, mode, app_id)
    # Only who lands such tables needs these, and they take a second.
    if table_format is FormatName.DELTA:
        from binlane.tables.landing.tables.delta import DeltaFormat  # noqa: PLC0415 - as said

        feed = settings.feed if mode is Mode.CURRENT else None
        return DeltaFormat(into, mode, app_id, settings.keep_hours, feed=feed)
    from binlane.tables.landing.tables.iceberg import IcebergFormat, open_catalog  # noqa: PLC0415 - as said

    return IcebergFormat(into, mode, app_id, open_catalog(into, settings.catalog))
