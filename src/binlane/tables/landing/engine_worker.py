"""A process of the embedded engine: takes works from a pipe until that ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import Connection


def main() -> None:
    """Work until nobody gives any; `sys.argv[1]` is the number of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            function, work = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            answer = pickle.dumps((True, function(work)))
        except Exception as error:  # noqa: BLE001 - it is raised where the work came from
            answer = pickle.dumps((False, error))
        try:
            connection.send_bytes(answer)
        except (BrokenPipeError, ConnectionResetError):  # whoever gave the work is gone
            return


def end_with_parent() -> None:
    """A long work ends, too, when whoever gave it is gone."""
    parent = os.getppid()

    def watch() -> None:
        wake = threading.Event()
        while os.getppid() == parent:
            wake.wait(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
