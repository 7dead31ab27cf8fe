"""Small batches of many tables → batches of a size that is worth handing on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from binlane.names import TableName
from binlane.tables.columnar.located_rows import merged
from binlane.tables.columnar.table_schema import INVALID_DATES, TableSchema

ROWS_ENOUGH: Final = 1024
"""Number of rows from which putting batches together costs more than it gains."""
BATCH_BYTES_MAX: Final = 4 << 20
PENDING_BYTES_MAX: Final = 48 << 20


@dataclass(slots=True)
class _Table:
    schema: TableSchema
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0


class PendingBatches:
    """Collects batches of tables until they are large enough.

    Args:
        rows_max: Rows of a batch that is handed on.
    """

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._rows_enough = min(rows_max, ROWS_ENOUGH)
        self._tables: dict[TableName, _Table] = {}
        self._size_bytes = 0

    def add(self, schema: TableSchema, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; give what is large enough now."""
        table = self._tables.get(schema.name)
        if table is not None and (
            not table.schema.arrow.equals(schema.arrow, check_metadata=True)
            or table.rows + batch.num_rows > self._rows_max
        ):
            yield from self._give(schema.name)
            table = None
        if table is None and self._rows_enough <= batch.num_rows <= self._rows_max:
            yield batch
            return
        if table is None:
            table = self._tables[schema.name] = _Table(schema)
        size_bytes = batch.nbytes
        table.batches.append(batch)
        table.rows += batch.num_rows
        table.size_bytes += size_bytes
        self._size_bytes += size_bytes
        if table.rows >= self._rows_enough or table.size_bytes >= BATCH_BYTES_MAX:
            yield from self._give(schema.name)
        elif self._size_bytes >= PENDING_BYTES_MAX:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All that is there."""
        for name in list(self._tables):
            yield from self._give(name)

    def _give(self, name: TableName) -> Iterator[pa.RecordBatch]:
        table = self._tables.pop(name)
        self._size_bytes -= table.size_bytes
        whole = merged(table.batches)
        yield whole.slice(0, self._rows_max)
        if whole.num_rows > self._rows_max:
            metadata = {
                key: value for key, value in whole.schema.metadata.items() if key != INVALID_DATES
            }
            rest = whole.replace_schema_metadata(metadata)
            for offset in range(self._rows_max, whole.num_rows, self._rows_max):
                yield rest.slice(offset, self._rows_max)
