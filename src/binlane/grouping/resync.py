"""Finding the way back into a damaged log: the next bytes that are certainly an event.

An event is certain where its type is known and its checksum is right; in a log without checksums,
where another such event, or the end, follows it. Its header must say the position that it stands
at; where no event does, bytes are missing or too many, and all are off by the same distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from binlane.codec.event import EventHeader, checksum
from binlane.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.codec.types import EventType

_WINDOW_BYTES: Final = 1 << 20
# Event groups begin with small events: there is no need to hold large ones to be certain of them.
_CERTAIN_LENGTH_MAX: Final = 1 << 20
_TYPE_OFFSET: Final = 4
_LENGTH_OFFSET: Final = 9
_NEXT_POSITION_OFFSET: Final = 13
_MASK: Final = (1 << 32) - 1
_IS_KNOWN: Final = np.isin(np.arange(256), [int(code) for code in EventType if code])

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """A certain event.

    Attributes:
        position: Where it stands, in bytes from the file's start.
        shift: How far its header's position is ahead of that.
    """

    position: int
    shift: int = 0


def find_event(
    bytes_from: Callable[[int], Iterable[bytes]], position: int, format_: Format, *, shift: int = 0
) -> Found | None:
    """The first certain event behind damage; None if there is none.

    Args:
        bytes_from: Gives the file's bytes from a position on, not encrypted.
        position: Where to begin to look.
        format_: Of the log.
        shift: How far headers were ahead of the file before the damage.
    """
    for asked in (shift, None):
        found = _Search(bytes_from(position), position, format_, asked).next_event()
        if found is not None:
            return found
    return None


class _Search:
    """Looks through bytes once, for events with a certain shift or, if that is None, with any."""

    def __init__(
        self, chunks: Iterable[bytes], position: int, format_: Format, shift: int | None
    ) -> None:
        self._chunks = iter(chunks)
        self._start = position
        self._format = format_
        self._shift = shift
        self._buffer = b""

    def next_event(self) -> Found | None:
        while self._fill(_WINDOW_BYTES) or len(self._buffer) >= HEADER_LENGTH:
            size = min(_WINDOW_BYTES, len(self._buffer) - HEADER_LENGTH + 1)
            for offset in self._candidates(size):
                shift = self._certain_shift(offset)
                if shift is not None:
                    return Found(self._start + offset, shift)
            self._buffer = self._buffer[size:]
            self._start += size
        return None

    def _candidates(self, size: int) -> Iterator[int]:
        """Offsets below `size` where bytes look like the header of an event."""
        data = np.frombuffer(self._buffer, np.uint8, size + HEADER_LENGTH - 1)
        lengths = _numbers(data, _LENGTH_OFFSET, size)
        fits = _IS_KNOWN[data[_TYPE_OFFSET : _TYPE_OFFSET + size]]
        fits &= lengths >= HEADER_LENGTH + self._format.checksum_length
        fits &= lengths <= _CERTAIN_LENGTH_MAX
        if self._shift is not None:
            ends = self._start + self._shift + np.arange(size, dtype=np.int64) + lengths
            fits &= _numbers(data, _NEXT_POSITION_OFFSET, size) == ends & _MASK
        yield from map(int, np.flatnonzero(fits))

    def _certain_shift(self, offset: int) -> int | None:
        """The shift of the event at an offset; None if it is not certain."""
        header = self._header(offset)
        end = offset + header.length
        if not header.next_position or not self._fill(end):
            return None
        shift = header.next_position - (self._start + end & _MASK)
        if self._format.checksum_length:
            data = self._buffer[offset : end - CHECKSUM_LENGTH]
            stored = self._buffer[end - CHECKSUM_LENGTH : end]
            is_certain = checksum(data) == int.from_bytes(stored, "little")
        else:
            is_certain = not self._fill(end + 1) or self._is_plausible(end, shift)
        return shift if is_certain else None

    def _is_plausible(self, offset: int, shift: int) -> bool:
        """Whether an event seems to start here, in a log without checksums."""
        if not self._fill(offset + HEADER_LENGTH):
            return False
        header = self._header(offset)
        end = self._start + offset + header.length + shift
        return (
            bool(_IS_KNOWN[header.type_code])
            and header.length >= HEADER_LENGTH
            and header.next_position in (0, end & _MASK)
        )

    def _header(self, offset: int) -> EventHeader:
        return EventHeader.decode(self._buffer[offset : offset + HEADER_LENGTH])

    def _fill(self, length: int) -> bool:
        """Have at least `length` bytes in the buffer; False where the file ends before."""
        parts, available = [self._buffer], len(self._buffer)
        while available < length and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            available += len(chunk)
        if len(parts) > 1:
            self._buffer = b"".join(parts)
        return available >= length


def _numbers(data: NDArray[np.uint8], offset: int, size: int) -> _Numbers:
    """The 32-bit numbers at `offset` behind each of the first `size` bytes."""
    total: NDArray[Any] = np.zeros(size, np.int64)
    for index in range(4):
        start = offset + index
        total |= data[start : start + size].astype(np.int64) << 8 * index
    return total
