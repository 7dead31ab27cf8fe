"""Processes that wait to become workers, forked from one that has all modules loaded.

Loading them is most of what a worker's start costs. So who is to have workers forks them before it
has threads, connections or a store of its own: each waits for the descriptors of its work, and ends
with the process that forked it. Whatever takes the place of one that has ended is a program of its own,
by `child_processes.command`, with the descriptors.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from binlane.child_processes import end_with

_GO: Final = b"\1"
_DESCRIPTORS_MAX: Final = 64


class SpareProcess:
    """A process that was forked; as asyncio's Process.

    Attributes:
        pid: The process number in the system.
        returncode: The process's exit status, the negative number of a signal; None while that is
            not known.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._channel = channel

    def begin(self, descriptors: Sequence[int]) -> None:
        """Give the process its work.

        Args:
            descriptors: Go to `worker.work`, in order.

        Raises:
            OSError: If it has ended.
        """
        with self._channel:
            socket.send_fds(self._channel, [_GO], list(descriptors))

    def kill(self) -> None:
        """Kill the process by SIGKILL."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the end of the process; return its exit status."""
        if self.returncode is None:
            status = (await asyncio.to_thread(os.waitpid, self.pid, 0))[1]
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Spares:
    """Processes that wait for work; none unless `fork` made them."""

    def __init__(self) -> None:
        self._left: deque[SpareProcess] = deque()

    @classmethod
    def fork(cls, count: int, work: Callable[[Sequence[int]], None]) -> Spares:
        """Fork; only where this process has no threads of Python's yet.

        Args:
            count: The number of processes that are forked.
            work: The work of the processes, done with their descriptors.
        """
        spares, channels, parent = cls(), list[socket.socket](), os.getpid()
        for _ in range(count):
            here, there = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                for each in (here, *channels):
                    each.close()
                _work(parent, there, work)
            there.close()
            channels.append(here)
            spares._left.append(SpareProcess(pid, here))
        return spares

    def take(self) -> SpareProcess | None:
        """A waiting process; None where none is left."""
        return self._left.popleft() if self._left else None


def _heed_parent_alone() -> None:
    """Let the process that started this one say when to end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _work(parent: int, channel: socket.socket, work: Callable[[Sequence[int]], None]) -> NoReturn:
    """Do a forked process's work, and nothing of the process before it."""
    status = 1
    try:
        _heed_parent_alone()
        # The port must not stay taken while this one finds out that the other is gone.
        end_with(parent)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        with channel:
            told, descriptors, *_ = socket.recv_fds(channel, len(_GO), _DESCRIPTORS_MAX)
        if told:
            work(descriptors)
        status = 0
    except BaseException:  # noqa: BLE001  # nothing above this may see it
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Work in the place of a process that has ended."""
    descriptors = [int(number) for number in sys.argv[1:]]
    _heed_parent_alone()
    from binlane.live.service.workers.worker import work  # noqa: PLC0415  # takes a second

    work(descriptors)


if __name__ == "__main__":
    main()
