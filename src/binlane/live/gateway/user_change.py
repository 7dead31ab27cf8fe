"""A change of user whose packets are read, as client and source number or see them otherwise (pure)."""

from __future__ import annotations

from binlane.errors import CodecError
from binlane.live.gateway.authentication import Authentication, Passed
from binlane.live.gateway.client_frames import ClientFrames
from binlane.live.gateway.login import LOGIN_MAX
from binlane.log.codec.packets.framing import FRAME_HEADER_LENGTH, Packet, PacketSplitter


class UserChange:
    """The packets of client and source that follow a COM_CHANGE_USER.

    Args:
        authentication: The exchange at its beginning.

    Attributes:
        authentication: Exchange that has the result once the source has decided.
    """

    def __init__(self, authentication: Authentication) -> None:
        self.authentication = authentication
        self._packets = PacketSplitter(payload_max=LOGIN_MAX)

    def from_source(self, data: bytes) -> Passed:
        """Take bytes of the source.

        Raises:
            CodecError: If it goes on behind its decision.
        """
        parts: list[Passed] = []
        for packet in self._packets.feed(data):
            if self.authentication.result is not None:
                raise CodecError("the source goes on behind a change of user")
            parts.append(self.authentication.from_source(packet))
        return Passed(
            b"".join(part.to_client for part in parts), b"".join(part.to_source for part in parts)
        )

    def from_client(self, frames: ClientFrames) -> bytes | None:
        """Take the client's first frame, which may be an answer to the source.

        Returns:
            What the source gets; None where the frame is a command, or not there as a whole.

        Raises:
            CodecError: If it is too long for an answer.
        """
        length, number = frames.length, frames.number
        end = FRAME_HEADER_LENGTH + length
        if number and length > LOGIN_MAX:
            raise CodecError(f"a packet of {length} bytes belongs to no change of user")
        if not number or len(frames.data) < end:
            return None
        packet = Packet(number, frames.take(end)[FRAME_HEADER_LENGTH:])
        return self.authentication.from_client(packet).to_source
