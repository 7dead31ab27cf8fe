"""Turns of dumps: between two of them the event loop does whatever else is to be done."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Lets one dump at a time send a slice, and whoever else uses the event loop in between.

    Many dumps that catch up always have something to send. Each time around the event loop gives
    one of them its turn, so that a statement waits for one slice and not for one of each dump.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_giving = False

    async def take(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        if not self._is_giving:
            self._is_giving = True
            loop.call_soon(self._give, loop)
        await future

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():  # not cancelled
                future.set_result(None)
                loop.call_soon(self._give, loop)
                return
        self._is_giving = False
