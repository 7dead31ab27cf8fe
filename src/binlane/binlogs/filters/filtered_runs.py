"""Runs of event groups as bytes → those parts of them that a filter lets through.

Groups of rows and their brackets are judged by table map, by arrays and without being decoded: what
is left of them is a run whose index has only the events that stay. Every other group is decoded and
judged event by event (`events.GroupFilter`), which is also what says how the rest is judged.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.filters.events import GroupFilter
from binlane.binlogs.filters.kinds import RowKind, row_kind
from binlane.errors import CodecError
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GTID_TYPES, EventGroup
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.scanner import KnownTable, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels

_HEADER: Final = 19
_ROWS_FLAGS: Final = _HEADER + 6
_STATEMENT_END: Final = 1
# Offsets in a QUERY's body: length of its database, of its context, and of its text in the extended
# form.
_DATABASE: Final = _HEADER + 8
_CONTEXT: Final = _HEADER + 11
_TEXT: Final = _HEADER + 13
_EXTENDED: Final = 17
_BRACKETS: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK")

_Flags = npt.NDArray[np.bool_]
_Places = npt.NDArray[np.int64]


# Classes of events by their types; rows come last.
_ODD, _FRAME, _CONTEXT_OF_TEXT, _NOTE, _MAP, _ROWS_KIND, _KEPT_ROWS = range(7)
# Judgements on an event: no statement, to be judged in its place, goes, stays.
_NONE, _UNJUDGED, _GOES, _STAYS = range(4)
_SHAPES_BYTES_MAX: Final = 16 << 20
_SHAPE_BYTES: Final = 300
"""Bytes that one shape takes beside its texts, about."""
_TEXT_MAX: Final = 1 << 16
_KINDS: Final = np.zeros(256, np.uint8)
_KINDS[[code for code in range(256) if row_kind(code) is not None]] = _ROWS_KIND
_KINDS[[EventType.ANNOTATE_ROWS, EventType.ROWS_QUERY]] = _NOTE
_KINDS[EventType.TABLE_MAP] = _MAP
_KINDS[[*GTID_TYPES, EventType.QUERY, EventType.XID]] = _FRAME
_KINDS[[EventType.INTVAR, EventType.RAND, EventType.USER_VAR]] = _CONTEXT_OF_TEXT
_NO_TABLES: Final = 16
"""Numbers below 0 that events may have in the place of a table's."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """The part of some groups of a run that is left.

    Attributes:
        stop: Number of the group behind them in the run.
        item: A run of groups of rows, or one group; None if nothing is left.
    """

    stop: int
    item: RawRun | EventGroup | None


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks on the events and groups of rows that stay.

    Attributes:
        events: For each event from the first group's first on, True if it stays.
        groups: For each group, True if any event of it stays.
        ends: Rows events that must end their statement now, as numbers among `events`.
    """

    events: _Flags
    groups: _Flags
    ends: _Places


class RunFilter:
    """Filters the runs of one log, in order.

    Args:
        groups: Judges the groups that are decoded, and holds what is wanted.
    """

    def __init__(self, groups: GroupFilter) -> None:
        self._groups = groups
        self._tables: list[KnownTable] = []
        self._wanted: _Flags = np.zeros(64 + _NO_TABLES, np.bool_)
        # The numbers of tables that the rules name and that are not wanted all the same.
        self._lost: list[int] = []
        self._seen = 0
        self._version = -1
        self._texts = np.zeros(0, np.uint8)
        self._shapes: dict[tuple[bytes, bytes, bytes], int] = {}
        self._shapes_version = -1
        self._shapes_bytes = 0
        self._scratch = np.zeros(_TEXT_MAX + 2 * PADDING, np.uint8)
        terms = groups.state.terms
        kinds = terms.rows if terms.has_kinds else frozenset(RowKind)
        self._kinds = _KINDS.copy()
        for code in range(256):
            if row_kind(code) in kinds:
                self._kinds[code] = _KEPT_ROWS

    def parts(self, run: RawRun) -> Iterator[RunPart]:
        """Give the parts of a run that are left, in order; the next part may change the bytes of one.

        Raises:
            CodecError: With file and position, behind the parts before the damage.
        """
        for first, stop, is_odd in self.pieces(run):
            if is_odd:
                yield RunPart(stop, self._groups.group(run.group(first), run.format))
            else:
                yield RunPart(stop, self._rows(run, first, stop))

    def pieces(self, run: RawRun) -> Iterator[tuple[int, int, bool]]:
        """The groups of a run: those that arrays can judge together, and others one by one.

        The groups behind one of the others are looked at once that one was judged.

        Yields:
            The first group, the group behind the last, and True if it is one of the others.
        """
        first, version, odd = 0, -1, list[int]()
        while first < run.count:
            if version != self._groups.state.version:
                version, odd = self._groups.state.version, self._odd_groups(run, first)
            at = bisect_left(odd, first)
            number = odd[at] if at < len(odd) else run.count
            if first < number:
                yield first, number, False
            if number < run.count:
                yield number, number + 1, True
            first = number + 1

    def _odd_groups(self, run: RawRun, first: int) -> list[int]:
        """The groups of a run, from one on, that hold more than rows, known texts and brackets."""
        begin, end = int(run.groups[layout.GROUP_FIRST, first]), _end(run)
        types = run.events[layout.EVENT_TYPE, begin:end]
        is_odd = _KINDS[types] == _ODD
        queries = np.flatnonzero(types == EventType.QUERY) + begin
        others = queries[~_is_bracket(run, queries)]
        self._texts = np.zeros(end, np.uint8)
        if others.shape[0]:
            self._texts[others] = self._judged(run, others)
            is_odd[others - begin] = self._texts[others] == _UNJUDGED
            self._add_contexts(types == EventType.INTVAR, types, begin)
        firsts = run.groups[layout.GROUP_FIRST]
        found = np.searchsorted(firsts, np.flatnonzero(is_odd) + begin, side="right") - 1
        return [int(number) for number in np.unique(found)]

    def _judged(self, run: RawRun, queries: _Places) -> list[int]:
        """Judge statements: each shape of text is judged once."""
        state = self._groups.state
        if self._shapes_version != state.version or self._shapes_bytes > _SHAPES_BYTES_MAX:
            self._shapes.clear()
            self._shapes_version, self._shapes_bytes = state.version, 0
        shape, data, out = kernels().shape, run.data, self._scratch
        header = run.format.post_header_length(EventType.QUERY)
        found = []
        for query, at, start, stop, end in zip(queries, *_texts(run, queries), strict=True):
            if stop - start > _TEXT_MAX:
                found.append(_UNJUDGED)
                continue
            length = shape(data, start, stop, out)
            before, behind = data[at + header : start].tobytes(), data[stop:end].tobytes()
            key = before, out[:length].tobytes(), behind
            verdict = self._shapes.get(key)
            if verdict is None:
                verdict = self._shapes[key] = self._verdict(run, int(query))
                self._shapes_bytes += _SHAPE_BYTES + sum(map(len, key))
            found.append(verdict)
        return found

    def _verdict(self, run: RawRun, query: int) -> int:
        """Judge a statement; damage is left to the judgement in its place."""
        try:
            passes = self._groups.judge_text(run.event(query))
        except CodecError:
            return _UNJUDGED
        return _UNJUDGED if passes is None else _STAYS if passes else _GOES

    def _add_contexts(self, is_context: _Flags, types: Small, begin: int) -> None:
        """Have what stands before a statement for its sake go with it."""
        for kind in (EventType.RAND, EventType.USER_VAR):
            is_context |= types == kind
        places = np.flatnonzero(is_context) + begin
        queries = np.flatnonzero(types == EventType.QUERY) + begin
        following = np.searchsorted(queries, places)
        has_one = following < queries.shape[0]
        self._texts[places] = _GOES
        self._texts[places[has_one]] = self._texts[queries[following[has_one]]]

    def marks(self, run: RawRun, first: int, stop: int) -> Marks:
        """Mark the events of some groups of a run that stay; none of the groups is odd."""
        begin = int(run.groups[layout.GROUP_FIRST, first])
        end = int(run.groups[layout.GROUP_END, stop - 1])
        kinds = self._kinds[run.events[layout.EVENT_TYPE, begin:end]]
        # Events without a table have numbers below 0, which stand for tables that nobody wants.
        wanted = self._wanted_tables(run.tables)[run.events[layout.EVENT_MAP, begin:end]]
        kept_rows = wanted & (kinds == _KEPT_ROWS)
        if self._lost:
            self._count_lost(run, begin, kinds == _KEPT_ROWS)
        ends = _ends(run, begin, kinds >= _ROWS_KIND)
        firsts = run.groups[layout.GROUP_FIRST, first:stop] - begin
        groups = np.logical_or.reduceat(kept_rows, firsts)
        statements = _statements(ends, firsts)
        has_rows = np.zeros(int(statements[-1]) + 1, np.bool_)
        has_rows[statements[kept_rows]] = True
        stays = has_rows[statements]
        texts = self._texts[begin:end]
        kept_texts = texts == _STAYS
        groups |= np.logical_or.reduceat(kept_texts, firsts)
        frames = (kinds == _FRAME) & (texts == _NONE)
        if self._groups.state.terms.keeps_empty_groups:
            groups[:] = True
        elif not groups.all():
            frames &= np.repeat(groups, np.diff(np.append(firsts, end - begin)))
        beside = ((kinds == _MAP) & wanted | (kinds == _NOTE)) & stays
        cut = np.flatnonzero(ends & ~kept_rows & stays)
        places = _last_before(cut, kept_rows) if cut.shape[0] else cut
        events = kept_rows | beside | frames | kept_texts
        return Marks(events=events, groups=groups, ends=places)

    def _count_lost(self, run: RawRun, begin: int, is_rows: _Flags) -> None:
        """Count the rows events that are left out of tables that the rules name."""
        maps = run.events[layout.EVENT_MAP, begin : begin + is_rows.shape[0]]
        for found in np.flatnonzero(is_rows & np.isin(maps, self._lost)).tolist():
            try:
                event = run.event(begin + found)
            except CodecError as error:
                offset = run.events.item(layout.EVENT_OFFSET, begin + found)
                raise error.at(run.file, run.base + offset) from None
            assert isinstance(event.body, RowsEvent), "by its type"
            table = run.tables[int(maps[found])]
            place = f"{run.file}:{event.position}"
            self._groups.lose_rows(event.body, table.table_map, place)

    def _rows(self, run: RawRun, first: int, stop: int) -> RawRun | None:
        """Give the part of groups of rows that is left; None if nothing is."""
        marks = self.marks(run, first, stop)
        if not marks.groups.any():
            return None
        begin = int(run.groups[layout.GROUP_FIRST, first])
        for number in marks.ends:
            end_statement(run, begin + int(number))
        if first == 0 and stop == run.count and marks.events.all():
            return run
        end = begin + marks.events.shape[0]
        groups = np.ascontiguousarray(run.groups[:, first:stop][:, marks.groups])
        kept = np.flatnonzero(marks.events)
        places = np.zeros(marks.events.shape[0] + 1, np.int64)
        np.cumsum(marks.events, out=places[1:])
        for row in (layout.GROUP_FIRST, layout.GROUP_END):
            groups[row] = places[groups[row] - begin]
        events = np.take(run.events[:, begin:end], kept, axis=1)
        return replace(run, events=events, groups=groups)

    def _wanted_tables(self, tables: list[KnownTable]) -> _Flags:
        """A flag for each table: whether its rows are wanted. Tables only ever come to a list."""
        state = self._groups.state
        if tables is not self._tables or self._version != state.version:
            self._tables, self._seen, self._version = tables, 0, state.version
            self._wanted[:] = False
            self._lost.clear()
        while self._wanted.shape[0] < len(tables) + _NO_TABLES:
            self._wanted = np.concatenate([self._wanted, np.zeros_like(self._wanted)])
        for number in range(self._seen, len(tables)):
            table_map = tables[number].table_map
            table = table_map.name
            self._wanted[number] = state.includes(table)
            if state.is_lost(table):
                self._lost.append(number)
        self._seen = len(tables)
        return self._wanted


def end_statement(run: RawRun, number: int) -> None:
    """Have a rows event of a run end its statement."""
    data = run.data
    start = run.events.item(layout.EVENT_OFFSET, number)
    end = run.events.item(layout.EVENT_END, number)
    data[start + _ROWS_FLAGS] |= _STATEMENT_END
    if run.format.checksum_length:
        checksum = zlib.crc32(data[start:end].data)
        data[end : end + 4] = np.frombuffer(checksum.to_bytes(4, "little"), np.uint8)


def _end(run: RawRun) -> int:
    return int(run.groups[layout.GROUP_END, -1])


def _ends(run: RawRun, begin: int, is_rows: _Flags) -> _Flags:
    """Flag the events that end the statement whose rows they are."""
    places = np.flatnonzero(is_rows)
    offsets = run.events[layout.EVENT_OFFSET, begin : begin + is_rows.shape[0]][places]
    ends = np.zeros(is_rows.shape[0], np.bool_)
    ends[places] = run.data[offsets + _ROWS_FLAGS] & _STATEMENT_END
    return ends


def _last_before(places: _Places, flags: _Flags) -> _Places:
    """The last event with a flag before each place."""
    found = np.flatnonzero(flags)
    return found[np.searchsorted(found, places) - 1]


def _statements(ends: _Flags, firsts: _Places) -> _Places:
    """The number of the statement of each event, from 0: one ends with its rows or its group."""
    begins = np.zeros(ends.shape[0], np.bool_)
    begins[1:] = ends[:-1]
    begins[firsts] = True
    return np.cumsum(begins) - 1


def _is_bracket(run: RawRun, queries: _Places) -> _Flags:
    """Flag the QUERY events that are BEGIN, COMMIT or ROLLBACK."""
    is_found = np.zeros(queries.shape[0], np.bool_)
    if not queries.shape[0]:
        return is_found
    _, texts, ends, _ = _texts(run, queries)
    for bracket in _BRACKETS:
        fitting = np.flatnonzero(ends - texts == len(bracket))
        wanted = np.frombuffer(bracket, np.uint8)
        found = run.data[texts[fitting][:, None] + np.arange(len(bracket))]
        is_found[fitting] = (found == wanted).all(axis=1)
    return is_found


def _texts(run: RawRun, queries: _Places) -> tuple[_Places, _Places, _Places, _Places]:
    """Find body, text and end of QUERY events."""
    header = run.format.post_header_length(EventType.QUERY)
    data = run.data
    at = run.events[layout.EVENT_OFFSET, queries].astype(np.int64)
    ends = run.events[layout.EVENT_END, queries].astype(np.int64)
    texts = at + _HEADER + header + _u16(data, at + _CONTEXT) + data[at + _DATABASE]
    stops = ends
    if header == _EXTENDED:
        stops = np.minimum(ends, texts + _u16(data, at + _TEXT))
    else:
        texts += 1  # the zero byte behind the database
    return at + _HEADER, np.minimum(texts, ends), stops, ends


def _u16(data: Bytes, at: _Places) -> _Places:
    return data[at].astype(np.int64) | data[at + 1].astype(np.int64) << 8
