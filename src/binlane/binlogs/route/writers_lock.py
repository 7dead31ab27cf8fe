"""The lock by which a run knows that no process of an earlier run still writes into its directory.

A worker outlives its run for a moment. It writes under a shared lock, and only while the directory
belongs to the run that gave it its work. A run that takes the directory first says so, and then
waits until nobody has the lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from binlane.binlogs.store.disk import FILE_MODE, LOCK_FILE
from binlane.errors import StoreLockedError

WRITERS_FILE: Final = "binlane-writers.lock"
_WAIT_S: Final = 10.0
_PAUSE_S: Final = 0.05
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def owner_of(directory: Path) -> str:
    """The owner of a directory, as its lock names it."""
    return (directory / LOCK_FILE).read_text("ascii", "replace")


@contextmanager
def writing(directory: Path, owner: str) -> Iterator[None]:
    """Write into a directory as long as an owner has it.

    Raises:
        StoreLockedError: If another owner has it.
        OSError: If the lock cannot be used.
    """
    descriptor = os.open(directory / WRITERS_FILE, _FLAGS, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if owner_of(directory) != owner:
            raise StoreLockedError(
                "another run has taken the directory",
                path=str(directory),
                hint="nothing is to be done: that run makes what is missing",
            )
        yield
    finally:
        os.close(descriptor)


def wait_for_writers(directory: Path) -> None:
    """Wait until no worker of an earlier run writes.

    Raises:
        StoreLockedError: If one still does after 10 seconds.
        OSError: If the lock cannot be used.
    """
    if not (directory / WRITERS_FILE).exists():
        return
    descriptor = os.open(directory / WRITERS_FILE, _FLAGS, FILE_MODE)
    try:
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise StoreLockedError(
                        "workers of an earlier run still write",
                        path=str(directory),
                        hint="run this again when they have ended",
                    ) from None
                time.sleep(_PAUSE_S)
            else:
                return
    finally:
        os.close(descriptor)
