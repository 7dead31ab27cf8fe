"""A binlog that grows while others read it: what is published, and word when that has changed."""

from __future__ import annotations

import asyncio
from typing import Protocol

from binlane.store.binlog import Published


class PublishedBinlog(Protocol):
    """A binlog as its readers see it: `store.binlog.Binlog` is one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def published(self) -> Published:
        """Files, end and position that belong together."""
        ...


class LiveBinlog:
    """A binlog that tells those who wait for it when there is more.

    All of it is called in one event loop; a writer in another thread notifies by
    `loop.call_soon_threadsafe(live.notify)`.

    Attributes:
        version: Grows with each change.
        is_dropped: Whether DROP BINLOG was executed.
    """

    def __init__(self, binlog: PublishedBinlog) -> None:
        self._binlog = binlog
        self.version = 0
        self.is_dropped = False
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:
        """The binlog's name."""
        return self._binlog.name

    @property
    def published(self) -> Published:
        """What may be read of it now."""
        return self._binlog.published

    def notify(self) -> None:
        """Wake all who wait: end, watermark or files have changed."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def drop(self) -> None:
        """Nothing more will come."""
        self.is_dropped = True
        self.notify()

    async def wait_for_change(self, version: int, timeout_s: float | None) -> None:
        """Return once the version is another than `version`, or after `timeout_s` seconds."""
        if self.version != version:
            return
        changed = self._changed
        try:
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        except TimeoutError:
            return
