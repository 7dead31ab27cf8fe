"""Extended Query events → plain ones of the same length, for readers that know no tables info.

Stock programs read the extended form silently wrong. Positions of a dump are those of the file, and
replicas count them by the lengths of events too; so what is taken out leaves padding behind: status
variables that say once more what holds without them, and where these have no room, blanks behind the
statement. Variables of a code of our own would do for the servers; other readers refuse them.

Source: MariaDB 10.11 sql/log_event.cc and MySQL 9.7 statement_events.cpp; measured on both.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from struct import Struct
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.status_vars import StatusVar, decode_status_vars, encode_status_vars
from binlane.log.codec.types import EventType

QUERIES: Final = frozenset(
    {EventType.QUERY, EventType.EXECUTE_LOAD_QUERY, EventType.QUERY_COMPRESSED}
)
"""Events that are extended where the format says so."""

_LENGTHS: Final = Struct("<8xBHHHH")
_STATUS_LENGTH: Final = Struct("<H")
_STATUS_AT: Final = HEADER_LENGTH + 11
_EXTENDED_AT: Final = HEADER_LENGTH + 13
_LOAD_FIELDS: Final = 13
# MariaDB 10.11 takes 653 bytes, MySQL 9.7 takes 3961; older ones take less.
_STATUS_MAX: Final = 512
LENGTH_MAX: Final = HEADER_LENGTH + 17 + _LOAD_FIELDS + 3 * ((1 << 16) - 1) + 255 + CHECKSUM_LENGTH
"""Bytes of the longest extended event there can be."""

_BLANK: Final = b" "
# Status variables' values in a statement that says nothing of them.
_DEFAULTS: Final = {
    7: StatusVar(7, "LC_TIME_NAMES", 0),
    3: StatusVar(3, "AUTO_INCREMENT", (1, 1)),
}
_CHARSET: Final = 4
_CONTEXTS_KEPT: Final = 256


def plain_event(event: bytes, format_: Format) -> bytes:
    """A Query event without its tables info, as long as it was.

    Args:
        event: A whole event of a type in `QUERIES`.
        format_: The format of its file, which has tables info.

    Raises:
        CodecError: If the event is not as long as it says.
    """
    type_code, end = event[4], len(event) - format_.checksum_length
    own = _LOAD_FIELDS if type_code == EventType.EXECUTE_LOAD_QUERY else 0
    status_at = HEADER_LENGTH + _LENGTHS.size + own
    if end < status_at:
        raise CodecError("a statement ends inside its fixed part")
    lengths = _LENGTHS.unpack_from(event, HEADER_LENGTH)
    database_length, _, status_length, query_length, tables_length = lengths
    database_at = status_at + status_length
    query_at = database_at + database_length
    query_end = query_at + query_length
    if query_end + tables_length != end:
        raise CodecError("a statement is not as long as its parts")
    # The lengths of statement and tables, and the tables, go; the NUL behind the database comes.
    left = _LENGTHS.size - (_EXTENDED_AT - HEADER_LENGTH) + tables_length - 1
    room = min(left, max(0, _STATUS_MAX - status_length))
    padding = _padding(event[status_at:database_at], room)
    # Behind a compressed statement nothing is read.
    filler = b"\0" if type_code == EventType.QUERY_COMPRESSED else _BLANK
    data = b"".join(
        (
            event[:_STATUS_AT],
            _STATUS_LENGTH.pack(status_length + len(padding)),
            event[status_at - own : database_at],
            padding,
            event[database_at:query_at],
            b"\0",
            event[query_at:query_end],
            filler * (left - len(padding)),
        )
    )
    if not format_.checksum_length:
        return data
    assert format_.checksum_length == CHECKSUM_LENGTH, "there is one kind of checksum"
    return data + zlib.crc32(data).to_bytes(CHECKSUM_LENGTH, "little")


def _padding(status_vars: bytes, room: int) -> bytes:
    """Variables that change nothing behind others; as many bytes as there are, or few less."""
    threes, fives, sevens = _repeated(status_vars)
    if room % 3 == 0:
        return threes * (room // 3)
    if room % 3 == 2:
        return fives + threes * ((room - 5) // 3) if room >= 5 else b""
    if room >= 10:
        return fives * 2 + threes * ((room - 10) // 3)
    return sevens if room == 7 and sevens else threes * (room // 3)


@lru_cache(_CONTEXTS_KEPT)
def _repeated(status_vars: bytes) -> tuple[bytes, bytes, bytes]:
    """A variable of 3, one of 5 and one of 7 bytes with the values that they have already.

    All are empty where the variables cannot be read.
    """
    try:
        found = {variable.code: variable for variable in decode_status_vars(status_vars)}
    except CodecError:
        return b"", b"", b""
    three, five = (found.get(code, default) for code, default in _DEFAULTS.items())
    seven = found.get(_CHARSET)
    return (
        encode_status_vars((three,)),
        encode_status_vars((five,)),
        b"" if seven is None else encode_status_vars((seven,)),
    )
