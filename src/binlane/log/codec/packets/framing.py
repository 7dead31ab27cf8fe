"""Payloads ⇄ the byte stream: a 3-byte length, a sequence number, at most 2^24-1 bytes a frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader, encode_packed_int

FRAME_HEADER_LENGTH: Final = 4
FRAME_PAYLOAD_MAX: Final = 0xFFFFFF
# Servers take no max_allowed_packet above 1 GiB; a replicated event adds its own overhead.
PAYLOAD_MAX: Final = (1 << 30) + (1 << 20)
_SEQUENCE_MASK: Final = 0xFF


@dataclass(frozen=True, slots=True)
class Packet:
    """One payload as its sender meant it, of any number of frames.

    Attributes:
        sequence: Sequence number of its first frame, 0 to 255.
        payload: Without frame headers; may be empty.
    """

    sequence: int
    payload: bytes

    @property
    def next_sequence(self) -> int:
        """The number of the frame after this packet, 0 to 255."""
        return (self.sequence + frame_count(len(self.payload))) & _SEQUENCE_MASK


def frame_count(length: int) -> int:
    """Frames that a payload of `length` bytes takes; the last one is shorter than the maximum."""
    return length // FRAME_PAYLOAD_MAX + 1


def frame(payload: bytes | memoryview, sequence: int) -> bytes:
    """Put a payload into one or more frames.

    Args:
        payload: Any length; a multiple of 2^24-1 is followed by an empty frame.
        sequence: Number of the first frame, 0 to 255.
    """
    if len(payload) < FRAME_PAYLOAD_MAX:
        return len(payload).to_bytes(3, "little") + bytes((sequence,)) + payload
    view = memoryview(payload)
    parts: list[bytes | memoryview] = []
    for number in range(frame_count(len(payload))):
        chunk = view[number * FRAME_PAYLOAD_MAX : (number + 1) * FRAME_PAYLOAD_MAX]
        parts.append(len(chunk).to_bytes(3, "little"))
        parts.append(bytes(((sequence + number) & _SEQUENCE_MASK,)))
        parts.append(chunk)
    return b"".join(parts)


def frames(payloads: Iterable[bytes], sequence: int) -> bytes:
    """Split several payloads into frames, one after the other, numbered on from `sequence`."""
    parts = []
    for payload in payloads:
        parts.append(frame(payload, sequence))
        sequence = (sequence + frame_count(len(payload))) & _SEQUENCE_MASK
    return b"".join(parts)


class PacketSplitter:
    """Cuts a byte stream into packets, however the bytes arrive."""

    def __init__(self, *, payload_max: int = PAYLOAD_MAX) -> None:
        self._payload_max = payload_max
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._parts_length = 0
        self._first_sequence = 0

    @property
    def is_empty(self) -> bool:
        """True if no bytes of a packet wait for the rest of it."""
        return not self._buffer and not self._parts

    @property
    def pending(self) -> bytes:
        """The bytes behind the last whole frame."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[Packet]:
        """Take bytes; give the packets that they complete.

        Raises:
            CodecError: If the frames of one packet are not numbered one after the other, or its
                payload is longer than the maximum given at the start.
        """
        self._buffer += data
        buffer = memoryview(self._buffer)
        packets: list[Packet] = []
        start, end = 0, len(buffer)
        try:
            while end - start >= FRAME_HEADER_LENGTH:
                length = buffer[start] | buffer[start + 1] << 8 | buffer[start + 2] << 16
                stop = start + FRAME_HEADER_LENGTH + length
                self._check_length(length)
                if stop > end:
                    break
                payload = bytes(buffer[start + FRAME_HEADER_LENGTH : stop])
                self._take_frame(buffer[start + 3], payload, packets)
                start = stop
        finally:
            buffer.release()
            del self._buffer[:start]
        return packets

    def _check_length(self, length: int) -> None:
        if self._parts_length + length > self._payload_max:
            raise CodecError(
                f"a packet of more than {self._payload_max} bytes was announced",
                hint="the peer speaks another protocol, or its max_allowed_packet is larger",
            )

    def _take_frame(self, sequence: int, payload: bytes, packets: list[Packet]) -> None:
        if not self._parts:
            if len(payload) < FRAME_PAYLOAD_MAX:
                packets.append(Packet(sequence, payload))
                return
            self._first_sequence = sequence
        elif sequence != (self._first_sequence + len(self._parts)) & _SEQUENCE_MASK:
            raise CodecError(
                f"frame {sequence} follows frame {self._first_sequence + len(self._parts) - 1} "
                "inside one packet"
            )
        self._parts.append(payload)
        self._parts_length += len(payload)
        if len(payload) < FRAME_PAYLOAD_MAX:
            packets.append(Packet(self._first_sequence, b"".join(self._parts)))
            self._parts, self._parts_length = [], 0


def packed_bytes(reader: Reader) -> bytes:
    """Read a length-encoded string."""
    return reader.take(reader.packed_int())


def encode_packed_bytes(data: bytes) -> bytes:
    """Write a length-encoded string."""
    return encode_packed_int(len(data)) + data


def nul_bytes(reader: Reader) -> bytes:
    """Read a string that ends with NUL, or, as some peers send the last one, with the packet."""
    rest = reader.rest()
    data, _, _ = rest.partition(b"\0")
    reader.offset -= max(len(rest) - len(data) - 1, 0)
    return data


def text_of(data: bytes) -> str:
    """Text of the peer: UTF-8, with any other byte kept as a lone surrogate."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Exact inverse of `text_of`."""
    return text.encode("utf-8", "surrogateescape")
