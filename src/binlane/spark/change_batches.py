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

from binlane.errors import UnsupportedError
from binlane.ranges.items import Trouble, Want
from binlane.ranges.log_range import LogRange
from binlane.ranges.read import read_range
from binlane.ranges.statements import Statement
from binlane.spark.options import SourceOptions

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


def read_change_batches(piece: LogRange, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """The rows of the layout for one range.

    Raises:
        CodecError: With file and position, if a row cannot be decoded.
        UnsupportedError: At a group of which the log does not tell which rows are to stay.
    """
    want = Want(selection=options.selection, rows_max=options.rows_per_batch, has_statements=True)
    for item in read_range(piece, want):
        if isinstance(item, Trouble):
            raise UnsupportedError(item.what, hint=item.hint).at(item.file, item.position)
        yield _of_statement(item) if isinstance(item, Statement) else _of_batch(item)


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
