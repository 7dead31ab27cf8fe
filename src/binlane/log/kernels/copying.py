"""Event groups as bytes → the part of them that one binlog gets, as bytes.

Rows are never looked into: which spans stay is decided by table map and text, each known by its
number, and spans are copied with the end position, checksum and flags that they have at their new
place. `routing.event_routing` is the reference; a group with anything else in it is left to that.
"""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.copying_places import (
    is_known_gtid,
    is_mysql_gtid,
    seal,
    store,
    write_mysql_gtid,
)
from binlane.log.kernels.copying_xa import View, finish_xa, is_known_xa, may_prepare, note_xa
from binlane.log.kernels.layout import (
    EVENT_BITMAP,
    EVENT_END,
    EVENT_MAP,
    EVENT_OFFSET,
    EVENT_TYPE,
    GROUP_END,
    GROUP_FIRST,
)
from binlane.log.kernels.memory import (
    Bytes,
    copy_bytes,
    load_u16,
    load_u32,
)
from binlane.log.kernels.text_shapes import (
    RUN_TYPE,
    TEXTS_TYPE,
    Numbers,
    Run,
    Small,
    Texts,
    is_xa,
    savepoint_verb,
    text_at,
)

Planned = tuple[Small, Numbers, Bytes]
"""The form of each group in one binlog, the events of texts, and their bodies; empty without plans."""

_HEADER: Final = 19
_CHECKSUM: Final = 4
_STATEMENT_END: Final = 1
_SAVEPOINT_SIGNS: Final = 4
_CONTEXT: Final = 8
"""Bytes of a QUERY's body before its context: thread and duration, which differ each time."""
_NOT_CASCADED: Final = 0x12
"""Flags of rows: foreign keys are not looked at, or what they do is logged."""


@register_jitable
def _is_named(run: Run, start: int, end: int, number: int, texts: Texts, keep: Bytes) -> bool:
    """True if every name that a text has without a database is that of a table that stays.

    Where a table goes, it may be the one that is meant.
    """
    _, events, _, roles = run
    _, table_of_texts, _, needs, names = texts
    first = table_of_texts[lay.NEEDS_START, number]
    for need in range(first, first + table_of_texts[lay.NEEDS_COUNT, number]):
        is_there = False
        for event in range(start, end):
            if roles[events[EVENT_TYPE, event]] == lay.MAP:
                table = events[EVENT_MAP, event]
                if not keep[table] & lay.KEEP:
                    return False
                if names[table] == needs[need]:
                    is_there = True
        if not is_there:
            return False
    return True


@register_jitable
def _end_statement(
    run: Run,
    statement: tuple[int, int, int],
    view: View,
    texts: Texts,
    actions: Bytes,
    state: Numbers,
) -> bool:
    """Decide on the maps and texts of a statement whose rows were looked at; False if we cannot.

    The statement is given by its first event, the one behind it, and its last rows that stay.
    """
    _, events, _, roles = run
    keep, verdicts = view[0], view[1]
    start, end, last_rows = statement
    for event in range(start, end):
        role = roles[events[EVENT_TYPE, event]]
        if role == lay.MAP:
            if last_rows < 0:
                actions[event] = lay.DROP
        elif role == lay.TEXT or role == lay.LENGTH_TEXT:
            number = events[EVENT_MAP, event]
            if number < 0 and last_rows >= 0:
                return False
            stays = last_rows >= 0 and verdicts[lay.ACTION, number] == lay.COPY
            if stays:
                stays = _is_named(run, start, end, number, texts, keep)
            if last_rows >= 0 and not stays:
                state[lay.TEXTS_LEFT_OUT] += 1
            actions[event] = lay.COPY if stays else lay.DROP
    if last_rows >= 0 and last_rows != end - 1:
        actions[last_rows] = lay.COPY_END
    return True


@register_jitable
def _may_cascade(type_code: int, bits: int) -> bool:
    """True if rows of this type, in a table with these bits, may change other rows in scope."""
    if type_code in (25, 32, 168, 171):
        return bits & lay.PARENT != 0
    return type_code in (24, 31, 39, 167, 170) and bits & lay.UPDATED_PARENT != 0


@register_jitable
def _has_lone_map(events: Small, start: int, end: int, roles: Small, keep: Bytes) -> bool:
    """True if a statement maps a table of which too little is known, without rows of it."""
    for event in range(start, end):
        number = events[EVENT_MAP, event]
        if roles[events[EVENT_TYPE, event]] != lay.MAP or not keep[number] & lay.UNKNOWN:
            continue
        is_lone = True
        for other in range(event + 1, end):
            if roles[events[EVENT_TYPE, other]] == lay.ROWS:
                is_lone = is_lone and events[EVENT_MAP, other] != number
        if is_lone:
            return True
    return False


@register_jitable
def _take_statement(run: Run, event: int, number: int, actions: Bytes, state: Numbers) -> int:
    """Decide on a statement that changes rows, and on the values before it; as `_plan`."""
    _, events, _, roles = run
    action = actions[event]
    if action == lay.UNJUDGED:
        state[lay.UNJUDGED_TEXT] = number
        return -2
    if action == lay.BY_REFERENCE:
        return -1
    if action != lay.DROP:
        return 1
    before = event - 1
    while roles[events[EVENT_TYPE, before]] == lay.VARIABLE:
        actions[before] = lay.DROP
        before -= 1
    return 0


@register_jitable
def _has_statement(run: Run, first: int, end: int, texts: Texts) -> bool:
    """True if a group holds a statement that changes rows."""
    _, events, _, roles = run
    for event in range(first, end):
        number = events[EVENT_MAP, event]
        is_read = roles[events[EVENT_TYPE, event]] == lay.QUERY and number >= 0
        if is_read and texts[1][lay.TEXT_KIND, number] == lay.STATEMENT:
            return True
    return False


@register_jitable
def _ends_part(run: Run, first: int, end: int, view: View) -> bool:
    """True if a group has a statement on objects that bears on the groups behind it."""
    _, events, _, roles = run
    for event in range(first + 1, min(first + 3, end)):
        if roles[events[EVENT_TYPE, event]] == lay.QUERY and events[EVENT_MAP, event] == lay.DDL:
            return bool(view[3][lay.MADE_ENDS, events[EVENT_BITMAP, event]] != 0)
    return False


@register_jitable
def _is_known_gtid(run: Run, event: int) -> bool:
    """True if MySQL's GTID event can be written at another place."""
    data, events, _, _ = run
    return is_known_gtid(data, int(events[EVENT_OFFSET, event]), int(events[EVENT_END, event]))


@register_jitable
def _plan(run: Run, group: int, view: View, texts: Texts, actions: Bytes, state: Numbers) -> int:
    """Decide the result for a group: 1 if a part stays, 0 for nothing, -1 for the reference.

    -2: A statement of the group is to be judged.
    """
    data, events, groups, roles = run
    keep, verdicts = view[0], view[1]
    first, last = groups[GROUP_FIRST, group], groups[GROUP_END, group]
    has_effect = 0
    outside = 0
    has_statement = prepares = False
    start = first
    last_rows = -1
    for event in range(first, last):
        role = roles[events[EVENT_TYPE, event]]
        number = events[EVENT_MAP, event]
        if role == lay.ROWS:
            actions[event] = lay.DROP
            flags = load_u16(data, events[EVENT_OFFSET, event] + _HEADER + 6)
            if number >= 0:
                if keep[number] & lay.KEEP:
                    actions[event] = lay.COPY
                    last_rows = event
                elif not flags & _NOT_CASCADED:
                    outside = 1
                if keep[number] & lay.MERGE:
                    return -1
                may_cascade = _may_cascade(events[EVENT_TYPE, event], keep[number])
                if may_cascade and not flags & _NOT_CASCADED:
                    return -1
            if flags & _STATEMENT_END:
                if outside and _has_lone_map(events, start, event + 1, roles, keep):
                    return -1
                outside = 0
                statement = (start, event + 1, last_rows)
                is_decided = _end_statement(run, statement, view, texts, actions, state)
                if not is_decided:
                    return -1
                if last_rows >= 0:
                    has_effect = 1
                start = event + 1
                last_rows = -1
        elif role == lay.MAP:
            actions[event] = lay.COPY if keep[number] & lay.KEEP else lay.DROP
        elif role == lay.QUERY and number == lay.DDL:
            actions[event] = view[3][lay.MADE_ACTION, events[EVENT_BITMAP, event]]
            if actions[event] == lay.BY_REFERENCE:
                return -1
            has_effect |= actions[event] != lay.DROP
        elif role == lay.QUERY:
            if number < 0:
                return -1
            actions[event] = verdicts[lay.ACTION, number]
            if texts[1][lay.TEXT_KIND, number] == lay.STATEMENT:
                stays = _take_statement(run, event, number, actions, state)
                if stays < 0:
                    return stays
                has_effect |= stays
                has_statement = True
            elif texts[1][lay.TEXT_KIND, number] == lay.XA:
                if not is_known_xa(run, event, view, texts):
                    return -1
                if events[EVENT_BITMAP, event] != lay.NO_XA:
                    stays = finish_xa(run, event, view) if last - first == 2 else -1
                    if stays < 0:
                        return -1
                    has_effect |= stays
            elif actions[event] == lay.BY_REFERENCE:
                return -1
        elif role == lay.VARIABLE:
            if number == lay.UNREAD:
                return -1
            actions[event] = lay.COPY
        elif role == lay.PACKED:
            if number < 0:
                return -1
            actions[event] = verdicts[lay.ACTION, number]
            if actions[event] == lay.UNJUDGED:
                state[lay.UNJUDGED_TEXT] = number
                return -2
            if actions[event] == lay.BY_REFERENCE:
                return -1
            if actions[event] == lay.PUT_BODY:
                if not view[3][lay.MADE_LENGTH, events[EVENT_BITMAP, event]]:
                    state[lay.UNJUDGED_TEXT] = number
                    return -2
                state[lay.TEXTS_LEFT_OUT] += verdicts[lay.PLACE_START, number]
            has_effect |= actions[event] != lay.DROP
        elif role == lay.XA_PREPARE:
            if not may_prepare(run, event, view):
                return -1
            prepares = True
            actions[event] = lay.COPY
        elif (
            role == lay.OTHER
            or role == lay.REFERENCE
            or (role == lay.MYSQL_GTID and not _is_known_gtid(run, event))
        ):
            return -1
        else:
            actions[event] = lay.COPY
    if last_rows >= 0:
        return -1
    for event in range(start, last):
        role = roles[events[EVENT_TYPE, event]]
        if role == lay.MAP or role == lay.TEXT or role == lay.LENGTH_TEXT:
            actions[event] = lay.DROP
    if prepares and has_statement and not has_effect:
        return -1  # what was prepared names tables that no map tells
    return has_effect


@register_jitable
def _kept_length(run: Run, event: int, action: int, view: View) -> int:
    """Bytes of an event at its new place, but for its checksum."""
    data, events, _, _ = run
    verdicts = view[1]
    if action == lay.PUT_BODY:
        return int(_HEADER + view[3][lay.MADE_LENGTH, events[EVENT_BITMAP, event]])
    at, end = int(events[EVENT_OFFSET, event]), int(events[EVENT_END, event])
    if action != lay.PUT and action != lay.PUT_HEAD and action != lay.PUT_SAVEPOINT:
        return end - at
    length = int(_HEADER + _CONTEXT + verdicts[lay.PLACE_LENGTH, events[EVENT_MAP, event]])
    text = text_at(data, at + _HEADER, end)
    if action == lay.PUT_SAVEPOINT:
        digits = _digits(int(events[EVENT_BITMAP, event]))
        return length + savepoint_verb(data, text, end) + _SAVEPOINT_SIGNS + digits
    return length + (end - text if action == lay.PUT_HEAD else 0)


@register_jitable
def _digits(number: int) -> int:
    """The number of decimal digits of a number."""
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


@register_jitable
def _write_savepoint(data: Bytes, text: int, end: int, number: int, out: Bytes, to: int) -> None:
    """Write a statement on a savepoint, whose name is `s` and its number."""
    verb = savepoint_verb(data, text, end)
    copy_bytes(out, to, data, text, verb + 2)
    out[to + verb + 2] = 115
    place = to + verb + 2 + _digits(number)
    out[place + 1] = data[end - 1]
    while place > to + verb + 2:
        out[place] = 48 + number % 10
        number //= 10
        place -= 1


@register_jitable
def _write(
    run: Run, event: int, action: int, made: tuple[View, Bytes], out: Bytes, state: Numbers
) -> None:
    """Write an event that stays; the bytes of the contexts that stand in for others are beside the view."""
    data, events, _, _ = run
    view, arena = made
    verdicts = view[1]
    at = events[EVENT_OFFSET, event]
    to = state[lay.OUT_LENGTH]
    length = _kept_length(run, event, action, view)
    if action == lay.PUT_BODY:
        copy_bytes(out, to, data, at, _HEADER)
        start = view[3][lay.MADE_START, events[EVENT_BITMAP, event]]
        copy_bytes(out, to + _HEADER, view[4], start, length - _HEADER)
    elif action == lay.PUT or action == lay.PUT_HEAD or action == lay.PUT_SAVEPOINT:
        number = events[EVENT_MAP, event]
        copy_bytes(out, to, data, at, _HEADER + _CONTEXT)
        place = to + _HEADER + _CONTEXT
        width = int(verdicts[lay.PLACE_LENGTH, number])
        copy_bytes(out, place, arena, verdicts[lay.PLACE_START, number], width)
        if action == lay.PUT_SAVEPOINT:
            end = int(events[EVENT_END, event])
            text, savepoint = text_at(data, at + _HEADER, end), int(events[EVENT_BITMAP, event])
            _write_savepoint(data, text, end, savepoint, out, place + width)
        elif action == lay.PUT_HEAD:
            left = to + length - place - width
            end = int(events[EVENT_END, event])
            copy_bytes(out, place + width, data, end - left, left)
    else:
        copy_bytes(out, to, data, at, length)
        if action == lay.COPY_END:
            out[to + _HEADER + 6] |= _STATEMENT_END
    seal(out, to, length, state)


@register_jitable
def _head_count(events: Small, first: int) -> int:
    """The number of events before the first statement of a group: MySQL has a BEGIN there."""
    return 2 if is_mysql_gtid(events[EVENT_TYPE, first]) else 1


@register_jitable
def _planned_size(events: Small, ends: tuple[int, int], planned: Planned, group: int) -> int:
    """Bytes of a group that holds planned texts between its head and its last event."""
    forms, bodies, _ = planned
    size = 0
    for event in range(ends[0], ends[1]):
        if event < ends[0] + _head_count(events, ends[0]) or event == ends[1] - 1:
            size += int(events[EVENT_END, event] - events[EVENT_OFFSET, event]) + _CHECKSUM
    first = forms[lay.FORM_FIRST, group]
    for body in range(first, first + forms[lay.FORM_COUNT, group]):
        size += _HEADER + int(bodies[lay.BODY_LENGTH, body]) + _CHECKSUM
    return size


@register_jitable
def _copy_event(run: Run, event: int, out: Bytes, state: Numbers) -> None:
    """Write an event as it is."""
    at = int(run[1][EVENT_OFFSET, event])
    length = int(run[1][EVENT_END, event]) - at
    copy_bytes(out, state[lay.OUT_LENGTH], run[0], at, length)
    seal(out, state[lay.OUT_LENGTH], length, state)


@register_jitable
def _write_planned(
    run: Run, ends: tuple[int, int], planned: Planned, group: int, out: Bytes, state: Numbers
) -> None:
    """Write a group whose planned texts stand between its head and its last event."""
    data, events, _, _ = run
    forms, bodies, arena = planned
    at = int(events[EVENT_OFFSET, ends[0]])
    if is_mysql_gtid(events[EVENT_TYPE, ends[0]]):
        stop = int(events[EVENT_END, ends[0]])
        others = _planned_size(events, ends, planned, group) - (stop - at) - _CHECKSUM
        write_mysql_gtid(data, (at, stop), others, 1, out, state)
        _copy_event(run, ends[0] + 1, out, state)
    else:
        _copy_event(run, ends[0], out, state)
    first = forms[lay.FORM_FIRST, group]
    for body in range(first, first + forms[lay.FORM_COUNT, group]):
        to = state[lay.OUT_LENGTH]
        length = int(bodies[lay.BODY_LENGTH, body])
        store(out, to, bodies[lay.BODY_TIME, body], 4)
        out[to + 4] = bodies[lay.BODY_TYPE, body]
        store(out, to + 5, load_u32(data, at + 5), 4)
        store(out, to + 17, 0, 2)
        copy_bytes(out, to + _HEADER, arena, bodies[lay.BODY_START, body], length)
        seal(out, to, _HEADER + length, state)
    _copy_event(run, ends[1] - 1, out, state)


def copy_groups(
    run: Run,
    view: View,
    texts: Texts,
    planned: Planned,
    room: tuple[Bytes, Bytes],
    state: Numbers,
) -> int:
    """Copy one binlog's parts of the groups from `state[NEXT_GROUP]` on.

    Args:
        run: The run, with the numbers of tables and texts in the index of its events.
        view: The binlog's treatment of tables, texts and XA transactions, whose states are noted.
        texts: The texts that are known, with the contexts that stand in for others.
        planned: The groups that planned texts stand for, those texts, and their bytes.
        room: Receives the events that stay; room for one byte an event.
        state: The numbers that live between two calls, and the counts.

    Returns:
        DONE, ASK, ROTATE, FULL or JUDGE.
    """
    data, events, groups, roles = run
    verdicts = view[1]
    out, actions = room
    forms, _, _ = planned
    has_xa = view[2].shape[1] > 0
    last = state[lay.LAST_GROUP]
    for group in range(state[lay.NEXT_GROUP], last):
        state[lay.NEXT_GROUP] = group
        first, end = groups[GROUP_FIRST, group], groups[GROUP_END, group]
        left_out = state[lay.TEXTS_LEFT_OUT]
        has_plan = group < forms.shape[1] and forms[lay.FORM_COUNT, group] != 0
        if has_plan and forms[lay.FORM_FIRST, group] != lay.OWN_BYTES:
            is_mysql = is_mysql_gtid(events[EVENT_TYPE, first])
            if is_mysql and not _is_known_gtid(run, first):
                return lay.ASK
            if state[lay.POSITION] >= state[lay.LIMIT]:
                return lay.ROTATE
            size = _planned_size(events, (first, end), planned, group)
            if state[lay.OUT_LENGTH] + size + 64 > out.shape[0] - 64:
                state[lay.NEEDED] = size + 128
                return lay.FULL
            _write_planned(run, (first, end), planned, group, out, state)
            state[lay.GROUPS_KEPT] += 1
            state[lay.PLANNED_KEPT] += 1
            continue
        stays = 1
        if state[lay.KEEPS_ALL]:
            for event in range(first, end):
                actions[event] = lay.COPY
                role = roles[events[EVENT_TYPE, event]]
                at = events[EVENT_OFFSET, event] + _HEADER
                if (
                    state[lay.KEEPS_ALL] == lay.ASKS
                    and role == lay.QUERY
                    and events[EVENT_MAP, event] >= 0
                ):
                    actions[event] = verdicts[lay.ACTION, events[EVENT_MAP, event]]
                    if texts[1][lay.TEXT_KIND, events[EVENT_MAP, event]] >= lay.STATEMENT:
                        stays = -1
                if role == lay.QUERY:
                    stop = int(events[EVENT_END, event])
                    if is_xa(data, text_at(data, at, stop), stop) and not is_known_xa(
                        run, event, view, texts
                    ):
                        stays = -1
                if (
                    role == lay.REFERENCE
                    or (role == lay.MYSQL_GTID and not _is_known_gtid(run, event))
                    or (role == lay.XA_PREPARE and not has_xa)
                    or (
                        state[lay.KEEPS_ALL] == lay.ASKS
                        and (
                            role == lay.OTHER
                            or role in (lay.PACKED, lay.XA_PREPARE)
                            or (role == lay.QUERY and events[EVENT_MAP, event] < 0)
                        )
                    )
                ):
                    stays = -1
        else:
            stays = _plan(run, group, view, texts, actions, state)
        if stays < 0:
            state[lay.TEXTS_LEFT_OUT] = left_out
            return lay.ASK if stays == -1 else lay.JUDGE
        told = not state[lay.KEEPS_ALL] and _has_statement(run, first, end, texts)
        if stays == 0:
            state[lay.STATEMENTS] += told
            if has_xa:
                note_xa(run, group, view, texts, 0)
                if roles[events[EVENT_TYPE, end - 1]] == lay.XA_PREPARE:
                    # A crash may end the file anywhere behind: it is to be remembered before that.
                    state[lay.NEXT_GROUP] = group + 1
                    return lay.DONE
            if _ends_part(run, first, end, view):
                state[lay.NEXT_GROUP] = group + 1
                return lay.DONE
            continue
        if state[lay.POSITION] >= state[lay.LIMIT]:
            state[lay.TEXTS_LEFT_OUT] = left_out
            return lay.ROTATE
        size = 0
        for event in range(first, end):
            if actions[event] != lay.DROP:
                size += _CHECKSUM + _kept_length(run, event, int(actions[event]), view)
        if state[lay.OUT_LENGTH] + size + 64 > out.shape[0] - 64:
            state[lay.TEXTS_LEFT_OUT] = left_out
            state[lay.NEEDED] = size + 128
            return lay.FULL
        for event in range(first, end):
            action = int(actions[event])
            if action == lay.DROP:
                continue
            role = roles[events[EVENT_TYPE, event]]
            if role == lay.MYSQL_GTID:
                at, stop = int(events[EVENT_OFFSET, event]), int(events[EVENT_END, event])
                others = size - (stop - at) - _CHECKSUM
                write_mysql_gtid(data, (at, stop), others, 0, out, state)
            else:
                _write(run, event, action, (view, texts[2]), out, state)
                if role == lay.ROWS:
                    state[lay.ROWS_KEPT] += 1
        state[lay.GROUPS_KEPT] += 1
        state[lay.PLANNED_KEPT] += has_plan
        state[lay.STATEMENTS] += told
        if has_xa:
            note_xa(run, group, view, texts, 1)
        if not state[lay.KEEPS_ALL] and _ends_part(run, first, end, view):
            state[lay.NEXT_GROUP] = group + 1
            return lay.DONE
    state[lay.NEXT_GROUP] = last
    return lay.DONE


EXPORTS: Final = (
    (
        copy_groups,
        (
            f"int64({RUN_TYPE}, "
            "Tuple((uint8[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], uint8[::1])), "
            f"{TEXTS_TYPE}, "
            "Tuple((int32[:, ::1], int64[:, ::1], uint8[::1])), UniTuple(uint8[::1], 2), int64[::1])"
        ),
    ),
)
