"""Runs of event groups as bytes → those parts of them that a filter lets through.

Groups of rows and their brackets are judged by table map, by arrays and without being decoded: what
is left of them is a run whose index has only the events that stay. Every other group is decoded and
judged event by event (`events.GroupFilter`), which is also what says how the rest is judged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.codec.types import EventType
from binlane.filters.events import GroupFilter
from binlane.filters.kinds import row_kind
from binlane.grouping.event_group import EventGroup
from binlane.grouping.raw import RawRun
from binlane.grouping.scanner import KnownTable
from binlane.grouping.window import Bytes
from binlane.kernels import layout
from binlane.names import TableName

_HEADER: Final = 19
_ROWS_FLAGS: Final = _HEADER + 6
_STATEMENT_END: Final = 1
# Of a QUERY's body: length of its database, of its context, and of its text in the extended form.
_DATABASE: Final = _HEADER + 8
_CONTEXT: Final = _HEADER + 11
_TEXT: Final = _HEADER + 13
_PLAIN: Final = 13
_EXTENDED: Final = 17
_BRACKETS: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK")

_Flags = npt.NDArray[np.bool_]
_Places = npt.NDArray[np.int64]


def _flags(*codes: int) -> _Flags:
    found = np.zeros(256, np.bool_)
    found[list(codes)] = True
    return found


_ROWS: Final = _flags(*(code for code in range(256) if row_kind(code) is not None))
_TEXTS: Final = _flags(EventType.ANNOTATE_ROWS, EventType.ROWS_QUERY)
_FRAMES: Final = _flags(
    EventType.GTID,
    EventType.GTID_LOG,
    EventType.ANONYMOUS_GTID_LOG,
    EventType.GTID_TAGGED_LOG,
    EventType.QUERY,
    EventType.XID,
)
_PLAIN_TYPES: Final = _ROWS | _TEXTS | _FRAMES | _flags(EventType.TABLE_MAP)


@dataclass(frozen=True, slots=True)
class Part:
    """What is left of some groups of a run.

    Attributes:
        stop: The group of the run behind them.
        item: A run of groups of rows, or one group; None if nothing is left.
    """

    stop: int
    item: RawRun | EventGroup | None


@dataclass(frozen=True, slots=True)
class Marks:
    """What stays of groups of rows.

    Attributes:
        events: For each event from the first group's first on, whether it stays.
        groups: For each group, whether anything of it does.
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
        self._wanted: _Flags = np.zeros(64, np.bool_)
        self._seen = 0
        self._version = -1
        terms = groups.state.terms
        kinds = terms.rows if terms.has_kinds else None
        self._row_types = _flags(
            *(
                code
                for code in range(256)
                if (kind := row_kind(code)) is not None and (kinds is None or kind in kinds)
            )
        )

    def parts(self, run: RawRun) -> Iterator[Part]:
        """What is left of a run, in order; of a part the next one may change the bytes.

        Raises:
            CodecError: With file and position, behind what stands before it.
        """
        first = 0
        for number in (*self.odd_groups(run), run.count):
            if first < number:
                yield Part(number, self._rows(run, first, number))
            if number < run.count:
                group = self._groups.group(run.group(number), run.format)
                yield Part(number + 1, group)
            first = number + 1

    def odd_groups(self, run: RawRun) -> list[int]:
        """The groups of a run that hold more than rows and their brackets."""
        types = run.events[layout.EVENT_TYPE, : _end(run)]
        is_odd = ~_PLAIN_TYPES[types]
        queries = np.flatnonzero(types == EventType.QUERY)
        is_odd[queries] = ~_is_bracket(run, queries)
        firsts = run.groups[layout.GROUP_FIRST]
        found = np.searchsorted(firsts, np.flatnonzero(is_odd), side="right") - 1
        return [int(number) for number in np.unique(found)]

    def marks(self, run: RawRun, first: int, stop: int) -> Marks:
        """What stays of some groups of a run, none of which is odd."""
        begin = int(run.groups[layout.GROUP_FIRST, first])
        end = int(run.groups[layout.GROUP_END, stop - 1])
        types = run.events[layout.EVENT_TYPE, begin:end]
        maps = run.events[layout.EVENT_MAP, begin:end]
        is_rows = _ROWS[types]
        has_table = (is_rows | (types == EventType.TABLE_MAP)) & (maps >= 0)
        is_wanted = np.zeros(types.shape[0], np.bool_)
        is_wanted[has_table] = self._wanted_tables(run.tables)[maps[has_table]]
        kept_rows = is_wanted & self._row_types[types]
        ends = _ends(run, begin, is_rows)
        firsts = run.groups[layout.GROUP_FIRST, first:stop] - begin
        statements = _statements(ends, firsts)
        has_rows = np.zeros(int(statements[-1]) + 1, np.bool_)
        has_rows[statements[kept_rows]] = True
        stays = has_rows[statements]
        groups = np.add.reduceat(kept_rows, firsts) > 0
        lengths = np.diff(np.append(firsts, end - begin))
        if self._groups.state.terms.keeps_empty_groups:
            groups[:] = True
        in_group = np.repeat(groups, lengths)
        beside = (types == EventType.TABLE_MAP) & is_wanted | _TEXTS[types]
        events = (kept_rows | (beside & stays) | _FRAMES[types]) & in_group
        last = np.full(has_rows.shape[0], -1)
        places = np.flatnonzero(kept_rows)
        last[statements[places]] = places  # of several the last one stays
        is_ended = np.zeros(has_rows.shape[0], np.bool_)
        is_ended[statements[ends]] = True
        changed = last[has_rows & is_ended]
        return Marks(events=events, groups=groups, ends=changed[~ends[changed]])

    def _rows(self, run: RawRun, first: int, stop: int) -> RawRun | None:
        """What is left of groups of rows."""
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
        places = np.concatenate([[0], np.cumsum(marks.events)])
        for row in (layout.GROUP_FIRST, layout.GROUP_END):
            groups[row] = places[groups[row] - begin]
        events = np.ascontiguousarray(run.events[:, begin:end][:, marks.events])
        return replace(run, events=events, groups=groups)

    def _wanted_tables(self, tables: list[KnownTable]) -> _Flags:
        """A flag for each table: whether its rows are wanted. Tables only ever come to a list."""
        state = self._groups.state
        if tables is not self._tables or self._version != state.version:
            self._tables, self._seen, self._version = tables, 0, state.version
        while self._wanted.shape[0] < len(tables):
            self._wanted = np.concatenate([self._wanted, self._wanted])
        for number in range(self._seen, len(tables)):
            table_map = tables[number].table_map
            self._wanted[number] = state.includes(TableName(table_map.database, table_map.table))
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
    """Which events end the statement that they are rows of."""
    places = np.flatnonzero(is_rows)
    offsets = run.events[layout.EVENT_OFFSET, begin : begin + is_rows.shape[0]][places]
    ends = np.zeros(is_rows.shape[0], np.bool_)
    ends[places] = (run.data[offsets.astype(np.int64) + _ROWS_FLAGS] & _STATEMENT_END) != 0
    return ends


def _statements(ends: _Flags, firsts: _Places) -> _Places:
    """The number of the statement of each event, from 0: one ends with its rows or its group."""
    begins = np.zeros(ends.shape[0], np.bool_)
    begins[1:] = ends[:-1]
    begins[firsts] = True
    return np.cumsum(begins) - 1


def _is_bracket(run: RawRun, queries: _Places) -> _Flags:
    """Which QUERY events are BEGIN, COMMIT or ROLLBACK."""
    header = run.format.post_header_length(EventType.QUERY)
    if header not in (_PLAIN, _EXTENDED) or not queries.shape[0]:
        return np.zeros(queries.shape[0], np.bool_)
    data = run.data
    at = run.events[layout.EVENT_OFFSET, queries].astype(np.int64)
    ends = run.events[layout.EVENT_END, queries].astype(np.int64)
    texts = at + _HEADER + header + _u16(data, at + _CONTEXT) + data[at + _DATABASE]
    if header == _PLAIN:
        texts += 1  # the zero byte behind the database
    else:
        ends = np.minimum(ends, texts + _u16(data, at + _TEXT))
    is_found = np.zeros(queries.shape[0], np.bool_)
    for bracket in _BRACKETS:
        fitting = np.flatnonzero(ends - texts == len(bracket))
        wanted = np.frombuffer(bracket, np.uint8)
        found = data[texts[fitting][:, None] + np.arange(len(bracket))]
        is_found[fitting] = (found == wanted).all(axis=1)
    return is_found


def _u16(data: Bytes, at: _Places) -> _Places:
    return data[at].astype(np.int64) | data[at + 1].astype(np.int64) << 8
