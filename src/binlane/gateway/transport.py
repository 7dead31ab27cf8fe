"""The listening port: accepts clients, connects each to the source, and closes down in order."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
from typing import Final

from binlane.codec.packets.framing import frame
from binlane.codec.packets.replies import ErrPacket
from binlane.errors import BinlaneError, ConfigError
from binlane.gateway.handler import Handler
from binlane.gateway.machine import Relay
from binlane.gateway.session import Session, Side
from binlane.gateway.settings import GatewaySettings

_CANNOT_CONNECT_ERRNO: Final = 2003

logger = logging.getLogger(__name__)


class Gateway:
    """The port; `start` it, and `stop` it."""

    def __init__(self, settings: GatewaySettings, handler: Handler) -> None:
        self._settings = settings
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[None], Session | None] = {}
        self._refused_users = _refused_users(settings)

    @property
    def port(self) -> int:
        """The TCP port that it listens on."""
        assert self._server is not None, "start() comes first"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            ConfigError: If the address cannot be used.
        """
        settings = self._settings
        try:
            self._server = await asyncio.start_server(self._accept, settings.address, settings.port)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {settings.address}:{settings.port}: {error.strerror or error}",
                key="listen",
                hint="is another process listening there? set [listen] address and port",
            ) from None

    async def stop(self) -> None:
        """Accept no more clients, let statements and dumps under way end, then close all sessions.

        Whoever serves dumps has told them to end.
        """
        assert self._server is not None, "start() comes first"
        self._server.close()
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
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("peername")[:2]
        task = asyncio.create_task(self._serve(Side(reader, writer), f"{host}:{port}"))
        self._clients[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._clients[task]
        if not task.cancelled() and task.exception() is not None:
            logger.error("a session failed", exc_info=task.exception())

    async def _serve(self, client: Side, peer: str) -> None:
        try:
            source = await self._connect()
            if source is None:
                await client.send(frame(_cannot_connect(self._settings), 0))
                return
            try:
                await self._relay(client, source, peer)
            finally:
                await source.close()
        except OSError as error:
            logger.info("%s: connection lost: %s", peer, error)
        finally:
            await client.close()

    async def _connect(self) -> Side | None:
        settings = self._settings
        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                if settings.source_socket is not None:
                    return Side(*await asyncio.open_unix_connection(settings.source_socket))
                return Side(
                    *await asyncio.open_connection(settings.source_host, settings.source_port)
                )
        except (OSError, TimeoutError) as error:
            logger.warning("source %s cannot be reached: %s", _source(settings), error)
            return None

    async def _relay(self, client: Side, source: Side, peer: str) -> None:
        relay = Relay(refused_users=self._refused_users)
        session = Session(client, source, self._handler, peer=peer, relay=relay)
        task = asyncio.current_task()
        assert task is not None, "sessions run in tasks"
        self._clients[task] = session
        try:
            await session.run()
        except BinlaneError as error:
            logger.warning("%s: session of user %r ends: %s", peer, session.user, error)


def _refused_users(settings: GatewaySettings) -> frozenset[str]:
    """Over a Unix socket the source takes every client for the system account that we run as."""
    if settings.source_socket is None:
        return frozenset()
    return frozenset({pwd.getpwuid(os.geteuid()).pw_name})


def _source(settings: GatewaySettings) -> str:
    return settings.source_socket or f"{settings.source_host}:{settings.source_port}"


def _cannot_connect(settings: GatewaySettings) -> bytes:
    text = f"Can't connect to the source server {_source(settings)}: try again later"
    return ErrPacket(errno=_CANNOT_CONNECT_ERRNO, message=text, sqlstate=None).encode()
