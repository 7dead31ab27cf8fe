"""A binlog file → record batches by kernels: the fast path of `binlane.scan`.

It gives what `batches` gives for the file's event groups; only where a batch ends may differ. The
file goes through a window of a few MiB. Each event is checked as the reference decoder checks it.
Where the kernels meet what they are not made for, be it damage, encryption or a type of old, the
reference decoder looks at the same bytes, and raises what is to be raised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event, EventHeader
from binlane.codec.format import HEADER_LENGTH, MAGIC
from binlane.codec.types import EventType
from binlane.columnar.batches import ChangeBatcher
from binlane.columnar.located_rows import NotedEvents, Small
from binlane.columnar.noted_rows import NotedRows
from binlane.columnar.selection import GroupFacts, Selection
from binlane.errors import CodecError
from binlane.grouping.event_group import group_events
from binlane.grouping.first_event import description_in, format_of
from binlane.grouping.scanner import Scanner, is_fast
from binlane.grouping.unexpected import UnexpectedError
from binlane.grouping.walk import Walker
from binlane.grouping.window import Bytes, ByteSource, Window
from binlane.kernels import layout
from binlane.kernels.load import kernels

if TYPE_CHECKING:
    from binlane.codec.encryption import KeyRing
    from binlane.columnar.payload_rows import PayloadRows

KERNEL_ROWS_MAX_DEFAULT: Final = 65536
WINDOW_BYTES: Final = 6 << 20
HELD_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """How much the fast path holds.

    Attributes:
        rows_max: Rows of a batch.
        window_bytes: How many bytes of the file are looked at at once.
        held_bytes_max: Of an event group; a larger one is read twice, first to see that it ends.
    """

    rows_max: int = KERNEL_ROWS_MAX_DEFAULT
    window_bytes: int = WINDOW_BYTES
    held_bytes_max: int = HELD_BYTES_MAX


def kernel_batches(  # noqa: PLR0913 - as `scan`
    source: ByteSource,
    *,
    file: str,
    name: str,
    selection: Selection | None = None,
    columns: Collection[str] | None = None,
    keys: KeyRing | None = None,
    options: KernelOptions | None = None,
) -> Iterator[pa.RecordBatch]:
    """The row changes of one file as record batches.

    Args:
        source: The file's bytes.
        file: Its name, as messages shall give it.
        name: Its base name, as rows give it.
        selection: Which groups and tables, all if None.
        columns: Names of the tables' columns to keep, all if None.
        keys: If the file is encrypted.
        options: How much is held.

    Yields:
        As `batches`.

    Raises:
        CodecError: At the first fault, with file and position, behind all rows before it.
    """
    reader = _FileReader(
        source,
        file=file,
        name=name,
        selection=selection or Selection(),
        columns=columns,
        keys=keys,
        options=options or KernelOptions(),
    )
    try:
        yield from reader.batches()
    except CodecError:
        yield from reader.finish()
        raise
    yield from reader.finish()


class _FileReader:
    """Reads one file."""

    def __init__(  # noqa: PLR0913 - what `kernel_batches` takes
        self,
        source: ByteSource,
        *,
        file: str,
        name: str,
        selection: Selection,
        columns: Collection[str] | None,
        keys: KeyRing | None,
        options: KernelOptions,
    ) -> None:
        self._source = source
        self._file = file
        self._name = name
        self._selection = selection
        self._keys = keys
        self._options = options
        self._reference = ChangeBatcher(
            selection=selection, columns=columns, rows_max=options.rows_max
        )
        self._rows = NotedRows(
            self._reference, scope=selection.scope, rows_max=options.rows_max, file=file
        )
        self._payloads: PayloadRows | None = None
        self._window = Window(source, size_bytes=options.window_bytes)
        self._known_end = 0

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The batches that are not full."""
        yield from self._rows.finish()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches that are full."""
        first = description_in(self._window)
        if first is None:
            yield from self._read_on_from_start(0)
            return
        self._scanner = Scanner(format_of(first))
        self._scanner.state[layout.OFFSET] = len(MAGIC)
        try:
            yield from self._scan_all()
        except UnexpectedError:
            yield from self._process()
            yield from self._read_on()

    def _scan_all(self) -> Iterator[pa.RecordBatch]:
        """Go through the file, window by window."""
        scanner = self._scanner
        while True:
            status = scanner.scan(self._window.data, self._window.end)
            if status == layout.DAMAGED:
                raise UnexpectedError
            if status == layout.ASK:
                yield from self._answer()
                continue
            is_full = scanner.is_full
            if not is_full and not self._window.is_full and self._window.fill():
                continue
            yield from self._process()
            self._cut()
            if is_full:
                scanner.make_room()
                continue
            if self._is_too_large():
                yield from self._look_ahead()
            elif not self._window.fill():
                if self._window.end > scanner.offset:
                    raise UnexpectedError
                return

    def _answer(self) -> Iterator[pa.RecordBatch]:
        """Look at the event that the kernel asks about."""
        event = self._asked()
        if isinstance(event.body, FormatDescriptionEvent):
            yield from self._process()
            format_ = event.body.format
            if not is_fast(format_):
                raise UnexpectedError
            self._scanner.take_format(format_)
            self._reference.take_format(format_)
            self._rows.forget_tables()
            self._payloads = None

    def _asked(self) -> Event:
        scanner, window = self._scanner, self._window
        start = scanner.offset
        header = EventHeader.decode(window.bytes(start, start + HEADER_LENGTH))
        try:
            data = window.bytes(start, start + header.length)
            return scanner.look_at(data, window.base + start)
        except CodecError:
            raise UnexpectedError from None  # it is raised again behind what came before

    def _cut(self) -> None:
        """Forget what lies before the open group, or before the next event."""
        scanner, window = self._scanner, self._window
        count = scanner.offset
        if scanner.is_open and not self._is_known_whole():
            count = scanner.group_position - window.base
        scanner.forget(count)
        window.drop(count)

    def _is_known_whole(self) -> bool:
        """Whether the open group is one that was looked through and found complete."""
        return self._window.base + self._scanner.offset < self._known_end

    def _is_too_large(self) -> bool:
        scanner = self._scanner
        return (
            scanner.is_open
            and not self._is_known_whole()
            and self._window.end - (scanner.group_position - self._window.base)
            > self._options.held_bytes_max
        )

    def _look_ahead(self) -> Iterator[pa.RecordBatch]:
        """Look through a large group to its end; go back to its start if it is wanted."""
        scanner, window = self._scanner, self._window
        start = scanner.group_position
        with scanner.one_group():
            while scanner.is_in(start):
                scanner.drop_noted()
                status = scanner.scan(window.data, window.end)
                if status == layout.DAMAGED:
                    raise UnexpectedError
                if status == layout.ASK:
                    if scanner.is_open:
                        self._asked()
                    continue
                scanner.drop_noted()
                count = scanner.offset
                if scanner.is_in(start):
                    scanner.forget(count)
                    window.drop(count)
                    if not window.fill():
                        if window.end > scanner.offset:
                            raise UnexpectedError
                        scanner.close()
                        return
            is_wanted = scanner.group_count > 0 and self._wants_large()
            end = window.base + scanner.offset
        if is_wanted:
            self._source = self._source.reread(start)
            self._window = Window(self._source, size_bytes=self._options.window_bytes, base=start)
            scanner.rewind(start)
            self._known_end = end
        yield from ()

    def _wants_large(self) -> bool:
        return bool(self._wanted_groups(1)[0])

    def _wanted_groups(self, count: int) -> Bytes:
        """Which of the complete groups are selected, a flag each."""
        scanner = self._scanner
        if self._selection.is_unbounded:
            return np.ones(count, np.uint8)
        wanted = np.zeros(count, np.uint8)
        for number in range(count):
            length = int(scanner.groups[layout.GROUP_GTID_LENGTH, number])
            start = number * layout.GTID_TEXT_MAX
            facts = GroupFacts(
                file=self._name,
                position=int(scanner.groups[layout.GROUP_START, number]),
                timestamp=int(scanner.groups[layout.GROUP_TIME, number]),
                gtid_text=scanner.texts[start : start + length].tobytes().decode(),
            )
            wanted[number] = self._selection.includes(facts)
        return wanted

    def _process(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of the complete groups, and of one that is known to become complete."""
        scanner = self._scanner
        count = scanner.group_count
        lengths = scanner.groups[layout.GROUP_GTID_LENGTH, :count].astype(np.int32)
        owners = np.empty(scanner.events_done, np.int32)
        picked = np.empty_like(owners)
        wanted = self._wanted_groups(count)
        picked = picked[: kernels().own(scanner.groups, wanted, owners, picked)]
        if scanner.is_open and self._is_known_whole():
            left = int(scanner.state[layout.EVENTS]) - owners.shape[0]
            picked = np.concatenate(
                [picked, np.arange(owners.shape[0], owners.shape[0] + left, dtype=np.int32)]
            )
            owners = np.concatenate([owners, np.full(left, count, np.int32)])
            length = scanner.state[layout.GTID_LENGTH]
            lengths = np.concatenate([lengths, [length]]).astype(np.int32)
        if picked.shape[0]:
            offsets = scanner.events[layout.EVENT_OFFSET, : owners.shape[0]]
            noted = NotedEvents(
                data=self._window.data,
                events=scanner.events,
                groups=owners,
                texts=scanner.texts,
                lengths=lengths,
                positions=offsets.astype(np.int64) + self._window.base,
                file=self._name,
                tables=scanner.tables,
                format_=scanner.format,
            )
            yield from self._take(noted, picked)
        if scanner.is_open and self._is_known_whole():
            scanner.drop_noted()
        scanner.forget(0)

    def _take(self, noted: NotedEvents, picked: Small) -> Iterator[pa.RecordBatch]:
        """Take plain events and transaction payloads, in log order."""
        maps = noted.events[layout.EVENT_MAP]
        if maps[: noted.groups.shape[0]].min() >= 0:
            yield from self._rows.take(noted, picked)
            return
        is_special = maps[picked] < 0
        cuts = np.flatnonzero(np.diff(is_special)) + 1
        for run in np.split(picked, cuts):
            if maps[run[0]] < 0:
                yield from self._payload_rows().take(noted, run)
            else:
                yield from self._rows.take(noted, run)

    def _payload_rows(self) -> PayloadRows:
        """What takes transaction payloads in this format; MariaDB's logs do without."""
        if self._payloads is None:
            from binlane.columnar.payload_rows import PayloadRows  # noqa: PLC0415 - as it says

            self._payloads = PayloadRows(self._rows, file=self._file)
            self._payloads.take_format(self._scanner.format)
        return self._payloads

    def _read_on(self) -> Iterator[pa.RecordBatch]:
        """Let the reference decoder read on from the open group, or the next event, to the end.

        Raises:
            CodecError: If something is wrong there, which is why it was called, mostly.
        """
        scanner, window = self._scanner, self._window
        start = scanner.group_position
        offset = scanner.offset
        if int(window.data[offset + 4]) == EventType.START_ENCRYPTION:
            yield from self._read_on_from_start(start)
            return
        yield from self._rows.finish()
        if start >= window.base:
            chunks: Iterable[bytes] = window.rest(start - window.base)
        else:
            # Part of a group that is not held: what is wrong shows at the next event.
            position = window.base + offset
            format_ = scanner.format
            walker = Walker(
                window.rest(offset), file=self._file, position=position, format_=format_
            )
            for _ in walker.events():
                break
            chunks = Window(self._source.reread(start), size_bytes=self._options.window_bytes).rest(
                0
            )
        self._reference.take_format(scanner.format)
        walker = Walker(chunks, file=self._file, position=start, format_=scanner.format)
        for group in group_events(walker.events(), file=self._name):
            yield from self._reference.feed(group)

    def _read_on_from_start(self, done: int) -> Iterator[pa.RecordBatch]:
        """Let the reference decoder read the whole file, which knows of encryption.

        Args:
            done: Groups before this position were given already.
        """
        yield from self._rows.finish()
        chunks = Window(self._source.reread(0), size_bytes=self._options.window_bytes).rest(0)
        walker = Walker(chunks, file=self._file, keys=self._keys)
        for group in group_events(walker.events(), file=self._name):
            if group.is_control or group.position >= done:
                yield from self._reference.feed(group)
