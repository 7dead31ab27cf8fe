"""A listening socket that several processes accept from: the one with the fewest clients first."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.side import Side

_GIVES_WAY_S: Final = 0.003
"""For so long one that has more clients than another lets that one be first."""
_AGAIN_S: Final = 1.0
_NOT_TOLD_S: Final = 60.0

logger = logging.getLogger(__name__)


class SharedListener:
    """Accepts clients; has the methods of `asyncio.Server` that a port needs.

    Args:
        sockets: Sockets that are listening already.
        crowd: Tells the number of clients of each process.
    """

    def __init__(self, sockets: Sequence[socket.socket], crowd: ClientCounts) -> None:
        for listening in sockets:
            listening.setblocking(False)  # the standard library's
        self.sockets = tuple(sockets)
        self._crowd = crowd
        self._accepting: list[asyncio.Task[None]] = []
        self._told_s = float("-inf")

    def start(self, connected: Callable[[Side], None]) -> None:
        """Begin to accept; `connected` gets each client."""
        self._accepting = [
            asyncio.create_task(self._accept(listening, connected)) for listening in self.sockets
        ]

    def is_serving(self) -> bool:
        """True if clients are accepted."""
        return any(not task.done() for task in self._accepting)

    def close(self) -> None:
        """Accept no more clients."""
        for task in self._accepting:
            task.cancel()

    async def wait_closed(self) -> None:
        """Let go of the sockets, once `close` was called."""
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listening in self.sockets:
            listening.close()

    async def _accept(self, listening: socket.socket, connected: Callable[[Side], None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wait_for_one(listening)
            if not self._crowd.is_least:
                await asyncio.sleep(_GIVES_WAY_S)
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue  # another one took it, or it has gone
            except OSError as error:
                self._tell(error)
                await asyncio.sleep(_AGAIN_S)
                continue
            connection.setblocking(False)  # as above
            try:
                await loop.connect_accepted_socket(lambda: Side(connected), connection)
            except OSError:
                connection.close()  # gone already

    async def _wait_for_one(self, listening: socket.socket) -> None:
        """Wait until somebody connects, to whichever process."""
        loop = asyncio.get_running_loop()
        come = asyncio.Event()
        loop.add_reader(listening, come.set)
        try:
            await come.wait()
        finally:
            loop.remove_reader(listening)

    def _tell(self, error: OSError) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._told_s + _NOT_TOLD_S:
            self._told_s = now_s
            logger.error("connections: no more can be accepted: %s", error)
