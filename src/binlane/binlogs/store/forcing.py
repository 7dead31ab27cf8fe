"""Several files forced to disk side by side, so that it costs the time of one.

A thread for each waits on a queue of its own. Handing over costs some ten microseconds; pools with
futures cost several times that, for each binlog at each commit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Final

from binlane.binlogs.store.binlog import Binlog
from binlane.errors import StoreError

_THREADS_MOST: Final = 16
"""A disk takes this many requests at once; more would only wait there."""

_Job = tuple[Binlog, "SimpleQueue[tuple[Binlog, Exception | None]]"]


class Forcing:
    """Forces files to disk; its threads begin with the first files that are several."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def force(self, binlogs: Sequence[Binlog]) -> dict[str, StoreError]:
        """Force the files of binlogs to disk.

        Returns:
            Errors, by name of the binlog.
        """
        if not binlogs:
            return {}
        first, *others = binlogs
        self._have_threads(len(others))
        done: SimpleQueue[tuple[Binlog, Exception | None]] = SimpleQueue()
        for binlog in others:
            self._jobs.put((binlog, done))
        outcomes = [(first, _force(first)), *(done.get() for _ in others)]
        faults: dict[str, StoreError] = {}
        for binlog, error in outcomes:
            if isinstance(error, StoreError):
                faults[binlog.name] = error
            elif error is not None:
                raise error
        return faults

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _have_threads(self, count: int) -> None:
        while len(self._threads) < min(count, _THREADS_MOST):
            thread = threading.Thread(target=self._work, name="sync", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            binlog, done = job
            done.put((binlog, _force(binlog)))


def _force(binlog: Binlog) -> Exception | None:
    try:
        binlog.force()
    except Exception as error:  # noqa: BLE001  # given to the thread that asked
        return error
    return None
