"""CPU time of `binlane cat -vv` against mariadb-binlog -vv, whole processes, as JSON lines.

Both print the same file to nothing, one after the other, so that a busy machine is busy for both;
the figures are medians of user plus system time. That the texts are equal is told by their hashes.

    python benchmarks/text.py [--repeats N] [--options OPTIONS] [FILE...]

Without a file, the MariaDB logs that `benchmarks/logs.py` has made are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.logs import DIRECTORY

MARIADB = ["oltp-*", "bulk-*", "bulk_compressed-*", "statement-*"]
TOOLS = {
    "mariadb-binlog": ["mariadb-binlog"],
    "binlane": [sys.executable, "-m", "binlane", "cat", "--quiet"],
}
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took."""

    cpu_s: float
    rss_mb: float


def main() -> int:
    """Print one line for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--options", default="--base64-output=decode-rows -vv")
    given = parser.parse_args()
    options = given.options.split()
    files = given.files or [path for name in MARIADB for path in sorted(DIRECTORY.glob(name))]
    for file in files:
        result = compare(file, options, given.repeats)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    return 0


def compare(file: Path, options: Sequence[str], repeats: int) -> dict[str, object]:
    """Medians of both tools over one file, their ratio, and whether they print the same."""
    commands = {tool: [*command, *options, str(file)] for tool, command in TOOLS.items()}
    runs: dict[str, list[Figures]] = {tool: [] for tool in TOOLS}
    for _ in range(repeats):
        for tool, command in commands.items():
            runs[tool].append(run(command))
    medians = {
        tool: Figures(
            cpu_s=round(statistics.median(figures.cpu_s for figures in taken), 3),
            rss_mb=max(figures.rss_mb for figures in taken),
        )
        for tool, taken in runs.items()
    }
    return {
        "file": file.name,
        "megabytes": round(file.stat().st_size / 1e6),
        "options": " ".join(options),
        **{tool: asdict(figures) for tool, figures in medians.items()},
        "ratio": round(medians["mariadb-binlog"].cpu_s / medians["binlane"].cpu_s, 2),
        "is_equal": len({text_hash(command) for command in commands.values()}) == 1,
    }


def run(command: Sequence[str]) -> Figures:
    """Run a command to its end and throw away what it prints.

    Raises:
        CalledProcessError: If it fails.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Figures(cpu_s=usage.ru_utime + usage.ru_stime, rss_mb=round(usage.ru_maxrss / 1024, 1))


def text_hash(command: Sequence[str]) -> str:
    """Hash of what a command prints."""
    digest = hashlib.sha256()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None, "a pipe was asked for"
        while block := process.stdout.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
