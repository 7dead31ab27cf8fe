"""TRANSACTION_PAYLOAD events → batches: many small transactions at once, a large one in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import zstandard

from binlane.errors import CodecError
from binlane.log.codec.event import Event, EventHeader, decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.payload import PayloadCompression, TransactionPayloadEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.scanner import KnownTable, Scanner
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import padded
from binlane.log.grouping.xa import prepared_by, prepared_in
from binlane.log.kernels import layout
from binlane.tables.columnar.batches import STATEMENT_TYPES
from binlane.tables.columnar.compressed import ARENA_BYTES
from binlane.tables.columnar.log_notes import RowItem
from binlane.tables.columnar.noted_events import NotedEvents, Small
from binlane.tables.columnar.noted_rows import NotedRows

_WHOLE_BYTES_MAX: Final = 32 << 20


class PayloadRows:
    """Takes events that hold a whole transaction.

    Args:
        rows: Takes the rows events inside.
        tell: Takes those inside that are no rows.
        hold: Takes a carrier whose XA transaction is only prepared; None if such are read as well.
        file: The file's name, as messages shall give it.
        told: The types of inner events that are noted beside rows, as `Scanner` takes it.
    """

    def __init__(
        self,
        rows: NotedRows,
        tell: Callable[[NotedEvents, int], Iterator[RowItem]],
        hold: Callable[[NotedEvents, int, str], None] | None,
        *,
        file: str,
        told: int,
    ) -> None:
        self._rows = rows
        self._tell = tell
        self._hold = hold
        self._told = told
        self._file = file
        self._scanner: Scanner | None = None
        self._arena = padded(ARENA_BYTES)
        self._decompressor = zstandard.ZstdDecompressor()
        self._used = 0
        self._carriers: list[int] = []
        self._counts: list[int] = []

    def take_format(self, format_: Format) -> None:
        """Go on in a file of this format."""
        plain = replace(format_, checksum=ChecksumAlgorithm.NONE)
        self._scanner = Scanner(plain, is_inner=True, told=self._told)

    def take(self, noted: NotedEvents, picked: Small) -> Iterator[RowItem]:
        """Take carriers in log order.

        Raises:
            CodecError: With file and position, if one is broken or a row cannot be decoded.
        """
        for index in picked.tolist():
            event = noted.event(index)
            assert isinstance(event.body, TransactionPayloadEvent), "nothing else is noted"
            if self._used and self._used + event.body.uncompressed_size > ARENA_BYTES:
                yield from self._flush(noted)
            try:
                self._add(noted, event.body, index)
            except UnexpectedError:
                yield from self._flush(noted)
                yield from self._by_reference(noted, index, event)
        yield from self._flush(noted)

    def _add(self, noted: NotedEvents, body: TransactionPayloadEvent, index: int) -> None:
        """Put the events inside behind those of other payloads, and note them.

        Raises:
            UnexpectedError: If the payload is broken or too large; it leaves nothing behind.
        """
        scanner = self._scanner
        assert scanner is not None, "payloads stand behind a format"
        plain = self._plain(body)
        start, end = self._used, self._used + len(plain)
        if end + 64 > self._arena.shape[0]:
            larger = padded(end)
            larger[:start] = self._arena[:start]
            self._arena = larger
        self._arena[start:end] = np.frombuffer(plain, np.uint8)
        before = int(scanner.state[layout.EVENTS])
        try:
            self._scan(scanner, start, end)
        except UnexpectedError:
            scanner.state[layout.EVENTS] = before
            raise
        xid = None if self._hold is None else self._prepared(scanner, before)
        if self._hold is not None and xid is not None:
            scanner.state[layout.EVENTS] = before
            self._hold(noted, index, xid)
            return
        self._used = end
        self._carriers.append(index)
        self._counts.append(int(scanner.state[layout.EVENTS]) - before)

    def _prepared(self, scanner: Scanner, before: int) -> str | None:
        """The XA transaction that the events of a payload prepare."""
        last = int(scanner.state[layout.EVENTS]) - 1
        if last < before or scanner.events[layout.EVENT_TYPE, last] != EventType.XA_PREPARE_LOG:
            return None
        start, end = scanner.events[[layout.EVENT_OFFSET, layout.EVENT_END], last]
        return prepared_by(decode_event(self._arena[start:end].tobytes(), scanner.format))

    def _plain(self, body: TransactionPayloadEvent) -> bytes:
        size = body.uncompressed_size
        if size > _WHOLE_BYTES_MAX:
            raise UnexpectedError
        if body.compression == PayloadCompression.NONE:
            plain = body.payload
        else:
            try:
                plain = self._decompressor.stream_reader(body.payload).read(size + 1)
            except zstandard.ZstdError:
                raise UnexpectedError from None
        if len(plain) != size:
            raise UnexpectedError
        return plain

    def _scan(self, scanner: Scanner, start: int, end: int) -> None:
        state = scanner.state
        state[layout.OFFSET] = start
        state[layout.STATEMENT] += 1
        while True:
            # All of it is one group, whatever stands in it.
            state[layout.GROUPS] = 0
            state[layout.IS_OPEN] = 1
            state[layout.IS_TRANSACTION] = 1
            status = scanner.scan(self._arena, end)
            at = scanner.offset
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                header = EventHeader.decode(self._arena[at : at + HEADER_LENGTH].tobytes())
                try:
                    scanner.look_at(self._arena[at : at + header.length].tobytes(), 0)
                except CodecError:
                    raise UnexpectedError from None
            elif at == end:
                return
            elif state[layout.EVENTS] >= scanner.events.shape[1]:
                scanner.make_room()
            elif not state[layout.GROUPS]:
                raise UnexpectedError

    def _flush(self, noted: NotedEvents) -> Iterator[RowItem]:
        """Give the rows of the payloads so far."""
        scanner = self._scanner
        assert scanner is not None, "payloads stand behind a format"
        count = int(scanner.state[layout.EVENTS])
        carriers = np.repeat(np.array(self._carriers, np.int32), self._counts)
        inner = replace(
            noted,
            data=self._arena,
            headers=self._arena,
            events=scanner.events,
            groups=noted.groups[carriers],
            positions=noted.positions[carriers],
            tables=scanner.tables,
            format_=scanner.format,
        )
        if count:
            yield from self._take(inner, np.arange(count, dtype=np.int32))
        scanner.state[[layout.EVENTS, layout.FIRST_EVENT]] = 0
        self._used, self._carriers, self._counts = 0, [], []
        if self._arena.shape[0] > 2 * ARENA_BYTES:
            self._arena = padded(ARENA_BYTES)

    def _take(self, noted: NotedEvents, picked: Small) -> Iterator[RowItem]:
        is_row = noted.events[layout.EVENT_MAP, picked] >= 0
        for run in np.split(picked, np.flatnonzero(np.diff(is_row)) + 1):
            if is_row[run[0]]:
                yield from self._rows.take(noted, run)
            else:
                for index in run.tolist():
                    yield from self._tell(noted, index)

    def _by_reference(self, noted: NotedEvents, index: int, carrier: Event) -> Iterator[RowItem]:
        xid = None if self._hold is None else prepared_in(carrier, noted.format_)
        if self._hold is not None and xid is not None:
            self._hold(noted, index, xid)
            return
        maps = TableMaps()
        self._rows.count_by_reference(carrier)
        for event in expanded(carrier, noted.format_, file=noted.file):
            source = noted.source(index, event)
            if event.header.type_code in STATEMENT_TYPES:
                yield from self._rows.tell_by_reference(event, source)
            table_map = maps.feed(event, file=noted.file)
            if table_map is None or not isinstance(event.body, RowsEvent):
                continue
            table = KnownTable(table_map, b"")
            yield from self._rows.add_by_reference(table, event.body, source)
