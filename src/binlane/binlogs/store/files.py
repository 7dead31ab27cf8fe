"""The files of a binlog: their names, their index, and the bytes that each begins with.

`<name>.index` lists the files, oldest first, one `./<name>.000001` a line as the servers write it.
Each file begins with the magic, FORMAT_DESCRIPTION and what was done before it: GTID_LIST in
MariaDB's dialect, PREVIOUS_GTIDS in MySQL's. All have CRC32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from binlane.binlogs.store.disk import Disk, write_whole
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import CodecError, CorruptStoreError
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.event import Event, EventHeader
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import ChecksumAlgorithm, EventType, HeaderFlag
from binlane.log.grouping.placing import place
from binlane.log.grouping.walk import Walker
from binlane.positions import GtidPosition, GtidSet, Position, parse_position

BINLOGS_DIRECTORY: Final = "binlogs"
IN_USE: Final = b"\x01"
CLOSED: Final = b"\x00"
IN_USE_POSITION: Final = len(MAGIC) + 17
"""Position of the byte with the IN_USE flag in every file; no checksum counts the flag."""

_DIGITS: Final = 6
_FILE_NAME: Final = re.compile(r"(?P<binlog>.+)\.(?P<number>\d{6,})")
_HEAD_CHUNK_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogFile:
    """A file of a binlog: cheap to make, since a store may have tens of thousands.

    Attributes:
        directory: Directory of the file's binlog.
        name: Base name such as `orders.000001`.
        size_bytes: Size up to which the file may be read: whole event groups.
        begin_gtids: The position `begin` as text.
        flavor: Flavor of the position: `mariadb` or `mysql`.
        ended: Seconds since 1970 of the event that closed it; None while it is written.
    """

    directory: Path
    name: str
    size_bytes: int
    begin_gtids: str
    flavor: str
    ended: int | None = None

    def grown(self, size_bytes: int) -> BinlogFile:
        """The file as it is with another size."""
        return BinlogFile(
            directory=self.directory,
            name=self.name,
            size_bytes=size_bytes,
            begin_gtids=self.begin_gtids,
            flavor=self.flavor,
            ended=self.ended,
        )

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.directory / self.name

    @property
    def begin(self) -> Position:
        """Position that was done before the file, as its head has it."""
        return parse_position(self.begin_gtids, self.flavor)

    @property
    def number(self) -> int:
        """At the end of its name."""
        return int(self.name.rpartition(".")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHead:
    """The first events of a file.

    Attributes:
        begin: Position that was done before the file.
        server_id: Server id in the headers of the events that binlane itself writes.
        size_bytes: Position at which the first event group starts.
    """

    format_description: FormatDescriptionEvent
    begin: Position
    server_id: int
    size_bytes: int


def file_name(binlog: str, number: int) -> str:
    """`orders.000001`."""
    return f"{binlog}.{number:0{_DIGITS}}"


def file_number(name: str, *, binlog: str) -> int | None:
    """The number in a file name of a binlog, None for any other file."""
    match = _FILE_NAME.fullmatch(name)
    return int(match["number"]) if match and match["binlog"] == binlog else None


def index_path(directory: Path) -> Path:
    """The index of the binlog that lives in a directory, which has the binlog's name."""
    return directory / f"{directory.name}.index"


def index_text(names: list[str]) -> bytes:
    """The contents of an index."""
    return "".join(f"./{name}\n" for name in names).encode()


def read_index(directory: Path) -> list[str]:
    """File names in an index, oldest first.

    Raises:
        CorruptStoreError: If there is no index, or it names anything but the binlog's files in
            growing order.
    """
    path = index_path(directory)
    try:
        lines = path.read_text("utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise CorruptStoreError(
            f"the index of binlog {directory.name} cannot be read: {error}",
            path=str(path),
            hint="write it anew with the names of the binlog's files, oldest first: ./NAME.000001",
        ) from error
    names = [line.strip().removeprefix("./") for line in lines if line.strip()]
    numbers = [file_number(name, binlog=directory.name) for name in names]
    known = [number for number in numbers if number is not None]
    if not names or len(known) < len(names) or known != sorted(set(known)):
        raise CorruptStoreError(
            f"the index names {', '.join(names) or 'no file'}; "
            f"files {file_name(directory.name, 1)} and so on are expected, oldest first",
            path=str(path),
            hint="write it anew with the names of the binlog's files",
        )
    return names


def stored_format(
    source: FormatDescriptionEvent, *, has_tables_info: bool = False
) -> FormatDescriptionEvent:
    """Make the FORMAT_DESCRIPTION of a binlog: the source's, with CRC32.

    Args:
        source: FORMAT_DESCRIPTION of the source itself.
        has_tables_info: True if the binlog's Query events name the tables that they concern.
    """
    described = source.with_tables_info(has_tables_info=has_tables_info)
    return replace(described, checksum_algorithm=int(ChecksumAlgorithm.CRC32))


def head_bytes(head: FileHead, *, timestamp: int) -> bytes:
    """The first bytes of a new file, marked as in use; `head.size_bytes` is not read."""
    format_ = head.format_description.format
    description = Event(
        _header(EventType.FORMAT_DESCRIPTION, head.server_id, timestamp, HeaderFlag.BINLOG_IN_USE),
        head.format_description,
    )
    data = MAGIC + place(description, len(MAGIC), format_)
    return data + place(_done_before(head, timestamp), len(data), format_)


def _done_before(head: FileHead, timestamp: int) -> Event:
    """The event that says what was done before a file."""
    if isinstance(head.begin, GtidSet):
        header = _header(
            EventType.PREVIOUS_GTIDS_LOG, head.server_id, timestamp, HeaderFlag.IGNORABLE
        )
        return Event(header, PreviousGtidsEvent.of(head.begin))
    assert isinstance(head.begin, GtidPosition), "there are two flavors"
    header = _header(EventType.GTID_LIST, head.server_id, timestamp)
    return Event(header, GtidListEvent.of(head.begin))


def rotate_bytes(head: FileHead, following: str, *, position: int, timestamp: int) -> bytes:
    """The last event of a file that goes on in another."""
    header = _header(EventType.ROTATE, head.server_id, timestamp)
    event = Event(header, RotateEvent(position=len(MAGIC), file=following))
    return place(event, position, head.format_description.format)


def write_head(disk: Disk, path: Path, head: FileHead, *, timestamp: int) -> FileHead:
    """Make a new file that is on disk with its first bytes.

    Args:
        disk: Disk that holds the new file.
        path: Path of the new file; a file that a crash left there is emptied.
        head: First events of the file; its `size_bytes` is not read.
        timestamp: Time of the first events, in seconds since 1970.

    Returns:
        The head with its size.
    """
    data = head_bytes(head, timestamp=timestamp)
    file = disk.create(path)
    try:
        file.write_at(data, 0)
        file.sync()
    finally:
        file.close()
    disk.sync_directory(path.parent)
    return replace(head, size_bytes=len(data))


def write_index(disk: Disk, directory: Path, names: list[str]) -> None:
    """Let the index name these files, at once or not at all."""
    write_whole(disk, index_path(directory), index_text(names))


def _header(type_code: int, server_id: int, timestamp: int, flags: int = 0) -> EventHeader:
    return EventHeader(
        timestamp=timestamp & 0xFFFFFFFF,  # what servers write, whatever their clock says
        type_code=type_code,
        server_id=server_id,
        length=0,
        next_position=0,
        flags=flags,
    )


def last_beginning(files: Sequence[BinlogFile]) -> int:
    """The place among files of the last before which nothing was done: all is in it and behind it."""
    return max((n for n, file in enumerate(files) if not file.begin_gtids), default=0)


def ended_before(closed: Sequence[BinlogFile], timestamp: float) -> int:
    """Count the closed files that ended before a time, up to the first that did not.

    Args:
        closed: The closed files, oldest first.
        timestamp: Seconds since 1970, as events have them.
    """
    for count, file in enumerate(closed):
        if file.ended is None or file.ended >= timestamp:
            return count
    return len(closed)


def beyond_size(files: Sequence[BinlogFile], total_bytes: int) -> int:
    """Count the oldest files that are too many for a total size; never the last.

    Args:
        files: All files of the binlog, oldest first.
        total_bytes: Bytes that the remaining files may have together.
    """
    left_bytes = sum(file.size_bytes for file in files)
    for count, file in enumerate(files[:-1]):
        if left_bytes <= total_bytes:
            return count
        left_bytes -= file.size_bytes
    return len(files) - 1


def purgeable(files: Sequence[BinlogFile], settings: StoreSettings, *, now: float) -> int:
    """Count the oldest files that have had their time, or are too many; never the last.

    Args:
        files: All files of the binlog, oldest first.
        settings: Settings that limit time and size.
        now: The present time, in seconds since 1970.
    """
    count = 0
    if settings.expire_logs_s:
        count = ended_before(files[:-1], now - settings.expire_logs_s)
    if settings.max_binlog_total_size_bytes:
        count = max(count, beyond_size(files, settings.max_binlog_total_size_bytes))
    return count


def read_head(path: Path) -> FileHead:
    """Read the first events of a file of a store.

    Raises:
        CorruptStoreError: If FORMAT_DESCRIPTION or the position done before is not at its beginning.
    """
    description: Event | None = None
    fault = "it ends there"
    try:
        for event in Walker(_small_chunks(path), file=str(path)).events():
            if isinstance(event.body, FormatDescriptionEvent):
                description = event
            elif description and isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
                return FileHead(
                    format_description=cast("FormatDescriptionEvent", description.body),
                    begin=event.body.position,
                    server_id=description.header.server_id,
                    size_bytes=event.next_position,
                )
            else:
                fault = f"{event.header.type_name} stands at {event.position}"
                break
    except CodecError as error:
        fault = error.message
    raise CorruptStoreError(
        f"the file does not begin with FORMAT_DESCRIPTION and GTID_LIST or PREVIOUS_GTIDS: {fault}",
        path=str(path),
        hint="`binlane verify` lists every fault; restore the file from a copy",
    )


def _small_chunks(path: Path) -> Iterator[bytes]:
    """Small pieces, for the first events of a file that may be large."""
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_HEAD_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise CorruptStoreError(
            f"cannot be read: {error.strerror or error}",
            path=str(path),
            hint="restore the file from a copy",
        ) from error
