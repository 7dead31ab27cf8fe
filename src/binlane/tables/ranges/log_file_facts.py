"""Facts about a file of a log that save reading it again.

Facts are about whole event groups only: from `start`, the file's beginning or a group, to `end`,
where a group ends. A survey of a file that grew goes on from there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.rows import TableMapEvent
from binlane.names import TableName
from binlane.positions import Position, nothing_done, parse_position

PIECE_BYTES: Final = 2 << 20
"""Least distance of two cut points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Facts about the part of a file between two cut points.

    Attributes:
        start: Position of the first point, where an event group begins or the file does.
        stop: Position of the second cut point.
        groups: Number of event groups in the part.
        first_timestamp: The least of the groups' times, in seconds since 1970.
        last_timestamp: The greatest of the groups' times, in seconds since 1970.
        gtids: GTIDs of the groups, as a position's text: MariaDB's last of each domain, MySQL's
            set.
        has_anonymous: Whether there are groups without a GTID.
        maps: Numbers of the table maps of its rows; None where nobody knows which.
        least_event_time: The least time of all its events, in seconds since 1970: an event of a
            transaction is older than the group's time, which is that of its end.
        greatest_event_time: The greatest time of all its events, in seconds since 1970.
    """

    start: int
    stop: int
    groups: int = 0
    first_timestamp: int = 0
    last_timestamp: int = 0
    gtids: str = ""
    has_anonymous: bool = False
    maps: tuple[int, ...] | None = ()
    least_event_time: int = 0
    greatest_event_time: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuery:
    """A statement that changes no rows itself.

    Attributes:
        event: The statement's QUERY event, with its position.
        group: Position at which the event group begins.
        stop: Position at which the event group ends.
        gtid: GTID of the group as text; empty if it has none.
    """

    event: Event
    group: int
    stop: int
    gtid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class XaPlace:
    """A group that prepares, or finishes, an XA transaction.

    Attributes:
        xid: The transaction's xid as statements write it.
        start: Position at which the group begins.
        stop: Position at which the group ends.
        is_prepare: Whether the group prepares the transaction; else it commits it or rolls it back.
    """

    xid: str
    start: int
    stop: int
    is_prepare: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFileFacts:
    """Facts about a file, so that it need not be read again.

    Attributes:
        server_id: Id of the server that wrote the file's FORMAT_DESCRIPTION.
        head: The file's bytes up to and with its FORMAT_DESCRIPTION.
        format: The format that the FORMAT_DESCRIPTION gives.
        begin: The position that is done before the start, as text; None where nothing says that.
        start: Position at which the facts begin.
        end: Position at which the facts end.
        check: The last bytes before the end, which tie the facts to the file.
        pieces: Parts without gaps, from `start` to `end`; the last may still grow.
        table_maps: All table maps that differ, in order; their ids are 0.
        queries: Statements that may change tables, in order.
        xa: Places of XA transactions, in order.
        incidents: Positions at which an INCIDENT stands.
        is_cut: Whether an event begins behind the end that is not there to its own end.
        fault: Any other damage behind the end; empty if there is none.
        read_to: The size of the file when it was read to its end, where nothing was cut and no group
            was open; else 0.
    """

    fingerprint: str
    server_id: int
    head: bytes
    format: Format
    begin: str | None
    start: int
    end: int
    check: bytes = b""
    pieces: tuple[FilePiece, ...] = ()
    table_maps: tuple[TableMapEvent, ...] = ()
    queries: tuple[LoggedQuery, ...] = ()
    xa: tuple[XaPlace, ...] = ()
    incidents: tuple[int, ...] = ()
    is_cut: bool = False
    fault: str = ""
    read_to: int = 0

    @property
    def flavor(self) -> str:
        """`mariadb` or `mysql`."""
        return self.format.flavor.value

    def cuts(self, start: int, stop: int) -> Iterator[tuple[FilePiece, int, int]]:
        """The pieces of a range, each with where it begins and ends in it."""
        first = bisect_right(self.pieces, start, key=lambda piece: piece.stop)
        for piece in self.pieces[first:]:
            if piece.start >= stop:
                return
            yield piece, max(piece.start, start), min(piece.stop, stop)

    def tables(self, piece: FilePiece) -> frozenset[TableName] | None:
        """The tables that have rows in a piece; None where nobody knows."""
        if piece.maps is None:
            return None
        maps = (self.table_maps[number] for number in piece.maps)
        return frozenset(table.name for table in maps)

    def done_at(self, position: int) -> Position | None:
        """Return the position that is done at a cut point or behind the end; None where it is not known."""
        found = bisect_right(self.pieces, position, key=lambda piece: piece.stop)
        is_cut = position == self.start or (found and self.pieces[found - 1].stop == position)
        if self.begin is None or not (is_cut or position >= self.end):
            return None
        done: Position = parse_position(self.begin, self.flavor)
        for piece in self.pieces:
            if piece.start >= position:
                break
            done = done.union(parse_position(piece.gtids, self.flavor))
        return done


def no_gtids(format_: Format) -> Position:
    """Nothing done, in a format's flavor."""
    return nothing_done(format_.flavor.value)
