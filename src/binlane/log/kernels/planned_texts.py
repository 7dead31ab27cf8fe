"""Plans as bytes → the texts that stand for a run's groups, each held against its group.

A plan is walked in the form that `session.plan_bytes` gives it; its texts stay where they are in its bytes.
What is not plain is left to the reference, `routing.planned_route`: nothing is an error here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.layout import EVENT_END, EVENT_MAP, EVENT_OFFSET, EVENT_TYPE
from binlane.log.kernels.memory import Bytes, is_equal, load_i64, load_le, load_u16, load_u32
from binlane.log.kernels.status_variables import following, may_have_xid, step_of

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Events = tuple[Bytes, Small]
"""The bytes of a run, and the index of its events."""
Tables = tuple[Small, Numbers]
"""The widths of columns, with a mark for whole numbers, and the places of each table's columns there."""
Source = tuple[Events, Numbers, Tables, bool]
"""The events of a run, the pieces of its groups, the tables, and True for those of MySQL."""
Group = tuple[int, int, int]
"""A group's first piece, the one behind its last, and where TABLE_MAP has its names."""

_HEADER: Final = 19
_QUERY: Final = 2
_INTVAR: Final = 5
_MAP: Final = 19
_INSERT: Final = 23
_INSERT_WITH_EXTRA: Final = 30
_ANNOTATE: Final = 160
_INSERT_ID: Final = 2
_INTVAR_BYTES: Final = 9
_STATUS_AT: Final = 13
_ROWS_HEAD: Final = 8
_COLUMNS_MOST: Final = 250
_PLAN_HEAD: Final = 13
_PART_HEAD: Final = 13
_EVENT_HEAD: Final = 7
_IS_TEXT: Final = 1
_HAS_SECTION: Final = 2
_HAS_GENERATED: Final = 4
_HAS_TABLES: Final = 8
_IS_AS_SENT: Final = 32


@register_jitable
def _strings_end(text: Bytes, at: int, end: int, count: int) -> int:
    """The place behind some names; -1 if they are not whole."""
    for _ in range(count):
        if at < 0 or at + 2 > end:
            return -1
        at += 2 + load_u16(text, at)
    return at if at <= end else -1


@register_jitable
def _piece_end(text: Bytes, at: int, end: int) -> int:
    if at < 0 or at + 8 > end:
        return -1
    changes = load_u32(text, at + 4)
    place = _strings_end(text, at + 8, end, 2 * load_u32(text, at))
    for _ in range(changes):
        if place < 0:
            return -1
        place = _strings_end(text, place + 1, end, 2)
    return place


@register_jitable
def _section_end(text: Bytes, at: int, end: int) -> int:
    if at < 0 or at + 4 > end:
        return -1
    place = at + 4
    for _ in range(load_u32(text, at)):
        if place < 0:
            return -1
        place = _piece_end(text, place, end)
    return place


@register_jitable
def _events_at(text: Bytes, at: int, end: int) -> int:
    """The place of a text's events, by that of its part; -1 if the part is not whole."""
    kind, place = int(text[at]), at + _PART_HEAD
    if kind & _HAS_GENERATED:
        place = _strings_end(text, place, end, 2)
        place = -1 if place < 0 else place + 4
    if kind & _HAS_TABLES:
        if place < 0 or place + 4 > end:
            return -1
        place = _strings_end(text, place + 4, end, 2 * load_u32(text, place))
    return place if place <= end else -1


@register_jitable
def _part_end(text: Bytes, at: int, end: int) -> int:
    if at < 0 or at + _PART_HEAD > end:
        return -1
    if not text[at] & _IS_TEXT:
        return at + _PART_HEAD
    place = _events_at(text, at, end)
    for _ in range(load_u32(text, at + 9)):
        if place < 0 or place + _EVENT_HEAD > end:
            return -1
        place += _EVENT_HEAD + load_u32(text, place + 3)
    return place if place <= end else -1


@register_jitable
def _list_end(text: Bytes, at: int, end: int) -> int:
    if at < 0 or at + 4 > end:
        return -1
    place = at + 4
    for _ in range(load_u32(text, at)):
        if place < 0:
            return -1
        place = _part_end(text, place, end)
    return place


@register_jitable
def _is_table(data: Bytes, at: int, text: Bytes, place: int) -> bool:
    """True if a TABLE_MAP, by the place of its names, is of the table that a plan names."""
    for _ in range(2):
        length = load_u16(text, place)
        if int(data[at]) != length or not is_equal(data, at + 1, text, place + 2, length):
            return False
        at += length + 2
        place += length + 2
    return True


@register_jitable
def _has_tables(
    run: Events, span: tuple[int, int], name_at: int, text: Bytes, wanted: tuple[int, int, int]
) -> bool:
    """True if some events map the tables of some pieces of a section, and no others.

    The pieces are given by the place of the first, their number, and where the plan ends.
    """
    data, events = run
    first, last = span
    start, count, end = wanted
    place = start
    for _ in range(count):
        name = place + 8
        for _ in range(load_u32(text, place)):
            is_mapped = False
            for event in range(first, last):
                if events[EVENT_TYPE, event] == _MAP:
                    at = int(events[EVENT_OFFSET, event]) + _HEADER + name_at
                    is_mapped = is_mapped or _is_table(data, at, text, name)
            if not is_mapped:
                return False
            name = _strings_end(text, name, end, 2)
        place = _piece_end(text, place, end)
    for event in range(first, last):
        if events[EVENT_TYPE, event] != _MAP:
            continue
        at = int(events[EVENT_OFFSET, event]) + _HEADER + name_at
        is_wanted = False
        place = start
        for _ in range(count):
            name = place + 8
            for _ in range(load_u32(text, place)):
                is_wanted = is_wanted or _is_table(data, at, text, name)
                name = _strings_end(text, name, end, 2)
            place = _piece_end(text, place, end)
        if not is_wanted:
            return False
    return True


@register_jitable
def _is_same_group(
    run: Events, group: Group, pieces: Numbers, text: Bytes, sections: tuple[int, int, int]
) -> bool:
    """True if a group's pieces map the tables of a plan's sections, as `cut_group.is_same_group` has it.

    The sections are given by the place of the first, their number, and where the plan ends.
    """
    begin, finish, name_at = group
    at, count, end = sections
    if count == 1:
        if begin == finish:
            return False
        span = (int(pieces[lay.PIECE_FIRST, begin]), int(pieces[lay.PIECE_END, finish - 1]))
        return _has_tables(run, span, name_at, text, (at + 4, load_u32(text, at), end))
    piece = begin
    for _ in range(count):
        number, place = load_u32(text, at), at + 4
        for _ in range(max(number, 1)):
            if piece == finish:
                return False
            span = (int(pieces[lay.PIECE_FIRST, piece]), int(pieces[lay.PIECE_END, piece]))
            if not _has_tables(run, span, name_at, text, (place, min(number, 1), end)):
                return False
            if number:
                place = _piece_end(text, place, end)
            piece += 1
        at = place
    return piece == finish


@register_jitable
def _is_all_rows(text: Bytes, at: int, sections: int) -> bool:
    """True if a list of parts has the rows of all sections, as the source has them."""
    count = load_u32(text, at)
    if count != sections:
        return False
    for number in range(count):
        part = at + 4 + number * _PART_HEAD
        if text[part] & _IS_TEXT or load_u32(text, part + 1) != number:
            return False
    return True


@register_jitable
def _value_at(
    data: Bytes, span: tuple[int, int], widths: Small, columns: tuple[int, int], column: int
) -> tuple[int, int]:
    """A number in a row image that has all columns, and the image's end; -1 if that is not plain."""
    at, end = span
    start, count = columns
    place = at + ((count + 7) >> 3)
    value = -1
    for number in range(count):
        if place > end:
            return -1, -1
        if (int(data[at + (number >> 3)]) >> (number & 7)) & 1:
            if number == column:
                return -1, -1
            continue
        width = int(widths[0, start + number])
        if width < 0:
            if place - width > end:
                return -1, -1
            width = load_le(data, place, -width) - width
        elif number == column:
            value = load_le(data, place, width)
        place += width
    return (value, place) if place <= end else (-1, -1)


@register_jitable
def _table_number(run: Events, span: tuple[int, int], name_at: int, text: Bytes, name: int) -> int:
    """The number of the one table map of a table among some events; -1 if there is none."""
    data, events = run
    found = -1
    for event in range(span[0], span[1]):
        if events[EVENT_TYPE, event] != _MAP:
            continue
        at = int(events[EVENT_OFFSET, event]) + _HEADER + name_at
        if _is_table(data, at, text, name):
            number = int(events[EVENT_MAP, event])
            if found >= 0 and found != number:
                return -1
            found = number
    return found


@register_jitable
def _chosen(
    run: Events,
    span: tuple[int, int],
    table: int,
    tables: Tables,
    told: tuple[int, int, int, int],
) -> int:
    """The first AUTO_INCREMENT value that the server chose for plain inserts into one table.

    `told` are the number of the column, the first value if it is known, increment and offset. -1 if the
    rows are others, or their values do not follow one another.
    """
    data, events = run
    widths, places = tables
    column, expected, increment, offset = told
    start, count = int(places[0, table]), int(places[1, table])
    if not 0 <= column < count <= _COLUMNS_MOST or not widths[1, start + column]:
        return -1
    first = 0
    for event in range(span[0], span[1]):
        kind = int(events[EVENT_TYPE, event])
        if kind in (_MAP, _ANNOTATE) or events[EVENT_MAP, event] != table:
            continue
        if kind not in (_INSERT, _INSERT_WITH_EXTRA):
            return -1
        at = int(events[EVENT_OFFSET, event]) + _HEADER + _ROWS_HEAD
        end = int(events[EVENT_END, event])
        at += load_u16(data, at) if kind == _INSERT_WITH_EXTRA and at + 2 <= end else 0
        if at >= end or data[at] != count:
            return -1
        at += 1
        for number in range(count):
            if not (int(data[at + (number >> 3)]) >> (number & 7)) & 1:
                return -1
        at += (count + 7) >> 3
        while at < end:
            value, at = _value_at(data, (at, end), widths, (start, count), column)
            if value < 0:
                return -1
            if not first and (not expected or value == expected):
                first = expected = value
            if first:
                if value != expected:
                    return -1
                expected = following(value, increment, offset)
    return first or -1


@register_jitable
def _add_text(
    source: Source, group: Group, text: Bytes, part: tuple[int, int], bodies: Numbers, added: int
) -> int:
    """Add the events of a text for some pieces of a group; how many are there then, -1 for the reference.

    `part` is the place of the text's part, and where the plan ends.
    """
    run, pieces, tables, is_mysql = source
    data, events = run
    first_piece, end_piece, name_at = group
    at, end = part
    kind, count = int(text[at]), load_u32(text, at + 9)
    events_at = _events_at(text, at, end)
    if not count:
        return -1
    place = last = events_at
    for _ in range(count):
        if load_u16(text, place + 1):
            return -1
        last = place
        place += _EVENT_HEAD + load_u32(text, place + 3)
    body, stop = last + _EVENT_HEAD, place
    if text[last] != _QUERY or stop - body <= _STATUS_AT:
        return -1
    status = body + _STATUS_AT
    status_end = status + load_u16(text, status - 2)
    statement = status_end + int(text[body + 8]) + 1
    if statement > stop or text[statement - 1] != 0:
        return -1
    if is_mysql and may_have_xid(text, status, status_end):
        return -1
    begin, length = int(pieces[lay.PIECE_TEXT, first_piece]), 0
    if begin and kind & _IS_AS_SENT:
        length = int(pieces[lay.PIECE_TEXT_END, first_piece]) - begin
        if stop - length - 1 < body or text[stop - length - 1] != 0:
            return -1
        if not is_equal(text, stop - length, data, begin, length):
            return -1
    span = (
        int(pieces[lay.PIECE_FIRST, first_piece]),
        int(pieces[lay.PIECE_END, end_piece - 1]),
    )
    time = load_u32(text, at + 5) or load_u32(data, int(events[EVENT_OFFSET, span[0]]))
    place = events_at
    for _ in range(count):
        length, body = load_u32(text, place + 3), place + _EVENT_HEAD
        if text[place] == _INTVAR and length and text[body] == _INSERT_ID:
            if not kind & _HAS_GENERATED or length != _INTVAR_BYTES:
                return -1
            name = at + _PART_HEAD
            column = load_u32(text, _strings_end(text, name, end, 2))
            increment, offset = step_of(text, status, status_end)
            expected = load_i64(text, body + 1)
            number = _table_number(run, span, name_at, text, name)
            if increment < 0 or expected < 0 or number < 0:
                return -1
            value = _chosen(run, span, number, tables, (column, expected, increment, offset))
            if value < 0:
                return -1
            for byte in range(8):
                text[body + 1 + byte] = (value >> (8 * byte)) & 255
        bodies[lay.BODY_TYPE, added] = text[place]
        bodies[lay.BODY_TIME, added] = time
        bodies[lay.BODY_START, added] = body
        bodies[lay.BODY_LENGTH, added] = length
        added += 1
        place = body + length
    return added


@register_jitable
def _add_list(
    source: Source,
    group: Group,
    text: Bytes,
    parts: tuple[int, int, int, int],
    bodies: Numbers,
    added: int,
) -> int:
    """Add the texts of a list of parts that are in order; as `_add_text`.

    `parts` are the place of the list, the end of the plan, the place of its sections and their number.
    """
    begin, finish, name_at = group
    at, end, section_at, section_count = parts
    count, place = load_u32(text, at), at + 4
    if not count:
        return -1
    following, piece = 0, begin
    for _ in range(count):
        kind, section = int(text[place]), load_u32(text, place + 1)
        is_next = kind & _IS_TEXT and kind & _HAS_SECTION
        if not is_next or not following <= section < section_count:
            return -1
        own = (begin, finish, name_at)
        if section_count > 1:
            while following < section:
                piece += max(load_u32(text, section_at), 1)
                section_at = _section_end(text, section_at, end)
                following += 1
            own = (piece, piece + max(load_u32(text, section_at), 1), name_at)
            piece = own[1]
            section_at = _section_end(text, section_at, end)
        following = section + 1
        added = _add_text(source, own, text, (place, end), bodies, added)
        if added < 0:
            return -1
        place = _part_end(text, place, end)
    return added


@register_jitable
def _plan_end(text: Bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """The places behind a plan's names, sections and lists, and behind it; -1 if it is not whole."""
    if at < 0 or at + 8 > end:
        return -1, -1, -1, -1
    names, bases = load_u32(text, at), load_u32(text, at + 4)
    place, greatest = at + 8, -1
    for number in range(names + bases):
        place = _strings_end(text, place, end, 1)
        if place < 0 or place + 4 > end:
            return -1, -1, -1, -1
        if number < names:
            greatest = max(greatest, load_u32(text, place))
        place += 4
    head = place
    if head + _PLAN_HEAD > end or greatest >= load_u32(text, head + 4):
        return -1, -1, -1, -1
    place += _PLAN_HEAD
    for _ in range(load_u32(text, head)):
        place = _section_end(text, place, end)
        if place < 0:
            return -1, -1, -1, -1
    lists = place
    for _ in range(load_u32(text, head + 4)):
        place = _list_end(text, place, end)
        if place < 0:
            return -1, -1, -1, -1
    behind = place
    for _ in range(load_u32(text, head + 8)):
        place = _strings_end(text, place, end, 1)
        if place < 0 or place + 4 > end:
            return -1, -1, -1, -1
        has_event = load_u32(text, place)
        place += 4
        if has_event:
            if place + _EVENT_HEAD > end:
                return -1, -1, -1, -1
            place += _EVENT_HEAD + load_u32(text, place + 3)
    return (head, lists, behind, place) if place <= end else (-1, -1, -1, -1)


def read_plans(
    run: Events,
    looked: tuple[Numbers, Numbers],
    plans: tuple[Bytes, Numbers],
    tables: Tables,
    out: tuple[Numbers, Small],
    state: Numbers,
) -> None:
    """Find the form of groups in each list of parts of their plans.

    Args:
        run: The run's bytes, and the index of its events.
        looked: The facts and the pieces of its groups, as `group_facts.look` gives them.
        plans: The bytes of plans of statements, in which values that the server chose are written, and a
            column for each group that has one: its number, the place and the end of its statement's
            plans, and which of them is its own. The places of the names of binlogs, the first form, and
            flags are written there.
        tables: Widths of the columns of tables.
        out: Receives the events of texts, and the forms, as `copying.copy_groups` takes them.
        state: Where TABLE_MAP has its names, if texts are wanted, and if the log is of MySQL; receives
            how many events and forms there are.
    """
    facts, pieces = looked
    text, index = plans
    bodies, forms = out
    name_at, texts_wanted = state[lay.PLANS_NAME_AT], state[lay.PLANS_WANT_TEXTS]
    source = (run, pieces, tables, state[lay.PLANS_IS_MYSQL] != 0)
    added, form = 0, 0
    for plan in range(index.shape[1]):
        number, end = index[lay.PLAN_GROUP, plan], index[lay.PLAN_END, plan]
        index[lay.PLAN_FORM, plan] = -1
        at = int(index[lay.PLAN_START, plan])
        if facts[lay.FACT_BITS, number] & (lay.IS_MARK | lay.IS_PACKED) or at + 4 > end:
            continue
        own = index[lay.PLAN_NUMBER, plan]
        if own >= load_u32(text, at):
            continue
        at += 4
        for _ in range(own):
            if at >= 0:
                at = _plan_end(text, at, end)[3]
        head, lists, _, behind = _plan_end(text, at, end) if at >= 0 else (-1, -1, -1, -1)
        if behind < 0 or load_u32(text, head + 8):
            continue
        index[lay.PLAN_NAMES, plan] = at
        index[lay.PLAN_NAMES_END, plan] = head
        index[lay.PLAN_FORM, plan] = form
        is_full = int(text[head + 12]) == state[lay.PLANS_FULL_IMAGE]
        index[lay.PLAN_IS_FULL, plan] = is_full
        section_count, list_count = load_u32(text, head), load_u32(text, head + 4)
        sections = head + _PLAN_HEAD
        group = (
            int(facts[lay.FACT_PIECES, number]),
            int(facts[lay.FACT_PIECES_END, number]),
            int(name_at),
        )
        is_same = texts_wanted != 0 and _is_same_group(
            run, group, pieces, text, (sections, section_count, int(end))
        )
        place = lists
        for _ in range(list_count):
            forms[lay.FORM_FIRST, form] = lay.BY_ROUTE
            forms[lay.FORM_COUNT, form] = 0
            if _is_all_rows(text, place, section_count):
                if is_full:
                    forms[lay.FORM_FIRST, form] = lay.OWN_BYTES
                    forms[lay.FORM_COUNT, form] = lay.PLANNED
            elif is_same:
                parts = (place, int(end), sections, section_count)
                behind = _add_list(source, group, text, parts, bodies, added)
                if behind >= 0:
                    forms[lay.FORM_FIRST, form] = added
                    forms[lay.FORM_COUNT, form] = behind - added
                    added = behind
            form += 1
            place = _list_end(text, place, int(end))
    state[lay.PLANS_BODIES], state[lay.PLANS_FORMS] = added, form


EXPORTS: Final = (
    (
        read_plans,
        (
            "void(Tuple((uint8[::1], int32[:, ::1])), UniTuple(int64[:, ::1], 2), "
            "Tuple((uint8[::1], int64[:, ::1])), Tuple((int32[:, ::1], int64[:, ::1])), "
            "Tuple((int64[:, ::1], int32[:, ::1])), int64[::1])"
        ),
    ),
)
