"""The listening sockets of a port, from which one process accepts, or several.

Of several processes the one with the fewest clients is first.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.side import keep_alive

_GIVES_WAY_S: Final = 0.002
"""For so long one that has more clients than another lets that one be first."""
_AT_ONCE: Final = 32
"""Clients that are accepted before others have their turn."""
_AGAIN_S: Final = 1.0
_NOT_TOLD_S: Final = 60.0

logger = logging.getLogger(__name__)


def bound(settings: GatewaySettings) -> Sequence[socket.socket]:
    """Listen on each address that the settings' host has.

    Raises:
        OSError: If there is no such address, or another process has it.
    """
    found = socket.getaddrinfo(
        settings.address or None,
        settings.port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    sockets: list[socket.socket] = []
    try:
        for family, *_, address in dict.fromkeys(found):
            sockets.append(
                socket.create_server(address[:2], family=family, backlog=settings.max_connections)
            )
            keep_alive(sockets[-1])
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


class PortListener:
    """Accepts clients in the running event loop.

    Args:
        sockets: Sockets that are listening already; `close` closes them.
        crowd: Tells the number of clients of each process.
        connected: Gets the connection of each client, and its address.

    Attributes:
        sockets: Sockets on which clients are accepted.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        crowd: ClientCounts,
        connected: Callable[[socket.socket, Any], None],
    ) -> None:
        self.sockets = tuple(sockets)
        self._crowd = crowd
        self._connected = connected
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}
        self._told_s = float("-inf")
        self.is_serving = True
        for listening in sockets:
            listening.setblocking(False)  # the standard library's
            self._loop.add_reader(listening, self._come, listening)

    def close(self) -> None:
        """Accept no more clients."""
        if not self.is_serving:
            return
        self.is_serving = False
        for listening in self.sockets:
            if listening in self._waiting:
                self._waiting.pop(listening).cancel()
            else:
                self._loop.remove_reader(listening)
            listening.close()

    def _come(self, listening: socket.socket) -> None:
        """Accept those who wait, unless another process should be first."""
        for _ in range(_AT_ONCE):
            if self._crowd.gives_way:
                self._wait(listening, _GIVES_WAY_S)
                return
            if not self._accept(listening):
                return

    def _wait(self, listening: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._waiting[listening] = self._loop.call_later(seconds, self._go_on, listening)

    def _go_on(self, listening: socket.socket) -> None:
        del self._waiting[listening]
        self._loop.add_reader(listening, self._come, listening)
        self._accept(listening)

    def _accept(self, listening: socket.socket) -> bool:
        """Accept a client; False if there is none, or it cannot be accepted now."""
        try:
            connection, address = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False  # another one took it, or it has gone
        except OSError as error:
            self._tell(error)
            self._wait(listening, _AGAIN_S)
            return False
        self._connected(connection, address)
        return True

    def _tell(self, error: OSError) -> None:
        now_s = self._loop.time()
        if now_s >= self._told_s + _NOT_TOLD_S:
            self._told_s = now_s
            logger.error("connections: no more can be accepted: %s", error)
