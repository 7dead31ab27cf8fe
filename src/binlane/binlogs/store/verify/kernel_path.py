"""Checking a file by the kernel `scan`: every byte is looked at, few events are decoded.

The kernel goes through a window of the file and checks what the reference checks. It stops at rare
events, which are decoded here. At anything else, be it damage, a group without an end or a type
that it does not know, the reference goes on from the last place up to which all is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.store.verify.checks import Checks, GroupPlace
from binlane.binlogs.store.verify.faults import CheckCounts, Fault
from binlane.binlogs.store.verify.gtid_columns import gtid_columns
from binlane.binlogs.store.verify.payloads import PayloadPath
from binlane.binlogs.store.verify.reference import ReferencePath
from binlane.errors import BinlaneError, CodecError
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.event_group import CONTROL_TYPES
from binlane.log.grouping.first_event import description_in
from binlane.log.grouping.inflated_records import inflated_record
from binlane.log.grouping.scanner import Scanner, is_fast
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import ByteReader, Window
from binlane.log.kernels import layout
from binlane.positions import AnyGtid, Gtid, MysqlGtid

WINDOW_BYTES: Final = 4 << 20
_LENGTH: Final = slice(9, 13)
_COMPRESSED: Final = np.array(
    [code for code in EventType if "ROWS_COMPRESSED" in code.name], np.int32
)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Known:
    """A place up to which all is known.

    Attributes:
        offset: Offset of the place in the window.
        format: Format of the events behind it.
        group: The group that is open there; None if none is.
        is_transaction: True if an event has told that the open group is a transaction.
        table_maps: Table maps of the statement that is open there.
    """

    offset: int
    format: Format | None
    group: GroupPlace | None = None
    is_transaction: bool = False
    table_maps: tuple[Event, ...] = ()


class KernelPath:
    """Checks the events of one file.

    Args:
        checks: State of the log's checks.
        tally: Counter of the files and events looked at.
        path: Path of the file, for messages.
        source: Plain bytes of the file.
        window_bytes: Bytes that are looked at together.

    Attributes:
        end: Position behind the last whole event.
        open_group: Position of the group that has not ended yet; None if all have.
    """

    def __init__(
        self,
        checks: Checks,
        tally: CheckCounts,
        path: str,
        source: ByteReader,
        *,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self._checks = checks
        self._tally = tally
        self._path = path
        self._window = Window(source, size_bytes=window_bytes)
        self._reference = ReferencePath(checks, tally, path)
        self._known = _Known(0, None)
        self._seen = 0
        self.end = 0
        self.open_group: int | None = None

    def faults(self) -> Iterator[Fault]:
        """Check the whole file.

        Raises:
            CodecError: At damage, behind all faults before it.
            StoreError: If the file cannot be read.
        """
        head = description_in(self._window)
        if head is None:
            yield from self._read_on()
            return
        assert isinstance(head.body, FormatDescriptionEvent), "nothing else is first"
        self._head = head
        self._scanner = Scanner(head.body.format)
        self._scanner.state[layout.OFFSET] = self.end = head.next_position
        self._scanner.state[layout.IS_STRICT] = 1
        self._payloads: PayloadPath | None = None
        self._tally.events += 1
        self._known = _Known(head.next_position, head.body.format)
        try:
            yield from self._scan()
        except UnexpectedError:
            with suppress(UnexpectedError):
                yield from self._take()
            yield from self._read_on()

    def _scan(self) -> Iterator[Fault]:
        scanner, window = self._scanner, self._window
        while True:
            status = scanner.scan(window.data, window.end)
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                yield from self._answer()
                continue
            is_full = scanner.is_full
            if is_full or window.is_full:
                yield from self._take()
            if is_full:
                continue
            self._reserve()
            try:
                is_more = window.fill()
            except BinlaneError:
                yield from self._take()
                raise
            if not is_more:
                break
        if window.end > scanner.offset:
            raise UnexpectedError
        yield from self._take()

    def _reserve(self) -> None:
        """Have room for the next event, if it is a large one."""
        start = self._scanner.offset
        if self._window.end >= start + HEADER_LENGTH:
            length = int.from_bytes(self._window.data[start:][_LENGTH].tobytes(), "little")
            self._window.reserve(start + length)

    def _answer(self) -> Iterator[Fault]:
        """Look at the event that the kernel asks about."""
        scanner, window = self._scanner, self._window
        start = scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        if header.type_code == EventType.TRANSACTION_PAYLOAD:
            self._payloads = self._payloads or PayloadPath(scanner.format)
            stop = start + header.length - scanner.format.checksum_length
            self._payloads.check(window.data, start + HEADER_LENGTH, stop)
            scanner.state[layout.VERDICT] = layout.CHECKED
            return
        event = self._decoded(window.bytes(start, start + header.length), window.base + start)
        if header.type_code in CONTROL_TYPES:
            _refuse_foreign(event)
            yield from self._take()
            yield from self._checks.control(event)
            self._tally.events += 1
            self._seen = int(scanner.state[layout.SEEN]) + 1
            if isinstance(event.body, FormatDescriptionEvent):
                scanner.take_format(event.body.format)
                self._payloads = None
            self._know(scanner.offset + header.length)
        elif faults := list(self._checks.statement(event)):
            yield from self._take()
            yield from faults

    def _decoded(self, data: bytes, position: int) -> Event:
        """Decode an event and tell the kernel of it.

        Raises:
            UnexpectedError: If it is damaged, or the kernel cannot go on behind it.
        """
        scanner = self._scanner
        try:
            if data[4] == EventType.START_ENCRYPTION:  # what is behind it was decrypted before
                scanner.state[layout.VERDICT] = layout.CHECKED
                return decode_event(data, scanner.format, position=position)
            return scanner.look_at(data, position)
        except CodecError:
            raise UnexpectedError from None  # the reference raises it again

    def _take(self) -> Iterator[Fault]:
        """Check the complete groups; forget what lies before the next event.

        Raises:
            UnexpectedError: If a compressed event is broken; nothing is known of any group then.
        """
        scanner, window = self._scanner, self._window
        self._check_records()
        groups = scanner.groups[:, : scanner.group_count]
        seen = int(scanner.state[layout.SEEN])
        self._tally.events += seen - self._seen
        self._tally.groups += groups.shape[1]
        self._seen = seen
        self.end = window.base + scanner.offset
        yield from self._check_groups(groups)
        scanner.drop_noted()
        done = scanner.offset
        scanner.forget(done)
        window.drop(done)
        self._know(0)

    def _check_records(self) -> None:
        """Check the rows events that MariaDB compressed."""
        scanner, data = self._scanner, self._window.data
        events = scanner.events[:, : int(scanner.state[layout.EVENTS])]
        is_compressed = np.isin(events[layout.EVENT_TYPE], _COMPRESSED)
        for start, end in events[[layout.EVENT_IMAGES, layout.EVENT_END]][:, is_compressed].T:
            for _ in inflated_record(data[start:end].data):
                pass

    def _check_groups(self, groups: Numbers) -> Iterator[Fault]:
        """Check the GTIDs of groups, together if they come one after the other."""
        window = self._window
        numbers = np.flatnonzero(groups[layout.GROUP_GTID_LENGTH])
        if not numbers.shape[0]:
            return
        first = int(numbers[0])
        if groups[layout.GROUP_START, first] < window.base:  # its GTID event is not there any more
            yield from self._check_group(groups, first)
            numbers = numbers[1:]
        if not numbers.shape[0]:
            return
        offsets = groups[layout.GROUP_START, numbers] - window.base
        gtids = gtid_columns(window.data, offsets)
        if gtids is not None and self._checks.all_right(gtids, groups[layout.GROUP_STOP, numbers]):
            return
        for number in numbers.tolist():
            yield from self._check_group(groups, number)

    def _check_group(self, groups: Numbers, number: int) -> Iterator[Fault]:
        gtid = self._gtid(number, int(groups[layout.GROUP_GTID_LENGTH, number]))
        start, stop = groups[[layout.GROUP_START, layout.GROUP_STOP], number].tolist()
        yield from self._checks.group(GroupPlace(gtid, start, stop))

    def _gtid(self, number: int, length: int) -> AnyGtid | None:
        """The GTID of a group, by its text."""
        start = number * layout.GTID_TEXT_MAX
        text = self._scanner.texts[start : start + length].tobytes().decode()
        if not text:
            return None
        if ":" not in text:
            return Gtid.parse(text)
        source_id, *tags, sequence = text.split(":")
        return MysqlGtid(source_id, int(sequence), *tags)

    def _know(self, offset: int) -> None:
        """All is known up to an offset, which the kernel has reached."""
        scanner = self._scanner
        # A group that begins with the next event is one for whoever looks at that.
        if not scanner.is_open or scanner.group_position >= self._window.base + offset:
            self._known = _Known(offset, scanner.format)
            self.open_group = None
            return
        gtid = self._gtid(scanner.group_count, int(scanner.state[layout.GTID_LENGTH]))
        self.open_group = scanner.group_position
        self._known = _Known(
            offset,
            scanner.format,
            group=GroupPlace(gtid, self.open_group, self.open_group),
            is_transaction=bool(scanner.state[layout.IS_TRANSACTION]),
            table_maps=tuple(
                replace(self._head, body=replace(table_map, table_id=table_id))
                for table_id, table_map in scanner.open_table_maps()
            ),
        )

    def _read_on(self) -> Iterator[Fault]:
        """Let the reference check what is behind the place up to which all is known."""
        known, window, reference = self._known, self._window, self._reference
        position = window.base + known.offset
        if known.format is not None:
            reference.resume(known.format, position)
        if known.group is not None:
            reference.resume_group(
                known.group.start,
                known.group.gtid,
                is_transaction=known.is_transaction,
                table_maps=known.table_maps,
            )
        walker = Walker(
            window.rest(known.offset), file=self._path, position=position, format_=known.format
        )
        try:
            yield from reference.faults(walker.events())
        finally:
            self.end, self.open_group = reference.end, reference.open_group


def _refuse_foreign(event: Event) -> None:
    """Hand over a file in which positions are those of another one, or whose format is of old."""
    body = event.body
    is_rotate = isinstance(body, RotateEvent) and event.header.next_position == 0
    is_old = isinstance(body, FormatDescriptionEvent) and not is_fast(body.format)
    if is_rotate or is_old or event.header.flags & HeaderFlag.RELAY_LOG:
        raise UnexpectedError
