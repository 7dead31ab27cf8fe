"""`binlane watch` as a process of its own, whose lines a test waits for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Self

from binlane.live.provision.private_server import PrivateServer

_TIMEOUT_S = 60.0


class Watching:
    """A `binlane watch` that runs.

    Attributes:
        lines: Lines of its output so far.
        remarks: Lines of its standard error so far.
    """

    def __init__(self, *arguments: str) -> None:
        self.lines: list[str] = []
        self.remarks: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "binlane", "watch", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MYSQL_PWD": "", "TZ": "UTC"},
        )
        self._readers = [
            threading.Thread(target=_collect, args=(stream, lines))
            for stream, lines in (
                (self._process.stdout, self.lines),
                (self._process.stderr, self.remarks),
            )
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines as JSON objects."""
        return [json.loads(line) for line in list(self.lines)]

    def wait_for(self, is_there: Callable[[], bool]) -> None:
        """Wait until something is there; fail with all that was printed if it does not come."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not is_there():
            shown = "\n".join([*self.lines, *self.remarks])
            assert self._process.poll() is None or is_there(), f"it ended:\n{shown}"
            assert time.monotonic() < deadline, shown
            time.sleep(0.02)

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit status."""
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> int:
        """Wait for the end; return the exit status."""
        status = self._process.wait(_TIMEOUT_S)
        self._close()
        return status

    def _close(self) -> None:
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None, "both are pipes"
            stream.close()


@contextmanager
def watching(server: PrivateServer, *arguments: str) -> Iterator[Watching]:
    """A watch of a server's log from now on, which surely has begun.

    Yields:
        The watch; its first lines tell of the table that shows that it has begun.
    """
    from tests.servers import execute  # noqa: PLC0415  # this test alone needs servers

    with Watching(server.url, *arguments) as process:
        count = 0
        while not process.lines:
            count += 1
            execute(server, f"CREATE DATABASE begun_{count}", f"DROP DATABASE begun_{count}")
            time.sleep(0.2)
            assert count < 200, process.remarks
        yield process


def _collect(stream: IO[str], lines: list[str]) -> None:
    lines.extend(line.rstrip("\n") for line in stream)
