"""A capture as an asynchronous iterator that connects again: for `serve` until its loop polls."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from binlane.capture import capture
from binlane.capture.backoff import Backoff
from binlane.capture.settings import SourceSettings, Start
from binlane.errors import BinlaneError
from binlane.grouping.event_group import EventGroup, group_events
from binlane.grouping.raw import LargeGroup, RawRun
from binlane.positions import GtidPosition, Position

_LOG: Final = logging.getLogger(__name__)
_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24


class Capture:
    """As `capture.Capture`, with `batches`.

    Attributes:
        failure: Why the last attempt failed; None while connected.
    """

    def __init__(self, settings: SourceSettings, start: Start | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="binlane-")
        self._capture = capture.Capture(
            settings,
            settings.start if start is None else start,
            spill=Path(self._folder.name),
            server_id=settings.server_id or _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM),
        )
        self.failure: BinlaneError | OSError | None = None

    @property
    def position(self) -> Position | None:
        """As of the capture."""
        position = self._capture.position
        assert position is None or isinstance(position, GtidPosition), "serve takes MariaDB only"
        return position

    @property
    def is_connected(self) -> bool:
        """As of the capture."""
        return self._capture.is_connected

    async def batches(self) -> AsyncGenerator[list[EventGroup], None]:
        """The groups that come, by reference; connects again where that may help."""
        backoff = Backoff()
        try:
            while True:
                try:
                    await asyncio.to_thread(self._capture.connect)
                    self.failure = None
                    while True:
                        readable = await self._wait()
                        groups = [
                            group for item in self._capture.receive() for group in _decoded(item)
                        ]
                        if groups:
                            yield groups
                        if self._capture.has_progressed:
                            backoff.reset()
                        if not readable and self._capture.is_silent:
                            raise TimeoutError("the source was silent")
                except (OSError, BinlaneError) as error:
                    if not capture.is_transient(error):
                        raise
                    self.failure = error
                self._capture.close()
                delay_s = backoff.next_delay_s(random.random())  # noqa: S311 - no secret
                _LOG.warning("%s; next try in %.1f s", self.failure, delay_s)
                await asyncio.sleep(delay_s)
        finally:
            self._capture.close()

    async def _wait(self) -> bool:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._capture.fileno(), came.set)
        try:
            async with asyncio.timeout(self._capture.silent_s):
                await came.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._capture.fileno())
        return True


def _decoded(item: RawRun | EventGroup | LargeGroup) -> list[EventGroup]:
    if isinstance(item, RawRun):
        return [item.group(number) for number in range(item.count)]
    if isinstance(item, LargeGroup):
        return list(group_events(item.events(), file=item.file))
    return [item]
