"""The planner of ranges: a landing or a stream asks it for the ranges to read next.

A planner looks only at the files' first events, and at the part of the log behind the last place
that is known. Each of its answers can be asked again by another process that reaches the files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from binlane.errors import TruncatedError
from binlane.log.codec.columns import Column
from binlane.log.codec.format import CHECKSUM_LENGTH, MAGIC
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.positions import FilePosition, GtidSet, Position, parse_position
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.selection import Bound
from binlane.tables.ranges.cutting import (
    RANGE_BYTES_DEFAULT,
    Cuts,
    Cutter,
    LogExtent,
    Part,
    Span,
    file_end,
)
from binlane.tables.ranges.kept_facts import KeptFacts, default_directory
from binlane.tables.ranges.known_facts import KnownFacts
from binlane.tables.ranges.log_file_facts import PIECE_BYTES, FilePiece, LogFileFacts
from binlane.tables.ranges.log_history import FilterAt, LogHistory
from binlane.tables.ranges.log_places import check_gaps, check_place, purged
from binlane.tables.ranges.log_range import Limits, LogRange, Offset
from binlane.tables.ranges.log_sources import Sources, log_name
from binlane.tables.ranges.storage import bytes_before
from binlane.tables.ranges.stored_files import StoredLogFile

Columns = tuple[Column, ...]


def columns_in(
    facts: LogFileFacts, piece: FilePiece, catalog: LoggedObjects, table: TableName | None
) -> Iterator[tuple[TableMapEvent, Columns]]:
    """The columns that a table's rows in a piece may have.

    Args:
        facts: The facts of the file.
        piece: A piece of those facts.
        catalog: The tables as the log tells them before the piece; on return, as it tells them
            behind it.
        table: The name of the table; None for all tables.

    Yields:
        Table maps, each with the columns that fit it somewhere in the piece: where within it a map
        stands is not known.
    """
    numbers = range(len(facts.table_maps)) if piece.maps is None else piece.maps
    maps = [
        table_map
        for table_map in (facts.table_maps[number] for number in numbers)
        if table is None or table_map.name == table
    ]
    found: dict[TableMapEvent, set[Columns]] = {table_map: set() for table_map in maps}

    def look() -> None:
        for table_map, seen in found.items():
            seen.add(catalog.columns(table_map, flavor=facts.format.flavor))

    look()
    for query in facts.queries:
        if piece.start <= query.event.position < piece.stop and catalog.feed(query.event):
            look()
    for table_map, seen in found.items():
        # A statement before or behind the map that is about other columns told nothing of the map.
        told = {columns for columns in seen if any(column.has_schema for column in columns)}
        yield from ((table_map, columns) for columns in told or seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Settings for the reading of files.

    Attributes:
        keys: Path of a key file, for encrypted files.
        piece_bytes: Least distance of two places where a file may be cut.
        has_history: Whether ranges carry the log's history before them: `catalog`, `prepared`. All
            of the log must be surveyed once for it.
        cache: Directory in which facts of files are kept from run to run; empty for nowhere, None
            for `$XDG_CACHE_HOME/binlane/facts`.
        filter_at: State of the reader's filter, and where it holds; None without a filter.
        schema: The objects that are known before the log's beginning; None if nobody knows any.
    """

    keys: str | None = None
    piece_bytes: int = PIECE_BYTES
    has_history: bool = True
    cache: str | None = None
    filter_at: FilterAt | None = None
    schema: LoggedObjects | None = None


class Planner:
    """Plans the reading of one log.

    Args:
        sources: Files in order, a directory, or `DATA#name`.
        options: Settings for the reading of files; the defaults if None.
    """

    def __init__(self, sources: str | Sequence[str], options: PlanOptions | None = None) -> None:
        self._options = options or PlanOptions()
        self._sources = Sources([sources] if isinstance(sources, str) else sources)
        cache = self._options.cache
        folder = default_directory() if cache is None else Path(cache)
        self._facts = KnownFacts(
            keys=self._options.keys,
            piece_bytes=self._options.piece_bytes,
            kept=None if cache == "" else KeptFacts(folder),
        )
        self._history = self._new_history()
        self._cutter = Cutter(
            self._facts,
            keys=self._options.keys,
            history=self._new_history() if self._options.has_history else None,
        )

    def _new_history(self) -> LogHistory:
        return LogHistory(self._facts, self._options.filter_at, self._options.schema)

    def begin(self, start: Bound | GtidSet | None = None) -> Offset:
        """The beginning of the oldest file, or a place near behind which a selection begins.

        Args:
            start: All that it leaves out may lie behind the place too: it is only a good one.

        Raises:
            ConfigError: If the sources are not one log.
            StoreError: If a file cannot be read, or what follows `start` is not in the log any more.
            CodecError: If the file does not begin as a binlog file.
        """
        files = self._sources.one_log()
        if isinstance(start, FilePosition):
            return self._begin_at(files, start)
        if start is not None and not isinstance(start, datetime):
            return self._begin_behind(files, start)
        return self._offset(files[0], self._facts.first(files[0]), len(MAGIC))

    def _begin_at(self, files: Sequence[StoredLogFile], start: FilePosition) -> Offset:
        check_place(files, Offset(file=start.file, position=start.position), self._facts)
        file = next(file for file in files if file.name == start.file)
        facts = self._facts.of(file, until=start.position)
        cuts = [piece.stop for piece in facts.pieces if piece.stop <= start.position]
        return self._offset(file, facts, max(cuts, default=len(MAGIC)))

    def _begin_behind(self, files: Sequence[StoredLogFile], start: Position) -> Offset:
        for file in reversed(files):
            try:
                first = self._facts.first(file)
            except TruncatedError:
                continue  # its server is making it
            if first.begin is None or first.flavor != start.flavor:
                continue
            if start.includes(parse_position(first.begin, first.flavor)):
                facts = self._facts.of(file)
                cuts = [
                    piece.stop
                    for piece in facts.pieces
                    if (done := facts.done_at(piece.stop)) is not None and start.includes(done)
                ]
                return self._offset(file, facts, max(cuts, default=len(MAGIC)))
        first = self._facts.first(files[0])
        if first.begin is not None and first.flavor == start.flavor:
            raise purged(files[0], start, first.begin)
        return self._offset(files[0], first, len(MAGIC))

    def end(self, after: Offset | None = None) -> Offset:
        """Return the place where the log ends now: behind a whole event group.

        If damage stands there, the place is behind the damage, so that whoever reads it says so.

        Args:
            after: A place that is known; the log before it is not looked at.

        Raises:
            StoreError: If the log is not the one any more that `after` stands in, or has a gap.
        """
        files = self._sources.one_log() if after is None else self._files_from(after)
        for file in reversed(files):
            since = after.position if after and after.file == file.name else 0
            try:
                facts = self._facts.of(
                    file, since=since, begin=after.gtids if after and since else None
                )
            except TruncatedError:
                # The file's server is still making it.
                if file is files[0]:
                    return after or Offset(file=file.name)
                continue
            end = facts.end if file is files[-1] and not facts.fault else file_end(file, facts)
            return self._offset(file, facts, max(end, since))
        raise AssertionError("a log has files")

    def reach(self, place: Offset) -> Offset:
        """Return the furthest place that is known to have no event group between `place` and it.

        Behind the last group a log may have events of its own: MariaDB writes a checkpoint into a
        new file some time later.

        Args:
            place: A place that is known, behind a whole event group.

        Raises:
            StoreError: If the log is not the one any more that `place` stands in, or has a gap.
        """
        found = place
        for file in self._files_from(place):
            since = place.position if file.name == place.file else 0
            try:
                facts = self._facts.of(file, since=since, begin=place.gtids if since else None)
                has_groups = facts.end > max(since, self._facts.first(file).end)
            except TruncatedError:
                break  # its server is making it
            if has_groups or facts.fault or facts.read_to != file.size_bytes or not file.is_plain:
                break
            found = Offset(file=file.name, position=file.size_bytes)
        return found

    def next(self, start: Offset, limits: Limits, *, end: Offset | None = None) -> Offset:
        """Return the end of the part that is to be read next.

        Args:
            start: The place from which the reading goes on.
            limits: Limits of the part; the first that is reached counts.
            end: The last place to reach; by default the log's end now.

        Raises:
            StoreError: If the log is not the one any more that `start` stands in, or has a gap.
        """
        end = end or self.end(start)
        if limits.is_unlimited:
            return end
        left = limits
        found: Offset | None = None
        for span in self._spans(start, end):
            facts, at, left = self._cutter.advance(span, left)
            if found is not None and left.are_exceeded:
                return found
            found = self._offset(span.file, facts, at)
            if at < span.high or left.are_used_up:
                return found
        return end

    def ranges(
        self,
        start: Offset,
        end: Offset,
        *,
        size_bytes: int = RANGE_BYTES_DEFAULT,
        cores: int = 1,
    ) -> list[LogRange]:
        """Cut the log between two places into ranges that one task each reads.

        Ranges begin and end with whole event groups, and lie in one file each.

        Args:
            start: The place from which the log is read.
            end: The place up to which the log is read.
            size_bytes: Bytes that a range has at most, about.
            cores: Least number of ranges, if each has 4 MiB then.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        spans = list(self._spans(start, end))
        return self._cutter.ranges(
            spans,
            Cuts(size_bytes=size_bytes, cores=cores),
            files=self._sources.one_log(),
        )

    def parts(self, start: Offset, end: Offset, cuts: Cuts) -> list[Part]:
        """Cut the log between two places into parts of about one size that one task each reads.

        A part may hold ranges of several files, each as `ranges` gives it.

        Args:
            start: The place from which the log is read.
            end: The place up to which the log is read.
            cuts: Terms of the cutting: size and number of the parts, and the reader's selection.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        log = LogExtent(list(self._spans(start, end)), self._sources.one_log())
        return self._cutter.parts([log], cuts)

    def all_parts(self, cuts: Cuts) -> list[Part]:
        """All that there is, as `parts` gives it; the files need not be those of one log.

        Args:
            cuts: Terms of the cutting: size and number of the parts, and the reader's selection.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
            CodecError: If a file does not begin as a binlog file.
        """
        wish = cuts.wish
        files = [
            file for file in self._sources.files() if wish is None or wish.wants_file(file.name)
        ]
        return self.parts_of([self._extent(log) for log in _logs(files)], cuts)

    def extents(self) -> list[LogExtent]:
        """All that there is now, log by log.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
            CodecError: If a file does not begin as a binlog file.
        """
        return [self._extent(log) for log in _logs(self._sources.files())]

    def parts_of(self, logs: Sequence[LogExtent], cuts: Cuts) -> list[Part]:
        """Cut the parts of logs that were there at one time, as `parts` does.

        Args:
            logs: The parts of logs, as `extents` gave them.
            cuts: Terms of the cutting: size and number of the parts, and the reader's selection.

        Raises:
            StoreError: If a file cannot be read.
        """
        return self._cutter.parts(logs, cuts)

    def facts_in(self, span: Span) -> LogFileFacts:
        """The facts of the part of a file that is read.

        Raises:
            CodecError: If the file does not begin as a binlog file.
            StoreError: If the file cannot be read.
        """
        return self._facts.of(span.file, since=span.low, until=span.high)

    def range_of(self, span: Span, start: int, stop: int) -> LogRange:
        """Return a range in the part of a file that is read, without what the log tells before it.

        Raises:
            StoreError: If the file cannot be read.
        """
        return self._cutter.bare(span.file, self.facts_in(span), start, stop)

    def columns_in_all(
        self, logs: Iterable[LogExtent]
    ) -> Iterator[tuple[TableMapEvent, Columns, Flavor]]:
        """The columns that each table has anywhere in some logs, in log order, some repeatedly.

        Args:
            logs: The logs, from their beginnings on, of `extents`.

        Raises:
            StoreError: If a file cannot be read.
        """
        for log in logs:
            catalog = self._first_catalog()
            for span in log.spans:
                facts = self.facts_in(span)
                flavor = facts.format.flavor
                changes = [query.event.position for query in facts.queries]
                looked_at: set[int] = set()
                for piece in facts.pieces:
                    is_steady = bisect_left(changes, piece.start) == bisect_left(
                        changes, piece.stop
                    )
                    if is_steady and piece.maps is not None and looked_at.issuperset(piece.maps):
                        continue
                    for table_map, columns in columns_in(facts, piece, catalog, None):
                        yield table_map, columns, flavor
                    looked_at = {*looked_at, *(piece.maps or ())} if is_steady else set()

    def _first_catalog(self) -> LoggedObjects:
        schema = self._options.schema
        return LoggedObjects() if schema is None else schema.copy()

    def _extent(self, log: tuple[StoredLogFile, ...]) -> LogExtent:
        return LogExtent([Span(file, len(MAGIC), self._end_of(file)) for file in log], log)

    def notes_of_all(self) -> list[str]:
        """Return the filter's notes about all statements in the log, and about the log as a whole.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
        """
        if self._options.filter_at is None:
            return []
        notes: list[str] = []
        unmatched: list[str] = []
        logs = list(_logs(self._sources.files()))
        for log in logs:
            history = self._new_history()
            history.follow(log, log[-1], self._end_of(log[-1]))
            state = history.filter_state
            assert state is not None, "there is a filter"
            for file in log:
                for each in self._facts.of(file).table_maps:
                    state.includes(each.name)
            notes += state.notes
            unmatched += [state.unmatched] * state.is_unmatched
        return notes + unmatched[-1:] * (len(unmatched) == len(logs))

    def notes_between(self, start: Offset, end: Offset) -> list[str]:
        """Return the filter's notes about the statements between two places.

        Raises:
            StoreError: If a file cannot be read.
        """
        if self._options.filter_at is None:
            return []
        files = self._sources.one_log()
        notes: list[str] = []
        for place in (start, end):
            file = next(each for each in files if each.name == place.file)
            self._history.follow(files, file, place.position)
            state = self._history.filter_state
            assert state is not None, "there is a filter"
            notes = list(state.notes)
            state.notes.clear()
        return notes

    def facts_between(self, start: Offset, end: Offset) -> Iterator[tuple[LogFileFacts, LogRange]]:
        """Give the facts that are known of the log between two places, file by file.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        for file, low, high in self._spans(start, end):
            facts = self._facts.of(file, since=low, until=high)
            yield facts, self._cutter.bare(file, facts, low, high)

    def offset_at(self, file: str, position: int) -> Offset:
        """The offset of a place where an event group begins or ends.

        Args:
            file: Base name of a file that the log has.
            position: Position in that file, in bytes.

        Raises:
            StoreError: If the log does not hold the file, or less of it.
        """
        files = self._sources.one_log()
        check_place(files, Offset(file=file, position=position), self._facts)
        found = next(each for each in files if each.name == file)
        return self._offset(found, self._facts.first(found), position)

    def catalog_at(self, place: Offset) -> LoggedObjects:
        """Return the caller's own catalog of the tables, as the log's statements before a place tell them.

        Raises:
            StoreError: If a file cannot be read.
        """
        files = self._sources.one_log()
        file = next(each for each in files if each.name == place.file)
        self._history.follow(files, file, place.position)
        return self._history.catalog.copy()

    def columns_of(self, table: TableName) -> Iterator[tuple[TableMapEvent, Columns, Flavor]]:
        """The columns that a table has anywhere in the log, in log order.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
            CodecError: If a file does not begin as a binlog file.
        """
        for log in _logs(self._sources.files()):
            catalog = self._first_catalog()
            for file in log:
                facts = self._facts.of(file)
                for piece in facts.pieces:
                    for table_map, columns in columns_in(facts, piece, catalog, table):
                        yield table_map, columns, facts.format.flavor

    def table_maps(self) -> Iterator[tuple[TableMapEvent, Flavor]]:
        """All table maps of the log that differ, whatever their ids, each with the log's flavor.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
            CodecError: If a file does not begin as a binlog file.
        """
        seen: set[tuple[TableMapEvent, Flavor]] = set()
        for file in self._sources.files():
            facts = self._facts.of(file)
            for table_map in facts.table_maps:
                key = table_map, facts.format.flavor
                if key not in seen:
                    seen.add(key)
                    yield key

    def files(self) -> tuple[StoredLogFile, ...]:
        """The files of the log, in order.

        Raises:
            ConfigError: If the sources are not one log.
            StoreError: If they cannot be listed.
        """
        return self._sources.one_log()

    # Places of offsets ----------------------------------------------------------------------------

    def _offset(self, file: StoredLogFile, facts: LogFileFacts, position: int) -> Offset:
        check = b""
        if file.is_plain and position > len(MAGIC):
            check = bytes_before(file.uri, position, CHECKSUM_LENGTH)
        done = facts.done_at(position)
        return Offset(
            file=file.name,
            position=position,
            fingerprint=facts.fingerprint,
            check=check.hex(),
            gtids=None if done is None else str(done),
            server_id=facts.server_id,
            server=file.server,
        )

    def _files_from(self, start: Offset) -> tuple[StoredLogFile, ...]:
        """The files from an offset on.

        Raises:
            StoreError: If the log does not hold it any more.
        """
        files = self._sources.one_log()
        check_place(files, start, self._facts)
        found = tuple(file for file in files if file.number >= start.number)
        check_gaps(found)
        return found

    def _spans(self, start: Offset, end: Offset) -> Iterator[Span]:
        """The parts of files between two places.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        files = self._files_from(start)
        check_place(files, end, self._facts)
        for file in files:
            if file.number > end.number:
                return
            low = start.position if file.name == start.file else len(MAGIC)
            if file.name == end.file:
                high = end.position
            else:
                high = file_end(file, self._facts.of(file, since=low))
            if low < high:
                yield Span(file, low, high)

    def _end_of(self, file: StoredLogFile) -> int:
        facts = self._facts.of(file)
        return facts.end if file.is_live and not facts.fault else file_end(file, facts)


def _logs(files: Sequence[StoredLogFile]) -> Iterator[tuple[StoredLogFile, ...]]:
    """Files that are given in any order, by the logs that they are of."""
    run: list[StoredLogFile] = []
    for file in files:
        is_next = (
            run
            and log_name(file.name) is not None
            and log_name(run[-1].name) == log_name(file.name)
            and run[-1].number < file.number
        )
        if run and not is_next:
            yield tuple(run)
            run = []
        run.append(file)
    if run:
        yield tuple(run)
