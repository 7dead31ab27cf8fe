"""Packets of a dump → events with their positions in the server's files.

A dump is a log that a server sends with additions of its own: artificial events say which file and
position come next, and heartbeats that an idle server lives.
"""

from __future__ import annotations

from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, checksum, decode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.types import ChecksumAlgorithm, EventType, HeaderFlag
from binlane.log.grouping.flavors import check_flavor
from binlane.positions import FilePosition

HEARTBEATS: Final = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
"""Types of events that stand in no file."""
_EVENT_MARK: Final = 0x00
_TYPE: Final = 4
_FORMAT_DESCRIPTION: Final = bytes((EventType.FORMAT_DESCRIPTION,))
# A plain int: flags are looked at once an event, and IntFlag computes many times as slowly.
_FILE_BYTES_MAX: Final = (1 << 63) - 1
_ARTIFICIAL: Final = int(HeaderFlag.ARTIFICIAL)
_POSITION_MASK: Final = (1 << 32) - 1


def check_rotate(body: Body) -> None:
    """Check that a ROTATE, if it is one, leads to where a file can have something.

    Raises:
        CodecError: If it does not.
    """
    if isinstance(body, RotateEvent) and body.position > _FILE_BYTES_MAX:
        raise CodecError(f"ROTATE leads to position {body.position}, which no file has")


class PacketEvents:
    """The events of one dump connection.

    Attributes:
        file: The server's file that the last event stands in; empty before the first.
        format_description: The event of that file; None before the first.
    """

    def __init__(self, format_: Format) -> None:
        """Start before the first packet.

        Args:
            format_: The format of events before the first FORMAT_DESCRIPTION, told by the server's
                version and `@master_binlog_checksum`.
        """
        self.file = ""
        self.format_description: FormatDescriptionEvent | None = None
        self._format = format_
        self._next_position = len(MAGIC)

    @property
    def file_position(self) -> FilePosition:
        """The place of the next event in the server's files."""
        return FilePosition(self.file, self._next_position)

    def feed(self, payload: bytes) -> Event:
        """Take one packet; give its event.

        Raises:
            CodecError: With file and position at the server, if the packet holds no event.
        """
        try:
            event = self._event(payload)
        except CodecError as error:
            raise error.at(self.file or "the dump's head", self._next_position) from None
        if event.header.type_code not in HEARTBEATS:
            self._advance(event)
        return event

    def _event(self, payload: bytes) -> Event:
        data = marked_event(payload)
        header = EventHeader.decode(data)
        event = decode_event(data, self._format, position=self._position_of(header))
        check_flavor(header.type_code, self._format)
        check_rotate(event.body)
        return event

    def _position_of(self, header: EventHeader) -> int:
        """Return an event's place: headers say the low 32 bits of its end, or 0 for "next".

        Events in between may have been left out; none stands before the last one.
        """
        if header.type_code == EventType.FORMAT_DESCRIPTION:
            return len(MAGIC)
        if not header.next_position or header.type_code in HEARTBEATS:
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
            self.file = body.file
            self._next_position = body.position
        else:
            self._next_position = event.next_position


def marked_event(payload: bytes) -> bytes:
    """The event in a packet of a dump.

    Raises:
        CodecError: If there is none.
    """
    if payload[:1] != bytes((_EVENT_MARK,)):
        raise CodecError(f"a packet of a dump begins with {payload[:1].hex() or 'nothing'}")
    data = payload[1:]
    return _mended(data) if data[_TYPE : _TYPE + 1] == _FORMAT_DESCRIPTION else data


def _mended(data: bytes) -> bytes:
    """A FORMAT_DESCRIPTION with a checksum that is right.

    One that says that events have none has one all the same, which no server looks at: where
    MariaDB zeroes the creation time for a dump, it leaves that checksum as it was.
    """
    body = FormatDescriptionEvent.decode_whole(memoryview(data)[HEADER_LENGTH:])
    if body.checksum_algorithm != ChecksumAlgorithm.NONE:
        return data
    head = data[:-CHECKSUM_LENGTH]
    return head + checksum(head).to_bytes(CHECKSUM_LENGTH, "little")


def is_artificial(event: Event) -> bool:
    """True if an event was made for the dump, and stands in no file."""
    return bool(event.header.flags & _ARTIFICIAL)
