"""GTID positions of byte positions, as the servers' BINLOG_GTID_POS(), and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.files import BinlogFile, read_head
from binlane.binlogs.store.group_points import group_index, headers
from binlane.live.dump.start import file_for
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.transaction import GtidEvent, GtidListEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.walk import Walker, walk
from binlane.positions import FilePosition, GtidPosition, mariadb_position


def gtid_position_at(chunks: Iterable[bytes], position: int, *, file: str) -> GtidPosition | None:
    """Return the GTID position before a byte position in a file.

    Args:
        chunks: The file's bytes in pieces.
        position: The beginning of an event, or the file's end, in bytes.
        file: The base name of the file.

    Returns:
        The GTID position; None if no event begins or ends there.

    Raises:
        CodecError: If the file is damaged before the position.
    """
    return _position_at(walk(chunks, file=file), position, GtidPosition())


def gtid_position_in(path: Path, position: int) -> GtidPosition | None:
    """Return the GTID position before a byte position in a closed or published file of a store.

    Reads no more than the index of groups leaves to be read.

    Args:
        path: The path of the file.
        position: The beginning of an event, or the file's end, in bytes.

    Raises:
        CodecError: If the file is damaged before the position.
        StoreError: If it cannot be read.
    """
    index = group_index(path, size_bytes=position)
    point = index.at(position) if index else None
    if index is None or point is None:
        return gtid_position_at(open_chunks(path), position, file=path.name)
    format_ = read_head(path).format_description.format
    start = point.position
    chunks = open_chunks(path, position=start)
    events = Walker(chunks, file=path.name, position=start, format_=format_).events()
    done = mariadb_position(index.position_of(point))
    return done if position == start else _position_at(events, position, done)


def place_behind(
    files: Sequence[BinlogFile], end: FilePosition, done: GtidPosition
) -> FilePosition:
    """Return the place where a binlog of a MariaDB goes on behind `done`.

    Args:
        files: The binlog's files, oldest first.
        end: The place where the binlog ends.
        done: A place of the source's log: the groups before it, which the binlog is complete up to.

    Returns:
        Before the first group that is not done, or the end.

    Raises:
        StatementError: If the first file begins behind it.
        CodecError: If a file is damaged.
        StoreError: If it cannot be read.
        OSError: If it is gone.
    """
    file = file_for(done, files)
    size_bytes = end.position if end.file == file.name else file.size_bytes
    index = group_index(file.path, size_bytes=size_bytes)
    point = index.behind(done) if index else None
    head = read_head(file.path)
    end_of_done = head.size_bytes if point is None else point.position
    with file.path.open("rb") as stream:
        for place, _, type_code, length in headers(stream, end_of_done, size_bytes):
            if type_code == EventType.GTID:
                stream.seek(place)
                gtid = gtid_of(decode_event(stream.read(length), head.format_description.format))
                if gtid is not None and not done.covers(gtid):
                    break
            end_of_done = place + length
    return FilePosition(file.name, end_of_done)


def _position_at(events: Iterable[Event], position: int, done: GtidPosition) -> GtidPosition | None:
    is_boundary = False
    for event in events:
        is_boundary = is_boundary or event.position == position
        if isinstance(event.body, FormatDescriptionEvent):
            # The GTID_LIST behind it says what is done before the file.
            is_boundary = is_boundary or event.next_position == position
            continue
        if isinstance(event.body, GtidListEvent):
            done = event.body.position
        elif event.position >= position:
            break
        elif isinstance(event.body, GtidEvent):
            done = done.advance(event.body.gtid(event.header.server_id))
        is_boundary = is_boundary or event.next_position == position
    return done if is_boundary else None
