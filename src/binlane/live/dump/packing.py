"""Bytes of a file → packets, by a kernel where it is there; the buffers that all dumps share.

Dumps of one event loop take turns: what one of them reads and packs is on its way, or kept by its
connection, before the next one is asked.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from binlane.log.grouping.window import padded
from binlane.log.kernels.load import is_compiled, kernels
from binlane.log.kernels.packet_layout import (
    FILE_AT,
    MARKS_END,
    PACK_STATE_SIZE,
    PACKET_NUMBER,
    PACKETS_END,
)

SLICE_BYTES: Final = 128 << 10
"""Bytes between two places of a file up to which dumps read, wherever they begin; an event that is
larger is sent in parts."""

_ROOM: Final = 2 * SLICE_BYTES
# The shortest event, 19 bytes, becomes a packet of 24.
_PACKETS_ROOM: Final = _ROOM + _ROOM // 3
_MARKS_ROOM: Final = _ROOM // 19 + 1
_NOTHING_LEFT_OUT: Final = -1
_KERNELS: Final = frozenset({"packets"})


class Packed(NamedTuple):
    """The packets of some bytes of a file.

    Attributes:
        size: Bytes of whole events, all of which are done.
        packets: Theirs; valid until the buffers are used again.
        number: The number of the next packet, 0 to 255.
        marks: The places among the bytes of MySQL's GTID events and INCIDENTs, in order; valid as
            long.
    """

    size: int
    packets: memoryview
    number: int
    marks: npt.NDArray[np.int64]


class Packer:
    """Buffers for bytes of a file and for the packets that they become.

    Attributes:
        room: Takes bytes of a file, from its beginning on.
        bytes: The same as an array.
    """

    def __init__(self) -> None:
        self._file = padded(_ROOM)
        self._packets = padded(_PACKETS_ROOM)
        self._state = np.zeros(PACK_STATE_SIZE, np.int64)
        self._marks = np.zeros(_MARKS_ROOM, np.int64)
        self.room, self.bytes = self._file.data[:_ROOM], self._file
        self._view = self._packets.data

    def pack(self, size: int, number: int, *, left_out: int | None = None) -> Packed:
        """Make packets of the whole events at the beginning of `room`.

        Stops at an event that has no place in one frame, and at one that is shorter than its header.

        Args:
            size: Bytes that were put there; an event begins with them.
            number: The number of the first packet, 0 to 255.
            left_out: Type of events that become no packet.
        """
        state = self._state
        state[FILE_AT], state[PACKETS_END], state[PACKET_NUMBER] = 0, 0, number
        state[MARKS_END] = 0
        code = _NOTHING_LEFT_OUT if left_out is None else left_out
        kernels().pack(self._file, size, code, state, self._packets, _PACKETS_ROOM, self._marks)
        packets = self._view[: int(state[PACKETS_END])]
        marks = self._marks[: int(state[MARKS_END])]
        return Packed(int(state[FILE_AT]), packets, int(state[PACKET_NUMBER]), marks)


@cache
def can_pack() -> bool:
    """True if the kernel is there, compiled: dumps do not wait until it is."""
    return is_compiled(_KERNELS)
