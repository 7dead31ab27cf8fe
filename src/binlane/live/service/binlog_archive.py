"""Copies of binlogs in object storage, for clusters that do not reach the store.

A thread looks at the store as any other process does, so that it holds nothing up: what a binlog's
files are is read from the catalog, and closed files never change. It copies each closed file with
its index of groups, then the binlog's index, definition and watermark; what fails is tried again for
ever. `URI#orders` is then a log for whoever reads ranges.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from binlane.binlogs.store.files import BINLOGS_DIRECTORY, BinlogFile, index_text
from binlane.binlogs.store.group_index import GROUPS_DIRECTORY, index_of
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.errors import BinlaneError, ConfigError, StoreError
from binlane.statements.scope.scope import ScopeList
from binlane.tables.ranges.filesystems import child, listed, opened, shown, unreadable

_COPIED_BYTES: Final = 8 << 20
_HEAD_BYTES: Final = 4096
_WITHOUT_DIRECTORIES: Final = frozenset({"s3", "gcs", "abfs"})
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """The section `[archive]`.

    Attributes:
        uri: The URI of a directory that `pyarrow.fs` opens; `file://` for one of this machine.
        interval_s: The interval of looks for more files, and of writing watermarks.
    """

    uri: str
    interval_s: float = 10.0

    def __post_init__(self) -> None:
        """Refuse settings that cannot be used.

        Raises:
            ConfigError: If it is no URI, or the interval is none.
        """
        if "://" not in self.uri:
            raise ConfigError(
                f"{self.uri!r} is no URI",
                key="archive.uri",
                hint="such as s3://bucket/prefix?region=eu-central-1, or file:///mnt/archive",
            )
        if not self.interval_s > 0:
            raise ConfigError("the interval must be above 0", key="archive.interval_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveState:
    """The state of one binlog's copies.

    Attributes:
        files: Closed files that are copied.
        pending: Closed files that are not yet.
        failure: The reason why some are not; empty where all is well.
    """

    files: int = 0
    pending: int = 0
    failure: str = ""


class Archive:
    """Keeps the copies up to date, in a thread of its own.

    Args:
        settings: The directory that gets the copies, and the interval.
        data_dir: The data directory of the store.
    """

    def __init__(self, settings: ArchiveSettings, data_dir: Path) -> None:
        self._settings = settings
        self._data_dir = data_dir
        self._states: dict[str, ArchiveState] = {}
        self._checked: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)

    def start(self) -> None:
        """Begin to copy."""
        self._thread.start()

    def stop(self) -> None:
        """Copy no more; a file that is under way is given up, and copied anew later."""
        self._stopped.set()
        self._thread.join(timeout=2)

    def state(self, name: str) -> ArchiveState:
        """Return the state of a binlog's copies."""
        return self._states.get(name, ArchiveState())

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.copy_new()
            self._stopped.wait(self._settings.interval_s)

    def copy_new(self) -> None:
        """Copy what is new of every binlog; one that fails leaves the others alone."""
        try:
            reader = StoreReader(self._data_dir)
            names = reader.names()
        except (BinlaneError, OSError) as error:
            self._states = {name: self._failed(name, error) for name in self._states}
            return
        self._states = {name: self.state(name) for name in names}
        for name in names:
            try:
                self._copy_binlog(reader, name)
            except (BinlaneError, OSError) as error:
                self._states[name] = self._failed(name, error)
            if self._stopped.is_set():
                return

    def _failed(self, name: str, error: Exception) -> ArchiveState:
        state, failure = self.state(name), " ".join(str(error).split())
        if failure != state.failure:
            _LOG.warning("binlog %s cannot be archived: %s", name, failure, extra={"binlog": name})
        return ArchiveState(files=state.files, pending=state.pending, failure=failure)

    def _copy_binlog(self, reader: StoreReader, name: str) -> None:
        closed = [file for file in reader.files(name) if file.ended is not None]
        directory = child(child(self._settings.uri, BINLOGS_DIRECTORY), name)
        there = listed(directory) or {}
        self._check_same(name, directory, closed, there)
        new = [file for file in closed if there.get(file.name) != file.size_bytes]
        count = len(closed) - len(new)
        for number, file in enumerate(new):
            self._states[name] = ArchiveState(
                files=count + number,
                pending=len(new) - number,
                failure=self.state(name).failure,
            )
            index = index_of(file.path)
            if index is not None and index.exists():
                groups = child(child(self._settings.uri, GROUPS_DIRECTORY), name)
                self._copy(index, child(groups, index.name))
            self._copy(file.path, child(directory, file.name))
            if self._stopped.is_set():
                return
        kept = sorted({file.name for file in closed} | {each for each in there if _is_file(each)})
        if kept:
            self._write(child(directory, f"{name}.index"), index_text(kept))
        self._write(child(directory, f"{name}.json"), _description(reader, name))
        self._states[name] = ArchiveState(files=len(closed))

    def _check_same(
        self, name: str, directory: str, closed: Sequence[BinlogFile], there: dict[str, int]
    ) -> None:
        """See once that the copies are of this binlog, and not of one that had its name.

        Raises:
            StoreError: If they are of another.
        """
        common = [file for file in closed if file.name in there]
        if name in self._checked or not common:
            return
        uri = child(directory, common[-1].name)
        system, path = opened(uri)
        try:
            with system.open_input_file(path) as stream:
                copied = stream.read(_HEAD_BYTES)
        except OSError as error:
            raise unreadable(uri, error) from None
        with common[-1].path.open("rb") as stream:
            own = stream.read(_HEAD_BYTES)
        if own[: len(copied)] != copied[: len(own)]:
            raise StoreError(
                f"{common[-1].name} is there already, and is another binlog's",
                path=shown(uri),
                hint="give [archive] another uri, or take the old copies away",
            )
        self._checked.add(name)

    def _copy(self, path: Path, uri: str) -> None:
        with path.open("rb") as source, _Written(uri) as target:
            while chunk := source.read(_COPIED_BYTES):
                if self._stopped.is_set():
                    raise StoreError("stopped", path=shown(uri))
                target.write(chunk)

    def _write(self, uri: str, data: bytes) -> None:
        with _Written(uri) as target:
            target.write(data)


class _Written:
    """A file of the archive that is there whole or not at all."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._system, self._path = opened(uri)
        self._made = f"{self._path}.new"

    def __enter__(self) -> Any:
        try:
            if self._system.type_name not in _WITHOUT_DIRECTORIES:
                self._system.create_dir(self._path.rpartition("/")[0])
            self._stream = self._system.open_output_stream(self._made, compression=None)
        except OSError as error:
            raise unreadable(self._uri, error) from None
        return self._stream

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._stream.close()
            if kind is None:
                self._system.move(self._made, self._path)
        except OSError as failure:
            raise unreadable(self._uri, failure) from None


def _is_file(name: str) -> bool:
    return name.rpartition(".")[2].isdigit()


def _description(reader: StoreReader, name: str) -> bytes:
    """Definition and watermark of a binlog, as JSON."""
    definition = reader.definitions()[name]
    watermark = reader.watermark(name)
    values = {
        "name": name,
        "log": definition.scope.render(ScopeList.LOG),
        "ignore": definition.scope.render(ScopeList.IGNORE),
        "format": definition.logging_mode.value,
        "row_image": definition.row_image.value,
        "compress": definition.is_compressed,
        "follow_cascades": definition.follows_cascades,
        "flavor": watermark.flavor,
        "gtid_complete": str(watermark),
    }
    return json.dumps(values, indent=1).encode() + b"\n"
