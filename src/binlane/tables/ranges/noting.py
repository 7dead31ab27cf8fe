"""Notes of a survey about event groups: pieces between cut points, and the events of interest in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from binlane.log.codec.control import IncidentEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.positions import AnyGtid, Position, parse_position
from binlane.statements.sql.logged_statements import is_about_rows_only
from binlane.tables.ranges.log_file_facts import (
    PIECE_BYTES,
    FilePiece,
    LogFileFacts,
    LoggedQuery,
    XaPlace,
    no_gtids,
)

_NO_TIME: Final = 1 << 62


@dataclass(slots=True, kw_only=True)
class GroupNotes:
    """Notes about one event group beside its rows.

    Attributes:
        start: Position at which the group begins.
        stop: Position at which the group ends.
        gtid: GTID of the group as text; empty if it has none.
        is_undone: Whether the group's statement has no effect.
        events: The group's statements, XA_PREPARE, INCIDENT and TRANSACTION_PAYLOAD events, in
            order.
    """

    start: int
    stop: int = 0
    gtid: str = ""
    is_undone: bool = False
    events: list[Event] = field(default_factory=list)


class Notes:
    """Facts that grow.

    Args:
        facts: The facts that are known so far.
        piece_bytes: Least distance of two cut points.
    """

    def __init__(self, facts: LogFileFacts, *, piece_bytes: int = PIECE_BYTES) -> None:
        self._facts = facts
        self._piece_bytes = piece_bytes
        self._pieces = list(facts.pieces)
        self._tables = list(facts.table_maps)
        self._numbers = {table: number for number, table in enumerate(self._tables)}
        self._queries = list(facts.queries)
        self._xa = list(facts.xa)
        self._incidents = list(facts.incidents)
        self._open(facts.end if facts.pieces else facts.start)
        self.end = facts.end
        if self._pieces and self._is_small(self._pieces[-1]):
            self._reopen(self._pieces.pop())

    def _open(self, start: int) -> None:
        self._start = self.end = start
        self._groups = 0
        self._first_timestamp, self._last_timestamp = _NO_TIME, 0
        self.gtids: Position = no_gtids(self._facts.format)
        self._has_anonymous = False
        self._maps: set[int] | None = set()
        self._least_time, self._greatest_time = _NO_TIME, 0

    def _reopen(self, piece: FilePiece) -> None:
        self._open(piece.start)
        self.end = piece.stop
        self._groups = piece.groups
        if piece.groups:
            self._first_timestamp = piece.first_timestamp
            self._last_timestamp = piece.last_timestamp
            self.take_times(piece.least_event_time, piece.greatest_event_time)
        self.gtids = parse_position(piece.gtids, self._facts.flavor)
        self._has_anonymous = piece.has_anonymous
        self._maps = None if piece.maps is None else set(piece.maps)

    def _is_small(self, piece: FilePiece) -> bool:
        return piece.stop - piece.start < self._piece_bytes

    @property
    def cut_due(self) -> int:
        """Position from which on a group's end is a cut point."""
        return self._start + self._piece_bytes

    def number_of(self, table_map: TableMapEvent) -> int:
        """The number of a table map, whatever its id."""
        table = replace(table_map, table_id=0, has_short_id=False)
        number = self._numbers.get(table)
        if number is None:
            number = self._numbers[table] = len(self._tables)
            self._tables.append(table)
        return number

    def add(
        self,
        *,
        stop: int,
        groups: int,
        first_timestamp: int,
        last_timestamp: int,
        maps: Iterable[int] | None,
        has_anonymous: bool,
    ) -> None:
        """Note a run of groups, which lie before one cut point; `gtids` is for the caller to set."""
        self.end = stop
        self._groups += groups
        self._first_timestamp = min(self._first_timestamp, first_timestamp)
        self._last_timestamp = max(self._last_timestamp, last_timestamp)
        self._has_anonymous |= has_anonymous
        if maps is None:
            self._maps = None
        elif self._maps is not None:
            self._maps.update(maps)
        if stop >= self.cut_due:
            self._pieces.append(self._piece())
            self._open(stop)

    def take_gtid(self, gtid: AnyGtid) -> None:
        """Note the GTID of a group, before the group is added."""
        self.gtids = self.gtids.advance(gtid)

    def take_times(self, least: int, greatest: int) -> None:
        """Note the least and greatest time of events of groups, before the groups are added."""
        self._least_time = min(self._least_time, least)
        self._greatest_time = max(self._greatest_time, greatest)

    def take_special(self, group: GroupNotes) -> None:
        """Note what stands in a complete group beside rows."""
        for event in group.events:
            if isinstance(event.body, IncidentEvent):
                self._incidents.append(event.position)
            prepared = prepared_in(event, self._facts.format)
            xid = prepared or finished_by(event)
            if xid is not None:
                is_prepare = prepared is not None
                place = XaPlace(xid=xid, start=group.start, stop=group.stop, is_prepare=is_prepare)
                self._xa.append(place)
            elif (
                isinstance(event.body, QueryEvent)
                and not group.is_undone
                and not is_about_rows_only(event.body.query)
            ):
                self._queries.append(
                    LoggedQuery(event=event, group=group.start, stop=group.stop, gtid=group.gtid)
                )

    def facts(self, *, check: bytes, is_cut: bool, fault: str, read_to: int) -> LogFileFacts:
        """All that is known by now.

        Args:
            check: The last bytes before the end.
            is_cut: Value of `LogFileFacts.is_cut` at the end.
            fault: Value of `LogFileFacts.fault` at the end.
            read_to: Value of `LogFileFacts.read_to` at the end.
        """
        pieces = self._pieces
        if self.end > self._start:
            pieces = [*pieces, self._piece()]
        return replace(
            self._facts,
            end=self.end,
            check=check,
            pieces=tuple(pieces),
            table_maps=tuple(self._tables),
            queries=tuple(self._queries),
            xa=tuple(self._xa),
            incidents=tuple(self._incidents),
            is_cut=is_cut,
            fault=fault,
            read_to=read_to,
        )

    def _piece(self) -> FilePiece:
        return FilePiece(
            start=self._start,
            stop=self.end,
            groups=self._groups,
            first_timestamp=self._first_timestamp if self._groups else 0,
            last_timestamp=self._last_timestamp,
            gtids=str(self.gtids),
            has_anonymous=self._has_anonymous,
            maps=None if self._maps is None else tuple(sorted(self._maps)),
            least_event_time=0 if self._least_time == _NO_TIME else self._least_time,
            greatest_event_time=self._greatest_time,
        )
