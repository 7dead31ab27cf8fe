"""Counts of the row images that a range has of each table, counted beside the range's decoder.

A landing holds the rows that its tasks decoded against these counts. So no reader's wishes are
asked here, and no value is looked at: a kernel steps over the rows by the lengths of their columns.
Where the kernel does not know its way (transactions of more than rows, formats of old) events are
decoded one by one.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import numpy as np

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.row_count import count_rows
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.transaction import XaPrepareEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.counting_scanner import CountingScanner
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.inner import payload_chunks
from binlane.log.grouping.scanner import is_fast
from binlane.log.grouping.table_maps import rows_with_tables
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import Window, padded
from binlane.log.grouping.xa import finished_by, prepared_in
from binlane.log.kernels import layout
from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from binlane.tables.columnar.log_notes import is_rollback, undecided
from binlane.tables.columnar.prepared_transactions import is_commit
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.storage import named
from binlane.tables.ranges.stored_files import chunks_of, description_of, open_range, read_groups_of

KERNEL_MODULES: Final = ("summary",)
_WINDOW_BYTES: Final = 1 << 20
_PLAIN_BYTES_MAX: Final = 32 << 20
_APART_MAX: Final = 64
_CHANGES: Final = [lay.TABLE_INSERTS, lay.TABLE_UPDATES, lay.TABLE_DELETES]
_ALWAYS_ASKED: Final = (b"ROLLBACK", b"XA")


@dataclass(frozen=True, slots=True)
class LoggedRowCounts:
    """The row images of a range: one of an INSERT or DELETE, two of an UPDATE.

    Attributes:
        images: Images by table that take effect in the range. Images of an XA transaction count
            where the transaction is committed.
        uncertain: Images by table of transactions that are rolled back in part: nobody knows which
            of these stay.
        uncounted: Tables with rows whose lengths nobody knows, which are not counted.
    """

    images: Counter[TableName] = field(default_factory=Counter)
    uncertain: Counter[TableName] = field(default_factory=Counter)
    uncounted: set[TableName] = field(default_factory=set)

    def count(self, body: RowsEvent, table_map: TableMapEvent, format_: Format) -> int:
        """The rows of an event, an UPDATE's pair as one; 0, which is noted, if nobody can tell.

        Raises:
            CodecError: If they end inside of a value, and no checksum says that they are whole.
        """
        try:
            return count_rows(body, table_columns(table_map, flavor=format_.flavor))
        except CodecError as error:
            if not isinstance(error, UnsupportedError) and not format_.checksum_length:
                raise
            self.uncounted.add(table_map.name)
            return 0

    def images_of(self, group: EventGroup, format_: Format) -> Counter[TableName]:
        """The row images that a group holds.

        Raises:
            CodecError: If rows end inside of a value.
        """
        found: Counter[TableName] = Counter()
        rows = rows_with_tables(group.events, file=group.file, format_=format_)
        for _, body, table_map in rows:
            images = 1 if body.columns_present_after is None else 2
            name = table_map.name
            found[name] += images * self.count(body, table_map, format_)
        return found


def logged_rows(piece: LogRange, *, by_kernels: bool | None = None) -> LoggedRowCounts:
    """Count the row images of a range.

    Args:
        piece: The range of the log.
        by_kernels: Whether the kernel counts; None to use it where it was compiled ahead.

    Raises:
        CodecError: With file and position, if the log is damaged, or rows end inside of a value.
        StoreError: If the file cannot be read.
    """
    head = description_of(piece)
    format_ = format_of(head)
    start = max(piece.start, head.next_position)
    if piece.stop is not None and start >= piece.stop:
        return LoggedRowCounts()
    behind = replace(piece, start=start)
    if by_kernels is None:
        by_kernels = is_compiled(KERNEL_MODULES)
    with closing(_Prepared(piece)) as prepared:
        if by_kernels and is_fast(format_):
            try:
                return _Counting(behind, format_, prepared).run()
            except UnexpectedError:
                prepared.forget()
        return _by_group(behind, format_, prepared)


class _Prepared:
    """The XA transactions that are prepared, in the range and before it."""

    def __init__(self, piece: LogRange) -> None:
        self._before = LogBefore(piece)
        self._images: dict[str, Counter[TableName]] = {}

    def close(self) -> None:
        self._before.close()

    def forget(self) -> None:
        """The range is begun anew."""
        self._images.clear()

    def prepare(self, xid: str, images: Counter[TableName]) -> None:
        self._images[xid] = images

    def finish(self, event: Event) -> Counter[TableName]:
        """The images that an event commits, if it does."""
        xid = finished_by(event)
        if xid is None:
            return Counter()
        found = self._images.pop(xid, None)
        if not is_commit(event):
            return Counter()
        return self._find(xid) if found is None else found

    def _find(self, xid: str) -> Counter[TableName]:
        place = self._before.find(xid)
        if place is None:
            return Counter()  # whoever decodes the rows tells that nobody knows them
        source = self._before.source(place)
        walker = Walker(
            chunks_of(source), file=place.path, position=place.start, format_=place.format
        )
        group = next(group_events(walker.events(), file=place.path))
        return LoggedRowCounts().images_of(group, place.format)


def _by_group(piece: LogRange, format_: Format, prepared: _Prepared) -> LoggedRowCounts:
    """Count a range by decoding its events."""
    found = LoggedRowCounts()
    for group in read_groups_of(piece):
        first = group.events[0].body
        if isinstance(first, FormatDescriptionEvent):
            format_ = first.format
        if group.is_complete and not group.is_control:
            images = found.images_of(group, format_)
            _take_group(found, group, images, format_, prepared)
    return found


def _take_group(
    found: LoggedRowCounts,
    group: EventGroup,
    images: Counter[TableName],
    format_: Format,
    prepared: _Prepared,
) -> None:
    """Count a complete group where its rows take effect."""
    xid = prepared_in(group.events[-1], format_)
    if xid is not None:
        prepared.prepare(xid, images)
    elif undecided(group.events) is not None:
        found.uncertain.update(images)
    else:
        found.images.update(images)
    for event in group.events:
        found.images.update(prepared.finish(event))


class _Counting:
    """Counts a range by the kernel `summarise`, and single groups of it by decoding them."""

    def __init__(self, piece: LogRange, format_: Format, prepared: _Prepared) -> None:
        self._piece = piece
        self._format = format_
        self._prepared = prepared
        self._found = LoggedRowCounts()
        self._apart: set[int] = set()
        self._scanner = CountingScanner(format_)
        self._inner: CountingScanner | None = None

    def run(self) -> LoggedRowCounts:
        """Count the rows of the range.

        Raises:
            UnexpectedError: If the kernel cannot go on.
        """
        scanner, start = self._scanner, self._piece.start
        with closing(open_range(self._piece)) as source:
            window = Window(source.reread(start), size_bytes=_WINDOW_BYTES, base=start)
            scanner.state[layout.BASE] = start
            while (status := scanner.count(window.data, window.end)) != layout.MORE or (
                self._read_on(window)
            ):
                if status == lay.FULL:
                    scanner.forget_beside()
                elif status != layout.MORE:
                    self._answer(status, window)
            if window.end > scanner.offset or scanner.figures[lay.UNFINISHED]:
                raise UnexpectedError  # groups end early, or are begun anew
        self._take_images(scanner)
        if self._inner is not None:
            self._take_images(self._inner)
        return self._found

    def _read_on(self, window: Window) -> bool:
        """Forget what was counted, but for an open group that is small; False at the end."""
        scanner = self._scanner
        count = scanner.offset
        if scanner.is_open and scanner.group_position >= window.base:
            start = scanner.group_position - window.base
            if window.end - start < _WINDOW_BYTES // 2:
                count = start
        scanner.forget(count)
        window.drop(count)
        return window.fill()

    def _take_images(self, scanner: CountingScanner) -> None:
        counts = scanner.counts[lay.TABLES]
        for number, known in enumerate(scanner.tables):
            table_map = known.table_map
            inserts, updates, deletes = counts[_CHANGES, number].tolist()
            name = table_map.name
            self._found.images[name] += inserts + deletes + 2 * updates

    def _answer(self, status: int, window: Window) -> None:
        scanner = self._scanner
        start = scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        is_payload = header.type_code == EventType.TRANSACTION_PAYLOAD
        if status == layout.DAMAGED and not is_payload:
            raise UnexpectedError
        data, position = window.bytes(start, start + header.length), window.base + start
        if is_payload:
            self._take_payload(data, position)
            return
        event = self._look(scanner, status, data, position)
        if is_rollback(event) or isinstance(event.body, IncidentEvent | XaPrepareEvent):
            self._take_apart(scanner.group_position, window)
        self._found.images.update(self._prepared.finish(event))

    def _look(self, scanner: CountingScanner, status: int, data: bytes, position: int) -> Event:
        """Tell the kernel what it asks for."""
        try:
            if status == layout.ASK:
                event = scanner.look_at(data, position)
            else:
                event = decode_event(data, scanner.format, position=position)
            body, figures = event.body, scanner.figures
            if isinstance(body, QueryEvent):
                if not body.query.startswith(_ALWAYS_ASKED):
                    scanner.give_verb(body.query, "")
                figures[lay.TOLD] = 0
            elif status == lay.ASK_IMAGES and isinstance(body, RowsEvent):
                scanner.give_images(body.plain_images)
            elif isinstance(body, RowsEvent):
                table_map = scanner.table_map_of(body.table_id)
                assert table_map is not None, "the kernel has found it"
                figures[lay.TOLD] = self._found.count(body, table_map, self._format)
        except CodecError:
            raise UnexpectedError from None  # who decodes all meets it again
        return event

    def _take_apart(self, position: int, window: Window | None) -> None:
        """Decode the group that begins at a position, which may count elsewhere or not at all."""
        if position in self._apart:
            return
        self._apart.add(position)
        is_held = window is not None and position >= window.base
        if not is_held and (len(self._apart) > _APART_MAX or not self._piece.is_plain):
            raise UnexpectedError
        group = self._group_at(position, window)
        images = self._found.images_of(group, self._format)
        self._found.images.subtract(images)
        _take_group(self._found, group, images, self._format, self._prepared)

    def _group_at(self, position: int, window: Window | None) -> EventGroup:
        with closing(open_range(self._piece)) as source:
            chunks = chunks_of(source.reread(position))
            if window is not None and position >= window.base:
                chunks = chain(
                    [window.bytes(position - window.base, window.end)],
                    chunks_of(source.reread(window.base + window.end)),
                )
            walker = Walker(
                chunks, file=named(self._piece.uri), position=position, format_=self._format
            )
            group = next(group_events(walker.events(), file=self._piece.name))
        if not group.is_complete or group.is_control:
            raise UnexpectedError
        return group

    def _take_payload(self, data: bytes, position: int) -> None:
        """Count what stands in a compressed transaction; its group ends with it."""
        scanner = self._scanner
        try:
            body = decode_event(data, self._format, position=position).body
            assert isinstance(body, TransactionPayloadEvent), "its type says so"
            if body.uncompressed_size > _PLAIN_BYTES_MAX:
                raise UnexpectedError
            plain = b"".join(payload_chunks(body))
        except CodecError:
            raise UnexpectedError from None
        is_prepared = self._count_inner(plain)
        start = scanner.group_position
        scanner.pass_over(len(data))
        if is_prepared:
            self._take_apart(start, None)

    def _count_inner(self, plain: bytes) -> bool:
        """Count the events of a payload; whether they prepare an XA transaction."""
        if self._inner is None:
            format_ = replace(self._format, checksum=ChecksumAlgorithm.NONE)
            self._inner = CountingScanner(format_, is_inner=True)
        scanner = self._inner
        data = padded(len(plain))
        data[: len(plain)] = np.frombuffer(plain, np.uint8)
        scanner.state[layout.OFFSET] = 0
        is_prepared = False
        while (status := scanner.count(data, len(plain))) != layout.MORE:
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == lay.FULL:
                scanner.forget_beside()
                continue
            start = scanner.offset
            header = EventHeader.decode(plain[start : start + HEADER_LENGTH])
            event = self._look(scanner, status, plain[start : start + header.length], start)
            is_prepared |= isinstance(event.body, XaPrepareEvent)
        if scanner.offset != len(plain):
            raise UnexpectedError
        return is_prepared
