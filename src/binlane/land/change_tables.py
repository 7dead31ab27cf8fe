"""Change tables: every row image of a table, appended in log order."""

from __future__ import annotations

import pyarrow as pa

from binlane.columnar.unify import conform_table, unify_schemas
from binlane.land.delta_tables import DeltaTables
from binlane.land.log_items import behind, last_seq
from binlane.names import TableName


class ChangeTables:
    """The change tables of a target.

    A table's changes stay under the name that it had at their time. Columns come with the rows that
    first have them and stay; one that gets another type gets a type that holds both.
    """

    def __init__(self, tables: DeltaTables) -> None:
        self._tables = tables

    def append(self, table: TableName, changes: pa.Table) -> None:
        """Add changes, those left out that are there already.

        Raises:
            StoreError: If the table cannot be written.
        """
        changes = changes.replace_schema_metadata(None)
        last = last_seq(changes)
        if not self._tables.exists(table):
            self._tables.create(table, changes, last)
            return
        fresh = behind(changes, self._tables.applied(table))
        if not fresh.num_rows:
            return
        known = self._tables.schema(table)
        wider = unify_schemas([fresh.schema, known])
        if any(not wider.field(field.name).type.equals(field.type) for field in known):
            rows = self._tables.read(table)
            self._tables.replace(table, conform_table(rows, wider), None)
        own = pa.schema([wider.field(name) for name in fresh.column_names])
        self._tables.append(table, conform_table(fresh, own), last)
