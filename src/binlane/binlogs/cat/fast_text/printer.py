"""Prints logs through the text kernel: the same text as `text.TextLines`, at speed.

The kernel prints the bulk of a log. This module does the work at its stops: events of rarer kinds
go to `TextLines`, which also knows the session's state; tables are taken in when they are first
mapped; compressed rows are inflated, and the events of a TRANSACTION_PAYLOAD stand in a window of
their own; rows with values that the kernel leaves alone are printed by `text_rows`. A file whose
format is of old, or that the options ask something of which is not done here, goes to `TextLines`
whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from binlane.binlogs.cat.fast_text.buffers import SPILL_BYTES, TextBuffers, Write
from binlane.binlogs.cat.fast_text.context import SessionContext
from binlane.binlogs.cat.fast_text.handover import Handover
from binlane.binlogs.cat.fast_text.layouts import Layouts
from binlane.binlogs.cat.fast_text.payload_window import Payload, plain_rows
from binlane.binlogs.cat.fast_text.text_window import TextWindow
from binlane.binlogs.cat.text.event_text import printable_rows
from binlane.binlogs.cat.text.row_text import row_count
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.binlogs.store.byte_source import ChunkBytes
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC, Format
from binlane.log.codec.payload import TransactionPayloadEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent, uncompressed
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.first_event import description_in, format_of
from binlane.log.grouping.inner import expanded
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PIECE_BYTES, ByteReader, Window
from binlane.log.kernels import text_layout as lay

_DAY: Final = 86_400
_QUARTER: Final = 900


class Zone(NamedTuple):
    """The local time of a stretch of time.

    Attributes:
        start: The first second of it, since 1970.
        end: The first second behind it, since 1970.
        offset: Seconds by which local time is ahead of UTC.
        name: Name that the system gives it, such as `CEST`.
    """

    start: int
    end: int
    offset: int
    name: str


@lru_cache(maxsize=256)
def zone_at(timestamp: int) -> Zone:
    """The local time around a second since 1970."""
    offset, name = _local(timestamp)
    for span in (_DAY, _QUARTER):
        start = timestamp - timestamp % span
        if all(_local(edge) == (offset, name) for edge in (start, start + span - 1)):
            return Zone(start, start + span, offset, name)
    return Zone(timestamp, timestamp + 1, offset, name)


def _local(timestamp: int) -> tuple[int, str]:
    local = time.localtime(timestamp)
    return local.tm_gmtoff, local.tm_zone


Bytes = npt.NDArray[np.uint8]

WINDOW_BYTES: Final = 4 << 20
_BUFFER_BYTES: Final = 4 << 20
_POST_HEADERS: Final = (
    (EventType.QUERY, 13),
    (EventType.TABLE_MAP, 8),
    (EventType.WRITE_ROWS_V1, 8),
)
_ID_BYTES: Final = 6
_FLAGS_AT: Final = 17
_BINLOG: Final = b"\nBINLOG '\n"
_END_OF_BINLOG: Final = b"'/*!*/;\n"


def can_print(options: TextOptions) -> bool:
    """True if the kernel prints the output that these options ask for."""
    return options.print_row_event_positions and not (
        options.short_form
        or options.hexdump
        or options.print_table_metadata
        or options.rewrite_databases
        or (options.base64_output is Base64Output.NEVER and not options.verbose)
    )


# Buffers in which the kernel stops for room.
_FULL: Final[Mapping[int, int]] = MappingProxyType(
    {
        lay.OUT_FULL: lay.OUT,
        lay.HEADS_FULL: lay.HEADS,
        lay.NOTE_FULL: lay.NOTE,
        lay.ENCODED_FULL: lay.ENCODED,
        lay.ROWS_FULL: lay.ROWS,
    }
)


class PrinterSizes(NamedTuple):
    """Sizes of a printer's buffers.

    Attributes:
        window_bytes: Bytes of a file that are looked at together.
        buffer_bytes: Bytes of text that are kept together at first.
        spill_bytes: Bytes of one statement's text that are kept in memory.
    """

    window_bytes: int = WINDOW_BYTES
    buffer_bytes: int = _BUFFER_BYTES
    spill_bytes: int = SPILL_BYTES


_SIZES: Final = PrinterSizes()


class FastText:
    """Prints the events of files, one file after the other.

    Args:
        renderer: Reference that prints the events that the kernel does not.
        options: Options for which `can_print` is true.
        write: Function that takes text; it is done with it when it returns.
        kernel: The function `print_events` of the kernels.
        sizes: Sizes of buffers, for tests.
    """

    def __init__(
        self,
        renderer: TextLines,
        options: TextOptions,
        write: Write,
        *,
        kernel: Callable[..., int],
        sizes: PrinterSizes = _SIZES,
    ) -> None:
        self._renderer = renderer
        self._options = options
        self._write = write
        self._kernel = kernel
        self._state = np.zeros(lay.STATE_SIZE, np.int64)
        self._layouts = Layouts(with_types=options.verbose > 1)
        self._context = SessionContext(self._state, self._layouts)
        self._parts = TextBuffers(
            self._state, write, size=sizes.buffer_bytes, spill_bytes=sizes.spill_bytes
        )
        self._handover = Handover(renderer, self._state, self._parts)
        self._window_bytes = sizes.window_bytes
        # The payload and events around the window, if it is not the log itself.
        self._payload: Payload | None = None
        self._others: dict[int, list[Event]] = {}
        self._flavor = Flavor.MARIADB
        self._is_foreign = False
        self._plain: Bytes = np.zeros(lay.PADDING, np.uint8)
        self._format: Format | None = None
        self._path = self._name = ""
        self._state[lay.VERBOSE] = options.verbose
        self._state[lay.ENCODES] = options.prints_base64
        self._state[lay.SKIPS_GTIDS] = options.skip_gtids
        self._state[lay.SKIPS_NOTES] = options.skip_annotate
        self._state[lay.LENGTH_MAX] = EVENT_LENGTH_MAX
        self._state[lay.CRC32] = crc32_address()
        self._state[[lay.STAMP, lay.PLACE]] = -1

    def print_file(
        self,
        source: ByteReader,
        *,
        path: str,
        name: str,
        others: dict[int, list[Event]] | None = None,
        head: bytes = b"",
        start: int = 0,
    ) -> None:
        """Print all events of a file that are not marked as left out.

        Args:
            source: Bytes of the file, decrypted.
            path: Path of the file as the user named it, for errors.
            name: Base name of the file.
            others: Events that are printed in the place of another, by position, as long as the
                source notes some; None if nothing is marked.
            head: The file's bytes up to and with its FORMAT_DESCRIPTION, with a start.
            start: Position of the source's first event, which begins a group; 0 for the beginning
                of the file.

        Raises:
            CodecError: At the first fault; the events before it are printed.
            StoreError: If the file cannot be read, or a temporary one written.
        """
        self._path, self._name, self._format = path, name, None
        self._is_foreign = False
        self._others = {} if others is None else others
        self._state[lay.SKIPS] = others is not None
        begin = ChunkBytes(iter((head,))) if start else source
        self._window = TextWindow(self._state, begin, size_bytes=self._window_bytes)
        self._context.forget()
        self._handover.take()
        state = self._state
        state[lay.CHECKSUM] = -1
        state[lay.STATEMENT] += 1
        state[[lay.PHASE, lay.INFLATED]] = 0
        try:
            while not self._window.has_event and self._window.fill():
                pass
            head = self._window.event_bytes()
            if head == MAGIC:
                return
            self._is_foreign = _begins_relay_log(head)
            if not self._is_foreign:
                self._print_event()
            if start:
                self._window = TextWindow(state, source, size_bytes=self._window_bytes, base=start)
            while not self._is_foreign and self._print_window():
                pass
            if self._is_foreign:
                self._print_rest()
            self._handover.give()
        finally:
            self._parts.flush()
            self._parts.drop()
            self._state[[lay.NOTE_AT, lay.ROW_COUNT]] = 0

    def _print_window(self) -> bool:
        """Run the kernel, and do what it stopped for; False at the file's end."""
        state, layouts, parts = self._state, self._layouts, self._parts
        buffers = (*map(parts.__getitem__, range(lay.TEXTS)), layouts.texts, self._plain)
        status = self._kernel(self._window.data, state, buffers, layouts.tables, layouts.layouts)
        if status != lay.DONE:
            full = _FULL.get(status)
            if full is None:
                self._ANSWERS[status](self)
            else:
                parts.make_room(full, int(state[lay.NEED]))
            return True
        if self._window.fill():
            return True
        if self._window.left:
            self._print_event()
        return bool(self._window.left)

    def _set_format(self, format_: Format) -> None:
        """Take a FORMAT_DESCRIPTION, which may be that of a file that the kernel does not read."""
        options, state = self._options, self._state
        is_mysql = format_.flavor is Flavor.MYSQL
        if format_.flavor is not self._flavor:
            self._layouts.forget()
            self._context.restore()
        self._format, self._flavor = format_, format_.flavor
        state[lay.IS_MYSQL] = is_mysql
        state[lay.CHECKSUM] = state[lay.SHOWS_CHECKSUM] = format_.checksum_length
        state[lay.COUNTS_ROWS] = options.print_row_count and not is_mysql
        self._is_foreign = _is_foreign(format_, options)

    def _print_rest(self) -> None:
        """The rest of a file without the kernel."""
        window = self._window
        self._handover.give(self._tables())
        walker = Walker(
            window.rest(), file=self._path, position=window.position, format_=self._format
        )
        for event in walker.events():
            assert walker.format is not None, "events come behind a format"
            for inner in expanded(event, walker.format, file=self._path):
                self._print_lines(self._renderer.lines(inner, file=self._name))
        self._handover.take()

    def _decoded(self) -> Event:
        """The event that the kernel stopped at."""
        window = self._window
        if self._payload is not None:
            return self._payload.event(window, int(self._state[lay.INNER_EVENTS]))
        walker = Walker(
            iter((window.event_bytes(),)),
            file=self._path,
            position=window.position,
            format_=self._format,
        )
        return next(walker.events())

    def _print_event(self) -> None:
        """Print an event by the reference."""
        is_piece = self._window.event_type == EventType.PARTIAL_ROW_DATA
        if is_piece and self._format is not None and self._payload is None:
            # Pieces of an event stand one behind the other.
            self._is_foreign = True
            return
        others = self._others.pop(self._window.position, ()) if self._payload is None else ()
        if others:
            self._print_others(others)
            return
        event, state = self._decoded(), self._state
        self._handover.give(self._tables() if isinstance(event.body, RowsEvent) else ())
        self._print_lines(self._renderer.lines(event, file=self._name))
        self._handover.take()
        if isinstance(event.body, RowsEvent) and event.body.ends_statement:
            state[lay.STATEMENT] += 1
        if isinstance(event.body, FormatDescriptionEvent):
            self._set_format(event.body.format)
        self._forget_texts()
        self._context.feed(event)
        if self._payload is not None:
            state[lay.OFFSET] += event.header.length
            state[lay.INNER_EVENTS] += 1
        else:
            self._window.skip(event.next_position)
        if isinstance(event.body, TransactionPayloadEvent):
            self._print_payload(event, event.body)

    def _print_others(self, events: Sequence[Event]) -> None:
        """Print the events that replace an event by the reference."""
        for event in events:
            self._handover.give(self._tables() if isinstance(event.body, RowsEvent) else ())
            self._print_lines(self._renderer.lines(event, file=self._name))
            self._handover.take()
            if isinstance(event.body, RowsEvent) and event.body.ends_statement:
                self._state[lay.STATEMENT] += 1
            self._forget_texts()
            self._context.feed(event)
        self._window.skip(events[0].next_position)

    def _tables(self) -> Iterator[Event]:
        """TABLE_MAPs of the statement that the next event belongs to."""
        for table in self._layouts.mapped(int(self._state[lay.STATEMENT])):
            yield Event(EventHeader.decode(self._window.event_bytes()), table)

    def _print_payload(self, carrier: Event, body: TransactionPayloadEvent) -> None:
        """Print the events of a TRANSACTION_PAYLOAD: a window moves along in it."""
        assert self._format is not None, "events come behind a format"
        state = self._state
        place = state[[lay.BASE, lay.OFFSET, lay.END, lay.CHECKSUM]]
        log, payload = self._window, Payload(carrier, body, self._format, file=self._path)
        state[[lay.CHECKSUM, lay.INNER_EVENTS]] = 0
        state[lay.INNER] = carrier.next_position
        try:
            self._payload = payload
            size = min(self._window_bytes, max(body.uncompressed_size, lay.PADDING))
            # Before its first event there is no magic, as there is none behind that of a file.
            self._window = TextWindow(state, payload.source, size_bytes=size, base=len(MAGIC))
            while self._print_window():
                pass
            payload.finish(int(state[lay.INNER_EVENTS]))
        finally:
            state[lay.INNER] = 0
            state[[lay.BASE, lay.OFFSET, lay.END, lay.CHECKSUM]] = place
            self._window, self._payload = log, None

    def _print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._parts.print(f"{line}\n".encode("utf-8", "surrogateescape"))

    def _add_table(self) -> None:
        event = self._decoded()
        assert isinstance(event.body, TableMapEvent), "the kernel asks for nothing else"
        self._forget_texts()
        end = event.header.length - int(self._state[lay.CHECKSUM])
        body = self._window.event_bytes()[HEADER_LENGTH + _ID_BYTES : end]
        self._layouts.add_table(event.body, body, self._flavor)

    def _forget_texts(self) -> None:
        """Keep memory bounded in logs of many tables, or of sessions that always change."""
        if self._layouts.is_full:
            self._layouts.keep(int(self._state[lay.STATEMENT]), self._flavor)
            self._context.restore()

    def _add_layout(self) -> None:
        state = self._state
        is_compressed = self._window.event_type >= EventType.WRITE_ROWS_COMPRESSED_V1
        source = self._plain if is_compressed else self._window.data
        slot, start = int(state[lay.TABLE]), int(state[lay.REQUEST])
        length = (len(self._layouts.table_map(slot).column_types) + 7) // 8
        bitmap = source[start : start + length].tobytes()
        self._layouts.add_layout(slot, int(state[lay.KIND]), bitmap, self._flavor)

    def _print_rows(self) -> None:
        """Print the rows that the kernel does not print, without those that it has printed."""
        state = self._state
        event = self._decoded()
        assert isinstance(event.body, RowsEvent), "the kernel asks for nothing else"
        table_map = self._layouts.table_map(int(state[lay.TABLE]))
        maps = TableMaps()
        maps.feed(replace(event, body=table_map), file=self._name)
        maps.feed(event, file=self._name)
        rows, kept = uncompressed(event.body), int(state[lay.EVENT_KEPT])
        flavor, options = self._flavor, self._options
        if options.verbose:
            place = (self._name, event)
            texts = printable_rows(rows, table_map, options=options, flavor=flavor, place=place)
            for text in islice(texts, kept, None):
                self._parts.add(lay.ROWS, f"{text}\n".encode("utf-8", "surrogateescape"))
        if state[lay.COUNTS_ROWS]:
            state[lay.ROW_COUNT] += max(0, row_count(rows, table_map, flavor=flavor) - kept)
        state[lay.PHASE] = lay.FINISH

    def _inflate(self) -> None:
        """Make the plain form of a compressed rows event."""
        data = self._window.event_bytes()
        try:
            plain = plain_rows(data, checksum_length=int(self._state[lay.CHECKSUM]))
        except CodecError:
            self._print_event()  # as far as the reference prints it
            raise
        if len(plain) + lay.PADDING > len(self._plain):
            self._plain = np.zeros(2 * len(plain) + lay.PADDING, np.uint8)
        self._plain[: len(plain)] = np.frombuffer(plain, np.uint8)
        self._state[lay.INFLATED] = 1

    def _set_clock(self) -> None:
        state = self._state
        zone = zone_at(int(state[lay.TIME]))
        state[[lay.CLOCK_FROM, lay.CLOCK_UNTIL, lay.CLOCK_OFFSET]] = zone[:3]
        state[lay.STAMP] = -1

    def _set_moment(self) -> None:
        """Set the local time of a commit, with the name of its zone."""
        state = self._state
        asked, zone = int(state[lay.ASKED_MOMENT]), zone_at(int(state[lay.TIME]))
        name = zone.name.encode("utf-8", "surrogateescape")[: lay.ZONE_BYTES_MAX]
        state[asked : asked + 4] = (*zone[:3], len(name))
        start = lay.ZONE if asked == lay.MOMENT else lay.ZONE + lay.ZONE_BYTES_MAX
        self._layouts.texts[start : start + len(name)] = np.frombuffer(name, np.uint8)

    def _end_statement(self) -> None:
        """Print the remaining lines of a statement of rows."""
        state, parts = self._state, self._parts
        has_encoded = self._parts.has(lay.ENCODED)
        parts.flush()
        parts.print_part(lay.HEADS)
        if has_encoded:
            parts.print(_BINLOG)
            parts.flush()
            parts.print_part(lay.ENCODED)
            parts.print(_END_OF_BINLOG)
            parts.flush()
        parts.print_part(lay.ROWS)
        if state[lay.ROW_COUNT] and state[lay.COUNTS_ROWS]:
            parts.print(b"# Number of rows: %d\n" % state[lay.ROW_COUNT])
        state[lay.ROW_COUNT] = 0

    # Not of the printer's own, which would keep its buffers until somebody looks for cycles.
    _ANSWERS: ClassVar[Mapping[int, Callable[[FastText], None]]] = MappingProxyType(
        {
            lay.ASK_EVENT: _print_event,
            lay.ASK_TABLE: _add_table,
            lay.ASK_LAYOUT: _add_layout,
            lay.ASK_ROWS: _print_rows,
            lay.ASK_IMAGES: _inflate,
            lay.ASK_CLOCK: _set_clock,
            lay.ASK_MOMENT: _set_moment,
            lay.STATEMENT_END: _end_statement,
        }
    )


def can_print_log(source: ByteReader, options: TextOptions) -> bool:
    """True if the kernel can print a log, judged by its beginning; errors come later."""
    window = Window(source, size_bytes=PIECE_BYTES)
    first = description_in(window)
    return (
        first is not None
        and not _is_foreign(format_of(first), options)
        and not _begins_relay_log(window.bytes(0, first.next_position))
    )


def _is_foreign(format_: Format, options: TextOptions) -> bool:
    """True if a file's format is old, or an option asks something that is not done for its flavor."""
    is_mysql = format_.flavor is Flavor.MYSQL
    # The kernel has no more room for the names of time zones.
    has_long_zone = any(len(name.encode()) > lay.ZONE_BYTES_MAX for name in time.tzname)
    lacks_base64 = options.base64_output is Base64Output.NEVER
    asks_more = has_long_zone or options.require_row_format or lacks_base64
    return (
        (is_mysql and asks_more)
        or options.flavor not in {None, format_.flavor}
        or format_.header_length != HEADER_LENGTH
        or bool(format_.foreign_lengths)
        or any(format_.post_header_length(kind) != length for kind, length in _POST_HEADERS)
    )


def _begins_relay_log(head: bytes) -> bool:
    """True if a file's first event says that its positions are those of other logs."""
    flags = head[len(MAGIC) + _FLAGS_AT : len(MAGIC) + HEADER_LENGTH]
    return bool(int.from_bytes(flags, "little") & HeaderFlag.RELAY_LOG)
