"""Noted rows events of many tables → batches: by kernels, and by the reference decoder where those cannot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa

from binlane.codec.rows import RowsEvent
from binlane.codec.types import EventType
from binlane.columnar.batches import ChangeBatcher
from binlane.columnar.builder import RowsSource
from binlane.columnar.compressed import ARENA_BYTES, IS_COMPRESSED, inflated
from binlane.columnar.located_rows import SCRATCH_CELLS, LocatedRows, NotedEvents, Small
from binlane.columnar.pending import PendingBatches
from binlane.columnar.table_schema import TableSchema
from binlane.errors import CodecError
from binlane.grouping.scanner import KnownTable
from binlane.grouping.unexpected import UnexpectedError
from binlane.grouping.window import Bytes, padded
from binlane.kernels import layout
from binlane.kernels.load import kernels
from binlane.names import TableName
from binlane.scope.scope import Scope

# Their images have another layout.
IS_SCALAR: Final = np.zeros(256, np.bool_)
IS_SCALAR[EventType.PARTIAL_UPDATE_ROWS] = True


class NotedRows:
    """Turns noted events into batches, and keeps those that are not large enough yet.

    Args:
        reference: Decodes what kernels cannot, and knows the tables' schemas.
        scope: The tables that are wanted.
        rows_max: Rows of a batch.
        file: The file's name, as messages shall give it.
    """

    def __init__(self, reference: ChangeBatcher, *, scope: Scope, rows_max: int, file: str) -> None:
        self._reference = reference
        self._scope = scope
        self._file = file
        self._pending = PendingBatches(rows_max)
        self._decoders: dict[bytes, LocatedRows | None] = {}
        self._is_wanted: dict[bytes, bool] = {}
        self._scratch = np.empty(SCRATCH_CELLS, np.int32)
        self._arena: Bytes | None = None

    def forget_tables(self) -> None:
        """Another format begins, in which table maps may mean something else."""
        self._decoders.clear()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All batches that were kept."""
        yield from self._reference.finish()
        yield from self._pending.finish()

    def take(self, noted: NotedEvents, picked: Small) -> Iterator[pa.RecordBatch]:
        """Take rows events of one run in log order.

        Args:
            noted: The events.
            picked: Which of them; each has a table map.

        Raises:
            CodecError: With file and position, if a row cannot be decoded.
        """
        numbers = noted.events[layout.EVENT_MAP, picked]
        wanted = np.array([self._wants(table) for table in noted.tables], np.bool_)
        picked = np.ascontiguousarray(picked[wanted[numbers]])
        if not picked.shape[0]:
            return
        types = noted.events[layout.EVENT_TYPE, picked]
        if IS_SCALAR[types].any():
            yield from self._take_by_reference(noted, picked)
            return
        if not IS_COMPRESSED[types].any():
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

    def _wants(self, table: KnownTable) -> bool:
        if table.key not in self._is_wanted:
            name = TableName(table.table_map.database, table.table_map.table)
            self._is_wanted[table.key] = self._scope.includes(name)
        return self._is_wanted[table.key]

    def _take_plain(
        self, noted: NotedEvents, plain: NotedEvents, picked: Small
    ) -> Iterator[pa.RecordBatch]:
        """Convert events whose images are plain; all of them before any of it is given."""
        try:
            made = [made for run in _runs(plain, picked) for made in self._convert(plain, run)]
        except (UnexpectedError, CodecError):
            yield from self._take_by_reference(noted, picked)
            return
        for schema, batch in made:
            yield from self._pending.add(schema, batch)

    def _convert(
        self, noted: NotedEvents, picked: Small
    ) -> Iterator[tuple[TableSchema, pa.RecordBatch]]:
        ends = np.zeros(len(noted.tables), np.int32)
        ordered = np.empty_like(picked)
        kernels().order(noted.events, picked, ends, ordered)
        starts = np.concatenate([[0], ends[:-1]])
        for number in np.flatnonzero(ends > starts).tolist():
            decoder = self._decoder(noted.tables[number])
            for batch in decoder.batches(noted, ordered[starts[number] : ends[number]]):
                yield decoder.schema, batch

    def _decoder(self, table: KnownTable) -> LocatedRows:
        if table.key not in self._decoders:
            schema = self._reference.schema(table.table_map)
            self._decoders[table.key] = None
            self._decoders[table.key] = LocatedRows(schema, self._scratch)
        decoder = self._decoders[table.key]
        if decoder is None:
            raise UnexpectedError
        return decoder

    def _take_by_reference(self, noted: NotedEvents, picked: Small) -> Iterator[pa.RecordBatch]:
        """Decode events value by value; raises what is wrong with them, if anything is."""
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
            for index, event in events:
                assert isinstance(event.body, RowsEvent), "only these have a table map"
                table = noted.tables[int(noted.events[layout.EVENT_MAP, index])]
                source = RowsSource(
                    gtid=noted.gtid(index),
                    timestamp=event.header.timestamp,
                    file=noted.file,
                    position=event.position,
                )
                yield from self._reference.add(table.table_map, event.body, source)
        yield from self._reference.finish()

    def add_by_reference(
        self, table: KnownTable, body: RowsEvent, source: RowsSource
    ) -> Iterator[pa.RecordBatch]:
        """Take one event that is decoded already; `finish` gives what it leaves."""
        yield from self._pending.finish()
        yield from self._reference.add(table.table_map, body, source)


def _runs(noted: NotedEvents, picked: Small) -> Iterator[Small]:
    """Cut events where a table's map changes, so that its rows stay in log order."""
    numbers = noted.events[layout.EVENT_MAP, picked]
    present = np.flatnonzero(np.bincount(numbers)).tolist()
    names = {number: _name(noted.tables[number]) for number in present}
    if len(set(names.values())) == len(present):
        yield picked
        return
    start = 0
    current: dict[TableName, int] = {}
    for index, number in enumerate(numbers.tolist()):
        if current.setdefault(names[number], number) != number:
            yield picked[start:index]
            start, current = index, {names[number]: number}
    yield picked[start:]


def _name(table: KnownTable) -> TableName:
    return TableName(table.table_map.database, table.table_map.table)
