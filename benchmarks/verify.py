"""CPU time of `binlane verify`, beside the official tool that checks checksums, as JSON lines.

The peer is `mariadb-binlog --verify-binlog-checksum` (for a MySQL log `mysqlbinlog`, which
BINLANE_MYSQLBINLOG names), which prints what it reads and looks at neither GTIDs nor groups. They
run one after the other, so that a busy machine is busy for all; figures are medians of user plus
system time of whole processes, and `warm` the CPU time within one process that has done it before.
LOG is one of the benchmarks' logs, or a path.

    python -m benchmarks.verify [--megabytes N] [--rounds N] [--directory DIR] [LOG...]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Figures, chosen_logs, options, run
from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.verify import CheckCounts, verify
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.walk import walk

LOGS = ("oltp", "bulk", "bulk_compressed", "payload")
VERIFY = [sys.executable, "-m", "binlane", "verify", "--quiet"]


def main() -> None:
    """Measure the logs that are named, or all."""
    given = options(__doc__, LOGS).parse_args()
    for path in files(given):
        print(json.dumps(compare(path, given.rounds)), flush=True)


def files(given: argparse.Namespace) -> Iterator[Path]:
    """The files of the logs that are named."""
    names, given.names = given.names, []
    for name in names:
        if "/" in name:
            yield Path(name)
        else:
            given.names = [name]
            yield from (path for _, path in chosen_logs(given))


def compare(path: Path, rounds: int) -> dict[str, object]:
    """Medians of both over one file, and how many times faster binlane is."""
    commands = {"binlane": [*VERIFY, str(path)], "official_tool": [*peer(path), str(path)]}
    runs: dict[str, list[Figures]] = {name: [] for name in commands}
    warm = []
    tally = looked_at(path)[0]
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command))
        warm.append(looked_at(path)[1])
    megabytes = tally.size_bytes / 1e6
    cpu_s = {name: statistics.median(one.cpu_s for one in taken) for name, taken in runs.items()}
    warm_s = statistics.median(warm)
    return {
        "benchmark": "verify",
        "file": path.name,
        "megabytes": round(megabytes),
        "events": tally.events,
        "groups": tally.groups,
        "cpu_s": {name: round(value, 3) for name, value in cpu_s.items()},
        "mb_per_cpu_s": {name: round(megabytes / value) for name, value in cpu_s.items()},
        "warm_s": round(warm_s, 3),
        "warm_mb_per_cpu_s": round(megabytes / warm_s),
        "ratio": round(cpu_s["official_tool"] / cpu_s["binlane"], 1),
        "rss_mb": max(one.rss_mb for one in runs["binlane"]),
        "rounds": rounds,
    }


def looked_at(path: Path) -> tuple[CheckCounts, float]:
    """What was looked at, and CPU seconds within this process.

    Raises:
        SystemExit: If the log has a fault: then there is nothing to measure.
    """
    tally, start = CheckCounts(), time.process_time()
    for fault in verify([path], tally=tally):
        raise SystemExit(str(fault))
    return tally, time.process_time() - start


def peer(path: Path) -> list[str]:
    """The command of the flavor's own tool."""
    body = next(walk(open_chunks(path), file=str(path))).body
    assert isinstance(body, FormatDescriptionEvent), "a binlog begins with nothing else"
    tool = "mariadb-binlog --no-defaults"
    if body.format.flavor is Flavor.MYSQL:
        tool = os.environ.get("BINLANE_MYSQLBINLOG", "mysqlbinlog")
    return [*tool.split(), "--verify-binlog-checksum"]


if __name__ == "__main__":
    main()
