"""The HTTP port: few connections at a time, none of them for ever."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from binlane.errors import ConfigError
from binlane.live.web.guard import Guard
from binlane.live.web.settings import CONNECTIONS_MAX, HttpSettings

IDLE_S: Final = 15.0
"""Longest silence between two requests, and longest time for the head of one."""

_LINGER_S: Final = 1.0  # for a body that nobody asked for
_ENDS_S: Final = 1.0  # for a connection that comes while it ends

logger = logging.getLogger(__name__)


class HttpPort:
    """A port that answers with an application, until `cleanup`.

    Attributes:
        addresses: Socket addresses where it listens.
    """

    def __init__(self, runner: web.AppRunner, server: asyncio.Server) -> None:
        self._runner = runner
        self._server = server
        self.addresses = [listening.getsockname() for listening in server.sockets]

    async def cleanup(self) -> None:
        """Stop listening, and close open connections."""
        self._server.close()
        await self._runner.cleanup()
        await self._server.wait_closed()


async def serve_http(
    app: web.Application,
    *,
    address: str,
    port: int,
    guard: Guard | None = None,
    idle_s: float = IDLE_S,
) -> HttpPort:
    """Listen for HTTP requests.

    Args:
        app: The application that answers requests.
        address: IP address or host name.
        port: TCP port; 0 takes a free one.
        guard: Says who is answered; None for one that asks for no password.
        idle_s: The longest time for which an idle connection stays open, in seconds.

    Raises:
        ConfigError: If the address cannot be bound.
    """
    logger.addFilter(_is_ours)
    guard = guard or Guard(HttpSettings(address=address, port=port))
    app.middlewares.append(guard.middleware)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=logger,
        keepalive_timeout=idle_s,
        lingering_time=_LINGER_S,
        shutdown_timeout=_ENDS_S,
    )
    await runner.setup()
    server = runner.server
    assert server is not None, "the runner is set up"

    def accept() -> RequestHandler:
        for oldest in server.connections[: 1 - CONNECTIONS_MAX]:
            if oldest.transport is not None:
                oldest.transport.abort()
        return server()

    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(accept, address, port)
    except OSError as error:
        await runner.cleanup()
        what = "is taken" if error.errno == errno.EADDRINUSE else "cannot be used"
        raise ConfigError(
            f"{address}:{port} {what}", key="http.port", hint="name another port under [http]"
        ) from None
    return HttpPort(runner, listening)


def _is_ours(record: logging.LogRecord) -> bool:
    """True if a record belongs into the log: wrong requests of strangers do not."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)
