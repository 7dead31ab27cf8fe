"""What starting `binlane cat` costs: CPU time on a log of a kilobyte, beside an empty Python.

The log is the head of a recorded one, a server's first events up to about a kilobyte. Every command
takes its turn in each round, so that a busy machine is busy for all; the figures are medians of user
plus system time, in milliseconds, with their quartiles. `ratio` is how many times as much as
`python -c pass` a command costs. As where binlane is installed, modules lie there compiled and output
is buffered, whatever the environment says.

    python -m benchmarks.start [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import run
from tests.fixture_sets import fixture_set

SETS = {"mariadb": "md1011_group_commit", "mysql": "my97_group_commit"}
_BYTES = 1000
_FIRST = 4
_NOT_INSTALLED = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPYCACHEPREFIX")
EMPTY = [sys.executable, "-c", "pass"]


def main() -> None:
    """Print one line a command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40, help="of which figures are medians")
    given, _ = parser.parse_known_args()  # those of the other benchmarks
    for name in _NOT_INSTALLED:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as directory:
        commands = commands_over(Path(directory))
        taken = measured(commands, given.rounds)
    empty = statistics.median(taken["python -c pass"])
    for name, seconds in taken.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        line = {
            "benchmark": "start",
            "command": name,
            "rounds": given.rounds,
            "cpu_ms": round(1e3 * median, 1),
            "quartiles_ms": [round(1e3 * low, 1), round(1e3 * high, 1)],
            "ratio": round(median / empty, 1),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(line), flush=True)


def commands_over(folder: Path) -> dict[str, list[str]]:
    """What is measured, by the words that name it."""
    commands = {"python -c pass": EMPTY, "binlane --version": [*binlane(), "--version"]}
    for flavor, name in SETS.items():
        file = folder / f"{flavor}.000001"
        file.write_bytes(head_of(fixture_set(name).binlogs[0][1]))
        commands[f"cat {flavor}"] = [*binlane(), "cat", str(file)]
        commands[f"cat -vv {flavor}"] = [*binlane(), "cat", "-vv", str(file)]
    commands["script cat mariadb"] = [
        str(Path(sysconfig.get_path("scripts")) / "binlane"),
        *commands["cat mariadb"][3:],
    ]
    return commands


def binlane() -> list[str]:
    """The command line of the module."""
    return [sys.executable, "-m", "binlane"]


def head_of(data: bytes) -> bytes:
    """The first events of a log, about a kilobyte."""
    end = _FIRST
    while end < min(_BYTES, len(data)):
        end += int.from_bytes(data[end + 9 : end + 13], "little")
    return data[:end]


def measured(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each command, a figure a round; a first round, of cold caches, is left out."""
    for command in commands.values():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(cpu_s(command))
    return taken


def cpu_s(command: Sequence[str]) -> float:
    """User and system time of one run."""
    return run(command).cpu_s


if __name__ == "__main__":
    main()
