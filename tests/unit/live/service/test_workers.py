"""The processes of the port, as the one that keeps the binlogs starts, tells and asks them.

A worker is played by a link in the same event loop: all that the other process would say.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.client.settings import ServerUrl
from binlane.errors import BinlaneError, ConfigError
from binlane.live.answers.access import Access
from binlane.live.answers.port_answers import PortAnswers
from binlane.live.capture.settings import SourceSettings
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.handler import SessionAge
from binlane.live.gateway.port_counts import LoginOutcome, PortCounts
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.loop.binlogs import Binlogs
from binlane.live.loop.port_settings import PortSettings
from binlane.live.port.live_catalog import changes_in
from binlane.live.service.config import ServeSettings
from binlane.live.service.workers.link import ProcessLink
from binlane.live.service.workers.messages import SessionFacts, WorkerReport
from binlane.live.service.workers.spares import Spares
from binlane.live.service.workers.workers import ServingParts, Workers, WorkersNews
from binlane.log.codec.packets.flags import Capability
from binlane.log.grouping.event_group import EventGroup
from binlane.positions import Gtid
from binlane.statements.sql.servers import Dialect
from tests.groups import create, query

_SOURCE = SourceSettings(url=ServerUrl.parse("mysql://app@127.0.0.1:1"))
_FACTS: dict[str, Any] = {
    "user": "app",
    "peer": "1.2.3.4:5",
    "thread_id": 7,
    "is_tls": False,
    "age": SessionAge(1, 2),
    "server_version": "10.11.19-MariaDB",
    "capabilities": Capability.PROTOCOL_41,
    "variables": {},
    "replica": None,
}


class Process:
    """A worker's process: it keeps what it is told, and asks what a test wants to know."""

    def __init__(self, refusal: ConfigError | None = None) -> None:
        self.pid = os.getpid()
        self.returncode: int | None = None
        self.told: list[tuple[str, tuple[Any, ...]]] = []
        self.link: ProcessLink | None = None
        self._refusal = refusal
        self._over = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def begin(self, descriptors: Sequence[int]) -> None:
        connection = socket.socket(fileno=os.dup(descriptors[0]))
        self._running = asyncio.create_task(self._run(connection))

    def kill(self) -> None:
        self.end(-9)

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def end(self, status: int) -> None:
        """Have the process end."""
        assert self.link is not None
        self.returncode = status
        self.link.close()
        self._over.set()

    async def ask(self, what: str, *arguments: object) -> object:
        """Have the worker ask for something."""
        assert self.link is not None
        answer: object = await self.link.call(what, *arguments)
        return answer

    def heard(self, what: str) -> list[tuple[Any, ...]]:
        """Arguments of all that it was told by a name."""
        return [arguments for name, arguments in self.told if name == what]

    async def _run(self, connection: socket.socket) -> None:
        self.link = await ProcessLink.over(connection, self._serve)
        await self.link.run()
        self.returncode = self.returncode or 0
        self._over.set()

    async def _serve(self, what: str, arguments: tuple[Any, ...]) -> object:
        self.told.append((what, arguments))
        if what == "begin" and self._refusal is not None:
            raise self._refusal
        return None


class Waiting:
    """Processes that wait for work."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self._left = deque(processes)

    def take(self) -> Process | None:
        return self._left.popleft()


def _settings(data_dir: Path, workers: int) -> ServeSettings:
    return ServeSettings(
        data_dir=data_dir,
        source=_SOURCE,
        listen=GatewaySettings(address="127.0.0.1", port=0, logins_max=10),
        http=None,
        store=StoreSettings(),
        port=PortSettings(enabled=False, workers=workers),
    )


@asynccontextmanager
async def _serving(
    tmp_path: Path, processes: Sequence[Process], *, workers: int
) -> AsyncIterator[tuple[Workers, WorkersNews, Binlogs]]:
    with Store.open(tmp_path) as store:
        create(store)
        binlogs = Binlogs(store, _SOURCE)
        access, news = Access(binlogs), WorkersNews()
        handler = PortAnswers(binlogs, access=access)
        served = Workers(
            _settings(tmp_path, workers),
            ServingParts(handler, binlogs, access, port=None, attributions=None),
            news=news,
            spares=cast("Spares", Waiting(processes)),
        )
        try:
            await served.start()  # which stops by itself if it fails
            try:
                yield served, news, binlogs
            finally:
                await served.stop()
        finally:
            await binlogs.stop()


def _ddl(text: str) -> EventGroup:
    return EventGroup(gtid=Gtid.parse("0-1-1"), events=(query(text.encode()),), file="log.000001")


async def _until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not check():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)


def test_workers_begin_with_their_part_and_end_when_they_are_told(tmp_path: Path) -> None:
    async def run() -> None:
        processes = [Process(), Process()]
        async with _serving(tmp_path, processes, workers=2) as (workers, _, _):
            for number, process in enumerate(processes):
                ((beginning,),) = process.heard("begin")
                assert beginning.number == number
                assert beginning.settings.listen.logins_max == 5
                assert [each.name for each in beginning.binlogs.definitions] == ["orders"]
            with socket.create_connection(("127.0.0.1", workers.port), 5):
                assert workers.sessions_max == 100
            await workers.use(_settings(tmp_path, 2))
            workers.hurry()
        for process in processes:
            assert [what for what, _ in process.told[-3:]] == ["use", "hurry", "stop"]
            assert process.returncode == 0

    asyncio.run(run())


def test_a_worker_that_cannot_begin_is_told_to_who_starts_them(tmp_path: Path) -> None:
    async def run() -> None:
        good, bad = Process(), Process(ConfigError("no certificate", key="listen.tls_cert"))
        with pytest.raises(BinlaneError, match="no certificate"):
            async with _serving(tmp_path, [good, bad], workers=2):
                raise AssertionError("it does not serve")
        assert good.returncode == bad.returncode == 0

    asyncio.run(run())


def test_a_worker_that_ends_is_replaced_and_its_counts_stay(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Process(), Process()
        async with _serving(tmp_path, [first, second], workers=1) as (workers, _, _):
            counts = PortCounts()
            counts.logins[LoginOutcome.ADMITTED] += 3
            await first.ask("report", WorkerReport(counts=counts, sessions=2))
            assert workers.sessions == 2
            first.end(-9)
            await _until(lambda: second.heard("binlogs"))
            assert workers.sessions == 0
            assert workers.counts.logins[LoginOutcome.ADMITTED] == 3
            (status,) = workers.workers
            assert (status.restarts, status.process_id) == (1, os.getpid())

    asyncio.run(run())


def test_workers_hear_of_ddl_and_binlogs_that_change(tmp_path: Path) -> None:
    async def run() -> None:
        one, other = Process(), Process()
        async with _serving(tmp_path, [one, other], workers=2) as (_, news, binlogs):
            changes = changes_in(_ddl("CREATE TABLE d.t (a INT)"))
            await asyncio.to_thread(news.logged, changes, range(7, 8))
            await asyncio.to_thread(news.source_changed)
            await one.ask("changed", "DROP TABLE d.t", "d", Dialect())
            await one.ask("set_variables", {"binlog_format": "MIXED"})
            await _until(lambda: len(one.heard("binlogs")) == len(other.heard("binlogs")) == 2)
            for process in (one, other):
                ((changes, numbers),) = process.heard("logged")
                assert numbers == [7]
                assert [statement.text for statement, _ in changes] == ["CREATE TABLE d.t (a INT)"]
                assert process.heard("source_changed") == [()]
                assert process.heard("binlogs")[-1][0].variables == {"binlog_format": "MIXED"}
            assert binlogs.variables == {"binlog_format": "MIXED"}
            # The worker itself knows what its session has changed.
            assert (one.heard("changed"), len(other.heard("changed"))) == ([], 1)

    asyncio.run(run())


def test_workers_ask_for_their_sessions(tmp_path: Path) -> None:
    async def run() -> None:
        process, facts = Process(), SessionFacts(number=3, **_FACTS)
        async with _serving(tmp_path, [process], workers=1):
            assert await process.ask("handle", "answers", facts, "SHOW BINLOGS") is True
            assert await process.ask("names", facts, SourcePrivilege.MONITOR) == ("orders",)
            shown = await process.ask("handle", "answer", facts, "SHOW BINLOGS")
            assert isinstance(shown, RowsAnswer)
            assert [row[0] for row in shown.rows] == ["orders"]
            # The session's privileges are its own process's to find out.
            assert process.heard("session") == [(3, "require", SourcePrivilege.MONITOR)] * 2
            with pytest.raises(BinlaneError, match="nothing"):
                await process.ask("handle", "answer", facts, "SHOW BINARY LOGS FOR 'nothing'")
            await process.ask("killed", 7)
            await process.ask("gone", 3)

    asyncio.run(run())
