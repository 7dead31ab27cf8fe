"""An index of groups for a file that has none: made by going from header to header."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from binlane.binlogs.store.disk import DRAFT_SUFFIX
from binlane.binlogs.store.files import CLOSED, IN_USE_POSITION, FileHead, read_head
from binlane.binlogs.store.group_index import POINT_BYTES, GroupIndex, Point, head_line, index_of
from binlane.errors import CodecError, CorruptStoreError
from binlane.log.codec.event import decode_event
from binlane.log.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH, Format
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GTID_TYPES, gtid_of

_CHUNK_BYTES: Final = 1 << 20
_HEADER: Final = Struct("<IB4xI")
_LOG = logging.getLogger(__name__)


def group_index(path: Path, *, size_bytes: int) -> GroupIndex | None:
    """The index of a file of a store; a large file that has none is gone through once.

    Args:
        path: Path of the binlog file.
        size_bytes: Size up to which the file may be read.

    Returns:
        The index; None if it would have no point, or the file is no store's or damaged.
    """
    where = index_of(path)
    if where is None or size_bytes < 2 * POINT_BYTES:
        return None
    found = GroupIndex.read(path)
    if found is not None:
        return found
    try:
        head, is_closed = read_head(path), _is_closed(path)
        # A saved index must hold all of the file; that of a live file is its writer's to save.
        end = path.stat().st_size if is_closed else size_bytes
        points = tuple(_points(path, head, end))
    except (CodecError, CorruptStoreError, OSError) as error:
        _LOG.warning("%s: no index of groups can be made: %s", path, error)
        return None
    index = GroupIndex(path=path, flavor=head.begin.flavor, start=head.size_bytes, points=points)
    if is_closed:
        _keep(index, where)
    return index


def _is_closed(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(IN_USE_POSITION)
        return stream.read(len(CLOSED)) == CLOSED


def _keep(index: GroupIndex, where: Path) -> None:
    first = head_line(index.path, start=index.start, flavor=index.flavor)
    draft = where.with_name(where.name + DRAFT_SUFFIX)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(b"".join([first, *(point.line() for point in index.points)]))
        draft.replace(where)
    except OSError as error:
        _LOG.warning("%s: no index of groups is kept: %s", where, error.strerror or error)


def _points(path: Path, head: FileHead, size_bytes: int) -> Iterator[Point]:
    """Points where a group begins, at least `POINT_BYTES` from each other."""
    format_: Format = head.format_description.format
    start = head.size_bytes
    done, last = head.begin, start
    first_timestamp, last_timestamp = (1 << 32) - 1, 0
    with path.open("rb") as stream:
        for position, timestamp, type_code, length in headers(stream, start, size_bytes):
            if type_code in GTID_TYPES:
                stream.seek(position - CHECKSUM_LENGTH)
                data = stream.read(CHECKSUM_LENGTH + length)
                if position - last >= POINT_BYTES:
                    yield Point(
                        position=position,
                        gtids=str(done),
                        check=data[:CHECKSUM_LENGTH],
                        first_timestamp=first_timestamp,
                        last_timestamp=last_timestamp,
                    )
                    last, first_timestamp, last_timestamp = position, timestamp, timestamp
                gtid = gtid_of(decode_event(data[CHECKSUM_LENGTH:], format_, position=position))
                if gtid is not None:
                    done = done.advance(gtid)
            first_timestamp = min(first_timestamp, timestamp)
            last_timestamp = max(last_timestamp, timestamp)


def headers(
    stream: BinaryIO, position: int, size_bytes: int
) -> Iterator[tuple[int, int, int, int]]:
    """Position, timestamp, type and length of each event; ROTATE and STOP end them."""
    unpack, base, data = _HEADER.unpack_from, position, b""
    while position + HEADER_LENGTH <= size_bytes:
        offset = position - base
        if offset + HEADER_LENGTH > len(data):
            stream.seek(position)
            base, offset, data = position, 0, stream.read(_CHUNK_BYTES)
            if len(data) < HEADER_LENGTH:
                return
        timestamp, type_code, length = unpack(data, offset)
        if length < HEADER_LENGTH:
            raise CodecError(f"an event says it is {length} bytes long", offset=position)
        if type_code in {EventType.ROTATE, EventType.STOP}:
            return
        yield position, timestamp, type_code, length
        position += length
