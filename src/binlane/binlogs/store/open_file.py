"""The last file of a binlog while it is written: bytes in memory, in the file, and on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from binlane.binlogs.store.disk import Disk
from binlane.binlogs.store.files import CLOSED, IN_USE, IN_USE_POSITION, FileHead, rotate_bytes
from binlane.errors import StoreError
from binlane.log.codec.format import CHECKSUM_LENGTH

_PENDING_BYTES_MAX: Final = 4 << 20
_DIRECT_BYTES_MIN: Final = 64 << 10

AnyBytes = bytes | bytearray | memoryview


class OpenFile:
    """A file at whose end event groups are added. All its calls are the writer's.

    Attributes:
        head: The first events of the file.
        format: Format of the events, as the FORMAT_DESCRIPTION of the file decides it.
        written_bytes: Size of the file without the bytes that are still in memory.
        unsynced_groups: Number of groups that were added and not forced to disk since.
        is_sync_lost: True if forcing failed once, so that written bytes may be lost for good.
        tail: The last four bytes that were written; empty before the first write.
    """

    def __init__(self, disk: Disk, path: Path, head: FileHead, *, end: int) -> None:
        """Open a file that is whole and marked as in use.

        Args:
            disk: Disk that holds the file.
            path: Path of the open binlog file.
            head: The first events of the file.
            end: Size of the file in bytes.

        Raises:
            OSError: If it cannot be opened.
        """
        self.head = head
        self.format = head.format_description.format
        self.written_bytes = end
        self.unsynced_groups = 0
        self.is_sync_lost = False
        self.tail = b""
        self._file = disk.open(path)
        self._pending = bytearray()
        self._has_unsynced = False

    @property
    def size_bytes(self) -> int:
        """Position at which the next event group will begin."""
        return self.written_bytes + len(self._pending)

    @property
    def holds_groups(self) -> bool:
        """True if there is an event group behind the head."""
        return self.size_bytes > self.head.size_bytes

    @property
    def has_unsynced(self) -> bool:
        """True if bytes were added that were not forced to disk since."""
        return bool(self._pending) or self._has_unsynced

    def add(self, data: AnyBytes, *, groups: int) -> None:
        """Add whole event groups that were made for the place where the file ends.

        Raises:
            OSError: If bytes are written and the disk fails.
        """
        if len(data) >= _DIRECT_BYTES_MIN:
            self.write()
            self._write(data)
        else:
            self._pending += data
        self.unsynced_groups += groups
        if len(self._pending) >= _PENDING_BYTES_MAX:
            self.write()

    def write(self) -> None:
        """Write the bytes that are in memory.

        Raises:
            OSError: If the disk fails.
        """
        if self._pending:
            self._write(self._pending)
            self._pending = bytearray()

    def _write(self, data: AnyBytes) -> None:
        self._has_unsynced = True
        self._file.write_at(data, self.written_bytes)
        self.written_bytes += len(data)
        self.tail = bytes(data[-CHECKSUM_LENGTH:])

    def sync(self) -> None:
        """Force what was written to disk.

        Raises:
            OSError: If the disk fails.
        """
        if self._has_unsynced:
            self._force()
        self._has_unsynced, self.unsynced_groups = False, 0

    def _force(self) -> None:
        """Force the file to disk. Where that fails once, what was written may be lost for good.

        The system may drop the pages that it could not write and call the next attempt a success,
        so there is none: recovery reads what the disk has.
        """
        try:
            self._file.sync()
        except OSError:
            self.is_sync_lost = True
            raise

    def end_with(self, following: str, timestamp: int) -> None:
        """End the file with a ROTATE event that names the following file, and force it to disk.

        Raises:
            OSError: If the disk fails.
        """
        self._pending += rotate_bytes(
            self.head, following, position=self.size_bytes, timestamp=timestamp
        )
        self.write()
        self.mark_closed()

    def mark_closed(self) -> None:
        """Mark the file as closed, and force it to disk.

        Raises:
            OSError: If the disk fails.
        """
        self._file.write_at(CLOSED, IN_USE_POSITION)
        self._force()

    def forget_pending(self) -> None:
        """Forget the bytes in memory; a write that failed may hold on to their buffer."""
        self._pending = bytearray()

    def cut(self, end: int) -> None:
        """Cut the file behind a position, and mark it as in use.

        Raises:
            OSError: If the disk fails.
        """
        self.forget_pending()
        self._file.truncate(end)
        self._file.write_at(IN_USE, IN_USE_POSITION)
        self.written_bytes = end
        self._has_unsynced = True

    def close(self) -> None:
        """Let go of the file as it is."""
        self._file.close()


class DiskFaults:
    """A block in which the disk's errors become errors that tell what to do; entered at each write.

    Args:
        begin: Called before the block; what it raises goes to the caller.
        told: Gives the error that is raised in the place of one of the disk.
    """

    def __init__(self, begin: Callable[[], None], told: Callable[[OSError], StoreError]) -> None:
        self._begin = begin
        self._told = told

    def __enter__(self) -> None:
        self._begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise self._told(error) from error
