"""Counting the contents of a log without an object per event: events, rows, transactions, time.

`summarise` does what `Summary.feed` does, for the types that fill a log; for any other it stops and
asks. Events are checked and groups are cut as `scan` does it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.layout import (
    ASK,
    BEGINS,
    CHECKED,
    CHECKSUM_LENGTH,
    CONTEXT,
    CONTROL,
    DAMAGED,
    ENDS,
    ENDS_GROUP,
    ID_MAP,
    IS_ANONYMOUS,
    IS_GTID,
    IS_MYSQL_GTID,
    IS_OPEN,
    IS_QUERY,
    IS_ROWS,
    IS_TABLE_MAP,
    IS_TAGGED_GTID,
    IS_TRANSACTION,
    KEEPS,
    LENGTH_MAX,
    MORE,
    OFFSET,
    STANDS_ALONE,
    STARTS_GROUP,
    STATEMENT,
    VERDICT,
)
from binlane.log.kernels.memory import Bytes, load_u16, load_u32, load_u48
from binlane.log.kernels.scan import UNKNOWN_TABLE, find_id, is_whole, rows_table, verdict_of
from binlane.log.kernels.summary_groups import (
    count_in_group,
    end_group,
    has_room,
    note_gtid,
    note_mysql_gtid,
    open_group,
)
from binlane.log.kernels.summary_rows import ASKS_IMAGES, ASKS_ROWS, count_rows

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
_COUNTED: Final = 0


@register_jitable
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


@register_jitable
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


@register_jitable
def _count_table(length: int, kind: int, figures: Numbers, counts: Numbers) -> None:
    """Count a table map or a rows event for its table."""
    number, rows = figures[lay.EVENT_TABLE], figures[lay.EVENT_ROWS]
    if number < 0:
        return
    counts[lay.TABLE_BYTES, number] += length
    if kind & IS_ROWS:
        counts[lay.TABLE_EVENTS, number] += 1
        if kind & lay.INSERTS_ROWS:
            counts[lay.TABLE_INSERTS, number] += rows
        elif kind & lay.DELETES_ROWS:
            counts[lay.TABLE_DELETES, number] += rows
        else:
            counts[lay.TABLE_UPDATES, number] += rows


@register_jitable
def _simple_verdict(at: int, stop: int, kind: int) -> int:
    """Return the verdict on an event of a few types that `scan` does not know."""
    length = stop - at - _HEADER
    if kind & lay.IS_INTVAR and length == _INTVAR_BODY:
        return CHECKED
    return CHECKED if kind & lay.IS_ROWS_QUERY and length > 0 else 0


@register_jitable
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
    """Return the verdict on an event's header; 0 if the reference must read it."""
    if kind & (CONTROL | STARTS_GROUP):
        end_group(state, figures, tables, 1)  # what is still open was rolled back
    verdict = _simple_verdict(at, stop, kind)
    if verdict == 0 and not kind & IS_TAGGED_GTID:
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
        note_gtid(data, at, figures, tables[lay.DOMAINS])
    if verdict and kind & IS_MYSQL_GTID and kind & IS_ANONYMOUS == 0:
        note_mysql_gtid(data, at, figures)
    return verdict


@register_jitable
def _count_body(
    data: Bytes,
    at: int,
    stop: int,
    kind: int,
    state: Numbers,
    figures: Numbers,
    texts: Texts,
    tables: Tables,
    widths: Small,
) -> int:
    """Count the rows or the statement of an event; _COUNTED, or the reason to stop."""
    figures[lay.EVENT_ROWS] = 0
    figures[lay.EVENT_TABLE] = lay.NONE
    ids = tables[lay.IDS]
    if kind & IS_ROWS:
        number = rows_table(data, at + _HEADER, state, ids)
        if number == UNKNOWN_TABLE:
            return DAMAGED
        rows = count_rows(data, at, stop, kind, number, figures, tables, widths, texts[lay.PLAIN])
        if rows < 0:
            if rows == ASKS_ROWS:
                return lay.ASK_ROWS
            return lay.ASK_IMAGES if rows == ASKS_IMAGES else DAMAGED
        figures[lay.EVENT_ROWS] = rows
        figures[lay.EVENT_TABLE] = number
    elif kind & IS_TABLE_MAP:
        figures[lay.EVENT_TABLE] = ids[ID_MAP, find_id(ids, load_u48(data, at + _HEADER))]
    elif kind & IS_QUERY and figures[lay.TOLD] < 0:
        is_counted = _count_statement(data, at, stop, figures, tables[lay.VERBS])
        return _COUNTED if is_counted else lay.ASK_STATEMENT
    return _COUNTED


@register_jitable
def _place(
    data: Bytes,
    at: int,
    length: int,
    kind: int,
    verdict: int,
    state: Numbers,
    figures: Numbers,
    tables: Tables,
) -> None:
    """Count an event for its group, and see whether that ends."""
    ends_statement = 1
    if kind & IS_ROWS:
        ends_statement = load_u16(data, at + _HEADER + _ID) & _STATEMENT_END
        state[STATEMENT] += ends_statement
    if kind & CONTROL or (state[IS_OPEN] == 0 and kind & STANDS_ALONE):
        return
    if state[IS_OPEN] == 0:
        open_group(at, state, figures)
    if verdict & BEGINS:
        state[IS_TRANSACTION] = 1
    count_in_group(load_u32(data, at), length, figures)
    ends = kind & ENDS_GROUP or verdict & ENDS
    keeps = kind & (STARTS_GROUP | CONTEXT) or verdict & KEEPS
    if not ends and not state[IS_TRANSACTION] and not keeps:
        ends = ends_statement
    if ends:
        end_group(state, figures, tables, 0)


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
    """Count from `state[OFFSET]` to the last whole event in the buffer.

    Args:
        data: The buffer; `state[BASE]` is the position in the file of its first byte.
        end: The number of bytes in it.
        classes: The class of each of the 256 event types.
        state: The numbers that live between two calls, as for `scan`.
        figures: The kernel's counts, and its facts of the open group.
        texts: The bytes of table maps; room for a GTID; the plain images of a compressed event.
        tables: The tables in the order of `summary_layout`.
        widths: The widths of the columns of all tables.

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
        if not has_room(data, at, kind, state, figures, tables):
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
        status = _count_body(data, at, stop, kind, state, figures, texts, tables, widths)
        if status != _COUNTED:
            return status
        state[VERDICT] = 0
        figures[lay.TOLD] = lay.NONE
        figures[lay.PLAIN_LENGTH] = lay.NONE
        state[OFFSET] = at + length
        _count_event(data, at, length, figures, tables)
        _count_table(length, kind, figures, tables[lay.TABLES])
        _place(data, at, length, kind, verdict, state, figures, tables)


EXPORTS: Final = (
    (
        summarise,
        (
            "int64(uint8[::1], int64, int32[::1], int64[::1], int64[::1], UniTuple(uint8[::1], 3), "
            "UniTuple(int64[:, ::1], 9), int32[::1])"
        ),
    ),
)
