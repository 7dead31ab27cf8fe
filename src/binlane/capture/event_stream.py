"""Packets of a dump → event groups.

A group is held in memory until its last event has come, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from binlane.client.packet_events import PacketEvents, is_artificial
from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.format import Format
from binlane.codec.heartbeat import HeartbeatEvent
from binlane.codec.transaction import GtidListEvent
from binlane.grouping.event_group import EventGroup, Grouper
from binlane.positions import FilePosition, GtidPosition


class EventStream:
    """The event groups of one dump connection.

    Attributes:
        position: Every group up to here has been given; None until the source says where the
            dump starts.
        has_progressed: Whether a group or a heartbeat came: the dump works.
    """

    def __init__(self, format_: Format, position: GtidPosition | None) -> None:
        """Start before the first packet.

        Args:
            format_: As for `PacketEvents`.
            position: Where the dump was asked to start; None for the beginning of a file, whose
                GTID_LIST then says it.
        """
        self.position = position
        self.has_progressed = False
        self._events = PacketEvents(format_)
        self._grouper = Grouper()

    @property
    def format_description(self) -> FormatDescriptionEvent | None:
        """Of the current file; None before the first."""
        return self._events.format_description

    @property
    def file_position(self) -> FilePosition:
        """Where the next event stands in the source's files."""
        return self._events.file_position

    def feed(self, payload: bytes) -> Iterator[EventGroup]:
        """Take one packet; give the groups that it completes.

        Control groups are those of the files: artificial events and heartbeats are not among them.

        Raises:
            CodecError: With file and position in the source, if the packet holds no event.
        """
        event = self._events.feed(payload)
        if isinstance(event.body, HeartbeatEvent):
            self.has_progressed = True
            return
        self._grouper.file = self._events.file
        if is_artificial(event):
            return
        if isinstance(event.body, GtidListEvent) and self.position is None:
            self.position = event.body.position
        for group in self._grouper.feed(event):
            if group.mariadb_gtid is not None and group.is_complete:
                self.position = (self.position or GtidPosition()).advance(group.mariadb_gtid)
                self.has_progressed = True
            yield group
