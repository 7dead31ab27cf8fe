"""What the benchmarks share: their options, the logs they name, and CPU seconds of a process."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.logs import DIRECTORY, MEGABYTES, MYSQL, log

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took.

    Attributes:
        cpu_s: User and system time.
        rss_mb: The most memory it had.
    """

    cpu_s: float
    rss_mb: float


def options(
    description: str | None, names: Sequence[str] = tuple(MEGABYTES)
) -> argparse.ArgumentParser:
    """The options of every benchmark.

    Args:
        description: The module's docstring.
        names: Logs that it measures unless others are named.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(names), metavar="LOG")
    parser.add_argument("--megabytes", type=int, help="size of each log; small ones for a try")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are medians")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where the logs are kept")
    return parser


def chosen_logs(given: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """The logs that were asked for, as far as this machine can make and print them."""
    for name in given.names:
        path = log(name, megabytes=given.megabytes, directory=given.directory)
        if path is None or shutil.which(official_tool(name)[0]) is None:
            print(f"{name}: left out, its server or tool is missing", file=sys.stderr)
        else:
            yield name, path


def official_tool(name: str) -> list[str]:
    """The command that prints a log's rows as text; BINLANE_MYSQLBINLOG names MySQL's."""
    tool = "mariadb-binlog --no-defaults"
    if name in MYSQL:
        tool = os.environ.get("BINLANE_MYSQLBINLOG", "mysqlbinlog")
    return [*tool.split(), "--base64-output=decode-rows", "-vv"]


def run(command: Sequence[str]) -> Figures:
    """Run a command to its end and throw away what it prints.

    Raises:
        CalledProcessError: If it fails.
    """
    # Where bytecode is not kept, every start would compile all modules.
    environment = {key: value for key, value in os.environ.items() if key != _NO_BYTECODE}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Figures(cpu_s=usage.ru_utime + usage.ru_stime, rss_mb=round(usage.ru_maxrss / 1024, 1))


def cpu_of_threads_s(process_id: int) -> tuple[float, float]:
    """CPU time of binlane so far: the main threads of its processes, and all other threads."""
    main, others = 0.0, 0.0
    for each in (process_id, *_children(process_id)):
        for task in Path(f"/proc/{each}/task").iterdir():
            try:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                continue
            taken_s = (int(fields[11]) + int(fields[12])) / _TICKS
            if task.name == str(each):
                main += taken_s
            else:
                others += taken_s
    return main, others


def cpu_of_process_s(process_id: int) -> float:
    """CPU time of one process so far, with all its threads."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _children(process_id: int) -> list[int]:
    text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    return [int(each) for each in text.split()]
