"""Items of a range of a log: batches of row images, statements, and groups that cannot be followed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from binlane.names import TableName
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


RangeItem = pa.RecordBatch | Statement | Trouble
