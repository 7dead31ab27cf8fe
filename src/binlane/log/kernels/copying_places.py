"""Events at their new place: length, end and checksum, and MySQL's GTID with its length and clock."""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.memory import Bytes, copy_bytes, crc32, load_i64
from binlane.log.kernels.tagged_gtids import clock_of_tagged, is_known_tagged, put_tagged
from binlane.log.kernels.text_shapes import Numbers

_HEADER: Final = 19
_CHECKSUM: Final = 4
_LAST_COMMITTED: Final = 26
_SEQUENCE: Final = 34
_TIMES: Final = 42
_MASK32: Final = 0xFFFFFFFF
_MAY_HAVE_STATEMENTS: Final = 1
_GTID: Final = 33
_TAGGED_GTID: Final = 42


@register_jitable
def _packed_length(value: int) -> int:
    if value < 251:
        return 1
    if value < 0x10000:
        return 3
    return 4 if value < 0x1000000 else 9


@register_jitable
def _length_place(data: Bytes, at: int, end: int) -> int:
    """Return the place of the transaction's length in MySQL's GTID event; -1 if it has none."""
    place = at + _HEADER + _TIMES
    if place + 7 > end:
        return -1
    place += 14 if data[place + 6] & 0x80 else 7
    return place if place < end else -1


@register_jitable
def _told_length(data: Bytes, place: int) -> int:
    """Return the number of bytes that the number at `place` takes."""
    first = int(data[place])
    return 1 if first < 251 else (3 if first == 252 else (4 if first == 253 else 9))


@register_jitable
def store(out: Bytes, at: int, value: int, length: int) -> None:
    """Write a number of some bytes, the least significant one first."""
    for place in range(length):
        out[at + place] = (value >> (8 * place)) & 255


@register_jitable
def seal(out: Bytes, at: int, length: int, state: Numbers) -> None:
    """Set length, end and checksum of an event that was copied."""
    total = length + _CHECKSUM
    state[lay.POSITION] += total
    store(out, at + 9, total, 4)
    store(out, at + 13, state[lay.POSITION] & _MASK32, 4)
    store(out, at + length, crc32(state[lay.CRC32], out, at, length), 4)
    state[lay.OUT_LENGTH] += total
    state[lay.EVENTS_KEPT] += 1


@register_jitable
def is_mysql_gtid(kind: int) -> bool:
    """True for the type of MySQL's GTID events, behind which a group has a BEGIN."""
    return kind in (_GTID, _TAGGED_GTID)


@register_jitable
def is_known_gtid(data: Bytes, at: int, end: int) -> bool:
    """True if `write_mysql_gtid` can write an event."""
    return data[at + 4] != _TAGGED_GTID or is_known_tagged(data, at, end)


@register_jitable
def _write_tagged(
    data: Bytes, place_in: tuple[int, int], others: int, alone: int, out: Bytes, state: Numbers
) -> None:
    """Write MySQL's GTID event with a tag, as `write_mysql_gtid`."""
    committed, sequence = clock_of_tagged(data, place_in[0], place_in[1])
    if sequence:
        committed = (sequence - 1 if alone else committed) + state[lay.CLOCK_BASE]
        sequence += state[lay.CLOCK_BASE]
        state[lay.CLOCK] = max(state[lay.CLOCK], sequence)
    flags = _MAY_HAVE_STATEMENTS if alone else 0
    to = state[lay.OUT_LENGTH]
    others += _HEADER + _CHECKSUM
    length = put_tagged(data, place_in, others, (committed, sequence, flags), out, to)
    if alone:
        state[lay.CLOCK_BASE] = state[lay.CLOCK]
    seal(out, to, length, state)


@register_jitable
def write_mysql_gtid(
    data: Bytes, place_in: tuple[int, int], others: int, alone: int, out: Bytes, state: Numbers
) -> None:
    """Write MySQL's GTID event with the length and the clock that it has at its new place.

    One that stands `alone` says that there are statements, and that all before must be applied first.
    """
    at, end = place_in
    if data[at + 4] == _TAGGED_GTID:
        _write_tagged(data, place_in, others, alone, out, state)
        return
    to = state[lay.OUT_LENGTH]
    length = end - at
    place = _length_place(data, at, end)
    if place < 0:
        copy_bytes(out, to, data, at, length)
    else:
        before, width = place - at, _told_length(data, place)
        rest = length - before - width
        wanted = width
        total = others + before + wanted + rest + _CHECKSUM
        while _packed_length(total) != wanted:
            wanted = _packed_length(total)
            total = others + before + wanted + rest + _CHECKSUM
        copy_bytes(out, to, data, at, before)
        if wanted == 1:
            out[to + before] = total
        else:
            out[to + before] = 252 if wanted == 3 else (253 if wanted == 4 else 254)
            store(out, to + before + 1, total, wanted - 1)
        copy_bytes(out, to + before + wanted, data, place + width, rest)
        length = before + wanted + rest
    if end - at >= _HEADER + _TIMES and out[to + _HEADER + 25] == 2:
        sequence = load_i64(data, at + _HEADER + _SEQUENCE)
        if sequence:
            committed = load_i64(data, at + _HEADER + _LAST_COMMITTED)
            committed = (sequence - 1 if alone else committed) + state[lay.CLOCK_BASE]
            sequence += state[lay.CLOCK_BASE]
            store(out, to + _HEADER + _LAST_COMMITTED, committed, 8)
            store(out, to + _HEADER + _SEQUENCE, sequence, 8)
            state[lay.CLOCK] = max(state[lay.CLOCK], sequence)
    if alone:
        out[to + _HEADER] |= _MAY_HAVE_STATEMENTS
        # To the groups behind it, all clocks before are as far away as those of another file.
        state[lay.CLOCK_BASE] = state[lay.CLOCK]
    seal(out, to, length, state)
