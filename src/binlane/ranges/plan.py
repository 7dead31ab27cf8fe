"""Which ranges of a log are read next: what a landing or a stream asks before it reads.

A planner looks only at what it must: the files' first events, and what lies behind the last place
that is known. Whatever it answers can be asked again by another process that reaches the files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Protocol

from binlane.codec.format import CHECKSUM_LENGTH, MAGIC
from binlane.codec.rows import TableMapEvent
from binlane.codec.types import Flavor
from binlane.errors import StoreError, TruncatedError
from binlane.grouping.raw import LargeGroup, RawRun, raw_groups
from binlane.kernels import layout
from binlane.ranges.facts import PIECE_BYTES, FileFacts, Piece
from binlane.ranges.files import LogFile, open_range, read_groups_of
from binlane.ranges.known_facts import KnownFacts
from binlane.ranges.log_range import LogRange
from binlane.ranges.offset import Offset
from binlane.ranges.row_counts import row_changes
from binlane.ranges.sources import Sources, log_name
from binlane.ranges.storage import bytes_before
from binlane.scope.scope import Scope

RANGE_BYTES_DEFAULT: Final = 48 << 20
RANGE_BYTES_MIN: Final = 4 << 20
_ANEW: Final = "start anew with an empty checkpoint and target"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How files are read.

    Attributes:
        keys: Path of a key file, for encrypted files.
        piece_bytes: Least distance of two places where a file may be cut.
    """

    keys: str | None = None
    piece_bytes: int = PIECE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken at once, about: event groups stay whole, and at least one is taken.

    Attributes:
        size_bytes: Of log.
        groups: Event groups.
        rows: Row changes.
        scope: The tables whose rows count.
    """

    size_bytes: int | None = None
    groups: int | None = None
    rows: int | None = None
    scope: Scope = field(default_factory=Scope.everything)

    @property
    def are_used_up(self) -> bool:
        """Whether nothing more is to be taken."""
        return any(left is not None and left <= 0 for left in self._given())

    @property
    def are_exceeded(self) -> bool:
        """Whether more was taken than wanted, in bytes."""
        return self.size_bytes is not None and self.size_bytes < 0

    @property
    def is_unlimited(self) -> bool:
        """Whether all there is may be taken."""
        return all(left is None for left in self._given())

    def _given(self) -> tuple[int | None, ...]:
        return self.size_bytes, self.groups, self.rows


class Wish(Protocol):
    """What a reader wants of a log, as far as facts can tell."""

    def wants_file(self, name: str) -> bool:
        """Whether a file may hold anything wanted, by its base name alone."""

    def wants_piece(self, name: str, facts: FileFacts, piece: Piece) -> bool:
        """Whether what stands between two cut points of a file may."""


class Planner:
    """Plans the reading of one log.

    Args:
        sources: Files in order, a directory, or `DATA#name`.
        options: Else the defaults.
    """

    def __init__(self, sources: str | Sequence[str], options: PlanOptions | None = None) -> None:
        self._options = options or PlanOptions()
        self._sources = Sources([sources] if isinstance(sources, str) else sources)
        self._facts = KnownFacts(keys=self._options.keys, piece_bytes=self._options.piece_bytes)

    def begin(self) -> Offset:
        """The beginning of the oldest file.

        Raises:
            ConfigError: If the sources are not one log.
            StoreError: If a file cannot be read.
            CodecError: If the file does not begin as a binlog file.
        """
        first = self._sources.one_log()[0]
        return self._offset(first, self._facts.first(first), len(MAGIC))

    def end(self, after: Offset | None = None) -> Offset:
        """Where the log ends now: behind a whole event group.

        Where damage stands there it is behind that, so that whoever reads it says so.

        Args:
            after: What lies before it is not looked at.

        Raises:
            StoreError: If the log is not the one any more that `after` stands in, or has a gap.
        """
        files = self._sources.one_log() if after is None else self._files_from(after)
        for file in reversed(files):
            since = after.position if after and after.file == file.name else 0
            try:
                facts = self._facts.of(file, since=since)
            except TruncatedError:
                # Its server is making it.
                if file is files[0]:
                    return after or Offset(file=file.name)
                continue
            end = facts.end if file is files[-1] and not facts.fault else _file_end(file, facts)
            return self._offset(file, facts, max(end, since))
        raise AssertionError("a log has files")

    def next(self, start: Offset, limits: Limits, *, end: Offset | None = None) -> Offset:
        """The end of what is to be read next.

        Args:
            start: From where on.
            limits: How much; of several the first that is reached.
            end: Not beyond; what there is now by default.

        Raises:
            StoreError: If the log is not the one any more that `start` stands in, or has a gap.
        """
        end = end or self.end(start)
        if limits.is_unlimited:
            return end
        left = limits
        found: Offset | None = None
        for file, low, high in self._spans(start, end):
            facts, at, left = self._advance(file, low, high, left)
            if found is not None and left.are_exceeded:
                return found
            found = self._offset(file, facts, at)
            if at < high or left.are_used_up:
                return found
        return end

    def ranges(
        self,
        start: Offset,
        end: Offset,
        *,
        size_bytes: int = RANGE_BYTES_DEFAULT,
        cores: int = 1,
        wish: Wish | None = None,
    ) -> list[LogRange]:
        """What lies between two places, in ranges that one task each reads.

        They begin and end with whole event groups, and lie in one file each.

        Args:
            start: From where on.
            end: Up to where.
            size_bytes: Of a range at most, about.
            cores: There are at least so many ranges, if each has 4 MiB then.
            wish: What of it is to be read; all if None.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        return self._cut(list(self._wished(self._spans(start, end), wish)), size_bytes, cores)

    def facts_between(self, start: Offset, end: Offset) -> Iterator[tuple[FileFacts, LogRange]]:
        """What is known of the log between two places, file by file.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        for file, low, high in self._spans(start, end):
            facts = self._facts.of(file, since=low, until=high)
            yield facts, self._range(file, facts, low, high)

    def offset_at(self, file: str, position: int) -> Offset:
        """The offset of a place where an event group begins or ends.

        Args:
            file: Base name of a file that the log has.
            position: In it.

        Raises:
            StoreError: If it cannot be read.
        """
        found = next(each for each in self._sources.one_log() if each.name == file)
        return self._offset(found, self._facts.first(found), position)

    def all_ranges(
        self,
        *,
        size_bytes: int = RANGE_BYTES_DEFAULT,
        cores: int = 1,
        wish: Wish | None = None,
    ) -> list[LogRange]:
        """All that there is, as `ranges` gives it; the files need not be those of one log.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file cannot be read.
            CodecError: If a file does not begin as a binlog file.
        """
        spans: list[tuple[LogFile, int, int]] = []
        for file in self._sources.files():
            if wish is not None and not wish.wants_file(file.name):
                continue
            facts = self._facts.of(file)
            high = facts.end if file.is_live and not facts.fault else _file_end(file, facts)
            spans.append((file, len(MAGIC), high))
        return self._cut(list(self._wished(spans, wish)), size_bytes, cores)

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

    def files(self) -> tuple[LogFile, ...]:
        """The files of the log, in order.

        Raises:
            ConfigError: If the sources are not one log.
            StoreError: If they cannot be listed.
        """
        return self._sources.one_log()

    # Where offsets stand -------------------------------------------------------------------------

    def _offset(self, file: LogFile, facts: FileFacts, position: int) -> Offset:
        check = b""
        if file.is_plain and position > len(MAGIC):
            check = bytes_before(file.uri, position, CHECKSUM_LENGTH)
        done = facts.done_at(position) if position >= facts.end else None
        return Offset(
            file=file.name,
            position=position,
            fingerprint=facts.fingerprint,
            check=check.hex(),
            gtids=None if done is None else str(done),
            server_id=facts.server_id,
        )

    def _files_from(self, start: Offset) -> tuple[LogFile, ...]:
        """The files from an offset on.

        Raises:
            StoreError: If the log does not hold it any more.
        """
        files = self._sources.one_log()
        self._check_place(files, start)
        found = tuple(file for file in files if file.number >= start.number)
        for before, after in pairwise(found):
            if after.number != before.number + 1:
                raise StoreError(
                    f"files are missing between {before.name} and {after.name}",
                    path=before.uri,
                    hint=f"bring them back, or {_ANEW}",
                )
        return found

    def _check_place(self, files: Sequence[LogFile], place: Offset) -> LogFile:
        file = next((file for file in files if file.name == place.file), None)
        if file is None:
            raise _not_there(files, place)
        if not place.fingerprint:
            return file
        first = self._facts.first(file)
        if first.fingerprint != place.fingerprint:
            raise _another(file, first, place)
        if file.is_plain and place.position > file.size_bytes:
            raise StoreError(
                f"{file.name} ends at {file.size_bytes}; this reader stands at {place.position}",
                path=file.uri,
                hint="the file became shorter: was its disk lost in a crash, or is it a copy that "
                f"is not whole yet? Bring the whole file back, or {_ANEW}",
            )
        if file.is_plain and place.check:
            found = bytes_before(file.uri, place.position, CHECKSUM_LENGTH)
            if found.hex() != place.check:
                raise StoreError(
                    f"{file.name} is not the file any more in which this reader stands at "
                    f"{place.position}: another event ends there",
                    path=file.uri,
                    hint=f"the log was reset or written anew: {_ANEW}",
                )
        return file

    def _spans(self, start: Offset, end: Offset) -> Iterator[tuple[LogFile, int, int]]:
        """The files between two places, each with the positions where its part begins and ends.

        Raises:
            StoreError: If the log is not the one any more that an offset stands in, or has a gap.
        """
        files = self._files_from(start)
        self._check_place(files, end)
        for file in files:
            if file.number > end.number:
                return
            low = start.position if file.name == start.file else len(MAGIC)
            if file.name == end.file:
                high = end.position
            else:
                high = _file_end(file, self._facts.of(file, since=low))
            if low < high:
                yield file, low, high

    def _wished(
        self, spans: Iterable[tuple[LogFile, int, int]], wish: Wish | None
    ) -> Iterator[tuple[LogFile, int, int]]:
        """The parts of some spans that are wanted; where damage stands is wanted always."""
        for file, low, high in spans:
            if wish is None:
                yield file, low, high
                continue
            if not wish.wants_file(file.name):
                continue
            facts = self._facts.of(file, since=low, until=high)
            parts: list[list[int]] = []
            for piece, start, stop in facts.cuts(low, high):
                if not wish.wants_piece(file.name, facts, piece):
                    continue
                if parts and parts[-1][1] == start:
                    parts[-1][1] = stop
                else:
                    parts.append([start, stop])
            if facts.end < high and (facts.fault or facts.is_cut):
                parts.append([facts.end, high])
            if file.is_plain:
                yield from ((file, start, stop) for start, stop in parts)
            elif parts:
                yield file, low, high

    # Cutting -------------------------------------------------------------------------------------

    def _cut(
        self, spans: Sequence[tuple[LogFile, int, int]], size_bytes: int, cores: int
    ) -> list[LogRange]:
        total = sum(high - low for _, low, high in spans)
        count = max(-(-total // size_bytes), min(cores, total // RANGE_BYTES_MIN), 1)
        wanted = max(total / count, 1.0)
        return [
            piece for file, low, high in spans for piece in self._ranges_of(file, low, high, wanted)
        ]

    def _ranges_of(self, file: LogFile, low: int, high: int, wanted: float) -> Iterator[LogRange]:
        facts = self._facts.of(file, since=low, until=high)
        bounds = [stop for _, _, stop in facts.cuts(low, high)]
        if not bounds:
            bounds = [high]
        if facts.end < high and (facts.fault or facts.is_cut):
            # Whoever reads up to there raises what is wrong.
            bounds[-1] = high
        elif not any(piece.groups for piece, _, _ in facts.cuts(low, high)):
            return
        last = bounds[-1]
        count = max(-(-(last - low) // int(wanted)), 1) if file.is_plain else 1
        start = low
        for number in range(1, count + 1):
            want = low + (last - low) * number // count
            found = min(bisect_right(bounds, want), len(bounds) - 1)
            stop = last if number == count else bounds[max(found - 1, 0)]
            if stop > start:
                yield self._range(file, facts, start, stop)
                start = stop

    def _advance(
        self, file: LogFile, low: int, high: int, limits: Limits
    ) -> tuple[FileFacts, int, Limits]:
        """How far limits reach in a part of a file, and what is left of them."""
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
            at, rows = self._after_rows(
                self._range(file, facts, low, at), facts, rows, limits.scope
            )
        size_bytes = None if limits.size_bytes is None else limits.size_bytes - (at - low)
        return facts, at, replace(limits, size_bytes=size_bytes, groups=groups, rows=rows)

    def _cut_before(self, file: LogFile, facts: FileFacts, low: int, want: int) -> int:
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
        self, file: LogFile, facts: FileFacts, low: int, high: int, groups: int
    ) -> tuple[int, int]:
        """Where so many groups end, but not behind `high`; how many are left to take."""
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
        self, piece: LogRange, facts: FileFacts, rows: int, scope: Scope
    ) -> tuple[int, int]:
        """Where the group ends that has the last of so many row changes; how many are left."""
        for group in read_groups_of(piece):
            rows -= row_changes(group, facts.format, scope)
            if rows <= 0:
                return group.next_position, 0
        assert piece.stop is not None, "it was given"
        return piece.stop, rows

    def _group_ends(self, file: LogFile, facts: FileFacts, start: int, stop: int) -> Iterator[int]:
        """Where the groups of a piece end."""
        with closing(open_range(self._range(file, facts, start, stop))) as source:
            items = raw_groups(
                source, file=file.uri, name=file.name, position=start, format_=facts.format
            )
            for item in items:
                if isinstance(item, RawRun):
                    yield from item.groups[layout.GROUP_STOP].tolist()
                elif isinstance(item, LargeGroup):
                    # It fills the piece to its end.
                    yield stop
                    return
                elif not item.is_control and item.is_complete:
                    yield item.next_position

    def _range(self, file: LogFile, facts: FileFacts, start: int, stop: int) -> LogRange:
        return LogRange(
            uri=file.uri,
            name=file.name,
            number=file.number,
            start=start,
            stop=stop,
            head=facts.head,
            is_plain=file.is_plain,
            keys=self._options.keys,
        )


def _file_end(file: LogFile, facts: FileFacts) -> int:
    """The end of a file that is written no more, or behind which damage stands."""
    if file.is_plain:
        return file.size_bytes
    return facts.end + (1 if facts.fault or facts.is_cut else 0)


def _not_there(files: Sequence[LogFile], place: Offset) -> StoreError:
    """The file in which an offset stands is gone."""
    first, last = files[0], files[-1]
    if log_name(place.file) != log_name(first.name):
        what = f"its files are named {first.name} …: this is another log"
        hint = f"name the log that holds {place.file}, or {_ANEW}"
    elif place.number < first.number:
        what = f"it begins with {first.name}: the file was purged"
        hint = f"bring the file back from a backup, or {_ANEW}"
    elif place.number > last.number:
        what = f"it ends with {last.name}: its files were numbered anew"
        hint = f"the log was reset (RESET MASTER), or is another server's: {_ANEW}"
    else:
        what = f"there are {first.name} to {last.name}: the file is missing between them"
        hint = f"bring it back, or {_ANEW}"
    return StoreError(
        f"the log no longer holds {place}, where this reader stands; {what}",
        path=first.uri,
        hint=hint,
    )


def _another(file: LogFile, first: FileFacts, place: Offset) -> StoreError:
    """The file in which an offset stands is another one by now."""
    if place.server_id is not None and first.server_id != place.server_id:
        why = (
            f"server {first.server_id} wrote it, that one server {place.server_id}: "
            "this is another server's log (a failover?)"
        )
        hint = "find the same place in the new log by GTID"
        if place.gtids:
            hint += f" ({place.gtids} was done here)"
    else:
        why = "it begins anew"
        hint = "the log was reset (RESET MASTER)"
    return StoreError(
        f"{file.name} is not the file any more in which this reader stands at "
        f"{place.position}: {why}",
        path=file.uri,
        hint=f"{hint}; {_ANEW}" if "reset" not in hint else f"{hint}: {_ANEW}",
    )
