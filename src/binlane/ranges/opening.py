"""The bytes of a range of a log, wherever its file is, and where in them groups begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.format import MAGIC, Format
from binlane.errors import CodecError
from binlane.grouping.first_event import format_of
from binlane.grouping.resync import find_group
from binlane.grouping.walk import Walker
from binlane.grouping.window import ByteSource, Window
from binlane.ranges.log_range import LogRange
from binlane.store.byte_source import FileBytes

_HEAD_BYTES = 1 << 12
_SEARCHED_BYTES = 1 << 17


class OpenBytes(ByteSource, Protocol):
    """The bytes of a file that is open."""

    def close(self) -> None:
        """Close it."""


def open_range(piece: LogRange) -> OpenBytes:
    """The bytes of the file of a range, decompressed and decrypted, from its beginning.

    Raises:
        StoreError: If it cannot be read.
    """
    return FileBytes.of_log(piece.path, keys=piece.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a range begins and ends.

    Attributes:
        start: The first group in it; 0 for the beginning of the file.
        stop: Where it ends; None for the end of the file.
        format: Of the file; None if the range begins with the file.
    """

    start: int
    stop: int | None
    format: Format | None


def bounds_of(piece: LogRange, source: ByteSource) -> Bounds | None:
    """Where the groups of a range begin and end; None if none begins in it.

    Raises:
        CodecError: If the file does not begin with a FORMAT_DESCRIPTION that is needed.
        StoreError: If it cannot be read.
    """
    is_exact = piece.stop is None or piece.stop == piece.limit
    if piece.is_start_exact and piece.start <= len(MAGIC) and is_exact:
        return Bounds(start=0, stop=piece.stop, format=None)
    format_, head_end = _head(piece, source)
    start, stop = piece.start, piece.stop
    if not piece.is_start_exact:
        found = _group_start(source, start, format_, piece.limit)
        if found is None:
            return None
        start = found
    if not is_exact and stop is not None:
        # The range behind begins at the very same group; where there is none it reads nothing.
        stop = _group_start(source, stop, format_, piece.limit) or piece.limit
    start = max(start, head_end)
    return (
        None
        if stop is not None and start >= stop
        else Bounds(start=start, stop=stop, format=format_)
    )


def _head(piece: LogRange, source: ByteSource) -> tuple[Format, int]:
    """The format of a file, and where its FORMAT_DESCRIPTION ends."""
    chunks = Window(source.reread(0), size_bytes=_HEAD_BYTES).rest(0)
    event = next(Walker(chunks, file=piece.path).events(), None)
    if event is None or not isinstance(event.body, FormatDescriptionEvent):
        found = "nothing" if event is None else event.header.type_name
        raise CodecError(
            f"FORMAT_DESCRIPTION is expected, {found} is there",
            hint="name a binlog file from its beginning",
        ).at(piece.path, len(MAGIC))
    return format_of(event), event.next_position


def _group_start(
    source: ByteSource, position: int, format_: Format, stop: int | None
) -> int | None:
    chunks = Window(source.reread(position), size_bytes=_SEARCHED_BYTES).rest(0)
    return find_group(chunks, position, format_, stop=stop)
