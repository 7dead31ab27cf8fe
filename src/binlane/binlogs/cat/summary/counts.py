"""Counts of a summary: transactions, tables, files and time, all in bounded memory; pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from binlane.positions import AnyGtid, Gtid, GtidRun, GtidSet, MysqlGtid

TOP_COUNT: Final = 10
_BUCKETS_MAX: Final = 4096
# Each divides the next: seconds to about a year.
_WIDTHS: Final = (
    1,
    5,
    15,
    60,
    300,
    900,
    3600,
    21600,
    86400,
    7 * 86400,
    28 * 86400,
    364 * 86400,
)


@dataclass(slots=True)
class EventCount:
    """Events of one type."""

    count: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class TableCount:
    """Changes of one table; bytes are of its TABLE_MAP and rows events as written."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    events: int = 0
    size_bytes: int = 0

    @property
    def rows(self) -> int:
        """Number of changed rows."""
        return self.inserts + self.updates + self.deletes


@dataclass(slots=True, kw_only=True)
class FileCount:
    """Counts of one file.

    Attributes:
        name: Base name of the file.
        size_bytes: Bytes up to the end of the last event.
        server_version: Version of the file's writer; empty until a FORMAT_DESCRIPTION has said.
        checksum: Checksum of the events, `CRC32` or `NONE`.
        is_marked_in_use: True if its header says that its server has not closed it.
        is_closed: True if it ends with STOP or ROTATE.
    """

    name: str
    size_bytes: int = 0
    server_version: str = ""
    checksum: str = ""
    is_marked_in_use: bool = False
    is_closed: bool = False


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """Counts of one event group.

    Attributes:
        gtid: GTID of the group as text; None where the log has none.
        file: Base name of the group's file.
        position: Position of the group's first byte.
        size_bytes: Bytes of the group as written.
        rows: Number of rows that the group changed.
        events: Number of events, those inside a compressed one counted too.
        first_time: The earliest time of an event in it, in seconds since 1970.
        last_time: The latest time of an event in it, in seconds since 1970.
    """

    gtid: str | None
    file: str
    position: int
    size_bytes: int = 0
    rows: int = 0
    events: int = 0
    first_time: int = 0
    last_time: int = 0

    @property
    def duration(self) -> int:
        """Seconds from its first to its last event."""
        return self.last_time - self.first_time


class Top:
    """The ten transactions with the most of something."""

    def __init__(self, attribute: str) -> None:
        self._measure = attrgetter(attribute)
        self._heap: list[tuple[int, int, GroupSummary]] = []
        self._count = 0

    def add(self, transaction: GroupSummary) -> None:
        """Keep it if it is among them; of equal ones the earlier stays."""
        measure = self._measure(transaction)
        self._count += 1
        if len(self._heap) < TOP_COUNT:
            heapq.heappush(self._heap, (measure, -self._count, transaction))
        elif measure > self._heap[0][0]:
            heapq.heapreplace(self._heap, (measure, -self._count, transaction))

    @property
    def least(self) -> int:
        """The figure that a transaction must exceed to be kept; -1 while every one is kept."""
        return -1 if len(self._heap) < TOP_COUNT else self._heap[0][0]

    def __iter__(self) -> Iterator[GroupSummary]:
        """Iterate from the biggest to the smallest; entries with nothing are left out."""
        return (entry[2] for entry in sorted(self._heap, reverse=True) if entry[0])


@dataclass(slots=True)
class Bucket:
    """The amount that was logged in a span of time."""

    size_bytes: int = 0
    rows: int = 0
    transactions: int = 0

    def add(self, other: Bucket) -> None:
        """Add the counts of another counter."""
        self.size_bytes += other.size_bytes
        self.rows += other.rows
        self.transactions += other.transactions


@dataclass(slots=True)
class Timeline:
    """Buckets by time, merged into wider ones when they become too many.

    Attributes:
        first: The earliest time, in seconds since 1970; None where nothing had one.
        last: The latest time, in seconds since 1970; None where nothing had one.
    """

    first: int | None = None
    last: int | None = None
    _level: int = 0
    _buckets: dict[int, Bucket] = field(default_factory=dict)

    def at(self, time: int) -> Bucket:
        """The bucket to count something of this time in."""
        if self.first is None or time < self.first:
            self.first = time
        if self.last is None or time > self.last:
            self.last = time
        key = time // _WIDTHS[self._level]
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket()
            if len(self._buckets) > _BUCKETS_MAX and self._level + 1 < len(_WIDTHS):
                self._buckets = self._merged(self._level + 1)
                self._level += 1
                return self.at(time)
        return bucket

    def buckets(self, count_max: int) -> tuple[int, list[tuple[int, Bucket]]]:
        """All of the time from first to last.

        Args:
            count_max: Number of buckets that are enough.

        Returns:
            Width of the buckets in seconds; and start time and bucket of each, empty ones too.
        """
        if self.first is None or self.last is None:
            return _WIDTHS[0], []
        level = self._level
        while level + 1 < len(_WIDTHS) and self._span(level) > count_max:
            level += 1
        width, merged = _WIDTHS[level], self._merged(level)
        keys = range(self.first // width, self.last // width + 1)
        return width, [(key * width, merged.get(key, Bucket())) for key in keys]

    def _span(self, level: int) -> int:
        assert self.first is not None, "asked only where there is time"
        assert self.last is not None, "as above"
        return self.last // _WIDTHS[level] - self.first // _WIDTHS[level] + 1

    def _merged(self, level: int) -> dict[int, Bucket]:
        factor = _WIDTHS[level] // _WIDTHS[self._level]
        merged: dict[int, Bucket] = {}
        for key, bucket in self._buckets.items():
            merged.setdefault(key // factor, Bucket()).add(bucket)
        return merged


class GtidRanges:
    """The GTIDs that a log holds: first and last of each domain, or MySQL's set."""

    def __init__(self) -> None:
        self._domains: dict[int, tuple[Gtid, Gtid]] = {}
        self._sources: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def add(self, gtid: AnyGtid) -> None:
        """Take the next GTID."""
        if isinstance(gtid, MysqlGtid):
            self.add_run(gtid, gtid.sequence)
        else:
            first, _ = self._domains.get(gtid.domain_id, (gtid, gtid))
            self._domains[gtid.domain_id] = (first, gtid)

    def add_run(self, first: MysqlGtid, last_sequence: int) -> None:
        """Take GTIDs of one source that follow each other without a gap."""
        intervals = self._sources.setdefault((first.source_id, first.tag), [])
        if intervals and intervals[-1][1] + 1 == first.sequence:
            intervals[-1] = (intervals[-1][0], last_sequence)
        else:
            intervals.append((first.sequence, last_sequence))

    def texts(self) -> list[str]:
        """One text a domain, `0-1-1 … 0-1-99`; or one a source, `uuid:1-99`."""
        texts = [
            str(first) if first == last else f"{first} … {last}"
            for _, (first, last) in sorted(self._domains.items())
        ]
        runs = (
            GtidRun(source_id, tag, tuple(intervals))
            for (source_id, tag), intervals in self._sources.items()
        )
        gtids = str(GtidSet.of(runs))
        return texts + (gtids.split(",") if gtids else [])
