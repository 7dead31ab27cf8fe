"""CPU time of `binlane blame` for one row of a log, whole processes, as JSON lines.

The row is the first that the log changes. The peer is `mariadb-binlog -vv`, whose output whoever has
no `blame` must search. `first` has no facts of the file kept from before, `again` has them; figures
are medians of user plus system time. They run one after the other, so that a busy machine is busy
for all.

    python -m benchmarks.blame [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import binlane
from benchmarks.measuring import chosen_logs, options
from benchmarks.summary import PEER, Figures, median, ratio, run

_BLAME = [sys.executable, "-m", "binlane", "blame", "--quiet"]
_LOGS = ["oltp", "bulk"]


def main() -> int:
    """Print one line for each file."""
    given = options(__doc__, _LOGS).parse_args()
    for _, file in chosen_logs(given):
        sys.stdout.write(json.dumps(compare(file, given.rounds)) + "\n")
        sys.stdout.flush()
    return 0


def compare(file: Path, repeats: int) -> dict[str, object]:
    """Medians of the peer and of `blame` for a row of a file, and how many times faster it is."""
    table, key = first_row(file)
    blame = [*_BLAME, table, "--key", key, str(file)]
    taken: dict[str, list[Figures]] = {"mariadb-binlog": [], "first": [], "binlane": []}
    for _ in range(repeats):
        taken["mariadb-binlog"].append(run([*PEER, str(file)])[0])
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            taken["first"].append(run(blame)[0])
            taken["binlane"].append(run(blame)[0])
    medians = {tool: median(runs) for tool, runs in taken.items()}
    return {
        "benchmark": "blame",
        "file": file.name,
        "megabytes": round(file.stat().st_size / 1e6),
        "row": f"{table} {key}",
        "mariadb-binlog": asdict(medians["mariadb-binlog"]),
        "first": asdict(medians["first"]),
        "again": asdict(medians["binlane"]),
        "ratio": ratio(medians, "mariadb-binlog"),
    }


def first_row(file: Path) -> tuple[str, str]:
    """Table and key of the first row that a file changes."""
    batch = next(binlane.scan(file, rows_max=1))
    table = batch.schema.metadata[b"table"].decode()
    return table, str(batch.column("id")[0].as_py())


if __name__ == "__main__":
    sys.exit(main())
