"""Noted rows events of many tables → batches: by kernels, and by the reference decoder where those cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa

from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.scanner import KnownTable
from binlane.log.grouping.unexpected import UnexpectedError
from binlane.log.grouping.window import Bytes, padded
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.names import TableName
from binlane.tables.columnar.batches import ChangeBatcher
from binlane.tables.columnar.builder import RowsSource
from binlane.tables.columnar.change_arrays import first_numbers, needs_numbers
from binlane.tables.columnar.compressed import ARENA_BYTES, COMPRESSED_TYPES, inflated
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.located_rows import SCRATCH_CELLS, Located, LocatedRows, merged
from binlane.tables.columnar.log_notes import RowItem
from binlane.tables.columnar.noted_events import NotedEvents, Small
from binlane.tables.columnar.table_schema import INVALID_DATES, TableSchema

ROWS_ENOUGH: Final = 1024
"""Number of rows from which putting batches together costs more than it gains."""
BATCH_BYTES_MAX: Final = 4 << 20
PENDING_BYTES_MAX: Final = 48 << 20


@dataclass(slots=True)
class _Table:
    schema: TableSchema
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0


class PendingBatches:
    """Collects batches of tables until they are large enough.

    Args:
        rows_max: Rows of a batch that is handed on.
    """

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._rows_enough = min(rows_max, ROWS_ENOUGH)
        self._tables: dict[TableName, _Table] = {}
        self._size_bytes = 0

    def add(self, schema: TableSchema, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; give what is large enough now."""
        table = self._tables.get(schema.name)
        if table is not None and (
            not table.schema.arrow.equals(schema.arrow, check_metadata=True)
            or table.rows + batch.num_rows > self._rows_max
        ):
            yield from self._give(schema.name)
            table = None
        if table is None and self._rows_enough <= batch.num_rows <= self._rows_max:
            yield batch
            return
        if table is None:
            table = self._tables[schema.name] = _Table(schema)
        size_bytes = batch.nbytes
        table.batches.append(batch)
        table.rows += batch.num_rows
        table.size_bytes += size_bytes
        self._size_bytes += size_bytes
        if table.rows >= self._rows_enough or table.size_bytes >= BATCH_BYTES_MAX:
            yield from self._give(schema.name)
        elif self._size_bytes >= PENDING_BYTES_MAX:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All that is there."""
        for name in list(self._tables):
            yield from self._give(name)

    def _give(self, name: TableName) -> Iterator[pa.RecordBatch]:
        table = self._tables.pop(name)
        self._size_bytes -= table.size_bytes
        whole = merged(table.batches)
        yield whole.slice(0, self._rows_max)
        if whole.num_rows > self._rows_max:
            metadata = {
                key: value for key, value in whole.schema.metadata.items() if key != INVALID_DATES
            }
            rest = whole.replace_schema_metadata(metadata)
            for offset in range(self._rows_max, whole.num_rows, self._rows_max):
                yield rest.slice(offset, self._rows_max)


# Images of another layout; images that are compressed.
_SCALAR: Final = 1
_COMPRESSED: Final = 2
_CLASSES: Final = np.zeros(256, np.uint8)
_CLASSES[EventType.PARTIAL_UPDATE_ROWS] = _SCALAR
_CLASSES[list(COMPRESSED_TYPES)] = _COMPRESSED


class NotedRows:
    """Turns noted events into batches, and keeps those that are not large enough yet.

    Args:
        reference: Decodes what kernels cannot, knows the tables' schemas and what is wanted.
        file: The file's name, as messages shall give it.
        counters: Told what the reference decoder does.
    """

    def __init__(self, reference: ChangeBatcher, *, file: str, counters: ReadCounters) -> None:
        self._reference = reference
        self._counters = counters
        self._file = file
        self._pending = PendingBatches(reference.rows_max)
        self._decoders: dict[bytes, LocatedRows | None] = {}
        self._wanted: tuple[Sequence[KnownTable], int, Bytes] = ((), 0, np.zeros(0, np.uint8))
        self._lost: list[int] = []
        self._scratch = np.empty(SCRATCH_CELLS, np.int32)
        self._arena: Bytes | None = None

    def forget_tables(self) -> None:
        """Another format begins, in which table maps may mean something else."""
        self._decoders.clear()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All batches that were kept."""
        yield from self._reference.finish()
        yield from self._pending.finish()

    def take(self, noted: NotedEvents, picked: Small) -> Iterator[RowItem]:
        """Take rows events of one run in log order.

        Args:
            noted: The noted events of the run.
            picked: Numbers of the events to take; each has a table map.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        kept, found = np.empty_like(picked), np.zeros(1, np.uint8)
        wanted = self._wanted_tables(noted.tables)
        if self._lost:
            self._leave_out(noted, picked)
        count = kernels().choose(noted.events, picked, wanted, _CLASSES, kept, found)
        if not count:
            return
        picked, classes = kept[:count], int(found[0])
        if classes & _SCALAR:
            yield from self._take_by_reference(noted, picked)
            return
        if not classes & _COMPRESSED:
            yield from self._take_plain(noted, noted, picked)
            return
        try:
            for piece, plain in inflated(noted, picked, self._room_to_inflate()):
                yield from self._take_plain(noted, plain, piece)
                picked = picked[piece.shape[0] :]
        except UnexpectedError:
            yield from self._take_by_reference(noted, picked)

    def _room_to_inflate(self) -> Bytes:
        if self._arena is None:
            self._arena = padded(ARENA_BYTES)
        return self._arena

    def _wanted_tables(self, tables: Sequence[KnownTable]) -> Bytes:
        """A flag for each table: whether it is wanted. Tables only ever come to a list."""
        known, version, flags = self._wanted
        reference = self._reference
        is_old = known is not tables or version != reference.wants_version
        if is_old or flags.shape[0] < len(tables):
            flags = np.array([reference.wants(table.table_map.name) for table in tables], np.uint8)
            self._wanted = tables, reference.wants_version, flags
            self._lost = [
                number
                for number, table in enumerate(tables)
                if reference.loses(table.table_map.name)
            ]
        return flags

    def _leave_out(self, noted: NotedEvents, picked: Small) -> None:
        """Have the rows of events counted that the filter leaves out of tables that it names."""
        maps = noted.events[layout.EVENT_MAP, picked]
        for index in picked[np.isin(maps, self._lost)].tolist():
            try:
                event = noted.event(index)
            except CodecError as error:
                raise error.at(self._file, int(noted.positions[index])) from None
            assert isinstance(event.body, RowsEvent), "only these have a table map"
            table = noted.tables[int(noted.events[layout.EVENT_MAP, index])]
            self._reference.leave_out(table.table_map, event.body, noted.source(index, event))

    def _take_plain(
        self, noted: NotedEvents, plain: NotedEvents, picked: Small
    ) -> Iterator[RowItem]:
        """Convert events whose images are plain; all of them before any of it is given."""
        try:
            made = [made for parts in _runs(plain, picked) for made in self._located(plain, parts)]
        except (UnexpectedError, CodecError):
            yield from self._take_by_reference(noted, picked)
            return
        first = None
        if made and needs_numbers(self._reference.options.change_columns, is_xa=noted.is_xa):
            notes = [located.notes for located in made]
            first = first_numbers(self._reference.ordinals, plain, notes)
        for located in made:
            yield from self._pending.add(located.schema, located.batch(plain, first))

    def _located(self, noted: NotedEvents, parts: Mapping[int, Small]) -> Iterator[Located]:
        for number, picked in parts.items():
            yield from self._decoder(noted.tables[number]).located(noted, picked)

    def _decoder(self, table: KnownTable) -> LocatedRows:
        if table.key not in self._decoders:
            schema = self._reference.schema(table.table_map)
            self._decoders[table.key] = None
            self._decoders[table.key] = self._new_decoder(schema)
        decoder = self._decoders[table.key]
        if decoder is None:
            raise UnexpectedError
        return decoder

    def _new_decoder(self, schema: TableSchema) -> LocatedRows:
        if not schema.as_json:
            return LocatedRows(schema, self._scratch)
        from binlane.tables.columnar.json_images import LocatedJson  # noqa: PLC0415 - few readers want JSON

        return LocatedJson(schema, self._scratch)

    def _take_by_reference(self, noted: NotedEvents, picked: Small) -> Iterator[RowItem]:
        """Decode events value by value; raises or tells what is wrong with them, if anything is."""
        yield from self._pending.finish()
        for _, indexes in groupby(picked.tolist(), key=lambda index: int(noted.groups[index])):
            try:
                events = []
                for index in indexes:
                    position = int(noted.positions[index])
                    events.append((index, noted.event(index)))
            except CodecError as error:
                yield from self._reference.finish()
                raise error.at(self._file, position) from None
            self._counters.groups_by_reference += 1
            for index, event in events:
                assert isinstance(event.body, RowsEvent), "only these have a table map"
                self._counters.bytes_by_reference += event.header.length
                table = noted.tables[int(noted.events[layout.EVENT_MAP, index])]
                source = noted.source(index, event)
                yield from self._reference.add(table.table_map, event.body, source)
        yield from self._reference.finish()

    def count_by_reference(self, event: Event) -> None:
        """Count an event that holds a group, and that the reference decoder decodes."""
        self._counters.groups_by_reference += 1
        self._counters.bytes_by_reference += event.header.length

    def tell_by_reference(self, event: Event, source: RowsSource) -> Iterator[RowItem]:
        """Take one event that is decoded already and is no row."""
        yield from self._pending.finish()
        yield from self._reference.tell(event, source, is_wanted=True)

    def add_by_reference(
        self, table: KnownTable, body: RowsEvent, source: RowsSource
    ) -> Iterator[RowItem]:
        """Take one event that is decoded already; `finish` gives what it leaves."""
        yield from self._pending.finish()
        yield from self._reference.add(table.table_map, body, source)


def _by_map(noted: NotedEvents, picked: Small) -> dict[int, Small]:
    """Events by the number of their table map."""
    ends = np.zeros(len(noted.tables), np.int32)
    ordered = np.empty_like(picked)
    kernels().order(noted.events, picked, ends, ordered)
    starts = np.concatenate([[0], ends[:-1]])
    numbers = np.flatnonzero(ends > starts).tolist()
    return {number: ordered[starts[number] : ends[number]] for number in numbers}


def _runs(noted: NotedEvents, picked: Small) -> Iterator[dict[int, Small]]:
    """Events by table map, cut where a table's map changes, so that its rows stay in log order."""
    parts = _by_map(noted, picked)
    names = {number: noted.tables[number].table_map.name for number in parts}
    if len(set(names.values())) == len(names):
        yield parts
        return
    start = 0
    current: dict[TableName, int] = {}
    for index, number in enumerate(noted.events[layout.EVENT_MAP, picked].tolist()):
        if current.setdefault(names[number], number) != number:
            yield _by_map(noted, picked[start:index])
            start, current = index, {names[number]: number}
    yield _by_map(noted, picked[start:])
