"""The files of a log, and the bytes and groups of their ranges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from binlane.log.codec.event import Event
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.first_event import format_of
from binlane.log.grouping.walk import Walker
from binlane.log.grouping.window import PIECE_BYTES, ByteSource, Window
from binlane.tables.ranges.log_range import LogRange
from binlane.tables.ranges.storage import LogBytes, head_event, named


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLogFile:
    """A file of a log.

    Attributes:
        uri: Where it is: a path, or a URI that `storage` opens.
        name: Base name without compression suffix, as events and offsets have it.
        number: At the end of its name.
        size_bytes: Bytes of the file as it is stored.
        is_plain: Whether positions in it are positions in the log: neither compressed nor encrypted.
        is_live: Whether its server may still be writing it.
        server: A name that tells the server of the log from others, where it is asked; else None.
    """

    uri: str
    name: str
    number: int
    size_bytes: int
    is_plain: bool = True
    is_live: bool = False
    server: str | None = None


def open_range(piece: LogRange) -> LogBytes:
    """The bytes of a range, from `start` on; `reread` takes positions in the log.

    The bytes end at `stop`, behind which a server may be writing.

    Raises:
        StoreError: If the file cannot be opened.
    """
    return LogBytes(
        piece.uri,
        position=piece.start,
        stop=piece.stop,
        is_plain=piece.is_plain,
        keys=piece.keys,
    )


def description_of(piece: LogRange) -> Event:
    """The FORMAT_DESCRIPTION of a range's file.

    Raises:
        CodecError: With file and position, if the file does not begin with one.
        StoreError: If the file cannot be read.
    """
    if piece.head is not None:
        return next(Walker((piece.head,), file=named(piece.uri)).events())
    return head_event(piece.uri, is_plain=piece.is_plain, keys=piece.keys)


def read_groups_of(piece: LogRange) -> Iterator[EventGroup]:
    """The event groups of a range, behind the FORMAT_DESCRIPTION of its file.

    Raises:
        CodecError: At the first fault, with file and position.
        StoreError: If the file cannot be read.
    """
    head = description_of(piece)
    yield from group_events([head], file=piece.name)
    start = max(piece.start, head.next_position)
    if piece.stop is not None and start >= piece.stop:
        return
    with closing(open_range(piece)) as source:
        walker = Walker(
            chunks_of(source.reread(start)),
            file=named(piece.uri),
            position=start,
            format_=format_of(head),
        )
        yield from group_events(walker.events(), file=piece.name)


def chunks_of(source: ByteSource) -> Iterator[bytes]:
    """The bytes of a source in pieces, from where it stands."""
    return Window(source, size_bytes=PIECE_BYTES).rest(0)
