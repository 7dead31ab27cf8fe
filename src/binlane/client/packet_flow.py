"""Packets of one connection as a client sees them: frames, sequence numbers, and a conversation.

Whoever drives a connection feeds what comes to a `PacketFlow`, until the conversation has ended
with its result; from then on packets are what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from binlane.client.dialogue import Dialogue, SendCommand, Step, UpgradeToTls
from binlane.errors import CodecError, PeerError
from binlane.log.codec.packets.framing import Packet, PacketSplitter, frame, frame_count

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes for the server."""

    data: bytes


@dataclass(frozen=True, slots=True)
class StartTls:
    """All bytes that follow go through TLS."""


@dataclass(slots=True)
class PacketFlow(Generic[_Result]):
    """The packets of one connection, in both directions.

    Attributes:
        dialogue: The conversation that comes first.
        peer: The server's address, for messages.
        result: The result of the conversation; None until it has ended.
    """

    dialogue: Dialogue[_Result]
    peer: str
    result: _Result | None = None
    _splitter: PacketSplitter = field(default_factory=PacketSplitter)
    _sequence: int = 0

    def __post_init__(self) -> None:
        next(self.dialogue)

    def begin(self, dialogue: Dialogue[_Result]) -> Iterator[Send | StartTls]:
        """Hold another conversation, once the one before has ended; take its first steps."""
        self.dialogue, self.result = dialogue, None
        yield from map(self.take_step, next(dialogue))

    def packets(self, data: bytes) -> Iterator[bytes]:
        """The payloads that `data` completes.

        Raises:
            PeerError: If frames are not what the protocol says.
        """
        try:
            packets = self._splitter.feed(data)
        except CodecError as error:
            raise self._broken(error) from None
        for packet in packets:
            self._check_sequence(packet)
            yield packet.payload

    def converse(self, payload: bytes) -> Iterator[Send | StartTls]:
        """Give the conversation its next packet; take its steps, or its result.

        Raises:
            PeerError: If the server refuses something or breaks the protocol.
        """
        try:
            steps = self.dialogue.send(payload)
        except StopIteration as stop:
            self.result = stop.value
        except CodecError as error:
            raise self._broken(error) from None
        else:
            yield from map(self.take_step, steps)

    def take_step(self, step: Step) -> Send | StartTls:
        """Return the bytes, or the start of TLS, for a step of a conversation or a command behind it."""
        if isinstance(step, UpgradeToTls):
            return StartTls()
        if isinstance(step, SendCommand):
            self._sequence = 0
        data = frame(step.payload, self._sequence)
        self._sequence = (self._sequence + frame_count(len(step.payload))) & 0xFF
        return Send(data)

    @property
    def _phase(self) -> str:
        return "login" if self.result is None else "dump"

    def _broken(self, error: CodecError) -> PeerError:
        return PeerError(error.message, peer=self.peer, phase=self._phase, hint=error.hint)

    def _check_sequence(self, packet: Packet) -> None:
        if packet.sequence != self._sequence:
            raise PeerError(
                f"packet {packet.sequence} came where packet {self._sequence} is expected",
                peer=self.peer,
                phase=self._phase,
            )
        self._sequence = packet.next_sequence
