"""The files of a log, and where in them event groups begin: what readers and offsets need.

Everything here can be asked again by any process that reaches the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from binlane.codec.columns import decode_rows
from binlane.codec.control import FormatDescriptionEvent
from binlane.codec.event import Event
from binlane.codec.format import MAGIC, Format
from binlane.codec.table_metadata import table_columns
from binlane.codec.types import Flavor
from binlane.columnar.selection import file_number
from binlane.errors import ConfigError, StoreError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.first_event import format_of
from binlane.grouping.resync import find_group
from binlane.grouping.table_maps import rows_with_tables
from binlane.grouping.walk import Walker
from binlane.names import TableName
from binlane.positions import FilePosition
from binlane.ranges.log_range import LogRange
from binlane.scope.scope import Scope
from binlane.store.catalog import CATALOG_FILE
from binlane.store.chunks import base_name, open_chunks
from binlane.store.compression import SUFFIXES
from binlane.store.files import BINLOGS_DIRECTORY
from binlane.store.reading import StoreReader, complete_end, first_event

_BINLOG_NAME: Final = re.compile(r"(?P<log>.+)\.(?P<number>\d{6,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A file of a log.

    Attributes:
        path: Where it is.
        name: Base name without compression suffix, as events and offsets have it.
        number: At the end of its name.
        size_bytes: Up to where it may be read; None if it is compressed, which is read whole.
    """

    path: str
    name: str
    number: int
    size_bytes: int | None

    def up_to(self, position: int) -> LogFile:
        """The same file, to be read only up to a position."""
        return replace(self, size_bytes=position)


class Log:
    """The files of a log, in order.

    Args:
        sources: As the user named them: files, directories, or `DATA#name`.

    Raises:
        ConfigError: If there is no such log.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = tuple(sources)
        self._readers: dict[Path, StoreReader] = {}
        self._ends: dict[str, int] = {}

    def files(self) -> tuple[LogFile, ...]:
        """The files as they are now; a file that may still be written ends with a whole group.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file or directory cannot be read.
        """
        return tuple(file for source in self._sources for file in self._files_of(source))

    def one_log(self) -> tuple[LogFile, ...]:
        """The files, if they are those of one log in order: what streams and landing need.

        Raises:
            ConfigError: If they are not.
        """
        files = self.files()
        logs = {_log_name(file.name) for file in files}
        numbers = [file.number for file in files]
        if len(logs) > 1 or None in logs or numbers != sorted(set(numbers)):
            names = ", ".join(file.name for file in files)
            raise ConfigError(
                f"these are not the files of one log in order: {names}",
                key="path",
                hint="name one log's files as NAME.000001, NAME.000002 …, or its directory",
            )
        return files

    def _files_of(self, source: str) -> Iterator[LogFile]:
        if "://" in source and not source.startswith("file://"):
            raise ConfigError(
                f"{source} is not on a file system that can be read yet",
                key="path",
                hint="mount it or copy the files",
            )
        path = source.removeprefix("file://")
        data_dir, has_name, name = path.rpartition("#")
        if has_name and Path(data_dir).is_dir():
            yield from self._store_files(Path(data_dir), name)
        elif Path(path).is_dir():
            yield from self._directory_files(Path(path))
        elif Path(path).is_file():
            yield _log_file(Path(path))
        else:
            raise StoreError(
                "no such file or directory",
                path=path,
                hint="name a binlog file, a directory of them, or DATA#name",
            )

    def _store_files(self, data_dir: Path, name: str) -> Iterator[LogFile]:
        reader = self._readers.setdefault(data_dir, StoreReader(data_dir))
        for file in reader.files(name):
            yield LogFile(
                path=str(file.path),
                name=file.name,
                number=file_number(file.name),
                size_bytes=file.size_bytes,
            )

    def _directory_files(self, directory: Path) -> Iterator[LogFile]:
        if (directory / CATALOG_FILE).exists():
            names = ", ".join(f"{directory}#{name}" for name in StoreReader(directory).names())
            raise ConfigError(
                f"{directory} is a store of several binlogs",
                key="path",
                hint=f"name one: {names or 'there is none yet'}",
            )
        store = directory.parent.parent
        if directory.parent.name == BINLOGS_DIRECTORY and (store / CATALOG_FILE).exists():
            yield from self._store_files(store, directory.name)
            return
        paths = sorted(
            (path for path in directory.iterdir() if _BINLOG_NAME.fullmatch(base_name(path))),
            key=lambda path: (_log_name(base_name(path)), file_number(base_name(path))),
        )
        logs = {_log_name(base_name(path)) for path in paths}
        if len(logs) != 1:
            found = ", ".join(sorted(filter(None, logs))) or "none"
            raise ConfigError(
                f"{directory} does not hold the files of one log; there are: {found}",
                key="path",
                hint="name the files of one log, such as NAME.000001",
            )
        yield from map(_log_file, paths[:-1])
        yield self._live_file(paths[-1])

    def _live_file(self, path: Path) -> LogFile:
        file = _log_file(path)
        if file.size_bytes is None:
            return file
        end = complete_end(path, after=self._ends.get(file.path, 0))
        self._ends[file.path] = end
        return file.up_to(end)


def _log_file(path: Path) -> LogFile:
    name = base_name(path)
    is_plain = path.suffix not in SUFFIXES
    return LogFile(
        path=str(path.absolute()),
        name=name,
        number=file_number(name),
        size_bytes=path.stat().st_size if is_plain else None,
    )


def _log_name(name: str) -> str | None:
    match = _BINLOG_NAME.fullmatch(name)
    return match["log"] if match else None


def group_start(path: str, position: int, format_: Format, *, stop: int | None) -> int | None:
    """The first event group that begins at or after a position, told by the bytes alone.

    Returns:
        Its position, None if none begins before `stop` (or the end of the file).
    """
    return find_group(open_chunks(path, position=position), position, format_, stop=stop)


def slices(file: LogFile, *, start: int, stop: int | None, size_bytes: int) -> Iterator[LogRange]:
    """Cut a range of a file into slices of about `size_bytes`; a compressed file stays whole.

    Args:
        file: The file.
        start: Where an event group or the first event begins.
        stop: Where one ends; None for the end of a compressed file.
        size_bytes: Of each slice.
    """
    bounds = [start]
    if stop is not None:
        bounds += range(start + size_bytes, stop - size_bytes // 2, size_bytes)
    for index, low in enumerate(bounds):
        is_last = index == len(bounds) - 1
        yield LogRange(
            path=file.path,
            name=file.name,
            number=file.number,
            start=low,
            stop=stop if is_last else bounds[index + 1],
            limit=stop,
            is_start_exact=index == 0,
        )


def read_groups_of(piece: LogRange) -> Iterator[EventGroup]:
    """The event groups of a slice, behind the FORMAT_DESCRIPTION of its file.

    Raises:
        CodecError: At the first fault, with path and position.
        StoreError: If the file cannot be read.
    """
    head = first_event(piece.path)
    format_ = format_of(head)
    yield from group_events([head], file=piece.name)
    start, stop = piece.start, piece.stop
    if not piece.is_start_exact:
        found = group_start(piece.path, start, format_, stop=piece.limit)
        if found is None:
            return
        start = found
    if stop is not None and stop != piece.limit:
        # The slice behind begins at the very same group; where there is none it reads nothing.
        stop = group_start(piece.path, stop, format_, stop=piece.limit) or piece.limit
    start = max(start, head.next_position)
    if stop is None or start < stop:
        yield from group_events(_events(piece.path, start, stop, format_), file=piece.name)


def _events(path: str, start: int, stop: int | None, format_: Format) -> Iterator[Event]:
    chunks = open_chunks(path, position=start)
    if stop is not None:
        # Behind `stop` a server may be writing: not even a header is looked at there.
        chunks = _head(chunks, stop - start)
    return Walker(chunks, file=path, position=start, format_=format_).events()


def _head(chunks: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:size_bytes]
        size_bytes -= len(chunk)
        if size_bytes <= 0:
            return


def limit_position(file: LogFile, position: FilePosition, size_bytes: int) -> int:
    """Where a run of groups of at least `size_bytes` ends that begins at a position.

    Args:
        file: A plain file.
        position: Where a group begins in it.
        size_bytes: At least one group is taken, even if it is larger.
    """
    assert file.size_bytes is not None, "compressed files are never cut"
    wanted = max(position.position, len(MAGIC)) + size_bytes
    if wanted >= file.size_bytes:
        return file.size_bytes
    format_ = format_of(first_event(file.path))
    found = group_start(file.path, wanted, format_, stop=file.size_bytes)
    return file.size_bytes if found is None else found


def rows_position(
    files: Sequence[LogFile], position: int, rows_max: int, scope: Scope
) -> tuple[LogFile, int]:
    """Where a run of groups ends that has at least so many row changes.

    Reads them all: the images must be decoded to be counted.

    Args:
        files: Plain files, at least one.
        position: Where a group begins in the first.
        rows_max: At least one group is taken, even if it has more.
        scope: The tables whose changes count.

    Returns:
        The file and the position in it.
    """
    rows = 0
    for file in files:
        flavor = Flavor.MARIADB
        for piece in slices(file, start=position, stop=file.size_bytes, size_bytes=1 << 62):
            for group in read_groups_of(piece):
                for event in group.events:
                    if isinstance(event.body, FormatDescriptionEvent):
                        flavor = event.body.format.flavor
                for _, body, table_map in rows_with_tables(group.events, file=group.file):
                    if scope.includes(TableName(table_map.database, table_map.table)):
                        columns = table_columns(table_map, flavor=flavor)
                        rows += sum(1 for _ in decode_rows(body, columns))
                if rows >= rows_max:
                    return file, group.next_position
        position = len(MAGIC)
    last = files[-1]
    return last, last.size_bytes or len(MAGIC)
