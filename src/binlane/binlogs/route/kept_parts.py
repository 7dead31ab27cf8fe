"""The bytes that measuring made, kept beside the binlogs until their places in the files are known.

Bytes that were measured from a guessed place need other positions, MySQL's logical timestamps and
checksums, and nothing else: so a file of which little is in scope is read once only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Final

import numpy as np

from binlane.binlogs.store.chunks import unreadable
from binlane.binlogs.store.disk import DRAFT_SUFFIX, Disk, DiskFile, LocalDisk
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.window import PADDING
from binlane.log.kernels.load import is_compiled, kernels

_PIECE_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """The bytes of one binlog.

    Attributes:
        path: Draft file that holds the bytes.
        start: The place for which they were made, in bytes of the binlog's file.
    """

    path: Path
    start: int


class NoFile:
    """A file that keeps nothing."""

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write nothing."""

    def mapped(self, position: int, size_bytes: int) -> mmap:
        """Map memory of nobody."""
        del position
        return mmap(-1, size_bytes)

    def truncate(self, size_bytes: int) -> None:
        """Cut nothing."""

    def sync(self) -> None:
        """Force nothing to disk."""

    def close(self) -> None:
        """Let go of nothing."""


class NoDisk:
    """A disk that keeps nothing."""

    def create(self, path: Path) -> DiskFile:
        """Implement `Disk.create`."""
        del path
        return NoFile()

    def open(self, path: Path) -> DiskFile:
        """Implement `Disk.open`."""
        del path
        return NoFile()

    def replace(self, source: Path, target: Path) -> None:
        """Implement `Disk.replace`."""

    def remove(self, path: Path) -> None:
        """Implement `Disk.remove`."""

    def make_directory(self, path: Path) -> None:
        """Implement `Disk.make_directory`."""

    def remove_directory(self, path: Path) -> None:
        """Implement `Disk.remove_directory`."""

    def sync_directory(self, path: Path) -> None:
        """Implement `Disk.sync_directory`."""

    def drop_cache(self, path: Path) -> None:
        """Implement `Disk.drop_cache`."""


class KeepingDisk(NoDisk):
    """A disk for measuring, which keeps the bytes as long as there are few and no file ends.

    Args:
        starts: States of the binlogs before the bytes.
        name: Names the bytes among those of other stretches.
        room_bytes: Most bytes to keep, of all binlogs together.
    """

    def __init__(self, starts: Iterable[RecoveredBinlog], name: str, room_bytes: int) -> None:
        self._starts = {state.directory / state.files[-1]: state.end for state in starts}
        self._name = name
        self._files: dict[Path, DiskFile] | None = {}
        self._room_bytes = room_bytes
        if not is_compiled(("moving",)):
            self.give_up()

    @property
    def parts(self) -> dict[str, KeptPart] | None:
        """The parts by the names of their binlogs; None if the bytes were not kept."""
        if self._files is None:
            return None
        return {
            path.parent.name: KeptPart(path=self._path(path), start=self._starts[path])
            for path in self._files
        }

    def create(self, path: Path) -> DiskFile:
        """Implement `Disk.create`: a file ends, so that its end is not to be moved."""
        if path.suffix != DRAFT_SUFFIX:
            self.give_up()
        return NoFile()

    def open(self, path: Path) -> DiskFile:
        """Implement `Disk.open`."""
        if self._files is None or path not in self._starts:
            return NoFile()
        self._files[path] = LocalDisk().create(self._path(path))
        return _KeptFile(self, path)

    def write(self, path: Path, data: bytes | bytearray | memoryview, position: int) -> None:
        """Keep bytes of a file."""
        at = position - self._starts[path]
        self._room_bytes -= len(data)
        if self._room_bytes < 0 or at < 0:
            self.give_up()
        if self._files is not None:
            self._files[path].write_at(data, at)

    def close(self, path: Path) -> None:
        """Let go of a file."""
        if self._files is not None:
            self._files[path].close()

    def give_up(self) -> None:
        """Keep nothing any more."""
        files, self._files = self._files, None
        for path, file in (files or {}).items():
            file.close()
            LocalDisk().remove(self._path(path))

    def _path(self, path: Path) -> Path:
        return path.with_name(f"{path.parent.name}.{self._name}{DRAFT_SUFFIX}")


class _KeptFile(NoFile):
    def __init__(self, disk: KeepingDisk, path: Path) -> None:
        self._disk = disk
        self._path = path

    def write_at(self, data: bytes | bytearray | memoryview, position: int) -> None:
        self._disk.write(self._path, data, position)

    def close(self) -> None:
        self._disk.close(self._path)


def place_part(part: KeptPart, state: RecoveredBinlog, clock: int, disk: Disk) -> bool:
    """Write the bytes of a part to the place that a state says, and force them to disk.

    Args:
        part: The bytes, and the place for which they were made.
        state: State of the binlog before them.
        clock: Number that is added to MySQL's logical timestamps.
        disk: Disk of the binlog's file.

    Returns:
        False if the bytes cannot be moved; the file may have a part of them then.

    Raises:
        StoreError: If the bytes cannot be read.
        OSError: If the file cannot be written.
    """
    buffer, held, place = np.zeros(_PIECE_BYTES + PADDING, np.uint8), 0, state.end
    with ExitStack() as stack:
        try:
            kept = stack.enter_context(part.path.open("rb", buffering=0))
        except OSError as error:
            raise unreadable(part.path, error) from error
        file = stack.enter_context(closing(disk.open(state.directory / state.files[-1])))
        while count := kept.readinto(buffer.data[held : buffer.shape[0] - PADDING]):
            held += count
            moved = kernels().move_events(
                buffer, held, state.end - part.start, clock, crc32_address()
            )
            if moved < 0:
                return False
            file.write_at(buffer.data[:moved], place)
            place, held = place + moved, held - moved
            rest = buffer[moved : moved + held].copy()
            if not moved:
                buffer = np.zeros(2 * buffer.shape[0], np.uint8)
            buffer[:held] = rest
        file.sync()
    return not held
