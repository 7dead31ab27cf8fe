"""`binlane serve`: puts the parts together, starts them, and stops them in the other order.

Order of a start: store (it owns the directory), routing loop, listeners. A stop goes the other way:
dumps end behind the event group that they are at, statements under way are answered, routing ends
behind what came, the store is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from binlane.client.session import ServerSession
from binlane.codec.types import Flavor
from binlane.gateway.transport import Gateway
from binlane.port.attributions import JOURNAL_DIRECTORY, Attributions, AttributionSettings
from binlane.port.live_catalog import LiveCatalog
from binlane.service.access import Access
from binlane.service.archive import Archive
from binlane.service.binlogs import Binlogs
from binlane.service.certificates import port_context
from binlane.service.config import Settings
from binlane.service.descriptors import settle, tell_once_in_a_while
from binlane.service.grant_statements import Rows
from binlane.service.port import Port
from binlane.service.statements import Statements
from binlane.service.status import StatusKeeper
from binlane.service.substitution import Substitution
from binlane.store.store import Store
from binlane.web.application import application
from binlane.web.port import serve_http
from binlane.web.settings import HttpSettings

_SWITCH_S: Final = 0.001
"""How long one of routing and dumps may keep the other waiting, once both have something to do."""

logger = logging.getLogger(__name__)


async def serve(settings: Settings, *, port_file: Path | None = None) -> None:
    """Run until SIGTERM or SIGINT.

    Args:
        settings: Of all parts.
        port_file: Gets the MySQL port once logins are taken.

    Raises:
        BinlaneError: What keeps the service from starting. Nothing that happens to the source or
            to one binlog ends it later.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    tell_once_in_a_while(loop)
    sys.setswitchinterval(_SWITCH_S)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    with Store.open(settings.data_dir, settings.store, keeps_lost=True) as store:
        settings = settle(settings, binlogs=len(store.binlogs))
        service = Service(settings, store)
        async with AsyncExitStack() as stack:
            await service.start(stack, port_file)
            _notify_systemd("READY=1")
            waiting = [
                asyncio.create_task(event.wait()) for event in (stopped, service.binlogs.crashed)
            ]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            logger.info("stopping")
            _notify_systemd("STOPPING=1")
            for task in waiting:
                task.cancel()


class Service:
    """The parts of one process, wired together."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        attributions = substitution = catalog = None
        if settings.port.enabled:
            flavor = Flavor.MYSQL if settings.source.url.scheme == "mysql" else Flavor.MARIADB
            attributions = Attributions(
                settings.data_dir / JOURNAL_DIRECTORY,
                flavor,
                AttributionSettings(journal_max_bytes=settings.port.journal_max_bytes),
            )
            catalog = LiveCatalog(settings.source)
            substitution = Substitution(attributions, settings.port.bypass, catalog)
        self.binlogs = Binlogs(store, settings.source, substitution)
        access = Access(self.binlogs, settings.access)
        self._port = (
            None
            if attributions is None or catalog is None
            else Port(settings.source, self.binlogs, attributions, catalog, seen=access.told_names)
        )
        self._archive = (
            None if settings.archive is None else Archive(settings.archive, settings.data_dir)
        )
        self._statements = Statements(
            self.binlogs,
            self._port,
            access=access,
            ask=self._ask_source,
        )
        self._gateway = Gateway(settings.listen, self._statements)
        self._status = StatusKeeper(
            settings, self.binlogs, self._statements, self._gateway, self._port, self._archive
        )

    async def _ask_source(self, statement: str) -> Rows:
        """Ask the source with binlane's own account."""
        source = self._settings.source

        def ask() -> Rows:
            with ServerSession(source.url, source.secret(), answer_s=source.timeout_s) as session:
                return session.ask(statement)

        return await asyncio.to_thread(ask)

    async def start(self, stack: AsyncExitStack, port_file: Path | None) -> None:
        """Start everything; `stack` stops it, in the other order."""
        # Statements under way need the routing loop, which goes last.
        self.binlogs.start()
        stack.push_async_callback(self.binlogs.stop)
        if self._archive is not None:
            self._archive.start()
            stack.push_async_callback(asyncio.to_thread, self._archive.stop)
        if self._port is not None:
            self._port.start()
            if self._settings.port.workers > 1:
                logger.warning(
                    "[gateway] workers = %d: one process serves the port, this one",
                    self._settings.port.workers,
                )
            stack.push_async_callback(self._port.stop)
        self.reload_certificate()
        await self._gateway.start()
        stack.push_async_callback(self._gateway.stop)
        stack.callback(self.binlogs.end_dumps)
        listen = self._settings.listen
        logger.info("listening on %s:%d (MySQL protocol)", listen.address, self._gateway.port)
        if self._settings.http is not None:
            await self._start_http(stack, self._settings.http)
        if port_file is not None:
            unfinished = port_file.with_name(f"{port_file.name}.new")
            unfinished.write_text(str(self._gateway.port), encoding="ascii")
            unfinished.replace(port_file)

    def reload_certificate(self) -> None:
        """Take the port's certificate and key from their files, for clients that come from now on.

        Raises:
            ConfigError: If they cannot be used; the port goes on with those that it has.
        """
        self._gateway.tls = port_context(self._settings.listen, self._settings.data_dir)

    async def _start_http(self, stack: AsyncExitStack, settings: HttpSettings) -> None:
        self._status.start()
        stack.push_async_callback(self._status.stop)
        app = application(self._status.status)
        runner = await serve_http(app, address=settings.address, port=settings.port)
        stack.push_async_callback(runner.cleanup)
        logger.info("listening on %s:%d (HTTP)", *runner.addresses[0][:2])


def _notify_systemd(state: str) -> None:
    """Tell systemd, where it asked to be told (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        try:
            notify.connect(address)
            notify.sendall(state.encode())
        except OSError as error:
            logger.warning("systemd cannot be told %s: %s", state, error)
