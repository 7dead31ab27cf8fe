"""Places in the states of `unpack` and `pack`, and the codes that they return."""

from __future__ import annotations

from typing import Final

# Results of `unpack`: the bytes that came are used up but for the head of a packet; the window is
# full; the packet at PACKET_AT is for somebody else; the event in it stands further on in its file
# than where the one before ended; it says another length than its packet has; it is out of order.
UNPACK_MORE: Final = 0
UNPACK_FULL: Final = 1
UNPACK_OTHER: Final = 2
UNPACK_GAP: Final = 3
UNPACK_DAMAGED: Final = 4
UNPACK_OUT_OF_ORDER: Final = 5

# The state between two calls.
PACKET_AT: Final = 0
"""The place of the next bytes in what came."""
WINDOW_END: Final = 1
"""Bytes in the window."""
WINDOW_BASE: Final = 2
"""Position in the source's file of the window's first byte."""
FRAME_LEFT: Final = 3
"""Bytes of the frame at hand that are still to come."""
EVENT_LEFT: Final = 4
"""Bytes of the event at hand that are in none of its frames so far."""
IS_CONTINUED: Final = 5
"""1 if the next frame goes on with the packet at hand."""
SEQUENCE: Final = 6
"""Number of the next frame, 0 to 255."""
PACKET_STATE_SIZE: Final = 7

FRAME_HEAD: Final = 4
FRAME_MAX: Final = 0xFFFFFF
PACKET_HEAD: Final = 24
"""Frame, mark and event header: what is looked at before an event is taken."""
EVENT_MAX: Final = (1 << 30) + (1 << 20)

# Results of `pack`: there are no more whole events; there is no room for the next packet; the event
# at FILE_AT does not fit into one frame, or is shorter than its own header.
PACK_MORE: Final = 0
PACK_FULL: Final = 1
PACK_OTHER: Final = 2

# Its state.
FILE_AT: Final = 0
"""The place of the next event in the file's bytes."""
PACKETS_END: Final = 1
"""Bytes of packets that were made."""
PACKET_NUMBER: Final = 2
"""Number of the next frame, 0 to 255."""
MARKS_END: Final = 3
"""The number of marks that were made."""
PACK_STATE_SIZE: Final = 4

MARKED: Final = (26, 33, 42)
"""Types of the events that `pack` marks: INCIDENT, GTID_LOG and GTID_TAGGED_LOG."""
