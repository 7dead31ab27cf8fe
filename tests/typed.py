"""The servers' own command-line client on a terminal of its own, as a person types into it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from types import TracebackType
from typing import Final, Self

PROMPT: Final = b"master> "
_TIMEOUT_S: Final = 60.0
_BELL: Final = "\a"


class TypedClient:
    """`mariadb` as root at a port, from `with` to the end of its block."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __enter__(self) -> Self:
        self._terminal, theirs = pty.openpty()
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        self._process = subprocess.Popen(
            [
                *("mariadb", "--no-defaults", "--table", "--no-auto-rehash", "--user=root"),
                *("--host=127.0.0.1", f"--port={self._port}", f"--prompt={PROMPT.decode()}"),
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "dumb", "MYSQL_HISTFILE": os.devnull},
            start_new_session=True,
        )
        os.close(theirs)
        self._until_prompt()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._terminal)
        self._process.kill()
        self._process.wait()

    def type(self, statement: str) -> list[str]:
        """Type a statement, which may have several lines; the lines of its answer."""
        os.write(self._terminal, statement.encode() + b"\n")
        text = self._until_prompt().replace(_BELL, "")
        # Further lines are asked for with a prompt of their own.
        return [line.removeprefix("    -> ") for line in text.replace("    -> ", "").splitlines()]

    def _until_prompt(self) -> str:
        output = b""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while not output.endswith(PROMPT):
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"no prompt in time: {output!r}"
            ready, _, _ = select.select([self._terminal], [], [], left_s)
            if ready:
                output += os.read(self._terminal, 1 << 16)
        return output.removesuffix(PROMPT).decode()
