"""MySQL's GTID events with tags: messages of numbered fields, whose numbers take as few bytes as they need.

The number of trailing one bits in a number's first byte says how many bytes follow; signed numbers keep their
sign in the lowest bit. `codec.mysql_transaction.TaggedGtidEvent` is the reference; messages with other fields,
longer forms of numbers, or values that no server writes are left to it.
"""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.layout import TAG_MAX, UUID_SIZE
from binlane.log.kernels.memory import Bytes, load_i64, load_le

_HEADER: Final = 19
_VERSION: Final = 1
_ONE_IN_A_BYTE: Final = 2
"""The version, as a number of one byte."""
_FLAGS: Final = 0
_UUID: Final = 1
_GNO: Final = 2
_TAG: Final = 3
_COMMITTED: Final = 4
_CLOCK: Final = 5
_TIME: Final = 6
_ORIGINAL_TIME: Final = 7
_LENGTH: Final = 8
_LAST: Final = 11
_NEEDED: Final = sum(
    1 << field for field in (_FLAGS, _UUID, _GNO, _TAG, _COMMITTED, _CLOCK, _LENGTH)
)
_SIGNED: Final = (_GNO, _COMMITTED, _CLOCK)
_BYTE_MAX: Final = 255
_WHOLE: Final = 9
"""Bytes of a number with nothing but its value behind the first one."""
_VALUE_BITS: Final = 7
_VALUE_MAX: Final = 1 << 61
_UNDERSCORE: Final = 95


@register_jitable
def number_size(value: int) -> int:
    """The bytes that a number takes."""
    size = 1
    while size < _WHOLE and value >> (_VALUE_BITS * size):
        size += 1
    return size


@register_jitable
def _size_at(data: Bytes, at: int) -> int:
    """The bytes of the number that begins at a place."""
    first = int(data[at])
    size = 1
    while first & 1:
        first >>= 1
        size += 1
    return size


@register_jitable
def _number_at(data: Bytes, at: int) -> int:
    """The number that begins at a place; one of 64 bits is negative."""
    size = _size_at(data, at)
    if size == _WHOLE:
        return int(load_i64(data, at + 1))
    rest = int(load_le(data, at + 1, size - 1)) if size > 1 else 0
    return rest << (_WHOLE - 1 - size) | int(data[at]) >> size


@register_jitable
def put_number(out: Bytes, at: int, value: int) -> int:
    """Write a number; gives the place behind it."""
    size = number_size(value)
    if size == _WHOLE:
        out[at] = _BYTE_MAX
        for byte in range(8):
            out[at + 1 + byte] = (value >> (8 * byte)) & _BYTE_MAX
        return at + size
    word = value << size | ((1 << (size - 1)) - 1)
    for byte in range(size):
        out[at + byte] = (word >> (8 * byte)) & _BYTE_MAX
    return at + size


@register_jitable
def _known_end(data: Bytes, at: int, end: int) -> int:
    """The place behind a number in its shortest form; -1 for another one."""
    if at >= end:
        return -1
    size = _size_at(data, at)
    if at + size > end:
        return -1
    value = _number_at(data, at)
    if value < 0 or value > _VALUE_MAX or number_size(value) != size:
        return -1
    return at + size


@register_jitable
def _known_tag_end(data: Bytes, at: int, end: int) -> int:
    """The place behind a tag as servers write it; -1 for another one."""
    place = _known_end(data, at, end)
    if place < 0:
        return -1
    size = _number_at(data, at)
    if size > TAG_MAX or place + size > end:
        return -1
    for byte in range(place, place + size):
        letter = int(data[byte])
        if not (97 <= letter <= 122 or 48 <= letter <= 57 or letter == _UNDERSCORE):
            return -1
    return place + int(size)


@register_jitable
def is_known_tagged(data: Bytes, at: int, end: int) -> bool:
    """True if a GTID event with a tag is as servers write it.

    Args:
        data: Bytes that hold the event.
        at: Place of the event's first byte.
        end: Place behind the event's body.
    """
    place = at + _HEADER
    if place >= end or data[place] != _ONE_IN_A_BYTE * _VERSION:
        return False
    behind = _known_end(data, place + 1, end)
    if behind < 0 or _number_at(data, place + 1) != end - place:
        return False
    place = _known_end(data, behind, end)
    found = 0
    last = -1
    while 0 <= place < end:
        field = _number_at(data, place)
        behind = _known_end(data, place, end)
        if behind < 0 or field <= last or field > _LAST:
            return False
        last = field
        found |= 1 << field
        place = behind
        if field == _TAG:
            place = _known_tag_end(data, place, end)
            continue
        for _ in range(UUID_SIZE if field == _UUID else 1):
            behind = _known_end(data, place, end)
            if behind < 0:
                return False
            value = _number_at(data, place)
            if field == _UUID and value > _BYTE_MAX:
                return False
            for signed in _SIGNED:
                if field == signed and value & 1:
                    return False
            place = behind
    if place != end:
        return False
    return found & _NEEDED == _NEEDED


@register_jitable
def _behind(data: Bytes, field: int, at: int) -> int:
    """The place behind the value of a field that is known."""
    if field == _TAG:
        return at + _size_at(data, at) + int(_number_at(data, at))
    place = at
    for _ in range(UUID_SIZE if field == _UUID else 1):
        place += _size_at(data, place)
    return place


@register_jitable
def _first_field(data: Bytes, at: int) -> int:
    """The place of the first field of an event that is known."""
    place = at + _HEADER + 1
    place += _size_at(data, place)
    return place + _size_at(data, place)


@register_jitable
def _field_of(data: Bytes, at: int, end: int, wanted: int) -> int:
    """The place of the value of a field that an event is known to have."""
    place = _first_field(data, at)
    while place < end:
        field = _number_at(data, place)
        place += _size_at(data, place)
        if field == wanted:
            return place
        place = _behind(data, field, place)
    return -1


@register_jitable
def name_of_tagged(data: Bytes, at: int, end: int, name: Bytes) -> int:
    """Write UUID and tag of an event that is known; gives the sequence of its GTID."""
    place = _field_of(data, at, end, _UUID)
    for byte in range(UUID_SIZE):
        name[byte] = _number_at(data, place)
        place += _size_at(data, place)
    place = _field_of(data, at, end, _TAG)
    size = int(_number_at(data, place))
    place += _size_at(data, place)
    name[UUID_SIZE] = size
    for byte in range(TAG_MAX):
        name[UUID_SIZE + 1 + byte] = data[place + byte] if byte < size else 0
    return int(_number_at(data, _field_of(data, at, end, _GNO)) >> 1)


@register_jitable
def micros_of_tagged(data: Bytes, at: int, end: int) -> int:
    """The commit's time on the server where it was first, in microseconds, of an event that is known."""
    place = _field_of(data, at, end, _ORIGINAL_TIME)
    if place < 0:
        place = _field_of(data, at, end, _TIME)
    return int(_number_at(data, place)) if place >= 0 else 0


@register_jitable
def clock_of_tagged(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The logical timestamps of an event that is known: the last one committed before, and its own."""
    committed = _number_at(data, _field_of(data, at, end, _COMMITTED)) >> 1
    return committed, _number_at(data, _field_of(data, at, end, _CLOCK)) >> 1


@register_jitable
def put_tagged(
    data: Bytes,
    place_in: tuple[int, int],
    others: int,
    facts: tuple[int, int, int],
    out: Bytes,
    to: int,
) -> int:
    """Write a GTID event with a tag, which is known, with other logical timestamps and the length that fits.

    Args:
        data: Bytes that hold the event.
        place_in: Place of its first byte, and the one behind its body.
        others: Bytes of the transaction but for the body, with its checksums.
        facts: The logical timestamps, which are the last one committed before and its own; flags that are added.
        out: Gets the event, without a checksum.
        to: Place of the event there.

    Returns:
        The bytes of the event.
    """
    at, end = place_in
    start = at + _HEADER + 1
    start += _size_at(data, start)
    committed, sequence, flags = facts
    flags |= _number_at(data, _field_of(data, at, end, _FLAGS))
    told = _number_at(data, _field_of(data, at, end, _LENGTH))
    old = _size_at(data, _field_of(data, at, end, _FLAGS))
    old += _size_at(data, _field_of(data, at, end, _LENGTH))
    old += _size_at(data, _field_of(data, at, end, _COMMITTED))
    old += _size_at(data, _field_of(data, at, end, _CLOCK))
    fixed = end - start - old + number_size(flags)
    fixed += number_size(2 * committed) + number_size(2 * sequence)
    # The length counts its own bytes, and the size of the message, too.
    while True:
        message = fixed + number_size(told)
        size = 1
        while number_size(1 + size + message) != size:
            size += 1
        whole = 1 + size + message
        if others + whole == told:
            break
        told = others + whole
    for byte in range(_HEADER):
        out[to + byte] = data[at + byte]
    place = put_number(out, to + _HEADER, _VERSION)
    place = put_number(out, place, whole)
    first = _first_field(data, at)
    for byte in range(first - start):
        out[place + byte] = data[start + byte]
    place += first - start
    read = first
    while read < end:
        field = _number_at(data, read)
        value = read + _size_at(data, read)
        behind = _behind(data, field, value)
        place = put_number(out, place, field)
        if field == _FLAGS:
            place = put_number(out, place, flags)
        elif field == _COMMITTED:
            place = put_number(out, place, 2 * committed)
        elif field == _CLOCK:
            place = put_number(out, place, 2 * sequence)
        elif field == _LENGTH:
            place = put_number(out, place, told)
        else:
            for byte in range(behind - value):
                out[place + byte] = data[value + byte]
            place += behind - value
        read = behind
    return place - to
