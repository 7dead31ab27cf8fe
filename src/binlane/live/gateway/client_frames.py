"""The frames that a client sends: commands that are read, and what passes to the source as it comes (pure)."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from binlane.live.gateway.reply_follower import wrong_number
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, FRAME_PAYLOAD_MAX, frame

_HELD_MAX: Final = 1 << 25
"""Bytes of a statement that is held as a whole, as its judge has to know it."""


class NextBytes(Enum):
    """The meaning of the client's next bytes."""

    COMMAND = "a frame that is looked at"
    DECIDED = "a command of several frames of which the first bytes were looked at; it passes"
    CONTINUATION = "the next frame of a command or file that passes"
    REST = "the rest of a frame that passes"


class PassedPart(NamedTuple):
    """Some bytes of a frame that passes.

    Attributes:
        to_source: These bytes; none of a refused command.
        header: Number of them that belong to the frame's header.
        to_client: The error behind a refused command's last frame.
    """

    to_source: bytes = b""
    header: int = 0
    to_client: bytes = b""


class ClientFrames:
    """The bytes that one client has sent and that were not used yet.

    Attributes:
        data: Bytes that were not used yet.
        next: Meaning of the first of them.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.next = NextBytes.COMMAND
        self._left = 0
        self._header_left = 0
        self._is_full = False
        self._next_number = 0
        self._refusal: bytes | None = None

    @property
    def length(self) -> int:
        """Bytes of the first frame's payload."""
        return int.from_bytes(self.data[:3], "little")

    @property
    def number(self) -> int:
        """The first frame's sequence number."""
        return self.data[FRAME_HEADER_LENGTH - 1]

    def head(self, count: int) -> bytes:
        """The first frame's first bytes, as far as they are there."""
        return bytes(self.data[FRAME_HEADER_LENGTH : FRAME_HEADER_LENGTH + count])

    def find_packet(self, length: int) -> tuple[bytes, int] | None:
        """Give the first packet's payload, and its end; None until it is there.

        Args:
            length: Payload length of the packet's first frame.
        """
        data = self.data
        end = FRAME_HEADER_LENGTH + length
        if len(data) < end:
            return None
        payload = bytes(data[FRAME_HEADER_LENGTH:end])
        while length == FRAME_PAYLOAD_MAX:
            start = end + FRAME_HEADER_LENGTH
            length = int.from_bytes(data[end : end + 3], "little")
            end = start + length
            payload += data[start:end]
        return payload, end

    def take(self, end: int) -> bytes:
        """Take the bytes up to an offset."""
        taken = bytes(self.data[:end])
        del self.data[:end]
        return taken

    def has_whole_packet(self) -> bool | None:
        """See if a command of several frames is there as a whole.

        Returns:
            True if it is; None as long as more of it may come; False if it is too long to be held.

        Raises:
            CodecError: If its frames are not numbered one behind the other.
        """
        data = self.data
        at, number, length = 0, 0, FRAME_PAYLOAD_MAX
        while length == FRAME_PAYLOAD_MAX:
            if at > _HELD_MAX:
                return False
            if len(data) < at + FRAME_HEADER_LENGTH:
                return None
            if data[at + FRAME_HEADER_LENGTH - 1] != number:
                raise wrong_number(data[at + FRAME_HEADER_LENGTH - 1], number)
            length = int.from_bytes(data[at : at + 3], "little")
            at, number = at + FRAME_HEADER_LENGTH + length, (number + 1) & 0xFF
        return True if len(data) >= at else None

    def pass_command(self, refusal: bytes | None = None) -> None:
        """Let the command pass whose first bytes were looked at.

        Args:
            refusal: The error packet that the client gets once it has sent all frames, which then go
                nowhere.
        """
        self.next = NextBytes.DECIDED
        self._refusal = refusal

    def check_number(self) -> None:
        """See that a frame of a command that passes is numbered as the source expects it.

        Raises:
            CodecError: If it is not.
        """
        if self.next is NextBytes.COMMAND:
            return  # an answer in an authentication, which ends with the first one that is wrong
        expected = self._next_number if self.next is NextBytes.CONTINUATION else 0
        if self.number != expected:
            raise wrong_number(self.number, expected)

    def begin_to_pass(self, length: int) -> None:
        """Let the first frame pass as it comes.

        Args:
            length: Length of the frame's payload.
        """
        self._left = FRAME_HEADER_LENGTH + length
        self._header_left = FRAME_HEADER_LENGTH
        self._next_number = (self.number + 1) & 0xFF
        self._is_full = length == FRAME_PAYLOAD_MAX
        self.next = NextBytes.REST

    def pass_on(self) -> PassedPart:
        """Take the present bytes of the frame that passes."""
        data = self.take(min(self._left, len(self.data)))
        self._left -= len(data)
        header = min(self._header_left, len(data))
        self._header_left -= header
        if not self._left:
            self.next = NextBytes.CONTINUATION if self._is_full else NextBytes.COMMAND
        if self._refusal is None:
            return PassedPart(data, header)
        if self.next is not NextBytes.COMMAND:
            return PassedPart()
        refusal, self._refusal = self._refusal, None
        return PassedPart(to_client=frame(refusal, self._next_number))
