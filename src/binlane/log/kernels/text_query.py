"""Statements, and the lines before and behind them in a transaction, for both flavors."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_head as words
from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import copy_bytes, is_equal, load_i64, load_u16, load_u24, load_u32
from binlane.log.kernels.text_head import (
    HEADER,
    PRINTED,
    begin_event,
    body_end,
    put_head,
    put_phrase,
    put_place,
)
from binlane.log.kernels.text_numbers import put_number, put_padded, put_unsigned

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

# Bits of the header: the statement is of its thread alone; its database does not count.
_IS_THREADS: Final = 0x4
_SUPPRESSES_USE: Final = 0x8
# Status variables that are a statement's own. MariaDB's stand behind all others: microseconds, and
# the XID of DDL. MySQL's microseconds stand between others.
_MICROSECONDS, _DDL_XID, _MYSQL_MICROSECONDS = 128, 129, 13
_MICROSECONDS_END: Final = 1_000_000
# In the place of microseconds: there are none; the variables are others than those known.
_NONE: Final = -1
_OTHERS: Final = -2
# The first bytes of statements that begin or end transactions, as numbers.
_LETTER_B, _LETTER_C, _LETTER_R, _LETTER_S, _LETTER_X = 66, 67, 82, 83, 88
_BEGIN: Final = int.from_bytes(b"BEGIN", "little")
_COMMIT: Final = int.from_bytes(b"COMMIT", "little")
_ROLLBACK: Final = int.from_bytes(b"ROLLBACK", "little")
_START_TRANSACTION: Final = int.from_bytes(b"START TR", "little")
_XA: Final = int.from_bytes(b"XA ", "little")
_FIVE_BYTES: Final = 0xFFFFFFFFFF
_SIX_BYTES: Final = 0xFFFFFFFFFFFF


@register_jitable(forceinline=True)
def print_xid(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """The commit of a transaction."""
    body = state[lay.OFFSET] + HEADER
    if body_end(data, state) - body != 8:
        return lay.ASK_EVENT
    at = begin_event(data, state, buffers)
    out = buffers[lay.OUT]
    at = put_unsigned(out, put_phrase(out, at, words.XID), load_i64(data, body))
    state[lay.OUT_AT] = put_phrase(out, at, words.COMMIT)
    return PRINTED


@register_jitable(forceinline=True)
def print_intvar(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """LAST_INSERT_ID or INSERT_ID of the next statement, which MySQL's tool prints with that."""
    body = state[lay.OFFSET] + HEADER
    if body_end(data, state) - body != 9:
        return lay.ASK_EVENT
    kind, value = int(data[body]), load_i64(data, body + 1)
    if value < 0 or not 1 <= kind <= 2:
        return lay.ASK_EVENT
    out, note = buffers[lay.OUT], buffers[lay.NOTE]
    at = put_place(out, state[lay.OUT_AT], state)
    if state[lay.IS_MYSQL]:
        state[lay.OUT_AT] = at
        at = put_head(note, state[lay.NOTE_AT], data, state, buffers[lay.TEXTS])
        state[lay.NOTE_AT] = _put_insert_id(note, at, kind, value)
    else:
        at = put_head(out, at, data, state, buffers[lay.TEXTS])
        state[lay.OUT_AT] = _put_insert_id(out, at, kind, value)
    return PRINTED


@register_jitable
def _put_insert_id(out: Bytes, at: int, kind: int, value: int) -> int:
    at = put_phrase(out, at, words.SET_LAST_INSERT_ID if kind == 1 else words.SET_INSERT_ID)
    return put_phrase(out, put_number(out, at, value), words.DELIMITER)


@register_jitable(forceinline=True)
def print_query(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """A statement, if it needs no SET but that of the time."""
    offset, end = state[lay.OFFSET], body_end(data, state)
    body = offset + HEADER
    if end - body < 14 or not state[lay.KNOWS_QUERY]:
        return lay.ASK_EVENT
    variables = body + 13
    database = variables + load_u16(data, body + 11)
    statement = database + int(data[body + 8]) + 1
    if statement > end:
        return lay.ASK_EVENT
    flags = load_u16(data, offset + 17)
    if flags & _IS_THREADS:
        return lay.ASK_EVENT
    if flags & _SUPPRESSES_USE:
        if not state[lay.IS_MYSQL] or not _is_boundary(data, statement, end):
            return lay.ASK_EVENT
    elif not _is_database(data, state, buffers, database, statement - database - 1):
        return lay.ASK_EVENT
    micros, xid = _own_variables(data, state, buffers, variables, database)
    if micros == _OTHERS:
        return lay.ASK_EVENT
    if state[lay.IS_MYSQL] and not _follow(data, state, statement, end - statement):
        return lay.ASK_EVENT
    out = buffers[lay.OUT]
    at = put_place(out, state[lay.OUT_AT], state)
    if state[lay.IS_MYSQL]:
        copy_bytes(out, at, buffers[lay.NOTE], 0, state[lay.NOTE_AT])
        at += state[lay.NOTE_AT]
        state[lay.NOTE_AT] = 0
    at = put_head(out, at, data, state, buffers[lay.TEXTS])
    at = put_number(out, put_phrase(out, at, words.QUERY), load_u32(data, body))
    at = put_number(out, put_phrase(out, at, words.EXECUTION_TIME), load_u32(data, body + 4))
    at = put_number(out, put_phrase(out, at, words.ERROR_CODE), load_u16(data, body + 9))
    if not state[lay.IS_MYSQL]:
        at = put_unsigned(out, put_phrase(out, at, words.QUERY_XID), xid)
    at = put_number(out, put_phrase(out, at, words.SET_TIMESTAMP), load_u32(data, offset))
    if micros >= 0:
        out[at] = 46
        at = put_padded(out, at + 1, micros, 6)
    at = put_phrase(out, at, words.DELIMITER)
    copy_bytes(out, at, data, statement, end - statement)
    state[lay.OUT_AT] = put_phrase(out, at + end - statement, words.END_OF_QUERY)
    return PRINTED


@register_jitable(forceinline=True)
def _is_database(data: Bytes, state: Longs, buffers: Buffers, start: int, size: int) -> bool:
    """True if a name is that of the database before."""
    return bool(
        size == state[lay.QUERY_DATABASE_LENGTH]
        and is_equal(data, start, buffers[lay.TEXTS], state[lay.QUERY_DATABASE], size)
    )


@register_jitable(forceinline=True)
def _own_variables(
    data: Bytes, state: Longs, buffers: Buffers, at: int, end: int
) -> tuple[int, int]:
    """Find microseconds and XID of a statement whose other variables equal the last statement's."""
    texts, known = buffers[lay.TEXTS], state[lay.QUERY_VARIABLES]
    gap = state[lay.QUERY_GAP]
    rest = state[lay.QUERY_VARIABLES_LENGTH] - gap
    if gap + rest > end - at or not is_equal(data, at, texts, known, gap):
        return _OTHERS, 0
    micros, xid = _NONE, 0
    at += gap
    end -= rest
    while at < end:
        kind = int(data[at])
        if kind == _MYSQL_MICROSECONDS and state[lay.IS_MYSQL] and at + 4 == end:
            micros = load_u24(data, at + 1)
            if micros >= _MICROSECONDS_END:
                return _OTHERS, 0
            at += 4
        elif kind == _MICROSECONDS and at + 4 <= end and not state[lay.IS_MYSQL]:
            micros = load_u24(data, at + 1)
            if not 0 < micros < _MICROSECONDS_END:
                return _OTHERS, 0
            at += 4
        elif kind == _DDL_XID and at + 9 <= end and not state[lay.IS_MYSQL]:
            xid = load_i64(data, at + 1)
            at += 9
        else:
            return _OTHERS, 0
    return (micros if is_equal(data, at, texts, known + gap, rest) else _OTHERS), xid


@register_jitable(forceinline=True)
def _is_boundary(data: Bytes, start: int, end: int) -> bool:
    """True if a statement is one that needs no database, as it begins or ends a transaction."""
    size, word = end - start, load_i64(data, start)
    return bool(
        (size == 5 and word & _FIVE_BYTES == _BEGIN) or (size == 6 and word & _SIX_BYTES == _COMMIT)
    )


@register_jitable(forceinline=True)
def _follow(data: Bytes, state: Longs, start: int, size: int) -> bool:
    """Remember if a transaction is open behind a statement; False if that is unknown here."""
    first, word = int(data[start]), load_i64(data, start)
    if first == _LETTER_S and size >= 8 and word == _START_TRANSACTION:
        return False
    if first == _LETTER_X and size >= 3 and word & 0xFFFFFF == _XA:
        return False
    if first == _LETTER_R and size > 8 and word == _ROLLBACK:
        return False
    state[lay.AWAITS_BEGIN] = 0
    if first == _LETTER_B and size >= 5 and word & _FIVE_BYTES == _BEGIN:
        state[lay.IN_TRANSACTION] = 1
    elif (first == _LETTER_C and size >= 6 and word & _SIX_BYTES == _COMMIT) or (
        first == _LETTER_R and size == 8 and word == _ROLLBACK
    ):
        state[lay.IN_TRANSACTION] = 0
    return True
