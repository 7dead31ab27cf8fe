"""The layout `batches`: what landing engines take.

One row is either a batch of row images of one table, as an Arrow stream with the table's own
columns and types, or a statement. So the costly part, decoding, is done by Spark's tasks, tables of
any schema travel in one data frame, and rows and statements keep the order of the log: batches end
before a statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from binlane.codec.control import IncidentEvent
from binlane.codec.query import QueryEvent
from binlane.codec.rows import RowsEvent
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import GtidFlag
from binlane.columnar.batches import ChangeBatcher
from binlane.errors import UnsupportedError
from binlane.grouping.event_group import EventGroup
from binlane.spark.options import SourceOptions
from binlane.spark.statements import Statement, statements

_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    ("file", pa.string()),
    ("position", pa.int64()),
    ("batch", pa.binary()),
    ("statement", pa.string()),
    ("database", pa.string()),
    ("sql_mode", pa.int64()),
    ("timestamp", pa.int64()),
    ("gtid", pa.string()),
]
CHANGE_BATCHES: Final = pa.schema(_COLUMNS)
"""`position` is that of the first rows event or of the statement; `batch` or `statement` is NULL."""


class ChangeBatches:
    """Renders event groups in the layout `batches`."""

    def __init__(self, options: SourceOptions) -> None:
        self._selection = options.selection
        self._batcher = ChangeBatcher(selection=options.selection, rows_max=options.rows_per_batch)

    def feed(self, group: EventGroup) -> Iterator[pa.RecordBatch]:
        """Take the next group; give the batches that it completes.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
            UnsupportedError: At a group of which the log does not tell which rows are to stay.
        """
        _check_landable(group)
        if self._selection.includes(group):
            # Where a group has both (CREATE TABLE … SELECT), the statement comes first.
            for statement in statements(group):
                yield from self.finish()
                yield _of_statement(statement)
        yield from map(_of_batch, self._batcher.feed(group))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows that no batch has held yet."""
        yield from map(_of_batch, self._batcher.finish())


def _check_landable(group: EventGroup) -> None:
    """Refuse what cannot be landed: lost changes, and rows that may be or were rolled back."""
    has_rows = any(isinstance(event.body, RowsEvent) for event in group.events)
    for event in group.events:
        body, what, hint = event.body, "", ""
        if isinstance(body, IncidentEvent):
            what = f"changes are missing here: INCIDENT {body.message.decode('utf-8', 'replace')}"
            hint = "land the tables anew from a copy of the source"
        elif isinstance(body, GtidEvent) and body.flags & GtidFlag.PREPARED_XA:
            what = "an XA transaction is prepared here, and may yet be rolled back"
            hint = "landing does not follow XA transactions yet"
        elif has_rows and isinstance(body, QueryEvent) and body.query.startswith(b"ROLLBACK"):
            what = "a transaction with rows is rolled back here in part"
            hint = "the log does not tell which rows stay; use one engine in a transaction"
        if what:
            raise UnsupportedError(what, hint=hint).at(group.file, event.position)


def _of_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return _row(
        file=batch.column("_file")[0].as_py(),
        position=batch.column("_position")[0].as_py(),
        batch=sink.getvalue().to_pybytes(),
    )


def _of_statement(statement: Statement) -> pa.RecordBatch:
    return _row(
        file=statement.file,
        position=statement.position,
        statement=statement.text,
        database=statement.database,
        sql_mode=statement.sql_mode,
        timestamp=statement.timestamp,
        gtid=statement.gtid,
    )


def _row(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=CHANGE_BATCHES)
