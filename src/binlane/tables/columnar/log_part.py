"""What the fast path is given: bytes of a file, and how much of them it may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.log.codec.format import Format
from binlane.log.grouping.window import ByteSource

WINDOW_BYTES: Final = 6 << 20
HELD_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """How much the fast path holds.

    Attributes:
        window_bytes: How many bytes of the file are looked at at once.
        held_bytes_max: Of an event group; a larger one is read twice, first to see that it ends.
    """

    window_bytes: int = WINDOW_BYTES
    held_bytes_max: int = HELD_BYTES_MAX


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """What is read of a file, from its beginning or from a group on.

    Attributes:
        source: Its bytes, from `position` on; decrypted.
        file: Its name, as messages shall give it.
        name: Its base name, as rows give it.
        position: Where a group begins, when `format_` is given; else 0.
        format_: Of the FORMAT_DESCRIPTION before it.
    """

    source: ByteSource
    file: str
    name: str
    position: int = 0
    format_: Format | None = None
