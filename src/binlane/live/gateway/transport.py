"""The listening port: accepts clients, connects each to the source, and closes down in order."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from binlane.client.account import seal, tls_context
from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError, ConfigError, SourceDownError
from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.gateway_session import GatewaySession, Sides
from binlane.live.gateway.handler import Handler
from binlane.live.gateway.listening import PortListener, bound
from binlane.live.gateway.lobby import Guest, Lobby
from binlane.live.gateway.log_texts import shown
from binlane.live.gateway.login import LoginRules
from binlane.live.gateway.port_counts import LoginOutcome, PortCounts
from binlane.live.gateway.relay import Relay
from binlane.live.gateway.settings import GatewaySettings, TlsMode
from binlane.live.gateway.side import Side, keep_alive, named
from binlane.live.gateway.tls import TlsRole
from binlane.live.gateway.warning_limiter import WarningLimiter
from binlane.log.codec.packets.framing import frame
from binlane.log.codec.packets.replies import ErrPacket

_TOO_MANY_ERRNO: Final = 1040
# The source's answer to a login that a client did not begin.
_LEAVE_TIMEOUT_S: Final = 2.0
_UNDER_WAY: Final = frozenset((errno.EINPROGRESS, errno.EALREADY, errno.EAGAIN))
"""Errors of a connection that is waited for."""

_Address = tuple[int, tuple[Any, ...] | str]
"""Family and address of a socket."""

logger = logging.getLogger(__name__)


class Gateway:
    """The port; `start` it, and `stop` it."""

    def __init__(
        self,
        settings: GatewaySettings,
        handler: Handler,
        tls: ssl.SSLContext | None = None,
        *,
        crowd: ClientCounts | None = None,
    ) -> None:
        """Prepare the port; nothing listens yet.

        Args:
            settings: Settings of the port and of the source behind it.
            handler: Answers statements that concern binlogs.
            tls: TLS of the port, as in the attribute.
            crowd: The processes that serve the port; None for this one alone.
        """
        self._crowd = crowd or ClientCounts()
        self._settings = settings
        self._handler = handler
        self._listener: PortListener | None = None
        self._source_role: TlsRole | None = None
        self._source_at = _local_address(settings)
        self._clients: dict[asyncio.Task[None], GatewaySession | None] = {}
        self._lobby = Lobby(
            sessions_max=settings.max_connections,
            places=min(settings.logins_max, settings.max_connections),
            waiting_max=settings.max_connections,
            timeout_s=settings.login_timeout_s,
            crowd=self._crowd,
        )
        self._told = WarningLimiter()
        self.tls = tls
        self._counts = PortCounts()

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The port's certificate and key, for clients that come from now on; None offers no TLS."""
        return None if self._client_role is None else self._client_role.context

    @tls.setter
    def tls(self, context: ssl.SSLContext | None) -> None:
        settings = self._settings
        is_local = settings.source_socket is not None
        self._client_role = None if context is None else TlsRole(context=context, is_server=True)
        self._rules = LoginRules(
            offers_tls=context is not None,
            requires_tls=settings.tls is TlsMode.REQUIRED,
            source_is_local=is_local,
            source_ssl_mode=settings.source_ssl_mode,
            checks_account=is_local,
            seal=seal,
        )

    @property
    def port(self) -> int:
        """The TCP port on which the gateway listens."""
        assert self._listener is not None, "start() comes first"
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    def use(self, settings: GatewaySettings, tls: ssl.SSLContext | None) -> None:
        """Take over new limits of clients and of time; no session ends.

        Args:
            settings: Settings of which the limits are taken over.
            tls: TLS of the port, as in the attribute.
        """
        self.tls = tls
        self._settings = replace(
            self._settings,
            max_connections=settings.max_connections,
            login_timeout_s=settings.login_timeout_s,
        )
        self._lobby.resize(
            sessions_max=settings.max_connections,
            places=min(self._settings.logins_max, settings.max_connections),
            waiting_max=settings.max_connections,
        )
        self._lobby.timeout_s = settings.login_timeout_s

    def hurry(self) -> None:
        """Wait for nobody any more while the port stops."""
        for task in self._clients:
            task.cancel()

    @property
    def counts(self) -> PortCounts:
        """Counts of the port's logins and statements."""
        for session in self._clients.values():
            if session is not None:
                session.count_unread()
        return self._counts

    @property
    def sessions_max(self) -> int:
        """The number of clients that may be logged in."""
        return self._settings.max_connections

    @property
    def sessions(self) -> int:
        """Clients that are logged in."""
        return self._lobby.sessions

    async def start(self, listening: Sequence[socket.socket] = ()) -> None:
        """Begin to listen.

        Args:
            listening: Sockets that listen already, for several processes; none for its own.

        Raises:
            ConfigError: If the address, or what the source is verified by, cannot be used.
        """
        settings = self._settings
        self._source_role = self._source_tls()
        try:
            listening = listening or await asyncio.to_thread(bound, settings)
        except OSError as error:
            raise cannot_listen(settings, error) from None
        self._listener = PortListener(listening, self._crowd, self._accept)

    async def stop(self) -> None:
        """Accept no more clients, let statements and dumps under way end, then close all sessions.

        Whoever serves dumps has told them to end.
        """
        assert self._listener is not None, "start() comes first"
        self._listener.close()
        self._lobby.close()
        for task, session in self._clients.items():
            if session is None:
                task.cancel()
            else:
                session.drain()
        if self._clients:
            await asyncio.wait(self._clients, timeout=self._settings.drain_timeout_s)
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._told.close()

    def _accept(self, connection: socket.socket, address: Any) -> None:
        host, port = named(address)
        try:
            client = Side.of(connection, (host, port))
        except OSError:  # gone already
            connection.close()
            return
        guest = Guest(host, client.has_gone)
        source = None
        if self._source_at is not None and self._lobby.enter_at_once(guest):
            # Its task begins in the event loop's next turn: the source greets meanwhile.
            source = None if guest.is_refused else self._connect_at_once(self._source_at, client)
        task = asyncio.create_task(self._serve(client, guest, f"{host}:{port}", source))
        guest.task = task
        self._clients[task] = None
        self._tell_crowd()
        task.add_done_callback(partial(self._forget, guest, client, source))

    def _forget(
        self, guest: Guest, client: Side, source: Side | None, task: asyncio.Task[None]
    ) -> None:
        if task.cancelled():  # perhaps before it has begun
            self._lobby.leave(guest)
            client.close()
            if source is not None:
                source.close()
        del self._clients[task]
        self._tell_crowd()
        if not task.cancelled() and task.exception() is not None:
            logger.error("a session failed", exc_info=task.exception())

    def _tell_crowd(self) -> None:
        self._crowd.tell(clients=len(self._clients), sessions=self._lobby.sessions)

    async def _serve(self, client: Side, guest: Guest, peer: str, source: Side | None) -> None:
        seconds, task = self._settings.login_timeout_s, guest.task
        assert task is not None, "this is it"
        try:
            await self._let_in(client, guest, peer, source)
        except OSError as error:
            error.with_traceback(None)
            logger.info("%s: connection lost: %s", peer, error, extra={"peer": peer})
        except asyncio.CancelledError:
            if not guest.is_turned_out or task.uncancel():
                raise
            if not client.has_gone():
                self._counts.logins[LoginOutcome.TOO_LATE] += 1
                self._told.warn(
                    "%s: no login in %g s, or others waited", peer, seconds, extra={"peer": peer}
                )
        finally:
            client.close()

    async def _let_in(self, client: Side, guest: Guest, peer: str, source: Side | None) -> None:
        """Relay for a client, once it is its turn and while it is there.

        Args:
            client: Connection of the client, which has been accepted.
            guest: The same client, as the lobby sees it.
            peer: Address of the client, for messages.
            source: Connection to the source; None where there is none yet.
        """
        lobby = self._lobby
        try:
            if not await lobby.enter(guest):
                self._counts.logins[LoginOutcome.TOO_MANY] += 1
                self._told.warn(
                    "%s: refused: all %d sessions are taken",
                    *(peer, lobby.sessions),
                    extra={"peer": peer},
                )
                await client.send(frame(_too_many(), 0))
                return
            source = source or await self._connect(client)
            if source is None:
                self._counts.logins[LoginOutcome.NO_SOURCE] += 1
                await client.send(frame(_cannot_connect(self._settings), 0))
                return
            try:
                await self._relay(client, source, guest, peer)
            finally:
                source.close()
        finally:
            lobby.leave(guest)

    async def _connect(self, client: Side) -> Side | None:
        settings = self._settings
        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                connection = await _connection(settings)
        except (OSError, TimeoutError) as error:
            self._told.warn("source %s cannot be reached: %s", _source(settings), error)
            return None
        return self._source_side(connection, client)

    def _connect_at_once(self, at: _Address, client: Side) -> Side | None:
        """Connect to a source on this machine; None where it has to be waited for, or cannot be reached."""
        try:
            connection = _connected_at_once(at)
            return None if connection is None else self._source_side(connection, client)
        except OSError:
            return None  # another try says the reason

    def _source_side(self, connection: socket.socket, client: Side) -> Side:
        side = Side.of(connection)
        if self._settings.source_proxy_protocol:
            side.write(_proxy_header(client))
        return side

    async def _relay(self, client: Side, source: Side, guest: Guest, peer: str) -> None:
        lobby = self._lobby

        def logged_in() -> None:
            self._counts.logins[LoginOutcome.ADMITTED] += 1
            lobby.log_in(guest)
            self._tell_crowd()

        relay = Relay(self._rules, counts=self._counts)
        client.tls_role = self._client_role
        source.tls_role = self._source_role
        session = GatewaySession(
            Sides(client, source, peer),
            self._handler,
            relay,
            logged_in=logged_in,
            told=self._told,
        )
        assert guest.task is not None, "this is it"
        self._clients[guest.task] = session
        is_broken = False
        try:
            await session.run()
        except BinlaneError as error:
            is_broken = True
            self._told.warn(
                "%s: session of user %s ends: %s",
                *(peer, shown(repr(session.user)), shown(error)),
                extra={"peer": peer, "user": shown(session.user)},
            )
            # Else it would hold the session, and the session it, until somebody looks for such.
            error.with_traceback(None)
        finally:
            if not relay.is_logged_in and (is_broken or client.failure):
                self._counts.logins[LoginOutcome.BROKEN] += 1
            elif relay.is_refused:
                self._counts.logins[LoginOutcome.REFUSED] += 1
            if client.failure:
                self._told.warn("client %s: %s", peer, client.failure)
            if source.failure:
                self._told.warn("source %s: %s", _source(self._settings), source.failure)
            if relay.is_logged_in:
                lobby.end_session()
                self._tell_crowd()
            elif self._is_open:
                await self._take_leave(session)

    def _source_tls(self) -> TlsRole | None:
        """TLS role of the sessions at the source; None where it is at a Unix socket.

        The role is without a certificate of binlane's own: that would vouch for whoever logs in.
        """
        settings = self._settings
        if settings.source_socket is not None:
            return None
        url = ServerUrl(
            user="",
            host=settings.source_host,
            port=settings.source_port,
            ssl_mode=settings.source_ssl_mode,
            ssl_ca=settings.source_ssl_ca,
        )
        return TlsRole(context=tls_context(url), is_server=False, host=settings.source_host)

    @property
    def _is_open(self) -> bool:
        return self._listener is not None and self._listener.is_serving

    async def _take_leave(self, session: GatewaySession) -> None:
        try:
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                await session.take_leave()
        except (OSError, TimeoutError, BinlaneError):
            pass  # the client has gone; nobody is left to be told


def cannot_listen(settings: GatewaySettings, error: OSError) -> ConfigError:
    """Give the error for an address that cannot be listened on."""
    return ConfigError(
        f"cannot listen on {settings.address}:{settings.port}: {error.strerror or error}",
        key="listen",
        hint="is another process listening there? set [listen] address and port",
    )


def _local_address(settings: GatewaySettings) -> _Address | None:
    """Give the address of a source on this machine; None for others, and for names, which are looked up."""
    if settings.source_socket is not None:
        return socket.AF_UNIX, settings.source_socket
    found = _numbers(settings)
    if len(found) != 1 or not ip_address(settings.source_host).is_loopback:
        return None
    ((family, address),) = found
    return family, address


def _numbers(settings: GatewaySettings) -> Sequence[_Address]:
    """Give the addresses of a source that is named by number; none for others."""
    at = (settings.source_host, settings.source_port)
    try:
        # A number is looked up nowhere, and so needs no thread that waits.
        found = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return ()
    return [(family, address) for family, _, _, _, address in found]


def _connected_at_once(at: _Address) -> socket.socket | None:
    """Connect to a source on this machine, which is done when the call returns; None where it has to be waited for.

    Args:
        at: Address of a source on this machine.

    Raises:
        OSError: If it cannot be reached.
    """
    family, address = at
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        if family != socket.AF_UNIX:
            # It is not asked if it is still there: it has the power of this machine.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = connection.connect_ex(address)
        if error == errno.EINPROGRESS:
            error = connection.connect_ex(address)
    except BaseException:
        connection.close()
        raise
    if not error:
        return connection
    connection.close()
    if error in _UNDER_WAY:
        return None
    raise OSError(error, os.strerror(error))


async def _connection(settings: GatewaySettings) -> socket.socket:
    """A connection to the source.

    Raises:
        OSError: If it cannot be reached, by any of its addresses.
    """
    if settings.source_socket is not None:
        return await _connected(socket.AF_UNIX, settings.source_socket)
    found = _numbers(settings)
    if not found:
        at = (settings.source_host, settings.source_port)
        named = await asyncio.get_running_loop().getaddrinfo(*at, type=socket.SOCK_STREAM)
        found = [(family, address) for family, _, _, _, address in named]
    error = OSError(f"{settings.source_host} has no address")
    for family, address in found:
        try:
            return await _connected(family, address)
        except OSError as one:
            error = one
    raise error


def _new_socket(family: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        keep_alive(connection)
    except BaseException:
        connection.close()
        raise
    return connection


async def _connected(family: int, address: tuple[Any, ...] | str) -> socket.socket:
    connection = _new_socket(family)
    try:
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _proxy_header(client: Side) -> bytes:
    """Give the header that names a connection's client (PROXY protocol, version 1)."""
    peer, here = client.peer, client.here
    if peer is None or here is None:  # gone already
        return b"PROXY UNKNOWN\r\n"
    family = "TCP6" if ":" in peer[0] else "TCP4"
    return f"PROXY {family} {peer[0]} {here[0]} {peer[1]} {here[1]}\r\n".encode("ascii")


def _source(settings: GatewaySettings) -> str:
    return settings.source_socket or f"{settings.source_host}:{settings.source_port}"


def _cannot_connect(settings: GatewaySettings) -> bytes:
    error = SourceDownError(f"binlane cannot reach its source {_source(settings)}: try again later")
    return ErrPacket(errno=error.errno, message=error.message, sqlstate=None).encode()


def _too_many() -> bytes:
    return ErrPacket(errno=_TOO_MANY_ERRNO, message="Too many connections", sqlstate=None).encode()
