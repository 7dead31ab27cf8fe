"""The fixed words of the text, and the lines before every event: position, time and server."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.memory import copy_bytes, crc32, load_i64, load_u32
from binlane.log.kernels.text_memory import store_u64
from binlane.log.kernels.text_numbers import BLANK, eight_digits, put_hex8, put_number

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Buffers = tuple[Bytes, ...]
Phrase = tuple[int, int]

# Result of a kernel's function that has printed its event: go on with the next one.
PRINTED: Final = -1
HEADER: Final = 19
LINE_END: Final = 10
CARRIAGE_RETURN: Final = 13

_PHRASE_PADDING: Final = bytes(16)
_texts = bytearray()


def phrase(text: bytes) -> Phrase:
    """Add a fixed text to PHRASES; return its place there and its length."""
    start = len(_texts)
    _texts.extend(text + _PHRASE_PADDING)
    return start, len(text)


AT = phrase(b"# at ")
SERVER = phrase(b" server id ")
END_POSITION = phrase(b"  end_log_pos ")
CRC = phrase(b" CRC32 0x")
TABULATOR = phrase(b" \t")
GTID = phrase(b"GTID ")
COMMIT_ID = phrase(b" cid=")
DDL = phrase(b" ddl")
TRANSACTIONAL = phrase(b" trans")
WAITED = phrase(b" waited")
THREAD = phrase(b" thread_id=")
SET_SEQUENCE = phrase(b"\n/*M!100001 SET @@session.gtid_seq_no=")
END_OF_SET = phrase(b"*//*!*/;\n")
START_TRANSACTION = phrase(b"START TRANSACTION\n/*!*/;\n")
XID = phrase(b"Xid = ")
COMMIT = phrase(b"\nCOMMIT/*!*/;\n")
SET_LAST_INSERT_ID = phrase(b"Intvar\nSET LAST_INSERT_ID=")
SET_INSERT_ID = phrase(b"Intvar\nSET INSERT_ID=")
DELIMITER = phrase(b"/*!*/;\n")
QUERY = phrase(b"Query\tthread_id=")
EXECUTION_TIME = phrase(b"\texec_time=")
ERROR_CODE = phrase(b"\terror_code=")
QUERY_XID = phrase(b"\txid=")
SET_TIMESTAMP = phrase(b"\nSET TIMESTAMP=")
END_OF_QUERY = phrase(b"\n/*!*/;\n")
ANNOTATION = phrase(b"Annotate_rows:\n")
ANNOTATION_LINE = phrase(b"#Q> ")
TABLE_ID = phrase(b"table id ")
BINLOG = phrase(b"\nBINLOG '\n")
END_OF_BINLOG = phrase(b"'/*!*/;\n")
ROW_COUNT = phrase(b"# Number of rows: ")
END_OF_PAYLOAD = phrase(b"# End of compressed events.\n")
MYSQL_GTID = phrase(b"GTID\tlast_committed=")
ANONYMOUS_GTID = phrase(b"Anonymous_GTID\tlast_committed=")
SEQUENCE_NUMBER = phrase(b"\tsequence_number=")
ROW_BASED = phrase(b"\trbr_only=yes\toriginal_committed_timestamp=")
NOT_ROW_BASED = phrase(b"\trbr_only=no\toriginal_committed_timestamp=")
IMMEDIATE_COMMITTED = phrase(b"\timmediate_commit_timestamp=")
TRANSACTION_LENGTH = phrase(b"\ttransaction_length=")
READ_COMMITTED = phrase(b"\n/*!50718 SET TRANSACTION ISOLATION LEVEL READ COMMITTED*//*!*/;")
ORIGINAL_COMMIT = phrase(b"\n# original_commit_timestamp=")
IMMEDIATE_COMMIT = phrase(b"# immediate_commit_timestamp=")
SET_ORIGINAL_COMMIT = phrase(b"/*!80001 SET @@session.original_commit_timestamp=")
SET_ORIGINAL_VERSION = phrase(b"/*!80014 SET @@session.original_server_version=")
SET_IMMEDIATE_VERSION = phrase(b"/*!80014 SET @@session.immediate_server_version=")
SET_GTID = phrase(b"SET @@SESSION.GTID_NEXT= '")
ANONYMOUS = phrase(b"ANONYMOUS")
END_OF_GTID = phrase(b"'/*!*/;\n")
ROWS_QUERY = phrase(b"Rows_query\n# ")
ROWS_QUERY_LINE = phrase(b"\n# ")
# By the type's code, from 23 on and from 166 on.
ROWS_NAMES = (phrase(b"Write_rows: "), phrase(b"Update_rows: "), phrase(b"Delete_rows: "))
COMPRESSED_NAMES = (
    phrase(b"Write_compressed_rows: "),
    phrase(b"Update_compressed_rows: "),
    phrase(b"Delete_compressed_rows: "),
)
PARTIAL_NAME = phrase(b"Update_rows_partial: ")
FLAGS = phrase(b" flags:")
# By their bits.
FLAG_NAMES = (
    phrase(b" STMT_END_F"),
    phrase(b" NO_FOREIGN_KEY_CHECKS_F"),
    phrase(b" RELAXED_UNIQUE_CHECKS_F"),
    phrase(b" COMPLETE_ROWS_F"),
    phrase(b" USE_SQL_FOREIGN_KEY_F"),
)
PARTITION = phrase(b"### Extra row info for partitioning: partition: ")
SOURCE_PARTITION = phrase(b"### Extra row info for partitioning: source_partition: ")
TARGET_PARTITION = phrase(b" target_partition: ")
PHRASES = np.frombuffer(bytes(_texts), np.uint8)

_SECONDS_A_DAY: Final = 86_400
_HASH_SIGN: Final = 35
_SIXTEEN_DIGITS: Final = 10**16


@register_jitable(forceinline=True)
def put_phrase(out: Bytes, at: int, phrase: Phrase) -> int:
    """Write a fixed text."""
    copy_bytes(out, at, PHRASES, phrase[0], phrase[1])
    return at + phrase[1]


@register_jitable(forceinline=True)
def put_place(out: Bytes, at: int, state: Longs) -> int:
    """Write `# at 4`: the position of the event at OFFSET; inside a payload, that of its end."""
    position = state[lay.INNER]
    if not position:
        position = state[lay.BASE] + state[lay.OFFSET]
    at = _put_position(out, put_phrase(out, at, AT), position, state)
    out[at] = LINE_END
    return at + 1


@register_jitable(forceinline=True)
def _put_position(out: Bytes, at: int, position: int, state: Longs) -> int:
    """A position; the one that an event ends at is the one that the next begins at."""
    if position == state[lay.PLACE]:
        store_u64(out, at, state[lay.PLACE_DIGITS])
        store_u64(out, at + 8, state[lay.PLACE_DIGITS + 1])
        return int(at + state[lay.PLACE_LENGTH])
    end = put_number(out, at, position)
    if position < _SIXTEEN_DIGITS:
        state[lay.PLACE] = position
        state[lay.PLACE_LENGTH] = end - at
        state[lay.PLACE_DIGITS] = load_i64(out, at)
        state[lay.PLACE_DIGITS + 1] = load_i64(out, at + 8)
    return end


@register_jitable(forceinline=True)
def put_head(out: Bytes, at: int, data: Bytes, state: Longs, texts: Bytes) -> int:
    """Time, server, end position and checksum of the event at OFFSET, up to the tabulator."""
    offset = state[lay.OFFSET]
    timestamp, server = load_u32(data, offset), load_u32(data, offset + 5)
    if timestamp != state[lay.STAMP] or server != state[lay.STAMP_SERVER]:
        _set_stamp(timestamp, server, state, texts)
    copy_bytes(out, at, texts, 0, state[lay.STAMP_LENGTH])
    at += state[lay.STAMP_LENGTH]
    end = load_u32(data, offset + 13)
    if state[lay.INNER]:
        end = state[lay.INNER]
    at = _put_position(out, at, end, state)
    if state[lay.SHOWS_CHECKSUM]:
        at = put_hex8(out, put_phrase(out, at, CRC), _checksum_of(data, offset, state))
    return put_phrase(out, at, TABULATOR)


@register_jitable(forceinline=True)
def begin_event(data: Bytes, state: Longs, buffers: Buffers) -> int:
    """The place and the head of the event at OFFSET."""
    out = buffers[lay.OUT]
    at = put_place(out, state[lay.OUT_AT], state)
    return put_head(out, at, data, state, buffers[lay.TEXTS])


@register_jitable(forceinline=True)
def body_end(data: Bytes, state: Longs) -> int:
    """Return the end of the event at OFFSET, but for its checksum."""
    offset = state[lay.OFFSET]
    return int(offset + load_u32(data, offset + 9) - state[lay.CHECKSUM])


@register_jitable(forceinline=True)
def _checksum_of(data: Bytes, offset: int, state: Longs) -> int:
    """Return an event's own checksum, or the one that it would have outside of its payload."""
    length = load_u32(data, offset + 9)
    if not state[lay.INNER]:
        return load_u32(data, offset + length - 4)
    saved = seal(data, offset, state)
    checksum = load_u32(data, offset + length)
    unseal(data, offset, saved)
    return checksum


@register_jitable
def seal(data: Bytes, offset: int, state: Longs) -> int:
    """Give an event of a payload the checksum that it lacks there, over the four bytes behind it.

    Returns:
        Those bytes, for `unseal`.
    """
    length = load_u32(data, offset + 9)
    saved = load_u32(data, offset + length)
    _set_u32(data, offset + 9, length + 4)
    _set_u32(data, offset + length, crc32(state[lay.CRC32], data, offset, length))
    return saved


@register_jitable
def unseal(data: Bytes, offset: int, saved: int) -> None:
    """Undo `seal`."""
    length = load_u32(data, offset + 9) - 4
    _set_u32(data, offset + 9, length)
    _set_u32(data, offset + length, saved)


@register_jitable
def _set_u32(data: Bytes, at: int, value: int) -> None:
    for index in range(4):
        data[at + index] = value >> 8 * index & 0xFF


@register_jitable
def _set_stamp(timestamp: int, server: int, state: Longs, texts: Bytes) -> None:
    """Keep the text of a time, in the zone that the state has for it, and of a server.

    It is `#261120  9:05:00 server id 1  end_log_pos `.
    """
    seconds = timestamp + state[lay.CLOCK_OFFSET]
    clock = seconds % _SECONDS_A_DAY
    word = eight_digits(calendar(seconds // _SECONDS_A_DAY))
    store_u64(texts, 0, _HASH_SIGN | (word >> 16) << 8 | BLANK << 56)
    hour = clock // 3600
    word = eight_digits(hour * 10_000 + clock // 60 % 60 * 100 + clock % 60)
    first = BLANK if hour < 10 else word >> 16 & 0xFF
    store_u64(
        texts,
        8,
        first
        | (word >> 24 & 0xFF) << 8
        | 0x3A << 16
        | (word >> 32 & 0xFFFF) << 24
        | 0x3A << 40
        | (word >> 48) << 48,
    )
    at = put_number(texts, put_phrase(texts, 16, SERVER), server)
    state[lay.STAMP_LENGTH] = put_phrase(texts, at, END_POSITION)
    state[lay.STAMP] = timestamp
    state[lay.STAMP_SERVER] = server


@register_jitable
def calendar(day: int) -> int:
    """A day since 1970 as the number YYYYMMDD; years begin in March until the last line."""
    day += 719_468
    era_day = day % 146_097
    year = (era_day - era_day // 1460 + era_day // 36_524 - era_day // 146_096) // 365
    year_day = era_day - (365 * year + year // 4 - year // 100)
    month = (5 * year_day + 2) // 153
    month_day = year_day - (153 * month + 2) // 5 + 1
    if month < 10:
        month += 3
    else:
        month -= 9
        year += 1
    return (day // 146_097 * 400 + year) * 10_000 + month * 100 + month_day
