"""A source's packets → event groups, event by event: the reference, and the way without kernels.

A group is held in memory until its last event has come, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.client.dialogue import refusal
from binlane.client.packet_events import HEARTBEATS, PacketEvents, is_artificial
from binlane.errors import CodecError, PeerError
from binlane.live.capture.order import passed
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.framing import PacketSplitter
from binlane.log.codec.packets.replies import is_eof, is_error
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.grouping.event_group import CONTROL_TYPES, EventGroup, Grouper
from binlane.log.grouping.fragment_joining import Fragments
from binlane.positions import FilePosition, Position

_CAME_BYTES: Final = 1 << 19


class EventStream:
    """The event groups of one dump connection.

    Attributes:
        position: Every group up to here has been given; None until the source says where the
            dump starts.
        first_position: The position where the dump starts.
        created: The time when the current file was begun, in seconds since 1970; 0 as long as it
            did not say so.
        has_progressed: True if a group or a heartbeat came: the dump works.
        has_ended: True if the source ended the dump without an error.
    """

    def __init__(self, format_: Format, position: Position | None, *, peer: str) -> None:
        """Start before the first packet that answers the command.

        Args:
            format_: The format of events, given to `PacketEvents`.
            position: The position where the dump was asked to start; None for the beginning of a
                file, which then says it.
            peer: The source's address, for messages.
        """
        self.position = self.first_position = position
        self.created = 0
        self.has_progressed = False
        self.has_ended = False
        self._peer = peer
        self._events = PacketEvents(format_)
        self._grouper = Grouper()
        self._fragments = Fragments()
        self._splitter = PacketSplitter()
        self._sequence = 1
        self._came = bytearray(_CAME_BYTES)
        self._next_position = 4

    @property
    def format_description(self) -> FormatDescriptionEvent | None:
        """The FORMAT_DESCRIPTION of the current file; None before the first."""
        return self._events.format_description

    @property
    def file_position(self) -> FilePosition:
        """The place where the group behind the given ones begins in the source's files."""
        return FilePosition(self._events.file, self._next_position)

    @property
    def room(self) -> memoryview:
        """The memory for the next bytes of the source."""
        return memoryview(self._came)

    def feed(self, count: int, *, has_more: bool) -> Iterator[EventGroup]:
        """As `RawStream.feed`."""
        del has_more
        try:
            packets = self._splitter.feed(bytes(self._came[:count]))
        except CodecError as error:
            raise PeerError(error.message, peer=self._peer, phase="dump", hint=error.hint) from None
        for packet in packets:
            if packet.sequence != self._sequence:
                raise PeerError(
                    f"packet {packet.sequence} came where packet {self._sequence} is expected",
                    peer=self._peer,
                    phase="dump",
                )
            self._sequence = packet.next_sequence
            yield from self.take(packet.payload)

    def close(self) -> None:
        """Nothing was put aside."""

    def take(self, payload: bytes) -> Iterator[EventGroup]:
        """Take one packet; give the groups that it completes.

        Raises:
            CodecError: With file and position in the source, if the packet holds no event.
            PeerError: If the source ends the dump with an error, or its GTIDs are out of order.
        """
        if is_error(payload):
            raise refusal(payload, peer=self._peer, phase="dump")
        if is_eof(payload):
            self.has_ended = True
            return
        event = self._events.feed(payload)
        if event.header.type_code in HEARTBEATS:
            self.has_progressed = True
            return
        if is_artificial(event):
            yield from self._turn(event)
            return
        if isinstance(event.body, FormatDescriptionEvent):
            self.created = event.header.timestamp
        if isinstance(event.body, GtidListEvent | PreviousGtidsEvent) and self.position is None:
            self.position = self.first_position = event.body.position
        try:
            event = self._fragments.feed(event)
        except CodecError as error:
            raise error.at(self._events.file, event.position) from None
        for group in self._grouper.feed(event):
            yield from self._given(group)

    def _turn(self, event: Event) -> Iterator[EventGroup]:
        """Take an event that was made for the dump: it may say which file comes."""
        if isinstance(event.body, RotateEvent):
            yield from self._grouper.finish()
            if event.body.file != self._grouper.file:
                self.created = 0
            self._next_position = event.body.position
        self._grouper.file = self._events.file

    def _given(self, group: EventGroup) -> Iterator[EventGroup]:
        is_description = isinstance(group.events[0].body, FormatDescriptionEvent)
        if group.is_complete:
            if group.gtid is not None:
                self.position = passed(
                    self.position, group.gtid, at=self.file_position, peer=self._peer
                )
                self.has_progressed = True
            self._next_position = self._events.file_position.position
        if is_description or group.events[0].header.type_code not in CONTROL_TYPES:
            yield group
