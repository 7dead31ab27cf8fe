"""The socket that systemd opens for a service's notifications, without systemd."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.serve_process import wait_until

_STEP_S = 0.05


class NotifyListener:
    """Takes datagrams, each some lines.

    Attributes:
        address: What NOTIFY_SOCKET is to be; of a path, or of an abstract name with `@`.
        told: Every line that came, in order.
        times: When each came, as `time.monotonic`.
    """

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)
        self.told: list[str] = []
        self.times: list[float] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = self.address
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self._socket.settimeout(_STEP_S)

    def take(self) -> None:
        """Take what has come, or what comes in a moment."""
        try:
            while True:
                lines = self._socket.recv(1 << 16).decode().split("\n")
                self.told += lines
                self.times += [time.monotonic()] * len(lines)
        except TimeoutError:
            return

    def wait_for(self, line: str, *, timeout_s: float = 60.0) -> None:
        """Wait until a line has come."""

        def has_come() -> bool:
            self.take()
            return line in self.told

        wait_until(has_come, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()
