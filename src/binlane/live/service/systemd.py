"""Messages to a service manager: readiness, present work, and signs of life.

sd_notify(3) is a datagram of lines to the socket that NOTIFY_SOCKET names; without one nothing is
told to anybody.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import MutableMapping
from typing import Final, Self

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
RELOADING: Final = "RELOADING=1"
ALIVE: Final = "WATCHDOG=1"

_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_SEND_TIMEOUT_S: Final = 0.5
_MICROSECOND_S: Final = 1e-6

logger = logging.getLogger(__name__)


class Manager:
    """Whoever started this process and wants to be told how it does.

    Attributes:
        watchdog_s: After so many seconds without a sign of life the process is ended; None for never.
        is_ready: True if it was told that the start is over.

    Args:
        address: Path of the socket, or @NAME of an abstract one; None where nobody listens.
        watchdog_s: Sets the attribute of this name.
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self._status = ""
        self.is_ready = False
        self.watchdog_s = watchdog_s

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Self:
        """The one that the environment names; programs that we start are not to speak for us.

        Args:
            environ: Loses what is for this process alone.
        """
        address, watchdog, process_id = (environ.pop(name, "") for name in _VARIABLES)
        is_ours = process_id in ("", str(os.getpid()))
        watchdog_s = int(watchdog) * _MICROSECOND_S if is_ours and watchdog.isdigit() else 0
        return cls(address or None, watchdog_s or None)

    @property
    def is_there(self) -> bool:
        """True if a service manager listens."""
        return self._address is not None

    def tell(self, *lines: str) -> None:
        """Send lines to the service manager; a message that cannot be sent is lost."""
        if self._address is None:
            return
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.settimeout(_SEND_TIMEOUT_S)
            try:
                notify.connect(address)
                notify.sendall("\n".join(lines).encode())
            except OSError as error:
                logger.warning("the service manager cannot be told %s: %s", lines[0], error)

    def tell_status(self, status: str) -> None:
        """Tell what goes on, in a line for people, where that has changed."""
        if status != self._status:
            self.tell(f"STATUS={' '.join(status.split())}")
        self._status = status

    def tell_ready(self) -> None:
        """Tell that the start, or reading settings again, is over."""
        self.is_ready = True
        self.tell(READY)

    def tell_reloading(self) -> None:
        """Tell that settings are read again; `tell_ready` follows."""
        self.tell(
            RELOADING, f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"
        )

    def ask_for_time(self, seconds: float) -> None:
        """Tell that the start, or the end, takes so much longer from now on."""
        self.tell(f"EXTEND_TIMEOUT_USEC={round(seconds / _MICROSECOND_S)}")
