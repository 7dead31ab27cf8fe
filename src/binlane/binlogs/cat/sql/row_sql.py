"""Row changes → one INSERT, UPDATE or DELETE statement each, forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from binlane.binlogs.cat.sql.sql_literals import condition, exact_column, key_condition, literal
from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.columns import ABSENT, Column, RowChange, RowImage, decode_rows
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import Flavor
from binlane.names import quote

if TYPE_CHECKING:
    from binlane.statements.sql.logged_objects import LoggedObjects


class RowSql:
    """The statements for changes of one table.

    Args:
        table_map: Table map of the changed table.
        flavor: Flavor of the log, and of the server that is to run the statements.
        catalog: Catalog of names that the log does not tell, and of generated columns; None if
            there is none.

    Raises:
        UnsupportedError: If neither log nor catalog names the columns.
    """

    def __init__(
        self, table_map: TableMapEvent, *, flavor: Flavor, catalog: LoggedObjects | None
    ) -> None:
        self._name = table_map.name
        self._flavor = flavor
        self._columns: tuple[Column, ...] = (
            table_columns(table_map, flavor=flavor)
            if catalog is None
            else catalog.columns(table_map, flavor=flavor)
        )
        if any(column.name is None for column in self._columns):
            raise UnsupportedError(
                f"the columns of {self._name} have no names: its log has no full metadata",
                hint="give its definition with --schema SCHEMA.sql, or log with "
                "binlog_row_metadata=FULL",
            )
        self._exact = tuple(map(exact_column, self._columns))
        self._stored = [column for column in self._columns if not column.is_generated]
        self._keys = [column for column in self._columns if column.in_primary_key]

    def changes(self, event: RowsEvent) -> Iterator[RowChange]:
        """The rows of an event, decoded as the statements need them."""
        return decode_rows(event, self._exact)

    def forward(self, change: RowChange) -> str:
        """Make the statement that repeats a change."""
        before, after = change
        if before is None:
            assert after is not None, "a change has an image"
            return self._insert(after)
        if after is None:
            return self._delete(before)
        return self._update(self._present(after), after, self._where(before))

    def backward(self, change: RowChange) -> str:
        """Make the statement that takes a change back.

        Raises:
            UnsupportedError: If the images do not hold all columns that the statement needs.
        """
        before, after = change
        if before is None:
            assert after is not None, "a change has an image"
            self._check_complete(after, "the row that an INSERT made", needs_key_only=True)
            return self._delete(after)
        if after is None:
            self._check_complete(before, "the row that a DELETE removed")
            return self._insert(before)
        changed = self._present(after)
        if any(before[column.index] is ABSENT for column in changed):
            raise self._partial("what an UPDATE changed")
        located = tuple(
            old if new is ABSENT else new for old, new in zip(before, after, strict=True)
        )
        return self._update(changed, before, self._where(located))

    def _check_complete(self, image: RowImage, what: str, *, needs_key_only: bool = False) -> None:
        needed = self._keys if needs_key_only and self._keys else self._stored
        if any(image[column.index] is ABSENT for column in needed):
            raise self._partial(what)

    def _partial(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} in {self._name} is not all in the log, so it cannot be taken back",
            hint="this needs binlog_row_image=FULL when the log is written; restore a backup "
            "and apply the log up to here with --stop-position",
        )

    def _present(self, image: RowImage) -> list[Column]:
        return [column for column in self._stored if image[column.index] is not ABSENT]

    def _insert(self, image: RowImage) -> str:
        columns = self._present(image)
        names = ", ".join(quote(column.name or "") for column in columns)
        values = ", ".join(
            literal(image[column.index], column, flavor=self._flavor) for column in columns
        )
        return f"INSERT INTO {self._name} ({names}) VALUES ({values})"  # noqa: S608  # quoted

    def _delete(self, image: RowImage) -> str:
        return f"DELETE FROM {self._name} WHERE {self._where(image)}"  # noqa: S608  # quoted

    def _update(self, columns: Sequence[Column], image: RowImage, where: str) -> str:
        # Columns that keep their value are named too, or ON UPDATE would change them.
        assignments = ", ".join(
            f"{quote(column.name or '')} = "
            + literal(image[column.index], column, flavor=self._flavor)
            for column in columns
        )
        return f"UPDATE {self._name} SET {assignments} WHERE {where}"  # noqa: S608  # quoted

    def _where(self, image: RowImage) -> str:
        if self._keys and all(image[column.index] is not ABSENT for column in self._keys):
            return " AND ".join(
                key_condition(image[column.index], column, flavor=self._flavor)
                for column in self._keys
            )
        conditions = (
            condition(image[column.index], column, flavor=self._flavor)
            for column in self._present(image)
        )
        return " AND ".join(conditions) + " LIMIT 1"


class RowSqlCache:
    """`RowSql` by TABLE_MAP: most rows are of few tables.

    Args:
        catalog: The catalog of names, as in `RowSql`.
    """

    _TABLES_MAX = 256

    def __init__(self, catalog: LoggedObjects | None) -> None:
        self._catalog = catalog
        self._known: dict[TableMapEvent, RowSql] = {}

    def get(self, table_map: TableMapEvent, *, flavor: Flavor, place: tuple[str, int]) -> RowSql:
        """The statements of a table.

        Args:
            table_map: Table map of the changed table.
            flavor: Flavor of the log's server.
            place: File and position, for errors.
        """
        found = self._known.get(table_map)
        if found is None:
            if len(self._known) >= self._TABLES_MAX:
                self._known.clear()
            try:
                found = RowSql(table_map, flavor=flavor, catalog=self._catalog)
            except CodecError as error:
                raise error.at(*place) from None
            self._known[table_map] = found
        return found

    def forget(self) -> None:
        """The catalog has changed."""
        self._known.clear()
