"""What a user names as a log → its files, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.columnar.selection import file_number
from binlane.errors import ConfigError, StoreError
from binlane.ranges.files import LogFile
from binlane.store.catalog import CATALOG_FILE
from binlane.store.chunks import base_name
from binlane.store.files import BINLOGS_DIRECTORY
from binlane.store.log_chunks import is_plain
from binlane.store.reading import StoreReader

_BINLOG_NAME: Final = re.compile(r"(?P<log>.+)\.(?P<number>\d{6,})")


def log_name(name: str) -> str | None:
    """`binlog` of `binlog.000017`; None for a name that is none of a log's files."""
    match = _BINLOG_NAME.fullmatch(name)
    return match["log"] if match else None


class Sources:
    """The files that a user named.

    Args:
        sources: Files, directories, or `DATA#name` for a binlog of a store.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = tuple(sources)
        self._readers: dict[Path, StoreReader] = {}

    def files(self) -> tuple[LogFile, ...]:
        """The files as they are now.

        Raises:
            ConfigError: If a source names no log.
            StoreError: If a file or directory cannot be read.
        """
        return tuple(file for source in self._sources for file in self._files_of(source))

    def one_log(self) -> tuple[LogFile, ...]:
        """The files, if they are those of one log in order.

        Raises:
            ConfigError: If they are not.
            StoreError: If a file or directory cannot be read.
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
                uri=str(file.path.absolute()),
                name=file.name,
                number=file.number,
                size_bytes=file.size_bytes,
                is_live=file.ended is None,
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
            key=lambda path: (log_name(base_name(path)), file_number(base_name(path))),
        )
        logs = {log_name(base_name(path)) for path in paths}
        if len(logs) != 1:
            found = ", ".join(sorted(filter(None, logs))) or "none"
            raise ConfigError(
                f"{directory} does not hold the files of one log; there are: {found}",
                key="path",
                hint="name the files of one log, such as NAME.000001",
            )
        yield from map(_log_file, paths[:-1])
        yield replace(_log_file(paths[-1]), is_live=True)


def _log_file(path: Path) -> LogFile:
    name = base_name(path)
    return LogFile(
        uri=str(path.absolute()),
        name=name,
        number=file_number(name),
        size_bytes=path.stat().st_size,
        is_plain=is_plain(path),
    )
