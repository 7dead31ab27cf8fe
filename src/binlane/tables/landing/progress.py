"""What a landing did: counted while it runs, reported at its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from binlane.binlogs.filters.losses import Losses
from binlane.names import TableName


@dataclass(slots=True)
class TableReport:
    """What landing did to one table.

    Attributes:
        rows: Row images landed.
        logged: Row images of it in the log of the batches that were landed, counted by themselves.
        left_out: Those of them that were not landed, by why.
        snapshot_rows: Rows taken from the server.
        snapshot_expected: Rows that it estimated there to be.
        invalid_dates: Zero or partial dates that became NULL.
        is_current: Whether `current` has it now.
        why_not: Why it has not, where there is a reason.
        lacks: Why rows may be missing in it; empty if none are.
        without: Names of its generated columns whose values nothing tells.
        no_history: Why its history does not go on; empty if it does, or if none is kept.
        gap: Why its change table lacks changes; empty if it has all.
        has_absent: Its change table has NULL for columns that row images lack.
        committed: When it was last committed to, in seconds since 1970; 0 if it was not.
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
class Progress:
    """What landing did so far.

    Attributes:
        tables: By name, such as `shop.orders`.
        batches: Batches that were not empty.
        size_bytes: Bytes of log landed.
        bytes_behind: Bytes of log that are there and not landed.
        outside: Row images in it of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        last_seq: `_seq` of the last change or statement.
        last_gtid: Its GTID.
        last_timestamp: When it was written, in seconds since 1970.
        caught_up: When nothing more was there, in seconds since 1970; 0 while there is.
        reading: How far the table is whose rows are being taken from the server; empty for none.
        notes: What the reader of the tables must know.
        given_up: Names of tables that were given up, of one kind or another.
        left_out: What a filter left out of tables that its rules name, in batches that are landed.
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
    """What a landing did.

    Attributes:
        source: What was landed, as the user named it.
        into: URI or path of the target.
        terms: How, by setting.
        tables: By name, such as `shop.orders`: also those that were there before.
        batches: Batches that were not empty.
        size_bytes: Bytes of log landed.
        seconds: From start to end.
        cpu_seconds: Of this process and those that it waited for.
        last_gtid: Of the last change or statement applied; None if there was nothing to do.
        outside: Row images in the log of tables that are not wanted.
        by_reference: Row images that the kernels left to the reference decoder.
        notes: What the reader of the tables must know.
        given_up: Names of tables that were given up, of one kind or another.
        error: What ended it; empty if it ended well.
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
