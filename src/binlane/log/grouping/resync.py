"""Finding the next bytes that are certainly an event: behind damage, or from anywhere in a file.

An event is certain where its type is known and its checksum is right; in a log without checksums,
where another such event, or the end, follows it. Its header must say the position that it stands
at; where behind damage no event does, bytes are missing or too many, and all are off by the same
distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from binlane.log.codec.event import EventHeader, checksum
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.pieces import Pieces

_WINDOW_BYTES: Final = 1 << 20
# Event groups begin with small events: there is no need to hold large ones to be certain of them.
_CERTAIN_LENGTH_MAX: Final = 1 << 20
_TYPE_OFFSET: Final = 4
_LENGTH_OFFSET: Final = 9
_NEXT_POSITION_OFFSET: Final = 13
_MASK: Final = (1 << 32) - 1
_Numbers = NDArray[np.int64]
_IsWanted = NDArray[np.bool_]
"""True for each type code whose events are wanted."""


def _types(*codes: int) -> _IsWanted:
    return np.isin(np.arange(256), codes)


_IS_KNOWN: Final = _types(*(code for code in EventType if code))
_BEGINS_GROUP: Final = {
    Flavor.MARIADB: _types(EventType.GTID),
    Flavor.MYSQL: _types(
        EventType.GTID_LOG, EventType.ANONYMOUS_GTID_LOG, EventType.GTID_TAGGED_LOG
    ),
}


@dataclass(frozen=True, slots=True)
class Found:
    """An event that is certainly one, behind damage.

    Attributes:
        position: The place of the event, in bytes from the file's start.
        shift: The distance by which its header's position is ahead of that.
    """

    position: int
    shift: int = 0


def find_event(
    bytes_from: Callable[[int], Iterable[bytes]], position: int, format_: Format, *, shift: int = 0
) -> Found | None:
    """Find the first certain event behind damage; None if there is none.

    Args:
        bytes_from: Gives the file's bytes from a position on, not encrypted.
        position: The place where the search begins.
        format_: The format of the log's events.
        shift: The distance by which headers were ahead of the file before the damage.
    """
    for asked in (shift, None):
        found = _Search(bytes_from(position), position, format_, asked).next_event()
        if found is not None:
            return found
    return None


def find_group(
    chunks: Iterable[bytes], position: int, format_: Format, *, stop: int | None = None
) -> int | None:
    """The position of the first GTID event at or after a position: there an event group begins.

    So one file is read by many tasks. Groups of logs without GTIDs are not found.

    Args:
        chunks: The file's bytes from `position` on, in pieces of any size.
        position: The position of the first byte, from the start of the file.
        format_: The format of the file's events.
        stop: The place where the search gives up; None for the end.

    Returns:
        Where the event begins, None if there is none before `stop`.
    """
    wanted = _BEGINS_GROUP[format_.flavor]
    found = _Search(chunks, position, format_, 0, wanted=wanted).next_event(stop)
    return None if found is None else found.position


class _Search:
    """Searches bytes once for events with a certain shift of positions; None: with any shift."""

    def __init__(
        self,
        chunks: Iterable[bytes],
        position: int,
        format_: Format,
        shift: int | None,
        *,
        wanted: _IsWanted = _IS_KNOWN,
    ) -> None:
        self._pieces = Pieces(chunks)
        self._start = position
        self._format = format_
        self._shift = shift
        self._wanted = wanted

    def next_event(self, stop: int | None = None) -> Found | None:
        """The first event, if it begins before `stop`."""
        while size := self._searched_next(stop):
            for offset in self._candidates(size):
                shift = self._certain_shift(offset)
                if shift is not None:
                    return Found(self._start + offset, shift)
            self._pieces.take(size)
            self._start += size
        return None

    def _searched_next(self, stop: int | None) -> int:
        """Return the number of offsets of the buffer at which an event may begin; 0 at the end."""
        size = min(_WINDOW_BYTES, self._pieces.fill(_WINDOW_BYTES) - HEADER_LENGTH + 1)
        return max(size if stop is None else min(size, stop - self._start), 0)

    def _candidates(self, size: int) -> Iterator[int]:
        """Offsets below `size` where bytes look like the header of an event."""
        data = np.frombuffer(self._pieces.peek(size + HEADER_LENGTH - 1), np.uint8)
        typed = np.flatnonzero(self._wanted[data[_TYPE_OFFSET : _TYPE_OFFSET + size]])
        lengths = _numbers(data, typed + _LENGTH_OFFSET)
        fits = lengths >= HEADER_LENGTH + self._format.checksum_length
        fits &= lengths <= _CERTAIN_LENGTH_MAX
        if self._shift is not None:
            ends = self._start + self._shift + typed + lengths
            fits &= _numbers(data, typed + _NEXT_POSITION_OFFSET) == ends & _MASK
        yield from map(int, typed[fits])

    def _certain_shift(self, offset: int) -> int | None:
        """The shift of the event at an offset; None if it is not certain."""
        header = self._header(offset)
        end = offset + header.length
        if not header.next_position or self._pieces.fill(end) < end:
            return None
        shift = header.next_position - (self._start + end & _MASK)
        if self._format.checksum_length:
            data = self._pieces.peek(header.length, offset)
            stored = int.from_bytes(data[-CHECKSUM_LENGTH:], "little")
            is_certain = checksum(data[:-CHECKSUM_LENGTH]) == stored
        else:
            is_certain = self._pieces.fill(end + 1) == end or self._is_plausible(end, shift)
        return shift if is_certain else None

    def _is_plausible(self, offset: int, shift: int) -> bool:
        """True if an event seems to start here, in a log without checksums."""
        if self._pieces.fill(offset + HEADER_LENGTH) < offset + HEADER_LENGTH:
            return False
        header = self._header(offset)
        end = self._start + offset + header.length + shift
        return (
            bool(_IS_KNOWN[header.type_code])
            and header.length >= HEADER_LENGTH
            and header.next_position in (0, end & _MASK)
        )

    def _header(self, offset: int) -> EventHeader:
        return EventHeader.decode(self._pieces.peek(HEADER_LENGTH, offset))


def _numbers(data: NDArray[np.uint8], offsets: _Numbers) -> _Numbers:
    """The 32-bit numbers at some offsets."""
    total: NDArray[Any] = np.zeros(len(offsets), np.int64)
    for index in range(4):
        total |= data[offsets + index].astype(np.int64) << 8 * index
    return total
