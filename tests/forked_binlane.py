"""`binlane` in processes that are forked from one which has loaded the modules of `serve`.

Loading them is most of what a start costs, and tests start `serve` hundreds of times. From there on a
forked process does what `python -m binlane` does. Some tests start the program itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from binlane.cli import main

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_MODULES: Final = (
    "binlane.cli.serve",
    "binlane.cli.settings_option",
    "binlane.live.service.service",
    "binlane.live.service.workers.worker",
)


class ForkedBinlane:
    """A process of `binlane`; as `subprocess.Popen`.

    Attributes:
        pid: The process number in the system.
    """

    def __init__(
        self, arguments: Sequence[str], output: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it.

        Args:
            arguments: Behind the program's name.
            output: The file that standard output and standard error are added to.
            environment: Is all that it has.
        """
        self._process = _CONTEXT.Process(
            target=_run, args=(tuple(arguments), str(output), dict(environment)), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """The exit status, the negative number of a signal; None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; gives the exit status.

        Raises:
            subprocess.TimeoutExpired: If it does not end in time.
        """
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired("binlane", timeout or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkedStarts:
    """Whether processes are forked: in a run of tests they are, elsewhere not."""

    def __init__(self) -> None:
        self.are_on = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have processes forked within the block."""
        # What is listed is loaded once, by the process that is forked.
        _CONTEXT.set_forkserver_preload(list(_MODULES))
        self.are_on = True
        yield
        self.are_on = False


FORKED_STARTS: Final = ForkedStarts()
"""Those of this run; `tests/conftest.py` opens it."""


def _run(arguments: Sequence[str], output: str, environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with Path(output).open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.argv = ["binlane", *arguments]
    sys.exit(main(list(arguments)))
