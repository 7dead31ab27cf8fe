"""Counting what is in a log: events, rows, transactions and time, without an object an event.

`summarise` does what `Summary.feed` does, for the types that fill a log; for any other it stops and
asks. Events are checked and groups are cut as `scan` does it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.kernels import summary_layout as lay
from binlane.kernels.layout import (
    ASK,
    BASE,
    BEGINS,
    CHECKED,
    CHECKSUM_LENGTH,
    CONTEXT,
    CONTROL,
    DAMAGED,
    ENDS,
    ENDS_GROUP,
    GROUP_POSITION,
    HAS_AFTER,
    ID_MAP,
    IS_ANONYMOUS,
    IS_GTID,
    IS_MYSQL_GTID,
    IS_OPEN,
    IS_QUERY,
    IS_ROWS,
    IS_TABLE_MAP,
    IS_TRANSACTION,
    KEEPS,
    LENGTH_MAX,
    MAP_COLUMNS,
    MORE,
    OFFSET,
    STANDS_ALONE,
    STARTS_GROUP,
    STATEMENT,
    VERDICT,
)
from binlane.kernels.memory import Bytes, load_i64, load_le, load_u16, load_u32
from binlane.kernels.scan import (
    UNKNOWN_TABLE,
    bitmap_of_rows,
    find_id,
    is_whole,
    rows_table,
    verdict_of,
)

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Texts = tuple[Bytes, Bytes, Bytes]
Tables = tuple[Numbers, ...]

_HEADER: Final = 19
_ID: Final = 6
_FLAGS: Final = 17
_RELAY_LOG: Final = 0x40
_STATEMENT_END: Final = 1
_INTVAR_BODY: Final = 9
_SPACE_MAX: Final = 64
# What `_count_rows` gives instead of a count.
_ASKS_ROWS: Final = -1
_ASKS_IMAGES: Final = -2
_IS_DAMAGED: Final = -3


@register_jitable(inline="always")
def _is_free(moments: Numbers, time: int) -> bool:
    """Whether a second can be counted."""
    own = moments[lay.TIME, time % lay.MOMENTS_MAX]
    return bool(time == 0 or own == lay.NONE or own == time)


@register_jitable(inline="always")
def _has_room(
    data: Bytes, at: int, kind: int, state: Numbers, figures: Numbers, tables: Tables
) -> bool:
    """Whether everything that the event at `at` may add has its place."""
    if figures[lay.CANDIDATES] >= tables[lay.GROUPS].shape[1]:
        return False
    time = load_u32(data, at)
    end_time = time
    if state[IS_OPEN]:
        end_time = figures[lay.LAST_TIME]
        if kind & (CONTROL | STARTS_GROUP) == 0:
            end_time = max(end_time, time)
    if not (_is_free(tables[lay.MOMENTS], time) and _is_free(tables[lay.ENDS], end_time)):
        return False
    body = at + _HEADER
    if kind & IS_GTID:
        domain = load_u32(data, body + 8)
        own = tables[lay.DOMAINS][lay.DOMAIN, domain % lay.DOMAINS_MAX]
        if own != lay.NONE and own != domain:
            return False
    if kind & IS_MYSQL_GTID and kind & IS_ANONYMOUS == 0 and figures[lay.RUN_LAST] != lay.NONE:
        return bool(
            figures[lay.RUN_SOURCE] == load_i64(data, body + 1)
            and figures[lay.RUN_SOURCE + 1] == load_i64(data, body + 9)
            and figures[lay.RUN_LAST] + 1 == load_i64(data, body + 17)
        )
    return True


@register_jitable(inline="always")
def _note_gtid(data: Bytes, at: int, figures: Numbers, domains: Numbers) -> None:
    """Note the GTID of the group that MariaDB's GTID event begins."""
    body = at + _HEADER
    sequence, domain, server = load_i64(data, body), load_u32(data, body + 8), load_u32(data, at + 5)
    slot = domain % lay.DOMAINS_MAX
    if domains[lay.DOMAIN, slot] == lay.NONE:
        domains[lay.DOMAIN, slot] = domain
        domains[lay.FIRST_SERVER, slot] = server
        domains[lay.FIRST_SEQUENCE, slot] = sequence
    domains[lay.LAST_SERVER, slot] = server
    domains[lay.LAST_SEQUENCE, slot] = sequence
    figures[lay.GTID_KIND] = lay.GTID_MARIADB
    figures[lay.GTID] = domain
    figures[lay.GTID + 1] = server
    figures[lay.GTID + 2] = sequence


@register_jitable(inline="always")
def _note_mysql_gtid(data: Bytes, at: int, figures: Numbers) -> None:
    """Note the GTID of the group that MySQL's GTID event begins."""
    body = at + _HEADER
    sequence = load_i64(data, body + 17)
    figures[lay.GTID_KIND] = lay.GTID_MYSQL
    figures[lay.GTID + 2] = sequence
    for half in range(2):
        number = load_i64(data, body + 1 + 8 * half)
        figures[lay.GTID + half] = number
        figures[lay.RUN_SOURCE + half] = number
    if figures[lay.RUN_LAST] == lay.NONE:
        figures[lay.RUN_FIRST] = sequence
    figures[lay.RUN_LAST] = sequence


@register_jitable(inline="always")
def _count_statement(data: Bytes, at: int, stop: int, figures: Numbers, verbs: Numbers) -> bool:
    """Count a statement whose first word is known; False if it is not."""
    body = at + _HEADER
    place = body + 14 + load_u16(data, body + 11) + int(data[body + 8])
    last = min(stop, place + _SPACE_MAX)
    while place < last and (data[place] == 32 or 9 <= data[place] <= 10 or data[place] == 13):
        place += 1
    word, length = 0, 0
    while place + length < stop:
        char = int(data[place + length])
        if 97 <= char <= 122:
            char -= 32
        if char != 95 and not 65 <= char <= 90:
            break
        if length == lay.VERB_LENGTH_MAX:
            return False
        word |= char << (8 * length)
        length += 1
    if length == 0:
        return False
    for number in range(figures[lay.VERBS_KNOWN]):
        if verbs[lay.VERB, number] == word:
            verbs[lay.VERB_COUNT, number] += 1
            return True
    return False


@register_jitable(inline="always")
def _count_bits(data: Bytes, bitmap: int, columns: int) -> int:
    """How many columns a bitmap has."""
    count = 0
    for column in range(columns):
        count += (int(data[bitmap + (column >> 3)]) >> (column & 7)) & 1
    return count


@register_jitable(inline="always")
def _image_end(
    data: Bytes,
    start: int,
    end: int,
    present: Bytes,
    bitmap: int,
    count: int,
    widths: Small,
    first: int,
    columns: int,
) -> int:
    """Where a row image ends that begins at `start`, or -1.

    Args:
        data: Has the images.
        start: Where this one begins.
        end: Where the last one ends.
        present: Has the bitmap of the columns.
        bitmap: Where it stands.
        count: How many columns it has.
        widths: Of the columns of all tables.
        first: Where those of this one stand.
        columns: How many they are.
    """
    at = start + (count + 7) // 8
    if at > end:
        return -1
    index = 0
    for column in range(columns):
        if count < columns and not (int(present[bitmap + (column >> 3)]) >> (column & 7)) & 1:
            continue
        is_null = (int(data[start + (index >> 3)]) >> (index & 7)) & 1
        index += 1
        if is_null:
            continue
        width = int(widths[first + column])
        if width < 0:
            if at - width > end:
                return -1
            width = load_le(data, at, -width) - width
        at += width
    return at if at <= end else -1


@register_jitable(inline="always")
def _count_rows(
    data: Bytes,
    at: int,
    stop: int,
    kind: int,
    number: int,
    figures: Numbers,
    tables: Tables,
    widths: Small,
    plain: Bytes,
) -> int:
    """How many rows an event has, or why it is not known.

    Args:
        data: The buffer.
        at: Where the event begins.
        stop: Where its images end.
        kind: Its class.
        number: Of its table map, negative if it has none.
        figures: Where somebody may have told.
        tables: All of them.
        widths: Of the columns of all tables.
        plain: The plain images of a compressed event.
    """
    columns = int(tables[lay.MAPS][MAP_COLUMNS, number]) if number >= 0 else -1
    bitmap = bitmap_of_rows(data, at + _HEADER, stop, kind, columns)
    if bitmap < 0:
        return _IS_DAMAGED
    if figures[lay.TOLD] >= 0:
        return int(figures[lay.TOLD])
    if kind & lay.IS_COMPRESSED and figures[lay.PLAIN_LENGTH] < 0:
        return _ASKS_IMAGES
    if number < 0:
        return 0
    first = tables[lay.TABLES][lay.WIDTHS_START, number]
    if first < 0 or kind & lay.IS_PARTIAL:
        return _ASKS_ROWS
    after = bitmap + (columns + 7) // 8
    before_count, after_count = _count_bits(data, bitmap, columns), 0
    images, place, end = data, after, stop
    if kind & HAS_AFTER:
        place += after - bitmap
        after_count = _count_bits(data, after, columns)
    if kind & lay.IS_COMPRESSED:
        images, place, end = plain, 0, int(figures[lay.PLAIN_LENGTH])
    rows = 0
    while place < end:
        start = place
        place = _image_end(images, place, end, data, bitmap, before_count, widths, first, columns)
        if place >= 0 and kind & HAS_AFTER:
            place = _image_end(images, place, end, data, after, after_count, widths, first, columns)
        if place <= start:
            return _IS_DAMAGED
        rows += 1
    return rows


@register_jitable(inline="always")
def _count_event(data: Bytes, at: int, length: int, figures: Numbers, tables: Tables) -> None:
    """Count an event by its type and its time."""
    code = int(data[at + 4])
    types = tables[lay.TYPES]
    if types[lay.TYPE_COUNT, code] == 0:
        types[lay.TYPE_ORDER, code] = figures[lay.TYPES_SEEN]
        figures[lay.TYPES_SEEN] += 1
    types[lay.TYPE_COUNT, code] += 1
    types[lay.TYPE_BYTES, code] += length
    figures[lay.LAST_TYPE] = code
    time = load_u32(data, at)
    if time:
        slot = time % lay.MOMENTS_MAX
        tables[lay.MOMENTS][lay.TIME, slot] = time
        tables[lay.MOMENTS][lay.MOMENT_BYTES, slot] += length


@register_jitable(inline="always")
def _count_table(number: int, length: int, kind: int, rows: int, counts: Numbers) -> None:
    """Count a table map or a rows event for its table."""
    counts[lay.TABLE_BYTES, number] += length
    if kind & IS_ROWS:
        counts[lay.TABLE_EVENTS, number] += 1
        if kind & lay.INSERTS_ROWS:
            counts[lay.TABLE_INSERTS, number] += rows
        elif kind & lay.DELETES_ROWS:
            counts[lay.TABLE_DELETES, number] += rows
        else:
            counts[lay.TABLE_UPDATES, number] += rows


@register_jitable(inline="always")
def _open_group(at: int, state: Numbers, figures: Numbers) -> None:
    state[IS_OPEN] = 1
    state[GROUP_POSITION] = state[BASE] + at
    for figure in range(lay.BYTES, lay.LAST_TIME + 1):
        figures[figure] = 0


@register_jitable(inline="always")
def _count_in_group(time: int, length: int, rows: int, figures: Numbers) -> None:
    figures[lay.BYTES] += length
    figures[lay.ROWS] += rows
    figures[lay.EVENTS] += 1
    if time:
        first = figures[lay.FIRST_TIME]
        figures[lay.FIRST_TIME] = min(first, time) if first else time
        figures[lay.LAST_TIME] = max(figures[lay.LAST_TIME], time)


@register_jitable(inline="always")
def _end_group(state: Numbers, figures: Numbers, tables: Tables, unfinished: int) -> None:
    """End the open group, if there is one; keep it if a list may want it."""
    if state[IS_OPEN]:
        figures[lay.TRANSACTIONS] += 1
        figures[lay.UNFINISHED] += unfinished
        rows, time = figures[lay.ROWS], figures[lay.LAST_TIME]
        if time:
            slot = time % lay.MOMENTS_MAX
            tables[lay.ENDS][lay.TIME, slot] = time
            tables[lay.ENDS][lay.END_GROUPS, slot] += 1
            tables[lay.ENDS][lay.END_ROWS, slot] += rows
        if (
            figures[lay.BYTES] > figures[lay.LEAST_BYTES]
            or rows > figures[lay.LEAST_ROWS]
            or time - figures[lay.FIRST_TIME] > figures[lay.LEAST_DURATION]
        ):
            number = figures[lay.CANDIDATES]
            groups = tables[lay.GROUPS]
            groups[lay.GROUP_POSITION, number] = state[GROUP_POSITION]
            for figure in range(lay.GROUPS_ROWS - lay.GROUP_FIGURES):
                groups[lay.GROUP_FIGURES + figure, number] = figures[lay.BYTES + figure]
            figures[lay.CANDIDATES] = number + 1
    state[IS_OPEN] = 0
    state[IS_TRANSACTION] = 0
    figures[lay.GTID_KIND] = lay.GTID_NONE


@register_jitable(inline="always")
def _simple_verdict(at: int, stop: int, kind: int) -> int:
    """Of a few types that `scan` does not know."""
    length = stop - at - _HEADER
    if kind & lay.IS_INTVAR and length == _INTVAR_BODY:
        return CHECKED
    return CHECKED if kind & lay.IS_ROWS_QUERY and length > 0 else 0


@register_jitable(inline="always")
def _check(
    data: Bytes,
    at: int,
    stop: int,
    kind: int,
    state: Numbers,
    figures: Numbers,
    texts: Texts,
    tables: Tables,
) -> int:
    """The verdict on an event that nobody has looked at; 0 if somebody has to."""
    if kind & (CONTROL | STARTS_GROUP):
        _end_group(state, figures, tables, 1)  # what is still open was rolled back
    verdict = _simple_verdict(at, stop, kind)
    if verdict == 0:
        verdict = verdict_of(
            data,
            at,
            stop,
            kind,
            state,
            tables[lay.IDS],
            tables[lay.MAPS],
            texts[lay.KNOWN],
            texts[lay.SCRATCH],
        )
    if verdict and kind & IS_GTID:
        _note_gtid(data, at, figures, tables[lay.DOMAINS])
    if verdict and kind & IS_MYSQL_GTID and kind & IS_ANONYMOUS == 0:
        _note_mysql_gtid(data, at, figures)
    return verdict


def summarise(
    data: Bytes,
    end: int,
    classes: Small,
    state: Numbers,
    figures: Numbers,
    texts: Texts,
    tables: Tables,
    widths: Small,
) -> int:
    """Go on from `state[OFFSET]` as far as whole events stand in the buffer.

    Args:
        data: The buffer; `state[BASE]` is the position in the file of its first byte.
        end: Bytes in it.
        classes: The class of each of the 256 event types.
        state: What lives between two calls, as for `scan`.
        figures: What was counted, and what is known of the open group.
        texts: The bytes of table maps; room for a GTID; the plain images of a compressed event.
        tables: In the order of `summary_layout`.
        widths: Of the columns of all tables.

    Returns:
        MORE, ASK, ASK_STATEMENT, ASK_ROWS, ASK_IMAGES, FULL or DAMAGED.
    """
    while True:
        at = state[OFFSET]
        if at + _HEADER > end:
            return MORE
        length = load_u32(data, at + 9)
        if length < _HEADER + state[CHECKSUM_LENGTH] or length > state[LENGTH_MAX]:
            return DAMAGED
        if at + length > end:
            return MORE
        kind = int(classes[data[at + 4]])
        if kind & lay.IS_FOREIGN or load_u16(data, at + _FLAGS) & _RELAY_LOG:
            return DAMAGED
        if not _has_room(data, at, kind, state, figures, tables):
            return lay.FULL
        stop = at + length - state[CHECKSUM_LENGTH]
        verdict = state[VERDICT]
        if verdict == 0:
            if not is_whole(data, at, length, kind, state):
                return DAMAGED
            verdict = _check(data, at, stop, kind, state, figures, texts, tables)
            if verdict == 0:
                return ASK
        # Whoever has to look at it now shall not lead to its being checked again.
        state[VERDICT] = verdict
        rows, ends_statement, number = 0, 1, -1
        if kind & IS_ROWS:
            number = rows_table(data, at + _HEADER, state, tables[lay.IDS])
            if number == UNKNOWN_TABLE:
                return DAMAGED
            rows = _count_rows(
                data, at, stop, kind, number, figures, tables, widths, texts[lay.PLAIN]
            )
            if rows < 0:
                if rows == _ASKS_ROWS:
                    return lay.ASK_ROWS
                return lay.ASK_IMAGES if rows == _ASKS_IMAGES else DAMAGED
            ends_statement = load_u16(data, at + _HEADER + _ID) & _STATEMENT_END
            state[STATEMENT] += ends_statement
        elif kind & IS_TABLE_MAP:
            slot = find_id(tables[lay.IDS], load_le(data, at + _HEADER, _ID))
            number = int(tables[lay.IDS][ID_MAP, slot])
        elif kind & IS_QUERY and figures[lay.TOLD] < 0:
            if not _count_statement(data, at, stop, figures, tables[lay.VERBS]):
                return lay.ASK_STATEMENT
        state[VERDICT] = 0
        figures[lay.TOLD] = lay.NONE
        figures[lay.PLAIN_LENGTH] = lay.NONE
        state[OFFSET] = at + length
        _count_event(data, at, length, figures, tables)
        if number >= 0:
            _count_table(number, length, kind, rows, tables[lay.TABLES])
        if kind & CONTROL or (state[IS_OPEN] == 0 and kind & STANDS_ALONE):
            continue
        if state[IS_OPEN] == 0:
            _open_group(at, state, figures)
        if verdict & BEGINS:
            state[IS_TRANSACTION] = 1
        _count_in_group(load_u32(data, at), length, rows, figures)
        ends = kind & ENDS_GROUP or verdict & ENDS
        keeps = kind & (STARTS_GROUP | CONTEXT) or verdict & KEEPS
        if not ends and not state[IS_TRANSACTION] and not keeps:
            ends = ends_statement
        if ends:
            _end_group(state, figures, tables, 0)


EXPORTS: Final = (
    (
        summarise,
        "int64(uint8[::1], int64, int32[::1], int64[::1], int64[::1], UniTuple(uint8[::1], 3), "
        "UniTuple(int64[:, ::1], 9), int32[::1])",
    ),
)
