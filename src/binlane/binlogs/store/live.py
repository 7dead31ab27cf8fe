"""A binlog that grows while others read it: what is published, and word when that has changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from binlane.binlogs.store.binlog_files import Published
from binlane.binlogs.store.fills import Seeding

_WOKEN_AT_ONCE: Final = 8
"""Readers that go on each time around the event loop: with hundreds of them statements would wait."""


class PublishedBinlog(Protocol):
    """A binlog as its readers see it: `store.binlog.Binlog` is one."""

    @property
    def name(self) -> str:
        """Name of the binlog."""
        ...

    @property
    def published(self) -> Published:
        """Files, end and position that belong together."""
        ...


class LiveBinlog:
    """A binlog that tells those who wait for it when there is more.

    Readers wait in one event loop. A writer in another thread calls `changed` and, where that says
    so, has `wake` called in the event loop: one call there can wake the readers of many binlogs.

    Attributes:
        binlog: The binlog; another object once the store has opened it anew.
        version: A number that grows with each change.
        is_dropped: True if DROP BINLOG was executed.
        is_ending: True if dumps end with the event group that they are at.
        unreadable: Errors by name of the file that the last reader could not read to its end;
            belongs to the event loop.
    """

    def __init__(self, binlog: PublishedBinlog) -> None:
        self.binlog = binlog
        self.version = 0
        self.is_dropped = False
        self.is_ending = False
        self.unreadable: dict[str, str] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._read: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The binlog's name."""
        return self.binlog.name

    @property
    def published(self) -> Published:
        """The state of the binlog that may be read now."""
        return self.binlog.published

    @property
    def seedings(self) -> tuple[Seeding, ...]:
        """The places of rows of tables in the binlog, the first one first."""
        found: tuple[Seeding, ...] = getattr(self.binlog, "seedings", ())
        return found

    @property
    def files_read(self) -> frozenset[str]:
        """The files that some reader has open."""
        return frozenset(self._read)

    @contextmanager
    def reading(self, file: str) -> Iterator[None]:
        """Note that somebody reads a file."""
        self._read[file] += 1
        try:
            yield
        finally:
            self._read[file] -= 1
            self._read += Counter()  # those of 0 are gone

    def changed(self) -> bool:
        """Note that end, watermark or files have changed; True if a reader is to be woken.

        A reader adds itself before it looks at the version, so that writer or reader sees the
        other.
        """
        self.version += 1
        return bool(self._waiting)

    def wake(self) -> None:
        """Wake all who wait; in their event loop, which does other things in between."""
        waiting, self._waiting = self._waiting, set()
        _wake_some(waiting)

    def notify(self) -> None:
        """`changed` and `wake` in one, in the event loop."""
        self.changed()
        self.wake()

    def drop(self) -> bool:
        """Nothing more will come; whether somebody is to be woken."""
        self.is_dropped = True
        return self.changed()

    def end(self) -> None:
        """Let dumps end between two event groups; in the event loop."""
        self.is_ending = True
        self.notify()

    async def wait_for_change(self, version: int, timeout_s: float | None) -> None:
        """Return once the version is another than `version`, or after `timeout_s` seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.add(future)
        timer = None if timeout_s is None else loop.call_later(timeout_s, _time_is_up, future)
        try:
            if self.version == version:
                await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()


def _wake_some(waiting: set[asyncio.Future[None]]) -> None:
    for _ in range(min(_WOKEN_AT_ONCE, len(waiting))):
        future = waiting.pop()
        if not future.done():
            future.set_result(None)
    if waiting:
        asyncio.get_running_loop().call_soon(_wake_some, waiting)


def _time_is_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
