"""The events that an idle source sends; they are never in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader, encode_packed_int
from binlane.log.codec.format import Format

_END, _FILE, _POSITION = range(3)
_POSITION_LENGTH: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatEvent:
    """A heartbeat as all servers know it.

    Attributes:
        file: The file the dump stands in; the header's `next_position` is the position.
        position: The position where it is over 4 GiB and does not fit into the header (MariaDB).
    """

    file: str
    position: int | None = None

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the name; a position before it shows by its zero bytes, which no name has."""
        del format_
        data = reader.rest()
        if b"\0" not in data[:_POSITION_LENGTH]:
            return cls(file=_name(data))
        if len(data) < _POSITION_LENGTH:
            raise CodecError("the name of a file has a zero byte", offset=reader.offset)
        position = int.from_bytes(data[:_POSITION_LENGTH], "little")
        return cls(file=_name(data[_POSITION_LENGTH:]), position=position)

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        position = b""
        if self.position is not None:
            position = self.position.to_bytes(_POSITION_LENGTH, "little")
        return position + _name_bytes(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatV2Event:
    """A heartbeat with room for any position, for replicas that ask for it (MySQL 8.0.26).

    Attributes:
        file: The file the dump stands in.
        position: The dump's place in that file.
        tail: Fields that binlane does not know.
    """

    file: str
    position: int
    tail: bytes = b""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the numbered fields up to their end mark.

        Raises:
            CodecError: If file or position are missing or not the first two.
        """
        del format_
        start = reader.offset
        if reader.packed_int() != _FILE:
            raise CodecError("the heartbeat does not begin with a file", offset=start)
        file = _name(reader.take(reader.packed_int()))
        start = reader.offset
        if reader.packed_int() != _POSITION:
            raise CodecError("the heartbeat has no position behind its file", offset=start)
        value = Reader(reader.take(reader.packed_int()))
        position = value.packed_int()
        value.finish()
        tail = reader.rest()
        _check_tail(tail)
        return cls(file=file, position=position, tail=tail.removesuffix(bytes((_END,))))

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        name, position = _name_bytes(self.file), encode_packed_int(self.position)
        return b"".join(
            (
                bytes((_FILE,)) + encode_packed_int(len(name)) + name,
                bytes((_POSITION,)) + encode_packed_int(len(position)) + position,
                self.tail + bytes((_END,)),
            )
        )


def _check_tail(tail: bytes) -> None:
    """Read unknown fields, then the end mark, behind which nothing may stand."""
    reader = Reader(tail)
    while reader.packed_int() != _END:
        reader.take(reader.packed_int())
    reader.finish()


# File names are bytes to the servers; surrogateescape keeps any of them exact in a str.
def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
