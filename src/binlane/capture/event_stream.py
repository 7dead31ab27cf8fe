"""Packets of a dump → events with their positions in the source's files → event groups.

A dump is a log that a source sends with additions of its own: artificial events say which file and
position come next, and heartbeats that an idle source lives. A group is held in memory until its
last event has come, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.codec.control import FormatDescriptionEvent, HeartbeatEvent, RotateEvent
from binlane.codec.event import Event, EventHeader, decode_event
from binlane.codec.format import MAGIC, Format
from binlane.codec.transaction import GtidListEvent
from binlane.codec.types import EventType, HeaderFlag
from binlane.errors import CodecError
from binlane.grouping.event_group import EventGroup, Grouper
from binlane.positions import FilePosition, GtidPosition

_EVENT_MARK: Final = 0x00
# A plain int: flags are looked at once an event, and IntFlag computes many times as slowly.
_ARTIFICIAL: Final = int(HeaderFlag.ARTIFICIAL)
_POSITION_MASK: Final = (1 << 32) - 1


class EventStream:
    """The events of one dump connection.

    Attributes:
        position: Every group up to here has been given; None until the source says where the
            dump starts.
        format_description: Of the current file; None before the first.
        has_progressed: Whether a group or a heartbeat came: the dump works.
    """

    def __init__(self, format_: Format, position: GtidPosition | None) -> None:
        """Start before the first packet.

        Args:
            format_: How events before the first FORMAT_DESCRIPTION are written, told by the
                source's version and `@master_binlog_checksum`.
            position: Where the dump was asked to start; None for the beginning of a file, whose
                GTID_LIST then says it.
        """
        self.position = position
        self.format_description: FormatDescriptionEvent | None = None
        self.has_progressed = False
        self._format = format_
        self._file = ""
        self._next_position = len(MAGIC)
        self._grouper = Grouper()

    @property
    def file_position(self) -> FilePosition:
        """Where the next event stands in the source's files."""
        return FilePosition(self._file, self._next_position)

    def feed(self, payload: bytes) -> Iterator[EventGroup]:
        """Take one packet; give the groups that it completes.

        Control groups are those of the files: artificial events and heartbeats are not among them.

        Raises:
            CodecError: With file and position in the source, if the packet holds no event.
        """
        try:
            event = self._event(payload)
        except CodecError as error:
            raise error.at(self._file or "the dump's head", self._next_position) from None
        if isinstance(event.body, HeartbeatEvent):
            self.has_progressed = True
            return
        self._advance(event)
        if event.header.flags & _ARTIFICIAL:
            return
        if isinstance(event.body, GtidListEvent) and self.position is None:
            self.position = event.body.position
        for group in self._grouper.feed(event):
            if group.gtid is not None and group.is_complete:
                self.position = (self.position or GtidPosition()).advance(group.gtid)
                self.has_progressed = True
            yield group

    def _event(self, payload: bytes) -> Event:
        if payload[:1] != bytes((_EVENT_MARK,)):
            raise CodecError(f"a packet of a dump begins with {payload[:1].hex() or 'nothing'}")
        data = memoryview(payload)[1:]
        header = EventHeader.decode(data)
        return decode_event(data, self._format, position=self._position_of(header))

    def _position_of(self, header: EventHeader) -> int:
        """Where an event stands: headers say the low 32 bits of its end, or 0 for "next".

        Events in between may have been left out; none stands before the last one.
        """
        if header.type_code == EventType.FORMAT_DESCRIPTION:
            return len(MAGIC)
        if not header.next_position:
            return self._next_position
        earliest_end = self._next_position
        if not header.flags & _ARTIFICIAL:
            earliest_end += header.length
        left_out = (header.next_position - earliest_end) & _POSITION_MASK
        return earliest_end + left_out - header.length

    def _advance(self, event: Event) -> None:
        body = event.body
        if isinstance(body, FormatDescriptionEvent):
            self.format_description = body
            self._format = body.format
            if not event.header.next_position:
                # The dump begins further on: the ROTATE before this event said where.
                return
        if isinstance(body, RotateEvent) and event.header.flags & _ARTIFICIAL:
            self._file = self._grouper.file = body.file
            self._next_position = body.position
        else:
            self._next_position = event.next_position
