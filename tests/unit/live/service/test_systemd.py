"""sd_notify(3) over real sockets, and when what is told."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from binlane.live.service import operation
from binlane.live.service.config import ServeSettings, compose
from binlane.live.service.operation import attend
from binlane.live.service.systemd import ALIVE, READY, STOPPING, Manager
from tests.notify_listener import NotifyListener


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> NotifyListener:
    is_path = request.param == "path"
    return NotifyListener(tmp_path / "notify" if is_path else f"@binlane-test-{tmp_path}"[:90])


def test_lines_come_as_one_datagram(listener: NotifyListener) -> None:
    with listener:
        manager = Manager(listener.address)
        manager.tell(READY, "STATUS=all is well")
        manager.tell(STOPPING)
        manager.ask_for_time(1.5)
        listener.take()
    assert listener.told == [READY, "STATUS=all is well", STOPPING, "EXTEND_TIMEOUT_USEC=1500000"]


def test_reloading_has_the_time_of_the_monotonic_clock(listener: NotifyListener) -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    with listener:
        Manager(listener.address).tell_reloading()
        listener.take()
    first, (name, _, microseconds) = listener.told[0], listener.told[1].partition("=")
    assert (first, name) == ("RELOADING=1", "MONOTONIC_USEC")
    assert before <= int(microseconds) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def test_a_status_is_one_line_and_told_once(listener: NotifyListener) -> None:
    with listener:
        manager = Manager(listener.address)
        for status in ("two\nlines", "two\nlines", "another"):
            manager.tell_status(status)
        listener.take()
    assert listener.told == ["STATUS=two lines", "STATUS=another"]


def test_the_environment_is_for_this_process_alone() -> None:
    environ = {
        "NOTIFY_SOCKET": "/run/notify",
        "WATCHDOG_USEC": "60000000",
        "WATCHDOG_PID": str(os.getpid()),
        "PATH": "/bin",
    }
    manager = Manager.of(environ)
    assert manager.is_there
    assert manager.watchdog_s == 60
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "watchdog",
    [{}, {"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}],
)
def test_a_watchdog_that_is_not_ours(watchdog: dict[str, str]) -> None:
    manager = Manager.of(dict(watchdog))
    assert manager.watchdog_s is None
    assert not manager.is_there
    manager.tell(READY)


def test_nobody_listens_any_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Manager(str(tmp_path / "gone")).tell(READY)
    assert "cannot be told READY=1" in caplog.text


class Working:
    """A service that is told how it fares."""

    def __init__(self) -> None:
        self.problem = "not connected to the source"
        self.summary = "2 binlogs, 0 sessions"
        self.settings: ServeSettings = compose({"source": {"url": "mariadb://a@b"}}, base=Path())
        self.lives = asyncio.Event()
        self.lives.set()

    async def beat(self) -> None:
        await self.lives.wait()

    async def use(self, settings: ServeSettings) -> None:
        self.settings = settings


def test_ready_waits_for_the_source_and_life_is_an_answer(tmp_path: Path) -> None:
    async def story(listener: NotifyListener) -> None:
        service = Working()
        task = asyncio.create_task(attend(service, Manager(listener.address, watchdog_s=0.2)))
        await asyncio.sleep(0.3)
        listener.take()
        assert READY not in listener.told
        assert "STATUS=not connected to the source" in listener.told
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in listener.told)
        service.problem = ""
        await asyncio.sleep(0.5)
        listener.take()
        assert listener.told.count(READY) == 1
        assert "STATUS=2 binlogs, 0 sessions" in listener.told
        assert listener.told.count(ALIVE) >= 3
        # The routing thread hangs while the event loop goes on.
        service.lives.clear()
        await asyncio.sleep(0.2)
        listener.take()
        listener.told.clear()
        await asyncio.sleep(0.4)
        listener.take()
        assert listener.told == []
        service.lives.set()
        await asyncio.sleep(0.2)
        listener.take()
        assert ALIVE in listener.told
        task.cancel()

    with NotifyListener(tmp_path / "notify") as listener:
        asyncio.run(story(listener))


def test_a_thread_without_a_sign_of_life_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(operation, "_STUCK_S", 0.05)

    async def story(listener: NotifyListener) -> None:
        service = Working()
        service.lives.clear()
        task = asyncio.create_task(attend(service, Manager(listener.address)))
        await asyncio.sleep(0.2)
        task.cancel()

    with NotifyListener(tmp_path / "notify") as listener:
        asyncio.run(story(listener))
    assert "no sign of life" in caplog.text
