"""The maker of an event group, as far as the source's log says: its thread, its tables, its texts.

MySQL names the thread of a session in each BEGIN and each statement, MariaDB since 11.5 in each
GTID event. Before that it does so in statements, COMMIT among them, but not in XID: a group with
nothing but InnoDB's rows is nobody's by the log. The possible maker of such a group is then told by
its tables, and by the text that MariaDB writes before the rows of each statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.cut_group import (
    MARK_BYTES_MAX,
    MARKS,
    Mismatch,
    annotated,
    cut_group,
    is_same_group,
    plain_events,
)
from binlane.binlogs.routing.planned_spans import annotated_raw, raw_group
from binlane.binlogs.routing.row_selection import table_name
from binlane.errors import CodecError
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor, GtidExtraFlag, GtidFlag
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.names import TableName
from binlane.statements.session.group_plan import GroupPlan, TextPart

_QUERIES: Final = frozenset(map(int, (EventType.QUERY, EventType.QUERY_COMPRESSED)))
_GTID: Final = int(EventType.GTID)
_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
_MAP: Final = int(EventType.TABLE_MAP)
_FLAGS: Final = 12
"""Offset of the flags in the body of MariaDB's GTID event."""
_MARK_TAIL_BYTES: Final = 16
"""A mark's row ends with its thread and a number, of 8 bytes each."""

_Pieces = Sequence[tuple[frozenset[TableName], bytes | None]]


def thread_of(group: EventGroup, format_: Format) -> int:
    """The source's thread that a group is of; 0 where the log does not say it.

    Of a mark it is the thread that it was made for.
    """
    try:
        events = plain_events(group, format_)
    except CodecError:
        return 0
    thread_id = 0
    maps: set[TableName] = set()
    for event in events:
        body = event.body
        if isinstance(body, TableMapEvent):
            maps.add(table_name(body))
        elif isinstance(body, RowsEvent) and maps == {MARKS}:
            return _marked_thread(body.plain_images)
        elif not thread_id and isinstance(body, GtidEvent):
            thread_id = body.thread_id or 0
        elif not thread_id and isinstance(body, QueryEvent):
            thread_id = body.thread_id
    return thread_id


def thread_of_raw(run: RawRun, number: int) -> int:
    """Give the thread of a group of a run, as `thread_of` does."""
    first = run.groups.item(layout.GROUP_FIRST, number)
    end = run.groups.item(layout.GROUP_END, number)
    types: list[int] = run.events[layout.EVENT_TYPE, first:end].tolist()
    if _PAYLOAD in types:
        return thread_of(run.group(number), run.format)
    if _MAP in types:
        table = run.tables[run.events.item(layout.EVENT_MAP, first + types.index(_MAP))]
        if table_name(table.table_map) == MARKS:
            return thread_of(run.group(number), run.format)
    if types[0] == _GTID:
        event = run.event(first)
        if isinstance(event.body, GtidEvent) and event.body.thread_id is not None:
            return event.body.thread_id
    for place, kind in enumerate(types, first):
        if kind in _QUERIES:
            at = run.events.item(layout.EVENT_OFFSET, place) + HEADER_LENGTH
            return int.from_bytes(run.data[at : at + 4].tobytes(), "little")
    return 0


def threads_of_run(run: RawRun) -> npt.NDArray[np.int64]:
    """Give the threads of all groups of a run, as `thread_of_raw`; -1 where it must be asked for each."""
    found = np.full(run.count, -1, np.int64)
    first, end = run.groups[layout.GROUP_FIRST], run.groups[layout.GROUP_END]
    types, offsets = run.events[layout.EVENT_TYPE], run.events[layout.EVENT_OFFSET]
    queries = np.flatnonzero(np.isin(types[: end[-1]], list(_QUERIES)))
    if queries.shape[0]:
        place = queries[np.minimum(np.searchsorted(queries, first), queries.shape[0] - 1)]
        is_query = (first <= place) & (place < end)
        found[is_query] = _words(run, offsets[place[is_query]].astype(np.int64) + HEADER_LENGTH)
    is_gtid = types[first] == _GTID
    found[is_gtid] = _gtid_threads(run, first[is_gtid], found[is_gtid])
    # The thread id in a mark's GTID event is that of the connection that made the mark.
    found[marked(run)] = -1
    return found


def _gtid_threads(
    run: RawRun, events: npt.NDArray[np.int64], found: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The threads that MariaDB's GTID events name, where they do."""
    bodies = run.events[layout.EVENT_OFFSET, events].astype(np.int64) + HEADER_LENGTH
    flags = run.data[bodies + _FLAGS]
    has_commit_id = (flags & GtidFlag.GROUP_COMMIT_ID.value) > 0
    places = bodies + _FLAGS + 1 + 8 * has_commit_id
    extra = run.data[places]
    is_alter_end = (extra & (GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER).value) > 0
    places += 1 + (extra & GtidExtraFlag.MULTI_ENGINE.value) + 8 * is_alter_end
    has_xid = (flags & (GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA).value) > 0
    has_thread = ((extra & GtidExtraFlag.THREAD_ID.value) > 0) & ~has_xid
    has_thread &= places + 4 <= run.events[layout.EVENT_END, events]
    result = found.copy()
    result[has_thread] = _words(run, places[has_thread])
    return result


def _words(run: RawRun, places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Numbers of 32 bits at some places of a run."""
    return np.ascontiguousarray(run.data[places[:, None] + np.arange(4)]).view("<u4").reshape(-1)


def marked(run: RawRun) -> list[int]:
    """The groups of a run that hold a mark, which no binlog gets."""
    found = _marked_in_payloads(run)
    marks = [
        number for number, table in enumerate(run.tables) if table_name(table.table_map) == MARKS
    ]
    if marks:
        last = run.groups[layout.GROUP_END, run.count - 1]
        is_map = run.events[layout.EVENT_TYPE, :last] == EventType.TABLE_MAP
        is_mark = is_map & np.isin(run.events[layout.EVENT_MAP, :last], marks)
        found |= set(map(int, _groups_of(run, np.flatnonzero(is_mark))))
    return sorted(found)


def _marked_in_payloads(run: RawRun) -> set[int]:
    """Give the compressed groups of a run that hold a mark: only small payloads can, and are looked at."""
    if run.format.flavor is not Flavor.MYSQL:
        return set()
    last = run.groups[layout.GROUP_END, run.count - 1]
    sizes = run.events[layout.EVENT_END, :last] - run.events[layout.EVENT_OFFSET, :last]
    is_small = sizes < MARK_BYTES_MAX
    places = np.flatnonzero(is_small & (run.events[layout.EVENT_TYPE, :last] == _PAYLOAD))
    numbers = map(int, _groups_of(run, places))
    return {number for number in numbers if _is_marked(run.group(number), run.format)}


def _is_marked(group: EventGroup, format_: Format) -> bool:
    try:
        events = plain_events(group, format_)
    except CodecError:
        return False
    bodies = (event.body for event in events)
    return any(isinstance(body, TableMapEvent) and table_name(body) == MARKS for body in bodies)


def _groups_of(run: RawRun, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The groups in which some events stand."""
    firsts = run.groups[layout.GROUP_FIRST, : run.count]
    return np.searchsorted(firsts, events, side="right") - 1


def could_be_raw(run: RawRun, number: int, plan: GroupPlan) -> bool:
    """True if a group of a run could be the group of a plan, by its tables and texts."""
    group = raw_group(run, number)
    if group is None:
        return could_be(run.group(number), run.format, plan)
    pieces = [(piece.mapped, annotated_raw(run, piece)) for piece in group.pieces]
    return _could_be(pieces, plan)


def could_be(group: EventGroup, format_: Format, plan: GroupPlan) -> bool:
    """Do as `could_be_raw` does, for a group that is decoded."""
    cut = cut_group(group, format_)
    if isinstance(cut, Mismatch):
        return True
    return _could_be([(piece.mapped, annotated(piece.events)) for piece in cut.pieces], plan)


def _could_be(pieces: _Pieces, plan: GroupPlan) -> bool:
    sections = is_same_group([mapped for mapped, _ in pieces], plan.sections)
    if sections is None:
        return False
    for part in _texts_in(plan):
        own = range(0) if part.section is None else sections[part.section]
        if own and part.is_another(pieces[own.start][1]):
            return False
    return True


def _texts_in(plan: GroupPlan) -> Iterator[TextPart]:
    for parts in plan.binlogs.values():
        for part in parts:
            if isinstance(part, TextPart):
                yield part


def _marked_thread(images: bytes) -> int:
    """The thread in the last row image of a mark."""
    return int.from_bytes(images[-_MARK_TAIL_BYTES:][:8], "little")
