"""The methods that every event body has."""

from __future__ import annotations

from typing import Protocol, Self

from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format


class Body(Protocol):
    """A frozen value with an exact pair of decoder and encoder."""

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the whole body; the caller asserts that no byte is left."""
        ...

    def encode(self, format_: Format) -> bytes:
        """The body's bytes, without header and checksum."""
        ...
