"""The task of a landing with its range: decode it, write files, name the statements in it.

A task runs anywhere: in this process, in a worker of the embedded engine, in Spark's. Memory is
bounded whatever the range holds, since the rows that wait to be written are bounded; a table may
get several files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.log_notes import RangeItem as Read
from binlane.tables.columnar.log_notes import Statement, Trouble, TroubleKind
from binlane.tables.columnar.table_schema import CHANGE_NAMES, clash_of, table_of
from binlane.tables.landing.audit import audited_range
from binlane.tables.landing.generated_columns import CompletedRows
from binlane.tables.landing.range_work import RangeItem, RangeResult, RangeWork, Rows, Skipped
from binlane.tables.landing.statement_steps import may_have_steps
from binlane.tables.landing.table_files import ADDED, BatchShape, TableFiles
from binlane.tables.ranges.read import read_range

TABLE_BYTES_MAX: Final = 64 << 20
"""Bytes of images in memory behind which a table's files end."""
WAITING_BYTES_MAX: Final = 160 << 20
"""Bytes of the batches of all tables that wait in memory; beyond them the largest are written."""

BY_FILTER: Final = "left out by the filter"
UNCERTAIN: Final = "of transactions that were rolled back in part"
SKIPPED: Final = "of event groups that were passed over, as asked"
CLASHING: Final = "of a table with a column that has the name of one that binlane adds"


def land_range(work: RangeWork) -> RangeResult:
    """Land one range: write the images of its tables, and tell all else that stands in it.

    Raises:
        CodecError: With file and position, if the log is damaged or a row cannot be decoded.
        StoreError: If the log cannot be read or the target not be written.
    """
    counts = _Counts()
    items = tuple(_items(work, counts))
    size_bytes, left_out = work.size_bytes or 0, counts.counters.left_out
    if not work.is_audited:
        return RangeResult(items=items, size_bytes=size_bytes, left_out=left_out)
    logged = audited_range(work, counts.read, left_out.images)
    wanted, uncertain = _landed(logged.images, work), _landed(logged.uncertain, work)
    if work.want.selection.filter_terms is not None:
        named = counts.read.keys() | left_out.images.keys()
        wanted = Counter({table: n for table, n in wanted.items() if table in named})
    passed_over = {why: _landed(tables, work) for why, tables in counts.passed_over.items()}
    not_landed = {**passed_over, BY_FILTER: wanted - counts.read, UNCERTAIN: uncertain}
    return RangeResult(
        items=items,
        size_bytes=size_bytes,
        left_out=left_out,
        logged=wanted + uncertain,
        not_landed={why: tables for why, tables in not_landed.items() if tables},
        outside=logged.images.total() - wanted.total(),
    )


def _landed(images: Mapping[TableName, int], work: RangeWork) -> Counter[TableName]:
    """Counts of the tables that are landed; others are read for their foreign keys."""
    scope = work.want.selection.scope
    return Counter(
        {
            table: count
            for table, count in images.items()
            if scope.includes(table) and work.links.get(table) is None
        }
    )


class _Counts:
    """Row images of a range, by table.

    Attributes:
        read: Row images that were decoded.
        passed_over: Row images of `read` that are not handed on, by why.
        counters: Counters of the reader that decodes.
    """

    def __init__(self) -> None:
        self.read: Counter[TableName] = Counter()
        self.passed_over: dict[str, Counter[TableName]] = defaultdict(Counter)
        self.counters = ReadCounters()

    def reading(self, items: Iterable[Read]) -> Iterator[Read]:
        """Count what is decoded."""
        for item in items:
            if isinstance(item, pa.RecordBatch):
                self.read[table_of(item.schema)] += item.num_rows
            yield item


def _items(work: RangeWork, counts: _Counts) -> Iterator[RangeItem]:
    tables = _Tables(work)
    clashing: set[TableName] = set()
    read = counts.reading(read_range(work.piece, work.want, counters=counts.counters))
    known = LoggedObjects() if work.piece.catalog is None else work.piece.catalog.copy()
    logged = CompletedRows(known, len(work.want.change_columns))
    for item in _without_skipped(read, work.skip, counts):
        if isinstance(item, pa.RecordBatch):
            clash = _clash(item, work.want.change_columns)
            if clash is None:
                yield from tables.add(logged.whole(item))
                continue
            table = table_of(item.schema)
            counts.passed_over[CLASHING][table] += item.num_rows
            if table not in clashing:
                clashing.add(table)
                yield _clashing(item, clash)
            continue
        if isinstance(item, Trouble) or (isinstance(item, Statement) and may_have_steps(item)):
            yield from tables.finish()
        if isinstance(item, Statement):
            logged.follow(item)
        yield item
    yield from tables.finish()


def _without_skipped(
    items: Iterable[Read], skip: frozenset[str], counts: _Counts
) -> Iterator[Read | Skipped]:
    """Hand on the items that were read, without the event groups that are to be passed over."""
    for item in items:
        if not skip:
            yield item
        elif isinstance(item, pa.RecordBatch):
            gtids = item.column("_gtid")
            mask: Any = pc.is_in(gtids, value_set=pa.array(sorted(skip)))
            found: Any = pc.unique(gtids.filter(mask))
            for gtid in found.to_pylist():
                yield Skipped(gtid=gtid, tables=frozenset({table_of(item.schema)}))
            kept = item.filter(pc.invert(mask))
            counts.passed_over[SKIPPED][table_of(item.schema)] += item.num_rows - kept.num_rows
            yield kept
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
        table, shape = table_of(batch.schema), BatchShape.of(batch)
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
