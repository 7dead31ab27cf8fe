"""What a landing did: counted while it runs, reported at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from binlane.names import TableName


class Mode(Enum):
    """A kind of tables that landing keeps."""

    CURRENT = "current"
    CHANGES = "changes"


@dataclass(slots=True)
class TableReport:
    """What landing did to one table.

    Attributes:
        rows: Row images landed.
        invalid_dates: Zero or partial dates that became NULL.
        is_current: Whether `current` has it now.
        why_not: Why it has not, where there is a reason.
    """

    rows: int = 0
    invalid_dates: int = 0
    is_current: bool = False
    why_not: str = ""


@dataclass(slots=True)
class Progress:
    """What landing did so far.

    Attributes:
        tables: By name, such as `shop.orders`.
        batches: Micro-batches that were not empty.
        last_gtid: Of the last change or statement.
        notes: What the reader of the tables must know.
    """

    tables: dict[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    last_gtid: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())

    def of(self, table: TableName) -> TableReport:
        """The report of one table."""
        return self.tables.setdefault(table.plain, TableReport())
