"""Selection of the printed events of a stream of files: positions, times, ids and GTIDs.

These are the options that both servers' own tools have, with their meaning: a start is looked for
once, in the first file (positions) or over all files (times, offset), and everything behind it
counts; a stop ends the whole stream. The options judge events as they stand in the file; selection
by names is in `name_filter`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GroupTracker
from binlane.positions import Gtid, GtidPosition, GtidSet, MysqlGtid

_ALL_SERVER_IDS: Final = frozenset[int]()
_GTID_TYPES: Final = frozenset(
    {EventType.GTID_LOG, EventType.ANONYMOUS_GTID_LOG, EventType.GTID_TAGGED_LOG}
)
# These events tell how a file is read on, whichever server wrote them.
_GLOBAL_TYPES: Final = frozenset({EventType.FORMAT_DESCRIPTION, EventType.ROTATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class IdList:
    """Server ids or domain ids to print, or not to print.

    Attributes:
        do: Ids of which only events are printed; empty for all.
        ignore: Ids of which no event is printed.
    """

    do: frozenset[int] = _ALL_SERVER_IDS
    ignore: frozenset[int] = _ALL_SERVER_IDS

    def __bool__(self) -> bool:
        return bool(self.do or self.ignore)

    def includes(self, number: int) -> bool:
        """True if events of an id are printed."""
        return number not in self.ignore and (not self.do or number in self.do)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSelection:
    """The selection that a command line's options make; the default is everything.

    Attributes:
        start_position: First byte in the first file, where an event starts; up to 4 the beginning.
        stop_position: Position in the last file: events that start here or later are not printed.
        start_time: Seconds since 1970: printing starts with the first event that is not older.
        stop_time: Seconds since 1970: printing ends before the first event that is not older than
            this.
        offset: Events to pass over at the beginning of the stream.
        server_ids: Ids of the servers that first wrote events.
        server_id_mask: The bits of a header's server id that count (MySQL's `server_id_bits`).
        domain_ids: MariaDB: domain ids of the GTIDs of groups.
        start_gtids: MariaDB: what the reader has already; printing starts behind it in each domain.
        stop_gtids: MariaDB: the last GTID of each domain; other domains are not printed.
        is_gtid_strict: True if sequence numbers that do not grow are an error, with one of these
            two.
        include_gtids: MySQL: only groups with these GTIDs are printed.
        exclude_gtids: MySQL: groups with these GTIDs are not printed.
        skips_gtids: MySQL: the GTIDs themselves are left out.
    """

    start_position: int = 0
    stop_position: int | None = None
    start_time: int = 0
    stop_time: int | None = None
    offset: int = 0
    server_ids: IdList = field(default_factory=IdList)
    server_id_mask: int = 2**32 - 1
    domain_ids: IdList = field(default_factory=IdList)
    start_gtids: GtidPosition = field(default_factory=GtidPosition)
    stop_gtids: GtidPosition = field(default_factory=GtidPosition)
    is_gtid_strict: bool = True
    include_gtids: GtidSet | None = None
    exclude_gtids: GtidSet | None = None
    skips_gtids: bool = False

    @property
    def has_stop(self) -> bool:
        """True if printing is to end before the log does."""
        return self.stop_position is not None or self.stop_time is not None or bool(self.stop_gtids)

    @property
    def is_by_gtid(self) -> bool:
        """True if whole event groups are chosen by their GTID."""
        return bool(
            self.domain_ids
            or self.start_gtids
            or self.stop_gtids
            or self.include_gtids is not None
            or self.exclude_gtids is not None
        )

    @property
    def is_by_id(self) -> bool:
        """True if MariaDB's events are chosen by server id, domain or GTID."""
        return bool(self.server_ids or self.domain_ids or self.start_gtids or self.stop_gtids)

    @property
    def is_everything(self) -> bool:
        """True if no event is left out."""
        return self == EventSelection(is_gtid_strict=self.is_gtid_strict)


class Selector:
    """Judges the events of a stream of files, in order.

    Attributes:
        is_done: True once the stop was reached: nothing that follows is printed.
    """

    def __init__(self, selection: EventSelection) -> None:
        self.is_done = False
        self._selection = selection
        self._is_everything = selection.is_everything
        self._has_started = not (selection.start_time or selection.offset)
        self._count = 0
        self._file = ""
        self._start_position = 0
        self._stop_position: int | None = None
        self._end = 0
        self._groups = _GroupSelector(selection) if selection.is_by_gtid else None

    def begin_file(self, file: str, *, is_first: bool, is_last: bool) -> None:
        """Say that the next event is the first of a file.

        Args:
            file: Name of the file, for errors.
            is_first: True if the start position is in this file.
            is_last: True if the stop position is in this file.
        """
        self._file = file
        self._start_position = self._selection.start_position if is_first else 0
        self._end = 0
        self._stop_position = self._selection.stop_position if is_last else None

    def end_file(self) -> None:
        """Say that the file's last event was given, with which a stop position may be reached.

        Raises:
            CodecError: If the file ends before the start position.
        """
        if self._end < self._start_position:
            raise CodecError(
                f"no event starts at {self._start_position}: the file ends at {self._end}",
                hint="a position is one of the first file; without --start-position all positions are printed",
            ).at(self._file, self._end)
        if self._stop_position is not None and self._end >= self._stop_position:
            self.is_done = True

    def takes(self, event: Event) -> bool:
        """True if the next event of the stream is printed.

        Args:
            event: The event as it stands in the file, not from inside a compressed transaction.

        Raises:
            CodecError: If no event starts at the start position, or if strict GTIDs were asked for
                and a sequence number does not grow.
        """
        if self._is_everything:
            return True
        selection, header = self._selection, event.header
        is_description = header.type_code == EventType.FORMAT_DESCRIPTION
        if event.position < self._start_position:
            self._check_start(event)
            if not is_description:
                return False
        self._end = event.next_position
        self._count += 1
        if not self._has_started:
            is_late = header.timestamp >= selection.start_time
            self._has_started = self._count > selection.offset and is_late and not is_description
            if not (self._has_started or is_description):
                return False
        if self._stops_at(event) or (self._groups is not None and self._groups.is_done):
            self.is_done = True
            return False
        if is_description:
            return True
        is_chosen = self._groups is None or self._groups.takes(event, self._file)
        return is_chosen and self._takes_type(event)

    def _check_start(self, event: Event) -> None:
        self._end = event.next_position
        if event.position < self._start_position < event.next_position:
            raise CodecError(
                f"no event starts at {self._start_position}: {event.header.type_name} stands from "
                f"{event.position} to {event.next_position}",
                hint=f"start at {event.position} or at {event.next_position}",
            ).at(self._file, self._start_position)

    def _takes_type(self, event: Event) -> bool:
        selection, type_code = self._selection, event.header.type_code
        if type_code not in _GLOBAL_TYPES:
            server_id = event.header.server_id & selection.server_id_mask
            if selection.server_ids and not selection.server_ids.includes(server_id):
                return False
        return not selection.skips_gtids or type_code not in (
            *_GTID_TYPES,
            EventType.PREVIOUS_GTIDS_LOG,
        )

    def _stops_at(self, event: Event) -> bool:
        stop_time = self._selection.stop_time
        if stop_time is not None and event.header.timestamp >= stop_time:
            return True
        return self._stop_position is not None and event.position >= self._stop_position


class _GroupSelector:
    """Chooses event groups by their GTID; events of the log itself are all chosen.

    Attributes:
        is_done: True once every domain has come to its stop.
    """

    def __init__(self, selection: EventSelection) -> None:
        self.is_done = False
        self._selection = selection
        # If sequence numbers need not grow, a group to print may always follow.
        self._open_domains = {gtid.domain_id for gtid in selection.stop_gtids}
        self._tracker = GroupTracker()
        self._takes_group = True
        self._last: dict[int, Gtid] = {}

    def takes(self, event: Event, file: str) -> bool:
        place = self._tracker.feed(event)
        if place.is_control:
            return True
        if place.begins:
            if isinstance(place.gtid, Gtid):
                self._check_order(place.gtid, event, file)
            self._takes_group = self._chooses(place.gtid)
        if place.ends and isinstance(place.gtid, Gtid):
            self._close_domain(place.gtid)
        return self._takes_group

    def _close_domain(self, gtid: Gtid) -> None:
        stop = self._selection.stop_gtids.last(gtid.domain_id)
        if stop is not None and gtid.sequence >= stop.sequence:
            self._open_domains.discard(gtid.domain_id)
            self.is_done = self._selection.is_gtid_strict and not self._open_domains

    def _chooses(self, gtid: Gtid | MysqlGtid | None) -> bool:
        selection = self._selection
        if isinstance(gtid, Gtid):
            is_of_domain = selection.domain_ids.includes(gtid.domain_id)
            return selection.include_gtids is None and is_of_domain and self._is_in_window(gtid)
        if selection.domain_ids.do or selection.stop_gtids:
            return False
        # An anonymous group is in no set.
        is_included = selection.include_gtids is None or (
            gtid is not None and gtid in selection.include_gtids
        )
        is_excluded = (
            selection.exclude_gtids is not None
            and gtid is not None
            and gtid in selection.exclude_gtids
        )
        return is_included and not is_excluded

    def _is_in_window(self, gtid: Gtid) -> bool:
        selection = self._selection
        if selection.start_gtids.covers(gtid):
            return False
        return not selection.stop_gtids or selection.stop_gtids.covers(gtid)

    def _check_order(self, gtid: Gtid, event: Event, file: str) -> None:
        selection = self._selection
        last = self._last.get(gtid.domain_id)
        self._last[gtid.domain_id] = gtid
        is_asked = selection.is_gtid_strict and (selection.start_gtids or selection.stop_gtids)
        if is_asked and last is not None and last.sequence >= gtid.sequence:
            raise CodecError(
                f"GTID {gtid} comes after {last}: sequence numbers do not grow",
                hint="give the files in the order of the log; --skip-gtid-strict-mode takes them",
            ).at(file, event.position)
