"""Cutting parts of files into what tasks read, and at what limits allow; always between groups."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from binlane.log.codec.format import Format
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.table_metadata import table_columns
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import LargeGroup, RawRun, raw_groups
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.kernels import layout
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.ranges.known_facts import KnownFacts
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts
from binlane.tables.ranges.log_history import LogHistory
from binlane.tables.ranges.log_range import Limits, LogRange
from binlane.tables.ranges.storage import named
from binlane.tables.ranges.stored_files import StoredLogFile, open_range, read_groups_of


def row_changes(group: EventGroup, format_: Format, scope: Scope) -> int:
    """The row changes of a group in some tables.

    Raises:
        CodecError: If one cannot be decoded.
    """
    return sum(
        count_rows(body, table_columns(table_map, flavor=format_.flavor))
        for _, body, table_map in rows_with_tables(group.events, file=group.file, format_=format_)
        if scope.includes(table_map.name)
    )


RANGE_BYTES_DEFAULT: Final = 64 << 20
RANGE_BYTES_MIN: Final = 4 << 20


class Wish(Protocol):
    """A reader's selection of a log, as far as facts about files can decide it."""

    def wants_file(self, name: str) -> bool:
        """True if a file may hold anything wanted, by its base name alone."""

    def wants_piece(self, name: str, facts: LogFileFacts, piece: FilePiece) -> bool:
        """True if the part of a file between two cut points may hold anything wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Terms by which the part of a log to read is cut into ranges.

    Attributes:
        size_bytes: Bytes that a range has at most, about.
        cores: Least number of ranges, if each has 4 MiB then.
        wish: The reader's selection; pieces that hold nothing of it are left out. All if None.
    """

    size_bytes: int = RANGE_BYTES_DEFAULT
    cores: int = 1
    wish: Wish | None = None


class Span(NamedTuple):
    """A part of a file that is read."""

    file: StoredLogFile
    low: int
    high: int


class _Run(NamedTuple):
    """A part of a file all of whose pieces are wanted."""

    file: StoredLogFile
    facts: LogFileFacts
    start: int
    bounds: list[int]

    @property
    def size_bytes(self) -> int:
        return self.bounds[-1] - self.start


class LogExtent(NamedTuple):
    """The part of a log that is read, with all of the log's files."""

    spans: Sequence[Span]
    files: Sequence[StoredLogFile]
    """All of the log, in order."""


Part = tuple[LogRange, ...]
"""Ranges that one task reads, in log order."""


class Cutter:
    """Cuts parts of a log's files.

    Args:
        facts: The known facts of the files.
        keys: Path of the key file with which ranges are decrypted.
        history: The log's history, which ranges then carry; None for ranges without it.
    """

    def __init__(
        self, facts: KnownFacts, *, keys: str | None, history: LogHistory | None = None
    ) -> None:
        self._facts = facts
        self._keys = keys
        self._history = history

    def ranges(
        self, spans: Sequence[Span], cuts: Cuts, *, files: Sequence[StoredLogFile]
    ) -> list[LogRange]:
        """Cut parts of files into ranges.

        Args:
            spans: The parts of files, in order.
            cuts: Terms by which the parts are cut.
            files: All files of the log, in order.

        Raises:
            StoreError: If a file cannot be read.
        """
        runs = [run for span in spans for run in self._runs(span, cuts)]
        total = sum(run.size_bytes for run in runs)
        wanted = max(total // _count(total, cuts), 1)
        return [
            self._with_history(piece, run, files)
            for run in runs
            for piece in self._ranges_of(run, wanted)
        ]

    def parts(self, logs: Iterable[LogExtent], cuts: Cuts) -> list[Part]:
        """Cut logs into equal parts, whatever files they lie in.

        Where there are more parts than cores, they are so many that each core has as many.

        Args:
            logs: For each log the part that is read, with all of its files.
            cuts: Terms by which the parts are cut.

        Raises:
            StoreError: If a file cannot be read.
        """
        runs = [
            (run, log.files) for log in logs for span in log.spans for run in self._runs(span, cuts)
        ]
        total = sum(run.size_bytes for run, _ in runs)
        count = _count(total, cuts)
        even = -(-count // cuts.cores) * cuts.cores
        count = even if even * RANGE_BYTES_MIN <= total else count
        parts: list[list[LogRange]] = [[] for _ in range(count)]
        before = 0
        for run, files in runs:
            middle = (before + run.size_bytes // 2) * count // total
            first, last = middle, middle
            if run.file.is_plain:
                first = before * count // total
                last = (before + run.size_bytes - 1) * count // total
            wants = [
                run.start + total * number // count - before
                for number in range(first + 1, last + 1)
            ]
            start = run.start
            for number, stop in enumerate(_stops(run, wants), first):
                if stop > start:
                    piece = self.bare(run.file, run.facts, start, stop)
                    parts[number].append(self._with_history(piece, run, files))
                    start = stop
            before += run.size_bytes
        return [tuple(part) for part in parts if part]

    def _runs(self, span: Span, cuts: Cuts) -> Iterator[_Run]:
        file, low, high = span
        if cuts.wish is not None and not cuts.wish.wants_file(file.name):
            return
        facts = self._facts.of(file, since=low, until=high)
        # The reader of the range up to there raises the error.
        is_faulty = facts.end < high and bool(facts.fault or facts.is_cut)
        start, bounds = low, list[int]()
        for piece, begin, stop in facts.cuts(low, high):
            is_read = cuts.wish is None or cuts.wish.wants_piece(file.name, facts, piece)
            if is_read and piece.groups:
                start = start if bounds else begin
                bounds.append(stop)
            elif bounds and (piece.groups or is_faulty):
                yield _Run(file, facts, start, bounds)
                bounds = []
        if is_faulty:
            start = start if bounds else facts.end
            bounds.append(high)
        if bounds:
            yield _Run(file, facts, start, bounds)

    def _ranges_of(self, run: _Run, wanted: int) -> Iterator[LogRange]:
        count = max(-(-run.size_bytes // wanted), 1) if run.file.is_plain else 1
        wants = [run.start + run.size_bytes * number // count for number in range(1, count)]
        start = run.start
        for stop in _stops(run, wants):
            if stop > start:
                yield self.bare(run.file, run.facts, start, stop)
                start = stop

    def _with_history(self, piece: LogRange, run: _Run, files: Sequence[StoredLogFile]) -> LogRange:
        """A range with what the log tells before it."""
        history = self._history
        if history is None:
            return piece
        history.follow(files, run.file, piece.start)
        return replace(
            piece,
            catalog=self._catalog(history, run.facts, piece),
            prepared=tuple(self._prepared(history, run.facts, piece)),
            filter_state=None if history.filter_state is None else history.filter_state.copy(),
        )

    def _catalog(self, history: LogHistory, facts: LogFileFacts, piece: LogRange) -> LoggedObjects:
        """The catalog of the tables that a range has rows of; of all tables if it has statements."""
        if any(_is_in(query.event.position, piece) for query in facts.queries):
            return history.catalog.copy()
        assert piece.stop is not None, "ranges that are planned have an end"
        tables = [facts.tables(each) for each, _, _ in facts.cuts(piece.start, piece.stop)]
        known = [each for each in tables if each is not None]
        if len(known) < len(tables) or any(_is_in(place.start, piece) for place in facts.xa):
            return history.catalog.copy()
        return history.catalog.only(frozenset().union(*known))

    def _prepared(
        self, history: LogHistory, facts: LogFileFacts, piece: LogRange
    ) -> Iterator[LogRange]:
        """The groups before a range that prepared what it commits."""
        seen: set[str] = set()
        for place in facts.xa:
            if not _is_in(place.start, piece) or place.xid in seen:
                continue
            seen.add(place.xid)
            if not place.is_prepare and place.xid in history.prepared:
                file, its_facts, group = history.prepared[place.xid]
                yield self.bare(file, its_facts, group.start, group.stop)

    def advance(self, span: Span, limits: Limits) -> tuple[LogFileFacts, int, Limits]:
        """Return how far limits reach in a part of a file, and the limits that are left."""
        file, low, high = span
        until = high if limits.size_bytes is None else min(low + limits.size_bytes, high)
        facts = self._facts.of(file, since=low, until=until)
        if limits.size_bytes is None or low + limits.size_bytes >= high or not file.is_plain:
            at = high
        else:
            at = self._cut_before(file, facts, low, low + limits.size_bytes)
        groups = limits.groups
        if groups is not None:
            at, groups = self._after_groups(file, facts, low, at, groups)
        rows = limits.rows
        if rows is not None:
            at, rows = self._after_rows(self.bare(file, facts, low, at), facts, rows, limits.scope)
        size_bytes = None if limits.size_bytes is None else limits.size_bytes - (at - low)
        return facts, at, replace(limits, size_bytes=size_bytes, groups=groups, rows=rows)

    def _cut_before(self, file: StoredLogFile, facts: LogFileFacts, low: int, want: int) -> int:
        """The last cut point or group's end up to a position, but behind at least one group."""
        at = low
        for piece, _, stop in facts.cuts(low, max(want, low + 1)):
            if piece.stop <= want:
                at = piece.stop
                continue
            if at - low >= (want - low) * 3 // 4 and at > low:
                return at
            ends = list(self._group_ends(file, facts, at, piece.stop))
            before = bisect_right(ends, want)
            if before:
                return ends[before - 1]
            return at if at > low else (ends[0] if ends else stop)
        return at if at > low else facts.end

    def _after_groups(
        self, file: StoredLogFile, facts: LogFileFacts, low: int, high: int, groups: int
    ) -> tuple[int, int]:
        """Return where so many groups end, but not behind `high`, and how many are left to take."""
        for piece, start, stop in facts.cuts(low, high):
            if (start, stop) == (piece.start, piece.stop) and piece.groups <= groups:
                groups -= piece.groups
            else:
                at = start
                for end in self._group_ends(file, facts, start, stop):
                    if groups == 0:
                        return at, 0
                    groups -= 1
                    at = end
            if groups == 0:
                return stop, 0
        return high, groups

    def _after_rows(
        self, piece: LogRange, facts: LogFileFacts, rows: int, scope: Scope
    ) -> tuple[int, int]:
        """Return where the group ends that has the last of so many row changes, and how many are left."""
        for group in read_groups_of(piece):
            rows -= row_changes(group, facts.format, scope)
            if rows <= 0:
                return group.next_position, 0
        assert piece.stop is not None, "it was given"
        return piece.stop, rows

    def _group_ends(
        self, file: StoredLogFile, facts: LogFileFacts, start: int, stop: int
    ) -> Iterator[int]:
        """Give the end of each event group of a piece."""
        with closing(open_range(self.bare(file, facts, start, stop))) as source:
            items = raw_groups(
                source, file=named(file.uri), name=file.name, position=start, format_=facts.format
            )
            for item in items:
                if isinstance(item, RawRun):
                    yield from item.groups[layout.GROUP_STOP].tolist()
                elif isinstance(item, LargeGroup):
                    # The group fills the piece to its end.
                    yield stop
                    return
                elif not item.is_control and item.is_complete:
                    yield item.next_position

    def bare(self, file: StoredLogFile, facts: LogFileFacts, start: int, stop: int) -> LogRange:
        """A range without what the log tells before it."""
        return LogRange(
            uri=file.uri,
            name=file.name,
            number=file.number,
            start=start,
            stop=stop,
            head=facts.head,
            is_plain=file.is_plain,
            keys=self._keys,
        )


def _count(total: int, cuts: Cuts) -> int:
    """Return the least number of ranges that so many bytes are cut into."""
    return max(-(-total // cuts.size_bytes), min(cuts.cores, total // RANGE_BYTES_MIN), 1)


def _stops(run: _Run, wants: Iterable[int]) -> Iterator[int]:
    """Give the ends of ranges: the last bound up to each wanted place, and the run's end."""
    for want in wants:
        yield run.bounds[max(bisect_right(run.bounds, want) - 1, 0)]
    yield run.bounds[-1]


def _is_in(position: int, piece: LogRange) -> bool:
    return piece.start <= position and (piece.stop is None or position < piece.stop)


def file_end(file: StoredLogFile, facts: LogFileFacts) -> int:
    """The end of a file that is written no more, or behind which damage stands."""
    if file.is_plain:
        return file.size_bytes
    return facts.end + (1 if facts.fault or facts.is_cut else 0)
