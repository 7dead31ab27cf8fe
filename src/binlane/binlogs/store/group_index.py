"""Places in a binlog file where groups begin, every few MiB: an index beside the log, never trusted.

`DATA/groups/<binlog>/<file>.idx` holds lines of JSON, each with its CRC32 behind a tab. The first
tells the file, all others are points: a group begins or the log ends there, all before is done at
a GTID position, and what stands between the point before and this one has these times and tables.
The last four bytes before a point, the checksum of the event that ends there, tie it to the file.

The index is written while the log is, and forced to disk never. A line that is torn, or does not
fit the file, ends the index there; a file without one is read from its beginning, or indexed anew
when somebody has to find a place in it. Only tables that the file itself names are named.
"""

from __future__ import annotations

import json
import logging
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from binlane.binlogs.store.files import BINLOGS_DIRECTORY
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.log.codec.rows import TableMapEvent
from binlane.positions import Position, parse_position

POINT_BYTES: Final = 4 << 20
"""Least distance of two points."""

GROUPS_DIRECTORY: Final = "groups"
_SUFFIX: Final = ".idx"
_VERSION: Final = 1
_TABLES_MOST: Final = 64
_POSITION_MASK: Final = (1 << 32) - 1
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A place between two groups.

    Attributes:
        position: Byte position of the place.
        gtids: GTID position as text: everything before the place is done at it.
        check: The four bytes before the place.
        first_timestamp: The least time of the events since the point before, seconds since 1970;
            None where it is not known.
        last_timestamp: The greatest time of these events, seconds since 1970.
        tables: The tables of row events there, `database.table`; None where there are too many or
            they are not known.
    """

    position: int
    gtids: str
    check: bytes
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    tables: tuple[str, ...] | None = None

    def line(self) -> bytes:
        """The point's line as it stands in the index."""
        return _line(
            {
                "position": self.position,
                "gtids": self.gtids,
                "check": self.check.hex(),
                "from": self.first_timestamp,
                "to": self.last_timestamp,
                "tables": self.tables,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIndex:
    """The points of a file, as far as they fit it.

    Attributes:
        path: Path of the binlog file.
        flavor: Flavor of the GTID positions.
        start: Position of the file's first group.
        points: Points in the order of the file.
    """

    path: Path
    flavor: str
    start: int
    points: tuple[Point, ...]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The index of a file of a store; None if there is none that fits it."""
        where = index_of(path)
        if where is None:
            return None
        lines = _lines(where)
        with suppress(StopIteration, KeyError, TypeError, ValueError, OSError):
            first = next(lines)
            fits = first["version"] == _VERSION and first["file"] == path.name
            with path.open("rb") as stream:
                if not fits or _bytes_before(stream, first["start"]) != bytes.fromhex(
                    first["check"]
                ):
                    return None
            return cls(
                path=path,
                flavor=first["flavor"],
                start=first["start"],
                points=tuple(_points(lines)),
            )
        return None

    def position_of(self, point: Point) -> Position:
        """Give the position that is done before a point."""
        return parse_position(point.gtids, self.flavor)

    def behind(self, done: Position) -> Point | None:
        """The last point before which everything is done."""
        count = bisect_right(
            self.points, False, key=lambda point: not done.includes(self.position_of(point))
        )
        return self._fitting(count)

    def at(self, position: int) -> Point | None:
        """The last point at or before a byte position."""
        return self._fitting(bisect_right(self.points, position, key=lambda point: point.position))

    def ahead(self, position: int, end: int) -> Iterator[Point]:
        """The points behind a byte position and up to another one, as far as the file is as they say."""
        for count, point in enumerate(self.points, 1):
            if position < point.position <= end and self._fitting(count) is not None:
                yield point

    def older(self, timestamp: float) -> Point | None:
        """The last point before which every event is older than a time, seconds since 1970."""
        count = 0
        for point in self.points:
            if point.last_timestamp is None or point.last_timestamp >= timestamp:
                break
            count += 1
        return self._fitting(count)

    def _fitting(self, count: int) -> Point | None:
        """The last of the first `count` points, if the file is as it says."""
        if not count:
            return None
        point = self.points[count - 1]
        with suppress(OSError), self.path.open("rb") as stream:
            if _bytes_before(stream, point.position) == point.check and _is_event(
                stream.read(HEADER_LENGTH), point.position
            ):
                return point
        return None


class GroupIndexWriter:
    """Writes the indexes of one binlog's files while these are written.

    A line that cannot be written is left out: an index is a help and no part of the log.

    Args:
        directory: Directory for the indexes; made when the first is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tables: set[tuple[str, str]] = set()
        self._first_timestamp = self._last_timestamp = 0
        self.begin(Path(), start=0, flavor="")

    def begin(self, path: Path, *, start: int, flavor: str) -> None:
        """Go over to a new file, or come back to one.

        Args:
            path: Path of the new file.
            start: Position of the file's first group.
            flavor: Flavor of the file's GTID positions.
        """
        self._path, self._start, self._last = path, start, start
        self._flavor = flavor
        self._is_there = False
        self._forget()

    def resume(self, *, end: int) -> None:
        """Keep of the index of the file that was begun what lies within its first `end` bytes."""
        index = GroupIndex.read(self._path)
        if index is None:
            return
        kept = [point for point in index.points if point.position <= end]
        self._last = kept[-1].position if kept else self._last
        self._write(b"".join([self._head(), *(point.line() for point in kept)]), "wb")
        # The groups between the last point and the end were noted by a process that is gone.
        self.note_unknown()

    def note(self, events: Sequence[Event]) -> None:
        """Note times and tables of a group that was appended."""
        timestamps = [event.header.timestamp for event in events]
        self._first_timestamp = min(self._first_timestamp, *timestamps)
        self._last_timestamp = max(self._last_timestamp, *timestamps)
        for event in events:
            if isinstance(event.body, TableMapEvent):
                self._tables.add((event.body.database, event.body.table))

    def note_unknown(self) -> None:
        """Note that groups were appended of which only the bytes are known."""
        self._is_known = False

    def is_due(self, position: int) -> bool:
        """True if a position is at least `POINT_BYTES` behind the last point."""
        return position - self._last >= POINT_BYTES

    def reach(self, position: int, done: Position, check: bytes) -> None:
        """Make a point where the published log ends.

        Args:
            position: Byte position of the end.
            done: Everything before it, and nothing behind it that the log holds.
            check: The four bytes before it.
        """
        has_few = self._is_known and len(self._tables) <= _TABLES_MOST
        point = Point(
            position=position,
            gtids=str(done),
            check=check,
            first_timestamp=self._first_timestamp if self._is_known else None,
            last_timestamp=self._last_timestamp if self._is_known else None,
            tables=tuple(sorted(f"{d}.{t}" for d, t in self._tables)) if has_few else None,
        )
        if self._is_there:
            self._write(point.line(), "ab")
        else:
            self._write(self._head() + point.line(), "wb")
        self._last = position
        self._forget()

    def remove(self, names: Iterable[str]) -> None:
        """Delete the indexes of files that are gone."""
        for name in names:
            with suppress(OSError):
                (self._directory / f"{name}{_SUFFIX}").unlink(missing_ok=True)

    def _forget(self) -> None:
        self._tables = set()
        self._first_timestamp, self._last_timestamp = _POSITION_MASK, 0
        self._is_known = True

    def _head(self) -> bytes:
        return head_line(self._path, start=self._start, flavor=self._flavor)

    def _write(self, data: bytes, mode: str) -> None:
        path = self._directory / f"{self._path.name}{_SUFFIX}"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with path.open(mode) as stream:
                stream.write(data)
            self._is_there = True
        except OSError as error:
            _LOG.warning("%s: no index of groups is kept: %s", path, error.strerror or error)
            self._is_there = False


def index_of(path: Path) -> Path | None:
    """Give the path of the index of a binlog file; None for a file that stands in no store."""
    binlogs = path.parent.parent
    if binlogs.name != BINLOGS_DIRECTORY:
        return None
    return binlogs.parent / GROUPS_DIRECTORY / path.parent.name / f"{path.name}{_SUFFIX}"


def remove_indexes(directory: Path) -> None:
    """Delete all indexes of a binlog that is gone."""
    with suppress(OSError):
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()


def head_line(path: Path, *, start: int, flavor: str) -> bytes:
    """The first line of a file's index."""
    try:
        with path.open("rb") as stream:
            check = _bytes_before(stream, start)
    except OSError:
        check = b""  # fits no file
    return _line(
        {
            "version": _VERSION,
            "file": path.name,
            "flavor": flavor,
            "start": start,
            "check": check.hex(),
        }
    )


def _line(values: dict[str, object]) -> bytes:
    data = json.dumps(values, separators=(",", ":")).encode()
    return b"%s\t%08x\n" % (data, zlib.crc32(data))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of an index up to the first that is not whole."""
    try:
        whole = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return
    for line in whole:
        data, _, check = line.rpartition(b"\t")
        if check != b"%08x" % zlib.crc32(data):
            return
        yield json.loads(data)


def _points(lines: Iterable[dict[str, Any]]) -> Iterator[Point]:
    for line in lines:
        tables = line["tables"]
        yield Point(
            position=line["position"],
            gtids=line["gtids"],
            check=bytes.fromhex(line["check"]),
            first_timestamp=line["from"],
            last_timestamp=line["to"],
            tables=None if tables is None else tuple(tables),
        )


def _bytes_before(stream: BinaryIO, position: int) -> bytes:
    stream.seek(position - CHECKSUM_LENGTH)
    return stream.read(CHECKSUM_LENGTH)


def _is_event(data: bytes, position: int) -> bool:
    """True if an event can begin with these bytes at a position; the file's end has no bytes."""
    if len(data) < HEADER_LENGTH:
        return not data
    header = EventHeader.decode(data)
    return header.next_position == (position + header.length) & _POSITION_MASK
