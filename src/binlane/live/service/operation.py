"""A process that runs for long: its signals, whoever started it, and settings that change."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from binlane.errors import BinlaneError, ConfigError
from binlane.live.service.config import Configuration, ServeSettings, check_files, effective
from binlane.live.service.ending import DRAIN_S, Ending
from binlane.live.service.logs import LogSettings
from binlane.live.service.setting_keys import KEYS, setting_of
from binlane.live.service.systemd import ALIVE, Manager
from binlane.live.service.workers.spares import Spares

_TELL_EVERY_S: Final = 10.0
_ALIVE_SHARE: Final = 4
"""Signs of life come so many times in the time after which the manager gives up."""

_NOT_READY_YET_S: Final = 0.2
_START_TAKES_S: Final = 60.0
_STUCK_S: Final = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of the process, beside its settings.

    Attributes:
        port_file: Gets the MySQL port once logins are taken.
        manager: The service manager that is told of the process's state.
        read_again: Gives the settings that are configured now, for SIGHUP; None where there are no
            others.
        set_log: Changes what is logged, and how.
        spares: Processes that wait to be workers of the port.
    """

    port_file: Path | None = None
    manager: Manager = field(default_factory=Manager)
    read_again: Callable[[], Configuration] | None = None
    set_log: Callable[[LogSettings], None] | None = None
    spares: Spares = field(default_factory=Spares)


class RunningService(Protocol):
    """The parts at work, as far as they are looked after here."""

    @property
    def settings(self) -> ServeSettings:
        """The settings that the service works by."""
        ...

    @property
    def problem(self) -> str:
        """The reason why the service is not ready; empty if it is."""
        ...

    @property
    def summary(self) -> str:
        """A line on the service's present work, for a service manager."""
        ...

    async def beat(self) -> None:
        """Return once the routing thread has shown that it lives."""
        ...

    async def use(self, settings: ServeSettings) -> None:
        """Take over settings that can be changed while the service runs."""
        ...


class Signals:
    """Requests by SIGTERM, SIGINT and SIGHUP.

    Attributes:
        stopped: Set once the process is to end.
        reread: Set when settings are to be read again; whoever does it clears it.
        hurry: Called when the process is asked once more to end.
        ending: Sees that it does in time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopped = asyncio.Event()
        self.reread = asyncio.Event()
        self.hurry: Callable[[], None] = lambda: None
        self.ending = Ending()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reread.set)

    async def wait_for_end(self, crashed: asyncio.Event) -> None:
        """Wait until somebody asks for the end, or there is no way on."""
        waiting = [asyncio.create_task(event.wait()) for event in (self.stopped, crashed)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def _stop(self, number: signal.Signals) -> None:
        if not self.stopped.is_set():
            logger.info("%s: ending", number.name)
            self.ending.within(DRAIN_S, status=1)
            self.stopped.set()
            return
        logger.info("%s again: ending at once", number.name)
        self.hurry()


def begin(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """Do something beside all else; that it failed is told at once."""
    task = asyncio.create_task(work)
    task.add_done_callback(_tell_failure)
    return task


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed", task.get_coro(), exc_info=error)


async def attend(service: RunningService, manager: Manager) -> None:
    """Tell the service manager when all is ready, what goes on, and that both threads live.

    Ready is a process that takes logins and gets what the source commits.
    """
    every_s = _TELL_EVERY_S
    if manager.watchdog_s is not None:
        every_s = min(every_s, manager.watchdog_s / _ALIVE_SHARE)
    while not manager.is_ready or manager.is_there:
        problem = service.problem
        manager.tell_status(problem or service.summary)
        if not manager.is_ready and not problem:
            logger.info("ready")
            manager.tell_ready()
        elif not manager.is_ready:
            manager.ask_for_time(_START_TAKES_S)
        if manager.is_there:
            await _beat(service)
            manager.tell(ALIVE)
        await asyncio.sleep(every_s if manager.is_ready else _NOT_READY_YET_S)


async def _beat(service: RunningService) -> None:
    """Wait for a sign of life of the routing thread, however long that takes."""
    beat = asyncio.create_task(service.beat())
    try:
        while not (await asyncio.wait((beat,), timeout=_STUCK_S))[0]:
            logger.warning("the routing thread has shown no sign of life for %g s", _STUCK_S)
        await beat
    finally:
        beat.cancel()


async def reread_at(
    asked: asyncio.Event, service: RunningService, surroundings: Surroundings
) -> None:
    """Whenever it is asked for, take over the settings that have changed."""
    manager = surroundings.manager
    while True:
        await asked.wait()
        asked.clear()
        # A service manager that still waits for the start is told nothing of this.
        is_told = manager.is_ready
        if is_told:
            manager.tell_reloading()
        try:
            await _reread(service, surroundings)
        finally:
            if is_told:
                manager.tell_ready()


async def _reread(service: RunningService, surroundings: Surroundings) -> None:
    if surroundings.read_again is None:
        return
    try:
        configuration = surroundings.read_again()
        check_files(configuration.settings)
    except ConfigError as error:
        for each in (error, *error.others):
            logger.error(  # noqa: TRY400  # what somebody wrote
                "SIGHUP: %s%s; all settings stay as they are",
                *(each, f" ({each.hint})" if each.hint else ""),
                extra={"setting": each.key},
            )
        return
    for warning in configuration.warnings:
        logger.warning("%s", warning)
    changed, kept = changes(service.settings, configuration.settings)
    try:
        await service.use(configuration.settings)
    except BinlaneError as error:
        logger.error("SIGHUP: %s; settings stay as they are", error)  # noqa: TRY400
        return
    if surroundings.set_log is not None:
        surroundings.set_log(configuration.settings.log)
    for setting, value in changed.items():
        logger.info("SIGHUP: %s is %s now", setting, value, extra={"setting": setting})
    for setting, value in kept.items():
        now = "is not set any more, which" if value is None else f"= {value}"
        logger.warning("SIGHUP: %s %s needs a restart", setting, now, extra={"setting": setting})
    if not changed and not kept:
        logger.info("SIGHUP: no setting has changed")


def changes(
    before: ServeSettings, now: ServeSettings
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the differences between two settings.

    Returns:
        The new values of what a running process takes over, and of what takes a restart; None for a
        setting that has no value any more.
    """
    old, new = effective(before), effective(now)
    changed: dict[str, object] = {}
    kept: dict[str, object] = {}
    for section, keys in KEYS.items():
        for key, told in keys.items():
            value = new.get(section, {}).get(key)
            if value != old.get(section, {}).get(key):
                (changed if told.at_sighup else kept)[setting_of(section, key)] = value
    return changed, kept
