"""CPU time of `binlane cat --summary`, whole processes, as JSON lines.

The peer is mariadb-binlog -vv, which prints what whoever has no summary must read; `reference` is
the same summary without kernels, which reads standard input. They run one after the other, so that
a busy machine is busy for all; the figures are medians of user plus system time. `is_equal` tells
whether both summaries are the same but for the name of the file.

    python -m benchmarks.summary [--megabytes N] [--rounds N] [--directory DIR] [--reference] [LOG...]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import chosen_logs, options

MARIADB = ["oltp", "bulk", "bulk_compressed", "statement"]
PEER = ["mariadb-binlog", "--base64-output=decode-rows", "-vv"]
SUMMARY = [sys.executable, "-m", "binlane", "cat", "--quiet", "--summary", "--format=json"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took."""

    cpu_s: float
    rss_mb: float


def main() -> int:
    """Print one line for each file."""
    parser = options(__doc__, MARIADB)
    parser.add_argument("--reference", action="store_true", help="too, which is slow")
    given = parser.parse_args()
    for _, file in chosen_logs(given):
        result = compare(file, given.rounds, with_reference=given.reference)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    return 0


def compare(file: Path, repeats: int, *, with_reference: bool) -> dict[str, object]:
    """Medians of the peer and binlane over one file, and how many times faster binlane is."""
    commands = {"mariadb-binlog": [*PEER, str(file)], "binlane": [*SUMMARY, str(file)]}
    runs: dict[str, list[Figures]] = {tool: [] for tool in commands}
    for _ in range(repeats):
        for tool, command in commands.items():
            runs[tool].append(run(command)[0])
    result: dict[str, object] = {
        "benchmark": "summary",
        "file": file.name,
        "megabytes": round(file.stat().st_size / 1e6),
    }
    medians = {tool: median(taken) for tool, taken in runs.items()}
    if with_reference:
        medians["reference"], reference = run([*SUMMARY, "-"], stdin=file)
        result["is_equal"] = without_names(reference) == without_names(run(commands["binlane"])[1])
        result["ratio_to_reference"] = ratio(medians, "reference")
    result |= {tool: asdict(figures) for tool, figures in medians.items()}
    return result | {"ratio": ratio(medians, "mariadb-binlog")}


def median(taken: Sequence[Figures]) -> Figures:
    """The median of CPU time, the most memory."""
    return Figures(
        cpu_s=round(statistics.median(figures.cpu_s for figures in taken), 3),
        rss_mb=max(figures.rss_mb for figures in taken),
    )


def ratio(medians: dict[str, Figures], tool: str) -> float:
    """How many times faster than a tool binlane is."""
    return round(medians[tool].cpu_s / medians["binlane"].cpu_s, 2)


def run(command: Sequence[str], *, stdin: Path = Path(os.devnull)) -> tuple[Figures, bytes]:
    """Run a command to its end; the figures, and the last 64 KiB of what it prints.

    Raises:
        CalledProcessError: If it fails.
    """
    with stdin.open("rb") as source:
        process = subprocess.Popen(
            command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None, "a pipe was asked for"
        printed = b""
        while block := process.stdout.read(1 << 20):
            printed = (printed + block)[-(1 << 16) :]
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    taken = usage.ru_utime + usage.ru_stime
    return Figures(cpu_s=round(taken, 3), rss_mb=round(usage.ru_maxrss / 1024, 1)), printed


def without_names(summary: bytes) -> Any:
    """A summary in JSON without the names of its files."""
    return _without_names(json.loads(summary))


def _without_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_names(part) for key, part in value.items() if key != "file"}
    return [_without_names(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
