"""Messages between a landing and its tasks: ranges of a log in, files, statements, troubles out.

All of the messages can be pickled. No rows are in them: a task writes rows where the tables are,
and the files that it names are nobody's until a table's commit names them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from binlane.binlogs.filters.losses import Losses
from binlane.names import TableName
from binlane.tables.columnar.log_notes import Statement, Trouble
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.log_range import LogRange

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


class FormatName(Enum):
    """Formats that the tables have for their readers."""

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
        path: Path relative to the table's directory, or of a staged run its URI.
        rows: The number of rows in the file.
        schema: Schema of the file's columns, without metadata.
        stats: Statistics as Delta's JSON has them: `numRecords`, `minValues`, `maxValues`,
            `nullCount`; of columns that are not named there nothing is known.
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
        table: The table of the images.
        first_seq: `_seq` of the first image, of those that were not applied before.
        last_seq: `_seq` of the last image.
        last_gtid: GTID of the last image; None if it has none.
        last_timestamp: Time of the last image, in seconds since 1970.
        images: The number of images, without those that were applied before.
        decoded: The number of images with those that were applied before.
        fresh: By mode that the images are for, how many of them its table has not yet.
        added: How many rows the images for the current table add less how many they remove; None of
            rows that foreign keys made.
        invalid_dates: Zero or partial dates in the images that became NULL.
        key: Names of the primary key's columns; empty if the log tells none.
        is_full: Whether the images hold all that current tables need.
        has_absent: Whether some images lack columns.
        why_not: Why the images are not full, beside columns that they lack.
        columns: Names and types of the table's own columns.
        file: Name of the binlog file that the images were read from; empty if nobody told.
        changes: A file of all images in log order, in the directory of the change table.
        fault: Why `changes` could not be written, where that may be the table's own fault.
        run: A staged file with one row a key, the last one, sorted by key: the own columns,
            `_gtid`, `_seq`, `_gone`; without a key one row for each distinct row, with `_count`,
            how often it comes more than it goes.
        versions: A staged file for history, with all images but those before an update that keeps
            its key, sorted by key and `_seq`: the columns of a run and `_ts`.
        links: A staged file of all images in log order, with `cascades.IMAGE_COLUMNS`, of a table
            whose rows change with those of others, or others' with its.
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
        """Place of the first image in the log, such as `binlog.000001:256`."""
        return f"{self.file}:{place_of(self.first_seq)[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The part of an event group that was passed over, as the user asked.

    Attributes:
        gtid: The GTID of the event group.
        tables: The tables whose rows were passed over.
        statement: The statement that was not followed; None for rows.
    """

    gtid: str
    tables: frozenset[TableName] = frozenset()
    statement: Statement | None = None


RangeItem = Rows | Statement | Trouble | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWork:
    """A range of the log, to be landed by one task.

    Attributes:
        piece: The range of the log.
        want: The reader's wishes for the range.
        modes: The kinds of tables to write files for.
        into: URI or absolute path of the target.
        format: The format of the target's tables.
        run_id: Name of the landing in its files, by which the files of a dead landing are found.
        done: The `_seq` up to which all rows are in all tables.
        applied: The `_seq` up to which rows are in a table, by kind and table, where that is more.
        skip: GTIDs of event groups to pass over.
        lost: Tables whose changes are not written, since their change tables could not be written.
        links: Tables of which all images are needed, to follow foreign keys: the columns of those
            that are read for that alone, None for all columns of a table that is landed.
        is_audited: Whether the range is counted beside the task.
    """

    piece: LogRange
    want: ReadOptions
    modes: frozenset[Mode]
    into: str
    format: FormatName
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
    """The result of a task for its range.

    Attributes:
        items: Items in log order; rows of several tables between two statements in any order.
        groups: Number of event groups read; 0 if nobody counted.
        size_bytes: Bytes of log that were read.
        logged: Row images in the range of the tables that are wanted, by table, counted beside the
            decoder.
        not_landed: Row images of `logged` that are not landed, by why and table.
        outside: Row images in the range of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        left_out: Losses that the filter made in tables that its rules name.
    """

    items: tuple[RangeItem, ...]
    groups: int = 0
    size_bytes: int = 0
    logged: Mapping[TableName, int] = field(default_factory=dict)
    not_landed: Mapping[str, Mapping[TableName, int]] = field(default_factory=dict)
    outside: int = 0
    by_reference: int = 0
    left_out: Losses = field(default_factory=Losses)
