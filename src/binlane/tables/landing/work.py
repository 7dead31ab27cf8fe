"""What a landing hands to tasks and gets back: ranges of a log in, files, statements, troubles out.

All of it can be pickled. No rows are in it: a task writes them where the tables are, and the files
that it names are nobody's until a table's commit names them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from binlane.binlogs.filters.losses import Losses
from binlane.names import TableName
from binlane.tables.ranges.items import Trouble, Want
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.statements import Statement

FILE_BITS: Final = 40
"""`_seq` is a file's number times 2^40, plus the position of an event in it."""


_NO_FULL_IMAGES: Final = (
    "row images lack columns: binlog_row_image is not FULL on the source, or they are generated "
    "columns of a table whose CREATE TABLE is not in the log"
)


class Mode(Enum):
    """A kind of tables that landing keeps."""

    CURRENT = "current"
    CHANGES = "changes"
    HISTORY = "history"


class Format(Enum):
    """What the tables are for those who read them."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    PARQUET = "parquet"


def sequence(file_number: int, position: int) -> int:
    """A place in a log as one number, which grows with the log."""
    return (file_number << FILE_BITS) + position


def place_of(seq: int) -> tuple[int, int]:
    """Exact inverse of `sequence`."""
    return seq >> FILE_BITS, seq & ((1 << FILE_BITS) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file that a task wrote.

    Attributes:
        path: Relative to the table's directory, or of a staged run its URI.
        rows: In it.
        size_bytes: Of it.
        schema: Of its columns, without metadata.
        stats: As Delta's JSON has them: `numRecords`, `minValues`, `maxValues`, `nullCount`; of
            columns that are not named there nothing is known.
    """

    path: str
    rows: int
    size_bytes: int
    schema: pa.Schema
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Row images of one table that follow each other in the log.

    Attributes:
        table: Theirs.
        first_seq: `_seq` of the first image, of those that were not applied before.
        last_seq: Of the last one.
        last_gtid: Of the last one; None if it has none.
        last_timestamp: When the last one was written, in seconds since 1970.
        images: How many there are.
        decoded: How many there were with those that were applied before.
        fresh: Of each mode for which they are, how many its table has not.
        added: How many rows those for the current table add less how many they remove; None of what
            foreign keys did.
        invalid_dates: Zero or partial dates in them that became NULL.
        key: Names of the primary key's columns; empty if the log tells none.
        is_full: Whether the images hold what current tables need.
        has_absent: Whether some lack columns.
        why_not: Why they do not, beside columns that they lack.
        columns: Names and types of the table's own columns.
        file: Name of the binlog file that they were read from; empty if nobody told.
        changes: All images in log order, in the directory of the change table.
        fault: Why that could not be written, where that may be the table's own fault.
        run: One row a key, the last one, sorted by key: the own columns, `_gtid`, `_seq`, `_gone`;
            without a key one row for each distinct row, with `_count`, how often it comes more than
            it goes. Staged.
        versions: All images but those before an update that keeps its key, sorted by key and
            `_seq`: the columns of a run and `_ts`. Staged; for history.
        links: All images in log order, with `cascades.IMAGE_COLUMNS`, of a table whose rows change
            with those of others, or others' with its. Staged.
    """

    table: TableName
    first_seq: int
    last_seq: int
    last_gtid: str | None
    last_timestamp: int
    images: int
    decoded: int = 0
    fresh: Mapping[Mode, int] = field(default_factory=dict)
    added: int | None = None
    invalid_dates: int
    key: tuple[str, ...]
    is_full: bool
    columns: pa.Schema
    file: str = ""
    changes: DataFile | None = None
    fault: str = ""
    run: DataFile | None = None
    versions: DataFile | None = None
    links: DataFile | None = None
    why_not: str = ""
    has_absent: bool = False

    @property
    def lacks(self) -> str:
        """Why the images are not enough for current tables; empty if they are."""
        return "" if self.is_full else self.why_not or _NO_FULL_IMAGES

    @property
    def place(self) -> str:
        """Where the first image stands: `binlog.000001:256`."""
        return f"{self.file}:{place_of(self.first_seq)[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What of an event group was passed over, as the user asked.

    Attributes:
        gtid: Of the group.
        tables: Whose rows were.
        statement: That was not followed; None for rows.
    """

    gtid: str
    tables: frozenset[TableName] = frozenset()
    statement: Statement | None = None


RangeItem = Rows | Statement | Trouble | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWork:
    """A range of the log, to be landed by one task.

    Attributes:
        piece: The range.
        want: What of it.
        modes: For which kinds of tables.
        into: URI or absolute path of the target.
        format: Of the tables.
        run_id: Names the landing in what it writes, so that what a dead one left can be told.
        done: All rows up to this `_seq` are in all tables.
        applied: Up to which `_seq` rows are in a table, by kind and table, where that is more.
        skip: GTIDs of event groups to pass over.
        lost: Tables whose changes are not written, since their change tables could not be.
        links: Tables of which all images are needed, for what foreign keys do: the columns of those
            that are read for that alone, None for all columns of a table that is landed.
        is_audited: Whether the range is counted beside the task.
    """

    piece: LogRange
    want: Want
    modes: frozenset[Mode]
    into: str
    format: Format
    run_id: str
    done: int = 0
    applied: Mapping[Mode, Mapping[TableName, int]] = field(default_factory=dict)
    skip: frozenset[str] = frozenset()
    lost: frozenset[TableName] = frozenset()
    links: Mapping[TableName, frozenset[str] | None] = field(default_factory=dict)
    is_audited: bool = True

    @property
    def size_bytes(self) -> int | None:
        """Bytes of log in the range; None if that is not known."""
        stop = self.piece.stop
        return None if stop is None else stop - self.piece.start


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeResult:
    """What became of a range.

    Attributes:
        items: In log order; rows of several tables between two statements in any order.
        groups: Event groups read; 0 if nobody counted.
        size_bytes: Bytes of log read.
        logged: Row images in the range, by table, counted beside whoever decoded it; of the tables
            that are wanted.
        not_landed: Those of them that are not landed, by why and table.
        outside: Row images in the range of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        left_out: What the filter left out of tables that its rules name.
    """

    items: tuple[RangeItem, ...]
    groups: int = 0
    size_bytes: int = 0
    logged: Mapping[TableName, int] = field(default_factory=dict)
    not_landed: Mapping[str, Mapping[TableName, int]] = field(default_factory=dict)
    outside: int = 0
    by_reference: int = 0
    left_out: Losses = field(default_factory=Losses)
