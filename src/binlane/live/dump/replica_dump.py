"""The packets of a dump, one by one: bytes of files in, packets out.

Events of a file are forwarded as they are, only their headers are looked at; those that are larger
than what is read at once pass in parts. Statements with tables info are made plain, for readers that
did not ask for it (`plain_form`). Where nothing is left out that hangs on GTIDs a kernel makes
the packets (`packing`), from the same bytes the same. Made for the dump are
the artificial ROTATE before each file, the FORMAT_DESCRIPTION of the first file (so that a replica
that reconnects keeps its temporary tables), heartbeats, and what tells a replica where it stands
behind groups that it has already: an artificial GTID_LIST for a MariaDB, a heartbeat for a MySQL.
Whoever keeps MySQL's GTIDs gets an empty transaction in the place of each that the binlog leaves out
(`left_out`).

A MariaDB that follows by file and position comes back behind the last event that it has, be it inside
of a statement of several rows events. Before the last of them it takes no other event but heartbeats
(error 1595, "could not queue event from master"), not even what begins a dump: that is sent behind the
statement then. Its relay log so has the whole statement, whose TABLE_MAP it has already.

Source: MariaDB 10.11 sql/sql_repl.cc; packets of MariaDB 10.11.19 (tests/golden/dump). MySQL 9.7
sql/rpl_binlog_sender.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct
from typing import Final

from binlane.errors import CodecError, StatementError
from binlane.live.dump.left_out import NOTED, OmissionPlace, OmittedTransactions, empty_transactions
from binlane.live.dump.packing import SLICE_BYTES, Packer
from binlane.live.dump.plain_form import LENGTH_MAX, QUERIES, plain_event
from binlane.live.dump.request import ReplicaRequest
from binlane.live.dump.skipping import skipper_for
from binlane.live.dump.start import FileBeginning
from binlane.log.codec.body import Body
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, encode_event
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.heartbeat import HeartbeatEvent, HeartbeatV2Event
from binlane.log.codec.packets.framing import FRAME_PAYLOAD_MAX, frame, frame_count
from binlane.log.codec.packets.replies import EofPacket, error_packet
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import ROWS_TYPES, EventType, HeaderFlag
from binlane.log.grouping.event_group import GTID_TYPES
from binlane.positions import GtidPosition, GtidSet, Position

BEGINNING: Final = len(MAGIC)
"""Position of the first event of a file."""

NOWHERE: Final = "waiting.000000"
"""The file that a replica shows while it waits, if it asked for none."""

_POSITION_MASK: Final = 0xFFFFFFFF
_MADE_AT_ONCE: Final = 500
"""Empty transactions whose packets are made at once, some milliseconds' work."""
_LENGTH: Final = Struct("<I")
_LENGTH_OFFSET: Final = 9
_TYPE_OFFSET: Final = 4
# The frame's length and sequence number make one word; the status byte of an event packet follows.
_PACKET_HEAD: Final = Struct("<IB")
_SEQUENCE_SHIFT: Final = 24

_TYPES: Final[dict[type[Body], EventType]] = {
    RotateEvent: EventType.ROTATE,
    HeartbeatEvent: EventType.HEARTBEAT,
    HeartbeatV2Event: EventType.HEARTBEAT_V2,
    GtidListEvent: EventType.GTID_LIST,
}


# They stand between event groups, or begin one.
_BOUNDARIES: Final = GTID_TYPES | {EventType.ROTATE, EventType.STOP, EventType.FORMAT_DESCRIPTION}


class ReplicaDump:
    """One dump: the packets of the reply to COM_BINLOG_DUMP.

    Attributes:
        file: Base name of the file that it stands in.
        position: The beginning of the next event, in bytes.
        has_ended: True if `feed` came to where it was to end.
        needed_bytes: The length of the event at `position`, where `feed` has to have it whole.
    """

    def __init__(self, request: ReplicaRequest, *, sequence: int = 1) -> None:
        self._request = request
        self._sequence = sequence
        done = request.connect_state
        self._skipper = None if done is None else skipper_for(done)
        self._left_out = None
        if request.keeps_gtids and isinstance(done, GtidSet):
            self._left_out = OmittedTransactions(done)
        self._format: Format | None = None
        self._server_id = 0
        self._is_first_file = True
        self.file = ""
        self.position = BEGINNING
        self.has_ended = False
        self.needed_bytes = 0
        self._makes_plain = False
        # Of the file that the replica came back to inside of a statement, until that is over.
        self._inside: FileBeginning | None = None
        # Of an event that passes in parts:
        self._passing_bytes = self._frame_bytes = 0
        self._is_last_frame = True

    def wait(self) -> bytes:
        """Say that the source lives, as long as it is not known what may be sent.

        It tells nothing but what the replica asked for: its own file and position, or none.

        Returns:
            An artificial ROTATE, then heartbeats.
        """
        if self.file:
            return self.heartbeat()
        request = self._request
        self.file, self.position = request.file or NOWHERE, request.position
        if not request.file:
            self.position = BEGINNING
        self._format = Format(
            server_version="",
            flavor=request.flavor,
            checksum=request.checksum,
            post_header_lengths=b"",
        )
        rotate = RotateEvent(position=self.position, file=self.file)
        return self._made(rotate, is_artificial=True)

    def open_file(
        self,
        head: FileBeginning,
        *,
        position: int = BEGINNING,
        after: Position | None = None,
        inside_statement: bool = False,
    ) -> bytes:
        """Begin a file: an artificial ROTATE and its FORMAT_DESCRIPTION.

        Args:
            head: The first events of the file.
            position: The place to start in it, in bytes; an event begins there.
            after: For the first file by GTID: the position where the log begins of which the
                replica has all that stands before this file; None for the beginning of this file.
            inside_statement: A rows event begins at `position`.

        Returns:
            Packets; none where `feed` sends them behind the statement. `position` is behind the FORMAT_DESCRIPTION, or where it was asked to start.
        """
        first = head.format_description
        self.file, self._server_id = head.file, first.header.server_id
        self.position = first.next_position if position == BEGINNING else position
        if inside_statement and self._can_go_on_inside(head):
            self._inside, self._format = head, head.format
            return b""
        if self._skipper is not None:
            self._skipper.enter(head.done, head.format)
        if self._left_out is not None:
            self._left_out.enter(head.done if after is None else after, head.format)
        if self._is_first_file:
            # The checksum that the replica asked for holds until it has a FORMAT_DESCRIPTION.
            self._format = replace(head.format, checksum=self._request.checksum)
        rotate = self._made(RotateEvent(position=position, file=head.file), is_artificial=True)
        self._format = head.format
        self._makes_plain = head.format.has_tables_info and not self._request.wants_tables_info
        format_description = encode_event(self._format_description(first, position), None)
        self._is_first_file = False
        return rotate + self._packet(format_description)

    def begin_with(
        self, done: Position, known: Position, head: FileBeginning | None = None
    ) -> None:
        """Know what the replica has, before anything of the log was sent.

        Args:
            done: All that is not to be sent to it, which may be more than it says it has.
            known: What it gets no empty transactions for, where it keeps GTIDs.
            head: The first events of the file that is open; None before one is.
        """
        self._skipper = skipper_for(done)
        if self._left_out is not None and isinstance(known, GtidSet):
            self._left_out = OmittedTransactions(known)
        if head is not None:
            self._skipper.enter(head.done, head.format)
            if self._left_out is not None:
                self._left_out.enter(head.done, head.format)

    def leave_out(self, done: Position) -> None:
        """Leave out more than the replica said it has, from the file on that is opened next."""
        if self._skipper is None:
            self._skipper = skipper_for(done)
        else:
            self._skipper.add(done)

    def _can_go_on_inside(self, head: FileBeginning) -> bool:
        # Without a FORMAT_DESCRIPTION a replica takes checksums to be as it asked for them.
        has_checksums = head.format.checksum == self._request.checksum
        return self._request.goes_on_anywhere and has_checksums

    def skip_to(self, position: int, done: Position) -> None:
        """Go on at another position of the file; the replica has all groups before it.

        Args:
            position: The beginning of a group or the file's end, in bytes, ahead of `position`.
            done: Everything before it is done at this GTID position.
        """
        assert self._skipper is not None, "the replica asked by GTID"
        self._skipper.skip_to(done)
        self.position = position

    @property
    def is_inside_event(self) -> bool:
        """True if a part of an event was sent: nothing else may stand before the rest of it."""
        return bool(self._passing_bytes)

    @property
    def tells_left_out(self) -> bool:
        """True if `left_out` has something to give, now or later."""
        return self._left_out is not None

    @property
    def can_be_packed(self) -> bool:
        """True if the next bytes may be packed: nothing is left out but what has its own type."""
        is_plain = self._inside is None and not self._passing_bytes
        return is_plain and (self._skipper is None or self._skipper.is_done)

    def pack(self, packer: Packer, size: int) -> memoryview:
        """Forward whole events of the file, as `feed` does, from a packer's room; no large ones.

        Args:
            packer: Has bytes of the file from `position` on.
            size: The number of bytes. Where nothing moves on, `feed` says why.

        Returns:
            Packets, valid until the packer is used again.
        """
        if self._makes_plain:
            self._make_plain(packer.room, size)
        left_out = None if self._request.wants_annotate else EventType.ANNOTATE_ROWS
        packed = packer.pack(size, self._sequence, left_out=left_out)
        if self._left_out is not None:
            self._left_out.note_all(packer.bytes, packed.marks)
        self.position += packed.size
        self._sequence = packed.number
        return packed.packets

    def feed(self, data: bytes, *, size_bytes: int | None = None, ends: bool = False) -> bytes:
        """Forward the whole events that bytes of the file hold, and parts of a large one.

        Args:
            data: Bytes of the file from `position` on. What is left behind the last whole event is
                not kept: the next call begins with it, and has at least a slice, or all there is.
            size_bytes: The number of all bytes from `position` on, where that is known.
            ends: Forward what is left of the event group at hand, and no other: a replica that
                is cut off inside of one may not be able to go on there.

        Returns:
            Packets; empty if nothing is to be sent.

        Raises:
            CodecError: If an event is shorter than its own header, or ends behind the last byte.
        """
        if self._passing_bytes:
            return self._pass(data)
        start, offset, size = self.position, 0, len(data)
        parts: list[bytes | memoryview] = []
        self.needed_bytes = 0
        view = memoryview(data)
        is_done = self._inside is None and (self._skipper is None or self._skipper.is_done)
        sends_all, notes = is_done and self._request.wants_annotate, self._left_out
        while size - offset >= HEADER_LENGTH:
            (length,) = _LENGTH.unpack_from(data, offset + _LENGTH_OFFSET)
            self.position = start + offset
            self._check_length(length, None if size_bytes is None else size_bytes - offset)
            if ends and data[offset + _TYPE_OFFSET] in _BOUNDARIES:
                self.has_ended = True
                break
            is_whole = length <= size - offset
            is_changed = self._makes_plain and data[offset + _TYPE_OFFSET] in QUERIES
            if not is_whole and (is_changed or length <= SLICE_BYTES):
                if is_changed and length > LENGTH_MAX:
                    text = f"a statement with tables info says it is {length} bytes long"
                    raise CodecError(text).at(self.file, self.position)
                self.needed_bytes = length if is_changed else 0
                break
            is_sent = sends_all or self._is_sent(data, offset, parts)
            if is_sent and notes is not None and data[offset + _TYPE_OFFSET] in NOTED:
                notes.note(data[offset + _TYPE_OFFSET], data, offset)
            if is_sent and not is_whole:
                parts.append(self._begin_to_pass(length, data[offset:]))
                offset = size
                break
            if is_sent and is_changed:
                self._append(parts, self._plain(data[offset : offset + length], self.position))
            elif is_sent:
                self._append(parts, view[offset : offset + length])
            offset += length
        self.position = start + offset
        return b"".join(parts)

    def _check_length(self, length: int, left: int | None) -> None:
        if length < HEADER_LENGTH:
            text = f"an event says it is {length} bytes long"
        elif left is not None and length > left:
            text = "the log ends inside an event"
        else:
            return
        raise CodecError(text).at(self.file, self.position)

    def _begin_to_pass(self, length: int, data: bytes) -> bytes:
        """The beginning of an event's packet."""
        self._passing_bytes = length
        head = self._next_frame(length + 1)
        self._frame_bytes -= 1  # the status byte
        return head + b"\0" + self._passed(data)

    def _next_frame(self, size: int) -> bytes:
        """The head of a frame, of a packet of which `size` bytes are left."""
        self._frame_bytes = min(size, FRAME_PAYLOAD_MAX)
        # One of the greatest size has another one behind it, if only an empty one.
        self._is_last_frame = size < FRAME_PAYLOAD_MAX
        head = _LENGTH.pack(self._frame_bytes | self._sequence << _SEQUENCE_SHIFT)
        self._sequence = (self._sequence + 1) & 0xFF
        return head

    def _pass(self, data: bytes) -> bytes:
        """Forward a part of an event; no bytes behind it."""
        data = data[: self._passing_bytes]
        self.position += len(data)
        return self._passed(data)

    def _passed(self, data: bytes) -> bytes:
        """Some bytes of an event in as many frames as they need."""
        parts, offset = [], 0
        while True:
            step = min(self._frame_bytes, len(data) - offset)
            parts.append(data[offset : offset + step])
            offset += step
            self._passing_bytes -= step
            self._frame_bytes -= step
            if self._frame_bytes or self._is_last_frame:
                return b"".join(parts)
            parts.append(self._next_frame(self._passing_bytes))

    def position_after_skipped(self) -> bytes:
        """Say where the replica stands, once after groups that were left out.

        Due before the next group, and before waiting at the end of the log.
        """
        if self._skipper is None or not self._skipper.owes_position:
            return b""
        self._skipper.owes_position = False
        if not isinstance(self._skipper.passed, GtidPosition):
            return self.heartbeat()
        body = GtidListEvent.of(self._skipper.passed)
        return self._made(body, next_position=self.position, is_artificial=True)

    def left_out(self, done: Position, *, timestamp: int) -> Iterator[bytes]:
        """Empty transactions in the place of those left out, of which nothing stands behind here.

        Due between two groups, wherever it is known what is done; all of it is to be sent. Behind
        them the replica is told where it stands, since it has counted their bytes.

        Args:
            done: The position up to this place.
            timestamp: The time of their commit, in seconds since 1970.

        Returns:
            Packets of whole transactions.
        """
        if self._left_out is None or not (left := self._left_out.reach(done)):
            return
        assert self._format is not None, "a file was opened"
        place = OmissionPlace(
            position=self.position,
            server_id=self._server_id,
            timestamp=timestamp,
            format=self._format,
        )
        parts: list[bytes | memoryview] = []
        for events in empty_transactions(left, place):
            for event in events:
                self._append(parts, memoryview(event))
            if len(parts) >= 2 * len(events) * _MADE_AT_ONCE:
                yield b"".join(parts)
                parts = []
        rotate = RotateEvent(position=self.position, file=self.file)
        yield b"".join((*parts, self._made(rotate, is_artificial=True)))

    def heartbeat(self) -> bytes:
        """Say that the source lives, and how far the replica is."""
        if self._request.wants_heartbeat_v2:
            body = HeartbeatV2Event(file=self.file, position=self.position)
            return self._made(body, next_position=self.position)
        return self._made(HeartbeatEvent(file=self.file), next_position=self.position)

    def end(self) -> bytes:
        """The end of a dump that does not wait."""
        return frame(EofPacket().encode(), self._sequence)

    def error(self, error: StatementError) -> bytes:
        """The end of a dump that cannot go on."""
        return frame(error_packet(error), self._sequence)

    def _is_sent(self, data: bytes, offset: int, parts: list[bytes | memoryview]) -> bool:
        """True if the event at `offset` is sent; packets that have to stand before it go into `parts`."""
        type_code = data[offset + _TYPE_OFFSET]
        if self._inside is not None and type_code not in ROWS_TYPES:
            head, self._inside = self._inside, None
            parts.append(self.open_file(head, position=self.position))
        if self._skipper is not None and self._skipper.leaves_out(type_code, data, offset):
            return False
        if type_code in GTID_TYPES:
            parts.append(self.position_after_skipped())
        return type_code != EventType.ANNOTATE_ROWS or self._request.wants_annotate

    def _make_plain(self, room: memoryview, size: int) -> None:
        """Give the statements among whole events the form that all programs read, in their place."""
        offset = 0
        while size - offset >= HEADER_LENGTH:
            (length,) = _LENGTH.unpack_from(room, offset + _LENGTH_OFFSET)
            end = offset + length
            if length < HEADER_LENGTH or end > size:
                return
            if room[offset + _TYPE_OFFSET] in QUERIES:
                event = bytes(room[offset:end])
                room[offset:end] = self._plain(event, self.position + offset)
            offset = end

    def _plain(self, event: bytes, position: int) -> bytes:
        """A statement in the form that all programs read.

        Raises:
            CodecError: If it is damaged.
        """
        assert self._format is not None, "a file was opened"
        try:
            return plain_event(event, self._format)
        except CodecError as error:
            raise error.at(self.file, position) from None

    def _append(self, parts: list[bytes | memoryview], event: bytes | memoryview) -> None:
        length = len(event) + 1
        if length >= FRAME_PAYLOAD_MAX:
            parts.append(self._packet(bytes(event)))
            return
        parts.append(_PACKET_HEAD.pack(length | self._sequence << _SEQUENCE_SHIFT, 0))
        parts.append(event)
        self._sequence = (self._sequence + 1) & 0xFF

    def _packet(self, event: bytes) -> bytes:
        data = frame(b"\0" + event, self._sequence)
        self._sequence = (self._sequence + frame_count(len(event) + 1)) & 0xFF
        return data

    def _made(self, body: Body, *, next_position: int = 0, is_artificial: bool = False) -> bytes:
        header = EventHeader(
            timestamp=0,
            type_code=_TYPES[type(body)],
            server_id=self._server_id,
            length=0,
            next_position=next_position & _POSITION_MASK,
            flags=HeaderFlag.ARTIFICIAL if is_artificial else 0,
        )
        return self._packet(encode_event(Event(header, body), self._format))

    def _format_description(self, event: Event, position: int) -> Event:
        """The file's own, as closed; one that a replica comes back to has no creation time."""
        header, body = event.header, event.body
        assert isinstance(body, FormatDescriptionEvent), "FileHead.decode saw to it"
        if self._makes_plain:
            body = body.with_tables_info(has_tables_info=False)
        header = replace(header, flags=header.flags & ~HeaderFlag.BINLOG_IN_USE)
        if position != BEGINNING:
            header, body = replace(header, next_position=0), replace(body, created=0)
        elif self._is_first_file and self._skipper is not None and not self._skipper.is_done:
            # It has a part of the file, and so has been told already that its server was started.
            body = replace(body, created=0)
        return Event(header, body)
