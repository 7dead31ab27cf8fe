"""One owner for each data directory: an advisory lock that ends with its process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from binlane.binlogs.store.disk import FILE_MODE
from binlane.errors import StoreLockedError

LOCK_FILE: Final = "binlane.lock"
_PID_LENGTH_MAX: Final = 20


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
