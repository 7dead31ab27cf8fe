"""Disks that fail on purpose, at an operation that the test chooses."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from binlane.binlogs.store.disk import DiskFile, LocalDisk

_SECTOR_BYTES: Final = 512


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
        only: The name of the operation that fails, the first from `at` on; empty for any.
    """

    at: int
    error: Callable[[], BaseException]
    share: float = 0.0
    lasts: bool = False
    only: str = ""


def no_room(number: int) -> Callable[[], BaseException]:
    """An OSError with this errno, such as ENOSPC."""
    return lambda: OSError(number, os.strerror(number))


class FaultyDisk:
    """The local disk with at most one failure.

    Attributes:
        operations: What was done so far, by name; the last one may have failed.
        has_failed: Whether the failure has struck.
    """

    def __init__(self, failure: Failure | None = None) -> None:
        self._disk = LocalDisk()
        self._lock = threading.Lock()
        self.arm(failure)

    def arm(self, failure: Failure | None) -> None:
        """Begin to count anew, towards another failure: the next process on the same disk."""
        self.operations: list[str] = []
        self.has_failed = False
        self._failure = failure

    def create(self, path: Path) -> FaultyFile:
        self.count("create")
        return FaultyFile(self, self._disk.create(path))

    def open(self, path: Path) -> FaultyFile:
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
            strikes = self._strikes(name, number)
            is_first = strikes and not self.has_failed
            self.has_failed = self.has_failed or strikes
        if strikes and self._failure:
            if write and self._failure.share and is_first:
                write(self._failure.share)
            raise self._failure.error()

    def _strikes(self, name: str, number: int) -> bool:
        failure = self._failure
        if failure is None:
            return False
        if self.has_failed:
            return failure.lasts
        return number >= failure.at and failure.only in {"", name}


class FaultyFile:
    """A file on a faulty disk.

    Attributes:
        written_bytes: How much of the last write was done.
    """

    def __init__(self, disk: FaultyDisk, file: DiskFile) -> None:
        self._disk = disk
        self._file = file
        self.mapped = file.mapped
        self.written_bytes = 0

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        def write(share: float) -> None:
            self._file.write_at(data[: int(len(data) * share)], position)
            self.written_bytes = int(len(data) * share)

        self.written_bytes = 0
        self._disk.count("write_at", write)
        self._file.write_at(data, position)
        self.written_bytes = len(data)

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
    """A file or directory behind its names.

    Attributes:
        durable: What of a file survives a power cut.
        pending: What was done to it since: bytes at a position, or a size that it was cut to.
        is_directory: Whether it is one.
    """

    durable: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    is_directory: bool = False

    def sync(self) -> None:
        self.durable, self.pending = self.now(), []

    def lose(self) -> None:
        self.pending = []

    def now(self, keeps: Callable[[], bool] | None = None) -> bytes:
        """The contents with all that is pending, or with what a power cut keeps of it."""
        data = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, int):
                if keeps is None or keeps():
                    del data[change:]
                continue
            start, new = change
            for at in range(0, len(new), _SECTOR_BYTES):
                if keeps is None or keeps():
                    piece = new[at : at + _SECTOR_BYTES]
                    data.extend(bytes(max(0, start + at - len(data))))
                    data[start + at : start + at + len(piece)] = piece
        return bytes(data)


class VolatileDisk(FaultyDisk):
    """A faulty disk below one directory, which forgets at a power cut what was not synced.

    Contents survive from the file's last sync on, names from the directory's last sync on. A sync
    of a file that fails loses what it should have forced: the file looks whole until `drop_cache`,
    a second sync succeeds, and the bytes are not there. That is what Linux does.
    """

    def __init__(self, root: Path, failure: Failure | None = None) -> None:
        super().__init__(failure)
        self._root = root
        self._names = {
            path: _Node(is_directory=True) if path.is_dir() else _Node(path.read_bytes())
            for path in root.rglob("*")
        }
        self._durable_names = dict(self._names)

    def create(self, path: Path) -> DiskFile:  # type: ignore[override]  # a DiskFile all the same
        file = super().create(path)
        node = self._names.setdefault(path, _Node())
        node.pending.append(0)
        return _VolatileFile(file, node)

    def open(self, path: Path) -> DiskFile:  # type: ignore[override]  # a DiskFile all the same
        return _VolatileFile(super().open(path), self._names[path])

    def replace(self, source: Path, target: Path) -> None:
        super().replace(source, target)
        self._names[target] = self._names.pop(source)

    def remove(self, path: Path) -> None:
        super().remove(path)
        del self._names[path]

    def make_directory(self, path: Path) -> None:
        super().make_directory(path)
        self._names.setdefault(path, _Node(is_directory=True))

    def remove_directory(self, path: Path) -> None:
        super().remove_directory(path)
        del self._names[path]

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        if path != self._root and self._root not in path.parents:
            return
        with self._lock:
            # A lock file, say, that the program made without this disk.
            for other in path.iterdir():
                if other not in self._names and other.is_file():
                    self._names[other] = _Node(other.read_bytes())
            names = {name: node for name, node in list(self._names.items()) if name.parent == path}
            kept = {name: node for name, node in self._durable_names.items() if name.parent != path}
            self._durable_names = {**kept, **names}

    def drop_cache(self, path: Path) -> None:
        super().drop_cache(path)
        data = self._names[path].now()
        with path.open("r+b") as stream:
            stream.truncate(len(data))
            stream.write(data)

    def cut_power(self, *, share: float, chance: Random | None = None) -> None:
        """Leave on disk what survives.

        Args:
            share: Of what was written since the last sync, how much has come to the disk.
            chance: Which of it, sector by sector in any order; None for the first.
        """
        survivors = {
            path: node
            for path, node in sorted(self._durable_names.items())
            if all(
                parent in self._durable_names
                for parent in path.parents
                if self._root in parent.parents
            )
        }
        for path in sorted(self._root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for path, node in survivors.items():
            if node.is_directory:
                path.mkdir()
                continue
            node.durable, node.pending = node.now(_keeping(node, share, chance)), []
            path.write_bytes(node.durable)
        self._names = survivors
        self._durable_names = dict(survivors)


def _keeping(node: _Node, share: float, chance: Random | None) -> Callable[[], bool]:
    """Says of each sector of what is pending, in order, whether it has come to the disk."""
    if chance is not None:
        return lambda: chance.random() < share
    sectors = sum(
        1 if isinstance(change, int) else -(-len(change[1]) // _SECTOR_BYTES)
        for change in node.pending
    )
    kept = iter(range(int(sectors * share)))
    return lambda: next(kept, None) is not None


class _VolatileFile:
    def __init__(self, file: FaultyFile, node: _Node) -> None:
        self._file = file
        self.mapped = file.mapped
        self._node = node
        self.mapped = file.mapped

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        try:
            self._file.write_at(data, position)
        finally:
            self._node.pending.append((position, bytes(data[: self._file.written_bytes])))

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)
        self._node.pending.append(size_bytes)

    def sync(self) -> None:
        try:
            self._file.sync()
        except OSError:
            self._node.lose()
            raise
        self._node.sync()

    def close(self) -> None:
        self._file.close()


class _BreakableFile:
    def __init__(self, file: DiskFile, disk: BreakableDisk, path: Path) -> None:
        self.truncate, self.close, self.sync = file.truncate, file.close, file.sync
        self.mapped = file.mapped
        self._file, self._disk, self._path = file, disk, path

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        if self._path.parent.name == self._disk.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._file.write_at(data, position)


class BreakableDisk(LocalDisk):
    """A disk on which one binlog may not be written.

    Attributes:
        failing: Name of that binlog; empty for none.
    """

    failing = ""

    def open(self, path: Path) -> DiskFile:  # type: ignore[override]  # a Disk all the same
        return _BreakableFile(super().open(path), self, path)
