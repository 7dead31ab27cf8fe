"""Change tables: every row image of a table, appended in log order."""

from __future__ import annotations

import pyarrow as pa

from binlane.columnar.unify import conform_table, unify_schemas
from binlane.land.delta_tables import DeltaTables
from binlane.land.table_files import read_file
from binlane.land.work import Rows


class ChangeTables:
    """The change tables of a target.

    A table's changes stay under the name that it had at their time. Columns come with the rows that
    first have them and stay; one that gets another type gets a type that holds both.
    """

    def __init__(self, tables: DeltaTables) -> None:
        self._tables = tables

    def append(self, rows: Rows) -> None:
        """Add changes, whose file has what is not there already.

        Raises:
            StoreError: If the table cannot be written.
        """
        if rows.changes is None:
            return
        table = rows.table
        uri = f"{self._tables.uri(table)}/{rows.changes.path}"
        fresh = read_file(uri)
        if not self._tables.exists(table):
            self._tables.create(table, fresh, rows.last_seq)
            return
        known = self._tables.schema(table)
        wider = unify_schemas([fresh.schema, known])
        if any(not wider.field(field.name).type.equals(field.type) for field in known):
            kept = self._tables.read(table)
            self._tables.replace(table, conform_table(kept, wider), None)
        own = pa.schema([wider.field(name) for name in fresh.column_names])
        self._tables.append(table, conform_table(fresh, own), rows.last_seq)
