"""The input of the fast path: bytes of a file, and how much of them may be held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.log.codec.format import Format
from binlane.log.grouping.window import ByteSource

WINDOW_BYTES: Final = 6 << 20
HELD_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """Limits of memory of the fast path.

    Attributes:
        window_bytes: How many bytes of the file are looked at at once.
        held_bytes_max: Bytes of an event group that are held; a larger group is read twice, first
            to see that it ends.
    """

    window_bytes: int = WINDOW_BYTES
    held_bytes_max: int = HELD_BYTES_MAX


@dataclass(frozen=True, kw_only=True)
class KernelInput:
    """The part of a file that is read: from its beginning, or from an event group on.

    Attributes:
        source: The decrypted bytes of the file from `position` on.
        file: The file's name as messages give it.
        name: The file's base name, as rows give it.
        position: Where a group begins, when `format_` is given; else 0.
        format_: The format that the FORMAT_DESCRIPTION before `position` gives; None at the file's
            beginning.
    """

    source: ByteSource
    file: str
    name: str
    position: int = 0
    format_: Format | None = None
