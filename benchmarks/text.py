"""CPU time of `binlane cat -vv` against the official tool, whole processes, as JSON lines.

Both print the same file to nothing, one after the other, so that a busy machine is busy for both;
the figures are medians of user plus system time. That the texts are equal is told by their hashes.
The logs of MySQL are measured where BINLANE_MYSQLBINLOG names its tool. The last line is `cat` of a
log of a kilobyte: what starting costs.

    python -m benchmarks.text [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.measuring import Figures, chosen_logs, official_tool, options, run

LOGS = ("oltp", "bulk", "bulk_compressed", "statement", "oltp_mysql", "bulk_mysql", "payload")
BINLANE = [sys.executable, "-m", "binlane", "cat", "--quiet"]
_BLOCK_BYTES = 1 << 20
_SMALL_BYTES = 1000
_SMALL_BYTES_MAX = 4000


def main() -> None:
    """Print one line for each log."""
    given = options(__doc__, LOGS).parse_args()
    small = None
    for name, path in chosen_logs(given):
        tool = official_tool(name)
        print(json.dumps(compare(name, path, tool, given.rounds)), flush=True)
        small = (path, tool) if small is None else small
    if small is not None:
        with tempfile.TemporaryDirectory() as directory:
            cut = Path(directory) / "small.000001"
            cut.write_bytes(head_of(small[0]))
            print(json.dumps(compare("small", cut, small[1], given.rounds)), flush=True)


def head_of(path: Path) -> bytes:
    """The first events of a log, about a kilobyte."""
    with path.open("rb") as file:
        data = file.read(_BLOCK_BYTES)
    end = after = 4
    # The event behind them may be a large one.
    while after <= _SMALL_BYTES_MAX:
        end = after
        after += int.from_bytes(data[end + 9 : end + 13], "little")
        if end >= _SMALL_BYTES:
            break
    return data[:end]


def compare(name: str, file: Path, tool: Sequence[str], rounds: int) -> dict[str, object]:
    """Medians of both programs over one file, their ratio, and whether they print the same."""
    flags = [option for option in tool if option.startswith("-v") or "base64" in option]
    commands = {"tool": [*tool, str(file)], "binlane": [*BINLANE, *flags, str(file)]}
    runs: dict[str, list[Figures]] = {side: [] for side in commands}
    for _ in range(rounds):
        for side, command in commands.items():
            runs[side].append(run(command))
    medians = {
        side: Figures(
            cpu_s=round(statistics.median(figures.cpu_s for figures in taken), 3),
            rss_mb=max(figures.rss_mb for figures in taken),
        )
        for side, taken in runs.items()
    }
    return {
        "benchmark": "text",
        "log": name,
        "bytes": file.stat().st_size,
        "options": " ".join(flags),
        **{side: asdict(figures) for side, figures in medians.items()},
        "ratio": round(medians["tool"].cpu_s / medians["binlane"].cpu_s, 2),
        "is_equal": len({text_hash(command) for command in commands.values()}) == 1,
        "load": os.getloadavg()[0],
    }


def text_hash(command: Sequence[str]) -> str:
    """Hash of what a command prints."""
    digest = hashlib.sha256()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None, "a pipe was asked for"
        while block := process.stdout.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    main()
