"""Row images: which events belong to which table, and where each value of each image stands."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels.layout import (
    COLUMN_KIND,
    COLUMN_TARGET,
    DELETE,
    EVENT_BITMAP,
    EVENT_END,
    EVENT_IMAGES,
    EVENT_MAP,
    EVENT_TYPE,
    GROUP_END,
    GROUP_FIRST,
    INSERT,
    INSERTS,
    LOCATE_AT,
    LOCATE_DAMAGED,
    LOCATE_DONE,
    LOCATE_FULL,
    LOCATE_NEXT,
    LOCATE_NUMBER,
    LOCATE_ROWS,
    NULL,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    UPDATES,
)
from binlane.log.kernels.memory import Bytes, copy_bytes, is_equal, load_le, prefetch

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_LINE: Final = 64
_LINES_AHEAD: Final = 4
_EVENTS_AHEAD: Final = 6


def own(groups: Numbers, wanted: Bytes, owners: Small, picked: Small) -> int:
    """Assign each event of complete groups to its group, and select the wanted ones.

    Args:
        groups: The table of groups, as `scan` makes it.
        wanted: A flag for each of the complete groups.
        owners: Receives the group of each event.
        picked: Receives the events of wanted groups, in log order.

    Returns:
        How many were picked.
    """
    count = 0
    for number in range(wanted.shape[0]):
        for event in range(groups[GROUP_FIRST, number], groups[GROUP_END, number]):
            owners[event] = number
            if wanted[number]:
                picked[count] = event
                count += 1
    return count


def choose(
    events: Small, picked: Small, wanted: Bytes, classes: Bytes, kept: Small, found: Bytes
) -> int:
    """Keep the events of wanted tables, and find their classes.

    Args:
        events: The table of noted events.
        picked: Columns of it, in log order; each has a table map.
        wanted: A flag for each table map.
        classes: Bits for each event type.
        kept: Receives those of `picked` whose table is wanted.
        found: Receives the bits of them all, together.

    Returns:
        How many were kept.
    """
    count = 0
    bits = 0
    for index in range(picked.shape[0]):
        event = picked[index]
        if wanted[events[EVENT_MAP, event]]:
            bits |= int(classes[events[EVENT_TYPE, event]])
            kept[count] = event
            count += 1
    found[0] = bits
    return count


def order(events: Small, picked: Small, counts: Small, ordered: Small) -> int:
    """Sort events by table map, keeping their order within each.

    Args:
        events: The table of noted events.
        picked: Columns of it, in log order.
        counts: Receives where the events of each map end in `ordered`; zeros when it comes.
        ordered: Receives `picked`, map by map.

    Returns:
        How many events there are.
    """
    count = int(picked.shape[0])
    for index in range(count):
        counts[events[EVENT_MAP, picked[index]]] += 1
    total = 0
    for number in range(counts.shape[0]):
        own = counts[number]
        counts[number] = total
        total += own
    for index in range(count):
        number = events[EVENT_MAP, picked[index]]
        ordered[counts[number]] = picked[index]
        counts[number] += 1
    return count


@register_jitable(inline="always")
def _present(
    data: Bytes, bitmap: int, columns: Small, kinds: Small, targets: Small, absent: Bytes
) -> int:
    """List kind and target of an image's columns, mark the missing ones; return their number."""
    count = 0
    for column in range(columns.shape[1]):
        if (int(data[bitmap + (column >> 3)]) >> (column & 7)) & 1:
            kinds[count] = columns[COLUMN_KIND, column]
            targets[count] = columns[COLUMN_TARGET, column]
            count += 1
        else:
            absent[column] = 1
    return count


@register_jitable(inline="always")
def _image(
    data: Bytes,
    start: int,
    end: int,
    width: int,
    kinds: Small,
    targets: Small,
    count: int,
    row: int,
    positions: Small,
    nulls: Bytes,
) -> int:
    """Note where the values of one image stand; where it ends, or -1."""
    at = start + (count + 7) // 8
    if at > end or row >= positions.shape[1]:
        return -1
    if count < width:
        for target in range(positions.shape[0]):
            positions[target, row] = NULL
            nulls[target] = 1
    flags = 0
    for index in range(count):
        flags = flags >> 1 if index & 7 else int(data[start + (index >> 3)])
        target = targets[index]
        if flags & 1:
            if target >= 0:
                positions[target, row] = NULL
                nulls[target] = 1
            continue
        if target >= 0:
            positions[target, row] = at
        kind = int(kinds[index])
        if kind >= 0:
            at += kind
        else:
            if at - kind > end:
                return -1
            at += load_le(data, at, -kind) - kind
    return at if at <= end else -1


@register_jitable(inline="always")
def _prefetch_images(data: Bytes, events: Small, event: int) -> None:
    """Events of one table lie apart, where the processor does not expect them."""
    start = int(events[EVENT_BITMAP, event])
    for line in range(_LINES_AHEAD):
        prefetch(data, start + line * _LINE)


def locate(
    data: Bytes,
    columns: Small,
    effects: Small,
    events: Small,
    picked: Small,
    state: Numbers,
    present: Small,
    absent: Bytes,
    positions: Small,
    nulls: Bytes,
    notes: Small,
) -> int:
    """Find the values of the row images of one table's events.

    Args:
        data: The buffer of the events.
        columns: The table's columns: bytes that a value takes, or minus those of its length; and
            the row of `positions` that is its own, or -1.
        effects: INSERTS, UPDATES or DELETES for each event type.
        events: The table of noted events.
        picked: Columns of it: the events, all of this table.
        state: The place to go on, and the images found.
        present: Room for four lists of columns.
        absent: Two flags a column: whether a before image and whether an after image lacked it.
        positions: Receives where the value of each column and image stands, NULL for none.
        nulls: Receives 1 for each row of `positions` with a NULL.
        notes: Receives of each image its event, what happened, and the change's number.

    Returns:
        LOCATE_DONE, LOCATE_FULL or LOCATE_DAMAGED.
    """
    width = columns.shape[1]
    kinds, targets = present[:width], present[width : 2 * width]
    kinds_after, targets_after = present[2 * width : 3 * width], present[3 * width :]
    rows_max = positions.shape[1]
    bitmap_length = (width + 7) // 8
    seen, before, after = -1, 0, 0
    effect = 0
    at, number, row = state[LOCATE_AT], state[LOCATE_NUMBER], state[LOCATE_ROWS]
    for turn in range(state[LOCATE_NEXT], picked.shape[0]):
        event = picked[turn]
        if turn + _EVENTS_AHEAD < picked.shape[0]:
            _prefetch_images(data, events, picked[turn + _EVENTS_AHEAD])
        end = int(events[EVENT_END, event])
        bitmap = int(events[EVENT_BITMAP, event])
        own_effect = int(effects[events[EVENT_TYPE, event]])
        bitmaps = bitmap_length * (2 if own_effect == UPDATES else 1)
        if at == 0:
            at, number = int(events[EVENT_IMAGES, event]), 0
        is_new = seen < 0 or own_effect != effect
        if at < end and (is_new or not is_equal(data, bitmap, data, seen, bitmaps)):
            seen, effect = bitmap, own_effect
            flags = absent[width:] if effect == INSERTS else absent[:width]
            before = _present(data, bitmap, columns, kinds, targets, flags)
            if effect == UPDATES:
                bitmap += bitmap_length
                after = _present(data, bitmap, columns, kinds_after, targets_after, absent[width:])
        while at < end:
            if row + 2 > rows_max:
                state[LOCATE_NEXT], state[LOCATE_AT] = turn, at
                state[LOCATE_NUMBER], state[LOCATE_ROWS] = number, row
                return LOCATE_FULL
            stop = _image(data, at, end, width, kinds, targets, before, row, positions, nulls)
            if stop < 0:
                return LOCATE_DAMAGED
            notes[0, row] = event
            notes[2, row] = number
            if effect == UPDATES:
                notes[1, row] = UPDATE_BEFORE
                row += 1
                stop = _image(
                    data,
                    stop,
                    end,
                    width,
                    kinds_after,
                    targets_after,
                    after,
                    row,
                    positions,
                    nulls,
                )
                if stop < 0:
                    return LOCATE_DAMAGED
                notes[0, row] = event
                notes[1, row] = UPDATE_AFTER
                notes[2, row] = number
            else:
                notes[1, row] = INSERT if effect == INSERTS else DELETE
            if stop == at:
                return LOCATE_DAMAGED
            number += 1
            row += 1
            at = stop
        at = 0
    state[LOCATE_ROWS] = row
    return LOCATE_DONE


def repeat_texts(
    owners: Small, texts: Bytes, lengths: Small, room: int, out: Bytes, offsets: Small
) -> int:
    """Write a text for each row.

    Args:
        owners: The number of the text that each row has.
        texts: The texts, `room` bytes each.
        lengths: The length of each text in bytes.
        room: The bytes that each text has in `texts`.
        out: Receives the texts, one behind the other.
        offsets: Receives where each begins, and where the last one ends.

    Returns:
        How many rows have an empty text.
    """
    at, empty = 0, 0
    count = int(owners.shape[0])
    for row in range(count):
        owner = owners[row]
        length = lengths[owner]
        offsets[row] = at
        copy_bytes(out, at, texts, owner * room, length)
        at += length
        empty += 0 if length else 1
    offsets[count] = at
    return empty


EXPORTS: Final = (
    (own, "int64(int64[:, ::1], uint8[::1], int32[::1], int32[::1])"),
    (
        choose,
        "int64(int32[:, ::1], int32[::1], uint8[::1], uint8[::1], int32[::1], uint8[::1])",
    ),
    (order, "int64(int32[:, ::1], int32[::1], int32[::1], int32[::1])"),
    (
        locate,
        (
            "int64(uint8[::1], int32[:, ::1], int32[::1], int32[:, ::1], int32[::1], int64[::1], "
            "int32[::1], uint8[::1], int32[:, ::1], uint8[::1], int32[:, ::1])"
        ),
    ),
    (repeat_texts, "int64(int32[::1], uint8[::1], int32[::1], int64, uint8[::1], int32[::1])"),
)
