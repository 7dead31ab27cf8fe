"""Commands that other threads hand in: executed by the routing thread between two event groups."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")

Command = Callable[[float], _T | None]
"""Executed between event groups, given for how many seconds it has waited; None: not yet."""


@dataclass(slots=True)
class _Waiting:
    """A command that is to be executed."""

    command: Command[Any]
    future: Future[Any]
    since_s: float


class CommandQueue:
    """The commands that wait, and a pipe that wakes the thread that executes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out, self._in = os.pipe()
        for end in (self._out, self._in):
            os.set_blocking(end, False)
        self._new: SimpleQueue[_Waiting] = SimpleQueue()
        self._waiting: list[_Waiting] = []

    # Calls of any thread.

    def wake(self) -> None:
        """Let the thread look at what there is to do."""
        with self._lock, suppress(BlockingIOError):
            if self._in >= 0:
                os.write(self._in, b"\0")

    def submit(self, command: Command[_T]) -> Future[_T]:
        """Have a command executed."""
        future: Future[_T] = Future()
        self._new.put(_Waiting(command, future, time.monotonic()))
        self.wake()
        return future

    def close(self) -> None:
        """Cancel all commands, once nobody executes them any more."""
        for waiting in (*self._waiting, *self._submitted()):
            waiting.future.cancel()
        with self._lock:  # a connection that is just being made may still call `wake`
            os.close(self._in)
            self._in = -1
        os.close(self._out)

    # Calls of the thread that executes them.

    def fileno(self) -> int:
        """Return the descriptor that can be read once somebody has called `wake`."""
        return self._out

    def clear(self) -> None:
        """Take note that somebody has called `wake`."""
        with suppress(BlockingIOError):
            os.read(self._out, 1 << 12)

    @property
    def are_waiting(self) -> bool:
        """True if a command was executed that could not be done yet."""
        return bool(self._waiting)

    def pause(self, longest_s: float) -> None:
        """Wait for a while, unless there is a command, or one comes."""
        if longest_s > 0 and not self._waiting and self._new.empty():
            select.select((self._out,), (), (), longest_s)

    def execute(self) -> None:
        """Execute commands in the order in which they came, each as soon as it can be."""
        if not self._waiting and self._new.empty():
            return
        waiting, self._waiting = [*self._waiting, *self._submitted()], []
        for each in waiting:
            if each.future.cancelled():
                continue
            try:
                result = each.command(time.monotonic() - each.since_s)
            except Exception as error:  # noqa: BLE001  # given to who asked
                _answer(each.future, error=error)
                continue
            if result is None:
                self._waiting.append(each)
            else:
                _answer(each.future, result)

    def _submitted(self) -> Iterator[_Waiting]:
        with suppress(Empty):
            while True:
                yield self._new.get_nowait()


def _answer(future: Future[Any], result: object = None, error: Exception | None = None) -> None:
    """Answer a command whose sender may have gone."""
    if future.set_running_or_notify_cancel():
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
