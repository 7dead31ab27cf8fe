"""Pieces of a rows event that is too large to be sent as one (MariaDB 12.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from struct import Struct
from typing import Final, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format

_HEAD: Final = Struct("<IIB")


class FragmentFlag(IntFlag):
    """Flags of a fragment."""

    ORIGINAL_SIZE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialRowDataEvent:
    """One piece of a rows event; the pieces follow each other in order.

    Attributes:
        fragment_count: The number of all pieces.
        fragment_number: The number of this piece, from 1.
        flags: The `FragmentFlag` bits as written.
        original_size: Bytes of the whole rows event, in the first piece; else None.
        data: The bytes of this piece.
    """

    fragment_count: int
    fragment_number: int
    flags: int
    original_size: int | None
    data: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the numbers, and the piece to the end."""
        del format_
        count, number, flags = reader.unpack(_HEAD)
        has_size = flags & FragmentFlag.ORIGINAL_SIZE
        return cls(
            fragment_count=count,
            fragment_number=number,
            flags=flags,
            original_size=reader.u64() if has_size else None,
            data=reader.rest(),
        )

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        size = b"" if self.original_size is None else self.original_size.to_bytes(8, "little")
        head = _HEAD.pack(self.fragment_count, self.fragment_number, self.flags)
        return head + size + self.data
