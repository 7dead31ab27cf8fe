"""Disks that fail on purpose, at an operation that the test chooses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from binlane.store.disk import DiskFile, LocalDisk


class Killed(BaseException):
    """The process ends here; no error handling of the program may see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What happens to one operation, and to all after it if the process ends.

    Attributes:
        at: Number of the operation, from 0.
        error: What it raises.
        share: How much of a write is done before it fails, from 0 to 1.
        lasts: Whether later operations fail as well.
    """

    at: int
    error: Callable[[], BaseException]
    share: float = 0.0
    lasts: bool = False


def no_room(number: int) -> Callable[[], BaseException]:
    """An OSError with this errno, such as ENOSPC."""
    return lambda: OSError(number, os.strerror(number))


class FaultyDisk:
    """The local disk with at most one failure.

    Attributes:
        operations: What was done so far, by name; the last one may have failed.
    """

    def __init__(self, failure: Failure | None = None) -> None:
        self.operations: list[str] = []
        self._lock = threading.Lock()
        self._failure = failure
        self._disk = LocalDisk()

    def create(self, path: Path) -> DiskFile:
        self.count("create")
        return FaultyFile(self, self._disk.create(path))

    def open(self, path: Path) -> DiskFile:
        return FaultyFile(self, self._disk.open(path))

    def replace(self, source: Path, target: Path) -> None:
        self.count("replace")
        self._disk.replace(source, target)

    def remove(self, path: Path) -> None:
        self.count("remove")
        self._disk.remove(path)

    def make_directory(self, path: Path) -> None:
        self.count("make_directory")
        self._disk.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self.count("remove_directory")
        self._disk.remove_directory(path)

    def sync_directory(self, path: Path) -> None:
        self.count("sync_directory")
        self._disk.sync_directory(path)

    def drop_cache(self, path: Path) -> None:
        self._disk.drop_cache(path)

    def count(self, name: str, write: Callable[[float], None] | None = None) -> None:
        """Note an operation; fail if its turn has come."""
        with self._lock:
            number = len(self.operations)
            self.operations.append(name)
        failure = self._failure
        if failure is None or number < failure.at or (number > failure.at and not failure.lasts):
            return
        if write and failure.share and number == failure.at:
            write(failure.share)
        raise failure.error()


class FaultyFile:
    """A file on a faulty disk."""

    def __init__(self, disk: FaultyDisk, file: DiskFile) -> None:
        self._disk = disk
        self._file = file

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        def write(share: float) -> None:
            self._file.write_at(data[: int(len(data) * share)], position)

        self._disk.count("write_at", write)
        self._file.write_at(data, position)

    def truncate(self, size_bytes: int) -> None:
        self._disk.count("truncate")
        self._file.truncate(size_bytes)

    def sync(self) -> None:
        self._disk.count("sync")
        self._file.sync()

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class _Node:
    """A file behind its names: where it is now, and its contents that survive a power cut."""

    path: Path | None
    durable: bytes


class VolatileDisk(FaultyDisk):
    """A faulty disk in one directory, which forgets at a power cut what was not synced.

    Contents survive from the file's last sync on, names from the directory's last sync on.
    """

    def __init__(self, directory: Path, failure: Failure | None = None) -> None:
        super().__init__(failure)
        self._directory = directory
        self._names = {path: _Node(path, path.read_bytes()) for path in directory.iterdir()}
        self._durable_names = dict(self._names)

    def create(self, path: Path) -> DiskFile:
        file = super().create(path)
        node = self._names.setdefault(path, _Node(path, b""))
        return _VolatileFile(file, node)

    def open(self, path: Path) -> DiskFile:
        return _VolatileFile(super().open(path), self._names[path])

    def replace(self, source: Path, target: Path) -> None:
        super().replace(source, target)
        if target in self._names:
            self._names[target].path = None
        self._names[target] = self._names.pop(source)
        self._names[target].path = target

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._names.pop(path).path = None

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        if path == self._directory:
            self._durable_names = dict(self._names)

    def cut_power(self, *, share: float) -> None:
        """Leave on disk what survives: what was synced, and a share of what was added since."""
        survivors = {}
        for path, node in self._durable_names.items():
            data = node.durable
            if node.path and (now := node.path.read_bytes()).startswith(data):
                data = now[: len(data) + int((len(now) - len(data)) * share)]
            survivors[path] = data
        for path in self._directory.iterdir():
            path.unlink()
        for path, data in survivors.items():
            path.write_bytes(data)


class _VolatileFile:
    def __init__(self, file: DiskFile, node: _Node) -> None:
        self._file = file
        self._node = node

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        self._file.write_at(data, position)

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def sync(self) -> None:
        self._file.sync()
        if self._node.path:
            self._node.durable = self._node.path.read_bytes()

    def close(self) -> None:
        self._file.close()
