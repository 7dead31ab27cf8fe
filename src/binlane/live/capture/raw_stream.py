"""A source's bytes → runs of event groups as bytes, by kernels; without a socket.

The network's bytes are unpacked into a window of the source's file, in which the kernel `scan`
finds the groups. Whatever is no plain event, such as the source's word on its files, is looked at
here, and so is a group that the kernels were not made for: it comes decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from binlane.client.dialogue import refusal
from binlane.client.packet_events import HEARTBEATS, check_rotate, marked_event
from binlane.errors import CodecError, PeerError, TruncatedError, UnsupportedError
from binlane.live.capture.order import disorder, passed, unknown_start
from binlane.live.capture.spill import Spill, Spilled
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH
from binlane.log.codec.packets.replies import is_eof, is_error
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import (
    CONTROL_TYPES,
    EventGroup,
    Grouper,
    group_events,
    gtid_of,
)
from binlane.log.grouping.flavors import check_flavor
from binlane.log.grouping.fragment_joining import Fragments
from binlane.log.grouping.raw import Item, LargeGroup, RawRun
from binlane.log.grouping.scanner import Scanner, is_fast
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PADDING, PIECE_BYTES, Buffer, padded
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.log.kernels.packet_layout import (
    EVENT_LEFT,
    FRAME_MAX,
    PACKET_AT,
    PACKET_STATE_SIZE,
    SEQUENCE,
    UNPACK_DAMAGED,
    UNPACK_FULL,
    UNPACK_GAP,
    UNPACK_MORE,
    UNPACK_OTHER,
    WINDOW_BASE,
    WINDOW_END,
)
from binlane.positions import AnyGtid, FilePosition, Position

HELD_BYTES_MAX: Final = 32 << 20
"""Largest size of a group from a source that is held; a larger one is spilled."""
WINDOW_BYTES: Final = 4 << 20
TABLES_MAX = 4096
"""Table maps that are remembered over the source's files; with more a file begins with none."""
_CAME_BYTES: Final = 1 << 19
_POSITION_MASK: Final = (1 << 32) - 1


class _Packets:
    """The bytes that the source sent, from which a kernel takes plain events into the window.

    Attributes:
        came: The bytes, with padding for kernels behind them.
        end: The number of bytes that came.
        state: The kernel's state, by the names of `log/kernels/packets`.
    """

    def __init__(self) -> None:
        self.came = padded(_CAME_BYTES)
        self.end = 0
        self.state = np.zeros(PACKET_STATE_SIZE, np.int64)
        self.state[SEQUENCE] = 1

    @property
    def room(self) -> memoryview:
        """The memory for the next bytes."""
        return self.came.data[self.end : self.came.shape[0] - PADDING]

    @property
    def at(self) -> int:
        """Start of the packet at hand."""
        return int(self.state[PACKET_AT])

    def unpack(self, window: Buffer) -> int:
        """Take plain events into the window; gives the kernel's status."""
        state = self.state
        state[WINDOW_END], state[WINDOW_BASE] = window.end, window.base
        status = int(kernels().unpack(self.came, self.end, state, window.data, window.room))
        window.end = int(state[WINDOW_END])
        return status

    def keep_rest(self) -> None:
        """Move what is left of the bytes to the front."""
        at = self.at
        left = self.end - at
        if left and at:
            view = self.came.data
            view[:left] = view[at : self.end]
        if self.came.shape[0] - PADDING - left < _CAME_BYTES // 2:
            larger = padded(2 * self.came.shape[0])
            larger[:left] = self.came[:left]
            self.came = larger
        elif left == 0 and self.came.shape[0] > _CAME_BYTES + PADDING:
            self.came = padded(_CAME_BYTES)
        self.state[PACKET_AT], self.end = 0, left

    def payload(self, peer: str) -> bytes | None:
        """The packet that is no plain event; None as long as its end has not come.

        Raises:
            PeerError: If it is too large for an event.
        """
        at = self.at
        length = int.from_bytes(self.came[at : at + 3].tobytes(), "little")
        if length >= FRAME_MAX:
            raise PeerError(
                f"a packet of {FRAME_MAX} bytes or more holds no event of the log",
                peer=peer,
                phase="dump",
            )
        start = at + FRAME_HEADER_LENGTH
        if start + length > self.end:
            return None
        self.state[PACKET_AT] = start + length
        self.state[SEQUENCE] = (int(self.state[SEQUENCE]) + 1) & 0xFF
        return self.came[start : start + length].tobytes()


class _Aside(NamedTuple):
    """A group that is put aside."""

    spilled: Spilled
    large: LargeGroup


class RawStream:
    """The groups of one dump connection, as bytes.

    Attributes:
        position: Every group up to here was given; None until the source says where it starts.
        first_position: The position where the dump starts.
        format_description: The event of the source's current file; None before the first.
        created: The time when that file was begun, in seconds since 1970; 0 as long as it did not
            say so.
        has_progressed: True if a group or a heartbeat came: the dump works.
        has_ended: True if the source ended the dump without an error.
    """

    def __init__(  # what a dump is, and its limits
        self,
        format_: Format,
        position: Position | None,
        *,
        peer: str,
        spill: Spill,
        held_bytes_max: int = HELD_BYTES_MAX,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        """Start before the first packet that answers the command.

        Args:
            format_: The format of events before the first FORMAT_DESCRIPTION, told by the server's
                version and `@master_binlog_checksum`.
            position: The position where the dump was asked to start; None for the beginning of a
                file, which then says it.
            peer: The source's address, for messages.
            spill: The store where a large group is put aside.
            held_bytes_max: The largest size of a group that is held; a larger one is put aside.
            window_bytes: The approximate number of bytes in one run.
        """
        self.position = self.first_position = position
        self.format_description: FormatDescriptionEvent | None = None
        self.created = 0
        self.has_progressed = False
        self.has_ended = False
        self._peer = peer
        self._spill = spill
        self._held_bytes_max = held_bytes_max
        self._file = ""
        self._next_position = len(MAGIC)
        self._format = format_
        self._packets = _Packets()
        self._window = Buffer(size_bytes=window_bytes, base=len(MAGIC))
        self._scanner: Scanner | None = None
        self._reference: _Reference | None = None
        self._aside: _Aside | None = None

    @property
    def file_position(self) -> FilePosition:
        """The place where the group behind the given ones begins in the source's files."""
        return FilePosition(self._file, self._next_position)

    @property
    def room(self) -> memoryview:
        """The memory for the next bytes of the source."""
        return self._packets.room

    def feed(self, count: int, *, has_more: bool) -> Iterator[Item]:
        """Take bytes that were put into `room`; give what they complete.

        Args:
            count: The number of bytes in `room`.
            has_more: True if more will follow at once: runs then grow.

        Yields:
            FORMAT_DESCRIPTIONs as control groups, and whole groups. Runs and large groups are good
            until the next item is asked for. A group that its source's crash cut off is marked as
            not complete.

        Raises:
            CodecError: With file and position in the source, if something is damaged.
            PeerError: If the source breaks the protocol, or its GTIDs are out of order.
            StoreError: If a large group cannot be put aside.
        """
        self._packets.end += count
        while True:
            status = self._packets.unpack(self._window)
            if status == UNPACK_MORE:
                break
            if status == UNPACK_FULL:
                yield from self._groups()
                self._have_room()
            elif status == UNPACK_GAP:
                yield from self._groups()
                self._leap()
            elif status == UNPACK_OTHER:
                payload = self._packets.payload(self._peer)
                if payload is None:
                    break
                yield from self._groups()
                yield from self._other(payload)
            else:
                yield from self._groups()
                raise self._broken(status)
        self._packets.keep_rest()
        if has_more and not self._window.is_full:
            self._look_ahead()
        else:
            yield from self._groups()

    def close(self) -> None:
        """Throw away the groups that were put aside."""
        if self._aside is not None:
            self._aside.spilled.close()
            self._aside = None

    def _have_room(self) -> None:
        """Have room for the event at hand, the window being full."""
        window, scanner = self._window, self._scanner
        if window.end < window.room:
            return
        wanted = window.end + PIECE_BYTES
        start = 0 if scanner is None else scanner.offset
        if window.end - start >= HEADER_LENGTH and self._reference is None:
            length = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH)).length
            wanted = max(wanted, start + length)
        window.grow(max(wanted, min(2 * window.end, self._held_bytes_max + PIECE_BYTES)))

    def _broken(self, status: int) -> CodecError | PeerError:
        at, state = self._packets.at, self._packets.state
        if status != UNPACK_DAMAGED:
            return PeerError(
                f"packet {self._packets.came[at + 3]} came where packet {state[SEQUENCE]} is expected",
                peer=self._peer,
                phase="dump",
            )
        return TruncatedError(
            f"a packet of the dump ends elsewhere than its event (by {state[EVENT_LEFT]} bytes)"
        ).at(self._file or "the dump's head", self._window.base + self._window.end)

    # Events that are not plain.

    def _other(self, payload: bytes) -> Iterator[Item]:
        if is_error(payload):
            raise refusal(payload, peer=self._peer, phase="dump")
        if is_eof(payload):
            self.has_ended = True
            return
        position = self._window.base + self._window.end
        if payload[5:6] == bytes((EventType.FORMAT_DESCRIPTION,)):
            position = len(MAGIC)
        try:
            event = decode_event(marked_event(payload), self._format, position=position)
            check_rotate(event.body)
        except CodecError as error:
            raise error.at(self._file or "the dump's head", position) from None
        body = event.body
        if event.header.type_code in HEARTBEATS:
            self.has_progressed = True
        elif isinstance(body, FormatDescriptionEvent):
            yield from self._cut_off()
            yield self._take_format(event, body)
        elif isinstance(body, RotateEvent):
            yield from self._cut_off()
            if body.file != self._file:
                self.created = 0
            self._file = body.file
            self._stand_at(body.position)

    def _take_format(self, event: Event, body: FormatDescriptionEvent) -> EventGroup:
        # With position 0 the dump begins further on, as the ROTATE before said.
        if event.header.next_position:
            self._stand_at(event.next_position)
        self.format_description, self._format = body, body.format
        self.created = event.header.timestamp
        if not is_fast(body.format):
            self._scanner = None
        elif self._scanner is None or len(self._scanner.tables) > TABLES_MAX:
            self._scanner = Scanner(body.format, notes_all=True)
            # A group that another one cuts off is for the reference to tell of.
            self._scanner.state[layout.IS_STRICT] = 1
            self._scanner.state[layout.BASE] = self._window.base
        else:
            self._scanner.take_format(body.format)
        return EventGroup(gtid=None, events=(event,), file=self._file, is_control=True)

    def _cut_off(self) -> Iterator[EventGroup]:
        """The group that the source's crash, or its word, left open: replicas roll it back."""
        scanner, window = self._scanner, self._window
        if self._reference is not None:
            yield from self._reference.finish()
            self._reference = None
        elif self._aside is not None:
            self.close()
        elif scanner is not None and scanner.is_open:
            start = scanner.group_position - window.base
            yield from group_events(
                Walker(
                    (window.bytes(start, window.end),),
                    file=self._file,
                    position=scanner.group_position,
                    format_=self._format,
                ).events(),
                file=self._file,
            )
        self._stand_at(window.base + window.end)

    def _stand_at(self, position: int) -> None:
        """Go on with an empty window from another position on."""
        self._window.end, self._window.base = 0, position
        self._next_position = position
        if self._scanner is not None:
            self._scanner.rewind(position)

    def _leap(self) -> None:
        """Go on where the next event stands: those before it were left out."""
        at, window = self._packets.at, self._window
        header = EventHeader.decode(self._packets.came[at + 5 : at + 5 + HEADER_LENGTH].tobytes())
        earliest_end = window.base + window.end + header.length
        left_out = (header.next_position - earliest_end) & _POSITION_MASK
        scanner = self._scanner
        if self._reference is None and (scanner is None or scanner.is_open or window.end):
            # There is a hole inside a group.
            self._begin_reference()
        if self._reference is not None:
            for _ in self._decoded():
                raise AssertionError("whole groups were given before")
            self._window.end, self._window.base = 0, window.base + window.end + left_out
        else:
            self._stand_at(window.base + window.end + left_out)

    # The window.

    def _look_ahead(self) -> None:
        """Let the kernel look at what came while it is in the cache; items come later."""
        scanner = self._scanner
        if scanner is None or self._reference is not None or self._aside is not None:
            return
        if not scanner.is_full:
            scanner.scan(self._window.data, self._window.end)

    def _groups(self) -> Iterator[Item]:
        """Give the groups that the window holds whole."""
        while self._window.end:
            scanner = self._scanner
            if self._reference is not None or scanner is None:
                if self._reference is None:
                    self._begin_reference()
                yield from self._decoded()
                if self._reference is not None:
                    return
                continue
            status = self._scanned(scanner)
            is_full = scanner.is_full
            yield from self._found(scanner)
            if status == layout.DAMAGED:
                self._begin_reference()
            elif is_full:
                scanner.make_room()
            else:
                is_large = scanner.is_open and self._window.end > self._held_bytes_max
                if is_large and self._aside is None:
                    self._put_aside(scanner)
                return

    def _scanned(self, scanner: Scanner) -> int:
        """Let the kernel go on; look at what it asks about."""
        window = self._window
        while (status := scanner.scan(window.data, window.end)) == layout.ASK:
            start = scanner.offset
            data = window.bytes(start, start + scanner.length_in(window.data))
            if scanner.passes(data):
                continue
            try:
                event = scanner.look_at(data, window.base + start)
            except (CodecError, UnexpectedError):
                return layout.DAMAGED  # it is told behind what came before
            self._see(event)
        return status

    def _see(self, event: Event) -> None:
        if self.position is None and isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
            self.position = self.first_position = event.body.position

    def _found(self, scanner: Scanner) -> Iterator[Item]:
        """The complete groups that the kernel found; then they are forgotten."""
        window, count = self._window, scanner.group_count
        first = 0
        if count and self._aside is not None:
            yield from self._take_aside(scanner)
            first = 1
        if count > first:
            run = RawRun(
                data=window.data,
                base=window.base,
                events=scanner.events,
                groups=scanner.groups[:, first:count].copy(),
                format=scanner.format,
                tables=scanner.tables,
                file=self._file,
            )
            yield from self._given(run)
        done = scanner.group_position
        if self._aside is not None:
            self._put_more_aside(scanner)
            return
        self._next_position = done
        scanner.forget(done - window.base)
        window.drop(done - window.base)

    def _given(self, run: RawRun) -> Iterator[RawRun]:
        if self.position is None:
            raise unknown_start(self.file_position, peer=self._peer)
        self.position, count = run.follow(self.position)
        self.has_progressed = True
        if count == run.count:
            self._next_position = int(run.groups[layout.GROUP_STOP, -1])
            yield run
            return
        self._next_position = int(run.groups[layout.GROUP_START, count])
        if count:
            yield run.head(count)
        gtid = run.gtid(count)
        raise disorder(self.position, gtid, at=self.file_position, peer=self._peer)

    def _pass(self, gtid: AnyGtid | None, end: int) -> None:
        """Note that a group is given."""
        if gtid is not None:
            self.position = passed(self.position, gtid, at=self.file_position, peer=self._peer)
            self.has_progressed = True
        self._next_position = end

    # Groups that are put aside.

    def _put_aside(self, scanner: Scanner) -> None:
        """Begin to put the open group aside."""
        first = EventHeader.decode(self._window.bytes(0, HEADER_LENGTH))
        event = decode_event(
            self._window.bytes(0, first.length), self._format, position=self._window.base
        )
        spilled = self._spill.begin()
        large = LargeGroup(
            position=self._window.base,
            format=scanner.format,
            file=self._file,
            chunks=spilled.chunks,
            gtid=gtid_of(event),
        )
        self._aside = _Aside(spilled, large)
        self._put_more_aside(scanner)

    def _put_more_aside(self, scanner: Scanner) -> None:
        """Put aside what the kernel has seen of the open group."""
        aside, window, count = self._aside, self._window, scanner.offset
        assert aside is not None, "a group is being put aside"
        if count:
            aside.spilled.write(window.data.data[:count])
            scanner.drop_noted()
            scanner.forget(count)
            window.drop(count)

    def _take_aside(self, scanner: Scanner) -> Iterator[LargeGroup]:
        """Give the group that was put aside: it is the first of those that are complete."""
        assert self._aside is not None, "a group was put aside"
        spilled, large = self._aside
        end = int(scanner.groups[layout.GROUP_STOP, 0])
        spilled.write(self._window.data.data[: end - self._window.base])
        large.end, large.timestamp = end, int(scanner.groups[layout.GROUP_TIME, 0])
        self._aside = None
        try:
            self._pass(large.gtid, end)
            yield large
        finally:
            spilled.close()

    # By reference.

    def _begin_reference(self) -> None:
        """Let the reference decode the open group, or the next event."""
        if self._aside is not None:
            raise UnsupportedError(
                f"a group of more than {self._held_bytes_max} bytes has an event that cannot be put aside"
            ).at(self._file, self._window.base)
        self._reference = _Reference(self._file)

    def _decoded(self) -> Iterator[Item]:
        """Give the reference's groups of the window, up to where the kernels can go on."""
        reference, window = self._reference, self._window
        assert reference is not None, "it was begun"
        at = 0
        while window.end - at >= HEADER_LENGTH:
            length = EventHeader.decode(window.bytes(at, at + HEADER_LENGTH)).length
            if window.end - at < length:
                break
            try:
                event = decode_event(
                    window.bytes(at, at + length), self._format, position=window.base + at
                )
                check_flavor(event.header.type_code, self._format)
                event = reference.fragments.feed(event)
            except CodecError as error:
                raise error.at(self._file, window.base + at) from None
            at += length
            self._see(event)
            for group in reference.grouper.feed(event):
                if not (group.is_control and group.gtid is None and _is_of_log(group)):
                    if group.is_complete:
                        self._pass(group.gtid, group.next_position)
                    yield group
            if not reference.grouper.is_open:
                self._stand_behind(at)
                return
        window.drop(at)

    def _stand_behind(self, count: int) -> None:
        """The kernels go on."""
        self._reference = None
        self._window.drop(count)
        self._next_position = self._window.base
        if self._scanner is not None:
            self._scanner.rewind(self._window.base)


class _Reference:
    """A group that is decoded event by event."""

    def __init__(self, file: str) -> None:
        self.grouper = Grouper(file=file)
        self.fragments = Fragments()

    def finish(self) -> Iterable[EventGroup]:
        """The group that is still open, marked as not complete."""
        return self.grouper.finish()


def _is_of_log(group: EventGroup) -> bool:
    """True if a control group is about the log itself, and changes nothing."""
    return group.events[0].header.type_code in CONTROL_TYPES
