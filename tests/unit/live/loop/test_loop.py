"""The routing loop keeps a store's binlogs beside a source that comes and goes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from binlane.binlogs.store.catalog import BinlogActivity
from binlane.binlogs.store.disk import Disk, LocalDisk
from binlane.binlogs.store.live import LiveBinlog
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError, StoreError
from binlane.live.capture.settings import SourceSettings, StartAt
from binlane.live.loop.loop import RoutingLoop
from binlane.log.kernels.load import is_compiled
from binlane.positions import GtidPosition
from tests.fake_log import FakeServer
from tests.faulty_disk import BreakableDisk
from tests.groups import source_format
from tests.routed_files import definitions, routed, written
from tests.unit.live.service.test_runs import raws

_SCOPES = ("LOG ALL", "LOG(shop.t)", "IGNORE(shop.a)", "LOG(crm)")
_SET = "md1011_txn"

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


@dataclass
class Running:
    """A loop that runs."""

    loop: RoutingLoop
    store: Store

    def wait(self, is_so: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 20
        while not is_so() and time.monotonic() < deadline_s:
            time.sleep(0.005)
        assert self.loop.crash is None
        assert is_so()

    def wait_for(self, server: FakeServer) -> None:
        """Wait until all binlogs have what the server has."""
        outputs = self.loop.outputs.values()
        self.wait(lambda: all(each.binlog.position.includes(server.position) for each in outputs))


@contextmanager
def running(
    directory: Path,
    server: FakeServer,
    disk: Disk | None = None,
    wake: Callable[[list[LiveBinlog]], None] = lambda _binlogs: None,
) -> Iterator[Running]:
    """A loop over the store of a directory, which is made at the first time."""
    disk = disk or LocalDisk()
    with Store.open(directory / "data", StoreSettings(), disk=disk) as store:
        for definition in () if store.binlogs else definitions(*_SCOPES):
            store.create_binlog(
                definition,
                start=GtidPosition(),
                format_description=source_format(),
                server_id=1,
                timestamp=0,
            )
        settings = SourceSettings(url=ServerUrl.parse("mariadb://u@nowhere"))
        loop = RoutingLoop(store, settings, wake_readers=wake, open_log=server.open)
        loop.start()
        try:
            yield Running(loop, store)
        finally:
            loop.stop()


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, ...]:
    return written(_SET, tmp_path / "in")


@pytest.fixture
def server(paths: tuple[str, ...]) -> FakeServer:
    return FakeServer(paths)


def are_whole(directory: Path, paths: tuple[str, ...]) -> None:
    """All binlogs hold what `route` makes of the log's files."""
    routed(paths, directory / "out", *_SCOPES, uses_kernels=False)
    for number in range(1, len(_SCOPES) + 1):
        name = f"b{number}"
        with Store.open(directory / "data", StoreSettings()) as store:
            files = [file.path for file in store.binlogs[name].files()]
            reference = sorted((directory / "out" / name).glob("*.0*"))
            assert raws(files) == raws(reference)


def test_binlogs_get_what_comes(paths: tuple[str, ...], server: FakeServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as run:
        for _ in range(server.count):
            server.give(1)
            run.wait_for(server)
        assert {output.state.activity for output in run.loop.outputs.values()} == {
            BinlogActivity.OPEN
        }
    are_whole(tmp_path, paths)


def test_a_reader_that_waits_is_woken(server: FakeServer, tmp_path: Path) -> None:
    async def read() -> None:
        events = asyncio.get_running_loop()

        def wake(binlogs: list[LiveBinlog]) -> None:
            for binlog in binlogs:
                events.call_soon_threadsafe(binlog.wake)

        with running(tmp_path, server, wake=wake) as run:
            live = run.loop.outputs["b1"].live
            waiting = asyncio.create_task(live.wait_for_change(live.version, None))
            await asyncio.sleep(0)
            server.give()
            await asyncio.wait_for(waiting, 20)
            assert live.version

    asyncio.run(read())


def test_it_goes_on_behind_lost_connections_and_its_own_end(
    paths: tuple[str, ...], server: FakeServer, tmp_path: Path
) -> None:
    for lives in range(3):
        with running(tmp_path, server) as run:
            server.give(server.count // 4)
            run.wait_for(server)
            before = len(server.starts)
            server.cut(ConnectionResetError("lost"))
            run.wait(lambda before=before: len(server.starts) > before)  # type: ignore[misc]
            if lives == 2:
                server.give()
            run.wait_for(server)
    are_whole(tmp_path, paths)


def test_commands_are_executed_between_groups(server: FakeServer, tmp_path: Path) -> None:
    threads: list[str] = []
    tries: list[float] = []

    def third_time(waited_s: float) -> str | None:
        threads.append(threading.current_thread().name)
        tries.append(waited_s)
        return "done" if len(tries) == 3 else None

    def fails(_waited_s: float) -> bool:
        raise StoreError("no", path="x", hint="")

    hanging: Future[bool]
    with running(tmp_path, server) as run:
        assert run.loop.submit(third_time).result(10) == "done"
        assert tries == sorted(tries)
        assert set(threads) == {"routing"}
        with pytest.raises(StoreError, match="no"):
            run.loop.submit(fails).result(10)
        hanging = run.loop.submit(lambda _waited_s: None)
        assert run.loop.busy_s < 10
    assert hanging.cancelled()


def test_a_binlog_whose_disk_fails_stops_alone_and_catches_up(
    paths: tuple[str, ...], server: FakeServer, tmp_path: Path
) -> None:
    disk = BreakableDisk()
    with running(tmp_path, server, disk) as run:
        server.give(2)
        run.wait_for(server)
        outputs, broken = run.loop.outputs, run.loop.outputs["b1"]
        disk.failing = "b1"
        server.give(server.count // 2)
        others = [output for output in outputs.values() if output is not broken]
        run.wait(lambda: all(each.binlog.position == server.position for each in others))
        run.wait(lambda: broken.state.activity is BinlogActivity.STOPPED)
        assert "error" in broken.state.reason
        disk.failing = ""
        run.wait_for(server)
        run.wait(lambda: broken.state.activity is BinlogActivity.OPEN)
        run.wait(lambda: len(run.loop.feeds) == 1)
        server.give()
        run.wait_for(server)
    are_whole(tmp_path, paths)


def test_a_source_that_refuses_stops_binlogs_until_it_does_not(
    server: FakeServer, tmp_path: Path
) -> None:
    refused = PeerError("Access denied", peer="source", phase="log in", errno=1045)
    server.refusals = [refused]
    server.give()
    with running(tmp_path, server) as run:
        states = list(run.loop.outputs.values())
        run.wait(lambda: all("Access denied" in each.state.reason for each in states))

        def try_now(_waited_s: float) -> bool:
            run.loop.main.try_now()
            return True

        run.loop.submit(try_now).result(10)
        run.wait_for(server)
        assert run.loop.main.last_failure is not None
    assert StartAt.NOW not in server.starts
