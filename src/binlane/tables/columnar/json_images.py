"""Row images as JSON objects: batches with one column beside the change columns.

`JsonBatchBuilder` is the reference, `LocatedJson` makes the same by kernels.
"""

from __future__ import annotations

import pyarrow as pa

from binlane.log.codec.json_text import json_text
from binlane.log.codec.json_values import json_row
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import Bytes
from binlane.tables.columnar.builder import ScalarBatchBuilder
from binlane.tables.columnar.json_conversions import json_conversion, json_rows
from binlane.tables.columnar.located_rows import Located, LocatedRows
from binlane.tables.columnar.noted_events import NotedEvents, Small
from binlane.tables.columnar.table_schema import TableSchema


class JsonBatchBuilder(ScalarBatchBuilder):
    """Builds batches from the values that the codec's reference decoder gives.

    Args:
        schema: Schema of the table, with images as JSON.
    """

    def __init__(self, schema: TableSchema) -> None:
        super().__init__(schema)
        self._columns = [schema.columns[index] for index in schema.chosen]

    def _clear(self) -> None:
        super()._clear()
        self._values = [[]]

    def _add(self, image: tuple[object, ...], op: str, number: int) -> None:
        self._ops.append(op)
        self._numbers.append(number)
        values = [image[index] for index in self._schema.chosen]
        self._values[0].append(json_text(json_row(self._columns, values)))


class LocatedJson(LocatedRows):
    """Makes batches of one table's rows events by kernels.

    Args:
        schema: Schema of the table, with images as JSON.
        scratch: Room for what lives no longer than it takes to make a batch.

    Raises:
        UnexpectedError: If the table has a column that the kernels cannot step over.
    """

    def __init__(self, schema: TableSchema, scratch: Small) -> None:
        super().__init__(schema, scratch)
        self._conversions = [json_conversion(schema.columns[index]) for index in schema.chosen]

    def _located(
        self, noted: NotedEvents, positions: Small, notes: Small, nulls: Bytes, absent: Bytes
    ) -> Located:
        if absent.any():
            raise UnexpectedError  # a column that an image lacks is not in its JSON
        columns = [
            convert(noted.data, row, bool(has_nulls))[0]
            for row, convert, has_nulls in zip(
                positions, self._conversions, nulls.tolist(), strict=True
            )
        ]
        images: pa.Array[pa.StringScalar] = json_rows(self._names, columns, positions.shape[1])
        arrow = self.schema.arrow
        return Located(schema=self.schema, arrow=arrow, arrays=[images], notes=notes.copy())
