"""Facts of a run's groups: their makers, and the places where their statements end.

`routing.run_groups` reads the facts; a group that is not made of rows and their brackets has no pieces.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.layout import (
    EVENT_END,
    EVENT_MAP,
    EVENT_OFFSET,
    EVENT_TYPE,
    GROUP_END,
    GROUP_FIRST,
    GTID_NAME_SIZE,
)
from binlane.log.kernels.memory import Bytes, is_equal, load_i64, load_u16, load_u32
from binlane.log.kernels.tagged_gtids import is_known_tagged, name_of_tagged
from binlane.log.kernels.text_shapes import is_bracket

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Events = tuple[Bytes, Small, Numbers]
"""The bytes of a run, the index of its events, the index of its groups."""

_HEADER: Final = 19
_DOMAIN_AT: Final = 8
_QUERY: Final = 2
_XID: Final = 16
_MAP: Final = 19
_PAYLOAD: Final = 40
_ANNOTATE: Final = 160
_ROWS_TEXT: Final = 29
_MYSQL_GTIDS: Final = (33, 42)
_GTID: Final = 162
_PACKED_QUERY: Final = 165
_STATEMENT_END: Final = 1
_COMMIT_LENGTH: Final = 7
_FLAGS: Final = 12
_HAS_COMMIT_ID: Final = 2
_IS_XA: Final = 0xC0
_IS_MULTI_ENGINE: Final = 1
_ENDS_ALTER: Final = 12
_HAS_THREAD: Final = 0x10


@register_jitable
def _is_rows(kind: int) -> bool:
    """True for rows, packed ones of MariaDB among them."""
    return 23 <= kind <= 25 or 30 <= kind <= 32 or 166 <= kind <= 168


@register_jitable
def _is_context(kind: int) -> bool:
    """True for an event that stands before or for a statement, and for packed ones."""
    return kind in (5, 13, 14, 18, _PAYLOAD, _PACKED_QUERY)


@register_jitable
def _thread_in_gtid(data: Bytes, body: int, end: int) -> int:
    """The thread that MariaDB's GTID event names; -1 if it names none."""
    if body + _FLAGS + 1 >= end:
        return -1
    flags = int(data[body + _FLAGS])
    place = body + _FLAGS + 1 + (8 if flags & _HAS_COMMIT_ID else 0)
    if flags & _IS_XA or place >= end:
        return -1
    extra = int(data[place])
    place += 1 + (extra & _IS_MULTI_ENGINE) + (8 if extra & _ENDS_ALTER else 0)
    return load_u32(data, place) if extra & _HAS_THREAD and place + 4 <= end else -1


@register_jitable
def _is_end(data: Bytes, kind: int, end: int) -> bool:
    """True if an event is XID or COMMIT; the NUL ends the name of the database before it."""
    if kind != _QUERY:
        return kind == _XID
    at = end - _COMMIT_LENGTH
    is_commit = data[at] == 0 and load_u32(data, at + 1) == 0x4D4D4F43
    return bool(is_commit and load_u16(data, at + 5) == 0x5449)


def look(run: Events, mark: Bytes, name_at: int, facts: Numbers, pieces: Numbers) -> int:
    """Find the facts of all groups of a run.

    Args:
        run: The run's bytes and indexes.
        mark: The name of the table of marks, as a TABLE_MAP has it.
        name_at: The offset of the name in the body of a TABLE_MAP.
        facts: Receives the facts, a column a group.
        pieces: Receives the pieces of rows, up to one STMT_END each; room for one an event.

    Returns:
        How many pieces there are.
    """
    data, events, groups = run
    count = 0
    for group in range(groups.shape[1]):
        first, end = groups[GROUP_FIRST, group], groups[GROUP_END, group]
        bits, thread, from_query = 0, -1, -1
        begin = count
        # MySQL has a BEGIN behind the GTID.
        is_mysql = events[EVENT_TYPE, first] in _MYSQL_GTIDS
        head = first + 2 if is_mysql else first + 1
        start, table, text, text_end = head, -2, 0, 0
        kind = int(events[EVENT_TYPE, end - 1])
        is_cut = (is_mysql or events[EVENT_TYPE, first] == _GTID) and end > head + 1
        is_cut = is_cut and _is_end(data, kind, int(events[EVENT_END, end - 1]))
        if kind == _XID:
            bits |= lay.ENDS_WITH_XID
        for event in range(first, end):
            kind = int(events[EVENT_TYPE, event])
            body = int(events[EVENT_OFFSET, event]) + _HEADER
            stop = int(events[EVENT_END, event])
            if kind == _MAP:
                bits |= lay.HAS_MAPS
                number = events[EVENT_MAP, event]
                table = number if table == -2 or table == number else -1
                length = mark.shape[0]
                if body + name_at + length <= stop and is_equal(
                    data, body + name_at, mark, 0, length
                ):
                    bits |= lay.IS_MARK
            elif _is_rows(kind):
                if data[body + 6] & _STATEMENT_END:
                    pieces[lay.PIECE_FIRST, count] = start
                    pieces[lay.PIECE_END, count] = event + 1
                    pieces[lay.PIECE_TABLE, count] = table
                    pieces[lay.PIECE_TEXT, count] = text
                    pieces[lay.PIECE_TEXT_END, count] = text_end
                    count += 1
                    start, table, text, text_end = event + 1, -2, 0, 0
            elif kind == _ANNOTATE:
                if table == -2 and not text:
                    text, text_end = body, stop
            elif kind == _ROWS_TEXT:
                is_cut = is_cut and is_mysql  # a text for people, which nobody compares
            elif kind == _GTID and event == first:
                thread = _thread_in_gtid(data, body, stop)
            else:
                if kind in (_QUERY, _PACKED_QUERY):
                    from_query = load_u32(data, body) if from_query < 0 else from_query
                if _is_context(kind) or (kind == _QUERY and not is_bracket(data, body, stop)):
                    bits |= lay.HAS_STATEMENTS
                if kind == _PAYLOAD:
                    bits |= lay.IS_PACKED
                is_begin = event == head - 1 and kind == _QUERY and is_bracket(data, body, stop)
                is_head = is_mysql and (event == first or is_begin)
                is_cut = is_cut and (event == end - 1 or is_head)
        if not is_cut or start != end - 1 or bits & lay.IS_MARK:
            count = begin
        if thread < 0:
            thread = max(from_query, 0)
        facts[lay.FACT_THREAD, group] = -1 if bits & (lay.IS_MARK | lay.IS_PACKED) else thread
        facts[lay.FACT_BITS, group] = bits
        facts[lay.FACT_PIECES, group] = begin
        facts[lay.FACT_PIECES_END, group] = count
    return count


def read_tagged(data: Bytes, places: Numbers, names: Bytes, sequences: Numbers) -> int:
    """Read GTIDs with tags.

    Args:
        data: Bytes that hold the events.
        places: Places of the events' first bytes, and behind their bodies, a column an event.
        names: Receives UUIDs and tags, `GTID_NAME_SIZE` bytes each.
        sequences: Receives the sequences of the GTIDs, in its first row.

    Returns:
        How many were read: all, or those before the first one that is left to the reference.
    """
    for each in range(places.shape[1]):
        at, end = places[0, each], places[1, each]
        if not is_known_tagged(data, at, end):
            return each
        name = names[each * GTID_NAME_SIZE : (each + 1) * GTID_NAME_SIZE]
        sequences[0, each] = name_of_tagged(data, at, end, name)
    return int(places.shape[1])


def common_domain(run: Events, sequences: Numbers) -> int:
    """Read the GTIDs of groups of MariaDB that are all of one domain, and in order.

    Args:
        run: Bytes and events of groups, all of which begin with such a GTID.
        sequences: Gets the sequence of each group.

    Returns:
        The domain; -1 if there are several, or the sequences do not grow.
    """
    data, events, groups = run
    domain, before = -1, 0
    for number in range(groups.shape[1]):
        body = int(events[EVENT_OFFSET, groups[GROUP_FIRST, number]]) + _HEADER
        sequence = int(load_i64(data, body))
        own = int(load_u32(data, body + _DOMAIN_AT))
        if sequence <= before or (number and own != domain):
            return -1
        domain, before = own, sequence
        sequences[number] = sequence
    return domain


EXPORTS: Final = (
    (common_domain, "int64(Tuple((uint8[::1], int32[:, ::1], int64[:, ::1])), int64[::1])"),
    (read_tagged, "int64(uint8[::1], int64[:, ::1], uint8[::1], int64[:, ::1])"),
    (
        look,
        (
            "int64(Tuple((uint8[::1], int32[:, ::1], int64[:, ::1])), uint8[::1], int64, "
            "int64[:, ::1], int64[:, ::1])"
        ),
    ),
)
