"""Items of a range of a log: batches of row images, statements, and groups that cannot be followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from binlane.names import TableName
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import CHANGE_NAMES
from binlane.tables.ranges.statements import Statement


class TroubleKind(Enum):
    """Why the rows of a group are not what the source's tables then held."""

    INCIDENT = "incident"
    """The source lost changes here: any table may be meant."""
    STATEMENT = "statement"
    """Rows were changed by a statement, which the log does not follow with rows."""
    ROLLED_BACK = "rolled_back"
    """A transaction with rows was rolled back in part, and the log does not tell which rows stay."""
    XA_UNKNOWN = "xa_unknown"
    """An XA transaction is committed here that was prepared before the log's beginning."""
    ROWS = "rows"
    """Rows of a table cannot be decoded, though the log is whole: they are left out."""
    COLUMN = "column"
    """A table has a column that cannot stand beside those that a reader adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A group that cannot be followed; the reader decides what becomes of its tables.

    Attributes:
        what: The trouble in one line for people.
        hint: Advice on what to do about it.
        tables: The tables that the group concerns; empty where the log does not tell, so all of
            them.
        gtid: GTID of the group, as text.
        file: Base name of the binlog file.
        position: Position of the event in that file, in bytes.
    """

    kind: TroubleKind
    what: str
    hint: str
    tables: tuple[TableName, ...] = ()
    gtid: str | None
    file: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A reader's wishes for a range.

    Attributes:
        selection: The tables and event groups that are wanted.
        columns: Names of the tables' columns to keep, all if None.
        rows_max: Row images of a batch at most; None for as many as serve well.
        has_statements: Whether statements and troubles come too, in log order: a batch ends before
            each. Only statements that may concern tables come. Columns with the names of change
            columns, which are an error else, are then left out, see `table_schema`.
        change_columns: The change columns that batches begin with, of `CHANGE_TYPES`.
        as_json: Whether images are JSON objects, in the one column `JSON_COLUMN`.
        may_clash: Whether tables may have columns of those names: the reader goes by the columns'
            places.
    """

    selection: Selection = field(default_factory=Selection)
    columns: frozenset[str] | None = None
    rows_max: int | None = None
    has_statements: bool = False
    change_columns: tuple[str, ...] = CHANGE_NAMES
    as_json: bool = False
    may_clash: bool = False


RangeItem = pa.RecordBatch | Statement | Trouble
