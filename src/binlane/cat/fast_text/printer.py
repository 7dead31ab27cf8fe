"""Prints MariaDB's logs through the text kernel: the same text as `text.TextLines`, at speed.

The kernel prints what fills a log. What it stops for is done here: events of rarer kinds go to
`TextLines`, which also knows the session's state; tables are taken in when they are first mapped;
compressed rows are inflated; rows with values that the kernel leaves alone are printed by
`text_rows`. A file that another server wrote, or whose format is of old, goes to `TextLines` whole.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.cat.fast_text.buffers import SPILL_BYTES, TextBuffers, Write
from binlane.cat.fast_text.context import SessionContext
from binlane.cat.fast_text.layouts import Layouts
from binlane.cat.fast_text.window import TextWindow
from binlane.cat.renderer import Renderer
from binlane.cat.text.event import UNFINISHED, printable_rows
from binlane.cat.text.options import Base64Output, TextOptions
from binlane.cat.text.rows import row_count
from binlane.codec.buffer import Reader
from binlane.codec.compression import decompress_record
from binlane.codec.event import Event
from binlane.codec.format import EVENT_LENGTH_MAX, HEADER_LENGTH, MAGIC, Format
from binlane.codec.rows import RowsEvent, TableMapEvent, uncompressed
from binlane.codec.types import EventType, Flavor
from binlane.errors import CodecError
from binlane.grouping.inner import expanded
from binlane.grouping.native import crc32_address
from binlane.grouping.table_maps import TableMaps
from binlane.grouping.walk import Walker
from binlane.grouping.window import ByteReader
from binlane.kernels import text_layout as lay

Bytes = npt.NDArray[np.uint8]

WINDOW_BYTES: Final = 4 << 20
_BUFFER_BYTES: Final = 4 << 20
_DAY: Final = 86_400
_QUARTER: Final = 900
_POST_HEADERS: Final = (
    (EventType.QUERY, 13),
    (EventType.TABLE_MAP, 8),
    (EventType.WRITE_ROWS_V1, 8),
)
_ID_BYTES: Final = 6
_ROWS_POST_HEADER: Final = 8
_TYPE_AT: Final = 4
_SERVER_ID: Final = slice(5, 9)
_END_AND_FLAGS: Final = slice(13, 19)
_BINLOG: Final = b"\nBINLOG '\n"
_END_OF_BINLOG: Final = b"'/*!*/;\n"


def can_print(options: TextOptions) -> bool:
    """Whether the kernel prints what these options ask for."""
    return options.print_row_event_positions and not (
        options.short_form
        or options.hexdump
        or options.print_table_metadata
        or options.rewrite_databases
        or (options.base64_output is Base64Output.NEVER and not options.verbose)
        or options.flavor is Flavor.MYSQL
    )


class FastText:
    """Prints the events of files, one file after the other.

    Args:
        renderer: Prints what the kernel does not; it gets no event of rows.
        options: What to print; `can_print` is true of them.
        write: Takes text; it is done with it when it returns.
        kernel: `print_events` of the kernels.
        window_bytes: Of a file that are looked at together.
        buffer_bytes: Text that is kept together at first.
        spill_bytes: Text of one statement that is kept in memory.
    """

    def __init__(  # noqa: PLR0913  # sizes are for tests
        self,
        renderer: Renderer,
        options: TextOptions,
        write: Write,
        *,
        kernel: Callable[..., int],
        window_bytes: int = WINDOW_BYTES,
        buffer_bytes: int = _BUFFER_BYTES,
        spill_bytes: int = SPILL_BYTES,
    ) -> None:
        self._renderer = renderer
        self._options = options
        self._write = write
        self._kernel = kernel
        self._state = np.zeros(lay.STATE_SIZE, np.int64)
        self._layouts = Layouts(with_types=options.verbose > 1)
        self._context = SessionContext(self._state, self._layouts)
        self._parts = TextBuffers(self._state, write, size=buffer_bytes, spill_bytes=spill_bytes)
        self._window_bytes = window_bytes
        self._plain: Bytes = np.zeros(lay.PADDING, np.uint8)
        self._format: Format | None = None
        self._path = self._name = ""
        self._state[lay.VERBOSE] = options.verbose
        self._state[lay.ENCODES] = options.prints_base64
        self._state[lay.COUNTS_ROWS] = options.print_row_count
        self._state[lay.SKIPS_NOTES] = options.skip_annotate
        self._state[lay.LENGTH_MAX] = EVENT_LENGTH_MAX
        self._state[lay.CRC32] = crc32_address()
        self._state[[lay.STAMP, lay.PLACE]] = -1
        self._answers: Mapping[int, Callable[[], None]] = MappingProxyType(
            {
                lay.OUT_FULL: self._room(lay.OUT),
                lay.HEADS_FULL: self._room(lay.HEADS),
                lay.NOTE_FULL: self._room(lay.NOTE),
                lay.ENCODED_FULL: self._room(lay.ENCODED),
                lay.ROWS_FULL: self._room(lay.ROWS),
                lay.ASK_EVENT: self._print_event,
                lay.ASK_TABLE: self._add_table,
                lay.ASK_LAYOUT: self._add_layout,
                lay.ASK_ROWS: self._print_rows,
                lay.ASK_IMAGES: self._inflate,
                lay.ASK_CLOCK: self._set_clock,
                lay.STATEMENT_END: self._end_statement,
            }
        )

    def print_file(self, source: ByteReader, *, path: str, name: str) -> None:
        """Print all events of a file.

        Args:
            source: Of its bytes, decrypted.
            path: As the user named it, for errors.
            name: Its base name.

        Raises:
            CodecError: At the first fault; what stands before it is printed.
            StoreError: If the file cannot be read, or a temporary one written.
        """
        self._path, self._name, self._format = path, name, None
        self._window = TextWindow(self._state, source, size_bytes=self._window_bytes)
        self._context.forget()
        state = self._state
        state[lay.CHECKSUM] = -1
        state[lay.STATEMENT] += 1
        state[[lay.PHASE, lay.INFLATED]] = 0
        try:
            while not self._window.has_event and self._window.fill():
                pass
            if self._window.event_bytes() == MAGIC:
                return
            self._print_event()
            while not self._is_foreign() and self._print_window():
                pass
            if self._is_foreign():
                self._print_rest()
            self._print_unfinished()
        finally:
            self._parts.flush()
            self._drop_pending()

    def _print_window(self) -> bool:
        """Go on until something is done that the kernel stopped for; False at the file's end."""
        state, layouts, parts = self._state, self._layouts, self._parts
        buffers = (*map(parts.__getitem__, range(lay.TEXTS)), layouts.texts, self._plain)
        status = self._kernel(self._window.data, state, buffers, layouts.tables, layouts.layouts)
        if status != lay.DONE:
            self._answers[status]()
            return True
        if self._window.fill():
            return True
        if self._window.left:
            self._print_event()
        return bool(self._window.left)

    def _room(self, buffer: int) -> Callable[[], None]:
        return lambda: self._parts.make_room(buffer, int(self._state[lay.NEED]))

    def _is_foreign(self) -> bool:
        """Whether the file is one that the kernel does not read."""
        format_ = self._format
        if format_ is None:
            return False
        return format_.flavor is not Flavor.MARIADB or any(
            format_.post_header_length(kind) != length for kind, length in _POST_HEADERS
        )

    def _print_rest(self) -> None:
        """The rest of a file without the kernel."""
        self._parts.flush()
        window = self._window
        walker = Walker(
            window.rest(), file=self._path, position=window.position, format_=self._format
        )
        for event in walker.events():
            assert walker.format is not None, "events come behind a format"
            for inner in expanded(event, walker.format):
                self._print_lines(self._renderer.lines(inner, file=self._name))

    def _decoded(self) -> Event:
        """The event that the kernel stopped at."""
        window, format_ = self._window, self._format
        walker = Walker(
            iter((window.event_bytes(),)),
            file=self._path,
            position=window.position,
            format_=format_,
        )
        event = next(walker.events())
        self._format = walker.format
        return event

    def _print_event(self) -> None:
        event = self._decoded()
        state = self._state
        if state[lay.CHECKSUM] < 0 and self._format is not None:
            state[lay.CHECKSUM] = self._format.checksum_length
        lines = self._renderer.lines(event, file=self._name)
        if self._has_pending():
            first = next(lines, None)
            if first is not None:
                self._print_lines(iter((first,)))
            self._print_unfinished()
        self._print_lines(lines)
        self._forget_texts()
        self._context.feed(event)
        self._window.skip(event.next_position)

    def _print_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._parts.print(f"{line}\n".encode("utf-8", "surrogateescape"))

    def _add_table(self) -> None:
        event = self._decoded()
        assert isinstance(event.body, TableMapEvent), "the kernel asks for nothing else"
        flavor = Flavor.MARIADB
        self._forget_texts()
        end = event.header.length - int(self._state[lay.CHECKSUM])
        body = self._window.event_bytes()[HEADER_LENGTH + _ID_BYTES : end]
        self._layouts.add_table(event.body, body, flavor)

    def _forget_texts(self) -> None:
        """Keep memory bounded in logs of many tables, or of sessions that always change."""
        if self._layouts.is_full:
            self._layouts.keep(int(self._state[lay.STATEMENT]), Flavor.MARIADB)
            self._context.restore()

    def _add_layout(self) -> None:
        state = self._state
        is_compressed = self._window.event_type >= EventType.WRITE_ROWS_COMPRESSED_V1
        source = self._plain if is_compressed else self._window.data
        slot, start = int(state[lay.TABLE]), int(state[lay.REQUEST])
        length = (len(self._layouts.table_map(slot).column_types) + 7) // 8
        bitmap = source[start : start + length].tobytes()
        self._layouts.add_layout(slot, int(state[lay.KIND]), bitmap, Flavor.MARIADB)

    def _print_rows(self) -> None:
        """Print the rows that the kernel leaves alone, but for those that it has printed."""
        state = self._state
        event = self._decoded()
        assert isinstance(event.body, RowsEvent), "the kernel asks for nothing else"
        table_map = self._layouts.table_map(int(state[lay.TABLE]))
        maps = TableMaps()
        maps.feed(replace(event, body=table_map), file=self._name)
        maps.feed(event, file=self._name)
        rows, kept = uncompressed(event.body), int(state[lay.EVENT_KEPT])
        flavor, options = Flavor.MARIADB, self._options
        if options.verbose:
            place = (self._name, event)
            texts = printable_rows(rows, table_map, options=options, flavor=flavor, place=place)
            for text in islice(texts, kept, None):
                self._parts.add(lay.ROWS, f"{text}\n".encode("utf-8", "surrogateescape"))
        if options.print_row_count:
            state[lay.ROW_COUNT] += max(0, row_count(rows, table_map, flavor=flavor) - kept)
        state[lay.PHASE] = lay.FINISH

    def _inflate(self) -> None:
        """Make the plain form of a compressed rows event."""
        data = self._window.event_bytes()
        try:
            plain = plain_rows(data, checksum_length=int(self._state[lay.CHECKSUM]))
        except CodecError:
            self._decoded()
            raise
        if len(plain) + lay.PADDING > len(self._plain):
            self._plain = np.zeros(2 * len(plain) + lay.PADDING, np.uint8)
        self._plain[: len(plain)] = np.frombuffer(plain, np.uint8)
        self._state[lay.INFLATED] = 1

    def _set_clock(self) -> None:
        state = self._state
        state[[lay.CLOCK_FROM, lay.CLOCK_UNTIL, lay.CLOCK_OFFSET]] = zone_at(int(state[lay.TIME]))
        state[lay.STAMP] = -1

    def _has_pending(self) -> bool:
        state = self._state
        ends = (lay.HEADS_AT, lay.ENCODED_AT, lay.ROWS_AT, lay.SPILLED)
        return any(state[end] for end in ends)

    def _end_statement(self) -> None:
        """Print what the rows events of a statement have left, which is much."""
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
        if state[lay.ROW_COUNT] and self._options.print_row_count:
            parts.print(b"# Number of rows: %d\n" % state[lay.ROW_COUNT])
        state[lay.ROW_COUNT] = 0

    def _print_unfinished(self) -> None:
        """Print what rows events have left whose statement does not end: to be read, not run."""
        if self._has_pending():
            self._parts.flush()
            self._parts.print_part(lay.HEADS)
            self._parts.print_part(lay.ROWS)
            self._parts.print(f"{UNFINISHED}\n".encode())
            self._drop_pending()

    def _drop_pending(self) -> None:
        """Forget a statement that an error has cut."""
        self._parts.drop()
        self._state[[lay.NOTE_AT, lay.ROW_COUNT]] = 0


def plain_rows(data: bytes, *, checksum_length: int) -> bytes:
    """A compressed rows event of MariaDB → the plain one, which a BINLOG statement takes.

    Raises:
        CodecError: If its bytes are none.
    """
    reader = Reader(data, HEADER_LENGTH + _ROWS_POST_HEADER, len(data) - checksum_length)
    bitmap_length = (reader.packed_int() + 7) // 8
    type_code = data[_TYPE_AT] - (EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1)
    reader.take(bitmap_length * (1 + (type_code == EventType.UPDATE_ROWS_V1)))
    fixed = data[HEADER_LENGTH : reader.offset]
    images = decompress_record(reader.rest())
    length = HEADER_LENGTH + len(fixed) + len(images) + checksum_length
    plain = b"".join(
        (
            data[:_TYPE_AT],
            bytes((type_code,)),
            data[_SERVER_ID],
            length.to_bytes(4, "little"),
            data[_END_AND_FLAGS],
            fixed,
            images,
        )
    )
    return plain + zlib.crc32(plain).to_bytes(4, "little") if checksum_length else plain


@lru_cache(maxsize=64)
def zone_at(timestamp: int) -> tuple[int, int, int]:
    """The local time's distance from UTC in seconds, and the times from and until it lasts."""
    offset = time.localtime(timestamp).tm_gmtoff
    for span in (_DAY, _QUARTER):
        start = timestamp - timestamp % span
        if all(time.localtime(edge).tm_gmtoff == offset for edge in (start, start + span - 1)):
            return start, start + span, offset
    return timestamp, timestamp + 1, offset
