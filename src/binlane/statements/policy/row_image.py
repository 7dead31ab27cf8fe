"""Columns in the images of a row event, by `binlog_row_image`.

Source: seed 004, "row image"; MariaDB 11.4 adds FULL_NODUP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from binlane.log.codec.types import Flavor
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.servers import RowImage

if TYPE_CHECKING:
    from collections.abc import Collection

    from binlane.statements.sql.schema import Table
    from binlane.statements.sql.table_definitions import TableColumn

_BLOB_TYPES: Final = frozenset(
    {
        *("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
        *("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "CLOB"),
    }
)
"""Types that NOBLOB leaves out: no geometry, and of JSON only MariaDB's, which is a LONGTEXT."""


@dataclass(frozen=True, slots=True)
class Images:
    """Columns by name, in the table's order.

    Attributes:
        before: None where the event has no such image.
        after: None where the event has no such image.
    """

    before: tuple[str, ...] | None
    after: tuple[str, ...] | None


def primary_key_equivalent(table: Table) -> tuple[str, ...]:
    """The columns that tell a row: primary key, else a unique key without NULL, else all."""
    columns = {column.name.lower(): column for column in table.definition.columns}
    for key in table.keys:
        if key.is_primary:
            return _in_order(key.columns, table)
    for key in table.keys:
        if key.is_unique and all(
            name.lower() in columns and not columns[name.lower()].is_nullable
            for name in key.columns
        ):
            return _in_order(key.columns, table)
    return tuple(column.name for column in table.definition.columns)


def images(
    table: Table,
    change: RowChange,
    image: RowImage,
    specified: Collection[str] | None = None,
    *,
    flavor: Flavor,
) -> Images:
    """Return the columns that an event's images hold.

    Args:
        table: The table whose row changes.
        change: Kind of change: INSERT, UPDATE or DELETE.
        image: The session's value of binlog_row_image.
        specified: Columns to which the statement gives values; None: all.
        flavor: The server's flavor, which decides DELETE and UPDATE images.
    """
    if change is RowChange.DELETE:
        return Images(_before(table, image, flavor), None)
    after = _after(table, image, specified, flavor)
    if change is RowChange.INSERT:
        is_nodup = image is RowImage.FULL_NODUP
        return Images(None, _all(table) if is_nodup else _with_counter(after, table))
    return Images(_before(table, image, flavor), after)


def _before(table: Table, image: RowImage, flavor: Flavor) -> tuple[str, ...]:
    key = {name.lower() for name in primary_key_equivalent(table)}
    if image is RowImage.MINIMAL:
        return _in_order(key, table)
    if image is RowImage.NOBLOB:
        return tuple(
            column.name
            for column in table.definition.columns
            if column.name.lower() in key or not _is_blob(column, flavor)
        )
    return _all(table)


def _after(
    table: Table, image: RowImage, specified: Collection[str] | None, flavor: Flavor
) -> tuple[str, ...]:
    if image is RowImage.FULL or specified is None:
        return _all(table)
    given = {name.lower() for name in specified}
    return tuple(
        column.name
        for column in table.definition.columns
        if column.name.lower() in given
        or (image is RowImage.NOBLOB and not _is_blob(column, flavor))
    )


def _with_counter(columns: tuple[str, ...], table: Table) -> tuple[str, ...]:
    """The columns and the auto-increment column, which always gets a value."""
    if table.auto_increment is None:
        return columns
    return _in_order({*columns, table.auto_increment}, table)


def _in_order(names: Collection[str], table: Table) -> tuple[str, ...]:
    known = {name.lower() for name in names}
    return tuple(column.name for column in table.definition.columns if column.name.lower() in known)


def _all(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.definition.columns)


def _is_blob(column: TableColumn, flavor: Flavor) -> bool:
    name = column.type_name.upper()
    return name in _BLOB_TYPES or (name == "JSON" and flavor is Flavor.MARIADB)
