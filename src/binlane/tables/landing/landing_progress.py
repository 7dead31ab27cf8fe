"""The counts of a landing: kept while it runs, reported at its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from binlane.binlogs.filters.losses import Losses
from binlane.names import TableName


@dataclass(slots=True)
class TableReport:
    """The counts of a landing for one table.

    Attributes:
        rows: Row images that were landed in it.
        logged: Row images of the table in the log of the batches that were landed, counted by
            themselves.
        left_out: Row images of `logged` that were not landed, by why.
        snapshot_rows: Rows taken from the server.
        snapshot_expected: Rows that the server estimated the table to have.
        invalid_dates: Zero or partial dates that became NULL.
        is_current: Whether `current` has the table now.
        why_not: Why `current` has the table not, where there is a reason.
        lacks: Why rows may be missing in the table; empty if none are.
        without: Names of the table's generated columns whose values nothing tells.
        no_history: Why the table's history does not go on; empty if it does, or if none is kept.
        gap: Why the change table lacks changes; empty if it has all.
        has_absent: Whether the change table has NULL for columns that row images lack.
        committed: Time of the last commit to the table, in seconds since 1970; 0 if there was none.
    """

    rows: int = 0
    logged: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    snapshot_rows: int = 0
    snapshot_expected: int = 0
    invalid_dates: int = 0
    is_current: bool = False
    why_not: str = ""
    lacks: str = ""
    without: tuple[str, ...] = ()
    no_history: str = ""
    gap: str = ""
    has_absent: bool = False
    committed: float = 0.0


@dataclass(slots=True)
class LandingProgress:
    """The counts of a landing so far.

    Attributes:
        tables: Counts by table name, such as `shop.orders`.
        batches: Batches that were not empty.
        size_bytes: Bytes of log that were landed.
        bytes_behind: Bytes of log that can be read and are not landed.
        outside: Row images in the landed log of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        last_seq: `_seq` of the last change or statement.
        last_gtid: GTID of the last change or statement.
        last_timestamp: Time of the last change or statement, in seconds since 1970.
        caught_up: Time at which the end of the log was reached, in seconds since 1970; 0 while more
            is left.
        reading: Progress of the table whose rows are being taken from the server; empty for none.
        notes: Notes that a reader of the tables must know.
        given_up: Names of tables that were given up, of one kind or another.
        left_out: Losses of tables that the filter's rules name, in batches that are landed.
    """

    tables: dict[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    size_bytes: int = 0
    bytes_behind: int = 0
    outside: int = 0
    by_reference: int = 0
    last_seq: int = 0
    last_gtid: str | None = None
    last_timestamp: int = 0
    caught_up: float = 0.0
    reading: str = ""
    notes: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    left_out: Losses = field(default_factory=Losses)

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())

    def seconds_behind(self, now: float | None = None) -> float:
        """Age of the last change landed while more is there; 0 when there is nothing more."""
        if self.caught_up or not self.last_timestamp:
            return 0.0
        return max(0.0, (now or time.time()) - self.last_timestamp)

    def of(self, table: TableName) -> TableReport:
        """The report of one table."""
        return self.tables.setdefault(table.plain, TableReport())

    def reached(self, seq: int, gtid: str | None, timestamp: int) -> None:
        """Note a place in the log that was come to."""
        if seq >= self.last_seq:
            self.last_seq, self.last_gtid, self.last_timestamp = seq, gtid, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingReport:
    """The final account of a landing.

    Attributes:
        source: The log that was landed, as the user named it.
        into: URI or path of the target.
        terms: The settings of the landing, by name.
        tables: Counts by table name, such as `shop.orders`: also of tables that were there before.
        batches: Batches that were not empty.
        size_bytes: Bytes of log that were landed.
        seconds: Seconds from the landing's start to its end.
        cpu_seconds: CPU seconds of this process and of those that it waited for.
        last_gtid: GTID of the last change or statement applied; None if there was nothing to do.
        outside: Row images in the log of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        notes: Notes that a reader of the tables must know.
        given_up: Names of tables that were given up, of one kind or another.
        error: The error that ended the landing; empty if it ended well.
    """

    source: str = ""
    into: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    last_gtid: str | None = None
    outside: int = 0
    by_reference: int = 0
    notes: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    error: str = ""

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())
