"""Rows of the layout `batches` → batches and statements in log order, with their place.

`_seq` is that place as one number: the file's number times 2^40, plus the position of the event.
It grows with the log; the images of one event share it, and `_row` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.columnar.selection import file_number
from binlane.columnar.table_schema import (
    CHANGE_COLUMNS,
    SEQUENCE_COLUMN,
    has_full_images,
    primary_key_of,
)
from binlane.ranges.statements import Statement

FILE_BITS: Final = 40


@dataclass(frozen=True, slots=True)
class LogItem:
    """A batch of row images of one table, or a statement.

    Attributes:
        seq: `_seq` of the statement, or of the first image.
        last_seq: Of the last image.
        last_gtid: Likewise.
        content: The batch or statement.
    """

    seq: int
    last_seq: int
    last_gtid: str | None
    content: pa.RecordBatch | Statement


def log_items(rows: pa.Table) -> list[LogItem]:
    """Batches and statements of one micro-batch, in log order."""
    return sorted(_items(rows), key=lambda item: item.seq)


def _items(rows: pa.Table) -> Iterator[LogItem]:
    for row in rows.to_pylist():
        seq = _seq(row["file"], row["position"])
        if row["statement"] is None:
            with pa.ipc.open_stream(row["batch"]) as reader:
                batch = reader.read_next_batch()
            last_seq = _seq(row["file"], batch.column("_position")[-1].as_py())
            yield LogItem(seq, last_seq, batch.column("_gtid")[-1].as_py(), batch)
        else:
            statement = Statement(
                text=row["statement"],
                database=row["database"],
                sql_mode=row["sql_mode"],
                timestamp=row["timestamp"],
                gtid=row["gtid"],
                file=row["file"],
                position=row["position"],
            )
            yield LogItem(seq, seq, statement.gtid, statement)


def _seq(file: str | None, position: int | None) -> int:
    assert file is not None, "every row says its file"
    assert position is not None, "every row says its position"
    return (file_number(file) << FILE_BITS) + position


def shape(batch: pa.RecordBatch) -> tuple[object, ...]:
    """What batches must have in common to become one table."""
    schema = batch.schema
    fields = tuple((field.name, str(field.type)) for field in schema)
    return fields, tuple(primary_key_of(schema)), has_full_images(schema)


def with_seq(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Batches of one shape as a table, with `_seq` behind the change columns."""
    metadata = batches[0].schema.metadata
    parts = []
    for batch in batches:
        start = pa.scalar(_seq(batch.column("_file")[0].as_py(), 0), pa.int64())
        seq = pc.add(batch.column("_position"), start)
        part = pa.Table.from_batches([batch.replace_schema_metadata(metadata)])
        parts.append(part.add_column(len(CHANGE_COLUMNS), SEQUENCE_COLUMN, seq))
    return pa.concat_tables(parts)


def last_seq(changes: pa.Table) -> int:
    """The highest `_seq` of some changes."""
    highest = pc.max(changes.column(SEQUENCE_COLUMN)).as_py()
    assert isinstance(highest, int), "there is at least one change"
    return highest


def behind(changes: pa.Table, applied: int) -> pa.Table:
    """The changes that come behind a `_seq`."""
    is_behind = pc.greater(changes.column(SEQUENCE_COLUMN), pa.scalar(applied, pa.int64()))
    return changes.filter(is_behind) if applied else changes
