"""All changes that the store makes to files, as a Protocol, the local file system behind it, and its lock.

Reading is not here: readers open files themselves. SQLite does its own writing. Tests put a disk
here that stops in the middle of an operation or has no room.
"""

from __future__ import annotations

import errno
import fcntl
import os
from mmap import mmap
from pathlib import Path
from typing import Final, Protocol

from binlane.errors import StoreError, StoreFullError, StoreLockedError

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a disk that has no room left."""

NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Error numbers of a system that has too many files open; they pass as those of a full disk do."""

DRAFT_SUFFIX: Final = ".tmp"
"""Suffix of a file that has not got its name yet."""

# Piece that stays in the processor's cache: larger pieces cost twice the time.
_PIECE_BYTES: Final = 256 << 10
FILE_MODE: Final = 0o640
_DIRECTORY_MODE: Final = 0o750
LOCK_FILE: Final = "binlane.lock"
_PID_LENGTH_MAX: Final = 20


class DiskFile(Protocol):
    """A file open for writing; nothing is on disk for sure until `sync` returns."""

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all of `data` at a byte position.

        Raises:
            OSError: Some of it may have been written.
        """
        ...

    def mapped(self, position: int, size_bytes: int) -> mmap:
        """Map a part of the file into memory; `position` is a multiple of the system's granularity."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a size."""
        ...

    def sync(self) -> None:
        """Force contents and size to disk."""
        ...

    def close(self) -> None:
        """Let go of the file; a second time does nothing."""
        ...


class Disk(Protocol):
    """The disk that holds the store's files."""

    def create(self, path: Path) -> DiskFile:
        """Make an empty file; one that is there already is emptied."""
        ...

    def open(self, path: Path) -> DiskFile:
        """Open a file that is there."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file over another, at once or not at all."""
        ...

    def remove(self, path: Path) -> None:
        """Delete a file."""
        ...

    def make_directory(self, path: Path) -> None:
        """Make a directory, unless it is there."""
        ...

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Force to disk which files a directory names."""
        ...

    def drop_cache(self, path: Path) -> None:
        """Let the next reader of a file get what is on disk, as far as the system can.

        Bytes that were not forced to disk may stay in memory.
        """
        ...


class LocalFile:
    """A file of the local file system."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Implement `DiskFile.write_at`."""
        if len(data) <= _PIECE_BYTES:
            written = os.pwrite(self._descriptor, data, position)
            if written == len(data):
                return
            data, position = memoryview(data)[written:], position + written
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest[:_PIECE_BYTES], position)
            rest, position = rest[written:], position + written

    def mapped(self, position: int, size_bytes: int) -> mmap:
        """Implement `DiskFile.mapped`."""
        return mmap(self._descriptor, size_bytes, offset=position)

    def truncate(self, size_bytes: int) -> None:
        """Implement `DiskFile.truncate`."""
        os.ftruncate(self._descriptor, size_bytes)

    def sync(self) -> None:
        """Implement `DiskFile.sync`."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Implement `DiskFile.close`."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class LocalDisk:
    """The local file system.

    A file that is written is never a link to another: whoever can put one into a data directory
    would have that one overwritten, by whoever binlane runs as.
    """

    def create(self, path: Path) -> LocalFile:
        """Implement `Disk.create`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        return LocalFile(os.open(path, flags, FILE_MODE))

    def open(self, path: Path) -> LocalFile:
        """Implement `Disk.open`."""
        return LocalFile(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))

    def replace(self, source: Path, target: Path) -> None:
        """Implement `Disk.replace`."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Implement `Disk.remove`."""
        path.unlink()

    def make_directory(self, path: Path) -> None:
        """Implement `Disk.make_directory`."""
        path.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Implement `Disk.remove_directory`."""
        path.rmdir()

    def sync_directory(self, path: Path) -> None:
        """Implement `Disk.sync_directory`."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def drop_cache(self, path: Path) -> None:
        """Implement `Disk.drop_cache`."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def write_whole(disk: Disk, path: Path, data: bytes) -> None:
    """Give a file new contents, at once or not at all, also when the machine loses power."""
    draft = path.with_name(path.name + DRAFT_SUFFIX)
    file = disk.create(draft)
    try:
        file.write_at(data, 0)
        file.sync()
    finally:
        file.close()
    disk.replace(draft, path)
    disk.sync_directory(path.parent)


def unusable(error: OSError, path: Path) -> StoreError:
    """Turn the disk's error into an error that tells people how to mend it."""
    reason = error.strerror or str(error)
    if error.errno == errno.ELOOP:
        return StoreError(
            "it is a symbolic link, and what it points to is not written",
            path=str(error.filename or path),
            hint="find out who put it there, and put a file in its place, or remove it",
        )
    if error.errno in NO_ROOM:
        return StoreFullError(f"no room: {reason}", path=str(path), hint="make room on the disk")
    if error.errno in NO_DESCRIPTOR:
        return StoreFullError(f"no room: {reason}", path=str(path), hint="raise ulimit -n")
    return StoreError(
        f"cannot be used: {reason}", path=str(path), hint="check the disk and who may write there"
    )


class DirectoryLock:
    """The lock of a data directory, held until `release` or the end of the process."""

    def __init__(self, data_dir: Path) -> None:
        """Take the lock.

        Raises:
            StoreLockedError: If another owner holds it; the text names its process.
        """
        path = data_dir / LOCK_FILE
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, FILE_MODE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = (
                os.pread(self._descriptor, _PID_LENGTH_MAX, 0).decode("ascii", "replace").strip()
            )
            os.close(self._descriptor)
            raise StoreLockedError(
                f"process {owner or 'unknown'} owns the data directory",
                path=str(data_dir),
                hint="stop that process, or use another data directory",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Let others own the directory."""
        os.close(self._descriptor)
