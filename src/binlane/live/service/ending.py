"""A process that is to end does so in time, whatever still waits for a server or a disk.

Parts end in order, each within a time of its own. What is left is threads that wait for a source
that does not answer; nobody can end those, and Python waits for them.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
import time
from typing import Final

logger = logging.getLogger(__name__)

DRAIN_S: Final = 9.0
"""Clients' statements, dumps and what came from the source have so long, all in all."""

_EVERY_S: Final = 0.1


class Ending:
    """Ends the process by force once its time is over.

    What is on disk is whole then too, as after a crash, and recovery takes it from there.
    """

    def __init__(self) -> None:
        self._deadline_s = float("inf")
        self._status = 1
        self._thread: threading.Thread | None = None

    def within(self, seconds: float, *, status: int) -> None:
        """Let the process end in this time from now on; replaces what was said before.

        Args:
            seconds: The time from now on, in seconds.
            status: The process's exit status, if it has to be ended then.
        """
        self._deadline_s, self._status = time.monotonic() + seconds, status
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="ending", daemon=True)
            self._thread.start()

    def _wait(self) -> None:
        while time.monotonic() < self._deadline_s:
            time.sleep(_EVERY_S)
        if self._status != 0:
            logger.error("ending takes too long: the process ends with tasks still running")
            faulthandler.dump_traceback()
        logging.shutdown()
        sys.stdout.flush()
        os._exit(self._status)
