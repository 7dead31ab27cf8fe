"""What a landing did: counted while it runs, reported at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.names import TableName


@dataclass(slots=True)
class TableReport:
    """What landing did to one table.

    Attributes:
        rows: Row images landed.
        invalid_dates: Zero or partial dates that became NULL.
        is_current: Whether `current` has it now.
        why_not: Why it has not, where there is a reason.
        lacks: Why rows may be missing in it; empty if none are.
    """

    rows: int = 0
    invalid_dates: int = 0
    is_current: bool = False
    why_not: str = ""
    lacks: str = ""


@dataclass(slots=True)
class Progress:
    """What landing did so far.

    Attributes:
        tables: By name, such as `shop.orders`.
        batches: Batches that were not empty.
        size_bytes: Bytes of log read.
        by_reference: Row images that the kernels left to the reference decoder.
        last_seq: `_seq` of the last change or statement.
        last_gtid: Its GTID.
        last_timestamp: When it was written, in seconds since 1970.
        notes: What the reader of the tables must know.
        given_up: Names of current tables that were given up.
    """

    tables: dict[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    size_bytes: int = 0
    by_reference: int = 0
    last_seq: int = 0
    last_gtid: str | None = None
    last_timestamp: int = 0
    notes: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())

    def of(self, table: TableName) -> TableReport:
        """The report of one table."""
        return self.tables.setdefault(table.plain, TableReport())

    def reached(self, seq: int, gtid: str | None, timestamp: int) -> None:
        """Note a place in the log that was come to."""
        if seq >= self.last_seq:
            self.last_seq, self.last_gtid, self.last_timestamp = seq, gtid, timestamp
