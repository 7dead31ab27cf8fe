"""MySQL's own events: GTIDs, and the statement that caused the rows behind it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_head as words
from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import (
    copy_bytes,
    load_be,
    load_i64,
    load_le,
    load_u16,
    load_u24,
    load_u32,
)
from binlane.log.kernels.text_head import (
    CARRIAGE_RETURN,
    HEADER,
    LINE_END,
    PRINTED,
    Phrase,
    begin_event,
    body_end,
    calendar,
    put_phrase,
    put_place,
)
from binlane.log.kernels.text_memory import store_u64
from binlane.log.kernels.text_numbers import (
    BLANK,
    DOT,
    eight_digits,
    hex_digits,
    put_number,
    put_padded,
    put_unsigned,
)
from binlane.log.kernels.text_statement import encode
from binlane.log.kernels.text_values import put_clock

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]

_ANONYMOUS_GTID_LOG: Final = 34
_MAY_HAVE_STATEMENTS: Final = 1
_UUID_AT, _SEQUENCE_AT, _TYPE_AT, _COMMITTED_AT, _NUMBER_AT, _COMMIT_AT = 1, 17, 25, 26, 34, 42
_LOGICAL_TIMESTAMPS: Final = 2
_HAS_ORIGINAL_TIMESTAMP: Final = 1 << 55
_HAS_ORIGINAL_VERSION: Final = 1 << 31
# A server that tells when it committed, but not what it is.
_UNKNOWN_VERSION: Final = 999_999
_SECOND: Final = 1_000_000
_SECONDS_A_DAY: Final = 86_400
_DASH, _COLON, _OPEN, _CLOSE = 45, 58, 40, 41
_BACKSPACE, _TAB, _BACKSLASH = 8, 9, 92
_LETTER_0, _LETTER_B, _LETTER_R, _LETTER_T = 48, 98, 114, 116


@register_jitable
def print_mysql_gtid(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """The begin of a transaction, with or without a GTID.

    What is missing behind the logical timestamps, as in logs of old servers, counts as 0; a GTID
    that has even less is not printed here.
    """
    body, end = state[lay.OFFSET] + HEADER, body_end(data, state)
    if (
        end - body < _COMMIT_AT
        or data[body + _TYPE_AT] != _LOGICAL_TIMESTAMPS
        or (state[lay.HAS_GTID] and state[lay.AWAITS_BEGIN])
    ):
        return lay.ASK_EVENT
    committed, number = load_i64(data, body + _COMMITTED_AT), load_i64(data, body + _NUMBER_AT)
    sequence = load_i64(data, body + _SEQUENCE_AT)
    at, immediate, original = _timestamps(data, body + _COMMIT_AT, end)
    at, length = _packed(data, at, end)
    has_commit = end - body > _COMMIT_AT
    at, version, first = _versions(data, at, end, _UNKNOWN_VERSION if has_commit else 0)
    # Behind the versions a ticket of 8 bytes stands or nothing.
    if at < 0 or committed < 0 or number < 0 or sequence < 0 or 0 < end - at < 8:
        return lay.ASK_EVENT
    if state[lay.SKIPS_GTIDS]:
        _end_payload(state, buffers)
        state[lay.OUT_AT] = put_place(buffers[lay.OUT], state[lay.OUT_AT], state)
        return PRINTED
    if not _knows_moment(state, lay.MOMENT, immediate):
        return lay.ASK_MOMENT
    if immediate != original and not _knows_moment(state, lay.OTHER_MOMENT, original):
        return lay.ASK_MOMENT
    _end_payload(state, buffers)
    at = begin_event(data, state, buffers)
    out = buffers[lay.OUT]
    is_anonymous = data[state[lay.OFFSET] + 4] == _ANONYMOUS_GTID_LOG
    at = _put(out, at, words.ANONYMOUS_GTID if is_anonymous else words.MYSQL_GTID, committed)
    at = _put(out, at, words.SEQUENCE_NUMBER, number)
    is_row_based = not data[body] & _MAY_HAVE_STATEMENTS
    at = _put(out, at, words.ROW_BASED if is_row_based else words.NOT_ROW_BASED, original)
    at = _put(out, at, words.IMMEDIATE_COMMITTED, immediate)
    at = put_unsigned(out, put_phrase(out, at, words.TRANSACTION_LENGTH), length)
    if is_row_based:
        at = put_phrase(out, at, words.READ_COMMITTED)
    at = _put(out, at, words.ORIGINAL_COMMIT, original)
    zone = lay.MOMENT if immediate == original else lay.OTHER_MOMENT
    begin = at
    at = _put_moment(out, at, original, state, zone, buffers[lay.TEXTS])
    size = at - begin
    at = _put(out, at, words.IMMEDIATE_COMMIT, immediate)
    if immediate == original:
        copy_bytes(out, at, out, begin, size)
        at += size
    else:
        at = _put_moment(out, at, immediate, state, lay.MOMENT, buffers[lay.TEXTS])
    at = put_phrase(out, _put(out, at, words.SET_ORIGINAL_COMMIT, original), words.END_OF_SET)
    at = put_phrase(out, _put(out, at, words.SET_ORIGINAL_VERSION, first), words.END_OF_SET)
    at = put_phrase(out, _put(out, at, words.SET_IMMEDIATE_VERSION, version), words.END_OF_SET)
    at = put_phrase(out, at, words.SET_GTID)
    if is_anonymous:
        at = put_phrase(out, at, words.ANONYMOUS)
    else:
        at = _put_uuid(out, at, data, body + _UUID_AT)
        out[at] = _COLON
        at = put_number(out, at + 1, sequence)
    state[lay.OUT_AT] = put_phrase(out, at, words.END_OF_GTID)
    state[lay.HAS_GTID] = 1
    state[lay.AWAITS_BEGIN] = 1
    state[lay.SERVER_VERSION] = version
    return PRINTED


@register_jitable
def _end_payload(state: Longs, buffers: Buffers) -> None:
    """The line behind the last event of a payload."""
    if state[lay.IN_PAYLOAD] and not state[lay.INNER]:
        state[lay.OUT_AT] = put_phrase(buffers[lay.OUT], state[lay.OUT_AT], words.END_OF_PAYLOAD)
        state[lay.IN_PAYLOAD] = 0


@register_jitable(forceinline=True)
def _put(out: Bytes, at: int, phrase: Phrase, value: int) -> int:
    """A fixed text and a number that is not negative."""
    return put_number(out, put_phrase(out, at, phrase), value)


@register_jitable
def _timestamps(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return where a commit's timestamps end, below 0 if they do not, its own and its original one."""
    if at == end:
        return at, 0, 0
    if at + 7 > end:
        return -1, 0, 0
    immediate = load_le(data, at, 7)
    at += 7
    if not immediate & _HAS_ORIGINAL_TIMESTAMP:
        return at, immediate, immediate
    immediate &= _HAS_ORIGINAL_TIMESTAMP - 1
    if at + 7 > end:
        return -1, 0, 0
    return at + 7, immediate, load_le(data, at, 7)


@register_jitable
def _packed(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return where a number of 1, 3, 4 or 9 bytes ends, below 0 if it does not, and the number."""
    if at < 0 or at == end:
        return at, 0
    first = int(data[at])
    if first < 251:
        return at + 1, first
    size = 2 if first == 252 else (3 if first == 253 else 8)
    if first == 251 or first == 255 or at + 1 + size > end:
        return -1, 0
    if size == 2:
        return at + 3, load_u16(data, at + 1)
    return at + 1 + size, load_u24(data, at + 1) if size == 3 else load_i64(data, at + 1)


@register_jitable
def _versions(data: Bytes, at: int, end: int, unknown: int) -> tuple[int, int, int]:
    """Return where the versions end, below 0 if they do not, this server's version and the first's."""
    if at < 0 or at == end:
        return at, unknown, unknown
    if at + 4 > end:
        return -1, 0, 0
    version = load_u32(data, at)
    first = 0
    at += 4
    if version & _HAS_ORIGINAL_VERSION:
        version &= _HAS_ORIGINAL_VERSION - 1
        if at + 4 > end:
            return -1, 0, 0
        first = load_u32(data, at)
        at += 4
    version = version or unknown
    return at, version, first or version


@register_jitable(forceinline=True)
def _knows_moment(state: Longs, zone: int, moment: int) -> bool:
    """True if the time zone at a moment is known; else the driver is asked for it."""
    second = moment // _SECOND
    if state[zone] <= second < state[zone + lay.MOMENT_UNTIL]:
        return True
    state[lay.TIME] = second
    state[lay.ASKED_MOMENT] = zone
    return False


@register_jitable
def _put_moment(out: Bytes, at: int, moment: int, state: Longs, zone: int, texts: Bytes) -> int:
    """` (2026-11-20 09:05:00.123456 UTC)` and a line end."""
    seconds = moment // _SECOND + state[zone + lay.MOMENT_OFFSET]
    clock = seconds % _SECONDS_A_DAY
    date = calendar(seconds // _SECONDS_A_DAY)
    out[at] = BLANK
    out[at + 1] = _OPEN
    word = eight_digits(date)
    store_u64(out, at + 2, word)
    out[at + 6] = _DASH
    store_u64(out, at + 7, word >> 32 & 0xFFFF)
    out[at + 9] = _DASH
    store_u64(out, at + 10, word >> 48 & 0xFFFF)
    out[at + 12] = BLANK
    at = put_clock(out, at + 13, clock // 3600, clock // 60 % 60, clock % 60)
    out[at] = DOT
    at = put_padded(out, at + 1, moment % _SECOND, 6)
    out[at] = BLANK
    size = state[zone + lay.ZONE_LENGTH]
    name = lay.ZONE if zone == lay.MOMENT else lay.ZONE + lay.ZONE_BYTES_MAX
    copy_bytes(out, at + 1, texts, name, size)
    at += 1 + size
    out[at] = _CLOSE
    out[at + 1] = LINE_END
    return at + 2


@register_jitable
def _put_uuid(out: Bytes, at: int, data: Bytes, start: int) -> int:
    """Sixteen bytes as `3e11fa47-71ca-11e1-9e33-c80aa9429562`."""
    store_u64(out, at, hex_digits(load_be(data, start, 4)))
    out[at + 8] = _DASH
    word = hex_digits(load_be(data, start + 4, 4))
    store_u64(out, at + 9, word)
    out[at + 13] = _DASH
    store_u64(out, at + 14, word >> 32)
    out[at + 18] = _DASH
    word = hex_digits(load_be(data, start + 8, 4))
    store_u64(out, at + 19, word)
    out[at + 23] = _DASH
    store_u64(out, at + 24, word >> 32)
    store_u64(out, at + 28, hex_digits(load_be(data, start + 12, 4)))
    return at + 36


@register_jitable
def print_rows_query(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """Print the statement that caused rows, each of its lines as a comment."""
    begin, end = state[lay.OFFSET] + HEADER + 1, body_end(data, state)
    if begin > end:
        return lay.ASK_EVENT
    out = buffers[lay.OUT]
    if state[lay.VERBOSE] < 2:
        state[lay.OUT_AT] = put_place(out, state[lay.OUT_AT], state)
        return PRINTED
    if not encode(data, state[lay.OFFSET], state, buffers):
        return lay.ENCODED_FULL
    at = put_phrase(out, begin_event(data, state, buffers), words.ROWS_QUERY)
    for place in range(begin, end):
        byte = int(data[place])
        letter = _escape(byte)
        if letter:
            out[at] = _BACKSLASH
            out[at + 1] = letter
            at += 2
        elif byte == LINE_END:
            at = put_phrase(out, at, words.ROWS_QUERY_LINE)
        else:
            out[at] = byte
            at += 1
    out[at] = LINE_END
    state[lay.OUT_AT] = at + 1
    return PRINTED


@register_jitable(forceinline=True)
def _escape(byte: int) -> int:
    """Return the byte to print behind a backslash for a byte of a statement; 0 for none."""
    if byte == _BACKSLASH:
        return _BACKSLASH
    if byte > CARRIAGE_RETURN:
        return 0
    if byte == _TAB:
        return _LETTER_T
    if byte == CARRIAGE_RETURN:
        return _LETTER_R
    if byte == _BACKSPACE:
        return _LETTER_B
    return _LETTER_0 if byte == 0 else 0
