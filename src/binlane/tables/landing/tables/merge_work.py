"""What a merge hands to a task and gets back: which files, which rows of which runs, what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from binlane.tables.landing.tables.formats import RowCounts
from binlane.tables.landing.work import DataFile, Format

Change = Callable[[pa.Table], pa.Table]
"""Any rows of a table → the same rows with other columns or values. It can be pickled; it raises
ValueError or NotImplementedError, also pyarrow's kinds of them, where that cannot be."""


class How(Enum):
    """What becomes of the rows of base files."""

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
        uri: Of the run.
        drop: From which row to which its keys may be in the base files.
        add: From which row to which rows are to be written by this work.
    """

    uri: str
    drop: tuple[int, int]
    add: tuple[int, int]

    @property
    def span(self) -> tuple[int, int]:
        """From which row to which rows are read."""
        spans = [each for each in (self.drop, self.add) if each[0] < each[1]] or [(0, 0)]
        return min(each[0] for each in spans), max(each[1] for each in spans)

    @property
    def rows(self) -> int:
        """How many these are."""
        start, stop = self.span
        return stop - start


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWork:
    """Base files of one table, neighbours by key, and what is to be merged into them.

    Attributes:
        how: What becomes of their rows.
        directory: URI or path of the table.
        format: Of the table.
        run_id: Names the landing in what it writes.
        base: Paths of live files.
        runs: In log order.
        names: Of the source's columns, which runs begin with; the table may have some of them only.
        key: Names of the key's columns; empty if there is none.
        known: Columns of which the statistics of files tell.
        schema: The table's.
        change: What becomes of the rows of base files before anything else.
        target_bytes: Of a file to write, about.
        size_bytes: Of what is read.
        rows: Likewise.
        soft_deletes: Whether deleted rows stay.
        has_feed: Whether the rows that change are written down, too.
    """

    how: How
    directory: str
    format: Format
    run_id: str
    base: tuple[str, ...]
    runs: tuple[RunSlice, ...] = ()
    names: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    schema: pa.Schema
    change: Change | None = None
    target_bytes: int
    size_bytes: int
    rows: int
    soft_deletes: bool = False
    has_feed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What came of a merge.

    Attributes:
        add: Files written.
        remove: Paths of base files that they replace.
        schema: The table's.
        missing: Rows that were to be removed and were not there.
        rows: How many rows change.
        feed: Files of these rows, if they are to be written down.
        error: Why it cannot be done; then nothing was written.
    """

    add: tuple[DataFile, ...]
    remove: tuple[str, ...]
    schema: pa.Schema
    missing: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    feed: tuple[DataFile, ...] = ()
    error: str = ""
