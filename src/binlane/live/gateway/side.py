"""One of a session's two connections, plain or inside of TLS.

What arrives is kept until somebody reads it, or handed on at once, without a switch of tasks.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any, Final, cast

from binlane.live.gateway.pump import PumpedSocket, pumped
from binlane.live.gateway.tls import TlsError, TlsLayer, TlsRole

_KEPT_MAX: Final = 64 << 10
_LINGER_S: Final = 5.0
# The system's own take two hours and more.
_KEEP_ALIVE: Final = tuple(
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
    if hasattr(socket, name)
)
"""A peer that is silent for a minute is asked, and has gone a minute later."""

_COPIES_REST: Final = sys.version_info < (3, 12)
"""True if asyncio's transports copy what they cannot send at once; later ones keep the object."""

Receiver = Callable[[bytes], None]
"""Takes bytes as they arrive, and none at the end, however that came."""


def keep_alive(connection: socket.socket) -> None:
    """Send what is written at once, and notice a peer that lost its power: it sends no end either.

    Args:
        connection: Socket of a connection, or of a listener, whose connections have the same.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in _KEEP_ALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def named(address: Any) -> tuple[str, int]:
    """Give the host and the port of an address, as sockets have it.

    Args:
        address: Address of an IPv4 or IPv6 socket.
    """
    # A link-local address has its interface behind it.
    return str(address[0]).partition("%")[0], int(address[1])


def nothing() -> None:
    """Done where nobody waits."""


class Side(asyncio.Protocol):
    """One side of a relayed connection: the client's or the source's.

    Attributes:
        freed: Called when the peer takes bytes again, or never will.
        is_congested: True if the peer takes no more for now.
        is_paused: True if the peer has to wait before it sends more.
        tls_role: Role of this side in TLS; None where TLS is never begun.
        failure: Reason why TLS came to nothing; empty where it did not.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._kept = bytearray()
        self._peer: tuple[str, int] | None = None
        # Of those who wait for bytes, and for a peer that takes them: mostly nobody does.
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._has_ended = self._is_lost = self._is_closed = False
        self.is_congested = self.is_paused = False
        self.freed: Callable[[], None] = nothing
        self._tls: TlsLayer | None = None
        self.tls_role: TlsRole | None = None
        self.failure = ""

    @classmethod
    def of(cls, connected: socket.socket, peer: tuple[str, int] | None = None) -> Side:
        """One side over a connection.

        Args:
            connected: Socket of the connection, which the side closes.
            peer: Address and port of the peer, where they are known.
        """
        side = cls()
        side._peer = peer
        if connected.gettimeout() != 0:
            connected.setblocking(False)  # the standard library's
        side.connection_made(pumped(connected, side))
        return side

    # Calls of asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read from the connection."""
        # A stream's transport; other loops than asyncio's have classes of their own for it.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hand on, or keep, the bytes that have arrived."""
        if self._tls is not None:
            data = self._decrypt(self._tls, data)
            if not data:
                return
        if self._receiver is not None:
            self._receiver(data)
            return
        self._kept += data
        self._wake_reader()
        if len(self._kept) > _KEPT_MAX:
            self.pause(is_paused=True)

    def eof_received(self) -> bool:
        """Note that the peer sends no more; it may still listen."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        del exc
        self._is_lost = True
        self.is_congested = False
        self._wake_writers()
        self._end()
        self.freed()

    def pause_writing(self) -> None:
        """The peer takes no more for now."""
        self.is_congested = True

    def resume_writing(self) -> None:
        """The peer takes bytes again."""
        self.is_congested = False
        self._wake_writers()
        self.freed()

    # Calls of sessions ----------------------------------------------------------------------------

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of a TCP connection; None if it is gone already."""
        return self._peer or self._address("peername")

    @property
    def here(self) -> tuple[str, int] | None:
        """This end's address and port; as of `peer`."""
        return self._address("sockname")

    @property
    def is_encrypted(self) -> bool:
        """True if TLS keys were agreed on, whatever came behind them."""
        return self._tls is not None and self._tls.is_ready

    @property
    def passes(self) -> PumpedSocket | None:
        """The connection, if the kernel may take its bytes: it is in clear, and nothing of it waits."""
        if self._tls is not None or self._has_ended or self.is_paused or self._receiver is None:
            return None
        socket = self._transport
        if isinstance(socket, PumpedSocket) and not socket.get_write_buffer_size():
            return None if socket.is_closing() else socket
        return None

    @property
    def connection(self) -> socket.socket | None:
        """The connection's socket, if it is in clear and nothing waits to be sent."""
        if self._tls is not None or self._is_lost or self._there.get_write_buffer_size():
            return None
        connection: socket.socket | None = self._there.get_extra_info("socket")
        return connection

    def has_gone(self) -> bool:
        """True if the peer has ended or lost the connection, as far as that is known."""
        return self._has_ended

    def start_tls(self, begun: bytes = b"") -> None:
        """Go on inside of TLS; data that is written from now on waits until keys are agreed on.

        Args:
            begun: Bytes of TLS that the peer has sent already.
        """
        role = self.tls_role
        assert role is not None, "it has one wherever TLS is offered"
        assert self._tls is None, "TLS is begun once"
        assert not self._kept, "what was kept was not inside of it"
        self._tls = tls = TlsLayer(role)
        tls.begin()
        self.write(b"")
        if begun:
            self.data_received(begun)

    def receive(self, receiver: Receiver | None) -> None:
        """Hand on bytes that arrive from now on, and those that are kept; None keeps them."""
        self._receiver = receiver
        if receiver is None:
            self.pause(is_paused=False)
            return
        if data := self._take():
            receiver(data)
        if self._has_ended:
            receiver(b"")

    def pause(self, *, is_paused: bool) -> None:
        """Let the peer wait with its data, or go on."""
        if is_paused is self.is_paused or self._is_lost:
            return
        self.is_paused = is_paused
        if is_paused:
            self._there.pause_reading()
        else:
            self._there.resume_reading()

    async def read(self) -> bytes:
        """Some bytes; none at the end, however it came."""
        while not self._kept and not self._has_ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._take()

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, however many wait to be sent; those are copied.

        Nothing is sent where TLS has failed.
        """
        if self._is_lost or self.failure:
            return
        if self._tls is not None:
            data = self._tls.sent(data)
        if data:
            assert self._transport is not None, "connected"
            # The buffer behind a view may be used again as soon as this returns.
            self._transport.write(data if _COPIES_REST or isinstance(data, bytes) else bytes(data))

    def write_in_clear(self, data: bytes) -> None:
        """Send bytes beside TLS that did not come to keys, and is over."""
        assert self.failure, "it has not failed"
        assert not self.is_encrypted, "the peer hears nothing in clear"
        if not self._is_lost:
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
        while self.is_congested:
            takes = asyncio.get_running_loop().create_future()
            self._writers.append(takes)
            await takes
        if self._is_lost:
            raise ConnectionResetError("the connection is lost")

    def close(self) -> None:
        """Close, once the sent data is on its way; a peer that takes nothing is not waited for."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._tls is not None and not self._is_lost and not self.failure:
            self._there.write(self._tls.end())
        waits = self._there.get_write_buffer_size()
        self._there.close()
        if waits:
            asyncio.get_running_loop().call_later(_LINGER_S, self._abort)

    def _abort(self) -> None:
        # asyncio fails to abort what was closed while bytes waited, and has sent them since.
        if not self._is_lost:
            self._there.abort()

    @property
    def _there(self) -> asyncio.Transport:
        assert self._transport is not None, "connected"
        return self._transport

    def _address(self, of: str) -> tuple[str, int] | None:
        name = self._there.get_extra_info(of)
        return None if name is None else named(name)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake_writers(self) -> None:
        writers, self._writers = self._writers, []
        for takes in writers:
            if not takes.done():
                takes.set_result(None)

    def _decrypt(self, tls: TlsLayer, data: bytes) -> bytes:
        """Decrypt bytes from the wire; return none before TLS has begun and after its end."""
        if self.failure or tls.has_ended:
            return b""
        try:
            data = tls.receive(data)
        except TlsError as error:
            data, self.failure = b"", f"TLS failed: {error}"
        if answer := tls.take():
            self._there.write(answer)
        if self.failure or tls.has_ended:
            if data and self._receiver is not None:
                self._receiver(data)
            elif data:
                self._kept += data
            self._end()
            return b""
        return data

    def _take(self) -> bytes:
        data = bytes(self._kept)
        self._kept.clear()
        self.pause(is_paused=False)
        return data

    def _end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._wake_reader()
        if self._receiver is not None:
            self._receiver(b"")
