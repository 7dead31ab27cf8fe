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
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.errors import CodecError
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.names import TableName
from binlane.statements.session.group_plan import GroupPlan, TextPart

_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
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


def thread_of_raw(groups: RunGroups, number: int) -> int:
    """Give the thread of a group of a run, as `thread_of` does."""
    thread_id = groups.facts.item(lay.FACT_THREAD, number)
    if thread_id < 0 and groups.has(number, lay.IS_PACKED):
        packed = groups.payload(groups.run.groups.item(layout.GROUP_END, number) - 1)
        if packed is not None:
            return packed.thread_id
    return thread_of(groups.group(number), groups.run.format) if thread_id < 0 else thread_id


def marked(groups: RunGroups) -> list[int]:
    """The groups of a run that hold a mark, which no binlog gets."""
    found: set[int] = set()
    if groups.is_any(lay.IS_MARK | lay.IS_PACKED):
        is_mark = groups.facts[lay.FACT_BITS] & lay.IS_MARK
        found = {*map(int, np.flatnonzero(is_mark)), *_marked_in_payloads(groups)}
    return sorted(found)


def _marked_in_payloads(groups: RunGroups) -> set[int]:
    """Give the compressed groups of a run that hold a mark: only small payloads can, and are looked at."""
    run = groups.run
    if run.format.flavor is not Flavor.MYSQL:
        return set()
    last = run.groups[layout.GROUP_END, run.count - 1]
    sizes = run.events[layout.EVENT_END, :last] - run.events[layout.EVENT_OFFSET, :last]
    is_small = sizes < MARK_BYTES_MAX
    places = np.flatnonzero(is_small & (run.events[layout.EVENT_TYPE, :last] == _PAYLOAD))
    unread = np.array([place for place in places.tolist() if groups.payload(place) is None], int)
    numbers = map(int, _groups_of(run, unread))
    return {number for number in numbers if _is_marked(groups.group(number), run.format)}


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


def could_be_raw(groups: RunGroups, number: int, plan: GroupPlan) -> bool:
    """True if a group of a run could be the group of a plan, by its tables and texts."""
    pieces = groups.pieces(number)
    if not pieces:
        return could_be(groups.group(number), groups.run.format, plan)
    return _could_be([(piece.mapped, groups.annotated(piece)) for piece in pieces], plan)


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
