"""Row images, as ranges give them: which kind each is, and which two make one change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.tables.columnar.table_schema import table_of

Codes = npt.NDArray[np.uint8]
Indexes = npt.NDArray[np.int64]

INSERT: Final = 0
DELETE: Final = 1
UPDATE_BEFORE: Final = 2
UPDATE_AFTER: Final = 3
OP: Final = 0
"""Index of the operation in a batch that has it: a table may have a column of that name, too."""
CHANGE_OPS: Final = pa.array(["insert", "delete", "update"])
"""Names of changes by the code of their first image."""
IMAGE_OPS: Final = ("insert", "delete", "update_before", "update_after")
_BEFORE_LENGTH: Final = len("update_before")
_AFTER_LENGTH: Final = len("update_after")


def op_codes(ops: pa.Array[Any]) -> Codes:
    """The kind of each image, as its place in `IMAGE_OPS`.

    Args:
        ops: The column `_op`: no other values, none NULL.
    """
    buffers: Any = ops.buffers()
    _, offsets, data = buffers
    ends = np.frombuffer(offsets, np.int32)[ops.offset : ops.offset + len(ops) + 1]
    lengths = np.diff(ends)
    # Their lengths tell the images of an update, their first letters the other two.
    codes: Codes = (np.frombuffer(data, np.uint8)[ends[:-1]] == ord("d")).astype(np.uint8)
    codes[lengths == _BEFORE_LENGTH] = UPDATE_BEFORE
    codes[lengths == _AFTER_LENGTH] = UPDATE_AFTER
    return codes


def chosen_images(batch: pa.RecordBatch, ops: frozenset[str] | None) -> pa.RecordBatch:
    """The images of some operations; all if None."""
    if ops is None:
        return batch
    return batch.filter(pc.is_in(batch.column(OP), pa.array(sorted(ops))))


class WholeChanges:
    """Moves the cuts between batches so that none lies between the two images of an update."""

    def __init__(self) -> None:
        self._held: dict[TableName, pa.RecordBatch] = {}

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the next batch of a table, which has `_op`; return its complete changes."""
        name = table_of(batch.schema)
        held = self._held.pop(name, None)
        if held is not None:
            plain = [each.replace_schema_metadata(None) for each in (held, batch)]
            joined = pa.Table.from_batches(plain).combine_chunks().to_batches()[0]
            batch = joined.replace_schema_metadata(batch.schema.metadata)
        last = batch.num_rows - 1
        if last >= 0 and op_codes(batch.column(OP).slice(last))[0] == UPDATE_BEFORE:
            self._held[name] = batch.slice(last)
            batch = batch.slice(0, last)
        if batch.num_rows:
            yield batch


@dataclass(frozen=True, slots=True)
class ImageChanges:
    """The images that make the changes of a batch, a number for each change.

    Attributes:
        codes: `INSERT`, `DELETE` or `UPDATE_BEFORE`, which stands for an update.
        first: Number of the first image of each change.
        before: Number of the image before each change, -1 for an insert.
        after: Number of the image after each change, -1 for a delete.
    """

    codes: Codes
    first: Indexes
    before: Indexes
    after: Indexes

    @classmethod
    def of(cls, ops: pa.Array[Any]) -> ImageChanges:
        """The changes of a batch that has whole ones."""
        images = op_codes(ops)
        first = np.flatnonzero(images != UPDATE_AFTER)
        codes = images[first]
        return cls(
            codes=codes,
            first=first,
            before=np.where(codes == INSERT, -1, first),
            after=np.where(codes == DELETE, -1, first + (codes == UPDATE_BEFORE)),
        )

    @property
    def row(self) -> Indexes:
        """The image behind each change, of a delete the one before it."""
        return np.where(self.after < 0, self.before, self.after)


def taken(values: pa.Array[Any], indexes: Indexes) -> pa.Array[Any]:
    """Some of the values, in order; NULL where an index is -1."""
    count = len(indexes)
    if count and indexes[0] == 0 and count == len(values) and (np.diff(indexes) == 1).all():
        return values
    missing = indexes < 0
    places: Any = pa.array(indexes, mask=missing) if missing.any() else indexes
    return values.take(places)


def struct_of(columns: list[pa.Array[Any]], fields: list[pa.Field[Any]], indexes: Indexes) -> Any:
    """The rows at some indexes as structs; NULL where an index is -1."""
    missing = indexes < 0
    if missing.all():
        return pa.nulls(len(indexes), pa.struct(fields))
    return pa.StructArray.from_arrays(
        [taken(column, indexes) for column in columns],
        fields=fields,
        mask=pa.array(missing) if missing.any() else None,
    )
