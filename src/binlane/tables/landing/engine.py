"""Engines that run the works of a landing: this process and some of its own, or a cluster.

The embedded engine starts its processes once, when the first large batch comes. The processes are
programs of their own that take works from a pipe, so that the caller's main module is never run
again, Ctrl-C at a terminal does not reach them, and they end by themselves when the caller is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from binlane.errors import BinlaneError
from binlane.tables.landing.tables.store_settings import Merger

Work = TypeVar("Work")
Result = TypeVar("Result")

SMALL_BYTES: Final = 8 << 20
"""Works of less than this together are done at once, in this process."""
_ATTEMPTS_MAX: Final = 2


class Engine(Protocol):
    """Runs a function over works."""

    def run(self, function: Callable[[Work], Result], works: Sequence[Work]) -> Iterator[Result]:
        """Run a function over works; give the results in the order of the works, as they come.

        Args:
            function: A function in a module of binlane, so that it can be named to other processes.
            works: Arguments of the function, one a call, which can be pickled.

        Raises:
            BinlaneError: The first error that the function raises, in the order of the works.
        """

    @property
    def cores(self) -> int:
        """The number of works that run at the same time."""

    @property
    def merger(self) -> Merger | None:
        """The merger of runs into current tables by its own statements; None if tasks merge."""


class EmbeddedEngine:
    """Runs works in processes of its own, or in this one where that is less work.

    Use it as a context manager, or close it.

    Args:
        processes: How many; by default one a core.
        small_bytes: Works of less than this together are done at once, in this process.

    Attributes:
        notes: Notes on workers that died and were replaced.
    """

    merger: Final = None

    def __init__(self, processes: int | None = None, *, small_bytes: int = SMALL_BYTES) -> None:
        self._small_bytes = small_bytes
        self._processes = processes or len(os.sched_getaffinity(0))
        self._idle: list[_Worker] = []
        # One entry for each run under way: whoever takes results may run other works in between.
        self._busy: list[dict[Connection, _Worker]] = []
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def cores(self) -> int:
        """The number of works that run at the same time."""
        return self._processes

    def run(self, function: Callable[[Work], Result], works: Sequence[Work]) -> Iterator[Result]:
        """The results, in the order of the works."""
        sizes = [getattr(work, "size_bytes", None) for work in works]
        is_small = None not in sizes and sum(sizes) < self._small_bytes  # type: ignore[arg-type]  # no None
        if len(works) < 2 or is_small or self._processes < 2:
            yield from map(function, works)
            return
        yield from self._spread(function, works)

    def _spread(
        self, function: Callable[[Work], Result], works: Sequence[Work]
    ) -> Iterator[Result]:
        todo = deque(enumerate(works))
        attempts = [0] * len(works)
        done: dict[int, tuple[bool, Any]] = {}
        following = 0
        busy: dict[Connection, _Worker] = {}
        self._busy.append(busy)
        try:
            while following < len(works):
                while todo and len(busy) < self._processes and self._is_ahead(todo, following):
                    number, work = todo.popleft()
                    attempts[number] += 1
                    self._start(busy, number, function, work)
                for ready in wait(list(busy)):
                    assert isinstance(ready, Connection), "nothing else is waited for"
                    worker = busy.pop(ready)
                    number = worker.number
                    answer = worker.answer()
                    if answer is None:
                        self._note_death(worker, attempts[number], works[number])
                        todo.appendleft((number, works[number]))
                        continue
                    self._idle.append(worker)
                    done[number] = answer
                while following in done:
                    is_right, value = done.pop(following)
                    if not is_right:
                        raise value
                    yield value
                    following += 1
        finally:
            # Whoever is still at work here works for nobody.
            for worker in busy.values():
                worker.close()
            self._busy = [each for each in self._busy if each is not busy]

    def _is_ahead(self, todo: deque[tuple[int, Any]], following: int) -> bool:
        """True if the next work is near enough to the awaited one; results behind that are held."""
        return todo[0][0] < following + 4 * self._processes

    def _start(
        self,
        busy: dict[Connection, _Worker],
        number: int,
        function: Callable[[Any], Any],
        work: Any,
    ) -> None:
        worker = self._idle.pop() if self._idle else _Worker()
        worker.send(number, function, work)
        busy[worker.connection] = worker

    def _note_death(self, worker: _Worker, attempts: int, work: object) -> None:
        how = worker.close()
        if attempts >= _ATTEMPTS_MAX:
            place = getattr(work, "place", "")
            raise BinlaneError(
                f"worker processes died {attempts} times of the same work ({how})"
                + (f": {place}" if place else ""),
                hint="there may be too little memory: give smaller batches, or fewer processes",
            )
        self.notes.append(f"a worker process died ({how}); its work is done again")

    def close(self) -> None:
        """End the processes."""
        busy = [worker for each in self._busy for worker in each.values()]
        for worker in [*self._idle, *busy]:
            worker.close()
        self._idle.clear()
        self._busy.clear()


class _Worker:
    """A process that waits for works.

    Attributes:
        connection: The driver's end of the pipe.
        number: The number of the work that the process has.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(each for each in sys.path if each)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this Python, a module of our own
                [
                    sys.executable,
                    "-m",
                    "binlane.tables.landing.engine_worker",
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())
        self.number = 0

    def send(self, number: int, function: Callable[[Any], Any], work: Any) -> None:
        """Give it something to do."""
        self.number = number
        # One that is dead already is found out when its result is asked for.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((function, work))

    def answer(self) -> tuple[bool, Any] | None:
        """Return whether the work was done, and its result or error; None if the process died."""
        try:
            answer: tuple[bool, Any] = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        return answer

    def close(self) -> str:
        """End it; how it ended."""
        self.connection.close()
        if self._process.poll() is None:
            self._process.kill()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"
