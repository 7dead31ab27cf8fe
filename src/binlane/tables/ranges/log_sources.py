"""A log as a user names it → its files, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from binlane.binlogs.store.catalog import CATALOG_FILE
from binlane.binlogs.store.chunks import base_name
from binlane.binlogs.store.files import BINLOGS_DIRECTORY
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.errors import ConfigError, StoreError
from binlane.positions import file_number
from binlane.tables.ranges.filesystems import (
    child,
    is_remote,
    is_server,
    listed,
    local_path,
    parent,
    shown,
    size_of_file,
)
from binlane.tables.ranges.served_logs import ServerPlace, file_of
from binlane.tables.ranges.storage import is_plain_file
from binlane.tables.ranges.stored_files import StoredLogFile

INDEX_SUFFIX: Final = ".index"
_TELLING_BYTES: Final = 4096
_BINLOG_NAME: Final = re.compile(r"(?P<log>.+)\.(?P<number>\d{6,})")


def log_name(name: str) -> str | None:
    """`binlog` of `binlog.000017`; None for a name that is none of a log's files."""
    match = _BINLOG_NAME.fullmatch(name)
    return match["log"] if match else None


class Sources:
    """The files that a user named.

    Args:
        sources: Files, an index of files, patterns such as `/logs/binlog.0000*`, directories, `DATA#name` for a binlog
            of a store; paths or URIs that `pyarrow.fs` opens; or the URL of a server, of which
            `#binlog.000003` is one file, and `#orders` all files of one binlog.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = tuple(sources)
        self._readers: dict[Path, StoreReader] = {}
        self._is_plain: dict[tuple[str, int], bool] = {}

    def files(self) -> tuple[StoredLogFile, ...]:
        """The files as they are now.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file or directory cannot be read.
            PeerError: If a server cannot be asked.
        """
        return tuple(file for source in self._sources for file in self._files_of(source))

    def one_log(self) -> tuple[StoredLogFile, ...]:
        """The files, if they are those of one log in order.

        Raises:
            ConfigError: If they are not.
            StoreError: If a file or directory cannot be read.
            PeerError: If a server cannot be asked.
        """
        files = self.files()
        logs = {log_name(file.name) for file in files}
        numbers = [file.number for file in files]
        if len(logs) > 1 or None in logs or numbers != sorted(set(numbers)):
            names = ", ".join(file.name for file in files)
            raise ConfigError(
                f"these are not the files of one log in order: {names}",
                key="path",
                hint="name one log's files as NAME.000001, NAME.000002 …, or its directory",
            )
        return files

    def _files_of(self, source: str) -> Iterator[StoredLogFile]:
        if is_server(source):
            yield from _server_files(source)
        elif is_remote(source):
            yield from self._remote_files(source)
        else:
            yield from self._local_files(local_path(source))

    def _local_files(self, path: str) -> Iterator[StoredLogFile]:
        data_dir, has_name, name = path.rpartition("#")
        if has_name and (Path(data_dir) / CATALOG_FILE).exists():
            yield from self._store_files(Path(data_dir), name)
        elif has_name and Path(data_dir).is_dir():
            yield from self._directory_files(Path(data_dir) / BINLOGS_DIRECTORY / name)
        elif Path(path).is_dir():
            yield from self._directory_files(Path(path))
        elif Path(path).is_file() and Path(path).suffix == INDEX_SUFFIX:
            # The files stand beside their index, wherever their server has its data.
            yield from self._local_files(f"{escape(path.removesuffix(INDEX_SUFFIX))}.[0-9]*")
        elif Path(path).is_file():
            absolute = Path(path).absolute()
            yield self._file(str(absolute), absolute.name, absolute.stat().st_size)
        elif found := [each for each in _matching(path) if log_name(base_name(each)) is not None]:
            yield from self._in_order({str(each): each.stat().st_size for each in found})
        else:
            raise StoreError(
                "no such file or directory",
                path=path,
                hint="name a binlog file, a directory of them, or DATA#name",
            )

    def _store_files(self, data_dir: Path, name: str) -> Iterator[StoredLogFile]:
        reader = self._readers.setdefault(data_dir, StoreReader(data_dir))
        for file in reader.files(name):
            yield StoredLogFile(
                uri=str(file.path.absolute()),
                name=file.name,
                number=file.number,
                size_bytes=file.size_bytes,
                is_live=file.ended is None,
            )

    def _directory_files(self, directory: Path) -> Iterator[StoredLogFile]:
        if (directory / CATALOG_FILE).exists():
            names = ", ".join(f"{directory}#{name}" for name in StoreReader(directory).names())
            raise _several(str(directory), names)
        store = directory.parent.parent
        if directory.parent.name == BINLOGS_DIRECTORY and (store / CATALOG_FILE).exists():
            yield from self._store_files(store, directory.name)
            return
        sizes = {
            str(path.absolute()): path.stat().st_size
            for path in directory.iterdir()
            if log_name(base_name(path)) is not None
        }
        yield from self._one_live_log(str(directory), sizes)

    def _remote_files(self, source: str) -> Iterator[StoredLogFile]:
        parts = urlsplit(source)
        uri, name = urlunsplit(parts._replace(fragment="")), parts.fragment
        if name:
            uri = child(child(uri, BINLOGS_DIRECTORY), name)
        folder, pattern = parent(uri)
        if set(pattern) & set("*?["):
            found = _sizes(folder, listed(folder) or {}, pattern)
            if not found:
                raise _nothing_there(uri)
            yield from self._in_order(found)
            return
        size = size_of_file(uri)
        if size is not None:
            yield self._file(uri, pattern, size)
            return
        entries = listed(uri)
        if not entries:
            raise _nothing_there(uri)
        yield from self._one_live_log(shown(uri), _sizes(uri, entries, "*"))

    def _one_live_log(self, directory: str, sizes: Mapping[str, int]) -> Iterator[StoredLogFile]:
        """The files of a directory, the last of which may be written."""
        logs = {log_name(_base_name(uri)) for uri in sizes}
        if len(logs) != 1:
            found = ", ".join(sorted(filter(None, logs))) or "none"
            raise ConfigError(
                f"{directory} does not hold the files of one log; there are: {found}",
                key="path",
                hint="name the files of one log, such as NAME.000001",
            )
        *closed, last = self._in_order(sizes)
        yield from closed
        yield replace(last, is_live=True)

    def _in_order(self, sizes: Mapping[str, int]) -> Iterator[StoredLogFile]:
        names = {uri: _base_name(uri) for uri in sizes}
        for uri in sorted(sizes, key=lambda uri: (log_name(names[uri]), file_number(names[uri]))):
            yield self._file(uri, names[uri], sizes[uri])

    def _file(self, uri: str, name: str, size_bytes: int) -> StoredLogFile:
        name = base_name(name)
        # A file that is whole enough to tell does not become another kind of file.
        key = uri, min(size_bytes, _TELLING_BYTES)
        if key not in self._is_plain:
            self._is_plain[key] = is_plain_file(uri)
        return StoredLogFile(
            uri=uri,
            name=name,
            number=file_number(name),
            size_bytes=size_bytes,
            is_plain=self._is_plain[key],
        )


def _server_files(source: str) -> Iterator[StoredLogFile]:
    place = ServerPlace.parse(source)
    log = place.log()
    last_files = {log_name(name): name for name, _ in log.files}
    if len(last_files) > 1 and not place.file:
        raise ConfigError(
            f"{place.url} serves several binlogs",
            key="path",
            hint="name one: " + ", ".join(f"{place.url}#{name}" for name in last_files),
        )
    found = [
        StoredLogFile(
            uri=file_of(source, name),
            name=name,
            number=file_number(name),
            size_bytes=size_bytes,
            is_live=last_files[log_name(name)] == name,
            server=log.server_uuid,
        )
        for name, size_bytes in log.files
        if place.file in ("", name, log_name(name))
    ]
    if not found:
        names = [name for name, _ in log.files]
        raise StoreError(
            f"the server's log holds no {place.file or 'file'}"
            + (f"; it has {names[0]} to {names[-1]}" if names else ""),
            path=str(place),
            hint="its files are purged, or its log is off: see SHOW BINARY LOGS",
        )
    yield from found


def _matching(pattern: str) -> Iterator[Path]:
    """The paths that a pattern means."""
    path = Path(pattern).absolute()
    return Path(path.anchor).glob(str(path.relative_to(path.anchor)))


def _sizes(folder: str, entries: Mapping[str, int], pattern: str) -> dict[str, int]:
    return {
        child(folder, name): size
        for name, size in entries.items()
        if fnmatchcase(name, pattern) and log_name(base_name(name)) is not None
    }


def _base_name(uri: str) -> str:
    return base_name(urlsplit(uri).path if is_remote(uri) else uri)


def _several(directory: str, names: str) -> ConfigError:
    return ConfigError(
        f"{directory} is a store of several binlogs",
        key="path",
        hint=f"name one: {names or 'there is none yet'}",
    )


def _nothing_there(uri: str) -> StoreError:
    return StoreError(
        "no such file or directory",
        path=shown(uri),
        hint="name a binlog file, a directory of them, or URI#name of an archive",
    )
