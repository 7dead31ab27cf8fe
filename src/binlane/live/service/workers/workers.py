"""The processes that serve the port: started, told what they have to know, and asked how they do."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from binlane.child_processes import command
from binlane.errors import BinlaneError
from binlane.live.answers.access import Access
from binlane.live.answers.port_answers import PortAnswers
from binlane.live.answers.session_judges import Port
from binlane.live.gateway.answers import RowsInParts
from binlane.live.gateway.client_counts import ClientCounts
from binlane.live.gateway.listening import bound
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.transport import cannot_listen
from binlane.live.loop.binlogs import Binlogs
from binlane.live.port.attribution_messages import AttributionListener
from binlane.live.port.attributions import Attributions
from binlane.live.port.live_catalog import Change
from binlane.live.service.config import ServeSettings
from binlane.live.service.process import cpu_and_memory, worker_count
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import (
    Beginning,
    BinlogsNow,
    RowsToCome,
    SessionFacts,
    WorkerReport,
)
from binlane.live.service.workers.passed_connections import passed
from binlane.live.service.workers.remote_session import RemoteSession
from binlane.live.service.workers.spares import Spares
from binlane.live.web.status_values import WorkerStatus
from binlane.statements.sql.servers import Dialect

_LOOK_S: Final = 0.05
"""Interval of looks if binlogs have changed by themselves."""
_DEAF_S: Final = 0.01
"""Pause in hearing what a process says: many messages are heard at once. In the pause there is room for a few
hundred of them, and routing hears them whenever it needs them."""
_AGAIN_S: Final = 1.0
_BIND_S: Final = 5.0
"""Longest time for which the workers of a process that was killed may still have the port."""
_BIND_AGAIN_S: Final = 0.05
_ENDS_S: Final = 2.0
"""Time for workers once their clients have gone: they leave their own connections to the source."""

logger = logging.getLogger(__name__)


class WorkersNews:
    """Tells workers of the DDL that comes; a `KnownObjects` of routing.

    Attributes:
        tell: Has all workers do something; None before there are any.
    """

    def __init__(self) -> None:
        self.tell: Callable[..., object] | None = None

    def logged(self, changes: Sequence[Change] | None, numbers: Sequence[int] = ()) -> None:
        """Be told of DDL in the source's log; by the routing thread."""
        if self.tell is not None:
            self.tell("logged", changes, list(numbers))

    def source_changed(self) -> None:
        """Be told that it may be another source; by the routing thread."""
        if self.tell is not None:
            self.tell("source_changed")


class _Process(Protocol):
    """A process that was forked, or started."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker of the port, in one process after the other.

    Attributes:
        number: The number of the worker, from 0.
        process: The running process; None while there is none.
        link: The link to the process; None while there is none.
        is_begun: True if the process knows what it has to.
        sessions: The sessions that something was asked for, by number.
        report: The last report of the process on itself.
        before: Counts of the processes that were this number before.
        restarts: The number of processes that were this number before.
        rows: Result sets that it fetches, by key.
        passing: The process passes connections of clients on by this; None while there is no process.
        says: The process says by this what its sessions do; None likewise.
    """

    number: int
    process: _Process | None = None
    link: ProcessLink | None = None
    is_begun: bool = False
    sessions: dict[int, RemoteSession] = field(default_factory=dict)
    report: WorkerReport = field(default_factory=WorkerReport)
    before: PortCounts = field(default_factory=PortCounts)
    restarts: int = 0
    rows: dict[int, RowsInParts] = field(default_factory=dict)
    passing: socket.socket | None = None
    says: socket.socket | None = None


class ServingParts(NamedTuple):
    """The parts of this process that workers ask.

    Attributes:
        handler: Answers workers' statements about binlogs.
        binlogs: Have the definitions, and variables of all binlogs.
        access: Decides which binlogs sessions see.
        port: Knows whether the source is set up; None where nothing is judged.
        attributions: Get to know what sessions make the source log; None likewise.
    """

    handler: PortAnswers
    binlogs: Binlogs
    access: Access
    port: Port | None
    attributions: Attributions | None


class Workers:
    """The port, served by several processes.

    Args:
        settings: The settings of all parts, with as many sessions as there are descriptors for.
        parts: The parts of this process that workers ask.
        news: Gets to know the DDL that comes.
        spares: Processes that wait to be workers.
    """

    def __init__(
        self, settings: ServeSettings, parts: ServingParts, *, news: WorkersNews, spares: Spares
    ) -> None:
        self._spares = spares
        self._settings = _shared_out(settings)
        self._handler = parts.handler
        self._binlogs = parts.binlogs
        self._access = parts.access
        self._port = parts.port
        self._attributions = parts.attributions
        self._news = news
        self._hearing = (
            None if parts.attributions is None else AttributionListener(parts.attributions)
        )
        self._workers = [_Worker(number) for number in range(worker_count(settings.port))]
        self._memory = os.memfd_create("binlane-workers")
        os.ftruncate(self._memory, ClientCounts.bytes_for(len(self._workers)))
        self._sockets: Sequence[socket.socket] = ()
        self._told = BinlogsNow()
        self._looking: asyncio.Task[None] | None = None
        self._keeping: list[asyncio.Task[None]] = []
        self._last_key = 0
        self._stopping = asyncio.Event()
        self._calls: Mapping[str, Callable[..., Awaitable[object]]] = {
            "handle": self._handle,
            "names": self._names,
            "told_names": self._told_names,
            "set_variables": self._set_variables,
            "rows": self._rows,
            "no_rows": self._no_rows,
            "killed": self._killed,
            "gone": self._gone,
            "changed": self._changed,
            "report": self._reported,
        }

    # As a gateway ---------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The TCP port that they listen on."""
        number: int = self._sockets[0].getsockname()[1]
        return number

    @property
    def sessions(self) -> int:
        """Clients that are logged in."""
        return sum(worker.report.sessions for worker in self._workers)

    @property
    def sessions_max(self) -> int:
        """The number of clients that may be logged in."""
        return self._settings.listen.max_connections

    @property
    def counts(self) -> PortCounts:
        """Counts of the clients that came, by outcome, of all processes that there were."""
        counts = PortCounts()
        for worker in self._workers:
            counts.add(worker.before)
            counts.add(worker.report.counts)
        return counts

    @property
    def workers(self) -> list[WorkerStatus]:
        """The state of each process."""
        return [_status(worker) for worker in self._workers]

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            BinlaneError: If the address cannot be listened on, or a worker cannot begin.
        """
        self._sockets = await _listening(self._settings.listen)
        self._told = self._now()
        loop = asyncio.get_running_loop()
        self._news.tell = lambda *told: loop.call_soon_threadsafe(self._tell_all, *told)
        if self._hearing is not None and self._attributions is not None:
            self._attributions.hear = self._hearing.hear
        begun = [loop.create_future() for _ in self._workers]
        self._keeping = [
            asyncio.create_task(self._keep(worker, each))
            for worker, each in zip(self._workers, begun, strict=True)
        ]
        try:
            await asyncio.gather(*begun)
        except BaseException:
            await self.stop()
            raise
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Accept no more clients, let statements and dumps under way end, then close all sessions."""
        self._stopping.set()
        if self._looking is not None:
            self._looking.cancel()
        links = [worker.link for worker in self._workers if worker.link is not None]
        await asyncio.gather(*(link.call("stop") for link in links), return_exceptions=True)
        for link in links:
            link.close()
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=_ENDS_S)
        for worker in self._workers:
            if worker.process is not None and worker.process.returncode is None:
                logger.warning("worker %d does not end, and is killed", worker.number)
                worker.process.kill()
        await asyncio.gather(*self._keeping)
        for listening in self._sockets:
            listening.close()
        os.close(self._memory)

    def hurry(self) -> None:
        """While they stop: wait for nobody any more."""
        self._tell_all("hurry")

    async def use(self, settings: ServeSettings) -> None:
        """Take over settings that can be changed while the workers run.

        Raises:
            BinlaneError: If something cannot be used.
        """
        self._settings = settings = _shared_out(settings)
        links = [worker.link for worker in self._workers if worker.link is not None]
        await asyncio.gather(*(link.call("use", settings) for link in links))

    # Processes ------------------------------------------------------------------------------------

    async def _keep(self, worker: _Worker, begun: asyncio.Future[None]) -> None:
        """Have a process run, another one whenever one has ended, until they are to stop.

        Args:
            worker: The worker that the processes stand for, one after the other.
            begun: Gets to know whether the first one could begin.
        """
        while not self._stopping.is_set():
            try:
                ended = await self._start_one(worker)
            except (BinlaneError, OSError) as error:
                if not begun.done():
                    begun.set_exception(error)
                    return
                logger.error("worker %d: %s", worker.number, error)  # noqa: TRY400  # no fault of ours
            else:
                if not begun.done():
                    begun.set_result(None)
                status = await ended
                worker.restarts += 1
                if not self._stopping.is_set():
                    logger.error(
                        "worker %d has ended (status %d), and its clients' sessions with it; another"
                        " one is started",
                        *(worker.number, status),
                    )
            with suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S):
                    await self._stopping.wait()

    async def _start_one(self, worker: _Worker) -> asyncio.Task[int]:
        """Start a process; who looks after it gives its exit status.

        Raises:
            BinlaneError: If it cannot begin.
            OSError: If there is no room for it.
        """
        link_here, link_there = socket.socketpair()
        says_here, says_there = socket.socketpair()
        worker.passing, passing_there = socket.socketpair(type=socket.SOCK_SEQPACKET)
        there = (link_there, says_there, passing_there)
        descriptors = [
            *(each.fileno() for each in there),
            self._memory,
            *(each.fileno() for each in self._sockets),
        ]
        process = worker.process = await self._process(descriptors)
        for each in there:
            each.close()
        link = worker.link = await ProcessLink.over(link_here, partial(self._serve, worker))
        if self._hearing is not None:
            self._hearing.add(says_here)
            self._listen(says_here)
        worker.says = says_here
        ended = asyncio.create_task(self._attend(worker, process, link, says_here))
        beginning = Beginning(settings=self._settings, binlogs=self._told, number=worker.number)
        try:
            await link.call("begin", beginning)
        except BinlaneError:
            link.close()
            await ended
            raise
        worker.is_begun = True
        if self._hearing is not None:
            # It was not told of changes that came while it began.
            link.tell("logged", None, self._hearing.unheard(says_here))
        link.tell("binlogs", self._told)
        return ended

    def _listen(self, says: socket.socket) -> None:
        """Hear what a process says, once something comes."""
        descriptor = says.fileno()
        if descriptor >= 0:  # else it is gone
            # By number: a selector that does not know a socket spells it out.
            asyncio.get_running_loop().add_reader(descriptor, self._hear, says)

    def _hear(self, says: socket.socket) -> None:
        """Hear what was said, and nothing for a moment: routing hears by itself before it looks at a group."""
        assert self._hearing is not None, "it is listened for"
        self._hearing.hear()
        loop = asyncio.get_running_loop()
        loop.remove_reader(says.fileno())
        loop.call_later(_DEAF_S, self._listen, says)

    async def _process(self, descriptors: Sequence[int]) -> _Process:
        """A process with these descriptors: one that waits for them, else a new one."""
        while (spare := self._spares.take()) is not None:
            try:
                spare.begin(descriptors)
            except OSError:
                await spare.wait()  # it has ended
            else:
                return spare
        return await asyncio.create_subprocess_exec(
            *command("binlane.live.service.workers.spares", *map(str, descriptors)),
            stdin=DEVNULL,
            pass_fds=descriptors,
        )

    async def _attend(
        self, worker: _Worker, process: _Process, link: ProcessLink, says: socket.socket
    ) -> int:
        """Serve a process until its end; its exit status."""
        await link.run()
        if self._hearing is not None:
            asyncio.get_running_loop().remove_reader(says.fileno())
            self._binlogs.changes.end_threads(self._hearing.remove(says))
        else:
            says.close()
        status = await process.wait()
        await self._clear(worker)
        return status

    async def _clear(self, worker: _Worker) -> None:
        """Let go of what a process had that is gone."""
        worker.link, worker.is_begun = None, False
        if worker.passing is not None:
            worker.passing.close()
            worker.passing = None
        worker.sessions.clear()
        rows, worker.rows = worker.rows, {}
        for each in rows.values():
            await each.parts.aclose()
        worker.before.add(worker.report.counts)
        worker.report = WorkerReport()
        crowd = bytes(ClientCounts.bytes_for(1))
        os.pwrite(self._memory, crowd, worker.number * len(crowd))

    def _tell_all(self, what: str, *arguments: object) -> None:
        for worker in self._workers:
            if worker.link is not None and worker.is_begun:
                worker.link.tell(what, *arguments)

    async def _look(self) -> None:
        """Tell workers of binlogs that change without a statement of theirs."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self._tell_binlogs()

    def _tell_binlogs(self) -> None:
        """Tell workers what binlogs there are now, if they do not know."""
        told, binlogs = self._told, self._binlogs
        if (
            told.definitions is not binlogs.definitions
            or told.variables is not binlogs.variables
            or told.has_tables_info is not binlogs.has_tables_info
        ):
            self._told = self._now()
            self._tell_all("binlogs", self._told)

    def _now(self) -> BinlogsNow:
        return BinlogsNow(
            definitions=self._binlogs.definitions,
            variables=self._binlogs.variables,
            has_tables_info=self._binlogs.has_tables_info,
        )

    # What workers ask -----------------------------------------------------------------------------

    async def _serve(self, worker: _Worker, what: str, arguments: tuple[Any, ...]) -> object:
        return await self._calls[what](worker, *arguments)

    def _session(self, worker: _Worker, facts: SessionFacts) -> RemoteSession:
        session = worker.sessions.get(facts.number)
        if session is None:
            assert worker.link is not None, "it asks"
            session = worker.sessions[facts.number] = RemoteSession.begin(worker.link, facts)
        session.update(facts)
        return session

    async def _handle(
        self, worker: _Worker, method: str, facts: SessionFacts, *arguments: object
    ) -> object:
        session = self._session(worker, facts)
        if method == "dump":
            assert worker.passing is not None, "it asks"
            session.connection = passed(worker.passing, session.number)
            arguments = (*arguments, session.send)
        call: Callable[..., Awaitable[object]] = getattr(self._handler, method)
        try:
            found = await call(session, *arguments)
        finally:
            self._tell_binlogs()
            if method == "dump" and session.connection is not None:
                session.connection.close()
                session.connection = None
        if isinstance(found, RowsInParts):
            self._last_key += 1
            worker.rows[self._last_key] = found
            return RowsToCome(found.columns, self._last_key)
        return found

    async def _names(
        self, worker: _Worker, facts: SessionFacts, privilege: Any
    ) -> object:  # as it came
        return await self._access.names(self._session(worker, facts), privilege)

    async def _told_names(self, worker: _Worker, facts: SessionFacts) -> object:
        return await self._access.told_names(self._session(worker, facts))

    async def _set_variables(self, worker: _Worker, values: Mapping[str, str | None]) -> None:
        del worker
        await asyncio.to_thread(self._binlogs.set_variables, values)
        self._tell_binlogs()

    async def _rows(self, worker: _Worker, key: int) -> object:
        return await anext(worker.rows[key].parts, None)

    async def _no_rows(self, worker: _Worker, key: int) -> None:
        found = worker.rows.pop(key, None)
        if found is not None:
            await found.parts.aclose()

    async def _killed(self, worker: _Worker, thread_id: int) -> None:
        del worker
        self._handler.killed(thread_id)

    async def _gone(self, worker: _Worker, number: int) -> None:
        worker.sessions.pop(number, None)
        if worker.passing is not None:
            passed(worker.passing, 0)  # a dump that was cancelled before it began

    async def _changed(self, worker: _Worker, text: str, database: str, dialect: Dialect) -> None:
        number = 0
        if self._hearing is not None and worker.says is not None:
            number = self._hearing.take_change(worker.says)
        for other in self._workers:
            if other is not worker and other.link is not None and other.is_begun:
                other.link.tell("changed", text, database, dialect, number)

    async def _reported(self, worker: _Worker, report: WorkerReport) -> None:
        worker.report = report
        if report.problem and self._port is not None and report.problem != self._port.problem:
            await self._port.problem_now()


async def _listening(settings: GatewaySettings) -> Sequence[socket.socket]:
    """Sockets that listen.

    Raises:
        ConfigError: If there is no such address, or another process has it.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _BIND_S
    while True:
        try:
            return await asyncio.to_thread(bound, settings)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or loop.time() >= deadline_s:
                raise cannot_listen(settings, error) from None
        await asyncio.sleep(_BIND_AGAIN_S)


def _status(worker: _Worker) -> WorkerStatus:
    process = worker.process
    told = None if process is None or not worker.is_begun else cpu_and_memory(process.pid)
    return WorkerStatus(
        number=worker.number,
        process_id=None if process is None or told is None else process.pid,
        sessions=worker.report.sessions,
        restarts=worker.restarts,
        cpu_s=0.0 if told is None else told[0],
        resident_bytes=None if told is None else told[1],
    )


def _shared_out(settings: ServeSettings) -> ServeSettings:
    """Settings of one worker: of those that may be logging in each has its part."""
    places = -(-settings.listen.logins_max // worker_count(settings.port))
    return replace(settings, listen=replace(settings.listen, logins_max=places))
