"""One of several processes that serve the port.

It is forked by the process that keeps the binlogs, before that has anything, or, in the place of one
that has ended, started by it (`spares`). It ends with that process, whatever happens there.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import mmap
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from binlane.live.answers.session_judges import Port
from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.pump import waiting_loop
from binlane.live.gateway.transport import Gateway
from binlane.live.port.attribution_messages import AttributionSender
from binlane.live.port.catalog_connections import CatalogConnections
from binlane.live.port.live_catalog import Change, LiveCatalog
from binlane.live.provision.certificates import port_context
from binlane.live.service import logs
from binlane.live.service.config import ServeSettings
from binlane.live.service.descriptors import tell_once_in_a_while
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import Beginning, BinlogsNow, WorkerReport
from binlane.live.service.workers.worker_handler import KnownBinlogs, WorkerHandler
from binlane.statements.sql.servers import Dialect

_REPORT_S: Final = 0.25


def _soon(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(call)


class Worker:
    """The parts of the process.

    Args:
        sayings: The socket to which sessions' plans are sent.
        passing: Takes connections of clients to the other process.
        listening: Sockets that listen for clients.
        memory: The memory that `ClientCounts` shares between workers.
    """

    def __init__(
        self,
        sayings: socket.socket,
        passing: socket.socket,
        listening: Sequence[socket.socket],
        memory: memoryview,
    ) -> None:
        self._passing = passing
        self._sayings = AttributionSender(sayings, _soon)
        self._listening = listening
        self._memory = memory
        self._link: ProcessLink | None = None
        self._handler: WorkerHandler | None = None
        self._binlogs: KnownBinlogs | None = None
        self._gateway: Gateway | None = None
        self._catalog: LiveCatalog | None = None
        self._port: Port | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._reported = WorkerReport()
        self._is_stopped = False
        self._calls: Mapping[str, Callable[..., Awaitable[object]]] = {
            "begin": self._begin,
            "binlogs": self._know_binlogs,
            "logged": self._heed,
            "changed": self._heed_changed,
            "source_changed": self._source_changed,
            "session": self._ask_session,
            "send": self._send,
            "use": self._use,
            "hurry": self._hurry,
            "stop": self._stop,
        }

    async def run(self, connection: socket.socket) -> None:
        """Serve until the other process has done with this one.

        Args:
            connection: The connection to the other process.
        """
        tell_once_in_a_while(asyncio.get_running_loop())
        self._link = await ProcessLink.over(connection, self._serve)
        await self._link.run()
        if not self._is_stopped:
            # Nobody keeps what sessions say any more.
            os._exit(1)
        await self._end()
        # Python would wait for threads that wait for a source which does not answer.
        os._exit(0)

    async def _serve(self, what: str, arguments: tuple[Any, ...]) -> object:
        return await self._calls[what](*arguments)

    async def _begin(self, beginning: Beginning) -> None:
        """Begin to serve.

        Raises:
            ConfigError: If a setting cannot be used.
        """
        assert self._link is not None, "it has brought this"
        settings, link = beginning.settings, self._link
        logs.log_to_stderr(settings.log, os.environ)
        self._binlogs = KnownBinlogs(link, beginning.binlogs)
        self._handler = handler = WorkerHandler(link, self._binlogs, self._passing)
        if settings.port.enabled:
            self._catalog = LiveCatalog(CatalogConnections(settings.source))
            self._catalog.on_changed = self._tell_changed
            self._catalog.on_heard = self._sayings.changes_heard
            self._port = handler.port = Port(
                settings.source,
                self._binlogs,
                self._sayings,
                self._catalog,
                seen=handler.seen,
                is_told=False,
            )
        crowd = ClientCounts(self._memory, beginning.number)
        tls = port_context(settings.listen, settings.data_dir, is_told=False)
        self._gateway = Gateway(settings.listen, handler, tls, crowd=crowd)
        await self._gateway.start(self._listening)
        self._reporting = asyncio.create_task(self._report())
        # Objects that are there now stay for ever; sessions make no more work for the collector by
        # them.
        gc.freeze()

    async def _know_binlogs(self, now: BinlogsNow) -> None:
        assert self._binlogs is not None, "it has begun"
        self._binlogs.now = now

    async def _heed(self, changes: Sequence[Change] | None, numbers: Sequence[int]) -> None:
        if self._catalog is not None:
            self._catalog.logged(changes, numbers)

    async def _heed_changed(self, text: str, database: str, dialect: Dialect, number: int) -> None:
        if self._catalog is not None:
            self._catalog.heed_changed(text, database, dialect, number)

    async def _source_changed(self) -> None:
        if self._catalog is not None:
            self._catalog.source_changed()

    async def _ask_session(self, number: int, method: str, argument: object) -> object:
        assert self._handler is not None, "it has begun"
        return await self._handler.ask_session(number, method, argument)

    async def _send(self, number: int, data: bytes) -> None:
        assert self._handler is not None, "it has begun"
        await self._handler.send(number, data)

    async def _use(self, settings: ServeSettings) -> None:
        """Take over settings that can be changed while the worker runs.

        Raises:
            ConfigError: If the certificate cannot be used.
        """
        assert self._gateway is not None, "it has begun"
        tls = port_context(settings.listen, settings.data_dir, is_told=False)
        logs.log_to_stderr(settings.log, os.environ)
        self._gateway.use(settings.listen, tls)

    async def _hurry(self) -> None:
        if self._gateway is not None:
            self._gateway.hurry()

    async def _stop(self) -> None:
        """Let sessions end that are under way."""
        if self._gateway is not None:
            await self._gateway.stop()
        self._is_stopped = True

    async def _end(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
        if self._port is not None:
            await self._port.stop()

    def _tell_changed(self, text: str, database: str, dialect: Dialect) -> None:
        assert self._link is not None, "it is there first"
        self._sayings.changed()
        self._link.tell("changed", text, database, dialect)

    async def _report(self) -> None:
        """Report the worker's state, whenever it has changed."""
        while True:
            self._report_now()
            await asyncio.sleep(_REPORT_S)

    def _report_now(self) -> None:
        assert self._gateway is not None, "it has begun"
        assert self._link is not None, "it is there first"
        now = WorkerReport(
            counts=deepcopy(self._gateway.counts),
            sessions=self._gateway.sessions,
            problem="" if self._port is None else self._port.problem,
        )
        if now != self._reported:
            self._reported = now
            self._link.tell("report", now)


def work(descriptors: Sequence[int]) -> None:
    """Run a worker until it ends.

    Args:
        descriptors: Link, sayings, passing, memory, listening sockets.
    """
    link, sayings, passing, memory, *listening = descriptors
    faulthandler.enable()
    worker = Worker(
        socket.socket(fileno=sayings),
        socket.socket(fileno=passing),
        [socket.socket(fileno=each) for each in listening],
        memoryview(mmap.mmap(memory, 0)),
    )
    with asyncio.Runner(loop_factory=waiting_loop) as runner:
        runner.run(worker.run(socket.socket(fileno=link)))
