"""The tables of a log as they are at one time: names and columns, and their changes as batches.

A change is one row: the table's columns as they are behind the change, of a delete as they were
before it, and the image before as a struct. Nothing here knows of DuckDB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.errors import BinlaneError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.positions import FilePosition, file_number
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.image_changes import (
    CHANGE_OPS,
    OP,
    ImageChanges,
    WholeChanges,
    struct_of,
    taken,
)
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import (
    CHANGE_TYPES,
    ReadOptions,
    absent_columns,
    table_schema,
)
from binlane.tables.columnar.unify import cast_exactly, spelled_alike, unify_schemas
from binlane.tables.query.row_texts import RowText, RowTexts
from binlane.tables.query.unread_parts import PlaceCondition, QueryWish
from binlane.tables.ranges.cutting import Cuts, LogExtent, Part
from binlane.tables.ranges.log_file_facts import PIECE_BYTES
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.read import read_range

BEFORE: Final = "_before"
"""Name of the column with the image before the change, a struct; NULL of an insert."""
_FIRST: Final = ("_op", "_timestamp", "_gtid")
_LAST: Final = ("_file", "_pos", "_row", "_seq", "_server_id")
_TEXT_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("_statement", pa.string()),
    pa.field("_thread_id", pa.int64()),
]
_TEXTS: Final = pa.schema(_TEXT_FIELDS)
"""Columns of the statement that a change came from, NULL where the log does not tell."""
_TEXTS_FOUND: Final = pa.schema(
    [each.with_name(name) for each, name in zip(_TEXTS, RowText._fields, strict=True)]
)
_ADDED: Final = frozenset({*_FIRST, *_LAST, *_TEXTS.names, BEFORE})
_RANGE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable:
    """A table of a log.

    Attributes:
        name: The name of the table at its server.
        own: Its columns, by the names that the log has for them: all that it ever had.
        schema: The columns of its changes: the change columns, and its own, which have a `_` more
            behind their names where these would clash.
        shown: The name in `schema` of each of its own columns, in the order of `own`.
        spellings: The names that the log has for each of them, which differ in case only.
    """

    name: TableName
    own: pa.Schema
    schema: pa.Schema
    shown: tuple[str, ...]
    spellings: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, name: TableName, schemas: Sequence[pa.Schema]) -> LogTable:
        """Make the table of the columns that it has, one schema after the other."""
        own = unify_schemas(spelled_alike(schemas[-1].names, schemas))
        spellings: dict[str, set[str]] = {}
        for schema in schemas:
            for spelled in schema.names:
                spellings.setdefault(spelled.lower(), set()).add(spelled)
        used = set(_ADDED)
        shown = []
        for spelled in own.names:
            found = spelled
            while found.lower() in used:
                found += "_"
            used.add(found.lower())
            shown.append(found)
        fields = [each.with_name(name) for each, name in zip(own, shown, strict=True)]
        schema = pa.schema(
            [
                *(pa.field(each, CHANGE_TYPES[each]) for each in _FIRST),
                *fields,
                pa.field(BEFORE, pa.struct(fields)),
                *_TEXTS,
                *(pa.field(each, CHANGE_TYPES[each]) for each in _LAST),
            ]
        )
        return cls(
            name=name,
            own=own,
            schema=schema,
            shown=tuple(shown),
            spellings=tuple(frozenset(spellings[each.lower()]) for each in own.names),
        )

    @property
    def renamed(self) -> dict[str, str]:
        """The columns of its own that have other names here, each with that name."""
        return {
            own: shown
            for own, shown in zip(self.own.names, self.shown, strict=True)
            if own != shown
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Settings for the reading of a log.

    Attributes:
        selection: The tables and event groups that there are for a query.
        keys: Path of a key file, for encrypted files.
        schema: The objects that are known before the log's beginning; None if nobody knows any.
        cache: Directory of facts about files, as `PlanOptions` has it.
        piece_bytes: Least size of a part of a file that is read or left out as a whole.
    """

    selection: Selection = field(default_factory=Selection)
    keys: str | None = None
    schema: LoggedObjects | None = None
    cache: str | None = None
    piece_bytes: int = PIECE_BYTES


class LogTables:
    """The tables of a log, or of several logs, as they are at one time.

    Args:
        sources: Files, directories, `DATA#name`, URIs and servers, as `Sources` takes them.
        options: Settings for the reading; the defaults if None.

    Raises:
        ConfigError: If a source names no log.
        StoreError: If a file cannot be read.
        PeerError: If a server cannot be asked.
        CodecError: If a file does not begin as a binlog file.

    Attributes:
        fault: The error that ended the last reading; whoever asks for batches through other
            libraries gets only its text from them.
        notes: What readers are to be told of the columns that images lack, by table.
        counters: Counters of the bytes that were read.
    """

    def __init__(self, sources: Sequence[str], options: LogOptions | None = None) -> None:
        self._options = options or LogOptions()
        self._planner = Planner(
            sources,
            PlanOptions(
                keys=self._options.keys,
                piece_bytes=self._options.piece_bytes,
                cache=self._options.cache,
                schema=self._options.schema,
            ),
        )
        self.fault: BinlaneError | None = None
        self.notes: dict[str, set[str]] = {}
        self.counters = ReadCounters()
        self._logs: list[LogExtent] = []
        self._tables: dict[TableName, LogTable] = {}
        self.refresh()

    @property
    def selection(self) -> Selection:
        """The tables and event groups that there are for a query."""
        return self._options.selection

    @property
    def tables(self) -> Mapping[TableName, LogTable]:
        """The tables that have changes in the log, by name."""
        return self._tables

    def refresh(self) -> bool:
        """Look for what is new in the log; True if there are other tables or columns now.

        Raises:
            StoreError: If a file cannot be read.
            PeerError: If a server cannot be asked.
            CodecError: If a file does not begin as a binlog file.
        """
        logs = [self._bounded(log) for log in self._planner.extents()]
        if logs == self._logs:
            return False
        self._logs = logs
        found = self._find_tables()
        is_changed = found.keys() != self._tables.keys() or any(
            not table.schema.equals(self._tables[name].schema) for name, table in found.items()
        )
        self._tables = found
        return is_changed

    def _bounded(self, log: LogExtent) -> LogExtent:
        """Return the log up to the place where the selection stops, if that is a position."""
        stop = self.selection.stop
        if not isinstance(stop, FilePosition):
            return log
        number = file_number(stop.file)
        spans = [
            span._replace(high=min(span.high, stop.position))
            if span.file.number == number
            else span
            for span in log.spans
            if span.file.number <= number
        ]
        return LogExtent([span for span in spans if span.low < span.high], log.files)

    def _find_tables(self) -> dict[TableName, LogTable]:
        scope = self.selection.scope
        found: dict[TableName, list[pa.Schema]] = {}
        seen: set[tuple[TableName, Flavor, Any]] = set()
        want = ReadOptions(change_columns=(), may_clash=True)
        for table_map, columns, flavor in self._planner.columns_in_all(self._logs):
            name = table_map.name
            key = name, flavor, columns
            if key in seen or not scope.includes(name):
                continue
            seen.add(key)
            made = table_schema(table_map, flavor=flavor, columns=columns, options=want)
            found.setdefault(name, []).append(made.arrow)
        return {name: LogTable.of(name, schemas) for name, schemas in found.items()}

    def incidents(self) -> list[str]:
        """The places, as FILE:POSITION, at which the log says that changes are missing.

        Raises:
            StoreError: If a file cannot be read.
        """
        return [
            f"{span.file.name}:{position}"
            for log in self._logs
            for span in log.spans
            for position in self._planner.facts_in(span).incidents
            if position < span.high
        ]

    def parts(self, wish: QueryWish) -> list[Part]:
        """The parts of the log that a query reads.

        Raises:
            StoreError: If a file cannot be read.
        """
        return self._planner.parts_of(self._logs, Cuts(size_bytes=_RANGE_BYTES, wish=wish))

    def event_ranges(self, wish: QueryWish) -> Iterator[LogRange]:
        """The ranges of the log that a query of events reads, also where no group is.

        Raises:
            StoreError: If a file cannot be read.
        """
        for span in (span for log in self._logs for span in log.spans):
            if not wish.wants_file(span.file.name):
                continue
            facts = self._planner.facts_in(span)
            start: int | None = None if facts.pieces else span.low
            for piece, begin, _ in facts.cuts(span.low, span.high):
                if wish.wants_piece(span.file.name, facts, piece):
                    start = begin if start is None else start
                elif start is not None:
                    yield self._planner.range_of(span, start, begin)
                    start = None
            if start is None and facts.end < span.high and (facts.fault or facts.is_cut):
                start = facts.end  # its reader raises the error
            if start is not None:
                yield self._planner.range_of(span, start, span.high)

    def changes(
        self, table: LogTable, columns: Collection[str], condition: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        """The changes of a table in log order.

        Args:
            table: The table, one of `tables`.
            columns: Names of the columns, of its `schema`, that batches are to have.
            condition: The query's condition on columns of `schema`, by which parts of the log are
                left unread; the batches may hold rows for which it does not hold.

        Raises:
            CodecError: With file and position, if the log is damaged or a row cannot be decoded.
            StoreError: If a file cannot be read.
        """
        selection = replace(self.selection, scope=Scope(log_tables=frozenset({table.name})))
        wish = QueryWish(
            selection, None if condition is None else PlaceCondition(table.schema, condition)
        )
        reading = _TableReading(table, columns, selection)
        for part in self.parts(wish):
            for piece in part:
                texts = self._texts_of(piece) if reading.has_texts else None
                for item in read_range(piece, reading.want, counters=self.counters):
                    if isinstance(item, pa.RecordBatch):
                        self._note_absent(table, item, reading.names)
                        batches = reading.batches(item)
                        yield from (
                            batches
                            if texts is None
                            else (reading.with_texts(each, texts, condition) for each in batches)
                        )

    def _texts_of(self, piece: LogRange) -> RowTexts:
        """Return the finder of the texts beside the rows of a range."""
        span = next(
            span
            for log in self._logs
            for span in log.spans
            if span.file.uri == piece.uri and span.low <= piece.start
        )
        stop = span.high if piece.stop is None else piece.stop
        cuts = [start for _, start, _ in self._planner.facts_in(span).cuts(piece.start, stop)]
        return RowTexts([*(cuts or [piece.start]), stop], partial(self._planner.range_of, span))

    def _note_absent(self, table: LogTable, batch: pa.RecordBatch, names: Collection[str]) -> None:
        absent = absent_columns(batch.schema)
        lacking = (absent.before | absent.after).intersection(names)
        if lacking:
            self.notes.setdefault(table.name.plain, set()).update(lacking)


class _TableReading:
    """Images of a table → its changes, in the columns that a query needs."""

    def __init__(self, table: LogTable, names: Collection[str], selection: Selection) -> None:
        columns = frozenset(names)
        own = [
            (each.with_name(shown), spellings)
            for each, shown, spellings in zip(table.own, table.shown, table.spellings, strict=True)
            if BEFORE in columns or shown in columns
        ]
        self._own = [each for each, _ in own]
        self._keys = [min(spellings).lower() for _, spellings in own]
        self.names = frozenset[str]().union(*(spellings for _, spellings in own))
        self._schema = pa.schema([each for each in table.schema if each.name in columns])
        self.has_texts = not columns.isdisjoint(_TEXTS.names)
        needed = columns | {"_pos"} if self.has_texts else columns
        self._added = ("_op", *(name for name in (*_FIRST[1:], *_LAST) if name in needed))
        self._inner = pa.schema(
            [each for each in table.schema if each.name in needed - set(_TEXTS.names)]
        )
        self.want = ReadOptions(
            selection=selection, columns=self.names, change_columns=self._added, may_clash=True
        )
        self._whole = WholeChanges()

    def batches(self, images: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for batch in self._whole.take(images):
            yield self._batch(batch)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        changes = ImageChanges.of(batch.column(OP))
        arrays: dict[str, Any] = {
            name: taken(batch.column(index), changes.first)
            for index, name in enumerate(self._added)
        }
        arrays["_op"] = CHANGE_OPS.take(changes.codes)
        count = len(self._added)
        there = {
            name.lower(): index for index, name in enumerate(batch.schema.names) if index >= count
        }
        own: list[Any] = []
        for each, key in zip(self._own, self._keys, strict=True):
            index = there.get(key)
            if index is None:
                own.append(pa.nulls(batch.num_rows, each.type))
            else:
                own.append(cast_exactly(batch.column(index), each.type))
        row = changes.row
        for each, values in zip(self._own, own, strict=True):
            arrays[each.name] = taken(values, row)
        if BEFORE in self._inner.names:
            arrays[BEFORE] = struct_of(own, self._own, changes.before)
        return pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._inner.names], schema=self._inner
        )

    def with_texts(
        self, batch: pa.RecordBatch, texts: RowTexts, condition: pc.Expression | None
    ) -> pa.RecordBatch:
        """Add the texts to those rows of a batch for which a query's condition holds."""
        rows = pa.Table.from_batches([batch])
        if condition is not None and not any(name in str(condition) for name in _TEXTS.names):
            rows = rows.filter(condition).combine_chunks()
        positions: list[Any] = rows.column("_pos").to_pylist()
        found = texts.of(positions)
        told = pa.Table.from_pylist([each._asdict() for each in found], schema=_TEXTS_FOUND)
        for name, values in zip(_TEXTS.names, told.columns, strict=True):
            rows = rows.append_column(name, values)
        whole = rows.select(self._schema.names).combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=self._schema)
