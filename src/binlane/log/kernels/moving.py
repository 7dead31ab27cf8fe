"""Events of a binlog file → the same events at another place, with their ends, clocks and checksums."""

from __future__ import annotations

from typing import Final

from binlane.log.kernels.memory import Bytes, crc32, load_i64, load_u32

_HEADER: Final = 19
_CHECKSUM: Final = 4
_MASK32: Final = 0xFFFFFFFF
_GTIDS: Final = (33, 34)
_TAGGED_GTID: Final = 42
_CLOCK_KIND: Final = _HEADER + 25
_LAST_COMMITTED: Final = _HEADER + 26
_SEQUENCE: Final = _HEADER + 34


def move_events(data: Bytes, end: int, shift: int, clock: int, function: int) -> int:
    """Move the whole events at the beginning of some bytes.

    Args:
        data: Events with CRC32, which are changed where they are.
        end: Number of bytes in it.
        shift: Number that is added to the events' positions.
        clock: Number that is added to MySQL's logical timestamps.
        function: Address of a C function for CRC32.

    Returns:
        Number of bytes of the events that were moved; -1 at one that cannot be.
    """
    at = 0
    while end - at > _HEADER:
        length = load_u32(data, at + 9)
        if length > end - at:
            break
        kind = data[at + 4]
        if length < _HEADER + _CHECKSUM or (kind == _TAGGED_GTID and clock != 0):
            return -1
        position = (load_u32(data, at + 13) + shift) & _MASK32
        for byte in range(4):
            data[at + 13 + byte] = (position >> (8 * byte)) & 255
        if clock != 0 and (kind == _GTIDS[0] or kind == _GTIDS[1]):
            has_clock = length - _CHECKSUM >= _SEQUENCE + 8 and data[at + _CLOCK_KIND] == 2
            if has_clock and load_i64(data, at + _SEQUENCE) != 0:
                committed = load_i64(data, at + _LAST_COMMITTED) + clock
                sequence = load_i64(data, at + _SEQUENCE) + clock
                for byte in range(8):
                    data[at + _LAST_COMMITTED + byte] = (committed >> (8 * byte)) & 255
                    data[at + _SEQUENCE + byte] = (sequence >> (8 * byte)) & 255
        checksum = crc32(function, data, at, length - _CHECKSUM)
        for byte in range(4):
            data[at + length - _CHECKSUM + byte] = (checksum >> (8 * byte)) & 255
        at += length
    return at


EXPORTS: Final = ((move_events, "int64(uint8[::1], int64, int64, int64, int64)"),)
