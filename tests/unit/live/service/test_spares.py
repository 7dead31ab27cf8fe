"""Processes that are forked before they have work, in a program that has no threads."""

from __future__ import annotations

import os
import subprocess
import sys

from binlane.child_processes import command
from tests.serve_process import is_alive, wait_until

_PROGRAM = """
import asyncio, os, signal, sys
from binlane.live.service.workers.spares import Spares

def work(descriptors):
    os.write(descriptors[0], b"%d" % os.getppid())
    assert not os.read(0, 1)
    if len(descriptors) > 1:
        sys.exit(7)

async def main(spares):
    out, into = os.pipe()
    first, second, third = (spares.take() for _ in range(3))
    assert spares.take() is None
    first.kill()
    assert await first.wait() == -signal.SIGKILL
    try:
        first.begin([into])
    except OSError:
        pass
    else:
        raise AssertionError("one that has ended begins")
    second.begin([into])
    assert await second.wait() == 0
    assert os.read(out, 9) == b"%d" % os.getpid()
    third.begin([into, out])
    assert await third.wait() == 1
    print(fourth_pid)

spares = Spares.fork(4, work)
fourth_pid = spares._left[-1].pid
left = spares._left.pop()
asyncio.run(main(spares))
"""


def test_spares_do_their_work_once_and_end_with_who_forked_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "SystemExit: 7" in done.stderr
    # Whoever is told of its end may take a moment.
    wait_until(lambda: not is_alive(int(done.stdout)))


def test_what_is_started_behind_the_end_of_its_parent_loads_nothing() -> None:
    """It would hold the port, which a program that starts again needs, for as long as it loads."""
    program, *line = command("binlane.live.service.workers.spares")
    line[2] = str(os.getppid())  # whoever started it, but not its parent
    done = subprocess.run(
        [program, "-X", "importtime", *line],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "binlane.version" in done.stderr
    assert "binlane.live" not in done.stderr
