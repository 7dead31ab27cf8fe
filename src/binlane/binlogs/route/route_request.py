"""A run of `route` as its caller states it, and what the caller is told of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from binlane.binlogs.filters.schema_objects import Load
from binlane.binlogs.filters.terms import FilterTerms
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import CodecError
from binlane.log.codec.encryption import KeyRing
from binlane.log.grouping.raw import HELD_BYTES_MAX, WINDOW_BYTES

KEEP_BYTES: Final = 256 << 20
"""Bytes of the files after which everything is forced to disk and noted."""


@dataclass(slots=True)
class BinlogCounts:
    """Counts of the events that one binlog got.

    Attributes:
        event_groups: Groups appended in this run.
        events: Events in these event groups.
        rows_events: Rows events among these events.
        incidents: Groups that an INCIDENT event stands for, each with its cause.
        omissions: Number of parts left out since they name outside objects, by kind.
    """

    event_groups: int = 0
    events: int = 0
    rows_events: int = 0
    incidents: list[str] = field(default_factory=list)
    omissions: Counter[str] = field(default_factory=Counter)

    def add(self, part: BinlogPart) -> None:
        """Add a part that the binlog got."""
        self.event_groups += part.groups
        self.events += part.events
        self.rows_events += part.rows_events
        for omission, number in part.omissions:
            self.omissions[omission.kind.value] += number

    def add_counts(self, other: BinlogCounts) -> None:
        """Add the counts of a later part of the run."""
        self.event_groups += other.event_groups
        self.events += other.events
        self.rows_events += other.rows_events
        self.incidents += other.incidents
        self.omissions += other.omissions


@dataclass(slots=True)
class RouteReport:
    """The results of a run.

    Attributes:
        counts: Counts of each binlog, by its name.
        files: Number of files that were read, at least in part.
        notes: Remarks for the user on the run.
        is_unmatched: True if the files have nothing that a filter names.
        fault: The damage at which the run ended early, behind whole groups; None if it did not.
    """

    counts: dict[str, BinlogCounts] = field(default_factory=dict)
    files: int = 0
    notes: list[str] = field(default_factory=list)
    is_unmatched: bool = False
    fault: CodecError | None = None

    def add(self, other: RouteReport) -> None:
        """Add the counts and notes of a later part of the run."""
        for name, counts in other.counts.items():
            self.counts.setdefault(name, BinlogCounts()).add_counts(counts)
        self.files += other.files
        self.notes += other.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """The files, definitions and target of a run, with its settings.

    Attributes:
        paths: Paths of the files, oldest first.
        schedule: Definitions of the binlogs, with their history.
        out: Path of the target directory.
        keys: Keys for files that are encrypted.
        settings: Settings by which binlog files are written.
        start_position: Position in the first file at which to begin, in bytes; 0 for the place in
            the record, or its beginning.
        keep_bytes: Bytes of the files after which all is forced to disk and noted, as `KEEP_BYTES`.
        uses_kernels: True if kernels may be used where they are compiled.
        window_bytes: Bytes of a file that are looked at together.
        held_bytes_max: Most bytes of an event group in memory; a larger one is read from its file
            twice.
        links: Between the tables that there are before the first file, where that is known.
        filter_terms: The changes in the files that are routed; by default all.
        load_schema: Fills a catalog with the objects that there are where the run begins, for the
            filter; None where they are not known.
    """

    paths: tuple[str, ...]
    schedule: Schedule
    out: Path
    keys: KeyRing | None = None
    settings: StoreSettings = field(default_factory=StoreSettings)
    start_position: int = 0
    keep_bytes: int = KEEP_BYTES
    uses_kernels: bool = True
    window_bytes: int = WINDOW_BYTES
    held_bytes_max: int = HELD_BYTES_MAX
    links: TableLinks = NO_LINKS
    filter_terms: FilterTerms = field(default_factory=FilterTerms)
    load_schema: Load | None = None
