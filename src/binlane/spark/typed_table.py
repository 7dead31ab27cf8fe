"""The layout `table`: the row images of one table, with its columns and types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from binlane.columnar.batches import ChangeBatcher
from binlane.columnar.table_schema import CHANGE_COLUMNS, table_schema
from binlane.columnar.unify import conform, unify_schemas
from binlane.errors import ConfigError
from binlane.grouping.event_group import EventGroup
from binlane.names import TableName
from binlane.ranges.plan import Planner
from binlane.spark.options import SourceOptions


def typed_schema(options: SourceOptions, planner: Planner) -> pa.Schema:
    """The columns of the option's table over the whole log: all that it ever had.

    Raises:
        ConfigError: If the log has no such table.
        CodecError: If a file is damaged.
    """
    table = options.table
    assert table is not None, "the layout table comes with its name"
    found: list[pa.Schema] = []
    seen: set[str] = set()
    for table_map, flavor in planner.table_maps():
        name = TableName(table_map.database, table_map.table)
        seen.add(name.plain)
        if name == table:
            found.append(table_schema(table_map, flavor=flavor).arrow)
    if not found:
        raise ConfigError(
            f"the log has no rows of {table.plain}",
            key="table",
            hint=f"it has rows of: {', '.join(sorted(seen)) or 'no table'}",
        )
    return unify_schemas(found).remove_metadata()


class TypedTable:
    """Renders event groups in the layout `table`.

    Args:
        options: With the table.
        schema: Of every batch; columns that a batch's table lacks become NULL.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        own = set(schema.names) - set(CHANGE_COLUMNS.names)
        self._schema = schema
        self._batcher = ChangeBatcher(
            selection=options.selection, columns=own, rows_max=options.rows_per_batch
        )

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it fills.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        for batch in self._batcher.feed(group):
            assert isinstance(batch, pa.RecordBatch), "nothing else is asked for"
            yield conform(batch, self._schema)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows that no batch has held yet."""
        for batch in self._batcher.finish():
            yield conform(batch, self._schema)
