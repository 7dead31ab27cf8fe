"""What a task of a landing does with its range: decode it, write files, say what stands in it.

It runs anywhere: in this process, in a worker of the embedded engine, in Spark's. Memory is bounded
whatever the range holds: what waits to be written is, and a table may get several files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.columnar.table_schema import CHANGE_NAMES, clash_of, table_of
from binlane.landing.definitions import Definitions
from binlane.landing.generated_columns import LoggedRows
from binlane.landing.table_changes import may_have_steps
from binlane.landing.table_files import ADDED, Shape, TableFiles
from binlane.landing.work import RangeItem, RangeResult, RangeWork, Rows, Skipped
from binlane.names import TableName
from binlane.ranges.items import RangeItem as Read
from binlane.ranges.items import Trouble, TroubleKind
from binlane.ranges.read import read_range
from binlane.ranges.statements import Statement

TABLE_BYTES_MAX: Final = 64 << 20
"""Bytes of images in memory behind which a table's files end."""
WAITING_BYTES_MAX: Final = 160 << 20
"""Of all tables; then the largest are written."""


def land_range(work: RangeWork) -> RangeResult:
    """Land one range: write the images of its tables, and tell all else that stands in it.

    Raises:
        CodecError: With file and position, if the log is damaged or a row cannot be decoded.
        StoreError: If the log cannot be read or the target not be written.
    """
    return RangeResult(items=tuple(_items(work)), size_bytes=work.size_bytes or 0)


def _items(work: RangeWork) -> Iterator[RangeItem]:
    tables = _Tables(work)
    clashing: set[TableName] = set()
    catalog = None if work.piece.catalog is None else work.piece.catalog.copy()
    logged = LoggedRows(Definitions(catalog), len(work.want.change_columns))
    for item in _without_skipped(read_range(work.piece, work.want), work.skip):
        if isinstance(item, pa.RecordBatch):
            clash = _clash(item, work.want.change_columns)
            if clash is None:
                yield from tables.add(logged.whole(item))
            elif table_of(item.schema) not in clashing:
                clashing.add(table_of(item.schema))
                yield _clashing(item, clash)
            continue
        if isinstance(item, Trouble) or (isinstance(item, Statement) and may_have_steps(item)):
            yield from tables.finish()
        if isinstance(item, Statement):
            logged.follow(item)
        yield item
    yield from tables.finish()


def _without_skipped(items: Iterable[Read], skip: frozenset[str]) -> Iterator[Read | Skipped]:
    """What was read, without the event groups that are to be passed over."""
    for item in items:
        if not skip:
            yield item
        elif isinstance(item, pa.RecordBatch):
            gtids = item.column("_gtid")
            mask: Any = pc.is_in(gtids, value_set=pa.array(sorted(skip)))
            found: Any = pc.unique(gtids.filter(mask))
            for gtid in found.to_pylist():
                yield Skipped(gtid=gtid, tables=frozenset({table_of(item.schema)}))
            yield item.filter(pc.invert(mask))
        elif item.gtid is not None and item.gtid in skip:
            statement = item if isinstance(item, Statement) else None
            yield Skipped(gtid=item.gtid, statement=statement)
        else:
            yield item


def _clash(batch: pa.RecordBatch, before: Sequence[str]) -> str | None:
    """A column of a table with the name of one that landing adds; None if there is none."""
    own = batch.schema.names[len(before) :]
    return clash_of(batch.schema) or next((name for name in own if name.lower() in ADDED), None)


def _clashing(batch: pa.RecordBatch, column: str) -> Trouble:
    # By their places: the table may have such names, too.
    place = dict(zip(batch.schema.names, batch.columns, strict=True)) | dict(
        zip(CHANGE_NAMES, batch.columns, strict=False)
    )
    return Trouble(
        kind=TroubleKind.COLUMN,
        what=f"its column {column} has the name of one that binlane adds; none of its rows are landed",
        hint="rename the column at the source, and land the table anew",
        tables=(table_of(batch.schema),),
        gtid=place["_gtid"][0].as_py(),
        file=place["_file"][0].as_py(),
        position=place["_position"][0].as_py(),
    )


class _Tables:
    """The tables of which images wait."""

    def __init__(self, work: RangeWork) -> None:
        self._work = work
        self._open: dict[TableName, TableFiles] = {}
        self._size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[Rows]:
        """Take a batch; give what is written now."""
        table, shape = table_of(batch.schema), Shape.of(batch)
        files = self._open.get(table)
        if files is not None and files.shape != shape:
            yield from self._end(files)
            files = None
        if files is None:
            files = self._open[table] = TableFiles(self._work, table, shape)
        before = files.size_bytes
        files.add(batch)
        self._size_bytes += files.size_bytes - before
        if files.size_bytes >= TABLE_BYTES_MAX:
            yield from self._end(files)
        elif self._size_bytes >= WAITING_BYTES_MAX:
            largest = sorted(self._open.values(), key=lambda each: -each.size_bytes)
            while self._size_bytes >= WAITING_BYTES_MAX // 2:
                yield from self._end(largest.pop(0))

    def finish(self) -> Iterator[Rows]:
        """All that waits."""
        for files in list(self._open.values()):
            yield from self._end(files)

    def _end(self, files: TableFiles) -> Iterator[Rows]:
        del self._open[files.table]
        self._size_bytes -= files.size_bytes
        rows = files.write()
        if rows is not None:
            yield rows
