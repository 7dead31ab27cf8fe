"""All changes of the rows of a table that have one of some keys: found by kernels, then decoded.

The whole log is read once by the kernels, which decode the columns of the key alone; only event
groups in which one of the keys stands are decoded event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlane.errors import ConfigError
from binlane.log.codec.event import Event
from binlane.log.codec.query import AnnotateRowsEvent, RowsQueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.table_metadata import primary_key, table_columns
from binlane.log.grouping.event_group import EventGroup, whole_group
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.raw import LargeGroup, RawRun, raw_groups
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.xa import finished_by
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.changes.logged_changes import Change, ChangeReader, name_of
from binlane.tables.changes.row_key import KeyValues, rows_with
from binlane.tables.changes.table_names import Place, TableNames, place_of
from binlane.tables.columnar.counters import ReadCounters
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.log_notes import Statement, Trouble
from binlane.tables.columnar.prepared_transactions import PreparedTransactions
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.ranges.earlier import LogBefore
from binlane.tables.ranges.log_file_facts import LogFileFacts
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.read import LogState, read_range
from binlane.tables.ranges.storage import named
from binlane.tables.ranges.stored_files import chunks_of, description_of, open_range

_CHANGE_COLUMNS = ("_op", "_position")
_OF_ROWS = (AnnotateRowsEvent, RowsQueryEvent, TableMapEvent, RowsEvent)


@dataclass(slots=True)
class _Hits:
    """Positions in a file at which something is to be decoded.

    Attributes:
        piece: The file, up to where it is read.
        positions: Positions of the events to decode.
    """

    piece: LogRange
    positions: set[int] = field(default_factory=set)


class TableLog:
    """A log as far as one table goes: its names, the columns of its key, and its statements.

    Attributes:
        names: The tables of the asked name, under all their names.
        keys: Names of the primary key's columns, as they are anywhere in the log.
        columns: Names that the table's columns have anywhere in the log, in small letters.

    Args:
        sources: The log as users name it.
        table: The name of the table.
        keys_file: Path of a key file, for encrypted files.
        schema: Definitions of tables that the log does not make; None without any.

    Raises:
        ConfigError: If the sources are not one log.
        StoreError: If a file cannot be read.
        CodecError: If a file does not begin as a binlog file, or a statement is damaged.
    """

    def __init__(
        self,
        sources: Sequence[str],
        table: TableName,
        *,
        keys_file: str | None = None,
        schema: LoggedObjects | None = None,
    ) -> None:
        planner = Planner(sources, PlanOptions(keys=keys_file, has_history=False))
        files = planner.files()
        if not files:
            raise ConfigError("there is no log", key="log", hint="name a file of a log")
        self._schema = schema
        self._files: list[tuple[LogFileFacts, LogRange]] = []
        earlier: tuple[str, ...] = ()
        for facts, piece in planner.facts_between(planner.begin(), planner.end()):
            self._files.append((facts, replace(piece, earlier=earlier)))
            earlier = (piece.uri, *earlier)
        self.names = TableNames(table)
        for facts, piece in self._files:
            for query in facts.queries:
                self.names.follow(query.event, piece.name)
        self.names.finish()
        self.keys, self.columns = self._keys_and_columns()

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that the log has rows of."""
        return frozenset(each.name for facts, _ in self._files for each in facts.table_maps)

    @property
    def is_known(self) -> bool:
        """True if the log has rows of the table, or statements about it."""
        return bool(self.names.statements) or not self.names.names.isdisjoint(self.tables)

    def catalog(self) -> LoggedObjects:
        """Return the objects that are known before the log begins."""
        return LoggedObjects() if self._schema is None else self._schema.copy()

    def changes(
        self,
        columns: Sequence[Sequence[str]],
        wanted: frozenset[KeyValues],
        note: Callable[[str], None],
    ) -> Iterator[Change]:
        """Give the changes of event groups in which rows with some keys stand, in log order.

        Statements about the table are among them, those that the log holds instead of rows too.

        Args:
            columns: Names of the key's columns, as rows may have them, in any letters.
            wanted: Values of the keys that are looked for.
            note: Called with remarks on what cannot be told.

        Raises:
            CodecError: If the log is damaged, or a row cannot be decoded.
            StoreError: If a file cannot be read.
        """
        scope = Scope.nothing().with_list(ScopeList.LOG, self.names.names)
        names = frozenset(name for each in columns for name in each)
        want = ReadOptions(
            selection=Selection(scope=scope),
            columns=self._spellings(names),
            has_statements=True,
            change_columns=_CHANGE_COLUMNS,
            may_clash=True,
        )
        catalog = self.catalog()
        reader = ChangeReader(catalog=catalog)
        pieces = [piece for _, piece in self._files]
        followed = _Statements([(facts, piece.name) for facts, piece in self._files], catalog)
        with closing(LogBefore(pieces[0])) as before:
            log = FollowedLog(self.catalog())
            state = LogState(prepared=PreparedTransactions(before), log=log)
            for _, piece in self._files:
                hits = self._hits(piece, want, columns, wanted, state, note)
                yield from _decoded(hits, reader, followed)

    def _hits(
        self,
        piece: LogRange,
        want: ReadOptions,
        columns: Sequence[Sequence[str]],
        wanted: frozenset[KeyValues],
        state: LogState,
        note: Callable[[str], None],
    ) -> _Hits:
        found = _Hits(piece)
        names = self.names.names
        counters = ReadCounters()
        for item in read_range(piece, want, counters=counters, state=state):
            if isinstance(item, pa.RecordBatch):
                rows = rows_with(item, columns, wanted)
                positions: list[Any] = pc.filter(item.column("_position"), rows).to_pylist()
                found.positions.update(positions)
            elif isinstance(item, Trouble):
                if not item.tables or not names.isdisjoint(item.tables):
                    note(f"{item.file}:{item.position}: {item.what}")
                    if item.kind.value == "incident":
                        found.positions.add(item.position)
            elif self._is_about(item):
                found.positions.add(item.position)
        found.positions.update(
            each.place[1] for each in self.names.statements if each.file == piece.name
        )
        return found

    def _is_about(self, statement: Statement) -> bool:
        """True if a statement changes rows of the table, as far as its text tells."""
        place = place_of(statement.file, statement.position)
        effects = statement.effects()
        return any(self.names.number_at(name, place) is not None for name in effects.writes)

    def _spellings(self, names: frozenset[str]) -> frozenset[str]:
        """The names of columns as the log spells them anywhere."""
        found = set(names)
        catalog = self.catalog()
        tables = self.names.names
        for facts, _ in self._files:
            for table_map in facts.table_maps:
                if table_map.name in tables:
                    columns = table_columns(table_map, flavor=facts.format.flavor)
                    found |= {name_of(column) for column in columns}
            for query in facts.queries:
                if catalog.feed(query.event):
                    found |= self._defined(catalog)
        found |= self._defined(catalog)
        lowered = {name.lower() for name in names}
        return frozenset(name for name in found if name.lower() in lowered)

    def _defined(self, catalog: LoggedObjects) -> set[str]:
        return {
            column.name
            for name in self.names.names
            for column in catalog.defined_columns(name).values()
        }

    def _keys_and_columns(self) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        """The primary keys and the columns that the table has anywhere in the log."""
        found: dict[tuple[str, ...], None] = {}
        names: dict[str, None] = {}
        catalog, tables = self.catalog(), self.names.names

        def look() -> None:
            for name in tables:
                found[tuple(each.lower() for each in catalog.primary_key(name))] = None
                names.update(dict.fromkeys(catalog.defined_columns(name)))

        look()
        for facts, _ in self._files:
            for table_map in facts.table_maps:
                if table_map.name in tables:
                    columns = table_columns(table_map, flavor=facts.format.flavor)
                    parts = primary_key(table_map)
                    found[tuple(name_of(columns[part.index]).lower() for part in parts)] = None
                    names.update((column.name.lower(), None) for column in columns if column.name)
            for query in facts.queries:
                if catalog.feed(query.event):
                    look()
        return tuple(key for key in found if key), tuple(names)


class _Statements:
    """The log's DDL, which a catalog follows up to the events that are decoded."""

    def __init__(self, files: list[tuple[LogFileFacts, str]], catalog: LoggedObjects) -> None:
        self._catalog = catalog
        self._left = iter(
            [
                (place_of(name, query.event.position), query.event)
                for facts, name in files
                for query in facts.queries
            ]
        )
        self._next = next(self._left, None)

    def follow(self, place: Place) -> None:
        """Follow the DDL before a place."""
        while self._next is not None and self._next[0] < place:
            self._catalog.feed(self._next[1])
            self._next = next(self._left, None)


def _decoded(hits: _Hits, reader: ChangeReader, followed: _Statements) -> Iterator[Change]:
    """Decode the groups in which hits stand."""
    if not hits.positions:
        return
    piece = hits.piece
    head = description_of(piece)
    yield from reader.feed(head, file=piece.name)
    for events in _groups(hits, head):
        for event in expanded_all(events, file=piece.name, format_=format_of(head)):
            followed.follow(place_of(piece.name, event.position))
            yield from reader.feed(event, file=piece.name)


def _groups(hits: _Hits, head: Event) -> Iterator[Sequence[Event]]:
    piece, left = hits.piece, sorted(hits.positions)
    start = max(piece.start, head.next_position)
    with closing(open_range(piece)) as source:
        items = raw_groups(
            source.reread(start),
            file=named(piece.uri),
            name=piece.name,
            position=start,
            format_=format_of(head),
        )
        for item in items:
            if not left:
                return
            if isinstance(item, RawRun):
                for number in _numbers(item, left):
                    yield _with_rows(item.group(number).events, piece)
                left = [each for each in left if each >= item.next_position]
            elif isinstance(item, EventGroup):
                if item.events[0].position <= left[0] < item.next_position:
                    yield _with_rows(item.events, piece)
                left = [each for each in left if each >= item.next_position]
            else:
                yield from _large(item, left, piece)
                left = [each for each in left if item.end is None or each >= item.end]


def _numbers(run: RawRun, positions: list[int]) -> list[int]:
    """Numbers of the groups of a run in which positions stand."""
    firsts = run.events[layout.EVENT_OFFSET, run.groups[layout.GROUP_FIRST]].astype(np.int64)
    wanted = np.array([each for each in positions if each < run.next_position], np.int64)
    found = np.searchsorted(firsts, wanted - run.base, side="right") - 1
    return [int(number) for number in np.unique(found) if number >= 0]


def _large(group: LargeGroup, positions: list[int], piece: LogRange) -> Iterator[Sequence[Event]]:
    """Read a group that is too large to be held once: to find its end, and to decode it."""
    events = list(whole_group(group.events()))
    group.end = events[-1].next_position
    if any(group.position <= each < group.end for each in positions):
        yield _with_rows(tuple(events), piece)


def _with_rows(events: Sequence[Event], piece: LogRange) -> Sequence[Event]:
    """The events of a group; of an XA COMMIT the rows that it brings into effect."""
    commit = next((event for event in events if finished_by(event) is not None), None)
    xid = None if commit is None else finished_by(commit)
    if commit is None or xid is None:
        return events
    with closing(LogBefore(_up_to(piece, events[0].position))) as before:
        place = before.find(xid)
        if place is None:
            return events
        walker = Walker(
            chunks_of(before.source(place)),
            file=place.path,
            position=place.start,
            format_=place.format,
        )
        prepared = list(whole_group(walker.events()))
    # They count where they come into effect.
    rows = [
        replace(event, position=commit.position)
        for event in prepared
        if isinstance(event.body, _OF_ROWS)
    ]
    return [events[0], *rows]


def _up_to(piece: LogRange, stop: int) -> LogRange:
    return replace(piece, start=stop, prepared=())
