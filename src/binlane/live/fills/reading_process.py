"""The process that reads rows, as the thread that fills a binlog has it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from multiprocessing.connection import Connection

from binlane.child_processes import command
from binlane.errors import BinlaneError
from binlane.live.fills.reading_work import GivingWork, ReadingWork, RowsTold


class RowsError(BinlaneError):
    """Rows cannot be had now.

    Attributes:
        is_final: True if trying again does not help.
    """

    def __init__(self, message: str, *, hint: str = "", is_final: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_final = is_final


class ReadingProcess:
    """A process that reads rows.

    Attributes:
        connection: Our end of its pipe.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(each for each in sys.path if each)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this Python, a module of our own
                command("binlane.live.fills.row_process", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.connection = Connection(ours.detach())

    def send(self, work: ReadingWork | GivingWork) -> None:
        """Give it something to do."""
        # One that is dead already is found out when it is to tell something.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(work)

    def receive(self) -> RowsTold:
        """Take what it tells.

        Raises:
            BinlaneError: If it died.
        """
        try:
            told: RowsTold = self.connection.recv()
        except (EOFError, ConnectionResetError):
            code = self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            raise RowsError(
                f"the process that reads rows died ({how})",
                hint="binlane's own log tells why; there may be too little memory",
            ) from None
        return told

    def close(self) -> None:
        """End it."""
        self.connection.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
