"""One of a session's two connections.

What arrives is kept until somebody reads it, or handed on at once, without a switch of tasks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

_KEPT_MAX: Final = 64 << 10
_LINGER_S: Final = 5.0
# The system's own take two hours and more.
_KEEP_ALIVE: Final = tuple(
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
)
"""A peer that is silent for a minute is asked, and has gone a minute later."""

Receiver = Callable[[bytes], None]
"""Takes bytes as they arrive, and none at the end, however that came."""


def nothing() -> None:
    """Done where nobody waits."""


class Side(asyncio.Protocol):
    """A connection.

    Args:
        connected: Called once it is there.

    Attributes:
        freed: Called when the peer takes bytes again, or never will.
    """

    def __init__(self, connected: Callable[[Side], None] | None = None) -> None:
        self._connected = connected
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._kept = bytearray()
        self._arrived = asyncio.Event()
        self._takes = asyncio.Event()
        self._takes.set()
        self._has_ended = self._is_lost = self._is_paused = False
        self.freed: Callable[[], None] = nothing

    # What asyncio calls ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport), "streams have no other ones"
        self._transport = transport
        if self._connected is not None:
            self._connected(self)

    def data_received(self, data: bytes) -> None:
        """Hand on, or keep, what has arrived."""
        if self._receiver is not None:
            self._receiver(data)
            return
        self._kept += data
        self._arrived.set()
        if len(self._kept) > _KEPT_MAX:
            self.pause(is_paused=True)

    def eof_received(self) -> bool:
        """The peer sends no more; it may still listen."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        del exc
        self._is_lost = True
        self._takes.set()
        self._end()
        self.freed()

    def pause_writing(self) -> None:
        """The peer takes no more for now."""
        self._takes.clear()

    def resume_writing(self) -> None:
        """The peer takes bytes again."""
        self._takes.set()
        self.freed()

    # What sessions call ---------------------------------------------------------------------------

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of a TCP connection; None if it is gone already."""
        name = self._there.get_extra_info("peername")
        return None if name is None else (str(name[0]), int(name[1]))

    @property
    def is_congested(self) -> bool:
        """Whether the peer takes no more for now."""
        return not self._takes.is_set()

    def keep_alive(self) -> None:
        """Notice a peer that lost its power: it sends nothing more, and no end either."""
        connection: socket.socket = self._there.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if connection.family == socket.AF_UNIX:
            return
        for option, value in _KEEP_ALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)

    def has_gone(self) -> bool:
        """Whether the peer has ended or lost the connection, as far as that is known."""
        return self._has_ended

    def receive(self, receiver: Receiver | None) -> None:
        """Hand on what arrives from now on, and what is kept; None keeps it."""
        self._receiver = receiver
        if receiver is None:
            self.pause(is_paused=False)
            return
        if data := self._take():
            receiver(data)
        if self._has_ended:
            receiver(b"")

    def pause(self, *, is_paused: bool) -> None:
        """Let the peer wait with what it sends, or go on."""
        if is_paused is self._is_paused or self._is_lost:
            return
        self._is_paused = is_paused
        if is_paused:
            self._there.pause_reading()
        else:
            self._there.resume_reading()

    async def read(self) -> bytes:
        """Some bytes; none at the end, however it came."""
        while not self._kept and not self._has_ended:
            self._arrived.clear()
            await self._arrived.wait()
        return self._take()

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, however many wait to be sent; those are copied."""
        if data and not self._is_lost:
            self._there.write(data)

    async def send(self, data: bytes | memoryview) -> None:
        """Send bytes, and wait while the peer takes none.

        Raises:
            ConnectionResetError: If it never will.
        """
        if data:
            self.write(data)
            await self.drain()

    async def drain(self) -> None:
        """Wait while the peer takes no bytes; errors as of `send`."""
        if self.is_congested:
            await self._takes.wait()
        if self._is_lost:
            raise ConnectionResetError("the connection is lost")

    def close(self) -> None:
        """Close, once what was sent is on its way; a peer that takes nothing is not waited for."""
        self._there.close()
        asyncio.get_running_loop().call_later(_LINGER_S, self._abort)

    def _abort(self) -> None:
        # asyncio fails to abort what was closed while bytes waited, and has sent them since.
        if not self._is_lost:
            self._there.abort()

    @property
    def _there(self) -> asyncio.Transport:
        assert self._transport is not None, "connected"
        return self._transport

    def _take(self) -> bytes:
        data = bytes(self._kept)
        self._kept.clear()
        self.pause(is_paused=False)
        return data

    def _end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._arrived.set()
        if self._receiver is not None:
            self._receiver(b"")
