"""`binlane serve`: puts the parts together, starts them, and stops them in the other order.

Order of a start: store (it owns the directory), listeners, capture. A stop goes the other way:
capture ends with the batch that it is at, statements under way are answered, the store is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

from binlane.capture.transport import Capture
from binlane.errors import StoreFullError
from binlane.gateway.transport import Gateway
from binlane.grouping.event_group import EventGroup
from binlane.scope import ScopeList
from binlane.service.binlogs import Binlogs
from binlane.service.config import Settings
from binlane.service.descriptors import settle, tell_once_in_a_while
from binlane.service.statements import Statements
from binlane.store.store import Store
from binlane.web.port import serve_http
from binlane.web.settings import HttpSettings
from binlane.web.status import BinlogState, BinlogStatus, Status, application

_FULL_RETRY_S: Final = 5.0

logger = logging.getLogger(__name__)


async def serve(settings: Settings, *, port_file: Path | None = None) -> None:
    """Run until SIGTERM or SIGINT.

    Args:
        settings: Of all parts.
        port_file: Gets the MySQL port once logins are taken.

    Raises:
        BinlaneError: What keeps the service from starting or going on.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    tell_once_in_a_while(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    with Store.open(settings.data_dir, settings.store) as store:
        settings = settle(settings, binlogs=len(store.binlogs))
        service = Service(settings, store)
        async with AsyncExitStack() as stack:
            await service.start(stack, port_file)
            capture = asyncio.create_task(service.run_capture(), name="capture")
            stop = asyncio.create_task(stopped.wait(), name="stop")
            await asyncio.wait((capture, stop), return_when=asyncio.FIRST_COMPLETED)
            logger.info("stopping")
            _notify_systemd("STOPPING=1")
            stop.cancel()
            await service.stop_capture(capture)
            if not capture.cancelled():
                capture.result()


class Service:
    """The parts of one process, wired together."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._binlogs = Binlogs(store)
        self._capture = Capture(settings.source, self._binlogs.captured)
        self._statements = Statements(self._binlogs, store.next_log_id)
        self._gateway = Gateway(settings.listen, self._statements)
        self._full = ""

    async def start(self, stack: AsyncExitStack, port_file: Path | None) -> None:
        """Start the listeners; `stack` stops them."""
        await self._gateway.start()
        stack.push_async_callback(self._gateway.stop)
        listen = self._settings.listen
        logger.info("listening on %s:%d (MySQL protocol)", listen.address, self._gateway.port)
        if self._settings.http is not None:
            await self._start_http(stack, self._settings.http)
        if port_file is not None:
            unfinished = port_file.with_name(f"{port_file.name}.new")
            unfinished.write_text(str(self._gateway.port), encoding="ascii")
            unfinished.replace(port_file)

    async def _start_http(self, stack: AsyncExitStack, settings: HttpSettings) -> None:
        app = application(self.status)
        runner = await serve_http(app, address=settings.address, port=settings.port)
        stack.push_async_callback(runner.cleanup)
        logger.info("listening on %s:%d (HTTP)", *runner.addresses[0][:2])

    async def run_capture(self) -> None:
        """Route what the source sends, until told to stop.

        Raises:
            BinlaneError: What another attempt cannot mend.
        """
        is_ready = False
        async with aclosing(self._capture.batches()) as batches:
            async for groups in batches:
                await self._apply(groups)
                if not is_ready:
                    _notify_systemd("READY=1")
                    is_ready = True

    async def stop_capture(self, task: asyncio.Task[None]) -> None:
        """Let the batch at hand be stored, then end."""
        async with self._binlogs.lock:
            task.cancel()
        await asyncio.wait((task,))

    async def _apply(self, groups: Sequence[EventGroup]) -> None:
        """Store a batch; while the disk is full, try again: groups are appended once."""
        while True:
            try:
                await self._binlogs.apply(groups)
            except StoreFullError as error:
                self._full = str(error)
                logger.error("%s; trying again in %.0f s (%s)", error, _FULL_RETRY_S, error.hint)  # noqa: TRY400  # one line is enough, every 5 s
                await asyncio.sleep(_FULL_RETRY_S)
            else:
                self._full = ""
                return

    def status(self) -> Status:
        """The state of the moment."""
        capture = self._capture
        problem = None
        if not capture.is_connected:
            problem = f"not connected to the source: {capture.failure or 'connecting'}"
        heard_at_s = capture.heard_at_s
        return Status(
            problem=problem,
            binlogs=[self._binlog_status(name) for name in self._binlogs.names],
            sessions=self._gateway.sessions,
            heard_s=None if heard_at_s is None else time.monotonic() - heard_at_s,
        )

    def _binlog_status(self, name: str) -> BinlogStatus:
        binlog, counts = self._binlogs.get(name), self._binlogs.counts[name]
        return BinlogStatus(
            name=name,
            state=BinlogState.STOPPED if self._full else BinlogState.OPEN,
            reason=self._full,
            file=binlog.end.file,
            position_bytes=binlog.end.position,
            gtid_complete=str(binlog.position),
            log=binlog.definition.scope.render(ScopeList.LOG),
            ignore=binlog.definition.scope.render(ScopeList.IGNORE),
            format=binlog.definition.logging_mode.value,
            event_groups=counts.event_groups,
            events=counts.events,
            omissions=dict(counts.omissions),
            incidents=counts.incidents,
            dumps=self._statements.dumps(name),
            lag_s=self._lag_s(),
        )

    def _lag_s(self) -> float | None:
        """How far behind the source routing is; 0 with nothing left that it has sent."""
        is_idle = self._capture.position == self._binlogs.captured
        if is_idle and self._capture.is_connected:
            return 0.0
        if not self._binlogs.last_timestamp:
            return None
        return max(0.0, time.time() - self._binlogs.last_timestamp)


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
