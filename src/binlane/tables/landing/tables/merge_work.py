"""Works and results of merges: files, rows of runs, and the files that are written from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from binlane.tables.landing.range_work import DataFile, FormatName
from binlane.tables.landing.tables.formats import RowCounts, TableCommit, What

RowChange = Callable[[pa.Table], pa.Table]
"""Function from any rows of a table to the same rows with other columns or values. It can be
pickled; it raises ValueError or NotImplementedError, or pyarrow's kinds of them, where it
cannot."""


class How(Enum):
    """Treatment of the rows of base files."""

    MERGE = "merge"
    """The last row of each key counts."""
    COUNT = "count"
    """Rows without a key come and go as often as the run says."""
    VERSIONS = "versions"
    """Each version of a key's row is kept, with the time in which it held."""
    REWRITE = "rewrite"
    """All stay: in fewer files, or with other columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSlice:
    """Rows of a staged run.

    Attributes:
        drop: First row and end of the rows whose keys may be in the base files.
        add: First row and end of the rows that are to be written by this work.
    """

    uri: str
    drop: tuple[int, int]
    add: tuple[int, int]

    @property
    def span(self) -> tuple[int, int]:
        """First row and end of the rows that are read."""
        spans = [each for each in (self.drop, self.add) if each[0] < each[1]] or [(0, 0)]
        return min(each[0] for each in spans), max(each[1] for each in spans)

    @property
    def rows(self) -> int:
        """The number of rows from the first to the last one that is read."""
        start, stop = self.span
        return stop - start


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWork:
    """Base files of one table, neighbours by key, and the runs to be merged into them.

    Attributes:
        how: The treatment of the files' rows.
        directory: URI or path of the table.
        run_id: Name of the landing in the files that it writes.
        base: Paths of the live files to replace.
        runs: Parts of runs in log order.
        names: Names of the source's columns, which runs begin with; the table may have only some of
            them.
        key: Names of the key's columns; empty if there is none.
        known: Names of the columns that get statistics in files.
        schema: Schema of the table after the merge.
        change: A function of the rows of base files that is called before anything else.
        target_bytes: Bytes of a file to write, about.
        size_bytes: Bytes that the work has to read.
        rows: Rows that the work has to read.
        soft_deletes: Whether deleted rows stay in the table.
        has_feed: Whether the rows that change are written to files of their own, too.
    """

    how: How
    directory: str
    format: FormatName
    run_id: str
    base: tuple[str, ...]
    runs: tuple[RunSlice, ...] = ()
    names: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    schema: pa.Schema
    change: RowChange | None = None
    target_bytes: int
    size_bytes: int
    rows: int
    soft_deletes: bool = False
    has_feed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The result of a merge.

    Attributes:
        add: The files that the task wrote.
        remove: Paths of base files that the new files replace.
        schema: Schema of the table after the merge.
        missing: Rows that were to be removed and were not there.
        rows: The numbers of rows that change.
        feed: Files of the rows that change, if such files are to be written.
        error: The reason why the merge cannot be done; then nothing was written.
    """

    add: tuple[DataFile, ...]
    remove: tuple[str, ...]
    schema: pa.Schema
    missing: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    feed: tuple[DataFile, ...] = ()
    error: str = ""


def change_of(
    results: Sequence[MergeResult], what: What, applied: int | None, images: int | None
) -> TableCommit:
    """Return the change that lets a table be what works made of it.

    Args:
        results: The results of all works of one plan.
        what: The kind of the commit.
        applied: The `_seq` up to which the table is complete then; None leaves it as it is.
        images: How many row images of the log are in the table then; None leaves that as it is.
    """
    remove = [path for result in results for path in result.remove]
    return TableCommit(
        what=what,
        add=[file for result in results for file in result.add],
        remove=remove,
        applied=applied,
        images=images,
        # If no file goes, the rows of the files that come are the rows that come.
        feed=[file for result in results for file in result.feed] if remove else [],
        rows=sum((result.rows for result in results), RowCounts()) if what is What.MERGE else None,
    )
